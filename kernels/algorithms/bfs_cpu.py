"""Kernels of breadth-first search on the CPU: steps along the frontier's out-edges, and along in-edges towards it.

``hops[v]`` is -1 and ``parents[v]`` is ``NO_PARENT`` until v is reached. Rows are sorted, and the parent of a vertex is
the smallest vertex of the level before that has an edge to it, whichever way the vertex is found.
"""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.library.atomics_cpu import compare_and_swap, fetch_and_add, load, prefetch, store
from gpu_pregel.kernels.library.bits_cpu import WORD_BITS, bit, get_bit, popcount, trailing_zeros
from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.library.work_cpu import claim

NO_PARENT = np.uint32(0xFFFFFFFF)
LEVEL, BEGIN, END, EDGES, SCANNED = range(5)
"""Elements of the state of a search: level and queue range of the frontier, its edges, edges scanned so far."""
STATE_LENGTH = 8
EDGES_AHEAD = 16
SAMPLES = 256
"""Vertices from which the edges of a long frontier are estimated."""
LONG = 64
"""A search in one thread that reaches this number of levels is likely to have many more, as in a grid."""
STOP_LENGTH = 8
"""What a slot reports: begin and end of its frontier, its level, and the edges scanned; to the end of a cache line."""
DENSE_BITS = 40
BUFFER = 1 << 10
"""Vertices that a thread collects before it appends them to the queue."""


@jit
def reset(work, hops, parents):
    """Mark every vertex as not reached."""
    first, last = claim(work)
    while first < last:
        hops[first:last] = -1
        parents[first:last] = NO_PARENT
        first, last = claim(work)


@jit
def search_levels(work, indptr, indices, serial_edges, wide, last_level, hops, parents, queue, state):
    """Search level after level while the frontier has few edges; has one work item.

    Ends before a level with more than ``serial_edges`` edges, after ``last_level``, or when the frontier is empty;
    after ``LONG`` levels also before one with ``wide`` vertices.
    """
    first, last = claim(work)
    while first < last:
        level, begin, end, scanned = state[LEVEL], state[BEGIN], state[END], state[SCANNED]
        long = level + LONG
        edges = 0
        while begin < end and level < last_level:
            # Count the edges of a short frontier; estimate those of a long one.
            count = end - begin
            step = max(1, count // SAMPLES) if count > serial_edges else 1
            edges = 0
            for i in range(begin, end, step):
                u = queue[i]
                edges += indptr[u + 1] - indptr[u]
                prefetch(indices, indptr[u])
            edges *= step
            if max(edges, count) > serial_edges or (level >= long and count >= wide):
                break
            level += 1
            tail = end
            for i in range(begin, end):
                u = queue[i]
                for e in range(indptr[u], indptr[u + 1]):
                    v = indices[e]
                    hop = hops[v]
                    if hop < 0:
                        hops[v] = level
                        parents[v] = u
                        queue[tail] = v
                        tail += 1
                    elif hop == level and u < parents[v]:
                        parents[v] = u
            scanned += edges
            begin = end
            end = tail
        state[LEVEL], state[BEGIN], state[END], state[EDGES], state[SCANNED] = level, begin, end, edges, scanned
        first, last = claim(work)


@inline
def _flush(buffer, filled, queue, state):
    """Append the buffer of a thread to the queue."""
    position = fetch_and_add(state, END, filled)
    for i in range(filled):
        queue[position + i] = buffer[i]


@jit
def search_slots(work, indptr, indices, level, last_level, frontier, hops, queues, stops):
    """Search from parts of the frontier up to ``last_level`` without waiting for other slots, which are the work items.

    Vertices that a slot has reached too late are reached again by another one, and the entries of the first one become
    out of date. A slot ends early if its part of ``queues`` might not hold the next level. Parents are not set.
    """
    slots = len(stops) // STOP_LENGTH
    space = len(queues) // slots
    first, last = claim(work)
    while first < last:
        for slot in range(first, last):
            now = level
            scanned = 0
            begin = slot * space
            end = begin
            for i in range(len(frontier) * slot // slots, len(frontier) * (slot + 1) // slots):
                queues[end] = frontier[i]
                end += 1
            while begin < end and now < last_level:
                edges = 0
                for i in range(begin, end):
                    u = queues[i]
                    edges += indptr[u + 1] - indptr[u]
                    prefetch(indices, indptr[u])
                if end + edges > (slot + 1) * space:
                    break
                tail = end
                for i in range(begin, end):
                    u = queues[i]
                    if load(hops, u) != now:
                        continue
                    for e in range(indptr[u], indptr[u + 1]):
                        v = indices[e]
                        hop = load(hops, v)
                        while np.uint32(hop) > np.uint32(now + 1):  # also -1
                            if compare_and_swap(hops, v, hop, now + 1):
                                queues[tail] = v
                                tail += 1
                                break
                            hop = load(hops, v)
                scanned += edges
                now += 1
                begin = end
                end = tail
            stop = slot * STOP_LENGTH
            stops[stop] = begin
            stops[stop + 1] = end
            stops[stop + 2] = last_level if begin == end else now
            stops[stop + 3] = scanned
        first, last = claim(work)


@jit
def truncate(work, level, hops, queue, state):
    """Forget the vertices reached after a level, and make the queue those of that level."""
    buffer = np.empty(BUFFER, np.uint32)
    filled = 0
    first, last = claim(work)
    while first < last:
        for v in range(first, last):
            if hops[v] > level:
                hops[v] = -1
            elif hops[v] == level:
                buffer[filled] = v
                filled += 1
                if filled == BUFFER:
                    _flush(buffer, filled, queue, state)
                    filled = 0
        first, last = claim(work)
    _flush(buffer, filled, queue, state)


@jit
def find_parents(work, indptr, indices, first_level, last_level, hops, parents):
    """Find the parents of the vertices of some levels."""
    first, last = claim(work)
    while first < last:
        for v in range(first, last):
            hop = hops[v]
            if first_level <= hop <= last_level:
                e = indptr[v]
                while hops[indices[e]] != hop - 1:
                    e += 1
                parents[v] = indices[e]
        first, last = claim(work)


@jit
def count_edges(work, indptr, frontier, ends):
    """Write the degree of each vertex of the frontier."""
    first, last = claim(work)
    while first < last:
        for i in range(first, last):
            if i + EDGES_AHEAD < last:
                prefetch(indptr, frontier[i + EDGES_AHEAD])
            u = frontier[i]
            ends[i] = indptr[u + 1] - indptr[u]
        first, last = claim(work)


@inline
def _find_row(ends, item):
    """Return the first position whose end is above ``item``."""
    low = 0
    high = len(ends) - 1
    while low < high:
        middle = (low + high) >> 1
        if ends[middle] > item:
            high = middle
        else:
            low = middle + 1
    return low


@jit
def push(work, indptr, indices, level, frontier, ends, hops, parents, queue, state):
    """Reach the next level along the out-edges of the frontier, which are the work items.

    ``ends[i]`` is the number of edges of the first ``i + 1`` vertices of the frontier.
    """
    buffer = np.empty(BUFFER, np.uint32)
    filled = 0
    first, last = claim(work)
    while first < last:
        i = _find_row(ends, first)
        while first < last:
            u = frontier[i]
            stop = min(ends[i], last)
            end = indptr[u + 1] - (ends[i] - stop)
            e = end - (stop - first)
            if i + 2 < len(ends):
                prefetch(indices, indptr[frontier[i + 2]])
            while e < end:
                if e + EDGES_AHEAD < end:
                    prefetch(parents, indices[e + EDGES_AHEAD])
                    prefetch(hops, indices[e + EDGES_AHEAD])
                v = indices[e]
                e += 1
                parent = load(parents, v)
                while u < parent:
                    # Another thread may have set the parent already, but not yet the number of hops.
                    if parent != NO_PARENT:
                        hop = load(hops, v)
                        if hop >= 0 and hop != level:
                            break
                    if compare_and_swap(parents, v, parent, u):
                        if parent == NO_PARENT:
                            store(hops, v, level)
                            buffer[filled] = v
                            filled += 1
                            if filled == BUFFER:
                                _flush(buffer, filled, queue, state)
                                filled = 0
                        break
                    parent = load(parents, v)
            first = stop
            i += 1
        first, last = claim(work)
    _flush(buffer, filled, queue, state)


@jit
def make_bitmaps(work, level, hops, visited, frontier):
    """Make the bitmaps of the vertices reached, with ones beyond n, and of the last level; the items are words."""
    first, last = claim(work)
    while first < last:
        for word in range(first, last):
            begin = word * WORD_BITS
            part = hops[begin : begin + WORD_BITS]
            seen = np.uint64(0)
            active = np.uint64(0)
            if len(part) == WORD_BITS:
                for k in range(WORD_BITS):  # a constant length, so that LLVM vectorises the loop
                    seen |= np.uint64(part[k] >= 0) << np.uint64(k)
                    active |= np.uint64(part[k] == level) << np.uint64(k)
            else:
                for k in range(len(part)):
                    seen |= np.uint64(part[k] >= 0) << np.uint64(k)
                    active |= np.uint64(part[k] == level) << np.uint64(k)
                seen |= ~np.uint64(0) << np.uint64(len(part))
            visited[word] = seen
            frontier[word] = active
        first, last = claim(work)


@jit
def pull(work, indptr, indices, level, frontier, hops, parents, visited, reached, figures):
    """Reach the next level along in-edges: each vertex not yet reached looks for one from the frontier.

    The work items are words of the bitmaps. Vertices without in-edges count as visited. Adds to ``figures`` the number
    of vertices reached and that of vertices left.
    """
    n = len(hops)
    words = len(visited)
    is_dense = False
    found = 0
    left = 0
    first, last = claim(work)
    while first < last:
        for word in range(first, last):
            # Prefetch rows one word ahead: here those that will be read, or below all if most of them will be.
            if word + 1 < words:
                todo = ~visited[word + 1]
                is_dense = popcount(todo) >= DENSE_BITS
                while not is_dense and todo != np.uint64(0):
                    prefetch(indices, indptr[(word + 1) * WORD_BITS + trailing_zeros(todo)])
                    todo &= todo - np.uint64(1)
            begin = word * WORD_BITS
            seen = visited[word]
            todo = ~seen
            new = np.uint64(0)
            while todo != np.uint64(0):
                v = begin + trailing_zeros(todo)
                todo &= todo - np.uint64(1)
                if is_dense:
                    prefetch(indices, indptr[min(v + WORD_BITS, n)])
                e = indptr[v]
                end = indptr[v + 1]
                if e == end:
                    seen |= bit(v)
                while e < end:
                    u = indices[e]
                    e += 1
                    if get_bit(frontier, u):
                        hops[v] = level
                        parents[v] = u
                        new |= bit(v)
                        e = end
            reached[word] = new
            seen |= new
            visited[word] = seen
            found += popcount(new)
            left += WORD_BITS - popcount(seen)
        first, last = claim(work)
    fetch_and_add(figures, 0, found)
    fetch_and_add(figures, 1, left)


@jit
def collect(work, frontier, queue, state):
    """Append the vertices of a bitmap to the queue; the work items are words."""
    buffer = np.empty(BUFFER, np.uint32)
    filled = 0
    first, last = claim(work)
    while first < last:
        for word in range(first, last):
            if filled + WORD_BITS > BUFFER:
                _flush(buffer, filled, queue, state)
                filled = 0
            bits = frontier[word]
            while bits != np.uint64(0):
                buffer[filled] = word * WORD_BITS + trailing_zeros(bits)
                filled += 1
                bits &= bits - np.uint64(1)
        first, last = claim(work)
    _flush(buffer, filled, queue, state)
