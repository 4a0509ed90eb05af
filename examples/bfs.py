"""Breadth-first search: hops from a source, or the parent of each vertex in a tree of shortest paths.

Level by level, as in Pregel and Gemini. Parents are defined as in the Graph500 and GAPBS benchmarks (Scott Beamer,
Krste Asanović, David Patterson: The GAP Benchmark Suite, 2015); the smallest candidate wins. Unreachable vertices
have -1.

    gpu-pregel run examples/bfs.py:hops -g 16
    gpu-pregel run examples/bfs.py:parents -g 16
"""

import numpy as np

import gpu_pregel as gp


def hops_from(source):
    """Return a program whose values are the hops from ``source``."""
    return gp.VertexProgram(
        value=np.int32,
        init=lambda ctx: 0 if ctx.vertex == source else -1,
        initially_active=lambda ctx: ctx.vertex == source,
        message=lambda value, ctx: value + 1,
        combine="any",
        receives=lambda value, ctx: value < 0,
        apply=lambda value, incoming, ctx: incoming,
    )


def parents_from(source):
    """Return a program whose values are the parents in a tree rooted at ``source``, which is its own parent."""
    return gp.VertexProgram(
        value=np.int64,
        init=lambda ctx: source if ctx.vertex == source else -1,
        initially_active=lambda ctx: ctx.vertex == source,
        message=lambda value, ctx: ctx.vertex,
        combine="min",
        receives=lambda value, ctx: value < 0,
        apply=lambda value, incoming, ctx: incoming,
    )


hops = hops_from(0)
parents = parents_from(0)
