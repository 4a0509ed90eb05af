"""Kernels of Louvain and Leiden on the CPU: moving vertices between communities, and aggregating communities.

Weights are whole numbers, so that sums do not depend on the order of threads. ``unit`` scales them for the comparison
of gains, ``rate`` is the resolution times ``unit`` divided by the total weight: the gain of vertex u in community c is
``unit * weight(u, c) - rate * degree(u) * total(c)``, where ``total`` sums the degrees of the members other than u.

Each thread counts in its own row of ``table``, which is all zeros between two vertices.
"""

from __future__ import annotations

import math

import numpy as np

from gpu_pregel.kernels.library.atomics_cpu import fetch_and_add, prefetch
from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.library.work_cpu import claim

LABELS_AHEAD = 32
WEIGHTS_AHEAD = 12
"""Prefetch distances, in edges, for the labels of neighbours and for what is found by label."""


@inline
def _find_best(u, indptr, indices, weights, degrees, labels, totals, table, found, rate, unit):
    """Return the community in which u has the largest gain, and by how much it exceeds that of staying.

    Of equal gains the smallest community wins; a vertex moves only if it gains.
    """
    here = np.uint64(labels[u])
    count = np.uint64(0)
    last = np.uint64(len(indices)) - np.uint64(1)
    for e in range(np.uint64(indptr[u]), np.uint64(indptr[u + 1])):
        prefetch(labels, indices[min(e + np.uint64(LABELS_AHEAD), last)])
        prefetch(table, labels[indices[min(e + np.uint64(WEIGHTS_AHEAD), last)]])
        v = indices[e]
        c = np.uint64(labels[v])
        before = table[c]
        found[count] = c
        if weights is None:
            other = v != u
            table[c] = before + np.int32(other)
            count += np.uint64(before == 0) & np.uint64(other)
        else:
            weight = weights[e] * np.int64(v != u)
            table[c] = before + weight
            count += np.uint64(before == 0) & np.uint64(weight != 0)
    pull = rate * np.float64(degrees[u])
    others = totals[here] - degrees[u]
    stay = table[here] * unit - np.int64(pull * np.float64(others))
    table[here] = 0
    best = np.int64(-1) << np.int64(62)
    to = here
    for i in range(count):
        prefetch(totals, found[i + np.uint64(WEIGHTS_AHEAD)])
        c = np.uint64(found[i])
        # That of the present community is below the gain of staying.
        gain = table[c] * unit - np.int64(pull * np.float64(totals[c]))
        table[c] = 0
        if gain >= best and (gain > best or c < to):
            best = gain
            to = c
    if max(best, stay) < 0 and totals[u] == 0:
        # Alone, a vertex gains nothing and loses nothing.
        best = np.int64(0)
        to = np.uint64(u)
    if best <= stay:
        return here, np.int64(0)
    return to, best - stay


@inline
def _activate_others(u, to, indptr, indices, labels, active):
    """Activate the neighbours of u that are not in the community ``to``."""
    for e in range(np.uint64(indptr[u]), np.uint64(indptr[u + 1])):
        v = indices[e]
        if labels[v] != to:
            active[v] = 1


@jit
def count_degrees(work, indptr, indices, degrees):
    """Count the edges of each vertex, self-loops twice; rows are sorted."""
    first, last = claim(work)
    while first < last:
        for u in range(first, last):
            begin = indptr[u]
            end = indptr[u + 1]
            degree = end - begin
            while begin < end:
                middle = (begin + end) >> 1
                if np.int64(indices[middle]) < u:
                    begin = middle + 1
                else:
                    end = middle
            while begin < indptr[u + 1] and np.int64(indices[begin]) == u:
                degree += 1
                begin += 1
            degrees[u] = degree
        first, last = claim(work)


@jit
def sum_degrees(work, indptr, indices, given, factor, weights, degrees):
    """Round the weights times ``factor`` to whole numbers and sum them by vertex, those of self-loops twice."""
    first, last = claim(work)
    while first < last:
        for u in range(first, last):
            degree = np.int64(0)
            for e in range(indptr[u], indptr[u + 1]):
                weight = np.int64(math.floor(np.float64(given[e]) * factor + 0.5))
                weights[e] = weight
                degree += weight << np.int64(np.int64(indices[e]) == u)
            degrees[u] = degree
        first, last = claim(work)


@jit
def propose(
    work,
    batch,
    batches,
    block,
    indptr,
    indices,
    weights,
    degrees,
    labels,
    totals,
    active,
    targets,
    tables,
    found,
    slots,
    rate,
    unit,
    gained,
):
    """Write the best community of each active vertex of a batch to ``targets``; the vertices become inactive.

    Work items are the blocks of the batch, of ``block`` vertices each, which are ``batches`` blocks apart.
    """
    n = len(labels)
    mine = fetch_and_add(slots, 0, 1)
    table = tables[mine]
    candidates = found[mine]
    total = np.int64(0)
    first, last = claim(work)
    while first < last:
        for i in range(first, last):
            begin = (batch + i * batches) * block
            for u in range(begin, min(begin + block, n)):
                if active[u] == 0:
                    continue
                active[u] = 0
                to, gain = _find_best(
                    u, indptr, indices, weights, degrees, labels, totals, table, candidates, rate, unit
                )
                if gain > 0:
                    # Of two vertices that are alone, and would change places, only the larger one moves.
                    if to > np.uint64(u) and labels[u] == np.uint32(u) and labels[to] == np.uint32(to):
                        if totals[u] == degrees[u] and totals[to] == degrees[to]:
                            if (to // np.uint64(block)) % np.uint64(batches) == np.uint64(batch):
                                continue
                    targets[u] = to
                    total += gain
        first, last = claim(work)
    fetch_and_add(gained, 0, total)


@jit
def move(work, batch, batches, block, indptr, indices, degrees, labels, totals, active, targets, mark):
    """Move the vertices of a batch to their targets, and activate their neighbours in other communities."""
    n = len(labels)
    first, last = claim(work)
    while first < last:
        for i in range(first, last):
            begin = (batch + i * batches) * block
            for u in range(begin, min(begin + block, n)):
                to = targets[u]
                here = labels[u]
                if to != here:
                    labels[u] = to
                    fetch_and_add(totals, here, -degrees[u])
                    fetch_and_add(totals, to, degrees[u])
                    if mark:
                        _activate_others(u, to, indptr, indices, targets, active)
        first, last = claim(work)


@jit
def move_at_once(
    work, indptr, indices, weights, degrees, labels, totals, active, tables, found, slots, rate, unit, mark, gained
):
    """Move each active vertex as soon as its best community is known; the result depends on the order of threads."""
    mine = fetch_and_add(slots, 0, 1)
    table = tables[mine]
    candidates = found[mine]
    total = np.int64(0)
    first, last = claim(work)
    while first < last:
        for u in range(first, last):
            if active[u] == 0:
                continue
            active[u] = 0
            to, gain = _find_best(u, indptr, indices, weights, degrees, labels, totals, table, candidates, rate, unit)
            if gain > 0:
                fetch_and_add(totals, labels[u], -degrees[u])
                fetch_and_add(totals, to, degrees[u])
                labels[u] = to
                total += gain
                if mark:
                    _activate_others(u, to, indptr, indices, labels, active)
        first, last = claim(work)
    fetch_and_add(gained, 0, total)


@jit
def move_serially(
    work,
    indptr,
    indices,
    weights,
    degrees,
    labels,
    totals,
    active,
    tables,
    found,
    rate,
    unit,
    enough,
    rounds,
    step,
    start,
):
    """Move the vertices of a small graph one by one, for at most ``rounds`` rounds that gain more than ``enough``."""
    first, last = claim(work)
    while first < last:
        n = len(labels)
        table = tables[0]
        candidates = found[0]
        for turn in range(rounds):
            total = np.int64(0)
            following = start
            for _ in range(n):
                u = following
                following = u + step if u + step < n else u + step - n
                if active[u] == 0:
                    continue
                active[u] = 0
                to, gain = _find_best(
                    u, indptr, indices, weights, degrees, labels, totals, table, candidates, rate, unit
                )
                if gain > 0:
                    totals[labels[u]] -= degrees[u]
                    totals[to] += degrees[u]
                    labels[u] = to
                    total += gain
                    if turn > 0:
                        _activate_others(u, to, indptr, indices, labels, active)
            if turn == 0:
                active[:] = 1
            if total <= enough:
                break
        first, last = claim(work)


@jit
def sum_totals(work, labels, degrees, totals):
    """Add the degree of every vertex to the total of its community."""
    first, last = claim(work)
    while first < last:
        for v in range(first, last):
            fetch_and_add(totals, labels[v], degrees[v])
        first, last = claim(work)


@jit
def sum_inner_weights(work, block, indptr, indices, weights, labels, degrees, sums):
    """Sum the weights of each vertex; sum those within communities and all, by block of vertices, to rows of ``sums``.

    A self-loop is stored once and counts twice.
    """
    n = len(labels)
    first, last = claim(work)
    while first < last:
        for b in range(first, last):
            inner = 0.0
            total = 0.0
            for u in range(b * block, min((b + 1) * block, n)):
                degree = 0.0
                for e in range(indptr[u], indptr[u + 1]):
                    v = np.int64(indices[e])
                    weight = 1.0 if weights is None else np.float64(weights[e])
                    weight += weight * np.float64(u == v)
                    degree += weight
                    inner += weight * np.float64(labels[u] == labels[v])
                degrees[u] = degree
                total += degree
            sums[b, 0] = inner
            sums[b, 1] = total
        first, last = claim(work)
