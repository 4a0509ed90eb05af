"""Orders of directed acyclic graphs, longest paths and dominators, on one thread in the order of NetworkX."""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.library.jit_cpu import jit


@jit
def sort_topologically(indptr, neighbors, waiting, order, levels):
    """Sort vertices by Kahn's algorithm; return how many are on no cycle and behind none.

    ``waiting`` has the in-degrees at first; ``order`` gets the vertices, level by level, and ``levels`` their levels.
    """
    n = len(waiting)
    size = 0
    for v in range(n):
        if waiting[v] == 0:
            order[size] = v
            levels[v] = 0
            size += 1
    head = 0
    while head < size:
        u = order[head]
        head += 1
        for e in range(indptr[u], indptr[u + 1]):
            v = neighbors[e]
            waiting[v] -= 1
            if waiting[v] == 0:
                order[size] = v
                levels[v] = levels[u] + 1
                size += 1
    return size


@jit
def sort_by_rank(indptr, neighbors, waiting, ranks, vertices, order):
    """Sort vertices topologically, the one of the smallest rank first of those that can be next; return their number.

    ``waiting`` has the in-degrees at first; ``vertices`` is the inverse of the permutation ``ranks``.
    """
    n = len(waiting)
    heap = np.empty(n, np.int64)
    held = size = 0
    # Ascending ranks are a heap already.
    for rank in range(n):
        if waiting[vertices[rank]] == 0:
            heap[held] = rank
            held += 1
    while held > 0:
        u = vertices[heap[0]]
        order[size] = u
        size += 1
        held -= 1
        last = heap[held]
        place = 0
        child = 1
        while child < held:
            if child + 1 < held and heap[child + 1] < heap[child]:
                child += 1
            if heap[child] >= last:
                break
            heap[place] = heap[child]
            place = child
            child = 2 * place + 1
        heap[place] = last
        for e in range(indptr[u], indptr[u + 1]):
            v = neighbors[e]
            waiting[v] -= 1
            if waiting[v] > 0:
                continue
            place = held
            held += 1
            while place > 0 and heap[(place - 1) // 2] > ranks[v]:
                heap[place] = heap[(place - 1) // 2]
                place = (place - 1) // 2
            heap[place] = ranks[v]
    return size


@jit
def longest_paths(order, indptr, neighbors, weights, lengths, edges):
    """Compute the length of the longest path to each vertex, and the last edge of the path, or -1.

    ``order`` is topological; rows have in-edges. Of equally long paths the first counts, and a negative one does not.
    """
    for v in order:
        length = 0.0
        edge = -1
        for e in range(indptr[v], indptr[v + 1]):
            candidate = lengths[neighbors[e]] + weights[e]
            if edge < 0 or candidate > length:
                length = candidate
                edge = e
        if edge >= 0 and length < 0.0:
            length = 0.0
            edge = -1
        lengths[v] = length
        edges[v] = edge


@jit
def immediate_dominators(indptr, neighbors, order, dominators):
    """Compute immediate dominators as Cooper, Harvey and Kennedy do.

    ``order`` is the reverse postorder of the vertices that are reached, the start first; rows have in-edges.
    ``dominators``, int64[n], is -1 at first, and stays so at vertices that are not reached.
    """
    ranks = np.zeros(len(dominators), np.int64)
    for i in range(len(order)):
        ranks[order[i]] = i
    dominators[order[0]] = order[0]
    changed = True
    while changed:
        changed = False
        for i in range(1, len(order)):
            v = order[i]
            found = np.int64(-1)
            for e in range(indptr[v], indptr[v + 1]):
                other = np.int64(neighbors[e])
                if dominators[other] < 0:
                    continue
                if found < 0:
                    found = other
                while found != other:
                    while ranks[found] > ranks[other]:
                        found = dominators[found]
                    while ranks[other] > ranks[found]:
                        other = dominators[other]
            if dominators[v] != found:
                dominators[v] = found
                changed = True


@jit
def dominance_frontiers(indptr, neighbors, order, dominators, write, vertices, frontiers):
    """Compute the dominance frontiers from the immediate dominators; return the number of pairs.

    Rows have in-edges, without parallel ones. ``vertices`` and ``frontiers`` get the pairs if ``write``.
    """
    last = np.full(len(dominators), -1, np.int64)
    count = 0
    for u in order:
        if u != order[0] and indptr[u + 1] - indptr[u] < 2:
            continue
        for e in range(indptr[u], indptr[u + 1]):
            v = np.int64(neighbors[e])
            # The start has no dominator in NetworkX: it is in the frontier of every vertex up to itself.
            while dominators[v] >= 0 and last[v] != u and (u == order[0] or v != dominators[u]):
                last[v] = u
                if write:
                    vertices[count] = v
                    frontiers[count] = u
                count += 1
                if v == order[0]:
                    break
                v = dominators[v]
    return count


@jit
def reduce_transitively(indptr, neighbors, levels, starts, removers, removed, ends):
    """Find the edges of the given start vertices from which other edges lead around, in a directed acyclic graph.

    For each start in turn, each neighbour that is left removes those that it reaches; ``removers`` and ``removed`` get
    the pairs, ``ends`` where those of each start end. Return the number of pairs.
    """
    n = len(levels)
    stamps, wanted = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    stack = np.empty(n, np.uint32)
    size = 0
    for i in range(len(starts)):
        u = starts[i]
        deepest = np.int64(-1)
        for e in range(indptr[u], indptr[u + 1]):
            wanted[neighbors[e]] = i
            deepest = max(deepest, levels[neighbors[e]])
        for e in range(indptr[u], indptr[u + 1]):
            start = neighbors[e]
            # What an earlier neighbour reaches has been removed, and all behind it.
            if wanted[start] != i or stamps[start] == i:
                continue
            stamps[start] = i
            stack[0] = start
            height = 1
            while height > 0:
                height -= 1
                v = stack[height]
                for f in range(indptr[v], indptr[v + 1]):
                    w = neighbors[f]
                    if wanted[w] == i:
                        wanted[w] = -1
                        removers[size] = start
                        removed[size] = w
                        size += 1
                    if stamps[w] == i or levels[w] >= deepest:
                        continue
                    stamps[w] = i
                    stack[height] = w
                    height += 1
        ends[i] = size
    return size
