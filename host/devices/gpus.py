"""The GPUs of this machine, as NVIDIA's driver tells: without CuPy or Numba, and without making a CUDA context."""

from __future__ import annotations

import ctypes
import functools
from dataclasses import dataclass
from typing import Any

from gpu_pregel.errors import DeviceError

_DRIVER = "libcuda.so.1"
_NO_DEVICE = 100
_MAJOR, _MINOR = 75, 76
"""The driver's numbers for the two parts of the compute capability."""


@dataclass(frozen=True)
class Gpu:
    """A GPU: its number, which counts those that this process may use, and what it is."""

    number: int
    name: str
    compute_capability: tuple[int, int]
    memory: int


@dataclass(frozen=True)
class Gpus:
    """All GPUs of this machine, and the highest version of CUDA that its driver knows, 13.1 as (13, 1)."""

    found: tuple[Gpu, ...]
    cuda_version: tuple[int, int]


def gpus() -> Gpus:
    """The GPUs that this process may use, at least one; asked once in a process.

    Raises
    ------
    DeviceError
        There is none; the message says why.
    """
    answer = _ask()
    if isinstance(answer, str):
        raise DeviceError(answer)
    return answer


@functools.cache
def _ask() -> Gpus | str:
    try:
        driver = ctypes.CDLL(_DRIVER)
    except OSError:
        return f"there is no NVIDIA driver: {_DRIVER} cannot be loaded"
    try:
        _call(driver, "cuInit", 0)
        version = _number(driver, "cuDriverGetVersion")
        found = tuple(_describe(driver, number) for number in range(_number(driver, "cuDeviceGetCount")))
    except _DriverError as error:
        return str(error)
    if not found:
        return "the NVIDIA driver finds no GPU that this process may use: look at CUDA_VISIBLE_DEVICES"
    return Gpus(found, (version // 1000, version % 1000 // 10))


class _DriverError(Exception):
    pass


def _call(driver: Any, name: str, *arguments: Any) -> None:
    status = getattr(driver, name)(*arguments)
    if status == _NO_DEVICE:
        raise _DriverError("the NVIDIA driver finds no GPU")
    if status:
        text = ctypes.c_char_p()
        driver.cuGetErrorName(status, ctypes.byref(text))
        raise _DriverError(f"the NVIDIA driver fails: {name} returns {(text.value or b'error').decode()} ({status})")


def _number(driver: Any, name: str, *arguments: Any, kind: Any = ctypes.c_int) -> int:
    """What a function of the driver writes to where its first argument points."""
    answer = kind()
    _call(driver, name, ctypes.byref(answer), *arguments)
    return int(answer.value)


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
    )
