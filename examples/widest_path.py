"""Widest paths from a source: the width of a path is its smallest weight.

Maurice Pollack: The maximum capacity through a network, Operations Research 8(5), 1960. Same as `sssp.py`, with min
instead of plus and max instead of min. The source has width infinity, unreachable vertices minus infinity.

    gpu-pregel run examples/widest_path.py:widths -f pipes.wel --undirected -o widths.parquet
"""

import numpy as np

import gpu_pregel as gp

widths = gp.VertexProgram(
    value=np.float64,
    parameters={"source": 0},
    init=lambda ctx: np.inf if ctx.vertex == ctx.parameters.source else -np.inf,
    initially_active=lambda ctx: ctx.vertex == ctx.parameters.source,
    message=lambda value, weight, ctx: min(value, weight),
    combine="max",
    apply=lambda value, incoming, ctx: max(value, incoming),
)
