"""Runs kernels written in a test on the emulated device."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import from_dtype, types

from gpu_pregel.host.emulator.compile.kernel import CompiledKernel, compile_kernel
from gpu_pregel.host.emulator.machine.arrays import DeviceArray, EmulatedMemory
from gpu_pregel.host.emulator.machine.launch_arguments import flatten
from gpu_pregel.host.emulator.machine.runtime import Counts, run

SEEDS = (0, 1, 2)
memory = EmulatedMemory()


def on_device(values: Any, dtype: Any = None) -> DeviceArray:
    """A host array or list, copied to the device."""
    return memory.asarray(np.asarray(values, dtype))


@dataclass(frozen=True)
class Declared:
    """What is declared of a kernel."""

    function: Callable[..., Any]
    signature: tuple[Any, ...]
    racy: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """That of the function."""
        return self.function.__name__


@functools.cache
def compiled(function: Callable[..., Any], signature: tuple[Any, ...], racy: tuple[str, ...] = ()) -> CompiledKernel:
    """A kernel, compiled once for all tests."""
    return compile_kernel(Declared(function, signature, frozenset(racy)))


def signature_of(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Types to declare for these arguments."""
    return tuple(_type_of(argument) for argument in arguments)


def _type_of(argument: Any) -> Any:
    if isinstance(argument, DeviceArray):
        return types.Array(from_dtype(argument.dtype), 1, "C")
    if isinstance(argument, tuple):
        return types.Tuple([_type_of(part) for part in argument])
    if isinstance(argument, np.generic):
        return from_dtype(argument.dtype)
    return {bool: types.boolean, int: types.int64, float: types.float64}[type(argument)]


def launch(
    function: Callable[..., Any],
    *arguments: Any,
    grid: int | tuple[int, int, int] = 1,
    block: int | tuple[int, int, int] = 32,
    racy: tuple[str, ...] = (),
    seed: int = 0,
    cooperative: bool = False,
    counts: bool = False,
) -> tuple[CompiledKernel, Counts | None]:
    """Run a kernel; arguments are device arrays and scalars, by which it is declared."""
    kernel = compiled(function, signature_of(arguments), racy)
    slots, regions = flatten(kernel, arguments)
    counted = Counts(len(kernel.sites)) if counts else None
    run(
        kernel.entry,
        slots,
        grid=grid if isinstance(grid, tuple) else (grid, 1, 1),
        block=block if isinstance(block, tuple) else (block, 1, 1),
        shared_bytes=kernel.shared_bytes,
        shared_granule=kernel.shared_granule,
        sites=len(kernel.sites),
        arrays=regions,
        seed=seed,
        cooperative=cooperative,
        grid_barrier=kernel.uses_grid_barrier,
        counts=counted,
        name=kernel.name,
        site_table=kernel.sites,
    )
    return kernel, counted


def line_of(function: Callable[..., Any], mark: str = "# fault") -> int:
    """The line of a function that ends with a mark."""
    lines, first = inspect.getsourcelines(function)
    return next(first + number for number, line in enumerate(lines) if line.rstrip().endswith(mark))
