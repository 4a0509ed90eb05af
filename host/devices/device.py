"""What a device is to the engine and to algorithms: memory, and kernels that run there."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Protocol

import numpy as np

from gpu_pregel.host.devices.threads import Tick


class Device(Protocol):
    """The CPU, a GPU, or the emulated one.

    Attributes
    ----------
    name : str
    threads : int or None
        Of the CPU that kernels run on.
    is_host : bool
        Whether its arrays are NumPy arrays.
    """

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def threads(self) -> int | None: ...  # noqa: D102
    @property
    def is_host(self) -> bool: ...  # noqa: D102

    def kernels(self, family: str) -> ModuleType:
        """Its kernels of one family, such as "components"."""

    def empty(self, size: int, dtype: Any) -> Any:
        """An array of which nothing is written."""

    def zeros(self, size: int, dtype: Any) -> Any:
        """An array of zeros."""

    def full(self, size: int, value: Any, dtype: Any) -> Any:
        """An array that holds ``value`` everywhere."""

    def upload(self, array: np.ndarray[Any, Any]) -> Any:
        """A host array's copy on the device; on the CPU the array itself."""

    def download(self, array: Any) -> np.ndarray[Any, Any]:
        """An array's copy on the host; on the CPU the array itself."""

    def launch(
        self, kernel: Any, size: int, *arguments: Any, chunk: int | None = None, tick: Tick | None = None
    ) -> None:
        """Run ``kernel`` over ``size`` items; ``chunk`` is how many a CPU thread takes at once."""

    def synchronize(self) -> None:
        """Wait for what was launched."""

    def require(self, needed: int, purpose: str) -> None:
        """Raise ``NotEnoughMemoryError`` with both figures if ``purpose`` needs more bytes than there are."""

    def trim(self) -> None:
        """Give unused memory of a pool back."""
