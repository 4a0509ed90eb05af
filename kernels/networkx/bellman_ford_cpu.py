"""The Bellman-Ford algorithm with a queue, as NetworkX runs it, on one thread.

Rows are in the order of NetworkX's dicts and without parallel edges. The predecessors of a vertex are a linked list of
entries, from ``heads`` to ``tails``; entries of lists that were emptied are used again.
"""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.library.jit_cpu import jit

NO_CYCLE, FULL = -1, -2
"""No negative cycle has been found; there are too few entries."""
COUNT, FREE, USED = 0, 1, 2
"""In ``state``: the number of vertices found, the first free entry or -1, and the number of entries ever used."""


@jit
def bellman_ford(
    indptr,
    neighbors,
    weights,
    heuristic,
    sources,
    distances,
    order,
    heads,
    tails,
    vertices,
    links,
    queue,
    queued,
    times,
    parents,
    recent,
    state,
):
    """Relax edges until no path gets shorter; return NO_CYCLE, or a vertex that a negative cycle was noticed at.

    Where ``heuristic``, a vertex that leads to its own update shows a negative cycle early. ``order`` gets the vertices
    in the order in which they are found. Before the first search ``distances`` are infinite, ``heads``, ``parents`` and
    ``recent``, int64[n, 2], are -1, ``queued``, ``times`` and ``state`` are 0; a later one resets what the last one
    found. ``queue`` is int64[n + 1].
    """
    n = len(distances)
    for v in order[: state[COUNT]]:
        distances[v] = np.inf
        heads[v] = -1
        queued[v] = False
        times[v] = 0
        parents[v] = -1
        # The edge that began the series of updates that reached the vertex.
        recent[v, 0] = -1
        recent[v, 1] = -1
    state[COUNT], state[FREE], state[USED] = 0, -1, 0
    begin = 0
    size = 0
    for source in sources:
        distances[source] = 0.0
        order[state[COUNT]] = source
        state[COUNT] += 1
        queue[size] = source
        size += 1
        queued[source] = True
    while size > 0:
        u = queue[begin]
        begin = (begin + 1) % (n + 1)
        size -= 1
        queued[u] = False
        waiting = False
        entry = heads[u]
        while entry >= 0 and not waiting:
            waiting = queued[vertices[entry]]
            entry = links[entry]
        if waiting:
            continue
        distance = distances[u]
        for e in range(indptr[u], indptr[u + 1]):
            v = np.int64(neighbors[e])
            length = distance + weights[e]
            shorter = length < distances[v]
            if not shorter and not (length == distances[v] and distances[v] < np.inf):
                continue
            cycle = False
            if shorter and heuristic:
                cycle = recent[u, 0] == v or recent[u, 1] == v
                if not cycle and parents[v] == u:
                    recent[v, 0] = recent[u, 0]
                    recent[v, 1] = recent[u, 1]
                elif not cycle:
                    recent[v, 0] = u
                    recent[v, 1] = v
            if shorter and not cycle:
                if not queued[v]:
                    times[v] += 1
                    if times[v] == n:
                        return v
                    queue[(begin + size) % (n + 1)] = v
                    size += 1
                    queued[v] = True
                if distances[v] == np.inf:
                    order[state[COUNT]] = v
                    state[COUNT] += 1
                distances[v] = length
                parents[v] = u
                if heads[v] >= 0:
                    links[tails[v]] = state[FREE]
                    state[FREE] = heads[v]
                    heads[v] = -1
            if state[FREE] >= 0:
                new = state[FREE]
                state[FREE] = links[new]
            elif state[USED] < len(vertices):
                new = state[USED]
                state[USED] += 1
            else:
                return FULL
            vertices[new] = u
            links[new] = -1
            if heads[v] < 0:
                heads[v] = new
            else:
                links[tails[v]] = new
            tails[v] = new
            if cycle:
                return v
    return NO_CYCLE


@jit
def place_parents(order, roots, heads, vertices, places, parents):
    """Get the place in ``order`` of the first predecessor of each vertex; return whether all of them are earlier.

    The first ``roots`` vertices are their own. ``places``, int64[n], is scratch memory.
    """
    for i in range(len(order)):
        places[order[i]] = i
    is_sorted = True
    for i in range(len(order)):
        parents[i] = i if i < roots else places[vertices[heads[order[i]]]]
        is_sorted &= i < roots or parents[i] < i
    return is_sorted


@jit
def copy_lists(order, heads, vertices, links, starts, members):
    """Copy the lists of the vertices of ``order``, in this order, to ``members`` from ``starts`` on."""
    count = 0
    for i in range(len(order)):
        starts[i] = count
        entry = heads[order[i]]
        while entry >= 0:
            members[count] = vertices[entry]
            count += 1
            entry = links[entry]
    starts[len(order)] = count
