"""The kernels of ``process_edges`` on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.kernels.library.atomics_cpu import fetch_and_add
from gpu_pregel.kernels.library.bits_cpu import WORD_BITS, bit, get_bit, popcount
from gpu_pregel.kernels.library.jit_cpu import device
from gpu_pregel.kernels.library.work_cpu import claim
from gpu_pregel.kernels.traverse.fields import make_weight
from gpu_pregel.kernels.traverse.frontier_cpu import BUFFER, COUNT, EDGES, claim_bit, flush

ITEMS_PER_SUM = 64
"""Queue entries whose results are added to one element of ``sums``, in order."""


def make_push(body: Any, receives: Any, *, has_weights: bool) -> Any:
    """Return the kernel that calls ``body`` for the out-edges of a queue's vertices and collects the next frontier.

    The work items are queue entries. A vertex for which ``body`` returns true sets its bit in ``found`` and is appended
    to ``found_queue`` by the thread that sets it.
    """
    weight_of = make_weight(device, has_weights)

    def push(work, queue, indptr, indices, weights, out_degrees, arrays, found, found_queue, counters):
        buffer = np.empty(BUFFER, found_queue.dtype)
        held = 0
        edges = 0
        first, last = claim(work)
        while first < last:
            for k in range(first, last):
                u = np.int64(queue[k])
                for e in range(indptr[u], indptr[u + 1]):
                    v = np.int64(indices[e])
                    if receives(v, *arrays) and body(u, v, weight_of(weights, e), *arrays) and claim_bit(found, v):
                        if held == BUFFER:
                            flush(buffer, held, found_queue, counters)
                            held = 0
                        buffer[held] = v
                        held += 1
                        edges += out_degrees[v + 1] - out_degrees[v]
            first, last = claim(work)
        if held > 0:
            flush(buffer, held, found_queue, counters)
            fetch_and_add(counters, EDGES, edges)

    return push


def make_pull(body: Any, receives: Any, *, has_weights: bool) -> Any:
    """Return the kernel that calls ``body`` for the in-edges that come from the frontier, and marks who becomes active.

    The work items are words of 64 receivers. A row ends when its vertex does not receive any more.
    """
    weight_of = make_weight(device, has_weights)

    def pull(work, words, every, indptr, indices, weights, out_degrees, arrays, found, counters):
        n = len(indptr) - 1
        vertices = 0
        edges = 0
        first, last = claim(work)
        while first < last:
            for word in range(first, last):
                bits = np.uint64(0)
                for v in range(word * WORD_BITS, min(n, (word + 1) * WORD_BITS)):
                    if not receives(v, *arrays):
                        continue
                    activated = False
                    for e in range(indptr[v], indptr[v + 1]):
                        u = np.int64(indices[e])
                        if every or get_bit(words, u):
                            if body(u, v, weight_of(weights, e), *arrays):
                                activated = True
                            if not receives(v, *arrays):
                                break
                    if activated:
                        bits |= bit(v)
                        edges += out_degrees[v + 1] - out_degrees[v]
                found[word] = bits
                vertices += popcount(bits)
            first, last = claim(work)
        fetch_and_add(counters, COUNT, vertices)
        fetch_and_add(counters, EDGES, edges)

    return pull


def make_push_sum(body: Any, receives: Any, *, has_weights: bool, zero: Any) -> Any:
    """Return the kernel that sums ``body`` over the out-edges of a queue's vertices.

    The work items are blocks of ``ITEMS_PER_SUM`` queue entries, each with its element of ``sums``.
    """
    weight_of = make_weight(device, has_weights)

    def push_sum(work, queue, size, indptr, indices, weights, arrays, sums):
        first, last = claim(work)
        while first < last:
            for block in range(first, last):
                total = zero
                for k in range(block * ITEMS_PER_SUM, min(size, (block + 1) * ITEMS_PER_SUM)):
                    u = np.int64(queue[k])
                    for e in range(indptr[u], indptr[u + 1]):
                        v = np.int64(indices[e])
                        if receives(v, *arrays):
                            total += body(u, v, weight_of(weights, e), *arrays)
                sums[block] = total
            first, last = claim(work)

    return push_sum


def make_pull_sum(body: Any, receives: Any, *, has_weights: bool, zero: Any) -> Any:
    """Return the kernel that sums ``body`` over the in-edges from the frontier; work items are words of receivers."""
    weight_of = make_weight(device, has_weights)

    def pull_sum(work, words, every, indptr, indices, weights, arrays, sums):
        n = len(indptr) - 1
        first, last = claim(work)
        while first < last:
            for word in range(first, last):
                total = zero
                for v in range(word * WORD_BITS, min(n, (word + 1) * WORD_BITS)):
                    if not receives(v, *arrays):
                        continue
                    for e in range(indptr[v], indptr[v + 1]):
                        u = np.int64(indices[e])
                        if every or get_bit(words, u):
                            total += body(u, v, weight_of(weights, e), *arrays)
                            if not receives(v, *arrays):
                                break
                sums[word] = total
            first, last = claim(work)

    return pull_sum
