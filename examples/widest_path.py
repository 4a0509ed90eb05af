"""Widest paths from a source: the width of a path is its smallest weight.

Maurice Pollack: The maximum capacity through a network, Operations Research 8(5), 1960. Same as `sssp.py`, with min
instead of plus and max instead of min. The source has width infinity, unreachable vertices minus infinity.

    gpu-pregel run examples/widest_path.py:widths -f pipes.wel --undirected -o widths.parquet
"""

import numpy as np

import gpu_pregel as gp


def widths_from(source):
    """Return a program whose values are the widths of the widest paths from ``source``."""
    return gp.VertexProgram(
        value=np.float64,
        init=lambda ctx: np.inf if ctx.vertex == source else -np.inf,
        initially_active=lambda ctx: ctx.vertex == source,
        message=lambda value, weight, ctx: min(value, weight),
        combine="max",
        apply=lambda value, incoming, ctx: max(value, incoming),
    )


widths = widths_from(0)
