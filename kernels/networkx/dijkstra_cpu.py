"""Dijkstra's algorithm as NetworkX runs it: of equal distances, the one that was found first is settled first.

Rows are in the order of NetworkX's dicts and without parallel edges. The heap holds a pair of a distance and a ticket,
which numbers the entries in the order in which they are pushed; ``owners`` has the vertex of each ticket.
"""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.library.bits_cpu import WORD_BITS, trailing_zeros
from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.library.work_cpu import claim
from gpu_pregel.kernels.networkx.rows_cpu import add_up, shift

UNSEEN, SEEN, SETTLED = 0, 1, 2
CONTRADICTION = -1
"""Returned where a settled vertex has a shorter path, by an edge of negative weight."""
UNCONNECTED = -2
"""Returned by a search from both ends that do not meet."""


@inline
def push(keys, tickets, size, key, ticket):
    """Add an entry to the heap, which had ``size``."""
    place = size
    while place > 0:
        above = (place - 1) >> 1
        # A new ticket is larger than all others.
        if keys[above] <= key:
            break
        keys[place] = keys[above]
        tickets[place] = tickets[above]
        place = above
    keys[place] = key
    tickets[place] = ticket


@inline
def pop(keys, tickets, size):
    """Drop the first entry of the heap; its new size is ``size``."""
    key = keys[size]
    ticket = tickets[size]
    place = 0
    while True:
        below = 2 * place + 1
        if below >= size:
            break
        other = below + 1
        if other < size and (
            keys[other] < keys[below] or (keys[other] == keys[below] and tickets[other] < tickets[below])
        ):
            below = other
        if key < keys[below] or (key == keys[below] and ticket < tickets[below]):
            break
        keys[place] = keys[below]
        tickets[place] = tickets[below]
        place = below
    keys[place] = key
    tickets[place] = ticket


@inline
def _search(
    indptr, neighbors, weights, cutoff, target, sources, keys, tickets, owners, states, distances, parents, order
):
    """Search until the target is settled; return how many vertices are, in ``order``.

    The caller has set ``states`` to UNSEEN; ``distances`` of vertices that are not found are left as they are.
    ``owners`` gets the vertices in the order in which they are found, each time that they are.
    """
    size = 0
    ticket = 0
    count = 0
    for source in sources:
        distances[source] = 0.0
        parents[source] = -1
        states[source] = SEEN
        owners[ticket] = source
        push(keys, tickets, size, 0.0, ticket)
        size += 1
        ticket += 1
    while size > 0:
        distance = keys[0]
        u = owners[tickets[0]]
        size -= 1
        pop(keys, tickets, size)
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
            if length > cutoff:
                continue
            if states[v] == UNSEEN or length < distances[v]:
                if states[v] == SETTLED:
                    return CONTRADICTION
                states[v] = SEEN
                distances[v] = length
                parents[v] = u
                owners[ticket] = v
                push(keys, tickets, size, length, ticket)
                size += 1
                ticket += 1
    return count


@jit
def dijkstra(
    indptr, neighbors, weights, cutoff, target, sources, keys, tickets, owners, states, distances, parents, order
):
    """Search from several vertices; return how many are settled, or CONTRADICTION.

    ``keys``, ``tickets`` and ``owners`` have room for all edges and sources. ``target`` is -1 for none. The caller has
    set ``states`` to UNSEEN; those of ``order`` are SETTLED then, and without a target no others have changed.
    """
    return _search(
        *(indptr, neighbors, weights, cutoff, target, sources),
        *(keys, tickets, owners, states, distances, parents, order),
    )


@jit
def collect_weighted_predecessors(
    indptr, neighbors, weights, cutoff, order, states, distances, found, places, starts, predecessors
):
    """List all predecessors on shortest paths, in the order in which NetworkX finds them.

    ``found``, uint32, gets the vertices of ``order`` in the order in which they are seen first. ``starts``, int64[found
    + 1] of zeros, and ``predecessors``, uint32[m], get a row for each of them. ``places``, int64[n], is scratch memory.
    """
    source = order[0]
    for u in order:
        states[u] = UNSEEN
    states[source] = SEEN
    found[0], places[source] = source, 0
    count = 1
    for writing in range(2):
        for u in order:
            for e in range(indptr[u], indptr[u + 1]):
                v = neighbors[e]
                length = distances[u] + weights[e]
                if length > cutoff:
                    continue
                if states[v] == UNSEEN:
                    states[v] = SEEN
                    found[count], places[v] = v, count
                    count += 1
                # A shorter path empties the list, so that only edges of the shortest ones remain.
                if length == distances[v]:
                    if writing:
                        predecessors[starts[places[v]]] = u
                    starts[places[v]] += 1
        if not writing:
            add_up(starts)
    shift(starts)


@jit
def mark_floats(indptr, neighbors, floats, order, parents, found):
    """Set ``found``, bool[n], for the vertices of ``order``: whether there is a float on the path to each.

    ``floats``, bool[m], says which weights are, and ``parents``, int64[n], has -1 for sources.
    """
    for u in order:
        if parents[u] < 0:
            found[u] = False
        for e in range(indptr[u], indptr[u + 1]):
            v = neighbors[e]
            if parents[v] == u:
                found[v] = found[u] or floats[e]


@jit
def weighted_figures(work, indptr, neighbors, weights, figures):
    """Search from each vertex; a work item is one of them.

    ``figures``, float64[n, 5], gets the number of vertices reached, or CONTRADICTION; the sums of their distances, of
    the squares and of the inverses of those that are not 0; and the largest distance.
    """
    n = len(indptr) - 1
    m = len(neighbors)
    first, last = claim(work)
    if first < last:
        keys = np.empty(m + 1, np.float64)
        tickets = np.empty(m + 1, np.int64)
        owners = np.empty(m + 1, np.uint32)
        states = np.empty(n, np.uint8)
        distances = np.empty(n, np.float64)
        parents = np.empty(n, np.int64)
        order = np.empty(n, np.uint32)
        sources = np.empty(1, np.int64)
        states[:] = UNSEEN
    while first < last:
        for source in range(first, last):
            sources[0] = source
            count = _search(
                *(indptr, neighbors, weights, np.inf, -1, sources),
                *(keys, tickets, owners, states, distances, parents, order),
            )
            figures[source, 0] = count
            if count == CONTRADICTION:
                states[:] = UNSEEN
            for i in range(count):
                states[order[i]] = UNSEEN
                distance = distances[order[i]]
                figures[source, 1] += distance
                figures[source, 2] += distance * distance
                if distance != 0.0:
                    figures[source, 3] += 1.0 / distance
                figures[source, 4] = max(figures[source, 4], distance)
        first, last = claim(work)


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
    """Search by small integer weights, with a bucket of vertices for each distance (Dial, 1969); see ``dijkstra``.

    A bucket lists vertices as they are found, so that the order is the same. The buckets are a ring: the distances that
    are open at a time differ by at most the largest weight. The arguments are those of ``dijkstra``, but weights are
    integers from 0 and below the number of buckets, a power of two. ``rings``, int64[2, buckets], gets the first and
    the last entry of each bucket, ``entries``, int64, the entry after each, and ``filled``, uint64[buckets / 64], is
    the bitmap of those that have vertices.
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


@jit
def dijkstra_from_each(
    indptr,
    neighbors,
    weights,
    floats,
    cutoff,
    first,
    limit,
    keys,
    tickets,
    owners,
    rings,
    filled,
    states,
    distances,
    parents,
    marks,
    spots,
    order,
    lengths,
    places,
    kinds,
    ends,
):
    """Search from each vertex from ``first`` on until ``limit`` are settled in all; return how many searches that took.

    A search that contradicts itself, by an edge of negative weight, ends the last search before it; it returns 0 if
    that is the first one.

    Parameters
    ----------
    floats : bool[m]
        Which weights are floats if others are not; empty if all are of one type.
    keys, tickets, owners : float64[m + 1], int64[m + 1], uint32[m + 1]
        Scratch memory for the heap of ``dijkstra``; without keys, for that of ``bucket_dijkstra``.
    rings, filled : int64[2, buckets], uint64[buckets / 64]
        That of ``bucket_dijkstra``; empty if it is not to be used.
    states : uint8[n]
        UNSEEN, which it is again afterwards.
    distances, parents, marks, spots : float64[n], int64[n], bool[n], int64[n]
        Scratch memory.
    order : uint32[limit + n]
        Gets the vertices as they are settled, search after search.
    lengths, kinds : float64[limit + n], bool[limit + n]
        Get the distance of each, and with ``floats`` whether a float is among the weights of its path.
    places : int64[limit + n]
        Gets the place in its search of the vertex from which each was found; 0 for the sources.
    ends : int64[n]
        Gets the end of each search in ``order``.
    """
    n = len(states)
    sources = np.empty(1, np.int64)
    total = 0
    last = first
    while last < n and (total < limit or last == first):
        sources[0] = last
        settled = order[total : total + n]
        if len(filled) > 0:
            count = bucket_dijkstra(
                *(indptr, neighbors, weights, cutoff, -1, sources, rings, filled, tickets),
                *(owners, states, distances, parents, settled),
            )
        else:
            count = dijkstra(
                *(indptr, neighbors, weights, cutoff, -1, sources, keys, tickets),
                *(owners, states, distances, parents, settled),
            )
        if count == CONTRADICTION:
            states[:] = UNSEEN
            break
        if len(floats) > 0:
            mark_floats(indptr, neighbors, floats, settled[:count], parents, marks)
        for i in range(count):
            v = settled[i]
            states[v] = UNSEEN
            spots[v] = i
            lengths[total + i] = distances[v]
            places[total + i] = spots[parents[v]] if i > 0 else 0
            if len(floats) > 0:
                kinds[total + i] = marks[v]
        total += count
        ends[last - first] = total
        last += 1
    return last - first


@jit
def meet_weighted(edges, in_edges, source, target, states, distances, parents):
    """Search from both ends in turn; return the vertex where the shortest path meets, and the path's length.

    Instead of the vertex it returns CONTRADICTION or UNCONNECTED. ``states`` is uint8[2, n] of UNSEEN, ``distances``
    float64[2, n] and ``parents`` int64[2, n].
    """
    capacity = len(edges[1]) + 1
    keys = np.empty((2, capacity), np.float64)
    tickets = np.empty((2, capacity), np.int64)
    owners = np.empty((2, capacity), np.uint32)
    sizes = np.ones(2, np.int64)
    used = np.ones(2, np.int64)
    for side in range(2):
        end = source if side == 0 else target
        states[side, end] = SEEN
        distances[side, end] = 0.0
        parents[side, end] = -1
        keys[side, 0] = 0.0
        tickets[side, 0] = 0
        owners[side, 0] = end
    best = np.inf
    meeting = np.int64(-1)
    side = 1
    while sizes[0] > 0 and sizes[1] > 0:
        side = 1 - side
        distance = keys[side, 0]
        u = owners[side, tickets[side, 0]]
        sizes[side] -= 1
        pop(keys[side], tickets[side], sizes[side])
        if states[side, u] == SETTLED:
            continue
        states[side, u] = SETTLED
        if states[1 - side, u] == SETTLED:
            return meeting, best
        indptr, neighbors, weights = edges if side == 0 else in_edges
        for e in range(indptr[u], indptr[u + 1]):
            v = neighbors[e]
            length = distance + weights[e]
            if states[side, v] == SETTLED:
                if length < distances[side, v]:
                    return CONTRADICTION, best
            elif states[side, v] == UNSEEN or length < distances[side, v]:
                states[side, v] = SEEN
                distances[side, v] = length
                parents[side, v] = u
                ticket = used[side]
                owners[side, ticket] = v
                push(keys[side], tickets[side], sizes[side], length, ticket)
                sizes[side] += 1
                used[side] += 1
                if states[1 - side, v] != UNSEEN:
                    total = length + distances[1 - side, v]
                    if meeting < 0 or total < best:
                        best = total
                        meeting = v
    return UNCONNECTED, best
