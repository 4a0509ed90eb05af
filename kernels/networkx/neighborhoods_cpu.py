"""Triangles, squares, triads and structural holes: what the neighbours of each vertex have in common.

Rows are sorted, without parallel edges and self-loops, unless a kernel says otherwise. Each thread has its own marks.
"""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.library.sorted_rows import count_common as common_of_rows
from gpu_pregel.kernels.library.work_cpu import claim


@inline
def _row_end(indptr, u):
    return indptr[np.int64(u) + 1]


@jit
def count_common(work, indptr, neighbors, vertices, begins, counts):
    """Count for each out-neighbour of some vertices the out-neighbours that both have.

    Those of vertex ``vertices[k]`` are in ``counts`` from ``begins[k]`` on.
    """
    marks = np.zeros(len(indptr) - 1, np.bool_)
    first, last = claim(work)
    while first < last:
        for k in range(first, last):
            u = vertices[k]
            for e in range(indptr[u], indptr[u + 1]):
                marks[neighbors[e]] = True
            place = begins[k]
            for e in range(indptr[u], indptr[u + 1]):
                v = neighbors[e]
                begin, end = indptr[v], _row_end(indptr, v)
                count = 0
                if end - begin <= indptr[u + 1] - indptr[u]:
                    for f in range(begin, end):
                        count += marks[neighbors[f]]
                else:
                    # The row of a hub is not read for each of its neighbours.
                    count = common_of_rows(neighbors, indptr[u], indptr[u + 1], neighbors, begin, end)
                counts[place] = count
                place += 1
            for e in range(indptr[u], indptr[u + 1]):
                marks[neighbors[e]] = False
        first, last = claim(work)


@jit
def sum_triangles(work, indptr, neighbors, weights, vertices, sums):
    """Add up the products of the three weights of each triangle at some vertices, both ways round."""
    at_u = np.zeros(len(indptr) - 1)
    first, last = claim(work)
    while first < last:
        for k in range(first, last):
            u = vertices[k]
            for e in range(indptr[u], indptr[u + 1]):
                at_u[neighbors[e]] = weights[e]
            total = 0.0
            for e in range(indptr[u], indptr[u + 1]):
                v = neighbors[e]
                part = 0.0
                for f in range(indptr[v], _row_end(indptr, v)):
                    part += weights[f] * at_u[neighbors[f]]
                total += weights[e] * part
            for e in range(indptr[u], indptr[u + 1]):
                at_u[neighbors[e]] = 0.0
            sums[k] = total
        first, last = claim(work)


@jit
def sum_all_triangles(work, indptr, neighbors, weights, blocks, sums):
    """Add the product of the three weights of each triangle at its vertices; each item is a block of vertices.

    Each edge is in one row, directed so that there are no cycles; ``sums`` is float64[blocks, n].
    """
    n = len(indptr) - 1
    at_u = np.zeros(n)
    block, last_block = claim(work)
    while block < last_block:
        found = sums[block]
        for u in range(n * block // blocks, n * (block + 1) // blocks):
            for e in range(indptr[u], indptr[u + 1]):
                at_u[neighbors[e]] = weights[e]
            for e in range(indptr[u], indptr[u + 1]):
                v = neighbors[e]
                at_v = 0.0
                for f in range(indptr[v], _row_end(indptr, v)):
                    w = neighbors[f]
                    product = weights[e] * weights[f] * at_u[w]
                    if product != 0.0:
                        at_v += product
                        found[w] += product
                found[v] += at_v
                found[u] += at_v
            for e in range(indptr[u], indptr[u + 1]):
                at_u[neighbors[e]] = 0.0
        block, last_block = claim(work)


@jit
def count_squares(work, indptr, neighbors, back_indptr, back_neighbors, vertices, results):
    """Count the squares at some vertices, and how many there could be: ``results`` is int64[k, 2]."""
    n = len(indptr) - 1
    paths, marks, touched = np.zeros(n, np.int64), np.zeros(n, np.int8), np.empty(n, np.uint32)
    first, last = claim(work)
    while first < last:
        for k in range(first, last):
            v = vertices[k]
            begin, end = indptr[v], indptr[v + 1]
            if end - begin < 2:
                # No square, although its neighbour may be that of all.
                results[k, 0] = results[k, 1] = 0
                continue
            size = 0
            # 1: reached in two steps; 2: a neighbour, reached or not.
            for e in range(begin, end):
                for f in range(indptr[neighbors[e]], _row_end(indptr, neighbors[e])):
                    x = neighbors[f]
                    if marks[x] == 0:
                        marks[x] = 1
                        touched[size] = x
                        size += 1
            for e in range(begin, end):
                u = neighbors[e]
                if marks[u] == 0:
                    touched[size] = u
                    size += 1
                marks[u] = 2
                for f in range(back_indptr[u], _row_end(back_indptr, u)):
                    paths[back_neighbors[f]] += 1
            triangles = 0
            squares = 0
            for i in range(size):
                x = touched[i]
                if x != v:
                    count = paths[x]
                    squares += count * (count - 1)
                    if marks[x] == 2:
                        triangles += count
            squares //= 2
            degree = end - begin
            others = 0
            for e in range(begin, end):
                u = neighbors[e]
                others += _row_end(indptr, u) - indptr[u]
                for f in range(back_indptr[u], _row_end(back_indptr, u)):
                    paths[back_neighbors[f]] = 0
            for i in range(size):
                marks[touched[i]] = 0
            results[k, 0] = squares
            results[k, 1] = (others - degree) * (degree - 1) - triangles - squares
        first, last = claim(work)


@jit
def count_triads(work, indptr, neighbors, codes, counts):
    """Count triads by the code of their edges: ``counts`` is int64[n, 64], of which each row is of one vertex.

    Rows have the neighbours in both directions; ``codes`` is 1 for an out-edge, 2 for an in-edge and 3 for both.
    Vladimir Batagelj, Andrej Mrvar: A subquadratic triad census algorithm for large sparse networks, 2001.
    """
    n = len(indptr) - 1
    at_v, at_u = np.zeros(n, np.int64), np.zeros(n, np.int64)
    first, last = claim(work)
    while first < last:
        for v in range(first, last):
            row = counts[v]
            for e in range(indptr[v], indptr[v + 1]):
                at_v[neighbors[e]] = codes[e]
            for e in range(indptr[v], indptr[v + 1]):
                u = np.int64(neighbors[e])
                if u <= v:
                    continue
                for f in range(indptr[u], indptr[u + 1]):
                    at_u[neighbors[f]] = codes[f]
                both = 0
                for f in range(indptr[u], indptr[u + 1]):
                    w = np.int64(neighbors[f])
                    both += at_v[w] != 0
                    if w != v and (u < w or (v < w and w < u and at_v[w] == 0)):
                        row[codes[e] + 4 * at_v[w] + 16 * codes[f]] += 1
                for f in range(indptr[v], _row_end(indptr, v)):
                    w = np.int64(neighbors[f])
                    if w != u and at_u[w] == 0 and u < w:
                        row[codes[e] + 4 * codes[f]] += 1
                union = (indptr[v + 1] - indptr[v]) + (indptr[u + 1] - indptr[u]) - both
                # The union has u and v; all others are joined to neither.
                row[codes[e]] += n - union
                for f in range(indptr[u], indptr[u + 1]):
                    at_u[neighbors[f]] = 0
            for e in range(indptr[v], indptr[v + 1]):
                at_v[neighbors[e]] = 0
        first, last = claim(work)


@jit
def measure_holes(work, indptr, neighbors, shares, weights, by_row, vertices, sums):
    """Sum up the constraint of some vertices or, if ``by_row``, how far the neighbourhoods of their neighbours overlap.

    ``shares`` are the weights divided by the sum of their row, ``weights`` those divided by its maximum.
    """
    n = len(indptr) - 1
    at_u, reached = np.zeros(n), np.zeros(n)
    first, last = claim(work)
    while first < last:
        for k in range(first, last):
            u = vertices[k]
            total = 0.0
            for e in range(indptr[u], indptr[u + 1]):
                at_u[neighbors[e]] = shares[e]
            for e in range(indptr[u], indptr[u + 1]):
                v = neighbors[e]
                for f in range(indptr[v], _row_end(indptr, v)):
                    if by_row:
                        total += at_u[neighbors[f]] * weights[f]
                    else:
                        reached[neighbors[f]] += shares[e] * shares[f]
            for e in range(indptr[u], indptr[u + 1]):
                v = neighbors[e]
                if not by_row:
                    total += (shares[e] + reached[v]) ** 2
                at_u[v] = 0.0
            if not by_row:
                for e in range(indptr[u], indptr[u + 1]):
                    v = neighbors[e]
                    for f in range(indptr[v], _row_end(indptr, v)):
                        reached[neighbors[f]] = 0.0
            sums[k] = total
        first, last = claim(work)


ALL, OTHERS, ALIKE, UNKNOWN, COUNTS = 0, 1, 2, 3, 4
"""Counts of the common neighbours of u and v: all; those other than u and v; of these, those
in the community of u; those without one."""


@jit
def compare_pairs(work, indptr, neighbors, first, second, values, communities, counts, sums):
    """Count the common neighbours of each pair, and add up the values of all of them and of those in one community.

    Rows are sorted; ``counts`` is int64[k, 4], ``sums`` float64[k, 2]. A negative community is unknown.
    """
    begin, end = claim(work)
    while begin < end:
        for k in range(begin, end):
            u = first[k]
            v = second[k]
            every = 0
            others = 0
            alike = 0
            unknown = 0
            total = 0.0
            alike_total = 0.0
            e = indptr[u]
            f = indptr[v]
            while e < indptr[u + 1] and f < indptr[v + 1]:
                w = neighbors[e]
                x = neighbors[f]
                if w == x:
                    every += 1
                    if w != u and w != v:
                        others += 1
                        total += values[w]
                        if communities[w] < 0:
                            unknown += 1
                        if communities[w] == communities[u]:
                            alike += 1
                            alike_total += values[w]
                e += w <= x
                f += x <= w
            counts[k, 0] = every
            counts[k, 1] = others
            counts[k, 2] = alike
            counts[k, 3] = unknown
            sums[k, 0] = total
            sums[k, 1] = alike_total
        begin, end = claim(work)
