"""Kernels of connected components on CUDA, which link trees of vertices and flatten them.

``labels[v]`` is the parent of v. It is never larger than v, so that a root is the smallest vertex of its tree. Rows are
mapped to threads, warps and blocks by degree, with the limits of ECL-CC: Jayadharini Jaiganesh, Martin Burtscher: A
High-Performance Connected Components Implementation for GPUs, HPDC 2018.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda, types

from gpu_pregel.kernels.library.atomics_cuda import compare_and_swap, fetch_and_add, fetch_and_umax, fetch_and_umin
from gpu_pregel.kernels.library.hash_cuda import mix
from gpu_pregel.kernels.library.jit_cuda import BLOCK, OFFSETS, WARP, device, kernel
from gpu_pregel.kernels.library.warps_cuda import ALL, lane_number, shuffle

SAMPLES = 1024
"""Vertices sampled to estimate the largest component, as in Afforest."""
SLOTS = 2 * SAMPLES
THREAD_EDGES, WARP_EDGES = 16, 352
"""Rows of up to this many edges are linked by one thread or one warp; longer ones by a block."""

_VERTICES = types.uint32[::1]


@device
def _link(labels: Any, u: Any, v: Any) -> None:
    """Join the trees of u and v: make the smaller root the parent of the larger one, by compare-and-swap."""
    p = labels[u]
    q = labels[v]
    while p != q:
        high = max(p, q)
        low = min(p, q)
        parent = labels[high]
        if parent == high:
            parent = compare_and_swap(labels, high, high, low)
        if parent == high or parent == low:
            return
        # Move up and shorten the path for later walks (path halving).
        p = labels[parent]
        labels[high] = p
        q = labels[low]


@kernel(OFFSETS, _VERTICES, _VERTICES, _VERTICES)
def initialise(indptr: Any, indices: Any, labels: Any, sampled: Any) -> None:
    """Make the first neighbour of every vertex its parent if it is smaller; rows are sorted, so it is the smallest.

    ``sampled[u]`` becomes the next neighbour to link with u: the first one if it is larger, otherwise the second one.
    """
    u = np.uint32(cuda.grid(1))
    if u < np.uint32(len(labels)):
        parent = u
        other = u
        begin = np.uint64(indptr[u])
        end = np.uint64(indptr[u + np.uint32(1)])
        if begin < end:
            v = indices[begin]
            other = v
            if v < u:
                parent = v
                other = indices[min(begin + np.uint64(1), end - np.uint64(1))]
        labels[u] = parent
        sampled[u] = other


@kernel(_VERTICES, _VERTICES, racy=("labels",))
def link_sampled(sampled: Any, labels: Any) -> None:
    """Link every vertex with its sampled neighbour."""
    u = np.uint32(cuda.grid(1))
    if u < np.uint32(len(labels)):
        _link(labels, u, sampled[u])


@kernel(_VERTICES, racy=("labels",))
def compress(labels: Any) -> None:
    """Flatten the trees: make every label a root."""
    u = np.uint32(cuda.grid(1))
    if u >= np.uint32(len(labels)):
        return
    label = labels[u]
    if label == u:
        return
    child = u
    parent = label
    grandparent = labels[parent]
    while parent != grandparent:
        # Shorten the path on the way up, so that not every vertex of a long path walks all of it. The minimum keeps
        # a root that another thread has found in the meantime.
        fetch_and_umin(labels, child, grandparent)
        child = parent
        parent = grandparent
        grandparent = labels[parent]
    if parent != label:
        labels[u] = parent


@kernel(_VERTICES, _VERTICES, block=SAMPLES, items=1)
def estimate_largest(labels: Any, largest: Any) -> None:
    """Write the most frequent label of a sample of vertices to ``largest[0]``; has one work item."""
    counted = cuda.shared.array(SLOTS, types.uint32)
    counts = cuda.shared.array(SLOTS, types.uint32)
    best = cuda.shared.array(1, types.uint64)
    i = np.uint32(cuda.threadIdx.x)
    free = np.uint32(0xFFFFFFFF)
    for slot in range(i, SLOTS, SAMPLES):
        counted[np.uint32(slot)] = free
        counts[np.uint32(slot)] = 0
    if i == np.uint32(0):
        best[0] = 0
    cuda.syncthreads()
    # Count in a hash table twice as large as the sample.
    label = labels[np.uint32(mix(np.uint64(i)) % np.uint64(len(labels)))]
    place = np.uint32(mix(np.uint64(label)) % np.uint64(SLOTS))
    found = compare_and_swap(counted, place, free, label)
    while found != free and found != label:
        place = np.uint32((place + np.uint32(1)) % np.uint32(SLOTS))
        found = compare_and_swap(counted, place, free, label)
    count = np.uint64(fetch_and_add(counts, place, 1)) + np.uint64(1)
    # The largest count wins; among equal counts, the smallest label.
    fetch_and_umax(best, 0, (count << np.uint64(32)) | np.uint64(~label & free))
    cuda.syncthreads()
    if i == np.uint32(0):
        largest[0] = ~np.uint32(best[0] & np.uint64(free))


@kernel(OFFSETS, _VERTICES, types.boolean, _VERTICES, _VERTICES, racy=("labels",))
def link_rest(indptr: Any, indices: Any, both_ways: Any, largest: Any, labels: Any) -> None:
    """Link every vertex with its neighbours from the second one, except for edges within the component ``largest[0]``.

    If edges are stored ``both_ways``, the rows of that component's vertices are skipped, because edges that leave it
    are found at their other end.
    """
    rows = cuda.shared.array(BLOCK, types.uint32)
    waiting = cuda.shared.array(1, types.uint32)
    thread = np.uint32(cuda.threadIdx.x)
    lane = lane_number()
    if thread == np.uint32(0):
        waiting[0] = 0
    cuda.syncthreads()
    u = np.uint32(cuda.grid(1))
    begin = np.uint64(0)
    length = np.uint64(0)
    if u < np.uint32(len(labels)) and not (both_ways and labels[u] == largest[0]):
        begin = np.uint64(indptr[u]) + np.uint64(1)
        end = np.uint64(indptr[u + np.uint32(1)])
        if begin < end:
            length = end - begin
    if length <= np.uint64(THREAD_EDGES):
        for k in range(length):
            _link(labels, u, indices[begin + k])
    elif length > np.uint64(WARP_EDGES):
        rows[fetch_and_add(waiting, 0, 1)] = u
    # The whole warp links each medium row.
    medium = np.uint32(cuda.ballot_sync(ALL, length > np.uint64(THREAD_EDGES) and length <= np.uint64(WARP_EDGES)))
    while medium != np.uint32(0):
        owner = np.uint32(cuda.ffs(medium) - 1)
        medium &= np.uint32(medium - np.uint32(1))
        row = shuffle(u, owner)
        first = shuffle(begin, owner)
        for k in range(np.uint64(lane), shuffle(length, owner), np.uint64(WARP)):
            _link(labels, row, indices[first + k])
    # The whole block links each long row.
    cuda.syncthreads()
    for i in range(waiting[0]):
        row = rows[np.uint32(i)]
        for k in range(indptr[row] + 1 + thread, indptr[row + np.uint32(1)], BLOCK):
            _link(labels, row, indices[np.uint64(k)])
