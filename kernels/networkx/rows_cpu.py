"""Rows of graphs whose edges were added one by one, on one thread: the order of NetworkX's dicts."""

from __future__ import annotations

from typing import Any

from gpu_pregel.kernels.library.jit_cpu import jit


@jit
def append_edges(sources: Any, targets: Any, weights: Any, both: Any, ends: Any, neighbors: Any, values: Any) -> None:
    """Append each edge to the row of its source and, if ``both``, to that of its target.

    ``ends`` has the first place of each row, and then the place behind its last entry.
    """
    for e in range(len(sources)):
        u = sources[e]
        v = targets[e]
        neighbors[ends[u]] = v
        values[ends[u]] = weights[e]
        ends[u] += 1
        if both and u != v:
            neighbors[ends[v]] = u
            values[ends[v]] = weights[e]
            ends[v] += 1
