"""Kernels of frontiers on the CPU: the forms of a set of vertices, and the output of operators.

A set is a bitmap and, where few vertices are active, a queue: an array of their numbers in any order.
"""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.library.atomics_cpu import fetch_and_add, fetch_and_or, load
from gpu_pregel.kernels.library.bits_cpu import WORD_BITS, bit, popcount, trailing_zeros
from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.library.work_cpu import claim

COUNT, EDGES = 0, 8
"""The positions in ``counters`` of the number of vertices and of the sum of their degrees, on cache lines apart."""
COUNTERS_LENGTH = 16
BUFFER = 1 << 10
"""Vertices that a thread collects before it appends them to the queue."""


@inline
def claim_bit(words, v):
    """Set the bit of a vertex; return whether it was not set."""
    if get_bit_now(words, v):
        return False
    return fetch_and_or(words, v >> 6, bit(v)) & bit(v) == np.uint64(0)


@inline
def get_bit_now(words, v):
    """Return whether a bit is set that other threads may set meanwhile."""
    return load(words, v >> 6) & bit(v) != np.uint64(0)


@inline
def flush(buffer, held, queue, counters):
    """Append the first ``held`` vertices of a buffer to the queue."""
    place = fetch_and_add(counters, COUNT, held)
    for k in range(held):
        queue[place + k] = buffer[k]


@jit
def fill_queue(work, words, queue, counters):
    """Append the vertices of a bitmap to a queue; the work items are words."""
    buffer = np.empty(BUFFER, queue.dtype)
    held = 0
    first, last = claim(work)
    while first < last:
        for word in range(first, last):
            bits = words[word]
            if bits != np.uint64(0) and held + WORD_BITS > BUFFER:
                flush(buffer, held, queue, counters)
                held = 0
            while bits != np.uint64(0):
                buffer[held] = word * WORD_BITS + trailing_zeros(bits)
                held += 1
                bits &= bits - np.uint64(1)
        first, last = claim(work)
    flush(buffer, held, queue, counters)


@jit
def count_bits(work, words, indptr, counters):
    """Count the vertices of a bitmap and their degrees."""
    vertices = 0
    edges = 0
    first, last = claim(work)
    while first < last:
        for word in range(first, last):
            bits = words[word]
            vertices += popcount(bits)
            while bits != np.uint64(0):
                v = word * WORD_BITS + trailing_zeros(bits)
                bits &= bits - np.uint64(1)
                edges += indptr[v + 1] - indptr[v]
        first, last = claim(work)
    fetch_and_add(counters, COUNT, vertices)
    fetch_and_add(counters, EDGES, edges)
