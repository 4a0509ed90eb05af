"""Kernels that build a CSR from an edge list on CUDA, by a stable radix sort of its stored edges.

An edge's key is its source above its destination. A pass sorts by one digit: it counts the digits of each tile of keys,
sums these counts to positions, and moves the keys. With weights, the keys take along their slots in the edge list,
where an edge that is stored in both directions has one slot for each. Barriers and atomic operations of a block are all
that threads share; see Duane Merrill, Andrew Grimshaw: Revisiting Sorting for GPGPU Stream Architectures, 2010.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from gpu_pregel.kernels.library.atomics_cuda import fetch_and_add, fetch_and_umax
from gpu_pregel.kernels.library.compiler_cuda import cuda, types
from gpu_pregel.kernels.library.jit_cuda import BLOCK, WARP, WARPS, Kernel, device, kernel
from gpu_pregel.kernels.library.warps_cuda import ALL, lane_number, shuffle, shuffle_up, sum_of_warp

DIGIT_BITS = 8
DIGITS = 1 << DIGIT_BITS
WARP_DIGITS = WARPS * DIGITS
ITEMS = 8
"""Keys per thread."""
TILE = ITEMS * BLOCK
LARGEST, DROPPED = 0, 1
"""Places in ``facts``: the largest id, and the number of stored edges that are dropped."""
_KEYS = types.uint64[::1]
_SLOTS = types.uint32[::1]
_NONE = np.uint64(0xFFFFFFFFFFFFFFFF)


@device
def thread_item():
    """Return the number of the thread in the grid, which may exceed 32 bits."""
    return np.uint64(cuda.blockIdx.x) * np.uint64(BLOCK) + np.uint64(cuda.threadIdx.x)


@device
def _no_edge(id_bits):
    """Return the largest key, that of edges which are not stored."""
    return _NONE >> np.uint64(np.uint64(64) - np.uint64(2) * np.uint64(id_bits))


def _make_find_largest(word: Any) -> Any:
    @kernel(word[::1], word[::1], types.uint64[::1], items=TILE)
    def find_largest(src, dst, facts):
        """Write the largest id, all of which are unsigned, to ``facts``."""
        first = np.uint64(cuda.blockIdx.x) * np.uint64(TILE) + np.uint64(cuda.threadIdx.x)
        largest = np.uint64(0)
        for k in range(ITEMS):
            e = np.uint64(first + np.uint64(k) * np.uint64(BLOCK))
            if e < np.uint64(len(src)):
                u, v = np.uint64(src[e]), np.uint64(dst[e])
                largest = max(max(largest, u), v)
        lane = lane_number()
        distance = np.uint32(WARP // 2)
        while distance > np.uint32(0):
            largest = max(largest, shuffle(largest, lane + distance))
            distance = np.uint32(distance >> np.uint32(1))
        if lane == np.uint32(0):
            fetch_and_umax(facts, LARGEST, largest)

    return find_largest


find_largest_32 = _make_find_largest(types.uint32)
find_largest_64 = _make_find_largest(types.uint64)


def _make_keys(word: Any) -> Any:
    @kernel(word[::1], word[::1], types.boolean, types.boolean, types.uint32, _KEYS, types.uint64[::1])
    def make_keys(src, dst, symmetric, keep_loops, id_bits, keys, facts):
        """Write the key of every stored edge; those of the other direction follow those of the edge list."""
        e = thread_item()
        bits = np.uint64(id_bits)
        dropped = np.uint32(0)
        if e < np.uint64(len(src)):
            u = np.uint64(src[e])
            v = np.uint64(dst[e])
            key = (u << bits) | v
            if u == v and not keep_loops:
                key = _no_edge(id_bits)
                dropped = np.uint32(1)
            keys[e] = key
            if symmetric:
                key = (v << bits) | u
                if u == v:
                    key = _no_edge(id_bits)
                    dropped = np.uint32(dropped + np.uint32(1))
                keys[e + np.uint64(len(src))] = key
        dropped = np.uint32(sum_of_warp(dropped))
        if lane_number() == np.uint32(0) and dropped > np.uint32(0):
            fetch_and_add(facts, DROPPED, dropped)

    return make_keys


make_keys_32 = _make_keys(types.uint32)
make_keys_64 = _make_keys(types.uint64)


@device
def _digit(key, shift):
    """Return the digit of a key above the bits below ``shift``."""
    return np.uint32((key >> np.uint64(shift)) & np.uint64(DIGITS - 1))


@kernel(_KEYS, types.uint32, types.uint32[::1], items=TILE)
def count_digits(keys, shift, counts):
    """Count the digits of each tile; ``counts`` has one row per digit and one column per tile."""
    found = cuda.shared.array(DIGITS, types.uint32)
    thread = np.uint32(cuda.threadIdx.x)
    found[thread] = 0
    cuda.syncthreads()
    first = np.uint64(cuda.blockIdx.x) * np.uint64(TILE) + np.uint64(thread)
    for k in range(ITEMS):
        e = np.uint64(first + np.uint64(k) * np.uint64(BLOCK))
        if e < np.uint64(len(keys)):
            fetch_and_add(found, _digit(keys[e], shift), 1)
    cuda.syncthreads()
    counts[np.uint64(thread) * np.uint64(cuda.gridDim.x) + np.uint64(cuda.blockIdx.x)] = found[thread]


@device
def _sum_below(value, sums):
    """Return the sum of ``value``, a uint64, over the threads of the block below this one, and over all threads.

    ``sums`` are ``WARPS`` words of shared memory; it must not be in use, and may be used after a barrier.
    """
    lane = lane_number()
    warp = np.uint32(cuda.threadIdx.x) >> np.uint32(5)
    upto = value
    distance = np.uint32(1)
    while distance < np.uint32(WARP):
        below = shuffle_up(upto, distance)
        if lane >= distance:
            upto = np.uint64(upto + below)
        distance = np.uint32(distance << np.uint32(1))
    if lane == np.uint32(WARP - 1):
        sums[warp] = upto
    cuda.syncthreads()
    before = np.uint64(0)
    total = np.uint64(0)
    for other in range(WARPS):
        if np.uint32(other) < warp:
            before = np.uint64(before + sums[np.uint32(other)])
        total = np.uint64(total + sums[np.uint32(other)])
    return np.uint64(before + upto - value), total


@kernel(types.uint64[::1], items=1)
def scan_sums(sums):
    """Replace each number by the sum of those before it; has one work item."""
    warps = cuda.shared.array(WARPS, types.uint64)
    thread = np.uint64(cuda.threadIdx.x)
    before = np.uint64(0)
    for first in range(np.uint64(0), np.uint64(len(sums)), np.uint64(BLOCK)):
        i = np.uint64(np.uint64(first) + thread)
        own = sums[i] if i < np.uint64(len(sums)) else np.uint64(0)
        below, total = _sum_below(own, warps)
        if i < np.uint64(len(sums)):
            sums[i] = np.uint64(before + below)
        before = np.uint64(before + total)
        cuda.syncthreads()


@functools.cache
def make_scan(element: Any, *, counts: bool = False) -> tuple[Kernel, Kernel]:
    """Return ``sum_tiles`` and ``scan_tiles`` for arrays of a type, whose numbers are taken modulo 2^64.

    If ``counts``, the elements that are not 0 are counted instead.
    """

    @device
    def number_at(values, i):
        if i >= np.uint64(len(values)):
            return np.uint64(0)
        if counts:
            return np.uint64(values[i] != element(0))
        return np.uint64(values[i])

    @kernel(element[::1], types.uint64[::1], items=TILE)
    def sum_tiles(values, sums):
        """Write the sum of each tile."""
        warps = cuda.shared.array(WARPS, types.uint64)
        first = np.uint64(cuda.blockIdx.x) * np.uint64(TILE) + np.uint64(cuda.threadIdx.x)
        own = np.uint64(0)
        for k in range(ITEMS):
            own = np.uint64(own + number_at(values, np.uint64(first + np.uint64(k) * np.uint64(BLOCK))))
        _, total = _sum_below(own, warps)
        if np.uint32(cuda.threadIdx.x) == np.uint32(0):
            sums[np.uint64(cuda.blockIdx.x)] = total

    @kernel(element[::1], types.uint64[::1], types.uint64[::1], items=TILE)
    def scan_tiles(values, sums, positions):
        """Write the sum of the numbers before each place, given the sum of those before its tile."""
        warps = cuda.shared.array(WARPS, types.uint64)
        before = sums[np.uint64(cuda.blockIdx.x)]
        first = np.uint64(cuda.blockIdx.x) * np.uint64(TILE) + np.uint64(cuda.threadIdx.x)
        for k in range(ITEMS):
            i = np.uint64(first + np.uint64(k) * np.uint64(BLOCK))
            below, total = _sum_below(number_at(values, i), warps)
            if i < np.uint64(len(positions)):
                positions[i] = np.uint64(before + below)
            before = np.uint64(before + total)
            cuda.syncthreads()

    return sum_tiles, scan_tiles


sum_tiles, scan_tiles = make_scan(types.uint32)


@device
def _peers_of(digit):
    """Return the lanes with the digit of this one."""
    peers = ALL
    for k in range(DIGIT_BITS):
        is_set = (digit >> np.uint32(k)) & np.uint32(1) != np.uint32(0)
        votes = np.uint32(cuda.ballot_sync(ALL, is_set))
        peers &= votes if is_set else np.uint32(~votes)
    return peers


@kernel(_KEYS, _SLOTS, types.uint32, types.uint64[::1], types.boolean, _KEYS, _SLOTS, items=TILE)
def move_keys(keys, slots, shift, positions, is_first, moved, moved_slots):
    """Move keys, and their slots if there are any, to their positions by digit; at first, a slot is the key's place.

    The tile is sorted in shared memory first, so that neighbouring threads write to neighbouring places.
    """
    counts = cuda.shared.array(WARP_DIGITS, types.uint32)
    begins = cuda.shared.array(DIGITS, types.uint64)
    sums = cuda.shared.array(WARPS, types.uint64)
    sorted_keys = cuda.shared.array(TILE, types.uint64)
    sorted_slots = cuda.shared.array(TILE, types.uint32)
    thread = np.uint32(cuda.threadIdx.x)
    lane = lane_number()
    own = np.uint32((thread >> np.uint32(5)) * np.uint32(DIGITS))
    first = np.uint32((thread >> np.uint32(5)) * np.uint32(ITEMS * WARP) + lane)
    tile = np.uint64(cuda.blockIdx.x) * np.uint64(TILE)
    size = np.uint32(min(np.uint64(len(keys)) - tile, np.uint64(TILE)))
    for warp in range(WARPS):
        counts[np.uint32(warp) * np.uint32(DIGITS) + thread] = 0
    cuda.syncthreads()
    # Count the digits of each warp, whose keys are contiguous.
    for k in range(ITEMS):
        i = np.uint32(first + np.uint32(k * WARP))
        if i < size:
            fetch_and_add(counts, own + _digit(keys[tile + np.uint64(i)], shift), 1)
    cuda.syncthreads()
    # The counts become the first place in the sorted tile of each warp's keys of each digit.
    total = np.uint32(0)
    for warp in range(WARPS):
        place = np.uint32(warp) * np.uint32(DIGITS) + thread
        count = counts[place]
        counts[place] = total
        total = np.uint32(total + count)
    below, _ = _sum_below(np.uint64(total), sums)
    for warp in range(WARPS):
        place = np.uint32(warp) * np.uint32(DIGITS) + thread
        counts[place] = np.uint32(counts[place] + np.uint32(below))
    column = np.uint64(thread) * np.uint64(cuda.gridDim.x) + np.uint64(cuda.blockIdx.x)
    begins[thread] = np.uint64(positions[column] - below)
    cuda.syncthreads()
    for k in range(ITEMS):
        i = np.uint32(first + np.uint32(k * WARP))
        key = keys[tile + np.uint64(i)] if i < size else np.uint64(0)
        digit = _digit(key, shift)
        # Lanes without a key come after all others of their warp, so that their digit does not matter.
        peers = _peers_of(digit)
        before = np.uint32(cuda.popc(np.uint32(peers & np.uint32((np.uint32(1) << lane) - np.uint32(1)))))
        place = np.uint32(counts[own + digit] + before)
        cuda.syncwarp()
        if i < size:
            if before == np.uint32(0):
                counts[own + digit] = np.uint32(place + np.uint32(cuda.popc(peers)))
            sorted_keys[place] = key
            if len(moved_slots) > 0:
                e = np.uint64(tile + np.uint64(i))
                sorted_slots[place] = np.uint32(e) if is_first else slots[e]
        cuda.syncwarp()
    cuda.syncthreads()
    for j in range(thread, size, np.uint32(BLOCK)):
        key = sorted_keys[np.uint32(j)]
        to = np.uint64(begins[_digit(key, shift)] + np.uint64(j))
        moved[to] = key
        if len(moved_slots) > 0:
            moved_slots[to] = sorted_slots[np.uint32(j)]


@kernel(_KEYS, types.uint64, types.uint32, _SLOTS, types.uint32[::1])
def write_rows(keys, size, id_bits, indices, degrees):
    """Write the destinations of the first ``size`` keys, and the lengths of the rows, which were 0."""
    e = thread_item()
    if e >= size:
        return
    bits = np.uint64(id_bits)
    key = keys[e]
    u = key >> bits
    indices[e] = np.uint32(key & ((np.uint64(1) << bits) - np.uint64(1)))
    # The end of the row minus its begin, modulo 2^32.
    if e == np.uint64(0) or keys[e - np.uint64(1)] >> bits != u:
        fetch_and_add(degrees, u, np.uint32(~np.uint32(e) + np.uint32(1)))
    if e + np.uint64(1) == size or keys[e + np.uint64(1)] >> bits != u:
        fetch_and_add(degrees, u, np.uint32(np.uint32(e) + np.uint32(1)))


@kernel(_KEYS, types.uint64, types.uint32[::1])
def mark_first(keys, size, is_first):
    """Mark the first of equal keys among the first ``size``; ``is_first`` has one more element, which becomes 0."""
    e = thread_item()
    if e < size:
        is_first[e] = e == np.uint64(0) or keys[e - np.uint64(1)] != keys[e]
    elif e == size:
        is_first[e] = 0


@kernel(_KEYS, _SLOTS, types.uint64[::1], _KEYS, _SLOTS)
def keep_first(keys, slots, positions, kept, kept_slots):
    """Move the keys that were marked to their positions, and their slots if there are any."""
    e = thread_item()
    if e + np.uint64(1) < np.uint64(len(positions)):
        to = positions[e]
        if to != positions[e + np.uint64(1)]:
            kept[to] = keys[e]
            if len(slots) > 0:
                kept_slots[to] = slots[e]


@kernel(_KEYS, _SLOTS, _KEYS)
def look_up_keys(keys, slots, found):
    """Write the key of each slot."""
    e = thread_item()
    if e < np.uint64(len(slots)):
        found[e] = keys[np.uint64(slots[e])]
