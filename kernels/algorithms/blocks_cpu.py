"""How kernels on the CPU divide rows into blocks of equal work, whatever the number of threads.

What a kernel sums per block and the host adds in the order of blocks is therefore the same in every run.
"""

from __future__ import annotations

from gpu_pregel.kernels.library.jit_cpu import inline

BLOCK = 1 << 16
"""Rows and edges of a block, the unit that a thread claims."""
EDGES_AHEAD = 256
"""Prefetch distance for neighbours."""


def block_count(n: int, m: int) -> int:
    """Return the number of blocks of a graph with n vertices and m stored edges, at least 1."""
    return max(1, (n + m) // BLOCK)


@inline
def block_start(indptr, block, blocks):
    """Return the first row of a block, such that the blocks have the same number of rows and edges in total."""
    low = 0
    high = len(indptr) - 1
    target = (indptr[high] + high) * block // blocks
    while low < high:
        middle = (low + high) >> 1
        if indptr[middle] + middle < target:
            low = middle + 1
        else:
            high = middle
    return low
