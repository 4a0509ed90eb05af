"""Kernels for arrays in device memory: numbers in order, random keys, elements at positions, groups and counts.

Kernels for elements of any dtype take them as unsigned integers of their bits.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from gpu_pregel.kernels.graphs.csr_cuda import ITEMS, TILE, thread_item
from gpu_pregel.kernels.library.atomics_cuda import fetch_and_add, fetch_and_or, fetch_and_umax, fetch_and_umin
from gpu_pregel.kernels.library.compiler_cuda import cuda, from_dtype, types
from gpu_pregel.kernels.library.jit_cuda import BLOCK, WARP, Kernel, device, kernel
from gpu_pregel.kernels.library.philox import ARRAYS, philox4
from gpu_pregel.kernels.library.warps_cuda import ALL, lane_number, shuffle

_KEYS, _PLACES, _NUMBERS = types.uint64[::1], types.uint32[::1], types.int64[::1]
_WORD, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_philox4 = device(philox4)


@kernel(types.uint64, _KEYS)
def fill_keys(seed, keys):
    """Write random keys."""
    i = thread_item()
    if i < np.uint64(len(keys)):
        a, b, _, _ = _philox4(seed & _WORD, seed >> _HALF, i & _WORD, i >> _HALF, np.uint64(0), ARRAYS)
        keys[i] = (a << _HALF) | b


@functools.cache
def make_range(dtype: np.dtype[Any]) -> Kernel:
    """``fill_range(numbers)``: write the numbers from 0 on."""
    number = from_dtype(dtype)

    @kernel(number[::1])
    def fill_range(numbers):
        i = thread_item()
        if i < np.uint64(len(numbers)):
            numbers[i] = number(i)

    return fill_range


@functools.cache
def make_take(size: int, places: np.dtype[Any]) -> Kernel:
    """``take(array, places, found, wrong)``: copy the elements at ``places``, and count places outside the array.

    Elements have ``size`` bytes.
    """
    elements = from_dtype(np.dtype(f"u{size}"))[::1]

    @kernel(elements, from_dtype(places)[::1], elements, _KEYS)
    def take(array, places, found, wrong):
        i = thread_item()
        if i < np.uint64(len(places)):
            # A negative place is beyond the last one.
            place = np.uint64(places[i])
            if place < np.uint64(len(array)):
                found[i] = array[place]
            else:
                fetch_and_add(wrong, 0, 1)

    return take


@functools.cache
def _make_order(dtype: np.dtype[Any]) -> Any:
    """``order(bits)``: a uint64 that is ordered as the element with these bits; NaN is the largest, -0 equals 0."""
    width, kind = 8 * dtype.itemsize, dtype.kind
    sign, every = np.uint64(1 << (width - 1)), np.uint64((1 << width) - 1)
    infinity = np.uint64(np.array(np.inf, dtype).view(f"u{dtype.itemsize}")) if kind == "f" else every

    @device
    def order(bits):
        number = np.uint64(bits)
        if kind == "f":
            if number & np.uint64(every ^ sign) > infinity:
                return every
            if number == sign:
                return sign
            if number & sign != np.uint64(0):
                return number ^ every
        if kind == "f" or kind == "i":
            return number ^ sign
        return number

    return order


@functools.cache
def make_order_keys(dtype: np.dtype[Any]) -> Kernel:
    """``order_keys(array, keys)``: write keys that are ordered as the elements."""
    order = _make_order(dtype)

    @kernel(from_dtype(np.dtype(f"u{dtype.itemsize}"))[::1], _KEYS)
    def order_keys(array, keys):
        i = thread_item()
        if i < np.uint64(len(keys)):
            keys[i] = order(array[i])

    return order_keys


@kernel(_KEYS, _KEYS, items=TILE)
def find_differences(keys, differences):
    """Set the bits in which a key differs from the first one."""
    first = np.uint64(cuda.blockIdx.x) * np.uint64(TILE) + np.uint64(cuda.threadIdx.x)
    own = np.uint64(0)
    for k in range(ITEMS):
        i = np.uint64(first + np.uint64(k) * np.uint64(BLOCK))
        if i < np.uint64(len(keys)):
            own |= keys[i] ^ keys[np.uint64(0)]
    distance = np.uint32(WARP // 2)
    while distance > np.uint32(0):
        own |= shuffle(own, lane_number() + distance)
        distance = np.uint32(distance >> np.uint32(1))
    if lane_number() == np.uint32(0) and own != np.uint64(0):
        fetch_and_or(differences, 0, own)


@kernel(_PLACES, _NUMBERS)
def number_places(places, numbers):
    """Write the number of each place, all of which differ."""
    i = thread_item()
    if i < np.uint64(len(places)):
        numbers[places[i]] = np.int64(i)


@kernel(_PLACES, _NUMBERS)
def widen(places, numbers):
    """Write places as int64."""
    i = thread_item()
    if i < np.uint64(len(places)):
        numbers[i] = np.int64(places[i])


@kernel(_KEYS, _NUMBERS)
def list_steps(positions, steps):
    """Write the places after which ``positions`` increase, by one each time."""
    i = thread_item()
    if i + np.uint64(1) < np.uint64(len(positions)):
        to = positions[i]
        if to != positions[i + np.uint64(1)]:
            steps[to] = np.int64(i)


@kernel(_NUMBERS, _PLACES, _NUMBERS, _NUMBERS)
def describe_groups(begins, places, firsts, counts):
    """Write the first place and the number of elements of each group, given where it begins among sorted ``places``."""
    g = thread_item()
    if g < np.uint64(len(begins)):
        begin, end = begins[g], np.int64(len(places))
        if g + np.uint64(1) < np.uint64(len(begins)):
            end = begins[g + np.uint64(1)]
        firsts[g], counts[g] = np.int64(places[begin]), end - begin


@kernel(_KEYS, _PLACES, _NUMBERS)
def number_groups(positions, places, numbers):
    """Write the number of the group of the element at each of the sorted ``places``."""
    i = thread_item()
    if i < np.uint64(len(places)):
        numbers[places[i]] = np.int64(positions[i + np.uint64(1)]) - np.int64(1)


@functools.cache
def make_count(dtype: np.dtype[Any]) -> Kernel:
    """``count(array, counts)``: count the elements that are 0, 1, 2 and so on."""

    @kernel(from_dtype(dtype)[::1], _NUMBERS)
    def count(array, counts):
        i = thread_item()
        if i < np.uint64(len(array)):
            # A negative number is beyond the last one.
            number = np.uint64(array[i])
            if number < np.uint64(len(counts)):
                fetch_and_add(counts, number, 1)

    return count


@kernel(_NUMBERS, types.uint64, _KEYS)
def count_descents(offsets, size, wrong):
    """Count the offsets that are below the one before, or not from 0 to ``size``."""
    i = thread_item()
    if i < np.uint64(len(offsets)):
        # A negative offset is above ``size``.
        is_wrong = np.uint64(offsets[i]) > size
        if i > np.uint64(0) and offsets[i - np.uint64(1)] > offsets[i]:
            is_wrong = True
        if is_wrong:
            fetch_and_add(wrong, 0, 1)


@device
def _segment_of(offsets, i):
    """Return the last segment that begins at element ``i`` or before, which has it unless it is after all; or -1."""
    low, high = np.int64(0), np.int64(len(offsets))
    while low < high:
        middle = (low + high) >> np.int64(1)
        if offsets[middle] > i:
            high = middle
        else:
            low = middle + np.int64(1)
    return low - np.int64(1)


@functools.cache
def make_segment_maxima(dtype: np.dtype[Any]) -> tuple[Kernel, Kernel]:
    """``find_maxima(values, offsets, maxima)``, then ``find_places(values, offsets, maxima, places)``.

    ``maxima`` has the keys of the largest elements of the segments, 0 before, and ``places`` the first place of each,
    the largest uint64 before. The lanes of a warp first agree where all have elements of one segment.
    """
    order, elements = _make_order(dtype), from_dtype(np.dtype(f"u{dtype.itemsize}"))[::1]

    @device
    def own_segment(values, offsets):
        """Return the segment of this thread's element, -1 if it has none, and the key of the element."""
        i, key = thread_item(), np.uint64(0)
        segment = np.int64(-1)
        if i < np.uint64(len(values)):
            key, segment = order(values[i]), _segment_of(offsets, np.int64(i))
            if segment == np.int64(len(offsets) - 1):
                segment = np.int64(-1)
        return i, segment, key

    @device
    def is_shared(segment):
        """Whether all lanes have elements of one segment."""
        same = shuffle(segment, 0) == segment and segment >= np.int64(0)
        return np.uint32(cuda.ballot_sync(ALL, same)) == ALL

    @kernel(elements, _NUMBERS, _KEYS)
    def find_maxima(values, offsets, maxima):
        _, segment, key = own_segment(values, offsets)
        has_own = segment >= np.int64(0)
        if is_shared(segment):
            distance = np.uint32(WARP // 2)
            while distance > np.uint32(0):
                key = max(key, shuffle(key, lane_number() + distance))
                distance = np.uint32(distance >> np.uint32(1))
            has_own = lane_number() == np.uint32(0)
        if has_own:
            fetch_and_umax(maxima, segment, key)

    @kernel(elements, _NUMBERS, _KEYS, _KEYS)
    def find_places(values, offsets, maxima, places):
        i, segment, key = own_segment(values, offsets)
        is_largest = segment >= np.int64(0) and maxima[segment] == key
        if is_shared(segment):
            among = np.uint32(cuda.ballot_sync(ALL, is_largest))
            is_largest = is_largest and lane_number() == np.uint32(cuda.ffs(among) - 1)
        if is_largest:
            fetch_and_umin(places, segment, i)

    return find_maxima, find_places
