"""Kernels that generate random graphs on the CPU.

Every random number is a hash of the seed and the number of the edge, so that the number of threads does not matter.
"""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.library.hash_cpu import mix
from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.library.work_cpu import claim

GOLDEN = 0x9E3779B97F4A7C15
"""2^64 divided by the golden ratio: the step between the streams of splitmix64."""


@inline
def _draw(seed, stream, position):
    """Return 64 random bits that depend on seed, stream and position only."""
    return mix(mix(seed + np.uint64(GOLDEN) * np.uint64(stream + 1)) ^ np.uint64(position))


@inline
def _scramble(vertex, scale, seed):
    """Map ``range(2**scale)`` one-to-one onto itself, pseudorandomly: odd factors and shifts are invertible."""
    mask = (np.uint64(1) << np.uint64(scale)) - np.uint64(1)
    half = np.uint64((scale + 1) // 2)
    x = np.uint64(vertex)
    for turn in range(3):
        odd = mix(seed ^ np.uint64(turn)) | np.uint64(1)
        x = (x * odd + (odd >> np.uint64(7))) & mask
        x ^= x >> half
    return x


@jit
def kronecker_edges(work, scale, seed, src, dst):
    """Draw edges of a Kronecker graph: each bit of both ends at once, with probabilities .57, .19, .19 and .05."""
    # Thresholds on 32 random bits.
    a = np.uint64(0.57 * 2**32)
    ab = np.uint64(0.76 * 2**32)
    abc = np.uint64(0.95 * 2**32)
    first, last = claim(work)
    while first < last:
        for e in range(first, last):
            u = np.uint64(0)
            v = np.uint64(0)
            bits = np.uint64(0)
            for level in range(scale):
                bits = bits >> np.uint64(32) if level % 2 else _draw(seed, level, e)
                point = bits & np.uint64(0xFFFFFFFF)
                u = (u << np.uint64(1)) | np.uint64(point >= ab)
                v = (v << np.uint64(1)) | np.uint64((point >= a and point < ab) or point >= abc)
            src[e] = _scramble(u, scale, seed)
            dst[e] = _scramble(v, scale, seed)
        first, last = claim(work)


@jit
def uniform_edges(work, scale, seed, src, dst):
    """Draw edges whose ends are independent and uniform in ``range(2**scale)``."""
    shift = np.uint64(32 - scale)
    first, last = claim(work)
    while first < last:
        for e in range(first, last):
            bits = _draw(seed, 0, e)
            src[e] = (bits >> np.uint64(32)) >> shift
            dst[e] = (bits & np.uint64(0xFFFFFFFF)) >> shift
        first, last = claim(work)


@inline
def _is_open(row, column, rows, columns, threshold, seed):
    """Return whether a crossing is within the grid and not a hole."""
    if row < 0 or column < 0 or row >= rows or column >= columns:
        return False
    return (_draw(seed, 0, row * columns + column) >> np.uint64(32)) >= threshold


@jit
def grid_degrees(work, rows, columns, threshold, seed, degrees):
    """Count the open neighbours of each open crossing; holes have degree 0."""
    first, last = claim(work)
    while first < last:
        for vertex in range(first, last):
            row = vertex // columns
            column = vertex % columns
            degree = 0
            if _is_open(row, column, rows, columns, threshold, seed):
                degree += _is_open(row - 1, column, rows, columns, threshold, seed)
                degree += _is_open(row, column - 1, rows, columns, threshold, seed)
                degree += _is_open(row, column + 1, rows, columns, threshold, seed)
                degree += _is_open(row + 1, column, rows, columns, threshold, seed)
            degrees[vertex] = degree
        first, last = claim(work)


@jit
def grid_neighbors(work, rows, columns, threshold, seed, indptr, indices):
    """Write the open neighbours of each open crossing in ascending order."""
    first, last = claim(work)
    while first < last:
        for vertex in range(first, last):
            place = indptr[vertex]
            if place == indptr[vertex + 1]:
                continue
            row = vertex // columns
            column = vertex % columns
            if _is_open(row - 1, column, rows, columns, threshold, seed):
                indices[place] = vertex - columns
                place += 1
            if _is_open(row, column - 1, rows, columns, threshold, seed):
                indices[place] = vertex - 1
                place += 1
            if _is_open(row, column + 1, rows, columns, threshold, seed):
                indices[place] = vertex + 1
                place += 1
            if _is_open(row + 1, column, rows, columns, threshold, seed):
                indices[place] = vertex + columns
        first, last = claim(work)
