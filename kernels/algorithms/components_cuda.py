"""Kernels of connected components on CUDA, which link trees of vertices and flatten them.

``labels[v]`` is the parent of v. It is never larger than v, so that a root is the smallest vertex of its tree. Rows are
mapped to threads, warps and blocks by degree, with the limits of ECL-CC: Jayadharini Jaiganesh, Martin Burtscher: A
High-Performance Connected Components Implementation for GPUs, HPDC 2018.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpu_pregel.kernels.library.atomics_cuda import compare_and_swap, fetch_and_add, fetch_and_umin, store_relaxed
from gpu_pregel.kernels.library.compiler_cuda import cuda, types
from gpu_pregel.kernels.library.hash_cuda import mix
from gpu_pregel.kernels.library.jit_cuda import BLOCK, OFFSETS, WARP, device, kernel
from gpu_pregel.kernels.library.loads_cuda import load_once
from gpu_pregel.kernels.library.warps_cuda import ALL, lane_number, shuffle

FEW_EDGES = 4
"""Edges that one thread links of a long row whose other end may be known; most vertices join the largest component."""
THREAD_EDGES, WARP_EDGES = 16, 352
"""Rows of up to this many edges are linked by one thread or one warp; longer ones by a block."""
SAMPLE_STEPS = 1
"""Steps from the end of a sampled edge towards the root of its tree, each of which waits for memory twice. More of them
do not save memory traffic later. On four graphs of two or three components, 2 steps and 1 step found the largest one at
rates of 0.889 and 0.832, 0.463 and 0.495, 0.652 and 0.674, 0.517 and 0.496."""
CANDIDATES = 4
"""Lanes whose walks' ends may be chosen."""

_VERTICES = types.uint32[::1]


@device
def _find(labels, v):
    """Return the root of v, and shorten the path to it (path halving)."""
    parent = labels[v]
    if parent != v:
        above = labels[parent]
        while parent != above:
            store_relaxed(labels, v, above)
            v = parent
            parent = above
            above = labels[parent]
    return parent


@device
def _link(labels, p, q):
    """Join the trees of p and q: make the smaller root the parent of the larger one, by compare-and-swap.

    Returned is the smaller vertex at which both paths met.
    """
    q = labels[q]
    while p != q:
        high = max(p, q)
        low = min(p, q)
        parent = labels[high]
        if parent == high:
            parent = compare_and_swap(labels, high, high, low)
        if parent == high or parent == low:
            return low
        # Move up and shorten the path for later walks (path halving).
        p = labels[parent]
        store_relaxed(labels, high, p)
        q = labels[low]
    return p


@device
def _sample(indptr, indices, first):
    """Return a vertex that is likely to be in the component with the most edges; all lanes of a warp must call this.

    Each lane walks from the end of an edge to the smallest neighbour, and so on; ``first`` is the position of the first
    edge. Returned is the end of most walks, among the ends of the first lanes' walks.
    """
    lane, count = lane_number(), np.uint64(len(indices))
    # A fraction of 24 bits times the number of edges, which is much quicker than a remainder.
    v = indices[first + ((mix(np.uint64(lane)) >> np.uint64(40)) * count >> np.uint64(24))]
    for _ in range(SAMPLE_STEPS):
        begin = np.uint64(indptr[v])
        if begin < np.uint64(indptr[v + np.uint32(1)]):
            v = min(v, indices[begin])
    best, most = v, 0
    for k in range(CANDIDATES):
        other = shuffle(v, k)
        same = cuda.popc(np.uint32(cuda.ballot_sync(ALL, v == other)))
        if same > most:
            best, most = other, same
    return best


@kernel(OFFSETS, _VERTICES, _VERTICES, _VERTICES)
def initialise(indptr, indices, labels, largest):
    """Make the first neighbour of every vertex its parent if it is smaller; rows are sorted, so it is the smallest.

    ``largest[0]`` becomes a vertex of a large component.
    """
    u, lane, n = np.uint32(cuda.grid(1)), lane_number(), np.uint32(len(labels))
    begin = indptr[min(u, n)]
    end = shuffle(begin, np.uint32(lane + np.uint32(1)))
    if lane == np.uint32(WARP - 1):
        end = indptr[min(np.uint32(u + np.uint32(1)), n)]
    if u < n:
        parent = u
        if begin < end:
            parent = min(u, indices[np.uint64(begin)])
        labels[u] = parent
    if u < np.uint32(WARP) and len(indices) > 0:
        giant = _sample(indptr, indices, shuffle(np.uint64(begin), 0))
        if lane == np.uint32(0):
            largest[0] = giant


@kernel(_VERTICES, relaxed=("labels",))
def compress(labels):
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
        store_relaxed(labels, u, parent)


@kernel(OFFSETS, _VERTICES, types.boolean, _VERTICES, _VERTICES, relaxed=("labels",))
def link(indptr, indices, both_ways, largest, labels):
    """Link every vertex with its neighbours.

    If edges are stored ``both_ways``, a row is left once its vertex is in the component of ``largest[0]``, because
    edges that leave that component are found at their other end.
    """
    rows = cuda.shared.array(BLOCK, types.uint32)
    waiting = cuda.shared.array(1, types.uint32)
    roots = cuda.shared.array(1, types.uint32)
    thread, lane = np.uint32(cuda.threadIdx.x), lane_number()
    u, n = np.uint32(cuda.grid(1)), np.uint32(len(labels))
    if thread == np.uint32(0):
        waiting[0] = 0
        roots[0] = 0
        if both_ways and len(indices) > 0:
            # One walk for all threads; later walks begin here.
            roots[0] = _find(labels, largest[0])
    begin, length, root = np.uint64(0), np.uint64(0), u
    if u < n:
        begin, end = np.uint64(indptr[u]), np.uint64(indptr[u + np.uint32(1)])
        length = end - begin
    if length > np.uint64(0):
        root = _find(labels, u)
    cuda.syncthreads()
    giant = roots[0]
    if length > np.uint64(0):
        if both_ways and root == _find(labels, giant):
            length = np.uint64(0)
        elif indices[begin] < u:
            # A smaller first neighbour is the parent already.
            begin += np.uint64(1)
            length -= np.uint64(1)
    quota = length
    if length > np.uint64(THREAD_EDGES):
        quota = np.uint64(FEW_EDGES) if both_ways else np.uint64(0)
    k = np.uint64(0)
    while k < quota:
        root = _link(labels, root, indices[begin + k])
        k += np.uint64(1)
        if both_ways and k < length and _find(labels, root) == _find(labels, giant):
            quota = np.uint64(0)
            length = k
    begin += k
    length -= k
    if length > np.uint64(WARP_EDGES):
        rows[fetch_and_add(waiting, 0, 1)] = u
    # The whole warp links each medium row.
    medium = np.uint32(cuda.ballot_sync(ALL, length > np.uint64(0) and length <= np.uint64(WARP_EDGES)))
    while medium != np.uint32(0):
        owner = np.uint32(cuda.ffs(medium) - 1)
        medium &= np.uint32(medium - np.uint32(1))
        row, first, last = shuffle(u, owner), shuffle(begin, owner), shuffle(length, owner)
        k = np.uint64(lane)
        while k < last:
            _link(labels, _find(labels, row), load_once(indices, first + k))
            k += np.uint64(WARP)
            if both_ways and k < last and _find(labels, row) == _find(labels, giant):
                k = last
    # The whole block links each long row, of which one thread has linked the first edges.
    cuda.syncthreads()
    first = np.uint64(thread)
    if both_ways:
        first += np.uint64(FEW_EDGES)
    for i in range(waiting[0]):
        row = rows[np.uint32(i)]
        e, last = np.uint64(indptr[row]) + first, np.uint64(indptr[row + np.uint32(1)])
        while e < last:
            _link(labels, _find(labels, row), load_once(indices, e))
            e += np.uint64(BLOCK)
            if both_ways and e < last and _find(labels, row) == _find(labels, giant):
                e = last


def phases(
    n: int, indptr: Any, indices: Any, both_ways: bool, labels: Any, empty: Callable[[int, Any], Any]
) -> list[tuple[Any, ...]]:
    """Return the phases of a search as ``(name, kernel, size, *arguments)``; ``empty`` allocates scratch memory."""
    largest = empty(1, np.uint32)
    return [
        ("initialise", initialise, n, indptr, indices, labels, largest),
        ("link", link, n, indptr, indices, both_ways, largest, labels),
        ("compress", compress, n, labels),
    ]
