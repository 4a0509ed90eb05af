"""Shortest paths from a source, for non-negative weights.

Bellman-Ford, as in Grzegorz Malewicz et al.: Pregel: A System for Large-Scale Graph Processing, SIGMOD 2010.
Unreachable vertices have distance infinity; without weights every edge has length 1.

    gpu-pregel run examples/sssp.py:distances --grid 300 --parameter source=5
    gpu-pregel run examples/sssp.py:distances -f roads.wel --undirected -o distances.parquet
"""

import numpy as np

import gpu_pregel as gp

distances = gp.VertexProgram(
    value=np.float64,
    parameters={"source": 0},
    init=lambda ctx: 0.0 if ctx.vertex == ctx.parameters.source else np.inf,
    initially_active=lambda ctx: ctx.vertex == ctx.parameters.source,
    message=lambda value, weight, ctx: value + weight,
    combine="min",
    apply=lambda value, incoming, ctx: min(value, incoming),
)
