"""Kernels of the maximal independent set on the CPU.

``states[v]`` is OUT, IN or, while v is undecided, the leading byte of its priority, at least FIRST: a single load per
neighbour decides almost always. Smaller priorities come first in the order.
"""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.library.atomics_cpu import fetch_and_add, load, prefetch, store
from gpu_pregel.kernels.library.hash_cpu import mix
from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.library.work_cpu import CHUNK, claim

OUT, IN, FIRST = 0, 1, 2
ROWS_AHEAD = 32
MAX_OFFSET = 0xFFFFFFFF
"""Largest position in a row that an entry of the list holds; a longer row is resumed there."""


@jit
def initialise(work, offset, states):
    """Mark every vertex as undecided, with the leading byte of its priority."""
    first, last = claim(work)
    while first < last:
        for v in range(first, last):
            states[v] = max(mix(np.uint64(v) + offset) >> np.uint64(56), np.uint64(FIRST))
        first, last = claim(work)


@inline
def _decide(indptr, indices, offset, states, v, skipped):
    """Decide v and return -1, or return the position in its row of an undecided neighbour that comes before v.

    The first ``skipped`` neighbours are out or come after v. A neighbour after v cannot be in before v is decided.
    """
    mine = load(states, v)
    if mine == OUT:
        return -1
    begin = indptr[v]
    end = indptr[v + 1]
    for e in range(begin + skipped, end):
        u = indices[e]
        state = load(states, u)
        if state <= mine and state != OUT:
            if state == IN:
                store(states, v, OUT)
                return -1
            if state < mine or mix(np.uint64(u) + offset) < mix(np.uint64(v) + offset):
                return min(e - begin, MAX_OFFSET)
    for e in range(begin, end):
        u = indices[e]
        if u != v:
            store(states, u, OUT)
    store(states, v, IN)
    return -1


@jit
def decide_all(work, indptr, indices, offset, states, undecided, count):
    """Decide each vertex, unless a neighbour that comes before it is undecided; append the others to ``undecided``."""
    n = len(states)
    kept = np.empty(work[CHUNK], np.uint64)
    first, last = claim(work)
    while first < last:
        k = 0
        for v in range(first, last):
            prefetch(indices, indptr[min(v + ROWS_AHEAD, n)])
            skipped = _decide(indptr, indices, offset, states, v, 0)
            if skipped >= 0:
                kept[k] = np.uint64(v) << np.uint64(32) | np.uint64(skipped)
                k += 1
        _append(undecided, count, kept, k)
        first, last = claim(work)


@inline
def _append(entries, count, kept, k):
    begin = fetch_and_add(count, 0, k)
    for i in range(k):
        entries[begin + i] = kept[i]


@jit
def decide_rest(work, indptr, indices, offset, states, entries, undecided, count):
    """Go on with the undecided vertices in ``entries``; repeat a range as long as vertices in it are decided.

    Each entry has the number of a vertex and the length of the part of its row that is done with.
    """
    first, last = claim(work)
    while first < last:
        left = last - first
        before = left + 1
        while 0 < left < before:
            before = left
            left = 0
            for i in range(first, first + before):
                v = np.int64(entries[i] >> np.uint64(32))
                skipped = np.int64(entries[i] & np.uint64(MAX_OFFSET))
                skipped = _decide(indptr, indices, offset, states, v, skipped)
                if skipped >= 0:
                    entries[first + left] = np.uint64(v) << np.uint64(32) | np.uint64(skipped)
                    left += 1
        _append(undecided, count, entries[first : first + left], left)
        first, last = claim(work)
