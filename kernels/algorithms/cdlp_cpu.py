"""Kernels of community detection by label propagation on the CPU."""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.library.atomics_cpu import fetch_and_add, prefetch
from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.library.work_cpu import claim

LABELS_AHEAD = 32
COUNTS_AHEAD = 12
"""Prefetch distances, in edges, for the labels of neighbours and for what is found by label."""


@inline
def _count_labels(v, indptr, indices, labels, table, found, count):
    """Count the labels of a row in ``table``; append those seen first to ``found`` and return their number."""
    last = np.uint64(len(indices)) - np.uint64(1)
    for e in range(np.uint64(indptr[v]), np.uint64(indptr[v + 1])):
        prefetch(labels, indices[min(e + np.uint64(LABELS_AHEAD), last)])
        prefetch(table, labels[indices[min(e + np.uint64(COUNTS_AHEAD), last)]])
        label = labels[indices[e]]
        before = table[label]
        found[count] = label
        count += np.uint64(before == 0)
        table[label] = before + np.uint32(1)
    return count


@jit
def propagate(
    work,
    indptr,
    indices,
    in_indptr,
    in_indices,
    both,
    everywhere,
    active,
    labels,
    tables,
    found,
    slots,
    new_labels,
    changes,
):
    """Set the most frequent label of each vertex's neighbours, the smallest of several, if it is active.

    In-edges are counted as well if ``both``. Each thread counts in a row of ``tables``, which is zero between vertices.
    ``changes`` sums the vertices whose label changes and their edges.
    """  # fmt: skip
    mine = fetch_and_add(slots, 0, 1)
    table = tables[mine]
    seen = found[mine]
    changed = np.int64(0)
    changed_edges = np.int64(0)
    first, last = claim(work)
    while first < last:
        for v in range(first, last):
            label = labels[v]
            best = label
            degree = indptr[v + 1] - indptr[v]
            if both:
                degree += in_indptr[v + 1] - in_indptr[v]
            if degree > 0 and (everywhere or active[v] != 0):
                active[v] = 0
                count = _count_labels(v, indptr, indices, labels, table, seen, np.uint64(0))
                if both:
                    count = _count_labels(v, in_indptr, in_indices, labels, table, seen, count)
                most = np.uint32(0)
                for i in range(count):
                    other = seen[i]
                    times = table[other]
                    table[other] = 0
                    if times > most or (times == most and other < best):
                        most = times
                        best = other
                changed += np.int64(best != label)
                changed_edges += degree * np.int64(best != label)
            new_labels[v] = best
        first, last = claim(work)
    fetch_and_add(changes, 0, changed)
    fetch_and_add(changes, 1, changed_edges)


@jit
def propagate_first(work, indptr, indices, new_labels, changes):
    """Set the label of each vertex in the first iteration, in which the sorted row has the labels of the neighbours."""
    changed = np.int64(0)
    changed_edges = np.int64(0)
    first, last = claim(work)
    while first < last:
        for v in range(first, last):
            begin = np.uint64(indptr[v])
            end = np.uint64(indptr[v + 1])
            best = np.uint32(v)
            most = np.uint64(0)
            start = begin
            while start < end:
                e = start + np.uint64(1)
                while e < end and indices[e] == indices[start]:
                    e += np.uint64(1)
                if e - start > most:
                    most = e - start
                    best = indices[start]
                start = e
            changed += np.int64(best != np.uint32(v))
            changed_edges += np.int64(end - begin) * np.int64(best != np.uint32(v))
            new_labels[v] = best
        first, last = claim(work)
    fetch_and_add(changes, 0, changed)
    fetch_and_add(changes, 1, changed_edges)


@jit
def activate(work, indptr, indices, in_indptr, in_indices, both, labels, new_labels, active):
    """Activate the neighbours of vertices whose label has changed."""  # fmt: skip
    first, last = claim(work)
    while first < last:
        for v in range(first, last):
            if labels[v] != new_labels[v]:
                for e in range(indptr[v], indptr[v + 1]):
                    active[indices[e]] = 1
                if both:
                    for e in range(in_indptr[v], in_indptr[v + 1]):
                        active[in_indices[e]] = 1
        first, last = claim(work)
