"""Launches of kernels by cuda-core, whose launch takes the least time; imported only when a GPU is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cuda.core import Device, LaunchConfig, ObjectCode, Stream, launch

from gpu_pregel.host.devices.launches import Launcher, LoadedKernel, link
from gpu_pregel.kernels.library.jit_cuda import Kernel

_COOPERATIVE = "is_cooperative" if hasattr(LaunchConfig, "is_cooperative") else "cooperative_launch"
"""The option of a launch whose blocks are all resident; its name depends on the version of cuda-core."""


class CoreLauncher(Launcher):
    """Launches kernels by cuda-core.

    Raises
    ------
    AttributeError, TypeError
        This version of cuda-core has another interface.
    """

    def __init__(self, number: int, cc: tuple[int, int], stream: int, pointer: Callable[[Any], int]) -> None:
        super().__init__(number, cc, stream, pointer)
        self._core_stream = Stream.from_handle(stream)
        LaunchConfig(grid=1, block=1)

    def _enter(self) -> None:
        Device(self._number).set_current()

    def _multiprocessors(self) -> int:
        return int(Device(self._number).properties.multiprocessor_count)

    def _load_code(self, kernel: Kernel) -> Any:
        return load(kernel, self._cc)

    def _start(self, loaded: LoadedKernel, blocks: int, parameters: list[Any]) -> None:
        options = {_COOPERATIVE: True} if loaded.cooperative else {}
        config = LaunchConfig(grid=blocks, block=loaded.block, **options)
        launch(self._core_stream, config, loaded.code, *parameters)


def load(kernel: Kernel, cc: tuple[int, int]) -> Any:
    """Return a kernel that cuda-core can launch."""
    code, entry = link(kernel, cc)
    return ObjectCode.from_cubin(code).get_kernel(entry)
