"""Dijkstra's algorithm as NetworkX runs it: of equal distances, the one that was found first is settled first.

Rows are in the order of NetworkX's dicts and without parallel edges. The heap holds a pair of a distance and a ticket,
which numbers the entries in the order in which they are pushed; ``owners`` has the vertex of each ticket.
"""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.library.work_cpu import claim
from gpu_pregel.kernels.networkx.rows_cpu import add_up, shift

UNSEEN, SEEN, SETTLED = 0, 1, 2
CONTRADICTION = -1
"""Returned where a settled vertex has a shorter path, by an edge of negative weight."""


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
