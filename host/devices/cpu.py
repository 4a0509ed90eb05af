"""The CPU as a device: NumPy arrays, and Numba kernels on the threads of this process."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from gpu_pregel.host.devices.memory import require_memory
from gpu_pregel.host.devices.threads import Tick, parallel, parallel_ranges, thread_count

_SERIAL_SIZE = 1 << 12
"""Work of at most this many items takes less time than waking the threads."""
_MIN_CHUNK, _MAX_CHUNK = 1 << 10, 1 << 14
_CHUNKS_PER_THREAD = 8


class HostMemory:
    """The memory of a device whose arrays are NumPy arrays."""

    is_host = True
    gpu = None

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
        """Return an uninitialised array."""
        return np.empty(shape, dtype)

    def zeros(self, shape: int, dtype: Any) -> np.ndarray[Any, Any]:
        """Return an array of zeros."""
        return np.zeros(shape, dtype)

    def full(self, shape: int, value: Any, dtype: Any) -> np.ndarray[Any, Any]:
        """Return an array filled with ``value``."""
        return np.full(shape, value, dtype)

    def upload(self, array: np.ndarray[Any, Any], dtype: Any = None) -> np.ndarray[Any, Any]:
        """Return the array itself, which is already in host memory, unless it has another dtype."""
        return np.asarray(array, dtype)

    def download(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the array itself, which is already in host memory."""
        return array

    def move(self, target: np.ndarray[Any, Any], source: np.ndarray[Any, Any]) -> None:
        """Copy the elements of an array to another one of the same length and dtype."""
        target[:] = source

    def synchronize(self) -> None:
        """Return immediately, because launches are synchronous."""

    def require(self, needed: int, purpose: str) -> None:
        """Raise ``NotEnoughMemoryError`` if ``purpose`` needs more bytes than are available."""
        require_memory(needed, purpose)

    def trim(self) -> None:
        """Return immediately, because this device has no memory pool."""


class CpuDevice(HostMemory):
    """Runs kernels on ``threads`` threads of this process."""

    name = "cpu"

    def __init__(self, threads: int | None = None) -> None:
        self.threads = thread_count(threads)

    def kernels(self, family: str) -> ModuleType:
        """Return the module of CPU kernels of a family, such as "components"."""
        return import_module(f"gpu_pregel.kernels.algorithms.{family}_cpu")

    def launch(
        self,
        kernel: Callable[..., Any],
        size: int,
        *arguments: Any,
        chunk: int | None = None,
        tick: Tick | None = None,
    ) -> None:
        """Run ``kernel`` over ``size`` items in chunks of ``chunk`` and wait until it has finished."""
        if chunk is None and size <= _SERIAL_SIZE:
            chunk = size
        elif chunk is None:
            chunk = max(_MIN_CHUNK, min(_MAX_CHUNK, -(-size // (_CHUNKS_PER_THREAD * self.threads))))
        parallel(kernel, size, chunk, *arguments, threads=self.threads, tick=tick)

    def launch_ranges(self, kernel: Callable[..., Any], size: int, *arguments: Any) -> None:
        """Run a kernel over ``size`` items of unknown cost: each thread has a range, and steals from the others."""
        parallel_ranges(kernel, size, *arguments, threads=self.threads)
