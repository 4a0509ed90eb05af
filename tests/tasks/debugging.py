"""A program with a fault: found by a check of compiled code, then examined with a breakpoint."""

import numpy as np

import gpu_pregel as gp

factors = np.array([1.0, 2.0, 4.0])


def share(value, ctx):
    return value / ctx.out_degree * factors[ctx.vertex]  # the graph has four vertices


def watched_share(value, ctx):
    breakpoint()
    return share(value, ctx)


graph = gp.Graph.from_edgelist(["a", "b", "c"], ["b", "c", "d"])
for message, options in ((share, {"check": True}), (watched_share, {"device": "python"})):
    program = gp.VertexProgram(
        value=np.float64, init=lambda ctx: 1.0, message=message, combine="sum", apply=lambda value, new, ctx: new
    )
    try:
        gp.run(graph, program, **options)
    except gp.errors.VertexError as error:
        print(error.vertex, error.superstep, error)
