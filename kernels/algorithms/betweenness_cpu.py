"""Kernels of betweenness centrality on the CPU for levels of many edges, in all threads; see ``path_counts_cpu``."""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.algorithms.path_counts_cpu import (
    IN_EDGES,
    LIMIT,
    OUT_EDGES,
    OVERFLOW,
    TAIL,
    sum_paths,
    sum_ratios,
    widen,
)
from gpu_pregel.kernels.library.atomics_cpu import fetch_and_add, fetch_and_or, load
from gpu_pregel.kernels.library.bits_cpu import WORD_BITS, bit, popcount, trailing_zeros
from gpu_pregel.kernels.library.jit_cpu import jit
from gpu_pregel.kernels.library.work_cpu import claim


@jit
def forget(work, seen, paths, ratios):
    """Forget all vertices; threads claim whole words of ``seen``."""
    first, last = claim(work)
    while first < last:
        for v in range(first, last):
            paths[v] = 0.0
            ratios[v] = 0.0
        for k in range(first >> 6, (last + 63) >> 6):
            seen[k] = np.uint64(0)
        first, last = claim(work)


@jit
def discover(work, indptr, indices, queue, offset, seen, found):
    """Mark the unreached out-neighbours of the vertices of ``queue`` from ``offset`` on in the bitmap ``found``."""
    first, last = claim(work)
    while first < last:
        for i in range(offset + first, offset + last):
            u = np.int64(queue[i])
            for e in range(indptr[u], indptr[u + 1]):
                v = np.int64(load(indices, e))
                if load(seen, v >> 6) & bit(v) == np.uint64(0) and load(found, v >> 6) & bit(v) == np.uint64(0):
                    fetch_and_or(found, v >> 6, bit(v))
        first, last = claim(work)


@jit
def pull(work, in_indptr, in_indices, wide, seen, found, paths, scales, sums):
    """Count the paths to every unreached vertex and mark those that have any; threads claim whole words."""
    n = len(in_indptr) - 1
    first, last = claim(work)
    while first < last:
        for k in range(first, last):
            marks = np.uint64(0)
            unseen = ~seen[k]
            while unseen != np.uint64(0):
                v = np.int64(k) * WORD_BITS + trailing_zeros(unseen)
                unseen &= unseen - np.uint64(1)
                if v < n and in_indptr[v] < in_indptr[v + 1]:
                    total = sum_paths(in_indptr, in_indices, paths, scales, wide, v)
                    if total > 0.0:
                        sums[v] = total
                        marks |= bit(v)
            found[k] = marks
        first, last = claim(work)


@jit
def collect(work, indptr, in_indptr, seen, found, queue, state):
    """Append the vertices of the bitmap ``found`` to the queue, and add up their edges; threads claim words."""
    first, last = claim(work)
    while first < last:
        count = 0
        for k in range(first, last):
            count += popcount(found[k])
        place = fetch_and_add(state, TAIL, count) if count > 0 else 0
        out_edges = 0
        in_edges = 0
        for k in range(first, last):
            word = found[k]
            seen[k] |= word
            found[k] = np.uint64(0)
            while word != np.uint64(0):
                v = np.int64(k) * WORD_BITS + trailing_zeros(word)
                word &= word - np.uint64(1)
                queue[place] = v
                place += 1
                out_edges += indptr[v + 1] - indptr[v]
                in_edges += in_indptr[v + 1] - in_indptr[v]
        if count > 0:
            fetch_and_add(state, OUT_EDGES, out_edges)
            fetch_and_add(state, IN_EDGES, in_edges)
        first, last = claim(work)


@jit
def count_paths(work, in_indptr, in_indices, wide, queue, offset, paths, scales, sums):
    """Count the paths to the vertices of ``queue`` from ``offset`` on."""
    first, last = claim(work)
    while first < last:
        for i in range(offset + first, offset + last):
            v = np.int64(queue[i])
            sums[v] = sum_paths(in_indptr, in_indices, paths, scales, wide, v)
        first, last = claim(work)


@jit
def settle_paths(work, queue, offset, paths, sums, state):
    """Make the sums of these vertices their numbers of paths."""
    first, last = claim(work)
    while first < last:
        for i in range(offset + first, offset + last):
            v = queue[i]
            paths[v] = sums[v]
            if sums[v] > LIMIT:
                state[OVERFLOW] = 1
        first, last = claim(work)


@jit
def widen_paths(work, queue, paths, scales):
    """Give the counts of the vertices of ``queue`` their scales."""
    first, last = claim(work)
    while first < last:
        for i in range(first, last):
            widen(paths, scales, np.int64(queue[i]))
        first, last = claim(work)


@jit
def depend(work, indptr, indices, wide, queue, offset, paths, scales, ratios, sums, edges):
    """Compute the source's dependencies on the vertices of ``queue`` from ``offset`` on."""
    first, last = claim(work)
    while first < last:
        for i in range(offset + first, offset + last):
            u = np.int64(queue[i])
            sums[u] = sum_ratios(indptr, indices, paths, scales, ratios, edges, wide, u)
        first, last = claim(work)


@jit
def settle_ratios(work, queue, offset, paths, ratios, sums, extra, scores):
    """Add the dependencies of these vertices to their scores."""
    first, last = claim(work)
    while first < last:
        for i in range(offset + first, offset + last):
            u = queue[i]
            ratios[u] = (1.0 + sums[u]) / paths[u]
            scores[u] += sums[u] + extra
        first, last = claim(work)
