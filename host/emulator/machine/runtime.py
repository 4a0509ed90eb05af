"""Launches of compiled kernels: checks, memory for the threads, and the call of the scheduler."""

from __future__ import annotations

import ctypes
import functools
import importlib
import mmap
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gpu_pregel.errors import EmulationError
from gpu_pregel.host.emulator.machine import layout as at
from gpu_pregel.host.emulator.machine.compiled_kernel import BLOCK_FENCE, CompiledKernel, Site
from gpu_pregel.host.emulator.machine.faults import FaultyLaunch, fault_message
from gpu_pregel.host.emulator.machine.fibers import Fibers, load_fibers
from gpu_pregel.host.emulator.machine.hooks import HOOK_MODULES, HOOKS, compile_hook
from gpu_pregel.host.emulator.machine.limits import LaunchShape, check_launch
from gpu_pregel.host.emulator.machine.regions import Region, SharedMemory, merge_regions, region_table

STEP_LIMIT = 1 << 29
"""Number of thread switches after which a launch is assumed not to terminate."""

MAX_SITES = 1 << 16
"""Limited by the bits that race detection stores for a site."""

_SECTORS = 1 << 20
"""Entries in a table of sectors."""
_CLOCK_BYTES, _MIN_CLOCKS = 16 << 20, 64
"""Size of the pool of clocks, of which only what a launch uses is committed; its least number of clocks."""
_PARKS = 8
"""Number of times that a launch may suspend a thread for long, at a fence or at an atomic after a fence."""
_SLACK = 256 << 10
"""Bytes below the first stack, so that an overflow does no harm before it is detected."""

Words = np.ndarray[Any, np.dtype[np.int64]]


class Machine(NamedTuple):
    """The loaded machine code: the fiber switch and the compiled hooks."""

    fibers: Fibers
    addresses: dict[str, int]
    prepare: Any
    run: Any


@functools.cache
def load_machine() -> Machine:
    """Compile the hooks or load them from the on-disk cache, and register their symbols with LLVM.

    Raises
    ------
    DeviceError
        The processor architecture is not supported.
    """
    with _LOCK:
        fibers = load_fibers()
        for name in HOOK_MODULES:
            importlib.import_module(f"gpu_pregel.host.emulator.machine.{name}")
        addresses = {one.symbol: compile_hook(one) for one in HOOKS}
        call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
        return Machine(fibers, addresses, call(addresses["emu_prepare"]), call(addresses["emu_run"]))


@dataclass
class AccessCounts:
    """Memory accesses of all launches of one kernel, per site and in total.

    Parameters
    ----------
    sites : int
        Number of sites of the kernel.
    polling : iterable of int
        Sites at which threads wait for others, so that their number of accesses depends on the order of threads; they
        are left out of the accesses of lanes.

    Attributes
    ----------
    executions, bytes, sectors : array of int64
        Per site: accesses by threads, their bytes, and the 32-byte sectors that warps touched.
    shared, local : int
        Accesses to shared memory and to local memory.
    warp_operations : int
        Shuffles, votes, matches and barriers of warps, each counted once for all lanes of its mask.
    longest_lane, lanes, lane_accesses : int
        Most accesses of one thread to global memory; number of threads with any, over all launches; their accesses.
    launches : int
    """

    sites: int
    polling: Iterable[int] = ()
    executions: Words = field(init=False)
    bytes: Words = field(init=False)
    sectors: Words = field(init=False)
    shared: int = 0
    local: int = 0
    warp_operations: int = 0
    longest_lane: int = 0
    lanes: int = 0
    lane_accesses: int = 0
    launches: int = 0

    def __post_init__(self) -> None:
        self.executions, self.bytes, self.sectors = (np.zeros(self.sites, np.int64) for _ in range(3))

    def of_kind(self, kind: str, table: Sequence[Site]) -> tuple[int, int, int]:
        """Return the executions, bytes and sectors of all sites of a kind, such as "load"."""
        places = [number for number, site in enumerate(table) if site.kind == kind]
        executions, octets, sectors = (int(each[places].sum()) for each in (self.executions, self.bytes, self.sectors))
        return executions, octets, sectors


class _ReusedMemory:
    """Memory that is kept between launches: stacks, tables of sectors and late writes, and clocks."""

    def __init__(self) -> None:
        self._stacks: mmap.mmap | None = None
        self.sectors: list[Words] = []
        self._sectors_used = 0
        self._late = np.zeros(at.LATE_ENTRIES * at.LATE_WORDS, np.int64)
        self._log = np.zeros(at.MULTIPROCESSORS * at.LOG_ENTRIES, np.int64)
        self._places = np.zeros(at.PLACE_ENTRIES * at.PLACE_WORDS, np.int64)
        self._clocks: mmap.mmap | None = None

    def stacks(self, count: int) -> int:
        """Return the address of ``count`` stacks."""
        size = _SLACK + count * at.STACK_BYTES
        if self._stacks is None or len(self._stacks) < size:
            # Not a NumPy array: NumPy requests huge pages, which would commit each stack completely.
            self._stacks = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        return int(np.frombuffer(self._stacks, np.uint8).ctypes.data) + _SLACK

    def late_writes(self) -> int:
        """Return the address of an empty table of late writes."""
        self._late.fill(0)
        return int(self._late.ctypes.data)

    def use_clocks(self, state: Words, blocks: int, warps: int) -> None:
        """Pass the pool of clocks, its size and the tables that go with it to a launch; the launch initialises them."""
        size = (at.CLOCK_DATA + blocks * (1 + at.WARP_KNOWN * warps)) * at.WORD
        count = max(_MIN_CLOCKS, _CLOCK_BYTES // size)
        if self._clocks is None or len(self._clocks) < count * size:
            self._clocks = mmap.mmap(-1, count * size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        state[at.CLOCKS] = np.frombuffer(self._clocks, np.uint8).ctypes.data
        state[at.CLOCK_COUNT] = count
        state[at.PLACES], state[at.FENCE_LOG] = self._places.ctypes.data, self._log.ctypes.data

    def use_sectors(self, state: Words) -> None:
        """Pass the tables to a launch without clearing them, because keys are unique to a launch."""
        if not self.sectors:
            self.sectors = [np.zeros(_SECTORS, np.int64) for _ in range(2)]
        young, old = self.sectors
        state[at.SECTORS], state[at.OLD_SECTORS] = young.ctypes.data, old.ctypes.data
        state[at.SECTORS_MASK], state[at.SECTORS_USED] = _SECTORS - 1, self._sectors_used

    def forget_sectors(self) -> None:
        """Empty the tables, so that counts do not depend on earlier launches."""
        self.sectors.clear()
        self._sectors_used = 0

    def return_sectors(self, state: Words) -> None:
        """Record which table is the newer one, and its number of entries."""
        if state[at.SECTORS] != self.sectors[0].ctypes.data:
            self.sectors.reverse()
        self._sectors_used = int(state[at.SECTORS_USED])


_LOCK = threading.RLock()
_MEMORY = _ReusedMemory()
_last_stamp = 0
_STATE: Words = np.zeros(at.STATE_WORDS, np.int64)
"""The state block of the current launch; launches run one at a time."""


def state_address() -> int:
    """Return the address of the state block, which is constant."""
    return int(_STATE.ctypes.data)


def forget_sectors() -> None:
    """Let the launches that follow be counted as in a new process."""
    with _LOCK:
        _MEMORY.forget_sectors()


def run(
    kernel: CompiledKernel,
    arguments: Words,
    arrays: Sequence[Region] = (),
    *,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    seed: int = 0,
    launch: int = 0,
    cooperative: bool = False,
    counts: AccessCounts | None = None,
    step_limit: int = STEP_LIMIT,
) -> None:
    """Launch a kernel and wait until all its threads have exited.

    Parameters
    ----------
    kernel : CompiledKernel
    arguments : array of int64
        One word per parameter of the native code.
    arrays : sequence of Region
        All memory that the kernel may access, except shared memory and the threads' stacks.
    grid, block : tuple of three ints
        Shape of the launch.
    seed, launch : int
        Determine the order in which threads and blocks run and stores become visible.
    cooperative : bool
        Whether all blocks run concurrently.
    counts : AccessCounts, optional
        Receives the launch's accesses.
    step_limit : int
        Number of thread switches after which the launch fails as non-terminating.

    Raises
    ------
    EmulationError
        The kernel did something that fails, or may fail, on a GPU.
    """
    sites = len(kernel.sites)
    if sites > MAX_SITES:
        raise EmulationError(f"kernel {kernel.name} has {sites} memory accesses and barriers: the limit is {MAX_SITES}")
    shape = LaunchShape(grid, block, kernel.shared_bytes, cooperative, kernel.dynamic_shared)
    check_launch(kernel.name, shape, grid_barrier=kernel.uses_grid_barrier)
    loaded = load_machine()
    with _LOCK:
        records = _LaunchRecords(loaded, kernel, shape, seed, launch)
        records.use(kernel.entry, arguments, merge_regions(arrays), sites)
        _STATE[:] = records.state
        _STATE[at.STEP_LIMIT] = step_limit
        counted = _begin_counts(records, sites, counts.polling) if counts is not None else None
        _run_threads(loaded)
        if counts is not None and counted is not None:
            _end_counts(counts, counted)
        if _STATE[at.FAULT]:
            faulty = FaultyLaunch(kernel.name, kernel.sites, records.regions, grid, block, _STATE, records.fibers)
            raise EmulationError(fault_message(faulty))


def _run_threads(loaded: Machine) -> None:
    """Run the launch that the state block describes, returning to Python periodically so that Ctrl-C is handled."""
    global _last_stamp
    address = state_address()
    loaded.prepare(address)
    try:
        while loaded.run(address) == at.INTERRUPTED:
            pass
    finally:
        _last_stamp = int(_STATE[at.STAMP])
        if _STATE[at.COUNTING]:
            _MEMORY.return_sectors(_STATE)


class _LaunchRecords:
    """The records of one launch, and the initial contents of its state block."""

    def __init__(self, loaded: Machine, kernel: CompiledKernel, shape: LaunchShape, seed: int, launch: int) -> None:
        random = np.random.default_rng((seed & (1 << 63) - 1, launch))
        blocks, threads = shape.blocks, shape.threads
        kinds = {site.kind for site in kernel.sites}
        has_fences = not kinds.isdisjoint({"fence", BLOCK_FENCE})
        resident = blocks if shape.cooperative else min(blocks, int(random.integers(1, 3)))
        warps = -(-threads // 32)
        self.order = random.permutation(blocks).astype(np.int64)
        self.threads = resident * threads
        self.blocks = np.zeros((resident, at.BLOCK_WORDS), np.int64)
        self.fibers = np.zeros((self.threads, at.FIBER_WORDS), np.int64)
        self.warps = np.zeros((resident * warps, at.WARP_WORDS), np.int64)
        self.ready = np.empty(self.threads, np.int64)
        self.shared = SharedMemory(resident, shape.shared_bytes, kernel.shared_granule)
        self.state = state = np.zeros(at.STATE_WORDS, np.int64)
        state[at.RANDOM] = int(random.integers(1, 1 << 62))
        state[at.READY], state[at.ORDER] = self.ready.ctypes.data, self.order.ctypes.data
        state[at.BLOCKS], state[at.RESIDENT], state[at.THREADS], state[at.WARPS] = blocks, resident, threads, warps
        state[at.BLOCK_RECORDS], state[at.FIBER_RECORDS] = self.blocks.ctypes.data, self.fibers.ctypes.data
        state[at.WARP_RECORDS], state[at.STACKS] = self.warps.ctypes.data, _MEMORY.stacks(self.threads)
        state[at.GRID_X : at.GRID_X + 3], state[at.BLOCK_X : at.BLOCK_X + 3] = shape.grid, shape.block
        state[at.COOPERATIVE], state[at.BLOCK_ENDED] = shape.cooperative, 1
        state[at.STAMP] = state[at.LAUNCH] = _last_stamp + 1
        state[at.NOW], state[at.LATE] = 1, _MEMORY.late_writes() if blocks > 1 else 0
        _MEMORY.use_clocks(state, blocks, warps)
        state[at.BLOCK_FENCES] = BLOCK_FENCE in kinds
        state[at.PARK_UNTIL], state[at.PARKS_LEFT] = at.NEVER, _PARKS if has_fences and blocks > 1 else 0
        state[at.SHARED_REGIONS], state[at.SHARED_BYTES] = self.shared.table.ctypes.data, shape.shared_bytes
        state[at.EXIT], state[at.START] = loaded.addresses["emu_exit"], loaded.fibers.start
        state[at.FRAME_WORDS : at.FRAME_START + 1] = loaded.fibers.frame

    def use(self, entry: int, arguments: Words, regions: list[Region], sites: int) -> None:
        """Set the kernel, its arguments and the regions it may access."""
        self.arguments, self.regions = np.ascontiguousarray(arguments, np.int64), regions
        self.records = region_table(regions)
        self.site_regions = np.full(max(sites, 1), self.records.ctypes.data, np.int64)
        state = self.state
        state[at.ENTRY], state[at.ARGUMENTS] = entry, self.arguments.ctypes.data
        state[at.REGIONS], state[at.REGION_COUNT] = self.records[1:].ctypes.data, len(regions)
        state[at.SITE_REGIONS], state[at.SITES] = self.site_regions.ctypes.data, sites


class _CountTables(NamedTuple):
    """What receives the counts of a launch, and the sites that are left out of those of lanes."""

    sites: Words
    occurrences: np.ndarray[Any, Any]
    polling: Words


def _begin_counts(records: _LaunchRecords, sites: int, polling: Iterable[int]) -> _CountTables:
    """Enable counting and return the tables that receive the counts."""
    _MEMORY.use_sectors(_STATE)
    tables = _CountTables(
        np.zeros((max(sites, 1), at.COUNT_WORDS), np.int64),
        np.empty(records.threads * (sites + 1), np.uint32),
        np.zeros(max(sites, 1), np.int64),
    )
    tables.polling[list(polling)] = 1
    _STATE[at.COUNTING] = 1
    for slot, table in zip((at.SITE_COUNTS, at.OCCURRENCES, at.POLLING), tables, strict=True):
        _STATE[slot] = table.ctypes.data
    return tables


def _end_counts(counts: AccessCounts, tables: _CountTables) -> None:
    table = tables.sites[: counts.sites]
    counts.executions += table[:, at.EXECUTIONS]
    counts.bytes += table[:, at.BYTES]
    counts.sectors += table[:, at.TOUCHED]
    counts.shared += int(_STATE[at.SHARED_COUNT])
    counts.local += int(_STATE[at.LOCAL_COUNT])
    counts.warp_operations += int(_STATE[at.WARP_OPERATIONS])
    counts.longest_lane = max(counts.longest_lane, int(_STATE[at.LONGEST_LANE]))
    counts.lanes += int(_STATE[at.USED_LANES])
    counts.lane_accesses += int(_STATE[at.LANE_ACCESSES])
    counts.launches += 1
