"""The emulated CUDA device: runs the code that Numba-CUDA generates for a GPU on the CPU, with strict checks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from gpu_pregel.errors import NotEnoughMemoryError
from gpu_pregel.host.devices.compiled_kernels import kernel_digest, lowered, lowering_versions, stored
from gpu_pregel.host.devices.gpus import H100
from gpu_pregel.host.devices.memory import format_bytes, require_memory
from gpu_pregel.host.emulator.compile.kernel import LoweredKernel, NativeCode, compile_kernel, load_kernel, processor
from gpu_pregel.host.emulator.machine.arrays import DeviceArray, EmulatedMemory
from gpu_pregel.host.emulator.machine.compiled_kernel import CompiledKernel
from gpu_pregel.host.emulator.machine.launch_arguments import Words, flatten
from gpu_pregel.host.emulator.machine.limits import MULTIPROCESSORS
from gpu_pregel.host.emulator.machine.regions import Region
from gpu_pregel.host.emulator.machine.runtime import AccessCounts, load_machine, run
from gpu_pregel.kernels.library.compile_clock import compiling
from gpu_pregel.kernels.library.fingerprint import source_digest
from gpu_pregel.kernels.library.jit_cuda import Kernel

SHADOW_BYTES = 50
"""Maximum size of the shadow memory per byte of an array."""
_POLLING_FILE = "grid_barrier"
"""Part of the name of the file in which blocks wait for others; how often they poll there depends on their order."""

_compiled: dict[Kernel | str, CompiledKernel] = {}
"""Kernels by their digests, which equal kernels share; a kernel without a digest is its own key."""
_memory = EmulatedMemory()


def compile_for_emulation(kernel: Kernel) -> CompiledKernel:
    """Return a kernel that the emulated machine can run, compiled once per machine."""

    def make() -> NativeCode:
        ir = lowered(kernel)
        code = kernel.function.__code__
        return compile_kernel(
            LoweredKernel(
                name=kernel.name,
                modules=ir.modules,
                entry=ir.entry,
                parameters=code.co_varnames[: code.co_argcount],
                layout=ir.layout,
                dynamic_shared=kernel.dynamic_shared,
                racy=kernel.racy,
                relaxed=kernel.relaxed,
                location=(code.co_filename, code.co_firstlineno),
            )
        )

    return load_kernel(stored(kernel, "emulated", _versions(), make))


@functools.cache
def _versions() -> tuple[object, ...]:
    """Return what the machine code of an emulated kernel depends on beside the kernel."""
    emulator = Path(import_module("gpu_pregel.host.emulator").__file__ or "").parent
    return (*lowering_versions(), *processor(), source_digest(emulator))


class EmulatedDevice:
    """Runs CUDA kernels on the CPU and raises an error for anything that fails, or may fail, on a GPU.

    Parameters
    ----------
    seed : int
        Determines the order in which blocks and threads run and stores become visible.
    memory : EmulatedMemory, optional
        By default, the memory that all emulated devices share.
    """

    is_host = False
    threads = None
    gpu = H100
    multiprocessors = MULTIPROCESSORS
    """The most blocks of a cooperative launch."""

    def __init__(self, seed: int = 0, memory: EmulatedMemory = _memory) -> None:
        self.name = "emulated" if seed == 0 else f"emulated:{seed}"
        self.seed = seed
        self.memory = memory
        self.launches = 0
        self.counts: dict[CompiledKernel, AccessCounts] | None = None
        """Memory accesses by kernel, of which several may have the same name; set to a dict to enable counting."""
        self.on_kernel: Callable[[Kernel], None] | None = None
        """Called with the kernel of each launch, with the types of its arguments."""

    def kernels(self, family: str) -> ModuleType:
        """Return the module of CUDA kernels of a family, such as "components"."""
        return import_module(f"gpu_pregel.kernels.algorithms.{family}_cuda")

    def empty(self, size: int, dtype: Any) -> DeviceArray:
        """Return an uninitialised array."""
        return self._allocate(self.memory.empty, size, dtype)

    def zeros(self, size: int, dtype: Any) -> DeviceArray:
        """Return an array of zeros."""
        return self._allocate(self.memory.zeros, size, dtype)

    def full(self, size: int, value: Any, dtype: Any) -> DeviceArray:
        """Return an array filled with ``value``."""
        return self._allocate(self.memory.full, size, value, dtype)

    def upload(self, array: np.ndarray[Any, Any], dtype: Any = None) -> DeviceArray:
        """Copy a one-dimensional host array to the device, converted to ``dtype``."""
        return self._allocate(self.memory.asarray, array, dtype)

    def _allocate(self, allocate: Callable[..., DeviceArray], *arguments: Any) -> DeviceArray:
        try:
            return allocate(*arguments)
        except MemoryError as error:
            raise NotEnoughMemoryError(f"device {self.name}: {error}") from error

    def download(self, array: DeviceArray) -> np.ndarray[Any, Any]:
        """Copy an array to the host, which counts as a readback."""
        return array.get()

    def adopt(self, array: DeviceArray) -> DeviceArray:
        """Return the array."""
        return array

    def hand_out(self, array: DeviceArray) -> DeviceArray:
        """Return the array as one that NumPy may read, as it is in this process's memory."""
        return array.readable()

    def copy(self, array: DeviceArray, dtype: Any) -> DeviceArray:
        """Copy an array within the memory, as elements of a dtype of the same size."""
        return array.copy().view(dtype)

    def move(self, target: DeviceArray, source: DeviceArray) -> None:
        """Copy the elements of an array to another one of the same length and dtype."""
        target[:] = source

    def synchronize(self) -> None:
        """Return immediately, because launches are synchronous."""

    def trim(self) -> None:
        """Return immediately, because this device has no memory pool."""

    def require(self, needed: int, purpose: str) -> None:
        """Raise ``NotEnoughMemoryError`` if ``purpose`` needs more bytes than are available."""
        require_memory(needed * (1 + SHADOW_BYTES), f"{purpose} on the emulated device")
        left = None if self.memory.capacity is None else self.memory.capacity - self.memory.live_bytes
        if left is not None and needed > left:
            raise NotEnoughMemoryError(
                f"{purpose} needs {format_bytes(needed)} of memory on device {self.name}, "
                f"but only {format_bytes(left)} are available: use a smaller graph or another device"
            )

    def launch(
        self,
        kernel: Kernel,
        size: int,
        *arguments: Any,
        chunk: int | None = None,  # noqa: ARG002 (CPU only)
        tick: Callable[..., None] | None = None,
    ) -> None:
        """Run ``kernel`` over ``size`` items and wait until it has finished."""
        if size <= 0:
            return
        kernel = kernel.resolved(arguments)
        if self.on_kernel is not None:
            self.on_kernel(kernel)
        compiled = self._compile(kernel)
        words, regions = flatten(compiled, arguments)
        self.launches += 1
        self._run(kernel, compiled, kernel.shape.blocks(size, self.multiprocessors), words, regions)
        if tick is not None:
            tick(size, size)

    def _compile(self, kernel: Kernel) -> CompiledKernel:
        key = kernel_digest(kernel) or kernel
        if key not in _compiled:
            with compiling():
                load_machine()
                _compiled[key] = compile_for_emulation(kernel)
        return _compiled[key]

    def _run(
        self,
        kernel: Kernel,
        compiled: CompiledKernel,
        blocks: int,
        words: Words,
        regions: list[Region],
    ) -> None:
        run(
            compiled,
            words,
            regions,
            grid=(blocks, 1, 1),
            block=(kernel.block, 1, 1),
            cooperative=kernel.cooperative,
            seed=self.seed,
            launch=self.launches,
            counts=self._counts_of(compiled),
        )

    def _counts_of(self, compiled: CompiledKernel) -> AccessCounts | None:
        if self.counts is None:
            return None
        if compiled not in self.counts:
            polling = [number for number, site in enumerate(compiled.sites) if _POLLING_FILE in site.file]
            self.counts[compiled] = AccessCounts(len(compiled.sites), polling)
        return self.counts[compiled]
