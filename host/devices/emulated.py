"""The emulated CUDA device: the machine code that Numba-CUDA would give a GPU, executed strictly on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from gpu_pregel.errors import NotEnoughMemoryError
from gpu_pregel.host.devices.memory import format_bytes, require_memory
from gpu_pregel.host.emulator.compile.kernel import CompiledKernel, compile_kernel
from gpu_pregel.host.emulator.machine.arrays import DeviceArray, EmulatedMemory
from gpu_pregel.host.emulator.machine.launch_arguments import flatten
from gpu_pregel.host.emulator.machine.runtime import Counts, machine, run
from gpu_pregel.kernels.library.jit_cuda import Kernel

SHADOW = 50
"""Bytes of bookkeeping beside each byte of an array, at most: who wrote and read it last."""

_compiled: dict[Kernel, CompiledKernel] = {}
_memory = EmulatedMemory()


class EmulatedDevice:
    """Runs CUDA kernels on the CPU and refuses what a GPU would fail at.

    Parameters
    ----------
    seed : int
        Draws the order of blocks and threads, and when stores are seen.
    memory : EmulatedMemory, optional
        Default: the memory that all emulated devices share.
    """

    is_host = False
    threads = None

    def __init__(self, seed: int = 0, memory: EmulatedMemory = _memory) -> None:
        self.name = "emulated" if seed == 0 else f"emulated:{seed}"
        self.seed = seed
        self.memory = memory
        self.launches = 0
        self.counts: dict[str, tuple[CompiledKernel, Counts]] | None = None
        """Per kernel what it did to memory, while it is a dict."""

    def kernels(self, family: str) -> ModuleType:
        """CUDA's kernels of one family, such as "components"."""
        return import_module(f"gpu_pregel.kernels.algorithms.{family}_cuda")

    def empty(self, size: int, dtype: Any) -> DeviceArray:
        """An array of which nothing is written."""
        return self._allocated(self.memory.empty, size, dtype)

    def zeros(self, size: int, dtype: Any) -> DeviceArray:
        """An array of zeros."""
        return self._allocated(self.memory.zeros, size, dtype)

    def full(self, size: int, value: Any, dtype: Any) -> DeviceArray:
        """An array that holds ``value`` everywhere."""
        return self._allocated(self.memory.full, size, value, dtype)

    def upload(self, array: np.ndarray[Any, Any]) -> DeviceArray:
        """A copy of a host array of one dimension."""
        return self._allocated(self.memory.asarray, array)

    def _allocated(self, allocate: Callable[..., DeviceArray], *arguments: Any) -> DeviceArray:
        try:
            return allocate(*arguments)
        except MemoryError as error:
            raise NotEnoughMemoryError(f"device {self.name}: {error}") from error

    def download(self, array: DeviceArray) -> np.ndarray[Any, Any]:
        """A copy in host memory: a readback."""
        return array.get()

    def synchronize(self) -> None:
        """Wait for what was launched: nothing here, as a launch runs to its end."""

    def trim(self) -> None:
        """Give unused memory back: nothing here, as there is no pool."""

    def require(self, needed: int, purpose: str) -> None:
        """Raise ``NotEnoughMemoryError`` with both figures if ``purpose`` needs more bytes than there are."""
        require_memory(needed * (1 + SHADOW), f"{purpose} on the emulated device")
        left = None if self.memory.capacity is None else self.memory.capacity - self.memory.live_bytes
        if left is not None and needed > left:
            raise NotEnoughMemoryError(
                f"{purpose} needs {format_bytes(needed)} of memory on device {self.name}, and {format_bytes(left)} are "
                f"available: use a smaller graph or another device"
            )

    def launch(
        self,
        kernel: Kernel,
        size: int,
        *arguments: Any,
        chunk: int | None = None,  # noqa: ARG002 (the CPU's)
        tick: Callable[..., None] | None = None,
    ) -> None:
        """Run ``kernel`` over ``size`` items."""
        if size <= 0:
            return
        machine()
        kernel = kernel.resolved(arguments)
        if kernel not in _compiled:
            _compiled[kernel] = compile_kernel(kernel)
        compiled = _compiled[kernel]
        words, regions = flatten(compiled, arguments)
        self.launches += 1
        run(
            compiled.entry,
            words,
            grid=(-(-size // kernel.items), 1, 1),
            block=(kernel.block, 1, 1),
            shared_bytes=compiled.shared_bytes,
            shared_granule=compiled.shared_granule,
            grid_barrier=compiled.uses_grid_barrier,
            sites=len(compiled.sites),
            site_table=compiled.sites,
            name=compiled.name,
            arrays=regions,
            seed=self.seed,
            launch=self.launches,
            counts=self._counts_of(compiled),
        )
        if tick is not None:
            tick(size, size)

    def _counts_of(self, compiled: CompiledKernel) -> Counts | None:
        if self.counts is None:
            return None
        return self.counts.setdefault(compiled.name, (compiled, Counts(len(compiled.sites))))[1]
