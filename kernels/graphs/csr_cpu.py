"""Kernels that build and check CSR on the CPU.

A CSR is built by a counting sort in two passes. The first pass distributes the edges to buckets of consecutive
sources, in place in the final ``indices``, with two more bytes per edge for the source's number within its bucket. The
second pass sorts each bucket within the cache: by destination, digit by digit, then by source.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.kernels.graphs.combine_cpu import KEEP, combine_run
from gpu_pregel.kernels.library.hash_cpu import mix
from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.library.work_cpu import claim

DIGIT_BITS = 11
"""Widest digit of the radix sort within a bucket: its 2,048 counters fit into the first-level cache."""


@jit
def count_buckets(work, src, dst, symmetric, keep_loops, shift, counts):
    """Count the stored edges of each bucket; ``counts`` has one row for each part of the input."""
    m = len(src)
    parts = len(counts)
    part, last = claim(work)
    while part < last:
        row = counts[part]
        for e in range(m * part // parts, m * (part + 1) // parts):
            u = src[e]
            v = dst[e]
            if u != v:
                row[u >> shift] += 1
                if symmetric:
                    row[v >> shift] += 1
            elif keep_loops:
                row[u >> shift] += 1
        part, last = claim(work)


@jit
def deal_to_buckets(work, src, dst, weight, symmetric, keep_loops, shift, positions, indices, weights, local):
    """Move each stored edge to its bucket; ``positions`` has a row of next positions for each part of the input."""
    m = len(src)
    parts = len(positions)
    mask = (1 << shift) - 1
    part, last = claim(work)
    while part < last:
        row = positions[part]
        for e in range(m * part // parts, m * (part + 1) // parts):
            u = src[e]
            v = dst[e]
            if u != v or keep_loops:
                bucket = u >> shift
                place = row[bucket]
                row[bucket] = place + 1
                indices[place] = v
                local[place] = u & mask
                if weight is not None:
                    weights[place] = weight[e]
            if symmetric and u != v:
                bucket = v >> shift
                place = row[bucket]
                row[bucket] = place + 1
                indices[place] = u
                local[place] = v & mask
                if weight is not None:
                    weights[place] = weight[e]
        part, last = claim(work)


@inline
def _sort_by_digit(keys, order, size, shift, bits, out, out_order, count):
    """Sort ``keys``, and ``order`` if it is given, by the ``bits`` above ``shift``; a stable counting sort."""
    mask = np.uint64((1 << bits) - 1)
    low = np.uint64(shift)
    count[: 1 << bits] = 0
    for i in range(size):
        count[np.int64((keys[i] >> low) & mask)] += 1
    total = 0
    for value in range(1 << bits):
        here = count[value]
        count[value] = total
        total += here
    for i in range(size):
        digit = np.int64((keys[i] >> low) & mask)
        place = count[digit]
        count[digit] = place + 1
        out[place] = keys[i]
        if order is not None:
            out_order[place] = order[i]


@inline
def _load_keys(local, indices, begin, size, keys, order):
    """Write the keys of a bucket's edges: the source's number within the bucket above the destination."""
    for i in range(size):
        keys[i] = (np.uint64(local[begin + i]) << np.uint64(32)) | np.uint64(indices[begin + i])
        if order is not None:
            order[i] = i


@inline
def _sort(values, begin, end):
    """Sort ``values[begin:end]`` in place, short ranges stably: Numba's own sort takes ten times as long to compile."""
    size = end - begin
    if size <= 16:
        for i in range(begin + 1, end):
            value = values[i]
            place = i
            while place > begin and values[place - 1] > value:
                values[place] = values[place - 1]
                place -= 1
            values[place] = value
        return
    for step in range(size + size // 2):
        # The first steps build the heap; each of the others moves the largest value behind it.
        place = max(size // 2 - 1 - step, 0)
        count = min(size, size + size // 2 - 1 - step)
        value = values[begin + place]
        if count < size:
            value = values[begin + count]
            values[begin + count] = values[begin]
        child = 2 * place + 1
        while child < count:
            other = child + 1
            if other < count and values[begin + child] < values[begin + other]:
                child = other
            if values[begin + child] <= value:
                break
            values[begin + place] = values[begin + child]
            place = child
            child = 2 * place + 1
        values[begin + place] = value


@inline
def _load_weights(weights, begin, size, keys, order, combine, limits, moved):
    """Copy a bucket's weights in the order of its sorted ``keys``; those of equal keys ascend, or are combined.

    Equal keys are in the order of the input. Return the first of those whose weights do not add up, or -1.
    """
    for i in range(size):
        moved[i] = weights[begin + order[i]]
    fault = np.int64(-1)
    run = 0
    for i in range(1, size + 1):
        if i == size or keys[i] != keys[run]:
            if i - run > 1 and combine == KEEP:
                _sort(moved, run, i)
            elif i - run > 1 and not combine_run(moved, run, i, combine, limits, moved, run) and fault < 0:
                fault = np.int64(keys[run])
            run = i
    return fault


@inline
def _store_edges(keys, moved, begin, size, combine, indices, weights, first_vertex, degrees):
    """Write a bucket's sorted edges back and count them by source; return how many were kept."""
    place = begin
    for i in range(size):
        if combine != KEEP and i > 0 and keys[i] == keys[i - 1]:
            continue
        indices[place] = np.uint32(keys[i])
        if weights is not None:
            weights[place] = moved[i]
        degrees[first_vertex + np.int64(keys[i] >> np.uint64(32))] += 1
        place += 1
    return place - begin


@jit
def sort_buckets(
    work, starts, shift, id_bits, combine, limits, largest, local, indices, weights, degrees, kept, faults
):
    """Sort each bucket by (source, destination, weight) in place, combine parallel edges if asked, count the degrees.

    Bucket b begins at ``starts[b]``; its first ``kept[b]`` edges remain. ``faults[b]`` becomes the key of parallel
    edges whose sum is beyond ``limits``, or -1.
    """
    n = len(degrees)
    passes = (id_bits + DIGIT_BITS - 1) // DIGIT_BITS
    bits = (id_bits + passes - 1) // passes
    keys = np.empty(largest, np.uint64)
    spare = np.empty(largest, np.uint64)
    count = np.empty(max(1 << bits, 1 << shift), np.int64)
    order: Any
    spare_order: Any
    moved: Any
    if weights is not None:
        order = np.empty(largest, np.uint32)
        spare_order = np.empty(largest, np.uint32)
        moved = np.empty(largest, weights.dtype)
    else:
        order = spare_order = moved = None
    bucket, last = claim(work)
    while bucket < last:
        begin = starts[bucket]
        size = starts[bucket + 1] - begin
        _load_keys(local, indices, begin, size, keys, order)
        for digit in range(passes):
            _sort_by_digit(keys, order, size, digit * bits, bits, spare, spare_order, count)
            keys, spare = spare, keys
            if weights is not None:
                order, spare_order = spare_order, order
        _sort_by_digit(keys, order, size, 32, shift, spare, spare_order, count)
        faults[bucket] = -1
        if weights is not None:
            faults[bucket] = _load_weights(weights, begin, size, spare, spare_order, combine, limits, moved)
        first_vertex = bucket << shift
        for u in range(first_vertex, min(first_vertex + (1 << shift), n)):
            degrees[u] = 0
        kept[bucket] = _store_edges(spare, moved, begin, size, combine, indices, weights, first_vertex, degrees)
        bucket, last = claim(work)


@jit
def expand_sources(work, indptr, src):
    """Write the source of every stored edge: ``src[indptr[u]:indptr[u + 1]] = u``."""
    first, last = claim(work)
    while first < last:
        for u in range(first, last):
            for e in range(indptr[u], indptr[u + 1]):
                src[e] = u
        first, last = claim(work)


@inline
def _is_sorted_at(indices, weights, e):
    """Whether stored edge ``e`` follows the one before it in the order of (destination, weight)."""
    if indices[e - 1] != indices[e]:
        return indices[e - 1] < indices[e]
    return weights is None or not weights[e - 1] > weights[e]


@inline
def _hash_weight(weight_bits, e):
    """A hash of the edge's weight; 0 in a graph without weights."""
    if weight_bits is None:
        return np.uint64(0)
    return mix(np.uint64(weight_bits[e]) + np.uint64(0x9E3779B97F4A7C15))


@jit
def check_rows(work, indptr, indices, weights, weight_bits, faults, hashes):
    """Check the rows of a CSR; writes one row of ``faults`` and ``hashes`` per chunk of vertices.

    ``faults``: first vertex whose row ends before it begins or outside ``indices``, first vertex with a neighbour
    at or beyond n, first vertex whose row is not sorted by (destination, weight); n if there is none.
    ``hashes``: the sum over all edges of a hash of (u, v, weight), and of (v, u, weight). They are equal if every
    edge is stored in both directions, and otherwise with a probability of 1 in 2^64.
    """
    n = len(indptr) - 1
    chunk = work[2]
    first, last = claim(work)
    while first < last:
        decreasing = n
        outside = n
        unsorted = n
        forward = np.uint64(0)
        backward = np.uint64(0)
        for u in range(first, last):
            begin = indptr[u]
            end = indptr[u + 1]
            if begin < 0 or end < begin or end > len(indices):
                decreasing = min(decreasing, u)
                break
            for e in range(begin, end):
                v = indices[e]
                if v >= n:
                    outside = min(outside, u)
                    break
                if e > begin and not _is_sorted_at(indices, weights, e):
                    unsorted = min(unsorted, u)
                salt = _hash_weight(weight_bits, e)
                low = np.uint64(u)
                high = np.uint64(v)
                forward += mix(((low << np.uint64(32)) | high) ^ salt)
                backward += mix(((high << np.uint64(32)) | low) ^ salt)
        faults[first // chunk, 0] = decreasing
        faults[first // chunk, 1] = outside
        faults[first // chunk, 2] = unsorted
        hashes[first // chunk, 0] = forward
        hashes[first // chunk, 1] = backward
        first, last = claim(work)
