"""Kernels that build and check CSR on the CPU.

Building is a counting sort in two passes. The first deals the edges out to buckets of consecutive sources, straight
into the finished ``indices``; beside them it keeps two bytes per edge, the source's number within its bucket. The
second sorts each bucket while it is in cache: by destination, digit after digit, then by source.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.kernels.library.hash_cpu import mix
from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.library.work_cpu import claim

DIGIT_BITS = 11
"""Widest digit of the radix sort within a bucket: 2,048 counters stay in the first-level cache."""


@jit
def count_buckets(work: Any, src: Any, dst: Any, symmetric: Any, keep_loops: Any, shift: Any, counts: Any) -> None:
    """Count the stored edges of each bucket, one row of ``counts`` for each part of the input."""
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
def deal_to_buckets(
    work: Any,
    src: Any,
    dst: Any,
    weight: Any,
    symmetric: Any,
    keep_loops: Any,
    shift: Any,
    positions: Any,
    indices: Any,
    weights: Any,
    local: Any,
) -> None:
    """Put each stored edge into its bucket; ``positions`` has a row of next places for each part of the input."""
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
def _sort_by_digit(
    keys: Any, order: Any, size: Any, shift: Any, bits: Any, out: Any, out_order: Any, count: Any
) -> Any:
    """Stable counting sort of ``keys`` by the ``bits`` above ``shift``; ``order``, if any, moves along."""
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


@jit
def sort_buckets(
    work: Any,
    starts: Any,
    shift: Any,
    id_bits: Any,
    drop_duplicates: Any,
    largest: Any,
    local: Any,
    indices: Any,
    weights: Any,
    degrees: Any,
    kept: Any,
) -> None:
    """Sort each bucket by (source, destination, weight) in place, drop repeated edges if asked, count the degrees.

    ``starts[b]`` is where bucket b begins, ``kept[b]`` becomes the number of its edges that remain, at its front.
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
        for i in range(size):
            keys[i] = (np.uint64(local[begin + i]) << np.uint64(32)) | np.uint64(indices[begin + i])
            if weights is not None:
                order[i] = i
        for digit in range(passes):
            _sort_by_digit(keys, order, size, digit * bits, bits, spare, spare_order, count)
            keys, spare = spare, keys
            if weights is not None:
                order, spare_order = spare_order, order
        _sort_by_digit(keys, order, size, 32, shift, spare, spare_order, count)

        if weights is not None:
            for i in range(size):
                moved[i] = weights[begin + spare_order[i]]
            run = 0
            for i in range(1, size + 1):
                if i == size or spare[i] != spare[run]:
                    if i - run > 1:
                        moved[run:i].sort()
                    run = i

        first_vertex = bucket << shift
        for u in range(first_vertex, min(first_vertex + (1 << shift), n)):
            degrees[u] = 0
        place = begin
        for i in range(size):
            if drop_duplicates and i > 0 and spare[i] == spare[i - 1]:
                continue
            indices[place] = np.uint32(spare[i])
            if weights is not None:
                weights[place] = moved[i]
            degrees[first_vertex + np.int64(spare[i] >> np.uint64(32))] += 1
            place += 1
        kept[bucket] = place - begin
        bucket, last = claim(work)


@jit
def expand_sources(work: Any, indptr: Any, src: Any) -> None:
    """Write the source of every stored edge: ``src[indptr[u]:indptr[u + 1]] = u``."""
    first, last = claim(work)
    while first < last:
        for u in range(first, last):
            for e in range(indptr[u], indptr[u + 1]):
                src[e] = u
        first, last = claim(work)


@jit
def check_rows(work: Any, indptr: Any, indices: Any, weights: Any, weight_bits: Any, faults: Any, hashes: Any) -> None:
    """Look through a CSR for faults, one row of ``faults`` and ``hashes`` per chunk of vertices.

    ``faults``: first vertex whose row ends before it begins or outside ``indices``, first vertex with a neighbour
    at or beyond n, first vertex whose row is not sorted by (destination, weight); n where there is none.
    ``hashes``: sum over the edges of a hash of (u, v, weight), and of (v, u, weight): equal if, but for an accident
    of one in 2^64, every edge is there in both directions.
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
                if e > begin:
                    before = indices[e - 1]
                    if before > v:
                        unsorted = min(unsorted, u)
                    elif weights is not None and before == v and weights[e - 1] > weights[e]:
                        unsorted = min(unsorted, u)
                salt = np.uint64(0)
                if weights is not None:
                    salt = mix(np.uint64(weight_bits[e]) + np.uint64(0x9E3779B97F4A7C15))
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
