"""Queries NVIDIA's driver for GPUs, without CuPy or Numba and without creating a CUDA context."""

from __future__ import annotations

import ctypes
import functools
from dataclasses import dataclass
from typing import Any

from gpu_pregel.errors import DeviceError

_DRIVER = "libcuda.so.1"
_NO_DEVICE = 100
_MAJOR, _MINOR, _L2_BYTES = 75, 76, 38
"""Driver attributes for the two parts of the compute capability and the size of the L2 cache."""


@dataclass(frozen=True)
class Gpu:
    """A GPU visible to this process, numbered from 0."""

    number: int
    name: str
    compute_capability: tuple[int, int]
    memory: int
    l2_bytes: int = 50 << 20


H100 = Gpu(0, "NVIDIA H100", (9, 0), 80 << 30)
"""The GPU whose figures the emulated device has."""


@dataclass(frozen=True)
class Gpus:
    """The GPUs visible to this process, and the latest CUDA version that the driver supports, such as (13, 1)."""

    found: tuple[Gpu, ...]
    cuda_version: tuple[int, int]


def gpus() -> Gpus:
    """Return the GPUs visible to this process, at least one; the driver is queried once per process.

    Raises
    ------
    DeviceError
        No GPU is visible; the message states the reason.
    """
    found = _query()
    if isinstance(found, str):
        raise DeviceError(found)
    return found


@functools.cache
def _query() -> Gpus | str:
    """Return the GPUs, or the reason why there are none."""
    try:
        driver = ctypes.CDLL(_DRIVER)
    except OSError:
        return f"no NVIDIA driver is installed: {_DRIVER} cannot be loaded"
    try:
        _call(driver, "cuInit", 0)
        version = _number(driver, "cuDriverGetVersion")
        found = tuple(_describe(driver, number) for number in range(_number(driver, "cuDeviceGetCount")))
    except _DriverError as error:
        return str(error)
    if not found:
        return "the NVIDIA driver finds no GPU visible to this process: check CUDA_VISIBLE_DEVICES"
    return Gpus(found, (version // 1000, version % 1000 // 10))


class _DriverError(Exception):
    pass


def _call(driver: Any, name: str, *arguments: Any) -> None:
    function = getattr(driver, name, None)
    if function is None:
        raise _DriverError(f"{_DRIVER} has no function {name}: install a newer NVIDIA driver")
    status = function(*arguments)
    if status == _NO_DEVICE:
        raise _DriverError("the NVIDIA driver finds no GPU")
    if status:
        text = ctypes.c_char_p()
        driver.cuGetErrorName(status, ctypes.byref(text))
        returned = f"{(text.value or b'error').decode()} ({status})"
        raise _DriverError(
            f"the NVIDIA driver failed: {name} returned {returned}: run nvidia-smi, and restart the machine after an "
            f"update of the driver"
        )


def _number(driver: Any, name: str, *arguments: Any, kind: Any = ctypes.c_int) -> int:
    """Call a driver function that writes its result through its first argument, and return the result."""
    result = kind()
    _call(driver, name, ctypes.byref(result), *arguments)
    return int(result.value)


def _describe(driver: Any, number: int) -> Gpu:
    device = _number(driver, "cuDeviceGet", number)
    name = ctypes.create_string_buffer(256)
    _call(driver, "cuDeviceGetName", name, len(name), device)
    return Gpu(
        number=number,
        name=name.value.decode(errors="replace"),
        compute_capability=(
            _number(driver, "cuDeviceGetAttribute", _MAJOR, device),
            _number(driver, "cuDeviceGetAttribute", _MINOR, device),
        ),
        memory=_number(driver, "cuDeviceTotalMem_v2", device, kind=ctypes.c_size_t),
        l2_bytes=_number(driver, "cuDeviceGetAttribute", _L2_BYTES, device),
    )
