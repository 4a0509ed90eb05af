"""Numbers vertices by first appearance, on the CPU: a serial kernel with one work item."""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.library.hash_cpu import mix
from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.library.work_cpu import claim


@inline
def _find(table, vertices, v):
    """Return the slot of vertex v in a hash table of positions in ``vertices``, or the free slot where it belongs."""
    last = np.uint64(len(table) - 1)
    slot = mix(np.uint64(v)) & last
    while table[slot] >= 0 and vertices[table[slot]] != v:
        slot = (slot + np.uint64(1)) & last
    return slot


@jit
def number(work, vertices, known, appearing, numbers, table):
    """Number vertices by their first appearance in ``vertices[: known[0]]``, then ``appearing``.

    ``numbers[i]`` becomes the number of ``appearing[i]``; new vertices are added to ``vertices`` and counted in
    ``known[0]``. ``table``, int64, has -1 at first, and a power of two elements, more than there are vertices.
    """
    begin, end = claim(work)
    while begin < end:
        for i in range(known[0]):
            table[_find(table, vertices, vertices[i])] = i
        for i in range(len(appearing)):
            slot = _find(table, vertices, appearing[i])
            if table[slot] < 0:
                table[slot] = known[0]
                vertices[known[0]] = appearing[i]
                known[0] += 1
            numbers[i] = table[slot]
        begin, end = claim(work)
