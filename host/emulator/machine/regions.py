"""The memory regions that a launch may access, and the tables of regions that the hooks search."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpu_pregel.host.emulator.machine import layout as at
from gpu_pregel.host.emulator.machine.arrays import Allocation


@dataclass(frozen=True)
class Region:
    """An array argument of a launch.

    Parameters
    ----------
    name : str
        Name of the parameter in messages.
    address, nbytes, itemsize : int
        Start address, size, and size of an element in bytes.
    racy : bool
        Whether the region is exempt from race detection.
    allocation : Allocation, optional
        The memory that contains the region; None for read-only constants.
    relaxed : bool
        Whether plain reads of the region count as atomic.
    """

    name: str
    address: int
    nbytes: int
    itemsize: int
    racy: bool = False
    allocation: Allocation | None = None
    relaxed: bool = False

    @property
    def end(self) -> int:
        """The first address after the region."""
        return self.address + self.nbytes


def merge_regions(regions: Sequence[Region]) -> list[Region]:
    """Merge overlapping regions, because an address does not identify the parameter through which it was reached."""
    result: list[Region] = []
    for region in sorted((r for r in regions if r.nbytes), key=lambda r: (r.address, -r.nbytes)):
        if not result or region.address >= result[-1].end:
            result.append(region)
            continue
        last = result[-1]
        result[-1] = replace(
            last,
            name=last.name if region.name == last.name else f"{last.name}/{region.name}",
            nbytes=max(last.end, region.end) - last.address,
            itemsize=math.gcd(last.itemsize, region.itemsize),
            racy=last.racy or region.racy,
            relaxed=last.relaxed or region.relaxed,
        )
    return result


def region_table(regions: Sequence[Region]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the records of ``regions``, preceded by an empty record."""
    table = np.zeros((len(regions) + 1, at.REGION_WORDS), np.int64)
    for number, region in enumerate(regions):
        record = table[number + 1]
        record[at.BASE], record[at.NBYTES], record[at.REGION_INDEX] = region.address, region.nbytes, number
        if region.allocation is None:
            record[at.FLAGS] = at.CONSTANT
            continue
        record[at.WRITTEN] = region.allocation.written.ctypes.data + region.address - region.allocation.address
        record[at.SHADOW_BASE] = region.allocation.address
        if region.racy:
            record[at.FLAGS] = at.RACY
        else:
            record[at.FLAGS] = at.RELAXED if region.relaxed else 0
            granule = math.gcd(region.itemsize, 8)
            record[at.SHIFT] = granule.bit_length() - 1
            record[at.RACES] = region.allocation.races(granule).ctypes.data
    return table


class SharedMemory:
    """The shared memory of all resident blocks, with its shadow memory."""

    def __init__(self, places: int, size: int, granule: int) -> None:
        self.stride = -(-size // 256) * 256 + 256
        self._bytes = np.empty(places * self.stride + 256, np.uint8)
        self.base = -(-self._bytes.ctypes.data // 256) * 256
        self._written = np.zeros(places * self.stride, np.uint8)
        self._races = np.zeros(places * self.stride // granule * at.RACE_WORDS, np.int64)
        self.table = np.zeros((places, at.REGION_WORDS), np.int64)
        starts = np.arange(places) * self.stride
        self.table[:, at.BASE] = self.base + starts
        self.table[:, at.NBYTES] = size
        self.table[:, at.WRITTEN] = self._written.ctypes.data + starts
        self.table[:, at.RACES] = self._races.ctypes.data
        self.table[:, at.SHADOW_BASE] = self.base
        self.table[:, at.SHIFT] = granule.bit_length() - 1
        self.table[:, at.FLAGS] = at.SHARED
