"""Random walks on the CPU: a block of walks advances together, so that their cache misses overlap."""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.library.atomics_cpu import prefetch
from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.library.philox import UNIT, philox
from gpu_pregel.kernels.library.work_cpu import claim

BLOCK = 64
"""Walks that a thread advances together."""

_philox = inline(philox)


@jit
def walk(work, indptr, indices, key, draws, walks):
    """Walk along uniformly chosen edges from ``walks[:, 0]`` until a vertex has none; a work item is a walk.

    Step s of walk i uses the random number of the counters i and ``s * draws``. ``walks`` has -1 beyond its start.
    """
    edges = np.empty(BLOCK, np.int64)
    steps = walks.shape[1]
    begin, end = claim(work)
    while begin < end:
        for first in range(begin, end, BLOCK):
            last = min(first + BLOCK, end)
            for step in range(1, steps):
                # Rows, then the chosen edges, are prefetched for all walks of the block.
                for i in range(first, last):
                    prefetch(indptr, max(walks[i, step - 1], 0))
                for i in range(first, last):
                    v = walks[i, step - 1]
                    e = np.int64(-1)
                    if v >= 0:
                        row = indptr[v]
                        degree = indptr[v + 1] - row
                        if degree > 0:
                            number = np.float64(_philox(key, i, step * draws) >> np.uint64(11)) * UNIT
                            e = row + np.int64(number * degree)
                            prefetch(indices, e)
                    edges[i - first] = e
                for i in range(first, last):
                    if edges[i - first] >= 0:
                        walks[i, step] = indices[edges[i - first]]
        begin, end = claim(work)
