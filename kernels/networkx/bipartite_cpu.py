"""Colours, matchings and common neighbours of bipartite graphs, in NetworkX's order, on one thread."""

from __future__ import annotations

from gpu_pregel.kernels.library.jit_cpu import inline, jit


@inline
def _color_row(v, indptr, neighbors, stack, depth, colors, order, count):
    """Colour the neighbours of a vertex; return how many vertices are on the stack, or -1, and how many are coloured.

    It is -1 if a neighbour has the same colour.
    """
    for e in range(indptr[v], indptr[v + 1]):
        w = neighbors[e]
        if colors[w] < 0:
            colors[w] = 1 - colors[v]
            order[count] = w
            count += 1
            stack[depth] = w
            depth += 1
        elif colors[w] == colors[v]:
            return -1, count
    return depth, count


@jit
def color_sides(indptr, neighbors, in_indptr, in_neighbors, stack, colors, order):
    """Colour vertices 1 and 0 by depth-first searches from those that have out-edges.

    In-edges are those of a directed graph. Colours are -1 before; ``order`` gets the vertices as they are coloured.
    Return how many are, and the first vertex of a component that has an odd cycle or -1.
    """
    count = 0
    for start in range(len(colors)):
        if colors[start] >= 0 or indptr[start] == indptr[start + 1]:
            continue
        colors[start] = 1
        order[count] = start
        count += 1
        stack[0] = start
        depth = 1
        while depth > 0:
            v = stack[depth - 1]
            depth, count = _color_row(v, in_indptr, in_neighbors, stack, depth - 1, colors, order, count)
            if depth >= 0:
                depth, count = _color_row(v, indptr, neighbors, stack, depth, colors, order, count)
            if depth < 0:
                return count, start
    return count, -1


@inline
def _find_distances(indptr, neighbors, left, mates, distances, queue):
    """Search for free right vertices from the free left ones; return their distance or -1."""
    n = len(mates)
    nearest = -1
    count = 0
    for v in left:
        distances[v] = -1
        if mates[v] == n:
            distances[v] = 0
            queue[count] = v
            count += 1
    begin = 0
    while begin < count:
        v = queue[begin]
        begin += 1
        if nearest >= 0 and distances[v] >= nearest:
            continue
        for e in range(indptr[v], indptr[v + 1]):
            mate = mates[neighbors[e]]
            if mate == n:
                if nearest < 0:
                    nearest = distances[v] + 1
            elif distances[mate] < 0:
                distances[mate] = distances[v] + 1
                queue[count] = mate
                count += 1
    return nearest


@inline
def _augment(indptr, neighbors, root, mates, distances, nearest, path, cursors):
    """Search depth-first for a path to a free right vertex, and change the mates along it."""
    n = len(mates)
    depth = 0
    path[0] = root
    cursors[root] = indptr[root]
    while depth >= 0:
        v = path[depth]
        found = False
        while cursors[v] < indptr[v + 1]:
            mate = mates[neighbors[cursors[v]]]
            if mate == n:
                if nearest == distances[v] + 1:
                    found = True
                    break
            elif distances[mate] == distances[v] + 1:
                break
            cursors[v] += 1
        if found:
            while depth >= 0:
                v = path[depth]
                mates[neighbors[cursors[v]]] = v
                mates[v] = neighbors[cursors[v]]
                depth -= 1
            return True
        if cursors[v] < indptr[v + 1]:
            depth += 1
            path[depth] = mates[neighbors[cursors[v]]]
            cursors[path[depth]] = indptr[path[depth]]
            continue
        # No path leads on from here: no search of this round comes here again.
        distances[v] = -2
        depth -= 1
        if depth >= 0:
            cursors[path[depth]] += 1
    return False


@jit
def match_sides(indptr, neighbors, left, mates, distances, queue, cursors):
    """Find one round of shortest augmenting paths (Hopcroft, Karp); return whether there were any.

    ``mates`` is n where there is none.
    """
    nearest = _find_distances(indptr, neighbors, left, mates, distances, queue)
    if nearest < 0:
        return False
    for v in left:
        if mates[v] == len(mates):
            _augment(indptr, neighbors, v, mates, distances, nearest, queue, cursors)
    return True


@inline
def _count_common(v, indptr, neighbors, common, others):
    """List the vertices that have a neighbour in common with v, and how many; return their number."""
    count = 0
    for e in range(indptr[v], indptr[v + 1]):
        u = neighbors[e]
        for f in range(indptr[u], indptr[u + 1]):
            other = neighbors[f]
            if other == v:
                continue
            if common[other] == 0:
                others[count] = other
                count += 1
            common[other] += 1
    return count


@jit
def mean_overlaps(indptr, neighbors, vertices, mode, common, others, scores):
    """Average the overlap of each vertex's neighbours with those of the others at distance two.

    The number of common neighbours is divided by that of all of them (``mode`` 0), by the larger (1) or by the smaller
    number of neighbours (2). ``common`` is 0 before and after.
    """
    for i in range(len(vertices)):
        v = vertices[i]
        degree = indptr[v + 1] - indptr[v]
        count = _count_common(v, indptr, neighbors, common, others)
        total = 0.0
        for j in range(count):
            u = others[j]
            other = indptr[u + 1] - indptr[u]
            if mode == 0:
                total += common[u] / (degree + other - common[u])
            elif mode == 1:
                total += common[u] / max(degree, other)
            else:
                total += common[u] / min(degree, other)
            common[u] = 0
        scores[i] = total / count if total > 0.0 else 0.0


@jit
def count_squares(indptr, neighbors, first, last, common, others):
    """Count the pairs of common neighbours of vertices from ``first`` on with vertices of larger numbers."""
    pairs = 0
    for v in range(first, last):
        count = _count_common(v, indptr, neighbors, common, others)
        for j in range(count):
            u = others[j]
            if u > v:
                pairs += common[u] * (common[u] - 1)
            common[u] = 0
    return pairs


@jit
def count_paths(indptr, neighbors, middles, paths, ends):
    """List the neighbours of these vertices as they are found, and count how often each is; return their number.

    ``paths`` is 0 before; it gets the counts.
    """
    count = 0
    for u in middles:
        for e in range(indptr[u], indptr[u + 1]):
            v = neighbors[e]
            if paths[v] == 0:
                ends[count] = v
                count += 1
            paths[v] += 1
    return count


@jit
def count_redundant(indptr, neighbors, vertices, inside, last, pairs):
    """Count the pairs of neighbours of each vertex that have another neighbour in common, each in both orders.

    ``inside`` and ``last`` have a number for each vertex and are -1 before; they are scratch.
    """
    for i in range(len(vertices)):
        v = vertices[i]
        for e in range(indptr[v], indptr[v + 1]):
            inside[neighbors[e]] = i
            last[neighbors[e]] = -1
        pairs[i] = 0
        for e in range(indptr[v], indptr[v + 1]):
            u = neighbors[e]
            for f in range(indptr[u], indptr[u + 1]):
                middle = neighbors[f]
                if middle == v:
                    continue
                for g in range(indptr[middle], indptr[middle + 1]):
                    w = neighbors[g]
                    if w != u and inside[w] == i and last[w] != u:
                        last[w] = u
                        pairs[i] += 1
        for e in range(indptr[v], indptr[v + 1]):
            inside[neighbors[e]] = -1
