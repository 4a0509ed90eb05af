"""Kernels of the minimum spanning forest on the CPU: collecting edges, and the rounds of Borůvka's algorithm.

Edges are ordered by weight, then by position in the CSR. If both fit into 64 bits, they are the key of an edge;
otherwise its key is its number in the arrays ``weights`` and ``positions``, which are empty if they are not needed.
``parents`` are trees of vertices, as in connected components: the root of a tree is its smallest vertex.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.kernels.library.atomics_cpu import compare_and_swap, fetch_and_add, load, prefetch, store
from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.library.work_cpu import CHUNK, claim

NONE = 0xFFFFFFFFFFFFFFFF
"""The key of no edge."""
BUFFER = 1 << 10
EDGES_AHEAD = 16
SHORT_ROW = 64


@inline
def _ordered(word, rule):
    """Return the bits of a weight as a number in the order of the weights.

    ``rule`` has the sign bit, what to combine negative and other weights with, and negative zero and zero, which are
    equal.
    """
    if word == rule[3]:
        word = rule[4]
    return word ^ (rule[1] if word & rule[0] != np.uint64(0) else rule[2])


@inline
def _after(indices, begin, end, u):
    """Return the position of the first neighbour larger than u in a sorted row."""
    while end - begin > SHORT_ROW:
        middle = (begin + end) >> 1
        if indices[middle] > u:
            end = middle
        else:
            begin = middle + 1
    # Counting is vectorised, and has no branch that depends on the row.
    smaller = np.uint32(0)
    for e in range(begin, end):
        smaller += np.uint32(indices[e] <= u)
    return begin + np.int64(smaller)


@inline
def _precedes(key, other, weights, positions):
    """Return whether the edge with a key comes before another one, which may be no edge."""
    if len(weights) == 0 or other == np.uint64(NONE):
        return key < other
    if weights[key] == weights[other]:
        return positions[key] < positions[other]
    return weights[key] < weights[other]


@inline
def _lower(best, v, key, weights, positions):
    """Set ``best[v]`` to ``key`` if that edge comes first."""
    known = load(best, v)
    while _precedes(key, known, weights, positions) and not compare_and_swap(best, v, known, key):
        known = load(best, v)


@jit
def collect_light(
    work, indptr, indices, words, rule, splitter, best, sources, targets, keys, weights, positions, count
):
    """Append the edges that are at most the splitter, a pair of a weight in order and the position of an edge.

    If weights and positions fit into keys, the smallest edge of each vertex is found at the same time.
    """
    packed = len(weights) == 0
    rule = (rule[0], rule[1], rule[2], rule[3], rule[4])
    limit = splitter[0]
    last_position = np.int64(splitter[1])
    u_kept = np.empty(BUFFER, np.uint32)
    v_kept = np.empty(BUFFER, np.uint32)
    key_kept = np.empty(BUFFER, np.uint64)
    e_kept = np.empty(BUFFER, np.int64)
    first, last = claim(work)
    while first < last:
        k = 0
        for u in range(first, last):
            end = indptr[u + 1]
            e = _after(indices, indptr[u], end, u)
            while e < end:
                # Which edges are light is unpredictable: the positions are kept without a branch.
                found: Any = k
                stop = min(end, e + BUFFER - k)
                for position in range(e, stop):
                    word = _ordered(np.uint64(words[position]), rule)
                    e_kept[found] = position
                    found += (word < limit) | ((word == limit) & (position <= last_position))
                e = stop
                for i in range(k, found):
                    word = _ordered(np.uint64(words[e_kept[i]]), rule)
                    u_kept[i] = u
                    v_kept[i] = indices[e_kept[i]]
                    key_kept[i] = word << np.uint64(32) | np.uint64(e_kept[i]) if packed else word
                    if packed:
                        _lower(best, u_kept[i], key_kept[i], weights, positions)
                        _lower(best, v_kept[i], key_kept[i], weights, positions)
                k = found
                if k == BUFFER:
                    _append(sources, targets, keys, weights, positions, count, u_kept, v_kept, key_kept, e_kept, k)
                    k = 0
        _append(sources, targets, keys, weights, positions, count, u_kept, v_kept, key_kept, e_kept, k)
        first, last = claim(work)


@jit
def collect_between(
    work, indptr, indices, words, rule, parents, inside, best, sources, targets, keys, weights, positions, count
):
    """Append the edges between different trees, which are flat, and find the smallest ones like ``collect_light``.

    ``inside`` says which vertices are in a tree that has most of them: these flags stay in the cache.
    """
    packed = len(weights) == 0
    rule = (rule[0], rule[1], rule[2], rule[3], rule[4])
    u_kept = np.empty(BUFFER, np.uint32)
    v_kept = np.empty(BUFFER, np.uint32)
    key_kept = np.empty(BUFFER, np.uint64)
    e_kept = np.empty(BUFFER, np.int64)
    first, last = claim(work)
    while first < last:
        k = 0
        for u in range(first, last):
            p = parents[u]
            skipped = inside[u]
            end = indptr[u + 1]
            for e in range(_after(indices, indptr[u], end, u), end):
                if skipped & inside[indices[e]]:
                    continue
                q = parents[indices[e]]
                if p != q:
                    word = _ordered(np.uint64(words[e]), rule)
                    u_kept[k] = p
                    v_kept[k] = q
                    key_kept[k] = word << np.uint64(32) | np.uint64(e) if packed else word
                    e_kept[k] = e
                    if packed:
                        _lower(best, p, key_kept[k], weights, positions)
                        _lower(best, q, key_kept[k], weights, positions)
                    k += 1
                    if k == BUFFER:
                        _append(sources, targets, keys, weights, positions, count, u_kept, v_kept, key_kept, e_kept, k)
                        k = 0
        _append(sources, targets, keys, weights, positions, count, u_kept, v_kept, key_kept, e_kept, k)
        first, last = claim(work)


@inline
def _append(sources, targets, keys, weights, positions, count, u_kept, v_kept, key_kept, e_kept, k):
    begin = fetch_and_add(count, 0, k)
    for i in range(k):
        sources[begin + i] = u_kept[i]
        targets[begin + i] = v_kept[i]
        if len(weights) == 0:
            keys[begin + i] = key_kept[i]
        else:
            keys[begin + i] = begin + i
            weights[begin + i] = key_kept[i]
            positions[begin + i] = e_kept[i]


@inline
def _root(parents, v):
    """Return the root of v; shorten the path to it."""
    parent = load(parents, v)
    while parent != v:
        grandparent = load(parents, parent)
        if grandparent != parent:
            store(parents, v, grandparent)
        v = parent
        parent = grandparent
    return v


@jit
def propose(
    work, sources, targets, keys, weights, positions, parents, best, next_sources, next_targets, next_keys, count
):
    """Find the smallest edge that leaves each tree; copy the edges between different trees, as edges between roots."""
    u_kept = np.empty(work[CHUNK], np.uint32)
    v_kept = np.empty(work[CHUNK], np.uint32)
    key_kept = np.empty(work[CHUNK], np.uint64)
    first, last = claim(work)
    while first < last:
        k = 0
        for i in range(first, last):
            if i + EDGES_AHEAD < last:
                prefetch(parents, sources[i + EDGES_AHEAD])
                prefetch(parents, targets[i + EDGES_AHEAD])
                prefetch(best, sources[i + EDGES_AHEAD])
                prefetch(best, targets[i + EDGES_AHEAD])
            p = _root(parents, sources[i])
            q = _root(parents, targets[i])
            if p != q:
                key = keys[i]
                u_kept[k] = p
                v_kept[k] = q
                key_kept[k] = key
                _lower(best, p, key, weights, positions)
                _lower(best, q, key, weights, positions)
                k += 1
        begin = fetch_and_add(count, 0, k)
        for i in range(k):
            next_sources[begin + i] = u_kept[i]
            next_targets[begin + i] = v_kept[i]
            next_keys[begin + i] = key_kept[i]
        first, last = claim(work)


@jit
def join(work, sources, targets, keys, best, other, parents, chosen, count):
    """Join the trees of each edge that is the smallest one of one of them, and append its key to ``chosen``.

    ``other`` is prepared for the next round.
    """
    key_kept = np.empty(work[CHUNK], np.uint64)
    first, last = claim(work)
    while first < last:
        k = 0
        for i in range(first, last):
            if i + EDGES_AHEAD < last:
                prefetch(best, sources[i + EDGES_AHEAD])
                prefetch(best, targets[i + EDGES_AHEAD])
                prefetch(other, sources[i + EDGES_AHEAD])
                prefetch(other, targets[i + EDGES_AHEAD])
            p = sources[i]
            q = targets[i]
            key = keys[i]
            other[p] = np.uint64(NONE)
            other[q] = np.uint64(NONE)
            if best[p] == key or best[q] == key:
                key_kept[k] = key
                k += 1
                p = _root(parents, p)
                q = _root(parents, q)
                while not compare_and_swap(parents, max(p, q), max(p, q), min(p, q)):
                    p = _root(parents, p)
                    q = _root(parents, q)
        begin = fetch_and_add(count, 0, k)
        for i in range(k):
            chosen[begin + i] = key_kept[i]
        first, last = claim(work)


@jit
def flatten(work, parents, best, other):
    """Make every parent a root, and forget the smallest edges."""
    first, last = claim(work)
    while first < last:
        for v in range(first, last):
            store(parents, v, _root(parents, np.uint32(v)))
            best[v] = np.uint64(NONE)
            other[v] = np.uint64(NONE)
        first, last = claim(work)


@jit
def locate(work, indptr, indices, positions, sources, targets):
    """Write the ends of the edges at ascending ``positions`` in the CSR."""
    first, last = claim(work)
    while first < last:
        # The row of the first edge: the last one that begins at or before it.
        u = 0
        end = len(indptr)
        while end - u > 1:
            middle = (u + end) >> 1
            if indptr[middle] <= positions[first]:
                u = middle
            else:
                end = middle
        for i in range(first, last):
            e = positions[i]
            while indptr[u + 1] <= e:
                u += 1
            sources[i] = u
            targets[i] = indices[e]
        first, last = claim(work)
