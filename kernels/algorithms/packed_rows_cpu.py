"""Kernels that count triangles in packed rows on the CPU.

Vertices are ranked by descending degree, and the row of rank r has its neighbours of smaller rank as words of a bitmap,
``words[i]`` at ``places[i]``. Neighbours of small rank are common, so that a word holds several of them,
and ``popcount`` counts the vertices common to two rows. Self-loops and repeated edges leave no trace in a bitmap.

In a directed graph a neighbour is the other end of an edge in either direction; ``back_indptr`` and ``back_indices``
are its CSC, None if the graph is undirected. ``mutual`` has the bits of the neighbours with edges in both directions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.kernels.library.atomics_cpu import fetch_and_add, prefetch
from gpu_pregel.kernels.library.bits_cpu import bit, popcount, trailing_zeros
from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.library.work_cpu import claim

BLOCK = 1 << 14
"""Words that a thread reserves at a time for the rows it packs."""
HUBS = 1 << 16
"""Ranks below it have a counter per thread, because threads would contend for them; 512 KiB per thread."""

_EMPTY, _ONE = np.uint64(0), np.uint64(1)


@inline
def _scatter(indptr, indices, ranks, u, r, bits, touched, count):
    """Set the bits of the neighbours of smaller rank; ``touched`` lists words by the time at which they became set."""
    for e in range(indptr[u], indptr[u + 1]):
        q = ranks[indices[e]]
        if q < r:
            place = q >> np.uint32(6)
            word = bits[place]
            if word == _EMPTY:
                touched[count] = place
                count += 1
            bits[place] = word | bit(q)
    return count


@jit
def pack_rows(
    work, indptr, indices, back_indptr, back_indices, ranks, order, reserved, starts, lengths, places, words, mutual
):
    """Pack the row of each rank: its ``lengths[r]`` words begin at ``starts[r]``, in no particular order."""
    size = (len(ranks) >> 6) + 1
    out = np.zeros(size, np.uint64)
    back = np.zeros(size if back_indptr is not None else 0, np.uint64)
    touched = np.empty(2 * size, np.uint32)
    free = np.int64(0)
    left = np.int64(0)
    first, last = claim(work)
    while first < last:
        for r in range(first, last):
            u = order[r]
            if r + 8 < last:
                prefetch(indptr, order[r + 8])
            if r + 4 < last:
                prefetch(indices, indptr[order[r + 4]])
            count = _scatter(indptr, indices, ranks, u, r, out, touched, 0)
            if back_indptr is not None:
                count = _scatter(back_indptr, back_indices, ranks, u, r, back, touched, count)
            if count > left:
                left = np.int64(max(BLOCK, count))
                free = fetch_and_add(reserved, 0, left)
            starts[r] = free
            for i in range(count):
                place = touched[i]
                word = out[place]
                if back_indptr is not None:
                    # A place touched in both directions is listed twice, and empty the second time.
                    if word | back[place] == _EMPTY:
                        continue
                    mutual[free] = word & back[place]
                    word |= back[place]
                    back[place] = _EMPTY
                places[free] = place
                words[free] = word
                out[place] = _EMPTY
                free += 1
            lengths[r] = free - starts[r]
            left -= lengths[r]
        first, last = claim(work)


@inline
def _unpack(begin, end, places, words, mutual, tallies, both, members):
    """Copy a packed row to the bitmaps in ``tallies`` and ``both``, and list its ranks; return how many they are."""
    count = 0
    for i in range(begin, end):
        word = words[i]
        place = places[i]
        tallies[np.int64(place) << 2] = word
        if mutual is not None:
            both[place] = mutual[i]
        while word != _EMPTY:
            members[count] = (np.int64(place) << 6) + trailing_zeros(word)
            count += 1
            word &= word - np.uint64(1)
    return count


@inline
def _add(own, shared, rank, number):
    """Add to the counter of a rank."""
    if rank < len(own):
        own[rank] += number
    else:
        fetch_and_add(shared, rank, number)


@inline
def _clear(begin, end, places, tallies, both, own, shared):
    """Add the tallies of a packed row to the counters of its ranks, and clear them."""
    for i in range(begin, end):
        slot = np.int64(places[i]) << 2
        ones = tallies[slot + 1]
        twos = tallies[slot + 2]
        fours = tallies[slot + 3]
        counted = ones | twos | fours
        while counted != _EMPTY:
            b = np.uint64(trailing_zeros(counted))
            counted &= counted - np.uint64(1)
            number = (ones >> b & _ONE) + (twos >> b & _ONE) * np.uint64(2) + (fours >> b & _ONE) * np.uint64(4)
            w = (np.int64(places[i]) << 6) + np.int64(b)
            if w < len(own):
                own[w] += np.int64(number)
            else:
                fetch_and_add(shared, w, np.int64(number))
        for p in range(4):
            tallies[slot + p] = _EMPTY
        if both is not None:
            both[places[i]] = _EMPTY


@jit
def count_packed(work, starts, lengths, places, words, mutual, longest, started, hubs, shared):
    """Count the edges among the neighbours of each rank, in ``hubs`` and ``shared``.

    The triangle of ranks u > v > w is found in the row of u, as a vertex common to u and v. An edge in both directions
    counts twice. Each thread has its own row of ``hubs``.

    ``tallies`` has four words per place: the row of u, and for each of its ranks w the number of triangles found, in
    binary, whose three digits lie in three words. So w is counted together with the others in its word.
    """
    size = (len(starts) >> 6) + 1
    tallies = np.zeros(4 * size, np.uint64)
    both: Any = np.zeros(size, np.uint64) if mutual is not None else None
    members = np.empty(longest, np.uint32)
    own = hubs[fetch_and_add(started, 0, 1)]
    first, last = claim(work)
    while first < last:
        for u in range(first, last):
            begin = starts[u]
            end = begin + lengths[u]
            count = _unpack(begin, end, places, words, mutual, tallies, both, members)
            at_u = np.int64(0)
            for j in range(count if count > 1 else 0):
                if j + 8 < count:
                    prefetch(starts, members[j + 8])
                    prefetch(lengths, members[j + 8])
                if j + 4 < count:
                    prefetch(words, starts[members[j + 4]])
                    prefetch(places, starts[members[j + 4]])
                    prefetch(words, starts[members[j + 4]] + 8)
                    prefetch(words, starts[members[j + 4]] + 16)
                    prefetch(places, starts[members[j + 4]] + 16)
                v = np.int64(members[j])
                at_v = np.int64(0)
                once = ~_EMPTY
                if mutual is not None and (both[v >> 6] & bit(v)) != _EMPTY:
                    once = _EMPTY
                for position in range(starts[v], starts[v] + lengths[v]):
                    i = np.uint64(position)  # unsigned indices save a branch
                    place = np.uint64(places[i])
                    slot = place << np.uint64(2)
                    common = tallies[slot] & words[i]
                    at_v += popcount(common)
                    ones = tallies[slot + _ONE]
                    twos = tallies[slot + np.uint64(2)]
                    fours = tallies[slot + np.uint64(3)]
                    if mutual is None:
                        tallies[slot + _ONE] = ones ^ common
                        carry = ones & common
                    else:
                        at_u += popcount(common) + popcount(common & mutual[i])
                        at_v += popcount(common & both[place])
                        tallies[slot + _ONE] = ones ^ (common & once)
                        carry = (ones & common & once) | (common & ~once)
                    tallies[slot + np.uint64(2)] = twos ^ carry
                    carry &= twos
                    tallies[slot + np.uint64(3)] = fours ^ carry
                    carry &= fours
                    while carry != _EMPTY:
                        w = (np.int64(place) << 6) + trailing_zeros(carry)
                        carry &= carry - _ONE
                        if w < len(own):
                            own[w] += 8
                        else:
                            fetch_and_add(shared, w, 8)
                if mutual is None:
                    at_u += at_v
                if at_v > 0:
                    _add(own, shared, v, at_v)
            if at_u > 0:
                _add(own, shared, u, at_u)
            _clear(begin, end, places, tallies, both, own, shared)
        first, last = claim(work)


@jit
def gather_counts(work, ranks, hubs, shared, counts):
    """Add up the counters of each vertex."""
    first, last = claim(work)
    while first < last:
        for v in range(first, last):
            r = ranks[v]
            total = shared[r]
            if r < hubs.shape[1]:
                for thread in range(hubs.shape[0]):
                    total += hubs[thread, r]
            counts[v] = total
        first, last = claim(work)
