"""Kernels of PageRank on the CPU: one iteration pulls the shares of the in-neighbours of every vertex.

``shares[u]`` is what u sends along an edge (of weight 1): its score divided by its out-degree or total out-weight, its
divisor. No edge reads the share of a dangling vertex, which has divisor 0 and keeps its whole score there. No array of
scores is written until the end, because small rows are bound by memory.
"""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.algorithms.blocks_cpu import EDGES_AHEAD, block_start
from gpu_pregel.kernels.library.atomics_cpu import load, prefetch
from gpu_pregel.kernels.library.jit_cpu import jit
from gpu_pregel.kernels.library.work_cpu import CHUNK, claim


@jit
def iterate(
    work, blocks, indptr, indices, weights, divisors, teleport, jump, damping, shares, next_shares, changes, dangling
):
    """Compute the scores of the next iteration; in each block also their total change and the dangling score.

    The score is ``jump`` times the vertex's ``teleport`` plus ``damping`` times the sum of the shares. If ``divisors``
    is None, they are the lengths of the rows; if ``weights`` or ``teleport`` is empty, all are 1.
    """
    m = len(indices)
    is_weighted = len(weights) > 0
    is_personal = len(teleport) > 0
    zero = shares.dtype.type(0)
    block, last_block = claim(work)
    while block < last_block:
        change = 0.0
        unsent = 0.0
        first = block_start(indptr, block, blocks)
        last = block_start(indptr, block + 1, blocks)
        begin = indptr[first]
        for v in range(first, last):
            end = indptr[v + 1]
            divisor = shares.dtype.type(end - begin) if divisors is None else divisors[v]
            sum0 = sum1 = sum2 = sum3 = zero
            if not is_weighted:
                # Ends of rows are read without branches on their length, which is hard to predict; what follows them is
                # discarded.
                length = end - begin
                prefetch(indices, begin + EDGES_AHEAD)
                if length <= 4 and begin + 4 <= m:
                    value0 = shares[load(indices, begin)]
                    value1 = shares[load(indices, begin + 1)]
                    value2 = shares[load(indices, begin + 2)]
                    value3 = shares[load(indices, begin + 3)]
                    sum0 = value0 if length > 0 else zero
                    sum1 = value1 if length > 1 else zero
                    sum2 = value2 if length > 2 else zero
                    sum3 = value3 if length > 3 else zero
                else:
                    stop = end - (length & 3)
                    while begin < stop:
                        prefetch(indices, begin + EDGES_AHEAD)
                        sum0 += shares[load(indices, begin)]
                        sum1 += shares[load(indices, begin + 1)]
                        sum2 += shares[load(indices, begin + 2)]
                        sum3 += shares[load(indices, begin + 3)]
                        begin += 4
                    if stop + 3 <= m:
                        value0 = shares[load(indices, stop)]
                        value1 = shares[load(indices, stop + 1)]
                        value2 = shares[load(indices, stop + 2)]
                        sum0 += value0 if stop < end else zero
                        sum1 += value1 if stop + 1 < end else zero
                        sum2 += value2 if stop + 2 < end else zero
                    else:
                        while begin < end:
                            sum0 += shares[load(indices, begin)]
                            begin += 1
            else:
                while begin < end:
                    sum0 += shares[load(indices, begin)] * weights[begin]
                    begin += 1
            begin = end
            total = (sum0 + sum1) + (sum2 + sum3)
            score = damping * total + (jump * teleport[v] if is_personal else jump)
            if divisor > 0:
                change += abs(score - shares[v] * divisor)
                next_shares[v] = score / divisor
            else:
                change += abs(score - shares[v])
                unsent += score
                next_shares[v] = score
        changes[block] = change
        dangling[block] = unsent
        block, last_block = claim(work)


@jit
def prepare(work, indptr, divisors, order, first_scores, shares, dangling):
    """Compute the shares of the first scores, which are equal if empty, and the dangling score of each chunk.

    If ``divisors`` is empty, they are the lengths of the rows; if ``order`` is, row i is that of vertex i.
    """
    first, last = claim(work)
    while first < last:
        unsent = 0.0
        for i in range(first, last):
            divisor = divisors[i] if len(divisors) > 0 else shares.dtype.type(indptr[i + 1] - indptr[i])
            score = shares.dtype.type(1) / shares.dtype.type(len(shares))
            if len(first_scores) > 0:
                score = first_scores[np.int64(order[i]) if len(order) > 0 else i]
            if divisor > 0:
                shares[i] = score / divisor
            else:
                shares[i] = score
                unsent += score
        dangling[first // work[CHUNK]] = unsent
        first, last = claim(work)


@jit
def finish(work, indptr, divisors, order, shares, scores):
    """Write the score of row i, its share times its divisor, for the vertex ``order[i]``; empty as in ``prepare``."""
    first, last = claim(work)
    while first < last:
        for i in range(first, last):
            divisor = divisors[i] if len(divisors) > 0 else shares.dtype.type(indptr[i + 1] - indptr[i])
            v = np.int64(order[i]) if len(order) > 0 else i
            scores[v] = shares[i] * divisor if divisor > 0 else shares[i]
        first, last = claim(work)
