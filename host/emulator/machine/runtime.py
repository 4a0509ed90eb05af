"""A launch: checks that a GPU would make, memory for the threads, and the call of the launcher."""

from __future__ import annotations

import ctypes
import functools
import importlib
import mmap
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gpu_pregel.errors import EmulationError
from gpu_pregel.host.emulator.machine import layout as at
from gpu_pregel.host.emulator.machine.faults import Launch, SiteLike, describe
from gpu_pregel.host.emulator.machine.fibers import Fibers, load_fibers
from gpu_pregel.host.emulator.machine.hooks import HOOK_MODULES, HOOKS, compile_hook
from gpu_pregel.host.emulator.machine.limits import Shape, check_launch
from gpu_pregel.host.emulator.machine.regions import Region, SharedMemory, merged, region_table

STEP_LIMIT = 1 << 29
"""After so many changes of threads a launch is taken for endless."""

MAX_SITES = 1 << 16
"""As many as the shadow of a race has bits for."""

_SECTORS = 1 << 20
"""Places in a table of sectors."""
_SLACK = 256 << 10
"""Bytes below the stacks."""

Words = np.ndarray[Any, np.dtype[np.int64]]


class Machine(NamedTuple):
    """The compiled hooks."""

    fibers: Fibers
    addresses: dict[str, int]
    prepare: Any
    run: Any


@functools.cache
def machine() -> Machine:
    """Compile the hooks, or load them from the disk, and make their symbols known to LLVM's linker.

    Raises
    ------
    DeviceError
        There is no machine code for this kind of processor.
    """
    with _LOCK:
        fibers = load_fibers()
        for name in HOOK_MODULES:
            importlib.import_module(f"gpu_pregel.host.emulator.machine.{name}")
        addresses = {one.symbol: compile_hook(one) for one in HOOKS}
        call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
        return Machine(fibers, addresses, call(addresses["emu_prepare"]), call(addresses["emu_run"]))


@dataclass
class Counts:
    """What the launches of one kernel did to global memory: an entry per site, and totals.

    Attributes
    ----------
    executions, bytes, sectors : array of int64
        Accesses by single threads, their bytes, and the 32-byte sectors that warps touched.
    shared, local : int
        Accesses to shared memory, and to the threads' own.
    launches : int
    """

    sites: int
    executions: Words = field(init=False)
    bytes: Words = field(init=False)
    sectors: Words = field(init=False)
    shared: int = 0
    local: int = 0
    launches: int = 0

    def __post_init__(self) -> None:
        self.executions, self.bytes, self.sectors = (np.zeros(self.sites, np.int64) for _ in range(3))

    def of_kind(self, kind: str, table: Sequence[SiteLike]) -> tuple[int, int, int]:
        """Executions, bytes and sectors of the sites of a kind, such as "load"."""
        places = [number for number, site in enumerate(table) if site.kind == kind]
        executions, octets, sectors = (int(each[places].sum()) for each in (self.executions, self.bytes, self.sectors))
        return executions, octets, sectors


class _Memory:
    """What launches leave for the next one."""

    def __init__(self) -> None:
        self._stacks: mmap.mmap | None = None
        self.sectors: list[Words] = []
        self._sectors_used = 0

    def stacks(self, count: int) -> int:
        """Address of so many stacks; below the first one there is room to overflow until that is noticed."""
        size = _SLACK + count * at.STACK_BYTES
        if self._stacks is None or len(self._stacks) < size:
            # Not an array: NumPy asks for huge pages, which would give each thread all of its stack.
            self._stacks = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        return int(np.frombuffer(self._stacks, np.uint8).ctypes.data) + _SLACK

    def use_sectors(self, state: Words) -> None:
        """Give a launch the tables as the last one left them: no two launches share a key."""
        if not self.sectors:
            self.sectors = [np.zeros(_SECTORS, np.int64) for _ in range(2)]
        young, old = self.sectors
        state[at.SECTORS], state[at.OLD_SECTORS] = young.ctypes.data, old.ctypes.data
        state[at.SECTORS_MASK], state[at.SECTORS_USED] = _SECTORS - 1, self._sectors_used

    def leave_sectors(self, state: Words) -> None:
        """Remember which table is the younger, and how full."""
        if state[at.SECTORS] != self.sectors[0].ctypes.data:
            self.sectors.reverse()
        self._sectors_used = int(state[at.SECTORS_USED])


_LOCK = threading.RLock()
_MEMORY = _Memory()
_last_stamp = 0
_STATE: Words = np.zeros(at.STATE_WORDS, np.int64)
"""One launch runs at a time, and this is its state block."""


def state_address() -> int:
    """What the global ``emu_state`` of each compiled kernel is to hold; it never changes."""
    return int(_STATE.ctypes.data)


def run(
    entry: int,
    arguments: Words,
    *,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    shared_bytes: int = 0,
    sites: int,
    arrays: Sequence[Region] = (),
    seed: int = 0,
    launch: int = 0,
    cooperative: bool = False,
    grid_barrier: bool = False,
    counts: Counts | None = None,
    name: str = "kernel",
    site_table: Sequence[SiteLike] = (),
    shared_granule: int = 1,
    step_limit: int = STEP_LIMIT,
) -> None:
    """Run a kernel from its first thread to its last.

    Parameters
    ----------
    entry : int
        Address of the kernel's ``emu_entry``.
    arguments : array of int64
        What the kernel's parameters are, a word each.
    grid, block : tuple of three ints
        Shape of the launch.
    shared_bytes : int
        Static shared memory of a block.
    sites : int
        Numbers of sites are below this.
    arrays : sequence of Region
        All that the kernel may touch but shared memory and its own stack.
    seed, launch : int
        The order of threads, blocks and stores depends on these two alone.
    cooperative, grid_barrier : bool
        Whether all blocks run at once; whether the kernel has a barrier of the grid.
    counts : Counts, optional
        Where accesses are added up.
    name, site_table
        What messages say: the kernel, and for each site its kind, file and line.
    shared_granule : int
        Size of the smallest elements in shared memory: 1, 2, 4 or 8.
    step_limit : int
        Changes of threads after which the launch is refused as endless.

    Raises
    ------
    EmulationError
        The kernel did what a GPU would fail, or might.
    """
    if sites > MAX_SITES:
        raise EmulationError(
            f"kernel {name} has {sites} memory accesses and barriers: at most {MAX_SITES} can be told apart"
        )
    shape = Shape(grid, block, shared_bytes, cooperative)
    check_launch(name, shape, grid_barrier=grid_barrier)
    loaded = machine()
    with _LOCK:
        plan = _Plan(loaded, shape, shared_granule, seed, launch)
        plan.use(entry, arguments, merged(arrays), sites)
        _STATE[:] = plan.state
        _STATE[at.STEP_LIMIT] = step_limit
        counted = _begin_counts(plan, sites) if counts is not None else None
        _run_to_the_end(loaded)
        if counts is not None and counted is not None:
            _end_counts(counts, counted)
        if _STATE[at.FAULT]:
            raise EmulationError(describe(Launch(name, site_table, plan.regions, grid, block, _STATE, plan.fibers)))


def _run_to_the_end(loaded: Machine) -> None:
    """Run the launch that the state block describes; Python looks in now and then, and so hears of Ctrl-C."""
    global _last_stamp
    address = state_address()
    loaded.prepare(address)
    try:
        while loaded.run(address) == at.INTERRUPTED:
            pass
    finally:
        _last_stamp = int(_STATE[at.STAMP])
        if _STATE[at.COUNTING]:
            _MEMORY.leave_sectors(_STATE)


class _Plan:
    """The memory of one launch, and what its state block is to hold."""

    def __init__(self, loaded: Machine, shape: Shape, shared_granule: int, seed: int, launch: int) -> None:
        random = np.random.default_rng((seed & (1 << 63) - 1, launch))
        blocks, threads = shape.blocks, shape.threads
        resident = blocks if shape.cooperative else min(blocks, int(random.integers(1, 3)))
        warps = -(-threads // 32)
        self.order = random.permutation(blocks).astype(np.int64)
        self.threads = resident * threads
        self.blocks = np.zeros((resident, at.BLOCK_WORDS), np.int64)
        self.fibers = np.zeros((self.threads, at.FIBER_WORDS), np.int64)
        self.warps = np.zeros((resident * warps, at.WARP_WORDS), np.int64)
        self.ready = np.empty(self.threads, np.int64)
        self.shared = SharedMemory(resident, shape.shared_bytes, shared_granule)
        self.state = state = np.zeros(at.STATE_WORDS, np.int64)
        state[at.RANDOM] = int(random.integers(1, 1 << 62))
        state[at.READY], state[at.ORDER] = self.ready.ctypes.data, self.order.ctypes.data
        state[at.BLOCKS], state[at.RESIDENT], state[at.THREADS], state[at.WARPS] = blocks, resident, threads, warps
        state[at.BLOCK_RECORDS], state[at.FIBER_RECORDS] = self.blocks.ctypes.data, self.fibers.ctypes.data
        state[at.WARP_RECORDS], state[at.STACKS] = self.warps.ctypes.data, _MEMORY.stacks(self.threads)
        state[at.GRID_X : at.GRID_X + 3], state[at.BLOCK_X : at.BLOCK_X + 3] = shape.grid, shape.block
        state[at.COOPERATIVE], state[at.BLOCK_ENDED] = shape.cooperative, 1
        state[at.STAMP] = state[at.LAUNCH] = _last_stamp + 1
        state[at.SHARED_REGIONS], state[at.SHARED_BYTES] = self.shared.table.ctypes.data, shape.shared_bytes
        state[at.EXIT], state[at.START] = loaded.addresses["emu_exit"], loaded.fibers.start
        state[at.FRAME_WORDS : at.FRAME_START + 1] = loaded.fibers.frame

    def use(self, entry: int, arguments: Words, regions: list[Region], sites: int) -> None:
        """Say what runs, and on what."""
        self.arguments, self.regions = np.ascontiguousarray(arguments, np.int64), regions
        self.records = region_table(regions)
        self.site_regions = np.full(max(sites, 1), self.records.ctypes.data, np.int64)
        state = self.state
        state[at.ENTRY], state[at.ARGUMENTS] = entry, self.arguments.ctypes.data
        state[at.REGIONS], state[at.REGION_COUNT] = self.records[1:].ctypes.data, len(regions)
        state[at.SITE_REGIONS], state[at.SITES] = self.site_regions.ctypes.data, sites


def _begin_counts(plan: _Plan, sites: int) -> tuple[Words, np.ndarray[Any, Any]]:
    """Tables that a launch counts in."""
    _MEMORY.use_sectors(_STATE)
    counted = np.zeros((max(sites, 1), at.COUNT_WORDS), np.int64)
    occurrences = np.empty(plan.threads * max(sites, 1), np.uint32)
    _STATE[at.COUNTING] = 1
    _STATE[at.SITE_COUNTS], _STATE[at.OCCURRENCES] = counted.ctypes.data, occurrences.ctypes.data
    return counted, occurrences


def _end_counts(counts: Counts, counted: tuple[Words, np.ndarray[Any, Any]]) -> None:
    table = counted[0][: counts.sites]
    counts.executions += table[:, at.EXECUTIONS]
    counts.bytes += table[:, at.BYTES]
    counts.sectors += table[:, at.TOUCHED]
    counts.shared += int(_STATE[at.SHARED_COUNT])
    counts.local += int(_STATE[at.LOCAL_COUNT])
    counts.launches += 1
