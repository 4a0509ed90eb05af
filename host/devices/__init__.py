"""Devices by their names; what one does is in :mod:`gpu_pregel.host.devices.device`."""

from __future__ import annotations

import functools
import os
import threading
import warnings
from importlib.util import find_spec

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, DeviceError, MissingPackageError
from gpu_pregel.host.devices.cpu import CpuDevice
from gpu_pregel.host.devices.device import Device

DEVICES = ("auto", "cpu")
"""Devices that are there on every machine and after every installation."""
NAMES = ("auto", "cpu", "cuda", "cuda:N", "emulated", "emulated:SEED")
"""What ``device`` may be; N is the number of a GPU, SEED any whole number."""
VARIABLE = "GPU_PREGEL_DEVICE"
"""The environment variable that says what "auto" is."""


_made: dict[tuple[str, int], tuple[int, Device]] = {}
_lock = threading.RLock()


def get_device(name: str = "auto", *, threads: int | None = None) -> Device:
    """Return the device called ``name``; of GPUs and emulated devices there is one object each.

    Parameters
    ----------
    name : {"auto", "cpu", "cuda", "cuda:N", "emulated", "emulated:SEED"}
        "auto" is what the environment variable ``GPU_PREGEL_DEVICE`` says; without it the first GPU if there is one
        and the packages of the extra ``cuda12`` or ``cuda13`` are installed and ``threads`` is not given, and else the
        CPU. "cuda" is GPU 0, "emulated" seed 0.
    threads : int, optional
        Threads of the CPU, which no other device has. Default: the processors that this process may use.

    Raises
    ------
    ArgumentError
        ``threads`` is given for a device that is not the CPU.
    DeviceError
        There is no such device, or it cannot be used.
    MissingPackageError
        The packages for it are not installed.
    """
    kind, number = _parse(name)
    if kind == "auto":
        kind, number = _automatic(threads)
    if kind == "cpu":
        return CpuDevice(threads)
    if threads is not None:
        raise ArgumentError(f"threads={threads} is for the CPU: leave it out for device {kind!r}, or pass device='cpu'")
    process, device = _kept(kind, number)
    if kind == "cuda" and process != os.getpid():
        raise DeviceError(
            f"device 'cuda:{number}' cannot be used: this process was forked from one that uses it; start processes by "
            f"the method 'spawn'"
        )
    return device


def usable_devices() -> list[str]:
    """Names of all devices that can be used here."""
    from gpu_pregel.host.devices.cuda import why_unusable
    from gpu_pregel.host.devices.gpus import gpus

    names = ["cpu"]
    if why_unusable() is None:
        names += [f"cuda:{gpu.number}" for gpu in gpus().found]
    return names + ["emulated"] * (find_spec("numba_cuda") is not None)


def _parse(name: str) -> tuple[str, int]:
    """The kind of device, and the number behind the colon."""
    if not isinstance(name, str):
        raise ArgumentTypeError(f"device must be a name such as 'auto' or 'cpu', not {name!r}")
    kind, colon, number = name.partition(":")
    if kind in ("cuda", "emulated") and (not colon or (number.isascii() and number.isdecimal())):
        return kind, int(number or 0)
    if name in DEVICES:
        return kind, 0
    raise DeviceError(f"there is no device {name!r} in this version: use one of {', '.join(map(repr, NAMES))}")


def _automatic(threads: int | None) -> tuple[str, int]:
    """What "auto" is."""
    wanted = os.environ.get(VARIABLE) or "auto"
    try:
        kind, number = _parse(wanted)
    except DeviceError as error:
        raise DeviceError(f"the environment variable {VARIABLE} is wrong: {error}") from None
    if kind != "auto":
        return kind, number
    return ("cuda" if threads is None and _has_gpu() else "cpu"), 0


@functools.cache
def _has_gpu() -> bool:
    """Whether the first GPU can be used; decided once in a process, and without the packages nobody asks the driver."""
    if find_spec("numba_cuda") is None or find_spec("cupy") is None:
        return False
    from gpu_pregel.host.devices.cuda import why_unusable

    if why_unusable() is not None:
        return False
    try:
        _kept("cuda", 0)
    except (DeviceError, MissingPackageError) as error:
        warnings.warn(f"device 'auto' takes the CPU: {error}", RuntimeWarning, stacklevel=4)
        return False
    return True


def _kept(kind: str, number: int) -> tuple[int, Device]:
    """The process that made a device, and the device, which is made at its first use."""
    with _lock:
        if (kind, number) not in _made:
            _made[kind, number] = os.getpid(), _make(kind, number)
        return _made[kind, number]


def _make(kind: str, number: int) -> Device:
    if kind == "cuda":
        from gpu_pregel.host.devices.cuda import CudaDevice

        return CudaDevice(number)
    if find_spec("numba_cuda") is None:
        raise MissingPackageError("device 'emulated' needs the package numba-cuda: pip install gpu-pregel[emulated]")
    from gpu_pregel.host.devices.emulated import EmulatedDevice

    return EmulatedDevice(number)
