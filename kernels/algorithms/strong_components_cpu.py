"""Kernels of strongly connected components on the CPU: reachability, trimming, and a serial search for the rest.

``states[v]`` is DONE if the component of v is known; otherwise it has the bits FORWARD and BACKWARD if v can be reached
from the pivot or reaches it. Vertices of one component have the same bits, so that other edges can be ignored.
"""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.library.atomics_cpu import compare_and_swap, fetch_and_add, fetch_and_or, load, prefetch, store
from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.library.work_cpu import CHUNK, claim

FORWARD, BACKWARD, PIVOT, DONE = 1, 2, 3, 4
"""PIVOT: both bits, the component of the pivot."""
QUEUE_AHEAD = 4
ROWS_AHEAD = 32


@jit
def initialise(work, indptr, in_indptr, states, labels, pivot):
    """Make vertices without out-edges or without in-edges components; find the vertex whose smaller degree is largest.

    ``pivot[0]`` has that degree in its upper half, the vertex in its lower one.
    """
    first, last = claim(work)
    while first < last:
        best = np.int64(0)
        for v in range(first, last):
            degree = min(indptr[v + 1] - indptr[v], in_indptr[v + 1] - in_indptr[v])
            labels[v] = v
            states[v] = 0 if degree > 0 else DONE
            best = max(best, np.int64(min(degree, 0x7FFFFFFF) << 32 | v))
        known = load(pivot, 0)
        while best > known and not compare_and_swap(pivot, 0, known, best):
            known = load(pivot, 0)
        first, last = claim(work)


@inline
def _mark(indptr, indices, word, states, queue, tail, u):
    """Mark the unmarked neighbours of u and append them to a queue of this thread; return its new tail."""
    for e in range(indptr[u], indptr[u + 1]):
        v = indices[e]
        if load(states, v) & (word | np.uint8(DONE)) == 0:
            fetch_and_or(states, v, word)
            queue[tail] = v
            tail += 1
    return tail


@jit
def push_narrow(work, indptr, indices, in_indptr, in_indices, narrow, states, queues, ends):
    """Search forwards and backwards from the vertices in ``queues``, each on one thread, while levels are narrow.

    The work items are the two directions. ``ends`` has the next position to process and the tail of each queue.
    """
    side, last = claim(work)
    while side < last:
        queue = queues[side]
        position = ends[side, 0]
        tail = ends[side, 1]
        while 0 < tail - position <= narrow:
            stop = tail
            while position < stop:
                u = np.int64(queue[position])
                ahead = queue[min(position + QUEUE_AHEAD, tail - 1)]
                if side == 0:
                    prefetch(indices, indptr[ahead])
                    tail = _mark(indptr, indices, np.uint8(FORWARD), states, queue, tail, u)
                else:
                    prefetch(in_indices, in_indptr[ahead])
                    tail = _mark(in_indptr, in_indices, np.uint8(BACKWARD), states, queue, tail, u)
                position += 1
        ends[side, 0] = position
        ends[side, 1] = tail
        side, last = claim(work)


@jit
def push(work, indptr, indices, bit, level, states, queue, tail):
    """Mark the neighbours of the vertices in ``level``, and append them to ``queue`` at ``tail[0]``."""
    word = np.uint8(bit)
    first, last = claim(work)
    while first < last:
        for position in range(first, last):
            u = np.int64(level[position])
            prefetch(indices, indptr[level[min(position + QUEUE_AHEAD, last - 1)]])
            for e in range(indptr[u], indptr[u + 1]):
                v = indices[e]
                if load(states, v) & (word | np.uint8(DONE)) == 0 and fetch_and_or(states, v, word) & word == 0:
                    queue[fetch_and_add(tail, 0, 1)] = v
        first, last = claim(work)


@inline
def _append(queue, tail, found, k):
    begin = fetch_and_add(tail, 0, k)
    for i in range(k):
        queue[begin + i] = found[i]


@jit
def pull(work, indptr, indices, bit, states, queue, tail):
    """Mark each unmarked vertex with a marked neighbour in its row, and append it to ``queue``."""
    word = np.uint8(bit)
    n = len(states)
    found = np.empty(work[CHUNK], np.uint32)
    first, last = claim(work)
    while first < last:
        k = 0
        for v in range(first, last):
            prefetch(indices, indptr[min(v + ROWS_AHEAD, n)])
            if load(states, v) & (word | np.uint8(DONE)) == 0:
                for e in range(indptr[v], indptr[v + 1]):
                    if load(states, indices[e]) & word != 0:
                        store(states, v, states[v] | word)
                        found[k] = v
                        k += 1
                        break
        _append(queue, tail, found, k)
        first, last = claim(work)


@inline
def _has_peer(indptr, indices, states, v, mine):
    """Return whether v has a neighbour with the same state."""
    for e in range(indptr[v], indptr[v + 1]):
        if load(states, indices[e]) == mine and indices[e] != v:
            return True
    return False


@jit
def trim(work, indptr, indices, in_indptr, in_indices, smallest, states, labels, rest, tail):
    """Label the component of the pivot, and make every vertex without a peer before or after it a component.

    A peer is a neighbour with the same bits. The other vertices are appended to ``rest``.
    """
    found = np.empty(work[CHUNK], np.uint32)
    first, last = claim(work)
    while first < last:
        k = 0
        for v in range(first, last):
            mine = load(states, v)
            if mine == PIVOT:
                labels[v] = smallest
            elif mine != DONE:
                if _has_peer(indptr, indices, states, v, mine) and _has_peer(in_indptr, in_indices, states, v, mine):
                    found[k] = v
                    k += 1
                else:
                    store(states, v, DONE)
        _append(rest, tail, found, k)
        first, last = claim(work)


@jit
def search(work, indptr, indices, roots, states, labels, low):
    """Find the components of the vertices in ``roots`` by Tarjan's algorithm; has one work item.

    ``low`` is 0 for each of these vertices at first, and later the smallest number of a vertex that it is known to
    reach. Vertices are numbered from 1 as they are found.
    """
    first, last = claim(work)
    if first == last:
        return
    stack = np.empty(len(roots), np.uint32)
    calls = np.empty(len(roots), np.uint32)
    numbers = np.empty(len(roots), np.uint32)
    edges = np.empty(len(roots), np.int64)
    found = 0
    height = 0
    for root in roots:
        if low[root] != 0:
            continue
        child = np.int64(root)
        depth = 0
        while child >= 0 or depth > 0:
            if child >= 0:
                found += 1
                low[child] = found
                stack[height] = child
                height += 1
                calls[depth] = child
                numbers[depth] = found
                edges[depth] = indptr[child]
                depth += 1
            v = np.int64(calls[depth - 1])
            mine = states[v]
            lowest = low[v]
            end = indptr[v + 1]
            e = edges[depth - 1]
            child = np.int64(-1)
            while e < end and child < 0:
                w = np.int64(indices[e])
                e += 1
                if states[w] == mine:
                    if low[w] == 0:
                        child = w
                    else:
                        lowest = min(lowest, low[w])
            low[v] = lowest
            edges[depth - 1] = e
            if child >= 0:
                continue
            depth -= 1
            if depth > 0:
                u = calls[depth - 1]
                low[u] = min(low[u], lowest)
            if lowest == numbers[depth]:
                # The component of v is at the top of the stack.
                bottom = height - 1
                smallest = stack[bottom]
                while stack[bottom] != v:
                    bottom -= 1
                    smallest = min(smallest, stack[bottom])
                for i in range(bottom, height):
                    labels[stack[i]] = smallest
                    states[stack[i]] = DONE
                height = bottom
