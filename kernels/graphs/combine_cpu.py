"""Kernels that combine parallel edges into one on the CPU."""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.library.work_cpu import CHUNK, claim

KEEP, FIRST, MIN, MAX, SUM, MEAN = range(6)
"""What becomes of parallel edges: they are kept, or combined into one."""


@inline
def combine_run(weights, run, end, combine, limits, out, place):
    """Write what ``weights[run:end]`` combine to, in this order, to ``out[place]``; return whether the sum fits."""
    value = weights[run]
    fits = True
    for i in range(run + 1, end):
        other = weights[i]
        if combine == MIN:
            value = min(value, other)
        elif combine == MAX:
            value = max(value, other)
        elif combine >= SUM:
            if (other > 0 and value > limits[1] - other) or (other < 0 and value < limits[0] - other):
                fits = False
            value += other
    if combine == MEAN:
        out[place] = value / (end - run)
    else:  # an expression of both would have the type float64
        out[place] = value
    return fits


@jit
def count_targets(work, indptr, indices, keep_loops, degrees):
    """Count the distinct destinations of each row, which is sorted; without ``keep_loops`` those of other vertices."""
    first, last = claim(work)
    while first < last:
        for u in range(first, last):
            count = 0
            for e in range(indptr[u], indptr[u + 1]):
                if (e == indptr[u] or indices[e] != indices[e - 1]) and (keep_loops or indices[e] != u):
                    count += 1
            degrees[u] = count
        first, last = claim(work)


@jit
def combine_rows(
    work, indptr, indices, weights, combine, limits, keep_loops, new_indptr, new_indices, new_weights, faults
):
    """Combine the parallel edges of each row, which is sorted by destination; as ``csr_cpu.sort_buckets`` does.

    ``faults`` has, for each chunk of vertices, the key of parallel edges whose sum is beyond ``limits``, or -1.
    """
    chunk = work[CHUNK]
    first, last = claim(work)
    while first < last:
        fault = np.int64(-1)
        for u in range(first, last):
            end = indptr[u + 1]
            run = indptr[u]
            place = new_indptr[u]
            while run < end:
                next_run = run + 1
                while next_run < end and indices[next_run] == indices[run]:
                    next_run += 1
                if keep_loops or indices[run] != u:
                    new_indices[place] = indices[run]
                    if weights is not None:
                        fits = combine_run(weights, run, next_run, combine, limits, new_weights, place)
                        if not fits and fault < 0:
                            fault = (np.int64(u) << 32) | np.int64(indices[run])
                    place += 1
                run = next_run
        faults[first // chunk] = fault
        first, last = claim(work)
