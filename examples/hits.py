"""HITS: a hub score and an authority score for each vertex.

Jon Kleinberg: Authoritative Sources in a Hyperlinked Environment, Journal of the ACM 46(5), 1999. A good hub points to
good authorities, and good hubs point to a good authority: hub scores travel along edges, authority scores against
them. The engine sends along edges only, so `with_transpose` adds the reversed edges of a directed graph and marks them
by their weights. An undirected graph stores every edge in both directions, and both scores are equal.

    gpu-pregel run examples/hits.py:hits -g 16 -o scores.parquet

For a directed graph:

    graph = gp.read_graph("wiki-Vote.txt", directed=True)
    result = gp.run(with_transpose(graph), hits)
    hubs, authorities = normalised(result.values)
"""

import numpy as np

import gpu_pregel as gp

FORWARD, REVERSED = 2, 3
"""Weights of :func:`with_transpose`; an edge without a weight, which a program sees as 1, carries both scores."""


def with_transpose(graph):
    """Return a directed graph with its reversed edges added, distinguished by their weights."""
    src, dst, _ = graph.to_edgelist()
    weight = np.repeat(np.array([FORWARD, REVERSED], np.int32), len(src))
    ends = np.concatenate([src, dst]), np.concatenate([dst, src])
    return gp.Graph.from_edgelist(*ends, weight, num_vertices=graph.num_vertices, directed=True)


def normalised(scores):
    """Scale each score to the sum 1, as NetworkX does; the program does not."""
    return tuple(part / part.sum() if part.any() else part for part in scores)


def message(value, weight, ctx):
    """Send the hub score along an edge, and the authority score against it."""
    return (0.0 if weight == FORWARD else value.authority, 0.0 if weight == REVERSED else value.hub)


def apply(value, incoming, ctx):
    """Sum the scores of the neighbours."""
    # Dividing by the sums of the previous superstep, the latest available, prevents overflow.
    first = ctx.superstep == 1
    hubs = ctx.num_vertices if first else ctx.aggregated.hubs
    authorities = ctx.num_vertices if first else ctx.aggregated.authorities
    return (
        incoming.hub / authorities if authorities > 0 else 0.0,
        incoming.authority / hubs if hubs > 0 else 0.0,
    )


# Ends when the total change is at most `tolerance` times the sum of all scores.
hits = gp.VertexProgram(
    value={"hub": np.float64, "authority": np.float64},
    parameters={"tolerance": 1e-10},
    init=lambda ctx: (1.0, 1.0),
    message=message,
    combine="sum",
    apply=apply,
    active="always",
    aggregators={
        "hubs": gp.Aggregator("sum", lambda old, new, ctx: new.hub),
        "authorities": gp.Aggregator("sum", lambda old, new, ctx: new.authority),
        "change": gp.Aggregator(
            "sum", lambda old, new, ctx: abs(new.hub - old.hub) + abs(new.authority - old.authority)
        ),
    },
    halt=lambda aggregated, parameters: (
        aggregated.change <= parameters.tolerance * (aggregated.hubs + aggregated.authorities)
    ),
)
