"""PageRank: the share of time that a random surfer spends at each vertex.

Lawrence Page et al.: The PageRank Citation Ranking: Bringing Order to the Web, Stanford, 1999. The rank of dangling
vertices, which have no out-edges, is distributed over all vertices, as in NetworkX and LDBC Graphalytics.

    gpu-pregel run examples/pagerank.py:pagerank -g 16 --parameter damping=0.9
    gpu-pregel run examples/pagerank.py:pagerank -f wiki-Vote.txt --directed --max-supersteps 22

An aggregate is available one superstep after it is summed. Superstep 1 therefore changes no rank and only sums the
rank of dangling vertices. k iterations end with superstep k + 1, so set `max_supersteps=k + 2`.
"""

import numpy as np

import gpu_pregel as gp


def apply(rank, incoming, ctx):
    """One iteration at one vertex."""
    if ctx.superstep == 1:
        return rank
    damping = ctx.parameters.damping
    return (1 - damping + damping * ctx.aggregated.dangling) / ctx.num_vertices + damping * incoming


# Ends when the ranks change by at most `tolerance` in total (L1).
pagerank = gp.VertexProgram(
    value=np.float64,
    parameters={"damping": 0.85, "tolerance": 1e-9},
    init=lambda ctx: 1 / ctx.num_vertices,
    message=lambda rank, ctx: rank / ctx.out_degree,
    combine="sum",
    apply=apply,
    active="always",
    aggregators={
        "dangling": gp.Aggregator("sum", lambda old, new, ctx: new if ctx.out_degree == 0 else 0.0),
        "change": gp.Aggregator("sum", lambda old, new, ctx: abs(new - old) if ctx.superstep > 1 else 1.0),
    },
    halt=lambda aggregated, parameters: aggregated.change <= parameters.tolerance,
)
