"""Breadth-first searches from 512 sources at a time on the CPU, one bit per source.

Manuel Then et al.: The More the Merrier: Efficient Multi-Source Graph Traversal, PVLDB 8(4), 2014. Each thread runs
batches of its own, so that nothing is shared while it searches. ``seen``, ``visit`` and ``next`` have a line of 512
bits per vertex: the sources that have reached it, those that reached it in the last level and in this one.
"""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.library.atomics_cpu import compare_and_swap, fetch_and_add, load, prefetch
from gpu_pregel.kernels.library.bits_cpu import trailing_zeros
from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.library.lines_cpu import (
    LINE_BITS,
    LINE_WORDS,
    any_bit,
    both,
    count_bits,
    differing,
    either,
    load_line,
    no_bits,
    store_line,
    without,
)
from gpu_pregel.kernels.library.work_cpu import claim

BATCH = LINE_BITS
"""Sources of a batch."""
FIGURES = 4
REACHED, DISTANCES, INVERSES, FARTHEST = 0, 1, 2, 3
"""The figures of a vertex: how many others, the sum of their distances, that of the inverses, the largest."""
PLANES = 40
"""Bits of the counters of sources; they count vertices."""
ROWS_AHEAD = 12


@inline
def _expand(queue, size, indptr, indices, seen, visit, next_, found):
    """Send the bits of the queued vertices along their edges; return how many vertices of ``found`` get new ones."""
    count = 0
    for i in range(size):
        u = queue[i]
        bits = load_line(visit, u)
        for e in range(indptr[u], indptr[u + np.uint32(1)]):
            prefetch(seen, np.int64(indices[min(e + ROWS_AHEAD, len(indices) - 1)]) * LINE_WORDS)
            v = indices[e]
            new = without(bits, load_line(seen, v))
            if any_bit(new):
                old = load_line(next_, v)
                if not any_bit(old):
                    found[count] = v
                    count += 1
                store_line(next_, v, either(old, new))
    return count


@inline
def _collect(indptr, indices, everyone, seen, visit, next_, found):
    """Collect the bits of the in-neighbours of every vertex that lacks some; return how many get new ones."""
    count = 0
    for v in range(len(indptr) - 1):
        known = load_line(seen, v)
        missing = without(everyone, known)
        if any_bit(missing):
            new = no_bits()
            for e in range(indptr[v], indptr[v + 1]):
                prefetch(visit, np.int64(indices[min(e + ROWS_AHEAD, len(indices) - 1)]) * LINE_WORDS)
                new = either(new, load_line(visit, indices[e]))
                if not any_bit(without(missing, new)):
                    break
            new = both(new, missing)
            if any_bit(new):
                store_line(next_, v, new)
                found[count] = v
                count += 1
    return count


@inline
def _count_by_source(queue, size, next_, planes):
    """Count for each source the queued vertices that have its bit, in bit-sliced counters; return their length."""
    used = 0
    for i in range(size):
        carry = load_line(next_, queue[i])
        plane = 0
        while any_bit(carry):
            if plane == used:
                store_line(planes, plane, no_bits())
                used += 1
            sums = load_line(planes, plane)
            store_line(planes, plane, differing(sums, carry))
            carry = both(sums, carry)
            plane += 1
    return used


@inline
def _add_to_sources(planes, used, first, size, distance, inverse, figures):
    """Add the counters of a level to the figures of the sources."""
    for s in range(size):
        count = np.int64(0)
        for plane in range(used):
            word = planes[plane * LINE_WORDS + (s >> 6)]
            count += np.int64((word >> np.uint64(s & 63)) & np.uint64(1)) << plane
        if count > 0:
            figures[first + s, REACHED] += count
            figures[first + s, DISTANCES] += count * distance
            figures[first + s, INVERSES] += count * inverse
            figures[first + s, FARTHEST] = distance


@inline
def _mark_sources(word, first, distance, figures):
    """Make ``distance`` the largest one of each source that has reached a vertex."""
    for w in range(LINE_WORDS):
        rest = word[w]
        while rest != np.uint64(0):
            figures[first + 64 * w + trailing_zeros(rest), FARTHEST] = distance
            rest &= rest - np.uint64(1)


@inline
def _add_figures(of_thread, figures):
    """Add the figures that a thread has collected to those of all threads."""
    for v in range(len(figures) // FIGURES):
        i = v * FIGURES
        if of_thread[i] > 0:
            for k in range(FARTHEST):
                fetch_and_add(figures, i + k, of_thread[i + k])
            farthest = load(figures, i + FARTHEST)
            while farthest < of_thread[i + FARTHEST] and not compare_and_swap(
                figures, i + FARTHEST, farthest, of_thread[i + FARTHEST]
            ):
                farthest = load(figures, i + FARTHEST)


@jit
def search(work, indptr, indices, in_indptr, in_indices, sources, unit, counted, of_targets, of_sources):
    """Search from all sources, in batches of 512; a work item is a batch.

    ``of_targets``, int64[4 n] or empty, gets the figures of every vertex over the sources that reach it, and
    ``of_sources``, int64[k, 4] or empty, those of every source over the vertices that it reaches, of which only the
    largest distance unless ``counted``. Both start with zeros. Inverses are in units of 1 / ``unit``, so that their
    sums do not depend on the order.
    """
    n = len(indptr) - 1
    m = len(indices)
    begin, end = claim(work)
    if begin < end:
        seen = np.zeros(n * LINE_WORDS, np.uint64)
        visit = np.zeros(n * LINE_WORDS, np.uint64)
        next_ = np.zeros(n * LINE_WORDS, np.uint64)
        queue = np.empty(n, np.uint32)
        found = np.empty(n, np.uint32)
        planes = np.empty(PLANES * LINE_WORDS, np.uint64)
        bits = np.zeros(LINE_WORDS, np.uint64)
        own = np.zeros(len(of_targets), np.int64)
    while begin < end:
        for batch in range(begin, end):
            first = batch * BATCH
            sources_of_batch = min(BATCH, len(sources) - first)
            # A vertex may be given several times.
            seen[:] = 0
            bits[:] = 0
            size = 0
            edges = 0
            for s in range(sources_of_batch):
                u = sources[first + s]
                if not any_bit(load_line(visit, u)):
                    queue[size] = u
                    size += 1
                    edges += indptr[u + np.uint32(1)] - indptr[u]
                bit = np.uint64(1) << np.uint64(s & 63)
                bits[s >> 6] |= bit
                seen[np.int64(u) * LINE_WORDS + (s >> 6)] |= bit
                visit[np.int64(u) * LINE_WORDS + (s >> 6)] |= bit
            everyone = load_line(bits, 0)
            distance = 0
            while size > 0:
                distance += 1
                if 3 * edges > m:
                    count = _collect(in_indptr, in_indices, everyone, seen, visit, next_, found)
                else:
                    count = _expand(queue, size, indptr, indices, seen, visit, next_, found)
                for i in range(size):
                    store_line(visit, queue[i], no_bits())
                inverse = (unit + distance // 2) // distance
                edges = 0
                arrived = no_bits()
                for i in range(count):
                    v = found[i]
                    new = load_line(next_, v)
                    arrived = either(arrived, new)
                    store_line(seen, v, either(load_line(seen, v), new))
                    edges += indptr[v + np.uint32(1)] - indptr[v]
                    if len(own) > 0:
                        reached = count_bits(new)
                        k = np.int64(v) * FIGURES
                        own[k + REACHED] += reached
                        own[k + DISTANCES] += reached * distance
                        own[k + INVERSES] += reached * inverse
                        own[k + FARTHEST] = max(own[k + FARTHEST], distance)
                if len(of_sources) > 0 and not counted:
                    store_line(bits, 0, arrived)
                    _mark_sources(bits, first, distance, of_sources)
                elif len(of_sources) > 0:
                    used = _count_by_source(found, count, next_, planes)
                    _add_to_sources(planes, used, first, sources_of_batch, distance, inverse, of_sources)
                visit, next_ = next_, visit
                queue, found = found, queue
                size = count
        begin, end = claim(work)
        if begin == end and len(own) > 0:
            _add_figures(own, of_targets)


@jit
def cluster(work, indptr, indices, ranks):
    """Rank all vertices so that those of a batch are close together; has one work item.

    Searches from close vertices meet the same vertices at nearly the same distances, and so share most of their work.
    Each batch grows by breadth-first search from the first vertex that is in none.
    """
    n = len(ranks)
    begin, end = claim(work)
    while begin < end:
        queue = np.empty(n, np.uint32)
        taken = np.zeros(n, np.bool_)
        root = 0
        head = 0
        size = 0
        while size < n:
            if head == size:
                while taken[root]:
                    root += 1
                taken[root] = True
                queue[size] = root
                size += 1
            u = queue[head]
            head += 1
            e = indptr[u]
            while e < indptr[u + np.uint32(1)] and size % BATCH != 0:
                v = indices[e]
                if not taken[v]:
                    taken[v] = True
                    queue[size] = v
                    size += 1
                e += 1
            if size % BATCH == 0:
                head = size
        for i in range(n):
            ranks[queue[i]] = i
        begin, end = claim(work)
