"""Breadth-first search: hops from a source, or the parent of each vertex in a tree of shortest paths.

Level by level, as in Pregel and Gemini. Parents are defined as in the Graph500 and GAPBS benchmarks (Scott Beamer,
Krste Asanović, David Patterson: The GAP Benchmark Suite, 2015); the smallest candidate wins. Unreachable vertices
have -1.

    gpu-pregel run examples/bfs.py:hops -g 16
    gpu-pregel run examples/bfs.py:parents -g 16 --parameter source=5
"""

import numpy as np

import gpu_pregel as gp

hops = gp.VertexProgram(
    value=np.int32,
    parameters={"source": 0},
    init=lambda ctx: 0 if ctx.vertex == ctx.parameters.source else -1,
    initially_active=lambda ctx: ctx.vertex == ctx.parameters.source,
    message=lambda value, ctx: value + 1,
    combine="any",
    receives=lambda value, ctx: value < 0,
    apply=lambda value, incoming, ctx: incoming,
)

# The source is its own parent.
parents = gp.VertexProgram(
    value=np.int64,
    parameters={"source": 0},
    init=lambda ctx: ctx.vertex if ctx.vertex == ctx.parameters.source else -1,
    initially_active=lambda ctx: ctx.vertex == ctx.parameters.source,
    message=lambda value, ctx: ctx.vertex,
    combine="min",
    receives=lambda value, ctx: value < 0,
    apply=lambda value, incoming, ctx: incoming,
)
