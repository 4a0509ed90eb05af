"""How rows are filled whose entries come one by one, on one thread: the order of NetworkX's dicts."""

from __future__ import annotations

from gpu_pregel.kernels.library.jit_cpu import inline, jit


@jit
def append_edges(sources, targets, weights, both, ends, neighbors, values):
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


@inline
def add_up(starts):
    """Turn the sizes of rows into the place where each begins."""
    total = 0
    for i in range(len(starts)):
        count = starts[i]
        starts[i] = total
        total += count


@inline
def shift(starts):
    """Set the starts of rows back, each of which has moved on to the next row's."""
    for i in range(len(starts) - 1, 0, -1):
        starts[i] = starts[i - 1]
    starts[0] = 0
