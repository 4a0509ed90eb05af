"""HITS: how good a hub each vertex is, and how good an authority; values are (hub, authority).

Jon Kleinberg: Authoritative Sources in a Hyperlinked Environment, Journal of the ACM 46(5), 1999. A good hub points to
good authorities, and a good authority is pointed to by good hubs: hub scores travel along edges, authority scores
against them. The engine sends along edges only, so a directed graph is given with its transpose, and weights say which
edges are turned round. On an undirected graph every edge already lies in both directions, and the two scores are one.

    gpu-pregel run examples/hits.py:hits -g 16 -o scores.parquet

and for a directed graph

    graph = gp.read_graph("wiki-Vote.txt", directed=True)
    result = gp.run(with_transpose(graph), hits)
    hubs, authorities = normalised(result.values)
"""

import numpy as np

import gpu_pregel as gp

FORWARD, TURNED = 2, 3
"""Weights of :func:`with_transpose`; an edge without weight, which is 1 to a program, carries both scores."""


def with_transpose(graph):
    """Make the graph of a directed graph's edges and the same turned round, told apart by their weights."""
    src, dst, _ = graph.to_edgelist()
    weight = np.repeat(np.array([FORWARD, TURNED], np.int32), len(src))
    ends = np.concatenate([src, dst]), np.concatenate([dst, src])
    return gp.Graph.from_edgelist(*ends, weight, num_vertices=graph.num_vertices, directed=True)


def normalised(scores):
    """Scale each of the scores to the sum 1, as NetworkX has them; the program leaves them as they grow."""
    return tuple(part / part.sum() if part.any() else part for part in scores)


def hits_with(tolerance=1e-10):
    """Make the program that ends once all scores together change by no more than this share of their sum."""

    def message(value, weight, ctx):
        hub, authority = value
        return (0.0 if weight == FORWARD else authority, 0.0 if weight == TURNED else hub)

    def apply(value, incoming, ctx):
        # Divided by the sums of the superstep before, the latest that are known, so that nothing overflows.
        first = ctx.superstep == 1
        hubs = ctx.num_vertices if first else ctx.aggregated.hubs
        authorities = ctx.num_vertices if first else ctx.aggregated.authorities
        return (
            incoming[0] / authorities if authorities > 0 else 0.0,
            incoming[1] / hubs if hubs > 0 else 0.0,
        )

    return gp.VertexProgram(
        value=(np.float64, np.float64),
        init=lambda ctx: (1.0, 1.0),
        message=message,
        combine="sum",
        apply=apply,
        active="always",
        aggregators={
            "hubs": gp.Aggregator("sum", lambda old, new, ctx: new[0]),
            "authorities": gp.Aggregator("sum", lambda old, new, ctx: new[1]),
            "change": gp.Aggregator("sum", lambda old, new, ctx: abs(new[0] - old[0]) + abs(new[1] - old[1])),
        },
        halt=lambda aggregated: aggregated.change <= tolerance * (aggregated.hubs + aggregated.authorities),
    )


hits = hits_with()
