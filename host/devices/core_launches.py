"""Launches of kernels by cuda-core, whose launch takes the least time; imported only when a GPU is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cuda.core import Device, LaunchConfig, ObjectCode, Stream, launch

from gpu_pregel.host.devices.launches import Launcher, LoadedKernel, link
from gpu_pregel.kernels.library.jit_cuda import Kernel

_COOPERATIVE = "is_cooperative" if hasattr(LaunchConfig, "is_cooperative") else "cooperative_launch"
"""The option of a launch whose blocks are all resident; its name depends on the version of cuda-core."""

_MOST_CONFIGS = 1 << 12


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
        self._configs: dict[tuple[int, int, bool], Any] = {}
        LaunchConfig(grid=1, block=1)

    def _enter(self) -> None:
        Device(self._number).set_current()

    def _multiprocessors(self) -> int:
        return int(Device(self._number).properties.multiprocessor_count)

    def _load_code(self, kernel: Kernel) -> Any:
        return load(kernel, self._cc)

    def _start(self, loaded: LoadedKernel, blocks: int, parameters: list[Any]) -> None:
        shape = blocks, loaded.block, loaded.cooperative
        config = self._configs.get(shape) or self._configure(*shape)
        launch(self._core_stream, config, loaded.code, *parameters)

    def _configure(self, blocks: int, block: int, cooperative: bool) -> Any:
        """Return the configuration of a launch, which takes as long to make as to launch; it is kept."""
        if len(self._configs) == _MOST_CONFIGS:
            self._configs.clear()
        options = {_COOPERATIVE: True} if cooperative else {}
        made = self._configs[blocks, block, cooperative] = LaunchConfig(grid=blocks, block=block, **options)
        return made


def load(kernel: Kernel, cc: tuple[int, int]) -> Any:
    """Return a kernel that cuda-core can launch."""
    code, entry = link(kernel, cc)
    return ObjectCode.from_cubin(code).get_kernel(entry)
