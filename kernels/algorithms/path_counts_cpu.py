"""Searches of betweenness centrality in one thread on the CPU, level by level, from a source and back.

All sums are pulled in the order of rows, so that they do not depend on threads. They need no distances: ``paths`` is 0
for vertices that are not reached yet, and so is ``ratios``, (1 + dependency) / paths, for those that the way back has
not reached. A level is therefore summed first, into ``sums``, and settled afterwards.

``queue`` has the reached vertices in the order of their levels; level d is ``queue[levels[d]:levels[d + 1]]``.
``state`` is described by its indices below. If ``wide``, counts of paths may exceed the range of float64: they are
``paths`` times the ``scales``-th power of 2**512. A search becomes wide when a count exceeds ``LIMIT``.
"""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.algorithms.blocks_cpu import EDGES_AHEAD
from gpu_pregel.kernels.library.atomics_cpu import load, prefetch
from gpu_pregel.kernels.library.bits_cpu import bit
from gpu_pregel.kernels.library.jit_cpu import always_inline, inline, jit
from gpu_pregel.kernels.library.work_cpu import claim

DEPTH, TAIL, OUT_EDGES, IN_EDGES, UNSEEN, WIDE, OVERFLOW, STATE = 0, 1, 2, 3, 4, 5, 6, 8
"""The last level; the length of the queue; that level's out-edges and in-edges; the in-edges of unreached vertices;
whether the counts have scales, and whether one exceeds ``LIMIT`` and they need them; the length of ``state``."""
ROWS_AHEAD = 8
LIMIT = 1e290
HALF_STEP, STEP_DOWN = 2.0**256, 2.0**-512
"""``paths`` are below ``HALF_STEP`` if ``wide``, and at least its inverse; one scale less is ``STEP_DOWN`` as much."""


@always_inline
def sum_paths(in_indptr, in_indices, paths, scales, wide, v):
    """Return the number of shortest paths to v, the sum of those to the in-neighbours that are reached."""
    begin = in_indptr[v]
    end = in_indptr[v + 1]
    sum0 = sum1 = sum2 = sum3 = 0.0
    if wide:
        scale = np.int32(-1)
        for e in range(begin, end):
            u = load(in_indices, e)
            if paths[u] > 0.0:
                scale = max(scale, scales[u])
        if scale < 0:
            return 0.0
        for e in range(begin, end):
            u = load(in_indices, e)
            if scales[u] == scale:
                sum0 += paths[u]
            elif scales[u] == scale - 1:
                sum1 += paths[u]
        sum0 += sum1 * STEP_DOWN
        if sum0 >= HALF_STEP:
            sum0 *= STEP_DOWN
            scale += np.int32(1)
        scales[v] = scale
        return sum0
    stop = end - ((end - begin) & 3)
    while begin < stop:
        prefetch(in_indices, begin + EDGES_AHEAD)
        sum0 += paths[load(in_indices, begin)]
        sum1 += paths[load(in_indices, begin + 1)]
        sum2 += paths[load(in_indices, begin + 2)]
        sum3 += paths[load(in_indices, begin + 3)]
        begin += 4
    while begin < end:
        sum0 += paths[load(in_indices, begin)]
        begin += 1
    return (sum0 + sum1) + (sum2 + sum3)


@always_inline
def sum_ratios(indptr, indices, paths, scales, ratios, edges, wide, u):
    """Return the dependency of the source on u: over its out-edges, paths of u / paths of v * (1 + dependency of v).

    Unless ``edges`` is empty, each summand is added to that of its edge.
    """
    begin = indptr[u]
    end = indptr[u + 1]
    own = paths[u]
    sum0 = sum1 = sum2 = sum3 = 0.0
    if wide or len(edges) > 0:
        for e in range(begin, end):
            v = load(indices, e)
            if ratios[v] > 0.0:
                part = ratios[v] * own
                if wide and scales[v] > scales[u]:
                    part = part * STEP_DOWN if scales[v] == scales[u] + 1 else 0.0
                if len(edges) > 0:
                    edges[e] += part
                sum0 += part
        return sum0
    stop = end - ((end - begin) & 3)
    while begin < stop:
        prefetch(indices, begin + EDGES_AHEAD)
        sum0 += ratios[load(indices, begin)]
        sum1 += ratios[load(indices, begin + 1)]
        sum2 += ratios[load(indices, begin + 2)]
        sum3 += ratios[load(indices, begin + 3)]
        begin += 4
    while begin < end:
        sum0 += ratios[load(indices, begin)]
        begin += 1
    return own * ((sum0 + sum1) + (sum2 + sum3))


# Levels of few edges, in a single thread.


@inline
def widen(paths, scales, v):
    """Give the count of a reached vertex a scale."""
    scale = 0
    while paths[v] >= HALF_STEP:
        paths[v] *= STEP_DOWN
        scale += 1
    scales[v] = scale


@inline
def search_small(indptr, indices, in_indptr, in_indices, limit, seen, queue, levels, state, paths, scales, sums):
    """Search level after level until one has more than ``limit`` edges, or no vertex is found."""
    depth = state[DEPTH]
    while levels[depth] < levels[depth + 1] and state[OUT_EDGES] <= limit:
        found = levels[depth + 1]
        tail = found
        out_edges = 0
        in_edges = 0
        for i in range(levels[depth], found):
            if i + ROWS_AHEAD < found:
                prefetch(indices, indptr[queue[i + ROWS_AHEAD]])
            u = queue[i]
            for e in range(indptr[u], indptr[u + 1]):
                v = np.int64(indices[e])
                if seen[v >> 6] & bit(v) == np.uint64(0):
                    seen[v >> 6] |= bit(v)
                    queue[tail] = v
                    tail += 1
                    out_edges += indptr[v + 1] - indptr[v]
                    in_edges += in_indptr[v + 1] - in_indptr[v]
        depth += 1
        levels[depth + 1] = tail
        state[DEPTH] = depth
        state[TAIL] = tail
        state[OUT_EDGES] = out_edges
        state[IN_EDGES] = in_edges
        state[UNSEEN] -= in_edges
        if in_edges > limit:
            return
        wide = state[WIDE] != 0
        for i in range(found, tail):
            if i + ROWS_AHEAD < tail:
                prefetch(in_indices, in_indptr[queue[i + ROWS_AHEAD]])
            sums[queue[i]] = sum_paths(in_indptr, in_indices, paths, scales, wide, np.int64(queue[i]))
        largest = 0.0
        for i in range(found, tail):
            v = queue[i]
            paths[v] = sums[v]
            largest = max(largest, sums[v])
        if not wide and largest > LIMIT:
            for i in range(tail):
                widen(paths, scales, np.int64(queue[i]))
            state[WIDE] = 1
        state[IN_EDGES] = 0


@inline
def return_small(indptr, indices, limit, queue, levels, state, paths, scales, ratios, sums, extra, scores, edges):
    """Go back level after level, to the source, until one has more than ``limit`` vertices.

    A reached vertex scores its dependency plus ``extra``, the source ``extra`` for each other vertex.
    """
    depth = state[DEPTH]
    wide = state[WIDE] != 0
    while depth > 0 and levels[depth + 1] - levels[depth] <= limit:
        end = levels[depth + 1]
        for i in range(levels[depth], end):
            sums[queue[i]] = sum_ratios(indptr, indices, paths, scales, ratios, edges, wide, np.int64(queue[i]))
        for i in range(levels[depth], end):
            u = queue[i]
            ratios[u] = (1.0 + sums[u]) / paths[u]
            scores[u] += sums[u] + extra
        depth -= 1
    if depth == 0:
        source = np.int64(queue[0])
        scores[source] += extra * (state[TAIL] - 1)
        if len(edges) > 0:
            sum_ratios(indptr, indices, paths, scales, ratios, edges, wide, source)
    state[DEPTH] = depth


@inline
def start(indptr, in_indices, source, seen, queue, levels, state, paths, scales):
    """Make the source the only reached vertex."""
    seen[source >> 6] |= bit(source)
    queue[0] = source
    levels[0] = 0
    levels[1] = 1
    state[DEPTH] = 0
    state[TAIL] = 1
    state[OUT_EDGES] = indptr[source + 1] - indptr[source]
    state[IN_EDGES] = 0
    state[UNSEEN] = len(in_indices)
    state[WIDE] = 0
    state[OVERFLOW] = 0
    paths[source] = 1.0
    scales[source] = 0


@inline
def clear(seen, queue, state, paths, ratios):
    """Forget the reached vertices."""
    for i in range(state[TAIL]):
        v = np.int64(queue[i])
        seen[v >> 6] = np.uint64(0)
        paths[v] = 0.0
        ratios[v] = 0.0


@jit
def begin_search(work, indptr, in_indices, source, seen, queue, levels, state, paths, scales):
    """Start from a source; has one work item."""
    first, last = claim(work)
    while first < last:
        start(indptr, in_indices, source, seen, queue, levels, state, paths, scales)
        first, last = claim(work)


@jit
def search_levels(work, indptr, indices, in_indptr, in_indices, limit, seen, queue, levels, state, paths, scales, sums):
    """Search small levels; has one work item."""
    first, last = claim(work)
    while first < last:
        search_small(indptr, indices, in_indptr, in_indices, limit, seen, queue, levels, state, paths, scales, sums)
        first, last = claim(work)


@jit
def return_levels(
    work, indptr, indices, limit, queue, levels, state, paths, scales, ratios, sums, extra, scores, edges
):
    """Go back through small levels; has one work item."""
    first, last = claim(work)
    while first < last:
        return_small(indptr, indices, limit, queue, levels, state, paths, scales, ratios, sums, extra, scores, edges)
        first, last = claim(work)


@jit
def search_blocks(
    work,
    indptr,
    indices,
    in_indptr,
    in_indices,
    sources,
    blocks,
    seen,
    queue,
    levels,
    state,
    paths,
    scales,
    ratios,
    sums,
    extra,
    scores,
    edges,
):
    """Search from all sources; each item is a block of them, which has its row of every array."""
    limit = np.int64(1) << 62
    block, last_block = claim(work)
    while block < last_block:
        for k in range(len(sources) * block // blocks, len(sources) * (block + 1) // blocks):
            start(
                indptr,
                in_indices,
                sources[k],
                seen[block],
                queue[block],
                levels[block],
                state[block],
                paths[block],
                scales[block],
            )
            search_small(
                indptr,
                indices,
                in_indptr,
                in_indices,
                limit,
                seen[block],
                queue[block],
                levels[block],
                state[block],
                paths[block],
                scales[block],
                sums[block],
            )
            return_small(
                indptr,
                indices,
                limit,
                queue[block],
                levels[block],
                state[block],
                paths[block],
                scales[block],
                ratios[block],
                sums[block],
                extra,
                scores[block],
                edges[block],
            )
            clear(seen[block], queue[block], state[block], paths[block], ratios[block])
        block, last_block = claim(work)
