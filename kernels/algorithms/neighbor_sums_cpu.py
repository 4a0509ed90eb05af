"""Kernels of power iterations on the CPU: weighted sums over in-neighbours, and normalisation."""

from __future__ import annotations

from gpu_pregel.kernels.algorithms.blocks_cpu import EDGES_AHEAD, block_start
from gpu_pregel.kernels.library.atomics_cpu import load, prefetch
from gpu_pregel.kernels.library.jit_cpu import jit
from gpu_pregel.kernels.library.work_cpu import CHUNK, claim


@jit
def advance(work, blocks, indptr, indices, weights, values, own, scale, shift, result, totals, squares):
    """Compute ``scale * (sum of the in-neighbours' values + own * value) + shift``, and the norms of each block.

    If ``weights`` is empty, all are 1.
    """
    is_weighted = len(weights) > 0
    block, last_block = claim(work)
    while block < last_block:
        total = 0.0
        square = 0.0
        first = block_start(indptr, block, blocks)
        last = block_start(indptr, block + 1, blocks)
        begin = indptr[first]
        for v in range(first, last):
            end = indptr[v + 1]
            sum0 = sum1 = sum2 = sum3 = 0.0
            if not is_weighted:
                stop = end - ((end - begin) & 3)
                while begin < stop:
                    prefetch(indices, begin + EDGES_AHEAD)
                    sum0 += values[load(indices, begin)]
                    sum1 += values[load(indices, begin + 1)]
                    sum2 += values[load(indices, begin + 2)]
                    sum3 += values[load(indices, begin + 3)]
                    begin += 4
                while begin < end:
                    sum0 += values[load(indices, begin)]
                    begin += 1
            else:
                while begin < end:
                    sum0 += values[load(indices, begin)] * weights[begin]
                    begin += 1
            x = scale * ((sum0 + sum1) + (sum2 + sum3) + own * values[v]) + shift[v]
            result[v] = x
            total += abs(x)
            square += x * x
        totals[block] = total
        squares[block] = square
        block, last_block = claim(work)


@jit
def normalise(work, divisor, before, values, changes):
    """Divide the values by ``divisor``; in each chunk also compute their total distance from ``before``."""
    first, last = claim(work)
    while first < last:
        change = 0.0
        for v in range(first, last):
            x = values[v] / divisor
            values[v] = x
            change += abs(x - before[v])
        changes[first // work[CHUNK]] = change
        first, last = claim(work)
