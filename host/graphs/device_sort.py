"""Sorting and prefix sums in device memory, with the kernels of ``gpu_pregel.kernels.graphs.csr_cuda``."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.host.devices.device import Device


def scan(device: Device, values: Any, *, size: int | None = None, kernels: Any = None) -> Any:
    """Return the sums of the numbers before each of ``values``, uint64[size], on a GPU or the emulated device.

    ``size`` may be one more than there are values, so that the last element is the sum of all. ``kernels`` are those of
    ``make_scan`` for other dtypes than uint32.
    """
    from gpu_pregel.kernels.graphs import csr_cuda

    sum_tiles, scan_tiles = kernels or (csr_cuda.sum_tiles, csr_cuda.scan_tiles)
    size = values.size if size is None else size
    sums, positions = device.empty(-(-size // csr_cuda.TILE), np.uint64), device.empty(size, np.uint64)
    device.launch(sum_tiles, size, values, sums)
    device.launch(csr_cuda.scan_sums, 1, sums)
    device.launch(scan_tiles, size, values, sums, positions)
    return positions


def sort_keys(device: Device, keys: Any, bits: int, slots: Any = None, *, takes_slots: bool) -> tuple[Any, Any]:
    """Sort uint64 keys stably by their lowest ``bits``; return them and, if asked for, the slots they take along.

    Slots are uint32, by default the places of the keys. The memory of ``keys`` and ``slots`` is used.
    """
    from gpu_pregel.kernels.graphs import csr_cuda as kernels

    size = keys.size
    other = device.empty(size, np.uint64)
    pair = [device.empty(size if takes_slots else 0, np.uint32) for _ in range(2)]
    counts = device.empty(-(-size // kernels.TILE) * kernels.DIGITS, np.uint32)
    is_first = slots is None
    slots, spare = pair if slots is None else (slots, pair[0])
    for shift in range(0, bits, kernels.DIGIT_BITS):
        device.launch(kernels.count_digits, size, keys, shift, counts)
        positions = scan(device, counts)
        device.launch(kernels.move_keys, size, keys, slots, shift, positions, is_first, other, spare)
        keys, other, slots, spare, is_first = other, keys, spare, slots, False
    return keys, slots
