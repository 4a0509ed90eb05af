"""Kernels of core numbers on the CPU, which peel the vertices off in the order of their core numbers.

``degrees[v]`` is the number of neighbours of v left, and ``cores[v]`` is -1 while v is left.
"""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.library.atomics_cpu import compare_and_swap, fetch_and_add, load, prefetch
from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.library.work_cpu import claim

LEFT, LEAST, LEVEL, TAKEN = 0, 1, 2, 3
"""Elements of ``state``: the number of vertices left and the smallest of their degrees, the level, the removed ones."""
NONE = np.int64(-1)
BLOCK = 256
"""Edges of a row that are looked at before the vertices found are dealt with."""
SERIAL = 1 << 10
"""Levels with at most this many vertices left run one after the other on one thread."""


@jit
def count_degrees(work, indptr, indices, degrees, cores, state, left):
    """Count the neighbours of each vertex, each once, and list the vertices that have any; rows are sorted."""
    first, last = claim(work)
    while first < last:
        # Equal neighbours, also of two rows: a loop that the compiler vectorises. Then those of two rows are left out.
        found = indices[indptr[first] : indptr[last]]
        repeated = np.uint32(0)
        for e in range(len(found) - 1):
            repeated += np.uint32(found[e] == found[e + 1])
        for u in range(first + 1, last):
            e = indptr[u]
            if indptr[first] < e < indptr[u + 1]:
                repeated -= np.uint32(indices[e] == indices[e - 1])
        count = 0
        end = indptr[first]
        for u in range(first, last):
            begin = end
            end = indptr[u + 1]
            low = begin
            high = end
            while low < high:
                middle = (low + high) >> 1
                if indices[middle] < u:
                    low = middle + 1
                else:
                    high = middle
            skipped = np.int64(low < end and indices[low] == u)
            if repeated > 0:
                for e in range(begin + 1, end):
                    skipped += np.int64(indices[e] == indices[e - 1])
            degree = end - begin - skipped
            degrees[u] = degree
            cores[u] = -(degree > 0)
            count += degree > 0
        place = fetch_and_add(state, LEFT, count)
        for u in range(first, last):
            if degrees[u] > 0:
                left[place] = u
                place += 1
        first, last = claim(work)


@inline
def _peel(first, last, indptr, indices, k, left, degrees, cores, following, alive):
    """Remove those of some vertices that have at most k neighbours left, and whichever have no more because of that.

    Returns the number of the others, which move to the front, the smallest of their degrees, and the number of
    vertices removed first. ``following`` links the vertices that a thread still has to remove.

    The thread that takes a degree from k + 1 to k, or finds it there, removes the vertex; ``cores`` decides between
    them. A degree that falls below k, because of several threads, is raised again.
    """
    kept = np.int64(0)
    taken = np.int64(0)
    least = np.int64(1) << 62
    for i in range(first, last):
        v = left[i]
        degree = np.int64(load(degrees, v))
        if degree > k:
            left[first + kept] = v
            kept += 1
            least = min(least, degree)
        elif compare_and_swap(cores, v, -1, k):
            taken += 1
            following[v] = NONE
            u = np.int64(v)
            tail = u
            while u != NONE:
                if following[u] != NONE:
                    prefetch(indices, indptr[following[u]])
                previous = np.uint32(u)
                end = indptr[u + 1]
                for begin in range(indptr[u], end, BLOCK):
                    # Without branches, because which neighbours are left is hard to predict; unsigned indices save one.
                    count = np.int64(0)
                    for e in range(begin, min(begin + BLOCK, end)):
                        w = indices[np.uint64(e)]
                        alive[np.uint64(count)] = w
                        count += np.int64(degrees[w] > k)
                    for j in range(count):
                        w = alive[j]
                        if w == u or w == previous:
                            continue
                        previous = w
                        before = fetch_and_add(degrees, w, -1)
                        if before == k + 1:
                            if compare_and_swap(cores, w, -1, k):
                                prefetch(indptr, w)
                                following[w] = NONE
                                following[tail] = w
                                tail = np.int64(w)
                        elif before <= k:
                            fetch_and_add(degrees, w, 1)
                u = following[u]
    return kept, least, taken


@jit
def peel_level(work, indptr, indices, state, left, kept, degrees, cores, following):
    """Remove the vertices of core number ``state[LEVEL]``; those left are copied from ``left`` to ``kept``."""
    k = state[LEVEL]
    all_taken = np.int64(0)
    all_least = np.int64(1) << 62
    alive = np.empty(BLOCK, np.uint32)
    first, last = claim(work)
    while first < last:
        count, least, taken = _peel(first, last, indptr, indices, k, left, degrees, cores, following, alive)
        place = fetch_and_add(state, LEFT, count)
        kept[place : place + count] = left[first : first + count]
        all_taken += taken
        all_least = min(all_least, least)
        first, last = claim(work)
    fetch_and_add(state, TAKEN, all_taken)
    known = load(state, LEAST)
    while all_least < known and not compare_and_swap(state, LEAST, known, all_least):
        known = load(state, LEAST)


@jit
def peel_rest(work, indptr, indices, state, left, degrees, cores, following):
    """Remove the first ``state[LEFT]`` vertices of ``left``, from level ``state[LEVEL]`` on; has one work item."""
    alive = np.empty(BLOCK, np.uint32)
    first, last = claim(work)
    if first < last:
        k = state[LEVEL]
        count = state[LEFT]
        while count > 0:
            count, least, taken = _peel(0, count, indptr, indices, k, left, degrees, cores, following, alive)
            k = k + 1 if taken > 0 else least
