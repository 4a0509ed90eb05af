"""Launches of kernels by the driver's own functions, where cuda-core has another interface than the one tried here."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from cuda.bindings import driver

from gpu_pregel.host.devices.launches import Launcher, LoadedKernel, link
from gpu_pregel.kernels.library.jit_cuda import Kernel


class DriverLauncher(Launcher):
    """Launches kernels by cuda-bindings, with the parameters that cuda-core would pass."""

    def __init__(self, number: int, cc: tuple[int, int], stream: int, pointer: Callable[[Any], int]) -> None:
        super().__init__(number, cc, stream, pointer)
        self._device = _call("cuDeviceGet", number)
        self._context = _call("cuDevicePrimaryCtxRetain", self._device)

    def _enter(self) -> None:
        _call("cuCtxSetCurrent", self._context)

    def _multiprocessors(self) -> int:
        attribute = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
        return int(_call("cuDeviceGetAttribute", attribute, self._device))

    def _load_code(self, kernel: Kernel) -> Any:
        return load(kernel, self._cc)

    def _start(self, loaded: LoadedKernel, blocks: int, parameters: list[Any]) -> None:
        values = [_as_c(parameter) for parameter in parameters]
        # The driver copies the values before it returns.
        places = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        shape = (blocks, 1, 1, loaded.block, 1, 1, 0, self._stream, ctypes.addressof(places))
        if loaded.cooperative:
            _call("cuLaunchCooperativeKernel", loaded.code, *shape)
        else:
            _call("cuLaunchKernel", loaded.code, *shape, 0)


def load(kernel: Kernel, cc: tuple[int, int]) -> Any:
    """Return a kernel that the driver can launch; its code stays loaded until the process ends."""
    code, entry = link(kernel, cc)
    library = _call("cuLibraryLoadData", code, [], [], 0, [], [], 0)
    return _call("cuLibraryGetKernel", library, entry.encode())


def _as_c(parameter: Any) -> Any:
    """Return a parameter in memory: a bool in a byte, another Python integer in eight."""
    if isinstance(parameter, bool):
        return ctypes.c_bool(parameter)
    return ctypes.c_int64(parameter) if isinstance(parameter, int) else parameter


def _call(name: str, *arguments: Any) -> Any:
    """Call a function of the driver and return its result, if it has one."""
    status, *results = getattr(driver, name)(*arguments)
    if status:
        raise RuntimeError(f"the NVIDIA driver failed: {name} returned {status.name} ({int(status)})")
    return results[0] if results else None
