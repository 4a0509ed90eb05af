"""What the emulated device has, and the launches that it refuses before any thread runs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpu_pregel.errors import EmulationError

MAX_THREADS = 1024
MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = ((1 << 31) - 1, 65535, 65535)
MAX_STATIC_SHARED = 48 << 10
MULTIPROCESSORS = 4
THREADS_EACH, BLOCKS_EACH, SHARED_EACH = 2048, 32, 100 << 10
"""What a multiprocessor holds at once."""


@dataclass(frozen=True)
class Shape:
    """The shape of a launch, its blocks' static shared memory, and whether all of them run at once."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int = 0
    cooperative: bool = False

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return math.prod(self.grid)

    @property
    def threads(self) -> int:
        """Number of threads of a block."""
        return math.prod(self.block)


def cooperative_blocks(threads: int, shared_bytes: int) -> int:
    """How many blocks of a cooperative launch fit the emulated device."""
    each = min(BLOCKS_EACH, THREADS_EACH // (-(-threads // 32) * 32))
    if shared_bytes:
        each = min(each, SHARED_EACH // shared_bytes)
    return MULTIPROCESSORS * each


def check_launch(name: str, shape: Shape, *, grid_barrier: bool = False) -> None:
    """Refuse what a GPU refuses.

    Raises
    ------
    EmulationError
        The shape or the shared memory is beyond what the device has, or a grid barrier has no cooperative launch.
    """
    problem = _problem(shape, grid_barrier)
    if problem is not None:
        raise EmulationError(f"kernel {name} cannot be launched: {problem}")


def _problem(shape: Shape, grid_barrier: bool) -> str | None:
    blocks, threads, shared_bytes = shape.blocks, shape.threads, shape.shared_bytes
    if not _fits(shape.grid, MAX_GRID):
        return f"a grid of {_text(shape.grid)} blocks: from 1 to {_text(MAX_GRID)}; with nothing to do, do not launch"
    if threads > MAX_THREADS or not _fits(shape.block, MAX_BLOCK):
        return f"a block of {_text(shape.block)} threads: from 1 to {MAX_THREADS}, and at most {_text(MAX_BLOCK)}"
    if blocks * threads >= 1 << 32:
        return f"{blocks} blocks of {threads} threads: the emulated device numbers threads with 32 bits"
    if shared_bytes > MAX_STATIC_SHARED:
        return f"{shared_bytes} bytes of static shared memory: a block has at most {MAX_STATIC_SHARED}"
    if shape.cooperative and blocks > cooperative_blocks(threads, shared_bytes):
        return (
            f"a cooperative launch of {blocks} blocks of {threads} threads with {shared_bytes} bytes of shared memory "
            f"each: only {cooperative_blocks(threads, shared_bytes)} are resident at once"
        )
    if grid_barrier and not shape.cooperative:
        return "it has a grid barrier: launch it cooperatively"
    return None


def _fits(sizes: tuple[int, ...], limits: tuple[int, ...]) -> bool:
    return all(1 <= size <= limit for size, limit in zip(sizes, limits, strict=True))


def _text(sizes: tuple[int, ...]) -> str:
    return " x ".join(map(str, sizes))
