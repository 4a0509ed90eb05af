"""Messages for faults: the kernel, the source line, the thread, the problem and the remedy."""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpu_pregel.host.emulator.machine import layout as at
from gpu_pregel.host.emulator.machine.compiled_kernel import Site
from gpu_pregel.host.emulator.machine.regions import Region


class FaultyLaunch(NamedTuple):
    """A launch that ended with a fault."""

    kernel: str
    sites: Sequence[Site]
    regions: Sequence[Region]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    state: np.ndarray[Any, np.dtype[np.int64]]
    fibers: np.ndarray[Any, np.dtype[np.int64]]

    def get(self, slot: int) -> int:
        """Return a word of the state block."""
        return int(self.state[slot])


def fault_message(launch: FaultyLaunch) -> str:
    """Return the message for the launch's fault."""
    code = launch.get(at.FAULT)
    if code in (at.DEADLOCK, at.ENDLESS):
        return f"kernel {launch.kernel}, {_all_threads(launch)}"
    return (
        f"kernel {launch.kernel}, {_line(launch, launch.get(at.FAULT_SITE))}, "
        f"{_thread(launch, launch.get(at.FAULT_THREAD))}: {_MESSAGES[code](launch)}"
    )


def _line(launch: FaultyLaunch, site: int) -> str:
    if not 0 <= site < len(launch.sites):
        return f"site {site}" if site >= 0 else "at the end of the kernel"
    place = launch.sites[site]
    return f"{os.path.basename(place.file)} line {place.line}"


def _coordinates(number: int, shape: tuple[int, int, int]) -> str:
    x, y, _ = shape
    if shape[1:] == (1, 1):
        return str(number)
    place = (number % x, number // x % y, number // (x * y))
    return f"({', '.join(map(str, place))})"


def _thread(launch: FaultyLaunch, number: int) -> str:
    threads = math.prod(launch.block)
    block, thread = _coordinates(number // threads, launch.grid), _coordinates(number % threads, launch.block)
    return f"block {block}, thread {thread}"


def _other(launch: FaultyLaunch) -> str:
    """Name the other thread, without its block if both threads are in the same one."""
    threads = math.prod(launch.block)
    mine, other = launch.get(at.FAULT_THREAD), launch.get(at.FAULT_OTHER_THREAD)
    if mine // threads == other // threads:
        return f"thread {_coordinates(other % threads, launch.block)}"
    return _thread(launch, other)


def _other_lane(launch: FaultyLaunch) -> str:
    """Name the other thread as a lane of the same warp; the thread may not exist."""
    mine = launch.get(at.FAULT_THREAD)
    first = mine - mine % math.prod(launch.block) % 32
    return f"lane {launch.get(at.FAULT_OTHER_THREAD) - first}"


def _other_line(launch: FaultyLaunch) -> str:
    return _line(launch, launch.get(at.FAULT_OTHER_SITE))


# --- Memory.
def _verb(access: int) -> str:
    return {0: "reads", 1: "writes", 2: "reads", 3: "atomically updates"}[access]


def _candidates(launch: FaultyLaunch) -> list[Region]:
    """Return the arrays of the launch, and the shared memory of the block at fault."""
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


def _nearest(launch: FaultyLaunch, address: int) -> Region | None:
    return min(_candidates(launch), key=lambda region: _distance(region, address), default=None)


def _element(region: Region, address: int) -> str:
    return f"{region.name}[{(address - region.address) // region.itemsize}]"


def _access(launch: FaultyLaunch) -> str:
    """Describe the access, for example "reads labels[3]"."""
    address = launch.get(at.FAULT_ADDRESS)
    region = _nearest(launch, address)
    place = _element(region, address) if region else f"address {address:#x}"
    return f"{_verb(launch.get(at.FAULT_VALUE))} {place}"


def _outside(launch: FaultyLaunch) -> str:
    address, size = launch.get(at.FAULT_ADDRESS), launch.get(at.FAULT_SIZE)
    region = _nearest(launch, address)
    verb = _verb(launch.get(at.FAULT_VALUE))
    if region is None:
        return f"{verb} {size} bytes at address {address:#x}, but the launch has no arrays"
    count = f"{region.nbytes // region.itemsize} {'bytes' if region.name == 'shared memory' else 'elements'}"
    if _distance(region, address) <= max(region.nbytes, 1 << 16):
        side = "before its first element" if address < region.address else f"past the end of its {count}"
        return f"{_access(launch)}, {side}"
    return (
        f"{verb} {size} bytes at address {address:#x}, outside every array of this launch: it would be "
        f"{_element(region, address)} of the nearest array, which has {count}"
    )


def _misaligned(launch: FaultyLaunch) -> str:
    address, size = launch.get(at.FAULT_ADDRESS), launch.get(at.FAULT_SIZE)
    return f"{_access(launch)}, {size} bytes at address {address:#x}, which is not a multiple of {size}"


def _unwritten(launch: FaultyLaunch) -> str:
    return f"{_access(launch)} before a write to it is visible: initialise the array, or add a missing fence or barrier"


def _constant(launch: FaultyLaunch) -> str:
    return f"{_access(launch)}, which is read-only"


def _race(launch: FaultyLaunch) -> str:
    both = launch.get(at.FAULT_VALUE)
    here, there = both & ((1 << at.OTHER_ACCESS) - 1), both >> at.OTHER_ACCESS
    region = _nearest(launch, launch.get(at.FAULT_ADDRESS))
    name = region.name if region else "the array"
    element = _element(region, launch.get(at.FAULT_ADDRESS)) if region else name
    advice = f"use atomics or a barrier, or declare {name} racy"
    if name == "shared memory":
        advice = "put a barrier between them"
    elif region and region.relaxed:
        advice = "write it by the functions of gp.atomics"
    return (
        f"data race: {_verb(here)} {element}, which {_other(launch)} {_verb(there)} at {_other_line(launch)}, and the "
        f"two accesses are unordered: {advice}"
    )


# --- Synchronisation.
def _mask(launch: FaultyLaunch) -> str:
    return f"{launch.get(at.FAULT_VALUE):#010x}"


def _not_in_mask(launch: FaultyLaunch) -> str:
    return f"its own lane is not in the mask {_mask(launch)} that it passes"


def _mask_exited(launch: FaultyLaunch) -> str:
    return f"waits for lanes {_mask(launch)}, but {_other(launch)} has exited"


def _mask_absent(launch: FaultyLaunch) -> str:
    return f"waits for lanes {_mask(launch)}, but {_other_lane(launch)} does not exist: the block has too few threads"


def _warp_elsewhere(launch: FaultyLaunch) -> str:
    return (
        f"waits for lanes {_mask(launch)}, but {_other(launch)} waits for it at {_other_line(launch)} or with a "
        f"different mask: all lanes of a mask must reach the same operation"
    )


def _warp_at_barrier(launch: FaultyLaunch) -> str:
    return (
        f"waits for lanes {_mask(launch)}, but {_other(launch)} waits at the barrier at {_other_line(launch)}: "
        f"neither can continue"
    )


def _shuffle_outside(launch: FaultyLaunch) -> str:
    return f"shuffles from {_other_lane(launch)}, which is not in the mask {_mask(launch)}"


def _barrier_split(launch: FaultyLaunch) -> str:
    return (
        f"reaches this barrier, but {_other(launch)} waits at the barrier at {_other_line(launch)}: all threads must "
        f"reach the same barrier"
    )


def _barrier_exited(launch: FaultyLaunch) -> str:
    return f"waits at a barrier that {_other(launch)} never reaches, because it has exited"


def _barrier_warp(launch: FaultyLaunch) -> str:
    return (
        f"reaches a barrier, but {_other(launch)} waits for it in the warp operation at {_other_line(launch)}: "
        f"neither can continue"
    )


def _grid_not_cooperative(_launch: FaultyLaunch) -> str:
    return "reaches a grid barrier in an ordinary launch: launch the kernel cooperatively"


def _stack(_launch: FaultyLaunch) -> str:
    return f"needs more than {at.STACK_BYTES} bytes of local memory, the limit per thread"


# --- Arithmetic, and internal errors.
def _value(launch: FaultyLaunch) -> int:
    return launch.get(at.FAULT_VALUE)


def _float_range(launch: FaultyLaunch) -> str:
    value = float(np.array(_value(launch), np.int64).view(np.float64))
    return f"converts {value!r} to an integer type that cannot hold it: the result differs between GPU and CPU"


_MESSAGES: dict[int, Callable[[FaultyLaunch], str]] = {
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
    at.SHIFT_TOO_FAR: lambda launch: f"shifts by {_value(launch)}, which is not less than the width of the integer",
    at.FLOAT_RANGE: _float_range,
    at.UNKNOWN_SYNC: lambda launch: f"unknown kind of synchronisation ({_value(launch)})",
    at.UNKNOWN_ATOMIC: lambda launch: f"atomic operation of unknown kind or size ({_value(launch)})",
}


# --- Faults of the launch as a whole.
_MAX_GROUPS = 6
"""Number of groups of waiting threads that a message lists."""


def _all_threads(launch: FaultyLaunch) -> str:
    """Describe where threads wait in a deadlock or in a launch that does not terminate."""
    where = {at.AT_WARP: "a warp operation", at.AT_BLOCK: "a barrier", at.AT_GRID: "a grid barrier"}
    groups: dict[tuple[int, int], list[int]] = {}
    for fiber in launch.fibers:
        status, site = int(fiber[at.STATUS]), int(fiber[at.WAIT_SITE])
        if status in where:
            groups.setdefault((status, site), []).append(int(fiber[at.IDENTITY]))
    waits = "; ".join(
        f"{_thread(launch, min(threads))}{f' and {len(threads) - 1} more' if len(threads) > 1 else ''} "
        f"at {where[status]} at {_line(launch, site)}"
        for (status, site), threads in sorted(groups.items())[:_MAX_GROUPS]
    )
    if launch.get(at.FAULT) == at.DEADLOCK:
        return f"deadlock, no thread can continue: {waits}"
    rows = np.flatnonzero(launch.fibers[:, at.STATUS] == at.RUNNABLE)
    running = launch.fibers[rows[0]]
    where_it_runs = (
        f"{_thread(launch, int(running[at.IDENTITY]))} is still running at {_line(launch, int(running[at.WAIT_SITE]))}"
    )
    return f"does not terminate: {where_it_runs}{f'; other threads wait: {waits}' if waits else ''}"
