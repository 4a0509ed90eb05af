"""Kernels of connected components on the CPU: trees of vertices that are hooked together and flattened.

``labels[v]`` is v's parent, never larger than v, so that a root is the smallest vertex of its tree.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.kernels.library.atomics_cpu import compare_and_swap, load, prefetch, store
from gpu_pregel.kernels.library.hash_cpu import mix
from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.library.work_cpu import claim

SAMPLES = 1024
"""Vertices looked at to estimate the largest component (Afforest's number)."""
ROWS_AHEAD = 32
VERTICES_AHEAD = 16
"""How far ahead a row, and the labels of its neighbours, are fetched: each would be a cache miss to wait for."""


@inline
def _link(labels: Any, u: Any, v: Any) -> None:
    """Put u and v into one tree: hook the larger of two roots to the smaller, by compare-and-swap."""
    p = load(labels, u)
    q = load(labels, v)
    while p != q:
        high = max(p, q)
        low = min(p, q)
        parent = load(labels, high)
        if parent == low or (parent == high and compare_and_swap(labels, high, high, low)):
            return
        # Walk up, and leave a shortcut behind for who comes after (path halving).
        p = load(labels, parent)
        store(labels, high, p)
        q = load(labels, low)


@jit
def initialise(work: Any, indptr: Any, indices: Any, labels: Any) -> None:
    """Make every vertex a tree of its own; CUDA's twin reads edges for it."""
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
            # Mostly u is still alone and its first, smallest neighbour smaller: then one swap does it.
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
    """Write the most frequent label of a sample of vertices to ``largest[0]``; work of one item."""
    first, last = claim(work)
    while first < last:
        # Count in a hash table of four times the sample's size; a slot's count is 0 while it is free.
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
    """Link every vertex with its further neighbours, but for edges inside the component ``largest[0]``.

    Where edges are stored ``both_ways``, one that leaves that component is seen from its other end, so that the rows
    of the component's vertices need not be read; otherwise they are read.
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
