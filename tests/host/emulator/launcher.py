"""Compiles kernels written in a test and launches them on the emulated machine."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import from_dtype, types

from gpu_pregel.errors import EmulationError
from gpu_pregel.host.devices.emulated import compile_for_emulation
from gpu_pregel.host.emulator.machine.arrays import DeviceArray, EmulatedMemory
from gpu_pregel.host.emulator.machine.compiled_kernel import CompiledKernel
from gpu_pregel.host.emulator.machine.launch_arguments import flatten
from gpu_pregel.host.emulator.machine.runtime import AccessCounts, run
from gpu_pregel.kernels.library.jit_cuda import BLOCK, Kernel

SEEDS = (0, 1, 2)
memory = EmulatedMemory()


def on_device(values: Any, dtype: Any = None) -> DeviceArray:
    """Copy a host array or a list to the device."""
    return memory.asarray(np.asarray(values, dtype))


@functools.cache
def compile_cached(
    function: Callable[..., Any],
    signature: tuple[Any, ...],
    racy: tuple[str, ...] = (),
    relaxed: tuple[str, ...] = (),
    dynamic_shared: int = 0,
) -> CompiledKernel:
    """Compile a kernel once for all tests."""
    kernel = Kernel(function, signature, frozenset(racy), frozenset(relaxed), BLOCK, BLOCK)
    return compile_for_emulation(replace(kernel, dynamic_shared=dynamic_shared))


def signature_of(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the Numba types of the arguments."""
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
    relaxed: tuple[str, ...] = (),
    seed: int = 0,
    cooperative: bool = False,
    counts: bool = False,
    dynamic_shared: int = 0,
) -> tuple[CompiledKernel, AccessCounts | None]:
    """Compile a kernel for the types of its arguments, device arrays and scalars, and run it."""
    kernel = compile_cached(function, signature_of(arguments), racy, relaxed, dynamic_shared)
    words, regions = flatten(kernel, arguments)
    counted = AccessCounts(len(kernel.sites)) if counts else None
    run(
        kernel,
        words,
        regions,
        grid=grid if isinstance(grid, tuple) else (grid, 1, 1),
        block=block if isinstance(block, tuple) else (block, 1, 1),
        seed=seed,
        cooperative=cooperative,
        counts=counted,
    )
    return kernel, counted


def line_of(function: Callable[..., Any], mark: str = "# fault") -> int:
    """Return the line number of the line of a function that ends with a mark."""
    lines, first = inspect.getsourcelines(function)
    return next(first + number for number, line in enumerate(lines) if line.rstrip().endswith(mark))


def fault_of(
    function: Callable[..., Any], *arguments: Any, marks: tuple[str, ...] = ("# fault",), **options: Any
) -> str:
    """Launch a kernel that must fail with every seed, and return the first message.

    Each message must name the kernel, one of the marked lines and the thread.
    """
    lines = "|".join(str(line_of(function, mark)) for mark in marks)
    file = re.escape(Path(function.__code__.co_filename).name)
    messages = []
    for seed in SEEDS:
        with pytest.raises(EmulationError) as raised:
            launch(function, *arguments, seed=seed, **options)
        messages.append(str(raised.value))
        place = rf"kernel {function.__name__}, {file} line ({lines}), block \d+, thread \d+: "
        assert re.match(place, messages[-1]), messages[-1]
    return messages[0]
