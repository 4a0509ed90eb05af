"""Dijkstra's algorithm for small integer weights, with a bucket of vertices for each distance (Dial, 1969).

A bucket lists vertices as they are found, so that the order is that of ``dijkstra_cpu``. The buckets are a ring: the
distances that are open at a time differ by at most the largest weight. A bitmap tells which buckets have vertices.
"""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.library.bits_cpu import WORD_BITS, trailing_zeros
from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.networkx.dijkstra_cpu import SEEN, SETTLED, UNSEEN


@inline
def _next_bucket(filled, bucket):
    """Return the first filled bucket from ``bucket`` on, around the ring; there is one."""
    word = bucket // WORD_BITS
    bits = filled[word] >> np.uint64(bucket % WORD_BITS)
    if bits != np.uint64(0):
        return bucket + trailing_zeros(bits)
    while True:
        word += 1
        if word == len(filled):
            word = 0
        if filled[word] != np.uint64(0):
            return word * WORD_BITS + trailing_zeros(filled[word])


@jit
def bucket_dijkstra(
    indptr,
    neighbors,
    weights,
    cutoff,
    target,
    sources,
    rings,
    filled,
    entries,
    owners,
    states,
    distances,
    parents,
    order,
):
    """Search from several vertices; return how many are settled, in ``order``.

    The arguments are those of ``dijkstra``, but weights are integers from 0 and below the number of buckets, a power of
    two. ``rings``, int64[2, buckets], gets the first and the last entry of each bucket, ``entries``, int64, the entry
    after each, and ``filled``, uint64[buckets / 64], is the bitmap.
    """
    filled[:] = np.uint64(0)
    mask = rings.shape[1] - 1
    ticket = 0
    count = 0
    distance = 0
    for source in sources:
        distances[source] = 0.0
        parents[source] = -1
        states[source] = SEEN
        owners[ticket] = source
        entries[ticket] = ticket + 1
        ticket += 1
    waiting = ticket
    rings[0, 0] = 0
    rings[1, 0] = ticket - 1
    filled[0] = np.uint64(1)
    while waiting > 0:
        bucket = distance & mask
        found = _next_bucket(filled, bucket)
        distance += (found - bucket) & mask
        entry = rings[0, found]
        if entry == rings[1, found]:
            filled[found // WORD_BITS] ^= np.uint64(1) << np.uint64(found % WORD_BITS)
        else:
            rings[0, found] = entries[entry]
        waiting -= 1
        u = owners[entry]
        if states[u] == SETTLED:
            continue
        states[u] = SETTLED
        order[count] = u
        count += 1
        if u == target:
            break
        for e in range(indptr[u], indptr[u + 1]):
            v = neighbors[e]
            length = distance + weights[e]
            if (states[v] == UNSEEN or length < distances[v]) and length <= cutoff:
                states[v] = SEEN
                distances[v] = length
                parents[v] = u
                owners[ticket] = v
                place = np.int64(length) & mask
                bit = np.uint64(1) << np.uint64(place % WORD_BITS)
                if filled[place // WORD_BITS] & bit:
                    entries[rings[1, place]] = ticket
                else:
                    filled[place // WORD_BITS] |= bit
                    rings[0, place] = ticket
                rings[1, place] = ticket
                ticket += 1
                waiting += 1
    return count
