"""Limits of the emulated device, and the check of a launch against them before any thread runs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpu_pregel.errors import EmulationError

MAX_THREADS = 1024
MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = ((1 << 31) - 1, 65535, 65535)
MAX_STATIC_SHARED = 48 << 10
MAX_SHARED = 99 << 10
"""Bytes of shared memory of a block, dynamic memory included; many chips since sm_80 have no more."""
MULTIPROCESSORS = 4
MAX_RESIDENT_THREADS, MAX_RESIDENT_BLOCKS, MAX_RESIDENT_SHARED = 2048, 32, 100 << 10
"""Threads, blocks and bytes of shared memory that a multiprocessor can hold."""


@dataclass(frozen=True)
class LaunchShape:
    """The shape of a launch, shared memory per block, also dynamic alone, and whether all blocks run concurrently."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int = 0
    cooperative: bool = False
    dynamic_shared: int = 0

    @property
    def blocks(self) -> int:
        """Number of blocks in the grid."""
        return math.prod(self.grid)

    @property
    def threads(self) -> int:
        """Number of threads per block."""
        return math.prod(self.block)


def cooperative_blocks(threads: int, shared_bytes: int) -> int:
    """Return the maximum number of blocks in a cooperative launch."""
    each = min(MAX_RESIDENT_BLOCKS, MAX_RESIDENT_THREADS // (-(-threads // 32) * 32))
    if shared_bytes:
        each = min(each, MAX_RESIDENT_SHARED // shared_bytes)
    return MULTIPROCESSORS * each


def check_launch(name: str, shape: LaunchShape, *, grid_barrier: bool = False) -> None:
    """Raise for a launch that a GPU would refuse.

    Raises
    ------
    EmulationError
        The launch exceeds a limit of the device, or a kernel with a grid barrier is not launched cooperatively.
    """
    problem = _problem(shape, grid_barrier)
    if problem is not None:
        raise EmulationError(f"kernel {name} cannot be launched: {problem}")


def _problem(shape: LaunchShape, grid_barrier: bool) -> str | None:
    blocks, threads, shared_bytes = shape.blocks, shape.threads, shape.shared_bytes
    if not _fits(shape.grid, MAX_GRID):
        size, limit = _dimensions(shape.grid), _dimensions(MAX_GRID)
        return f"a grid of {size} blocks: use 1 to {limit}, or skip a launch that has no work"
    if threads > MAX_THREADS or not _fits(shape.block, MAX_BLOCK):
        size, limit = _dimensions(shape.block), _dimensions(MAX_BLOCK)
        return f"a block of {size} threads: use 1 to {MAX_THREADS} in total and at most {limit}"
    if blocks * threads >= 1 << 32:
        return f"{blocks} blocks of {threads} threads: the emulated device supports at most {(1 << 32) - 1:,} threads"
    static = shared_bytes - shape.dynamic_shared
    if static > MAX_STATIC_SHARED:
        return f"{static} bytes of static shared memory: the limit is {MAX_STATIC_SHARED} per block"
    if shared_bytes > MAX_SHARED:
        return f"{shared_bytes} bytes of shared memory: the limit is {MAX_SHARED} per block"
    if shape.cooperative and blocks > cooperative_blocks(threads, shared_bytes):
        return (
            f"a cooperative launch of {blocks} blocks of {threads} threads with {shared_bytes} bytes of shared memory "
            f"each: only {cooperative_blocks(threads, shared_bytes)} are resident at once"
        )
    if grid_barrier and not shape.cooperative:
        return "it contains a grid barrier: launch it cooperatively"
    return None


def _fits(sizes: tuple[int, ...], limits: tuple[int, ...]) -> bool:
    return all(1 <= size <= limit for size, limit in zip(sizes, limits, strict=True))


def _dimensions(sizes: tuple[int, ...]) -> str:
    return " x ".join(map(str, sizes))
