"""Kernels of connected components on the CPU, which link trees of vertices and flatten them.

``labels[v]`` is the parent of v. It is never larger than v, so that a root is the smallest vertex of its tree.
"""

from __future__ import annotations

from collections.abc import Callable
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
STEPS = 3
"""Steps from a label towards its root before two labels are compared."""


@inline
def _link(labels, u, v):
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
def initialise(work, indptr, indices, labels, sampled):
    """Make the first neighbour of every vertex its parent if it is smaller; rows are sorted, so it is the smallest.

    ``sampled[u]`` becomes the next neighbour to link with u: the first one if it is larger, otherwise the second one.
    No other thread writes these elements, so that plain stores suffice.
    """
    n = len(labels)
    first, last = claim(work)
    while first < last:
        end = indptr[first]
        for u in range(first, last):
            prefetch(indices, indptr[min(u + ROWS_AHEAD, n)])
            begin = end
            end = indptr[u + 1]
            parent = np.uint32(u)
            other = parent
            if begin < end:
                v = indices[begin]
                other = indices[min(begin + 1, end - 1)] if v < parent else v
                parent = min(parent, v)
            labels[u] = parent
            sampled[u] = other
        first, last = claim(work)


@jit
def link_sampled(work, sampled, labels):
    """Link every vertex with its sampled neighbour."""
    first, last = claim(work)
    while first < last:
        for u in range(first, last):
            if u + VERTICES_AHEAD < last:
                prefetch(labels, sampled[u + VERTICES_AHEAD])
            p = load(labels, u)
            q = load(labels, sampled[u])
            # Trees are shallow. Climbing a fixed number of steps saves mispredicted branches: most pairs then agree.
            for _ in range(STEPS):
                p = load(labels, p)
                q = load(labels, q)
            if p != q:
                _link(labels, p, q)
        first, last = claim(work)


@jit
def compress(work, labels):
    """Flatten the trees: make every label a root."""
    first, last = claim(work)
    while first < last:
        for v in range(first, last):
            if v + VERTICES_AHEAD < last:
                prefetch(labels, load(labels, v + VERTICES_AHEAD))
            # As in link_sampled, the first step is taken without a branch.
            parent = load(labels, load(labels, v))
            grandparent = load(labels, parent)
            while parent != grandparent:
                parent = grandparent
                grandparent = load(labels, parent)
            store(labels, v, parent)
        first, last = claim(work)


@jit
def estimate_largest(work, labels, largest):
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
def link_rest(work, indptr, indices, both_ways, largest, labels):
    """Link every vertex with its neighbours from the second one, except for edges within the component ``largest[0]``.

    If edges are stored ``both_ways``, the rows of that component's vertices are skipped, because edges that leave it
    are found at their other end.
    """
    m = len(indices)
    skipped = largest[0]
    every_row = np.int64(not both_ways)
    first, last = claim(work)
    while first < last:
        for u in range(first, last):
            e = indptr[u] + 1
            end = indptr[u + 1]
            outside = np.int64(load(labels, u) ^ skipped)
            # A product instead of two conditions: whether u is isolated or in the component is hard to predict.
            if (end - e) * (outside + every_row) > 0:
                while e < end:
                    if e + VERTICES_AHEAD < m:
                        prefetch(labels, indices[e + VERTICES_AHEAD])
                    v = indices[e]
                    if outside != 0 or load(labels, v) != skipped:
                        _link(labels, u, v)
                    e += 1
        first, last = claim(work)


def phases(
    n: int, indptr: Any, indices: Any, both_ways: bool, labels: Any, empty: Callable[[int, Any], Any]
) -> list[tuple[Any, ...]]:
    """Return the phases of a search as ``(name, kernel, size, *arguments)``; ``empty`` allocates scratch memory.

    Paths are flattened before linking; otherwise a grid takes twice as long.
    """
    sampled, largest = empty(n, np.uint32), empty(1, np.uint32)
    return [
        ("initialise", initialise, n, indptr, indices, labels, sampled),
        ("compress first", compress, n, labels),
        ("link sampled", link_sampled, n, sampled, labels),
        ("compress sampled", compress, n, labels),
        ("estimate largest", estimate_largest, min(n, 1), labels, largest),
        ("link rest", link_rest, n, indptr, indices, both_ways, largest, labels),
        ("compress", compress, n, labels),
    ]
