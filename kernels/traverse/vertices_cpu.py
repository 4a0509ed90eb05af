"""The kernels of ``process_vertices`` on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.kernels.library.atomics_cpu import fetch_and_add, fetch_and_or
from gpu_pregel.kernels.library.bits_cpu import WORD_BITS, bit, popcount, trailing_zeros
from gpu_pregel.kernels.library.ranges_cpu import claim_range, join
from gpu_pregel.kernels.traverse.frontier_cpu import BUFFER, COUNT, EDGES, flush

ITEM = WORD_BITS
"""Vertices of a work item: a word of a bitmap, or as many entries of a queue; each has its element of ``sums``."""
ALL = ~np.uint64(0)


def make_sum_of_words(body: Any, *, zero: Any) -> Any:
    """Return the kernel that sums ``body`` over a bitmap's vertices, or all; work items are words."""

    def sum_of_words(work, words, every, n, arrays, sums):
        line = join(work)
        first, last = claim_range(work, line)
        while first < last:
            for word in range(first, last):
                total = zero
                bits = ALL if every else words[word]
                if bits == ALL:
                    for v in range(word * WORD_BITS, min(n, (word + 1) * WORD_BITS)):
                        total += body(v, *arrays)
                    bits = np.uint64(0)
                while bits != np.uint64(0):
                    total += body(word * WORD_BITS + trailing_zeros(bits), *arrays)
                    bits &= bits - np.uint64(1)
                sums[word] = total
            first, last = claim_range(work, line)

    return sum_of_words


def make_sum_of_queue(body: Any, *, zero: Any) -> Any:
    """Return the kernel that sums ``body`` over a queue's vertices; work items are blocks of entries."""

    def sum_of_queue(work, queue, size, arrays, sums):
        line = join(work)
        first, last = claim_range(work, line)
        while first < last:
            for block in range(first, last):
                total = zero
                for k in range(block * ITEM, min(size, (block + 1) * ITEM)):
                    total += body(np.int64(queue[k]), *arrays)
                sums[block] = total
            first, last = claim_range(work, line)

    return sum_of_queue


def make_filter_of_words(body: Any) -> Any:
    """Return the kernel that keeps a bitmap's vertices, or all, for which ``body`` is true; work items are words."""

    def filter_of_words(work, words, every, out_degrees, arrays, found, counters):
        n = len(out_degrees) - 1
        vertices = 0
        edges = 0
        line = join(work)
        first, last = claim_range(work, line)
        while first < last:
            for word in range(first, last):
                bits = ALL if every else words[word]
                if word == n // WORD_BITS:
                    bits &= bit(n) - np.uint64(1)
                kept = np.uint64(0)
                while bits != np.uint64(0):
                    v = word * WORD_BITS + trailing_zeros(bits)
                    bits &= bits - np.uint64(1)
                    if body(v, *arrays):
                        kept |= bit(v)
                        edges += out_degrees[v + 1] - out_degrees[v]
                found[word] = kept
                vertices += popcount(kept)
            first, last = claim_range(work, line)
        fetch_and_add(counters, COUNT, vertices)
        fetch_and_add(counters, EDGES, edges)

    return filter_of_words


def make_filter_of_queue(body: Any) -> Any:
    """Return the kernel that keeps a queue's vertices for which ``body`` is true; work items are blocks of entries."""

    def filter_of_queue(work, queue, size, out_degrees, arrays, found, found_queue, counters):
        buffer = np.empty(BUFFER, found_queue.dtype)
        held = 0
        edges = 0
        line = join(work)
        first, last = claim_range(work, line)
        while first < last:
            for k in range(first * ITEM, min(size, last * ITEM)):
                v = np.int64(queue[k])
                if body(v, *arrays):
                    fetch_and_or(found, v >> 6, bit(v))
                    if held == BUFFER:
                        flush(buffer, held, found_queue, counters)
                        held = 0
                    buffer[held] = v
                    held += 1
                    edges += out_degrees[v + 1] - out_degrees[v]
            first, last = claim_range(work, line)
        if held > 0:
            flush(buffer, held, found_queue, counters)
            fetch_and_add(counters, EDGES, edges)

    return filter_of_queue
