"""Kernels of connected components on the CPU, which link trees of vertices and flatten them.

``labels[v]`` is the parent of v. It is never larger than v, so that a root is the smallest vertex of its tree.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.kernels.library.atomics_cpu import compare_and_swap, load, prefetch, store
from gpu_pregel.kernels.library.hash_cpu import mix
from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.library.work_cpu import claim

SAMPLES = 1024
"""Vertices sampled to estimate the largest component, as in Afforest."""
ROWS_AHEAD = 32
VERTICES_AHEAD = 16
"""Prefetch distances for rows and for the labels of their neighbours, each of which would be a cache miss."""


@inline
def _link(labels: Any, u: Any, v: Any) -> None:
    """Join the trees of u and v: make the smaller root the parent of the larger one, by compare-and-swap."""
    p = load(labels, u)
    q = load(labels, v)
    while p != q:
        high = max(p, q)
        low = min(p, q)
        parent = load(labels, high)
        if parent == low or (parent == high and compare_and_swap(labels, high, high, low)):
            return
        # Move up and shorten the path for later walks (path halving).
        p = load(labels, parent)
        store(labels, high, p)
        q = load(labels, low)


@jit
def initialise(work: Any, indptr: Any, indices: Any, labels: Any) -> None:
    """Make every vertex the root of its own tree; unlike the CUDA version, this reads no edges."""
    first, last = claim(work)
    while first < last:
        for v in range(first, last):
            labels[v] = v
        first, last = claim(work)


@jit
def link_sampled(work: Any, indptr: Any, indices: Any, rounds: Any, labels: Any) -> None:
    """Link every vertex with its first ``rounds`` neighbours."""
    n = len(labels)
    m = len(indices)
    first, last = claim(work)
    while first < last:
        end = indptr[first]
        for u in range(first, last):
            prefetch(indices, indptr[min(u + ROWS_AHEAD, n)])
            ahead = indptr[min(u + VERTICES_AHEAD, n)]
            if ahead + 1 < m:
                prefetch(labels, indices[ahead])
                prefetch(labels, indices[ahead + 1])
            begin = end
            end = indptr[u + 1]
            if begin == end:
                continue
            # In most cases u is alone in its tree and its smallest neighbour is smaller, so that one swap links them.
            v = indices[begin]
            if v > u or not compare_and_swap(labels, u, u, load(labels, v)):
                _link(labels, u, v)
            for e in range(begin + 1, min(begin + rounds, end)):
                _link(labels, u, indices[e])
        first, last = claim(work)


@jit
def compress(work: Any, labels: Any) -> None:
    """Flatten the trees: make every label a root."""
    first, last = claim(work)
    while first < last:
        for v in range(first, last):
            parent = load(labels, v)
            grandparent = load(labels, parent)
            while parent != grandparent:
                parent = grandparent
                grandparent = load(labels, parent)
            store(labels, v, parent)
        first, last = claim(work)


@jit
def estimate_largest(work: Any, labels: Any, largest: Any) -> None:
    """Write the most frequent label of a sample of vertices to ``largest[0]``; has one work item."""
    first, last = claim(work)
    while first < last:
        # Count in a hash table four times as large as the sample; free slots have count 0.
        slots = np.uint64(4 * SAMPLES)
        counted = np.empty(slots, labels.dtype)
        counts = np.zeros(slots, np.int64)
        most = 0
        for i in range(SAMPLES):
            label = labels[mix(np.uint64(i)) % np.uint64(len(labels))]
            slot = mix(np.uint64(label)) % slots
            while counts[slot] > 0 and counted[slot] != label:
                slot = (slot + np.uint64(1)) % slots
            counted[slot] = label
            counts[slot] += 1
            if counts[slot] > most:
                most = counts[slot]
                largest[0] = label
        first, last = claim(work)


@jit
def link_rest(work: Any, indptr: Any, indices: Any, rounds: Any, both_ways: Any, largest: Any, labels: Any) -> None:
    """Link every vertex with its remaining neighbours, except for edges within the component ``largest[0]``.

    If edges are stored ``both_ways``, the rows of that component's vertices are skipped, because edges that leave it
    are found at their other end.
    """
    m = len(indices)
    skipped = largest[0]
    first, last = claim(work)
    while first < last:
        for u in range(first, last):
            inside = load(labels, u) == skipped
            if inside and both_ways:
                continue
            for e in range(indptr[u] + rounds, indptr[u + 1]):
                if e + VERTICES_AHEAD < m:
                    prefetch(labels, indices[e + VERTICES_AHEAD])
                v = indices[e]
                if not inside or load(labels, v) != skipped:
                    _link(labels, u, v)
        first, last = claim(work)
