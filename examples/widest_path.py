"""Widest paths from a source: the largest width such that some path has no edge of a smaller weight.

Maurice Pollack: The maximum capacity through a network, Operations Research 8(5), 1960. It is `sssp.py` with min in
the place of plus, and max in the place of min. The source is infinitely wide, unreachable is minus infinity.

    gpu-pregel run examples/widest_path.py:widths -f pipes.wel --undirected -o widths.parquet
"""

import numpy as np

import gpu_pregel as gp


def widths_from(source):
    """Make the program whose values are the widths of the widest paths from a vertex."""
    return gp.VertexProgram(
        value=np.float64,
        init=lambda ctx: np.inf if ctx.vertex == source else -np.inf,
        initially_active=lambda ctx: ctx.vertex == source,
        message=lambda value, weight, ctx: min(value, weight),
        combine="max",
        apply=lambda value, incoming, ctx: max(value, incoming),
    )


widths = widths_from(0)
