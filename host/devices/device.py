"""The interface of a device: memory, and the kernels that run on it."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Protocol

import numpy as np

from gpu_pregel.host.devices.gpus import Gpu
from gpu_pregel.host.devices.threads import Tick


class Device(Protocol):
    """The CPU, a GPU, or the emulated device.

    Attributes
    ----------
    name : str
    threads : int or None
        Number of CPU threads; None on other devices.
    is_host : bool
        Whether its arrays are NumPy arrays.
    gpu : Gpu or None
        The GPU, also of the emulated device; None on other devices.
    """

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def threads(self) -> int | None: ...  # noqa: D102
    @property
    def is_host(self) -> bool: ...  # noqa: D102
    @property
    def gpu(self) -> Gpu | None: ...  # noqa: D102

    def kernels(self, family: str) -> ModuleType:
        """Return the module of this device's kernels of a family, such as "components"."""

    def empty(self, size: int, dtype: Any) -> Any:
        """Return an uninitialised array."""

    def zeros(self, size: int, dtype: Any) -> Any:
        """Return an array of zeros."""

    def full(self, size: int, value: Any, dtype: Any) -> Any:
        """Return an array filled with ``value``."""

    def upload(self, array: np.ndarray[Any, Any], dtype: Any = None) -> Any:
        """Copy a host array to the device, converted to ``dtype``; the CPU returns an array of that dtype itself."""

    def download(self, array: Any) -> np.ndarray[Any, Any]:
        """Copy an array to the host; the CPU returns the array itself."""

    def move(self, target: Any, source: Any) -> None:
        """Copy the elements of an array of the device to another one of the same length and dtype."""

    def launch(
        self, kernel: Any, size: int, *arguments: Any, chunk: int | None = None, tick: Tick | None = None
    ) -> None:
        """Run ``kernel`` over ``size`` items; ``chunk`` is the number of items that a CPU thread claims at a time."""

    def synchronize(self) -> None:
        """Wait until all launches have finished."""

    def require(self, needed: int, purpose: str) -> None:
        """Raise ``NotEnoughMemoryError`` if ``purpose`` needs more bytes than are available."""

    def trim(self) -> None:
        """Release the unused memory of the device's memory pool."""


class MemoryDevice(Device, Protocol):
    """A device with memory of its own, in which users may have arrays."""

    def adopt(self, array: Any) -> Any:
        """Return a user's array in this device's memory as an array of the device, without copying it."""

    def hand_out(self, array: Any) -> Any:
        """Return an array of the same memory that is complete, and that users may use on any stream of the device."""

    def copy(self, array: Any, dtype: Any) -> Any:
        """Copy an array within the device, as elements of a dtype of the same size; it may be modified afterwards."""
