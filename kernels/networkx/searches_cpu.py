"""Searches that visit vertices in the order in which NetworkX does, on one thread.

Rows are in the order of NetworkX's dicts: ``neighbors`` is not sorted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.kernels.library.jit_cpu import jit

# Numba checks whether signed indices are negative.
U = np.uint64


@jit
def breadth_first(indptr: Any, neighbors: Any, cutoff: Any, count: Any, order: Any, depths: Any, parents: Any) -> Any:
    """Search from the first ``count`` vertices of ``order``; return the number of vertices that are found.

    The caller has set ``depths`` to 0 at the sources and to -1 elsewhere. ``order`` gets the vertices as they are
    found, ``parents`` the vertex from which each was. Vertices ``cutoff`` steps away are not searched from, and none
    are if it is 0, or once all have been found.
    """
    begin, end = U(0), U(count)
    while begin < end < len(order):
        u = order[begin]
        begin += U(1)
        depth = depths[u]
        if depth >= cutoff:
            break
        for e in range(U(indptr[u]), U(indptr[u + U(1)])):
            v = neighbors[e]
            if depths[v] < 0:
                depths[v] = depth + 1
                parents[v] = u
                order[end] = v
                end += U(1)
    return end
