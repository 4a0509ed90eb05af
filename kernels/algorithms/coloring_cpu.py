"""Kernels of greedy colouring on the CPU: the order of the vertices, and the colours.

``states[v]`` has the position of v in the order in its upper half and its colour, from 1, in the lower one, 0 if v has
none yet: a single load per neighbour.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.kernels.library.atomics_cpu import load, prefetch, store
from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.library.work_cpu import CHUNK, claim

BLOCK_BITS = 6
"""Vertices of equal priority are ordered by block, in a random order of blocks of 64: their rows stay close."""
CLASSES = 64
MAX_COLOR = 0xFFFFFFFF
SPINS = 1 << 12
VERTICES_AHEAD, ROWS_AHEAD = 32, 8


@inline
def _log_class(degree):
    """The number of a class of vertices by the logarithm of their degree; the largest degrees come first."""
    bits = 0
    while degree > 0:
        degree >>= 1
        bits += 1
    return CLASSES - 1 - bits


@jit
def count_classes(work, indptr, blocks, counts):
    """Count the vertices of each class; ``counts`` has one row for each part of ``blocks``."""
    n = len(indptr) - 1
    parts = len(counts)
    part, last = claim(work)
    while part < last:
        row = counts[part]
        for b in range(len(blocks) * part // parts, len(blocks) * (part + 1) // parts):
            begin: Any = np.int64(blocks[b]) << BLOCK_BITS
            for v in range(begin, min(begin + (1 << BLOCK_BITS), n)):
                row[_log_class(indptr[v + 1] - indptr[v])] += 1
        part, last = claim(work)


@jit
def sort_by_class(work, indptr, blocks, positions, order, states):
    """Write the order; ``positions`` has the next position of each class for each part of ``blocks``."""
    n = len(indptr) - 1
    parts = len(positions)
    part, last = claim(work)
    while part < last:
        row = positions[part]
        for b in range(len(blocks) * part // parts, len(blocks) * (part + 1) // parts):
            begin: Any = np.int64(blocks[b]) << BLOCK_BITS
            for v in range(begin, min(begin + (1 << BLOCK_BITS), n)):
                c = _log_class(indptr[v + 1] - indptr[v])
                position = row[c]
                row[c] = position + 1
                order[position] = v
                states[v] = np.uint64(position) << np.uint64(32)
        part, last = claim(work)


@inline
def _read_row(indptr, indices, states, v, mine, marks):
    """Mark the colours of the neighbours before v; return the last of these without a colour, or -1."""
    mark = np.uint32((mine >> np.uint64(32)) + np.uint64(1))
    missing = np.int64(-1)
    for e in range(indptr[v], indptr[v + 1]):
        state = load(states, indices[e])
        # Which neighbours come first is unpredictable: without a branch, the others mark colour 0.
        c = np.int64(state & np.uint64(MAX_COLOR)) * np.int64(state < mine)
        marks[c] = mark
        if np.int64(state < mine) > c:
            missing = np.int64(indices[e])
    return missing


@inline
def _is_colored(states, u):
    """Wait a moment for the thread that colours u; return whether it has."""
    for _ in range(SPINS):
        if load(states, u) & np.uint64(MAX_COLOR) != np.uint64(0):
            return True
    return False


@jit
def color(work, indptr, indices, order, begin, states, widest, threads):
    """Give each vertex, in this order from position ``begin``, the smallest colour that no earlier neighbour has.

    All earlier vertices have been claimed, so that those without a colour are in the chunks of other threads. A thread
    that has waited for one of them colours it, too: both find the same colour, and no thread waits for one that the
    system has suspended.
    """
    last_position = len(order) - 1
    # A colour is taken if its mark is the position of the current vertex, plus one.
    marks = np.zeros(widest + 2, np.uint32)
    stack = np.empty(work[CHUNK] * threads + 1, np.uint32)
    first, last = claim(work)
    while first < last:
        for i in range(begin + first, begin + last):
            prefetch(indptr, order[min(i + VERTICES_AHEAD, last_position)])
            prefetch(indices, indptr[order[min(i + ROWS_AHEAD, last_position)]])
            stack[0] = order[i]
            depth = 1
            while depth > 0:
                v = stack[depth - 1]
                mine = load(states, v)
                if mine & np.uint64(MAX_COLOR) != np.uint64(0):
                    depth -= 1
                    continue
                missing = _read_row(indptr, indices, states, v, mine, marks)
                if missing >= 0:
                    if not _is_colored(states, missing):
                        stack[depth] = missing
                        depth += 1
                    continue
                c = np.int64(1)
                mark = np.uint32((mine >> np.uint64(32)) + np.uint64(1))
                while marks[c] == mark:
                    c += 1
                store(states, v, mine | np.uint64(c))
                depth -= 1
        first, last = claim(work)
