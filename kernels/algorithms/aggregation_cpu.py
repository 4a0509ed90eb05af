"""Kernels that number communities and make each a vertex of the next level of Louvain and Leiden, on the CPU."""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.library.atomics_cpu import compare_and_swap, fetch_and_add, load, prefetch
from gpu_pregel.kernels.library.jit_cpu import jit
from gpu_pregel.kernels.library.work_cpu import claim

ROWS_AHEAD = 4
"""Prefetch distance for the rows of members."""
LABELS_AHEAD = 32
WEIGHTS_AHEAD = 12
"""Prefetch distances, in edges, for the labels of neighbours and for what is found by label."""


@jit
def find_smallest(work, labels, smallest):
    """Write the smallest member of each community to ``smallest``, which is len(labels) at first."""
    first, last = claim(work)
    while first < last:
        for v in range(first, last):
            c = labels[v]
            seen = load(smallest, c)
            while v < seen and not compare_and_swap(smallest, c, seen, v):
                seen = load(smallest, c)
        first, last = claim(work)


@jit
def count_smallest(work, block, labels, smallest, counts):
    """Count the vertices of each block that are the smallest of their community; work items are blocks."""
    n = len(labels)
    first, last = claim(work)
    while first < last:
        for b in range(first, last):
            count = np.int64(0)
            for v in range(b * block, min((b + 1) * block, n)):
                count += np.int64(smallest[labels[v]] == np.uint32(v))
            counts[b] = count
        first, last = claim(work)


@jit
def number_smallest(work, block, labels, smallest, starts, numbers):
    """Number the communities by their smallest member: ``numbers[labels[v]]``."""
    n = len(labels)
    first, last = claim(work)
    while first < last:
        for b in range(first, last):
            number = starts[b]
            for v in range(b * block, min((b + 1) * block, n)):
                if smallest[labels[v]] == np.uint32(v):
                    numbers[labels[v]] = number
                    number += 1
        first, last = claim(work)


@jit
def look_up(work, table, labels, found):
    """Set ``found[v] = table[labels[v]]``."""
    first, last = claim(work)
    while first < last:
        for v in range(first, last):
            found[v] = table[labels[v]]
        first, last = claim(work)


@jit
def aggregate(
    work,
    members,
    labels,
    indptr,
    indices,
    weights,
    degrees,
    tables,
    found,
    slots,
    piece_rows,
    piece_begins,
    piece_counts,
    piece_indices,
    piece_weights,
    counts,
    totals,
    cursor,
):
    """Sum the weights from members of one community to every other one, for each run of members in a chunk.

    A run gives one piece of the row of its community. ``cursor`` counts pieces and their edges, ``counts`` the edges of
    each row. Edges within a community are left out: the degrees of the communities contain them.
    """
    end = np.uint64(len(indices)) - np.uint64(1)
    mine = fetch_and_add(slots, 0, 1)
    table = tables[mine]
    seen = found[mine]
    first, last = claim(work)
    while first < last:
        i = first
        while i < last:
            row = labels[members[i]]
            count = np.uint64(0)
            degree = np.int64(0)
            while i < last and labels[members[i]] == row:
                u = members[i]
                if i + ROWS_AHEAD < last:
                    prefetch(indices, indptr[members[i + ROWS_AHEAD]])
                degree += degrees[u]
                for e in range(np.uint64(indptr[u]), np.uint64(indptr[u + np.uint32(1)])):
                    prefetch(labels, indices[min(e + np.uint64(LABELS_AHEAD), end)])
                    prefetch(table, labels[indices[min(e + np.uint64(WEIGHTS_AHEAD), end)]])
                    c = labels[indices[e]]
                    before = table[c]
                    seen[count] = c
                    if weights is None:
                        table[c] = before + 1
                        count += np.uint64(before == 0)
                    else:
                        table[c] = before + weights[e]
                        count += np.uint64(before == 0) & np.uint64(weights[e] != 0)
                i += 1
            size = np.int64(count) - np.int64(table[row] != 0)
            table[row] = 0
            piece = fetch_and_add(cursor, 0, 1)
            at = fetch_and_add(cursor, 1, size)
            piece_rows[piece] = row
            piece_begins[piece] = at
            piece_counts[piece] = size
            fetch_and_add(counts, row, size)
            fetch_and_add(totals, row, degree)
            for j in range(count):
                c = seen[j]
                if c != row:
                    piece_indices[at] = c
                    piece_weights[at] = table[c]
                    table[c] = 0
                    at += 1
        first, last = claim(work)


@jit
def join_pieces(work, piece_rows, piece_begins, piece_counts, piece_indices, piece_weights, nexts, indices, weights):
    """Copy the pieces into the rows, which begin at ``nexts``; work items are pieces."""
    first, last = claim(work)
    while first < last:
        for piece in range(first, last):
            begin = piece_begins[piece]
            at = fetch_and_add(nexts, piece_rows[piece], piece_counts[piece])
            for e in range(begin, begin + piece_counts[piece]):
                indices[at] = piece_indices[e]
                weights[at] = piece_weights[e]
                at += 1
        first, last = claim(work)


@jit
def find_first(work, communities, refined, smallest):
    """Write the smallest refined community of each community to ``smallest``, which is large at first."""
    first, last = claim(work)
    while first < last:
        for v in range(first, last):
            c = communities[v]
            seen = load(smallest, c)
            while refined[v] < seen and not compare_and_swap(smallest, c, seen, refined[v]):
                seen = load(smallest, c)
        first, last = claim(work)


@jit
def look_up_first(work, communities, refined, smallest, starts):
    """Set ``starts`` of each refined community to the smallest one of the same community."""
    first, last = claim(work)
    while first < last:
        for v in range(first, last):
            starts[refined[v]] = smallest[communities[v]]
        first, last = claim(work)
