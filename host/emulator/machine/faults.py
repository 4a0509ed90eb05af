"""What messages say of a fault: the kernel, the line, the thread, what happened and what to do."""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from gpu_pregel.host.emulator.machine import layout as at
from gpu_pregel.host.emulator.machine.regions import Region


class SiteLike(Protocol):
    """A place in a kernel: "load", "store", "atomic", "sync", "fence" or "check", its file and its line."""

    @property
    def kind(self) -> str:
        """What is done there."""

    @property
    def file(self) -> str:
        """The source file."""

    @property
    def line(self) -> int:
        """The line in it, from 1."""


class Launch(NamedTuple):
    """A launch that came to a fault."""

    kernel: str
    sites: Sequence[SiteLike]
    regions: Sequence[Region]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    state: np.ndarray[Any, np.dtype[np.int64]]
    fibers: np.ndarray[Any, np.dtype[np.int64]]

    def get(self, slot: int) -> int:
        """A word of the state block."""
        return int(self.state[slot])


def describe(launch: Launch) -> str:
    """The message for a fault."""
    code = launch.get(at.FAULT)
    if code in (at.DEADLOCK, at.ENDLESS):
        return f"kernel {launch.kernel}, {_of_all(launch)}"
    return (
        f"kernel {launch.kernel}, {_line(launch, launch.get(at.FAULT_SITE))}, "
        f"{_thread(launch, launch.get(at.FAULT_THREAD))}: {_TEXTS[code](launch)}"
    )


def _line(launch: Launch, site: int) -> str:
    if not 0 <= site < len(launch.sites):
        return f"site {site}" if site >= 0 else "at its end"
    place = launch.sites[site]
    return f"{os.path.basename(place.file)} line {place.line}"


def _coordinates(number: int, shape: tuple[int, int, int]) -> str:
    x, y, _ = shape
    if shape[1:] == (1, 1):
        return str(number)
    place = (number % x, number // x % y, number // (x * y))
    return f"({', '.join(map(str, place))})"


def _thread(launch: Launch, number: int) -> str:
    threads = math.prod(launch.block)
    block, thread = _coordinates(number // threads, launch.grid), _coordinates(number % threads, launch.block)
    return f"block {block}, thread {thread}"


def _other(launch: Launch) -> str:
    """The other thread, by as little as is needed, and its line."""
    threads = math.prod(launch.block)
    mine, other = launch.get(at.FAULT_THREAD), launch.get(at.FAULT_OTHER_THREAD)
    if mine // threads == other // threads:
        return f"thread {_coordinates(other % threads, launch.block)}"
    return _thread(launch, other)


def _other_lane(launch: Launch) -> str:
    """The other thread as a lane of the same warp; there need not be such a thread."""
    mine = launch.get(at.FAULT_THREAD)
    first = mine - mine % math.prod(launch.block) % 32
    return f"lane {launch.get(at.FAULT_OTHER_THREAD) - first}"


def _other_line(launch: Launch) -> str:
    return _line(launch, launch.get(at.FAULT_OTHER_SITE))


# --- Memory.
def _verb(access: int) -> str:
    return {0: "reads", 1: "writes", 3: "updates atomically"}[access]


def _candidates(launch: Launch) -> list[Region]:
    """The arrays, and the shared memory of the block at fault."""
    result = list(launch.regions)
    size, threads = launch.get(at.SHARED_BYTES), launch.get(at.THREADS)
    rows = np.flatnonzero(launch.fibers[:, at.IDENTITY] == launch.get(at.FAULT_THREAD))
    if size and rows.size:
        table = _words(launch.get(at.SHARED_REGIONS), launch.get(at.RESIDENT) * at.REGION_WORDS)
        base = int(table[int(rows[0]) // threads * at.REGION_WORDS + at.BASE])
        result.append(Region("shared memory", base, size, 1))
    return result


def _words(address: int, count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.ctypeslib.as_array((ctypes.c_int64 * count).from_address(address))


def _distance(region: Region, address: int) -> int:
    return max(region.address - address, address - region.end + 1, 0)


def _nearest(launch: Launch, address: int) -> Region | None:
    return min(_candidates(launch), key=lambda region: _distance(region, address), default=None)


def _element(region: Region, address: int) -> str:
    return f"{region.name}[{(address - region.address) // region.itemsize}]"


def _what(launch: Launch) -> str:
    """Such as "reads labels[3]"."""
    address = launch.get(at.FAULT_ADDRESS)
    region = _nearest(launch, address)
    place = _element(region, address) if region else f"address {address:#x}"
    return f"{_verb(launch.get(at.FAULT_VALUE))} {place}"


def _outside(launch: Launch) -> str:
    address, size = launch.get(at.FAULT_ADDRESS), launch.get(at.FAULT_SIZE)
    region = _nearest(launch, address)
    verb = _verb(launch.get(at.FAULT_VALUE))
    if region is None:
        return f"{verb} {size} bytes at address {address:#x}, but the launch has no arrays"
    count = f"{region.nbytes // region.itemsize} {'bytes' if region.name == 'shared memory' else 'elements'}"
    if _distance(region, address) <= max(region.nbytes, 1 << 16):
        side = "before its first element" if address < region.address else f"beyond its {count}"
        return f"{_what(launch)}, {side}"
    return (
        f"{verb} {size} bytes at address {address:#x}, in no array of this launch: it would be "
        f"{_element(region, address)} of the nearest, which has {count}"
    )


def _misaligned(launch: Launch) -> str:
    address, size = launch.get(at.FAULT_ADDRESS), launch.get(at.FAULT_SIZE)
    return f"{_what(launch)} with {size} bytes at address {address:#x}, which is not a multiple of {size}"


def _unwritten(launch: Launch) -> str:
    return f"{_what(launch)}, of which it can see no write: fill the array first, or a fence or barrier is missing"


def _constant(launch: Launch) -> str:
    return f"{_what(launch)}, which is constant"


def _race(launch: Launch) -> str:
    both = launch.get(at.FAULT_VALUE)
    here, there = both & ((1 << at.OTHER_ACCESS) - 1), both >> at.OTHER_ACCESS
    region = _nearest(launch, launch.get(at.FAULT_ADDRESS))
    name = region.name if region else "the array"
    element = _element(region, launch.get(at.FAULT_ADDRESS)) if region else name
    advice = "put a barrier between" if name == "shared memory" else f"use atomics or a barrier, or declare {name} racy"
    return (
        f"race: {_verb(here)} {element}, which {_other(launch)} {_verb(there)} at {_other_line(launch)}, and nothing "
        f"orders the two: {advice}"
    )


# --- Synchronisation.
def _mask(launch: Launch) -> str:
    return f"{launch.get(at.FAULT_VALUE):#010x}"


def _not_in_mask(launch: Launch) -> str:
    return f"its own lane is not in the mask {_mask(launch)} that it gives"


def _mask_exited(launch: Launch) -> str:
    return f"waits for the lanes {_mask(launch)}, of which {_other(launch)} has ended"


def _mask_absent(launch: Launch) -> str:
    return f"waits for the lanes {_mask(launch)}, of which {_other_lane(launch)} does not exist: the block is too small"


def _warp_elsewhere(launch: Launch) -> str:
    return (
        f"waits for the lanes {_mask(launch)}, but {_other(launch)} waits for it at {_other_line(launch)}, or with "
        f"another mask: all lanes of a mask must come to one operation"
    )


def _warp_at_barrier(launch: Launch) -> str:
    return (
        f"waits for the lanes {_mask(launch)}, but {_other(launch)} waits at the barrier at {_other_line(launch)}: "
        f"neither can go on"
    )


def _shuffle_outside(launch: Launch) -> str:
    return f"shuffles from {_other_lane(launch)}, which is not in the mask {_mask(launch)}"


def _barrier_split(launch: Launch) -> str:
    return (
        f"comes to this barrier, but {_other(launch)} waits at that of {_other_line(launch)}: all threads must come to "
        f"the same one"
    )


def _barrier_exited(launch: Launch) -> str:
    return f"waits at a barrier that {_other(launch)} never reaches, because it has ended"


def _barrier_warp(launch: Launch) -> str:
    return (
        f"comes to a barrier, but {_other(launch)} waits for it in the warp operation at {_other_line(launch)}: "
        f"neither can go on"
    )


def _grid_not_cooperative(_launch: Launch) -> str:
    return "comes to a barrier of the grid: launch the kernel cooperatively"


def _stack(_launch: Launch) -> str:
    return f"needs more than {at.STACK_BYTES} bytes of local memory, which is what a thread has here"


# --- Arithmetic, and what should not come up.
def _value(launch: Launch) -> int:
    return launch.get(at.FAULT_VALUE)


def _float_range(launch: Launch) -> str:
    value = float(np.array(_value(launch), np.int64).view(np.float64))
    return f"makes an integer of {value!r}, which does not fit: a GPU and a CPU give different numbers"


_TEXTS: dict[int, Callable[[Launch], str]] = {
    at.OUTSIDE: _outside,
    at.MISALIGNED: _misaligned,
    at.UNWRITTEN: _unwritten,
    at.CONSTANT_WRITTEN: _constant,
    at.RACE: _race,
    at.NOT_IN_MASK: _not_in_mask,
    at.MASK_EXITED: _mask_exited,
    at.MASK_ABSENT: _mask_absent,
    at.WARP_ELSEWHERE: _warp_elsewhere,
    at.WARP_AT_BARRIER: _warp_at_barrier,
    at.SHUFFLE_OUTSIDE: _shuffle_outside,
    at.BARRIER_SPLIT: _barrier_split,
    at.BARRIER_EXITED: _barrier_exited,
    at.BARRIER_WARP: _barrier_warp,
    at.GRID_SPLIT: _barrier_split,
    at.GRID_EXITED: _barrier_exited,
    at.GRID_NOT_COOPERATIVE: _grid_not_cooperative,
    at.STACK_OVERFLOW: _stack,
    at.DIVISION_BY_ZERO: lambda launch: f"divides {_value(launch)} by zero",
    at.DIVISION_OVERFLOW: lambda _: "divides the smallest integer by -1, which overflows",
    at.SHIFT_TOO_FAR: lambda launch: f"shifts by {_value(launch)}, the width or more",
    at.FLOAT_RANGE: _float_range,
    at.UNKNOWN_SYNC: lambda launch: f"synchronises in an unknown way ({_value(launch)})",
    at.UNKNOWN_ATOMIC: lambda launch: f"has an atomic operation of an unknown kind or size ({_value(launch)})",
}


# --- Faults of the launch as a whole.
_GROUPS = 6
"""So many groups of threads that wait are named."""


def _of_all(launch: Launch) -> str:
    """Who waits where, when nobody can go on, or nobody ends."""
    where = {at.AT_WARP: "a warp operation", at.AT_BLOCK: "a barrier", at.AT_GRID: "a barrier of the grid"}
    groups: dict[tuple[int, int], list[int]] = {}
    for fiber in launch.fibers:
        status, site = int(fiber[at.STATUS]), int(fiber[at.WAIT_SITE])
        if status in where:
            groups.setdefault((status, site), []).append(int(fiber[at.IDENTITY]))
    waits = "; ".join(
        f"{_thread(launch, min(threads))}{f' and {len(threads) - 1} more' if len(threads) > 1 else ''} "
        f"at {where[status]} at {_line(launch, site)}"
        for (status, site), threads in sorted(groups.items())[:_GROUPS]
    )
    if launch.get(at.FAULT) == at.DEADLOCK:
        return f"deadlock, nobody can go on: {waits}"
    rows = np.flatnonzero(launch.fibers[:, at.STATUS] == at.RUNNABLE)
    running = launch.fibers[rows[0]]
    where_it_runs = (
        f"{_thread(launch, int(running[at.IDENTITY]))} still runs at {_line(launch, int(running[at.WAIT_SITE]))}"
    )
    return f"does not end: {where_it_runs}{f'; others wait: {waits}' if waits else ''}"
