"""Lookup of devices by name; :mod:`gpu_pregel.host.devices.device` defines their interface."""

from __future__ import annotations

import functools
import os
import threading
import warnings
from importlib.util import find_spec
from typing import Literal, NamedTuple

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, DeviceError, GpuPregelError, MissingPackageError
from gpu_pregel.host.arguments import require
from gpu_pregel.host.devices.cpu import CpuDevice
from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.devices.python import PythonDevice

DEVICES = ("auto", "cpu", "python")
"""Devices available on every machine with every installation."""
DEVICE_NAMES = ("auto", "cpu", "cuda", "cuda:N", "emulated", "emulated:SEED", "python")
"""Values of ``device``; N is the number of a GPU, and SEED a nonnegative integer."""
DeviceName = Literal["auto", "cpu", "cuda", "emulated", "python"] | str
"""The type of ``device``; editors complete the names, and the number of a GPU or a seed may follow."""
DEVICE_VARIABLE = "GPU_PREGEL_DEVICE"
"""The environment variable that selects the device for "auto"."""

_devices: dict[tuple[str, int], tuple[int, Device]] = {}
_lock = threading.RLock()


def get_device(name: DeviceName = "auto", *, threads: int | None = None) -> Device:
    """Return the device called ``name``; each GPU and each emulated device is a single object.

    Parameters
    ----------
    name : {"auto", "cpu", "cuda", "cuda:N", "emulated", "emulated:SEED", "python"}
        "auto" is the device named by the environment variable ``GPU_PREGEL_DEVICE``. If the variable is not set,
        "auto" is the first GPU, provided that it is usable, the packages of the extra ``cuda12`` or ``cuda13`` are
        installed and ``threads`` is not given; otherwise it is the CPU; :func:`choose_device` decides for work on a
        graph. "cuda" is GPU 0, and "emulated" has seed 0. "python" runs vertex programs without compiling them.
    threads : int, optional
        Number of CPU threads; not supported by other devices. Defaults to the processors available to this process.

    Raises
    ------
    ArgumentError
        ``threads`` is given for a device other than the CPU.
    DeviceError
        The device is unknown or cannot be used.
    MissingPackageError
        The packages that the device needs are not installed.
    """
    kind, number = _parse(name)
    if kind == "auto":
        kind, number = _resolve_auto(threads)
    if kind == "cpu":
        return CpuDevice(threads)
    if threads is not None:
        raise ArgumentError(
            f"threads={threads} applies only to the CPU: omit it for device {kind!r}, or pass device='cpu'"
        )
    if kind == "python":
        return PythonDevice()
    process, device = _process_and_device(kind, number)
    if kind == "cuda" and process != os.getpid():
        raise DeviceError(
            f"device 'cuda:{number}' cannot be used: this process was forked from one that uses it; start processes "
            f"with the method 'spawn'"
        )
    return device


class DeviceChoice(NamedTuple):
    """A device for ``get_device``, and why it was chosen, for the statistics of a result."""

    name: str
    reason: str


def choose_device(
    name: DeviceName, threads: int | None, what: str, gpu_from: int | None, edges: int, given_on: str | None = None
) -> DeviceChoice:
    """Choose the device on which work on a graph is faster, if ``name`` is "auto"; any other device is obeyed.

    The environment variable ``GPU_PREGEL_DEVICE`` and ``threads`` decide first, as in :func:`get_device`.

    Parameters
    ----------
    name, threads
        The arguments of the call.
    what : str
        The work, such as the name of an algorithm.
    gpu_from : int or None
        The number of stored edges from which on a GPU is faster than the CPU; None if it is at no measured size. It is
        measured with the graph on the GPU already, as a graph is copied there once.
    edges : int
        The number of stored edges of the graph.
    given_on : str, optional
        The GPU in whose memory the arrays of the graph were given: the work runs there, however small the graph, unless
        ``gpu_from`` is None.
    """
    if name != "auto":
        return DeviceChoice(name, f"device={name!r} was passed")
    requested = os.environ.get(DEVICE_VARIABLE) or "auto"
    if requested != "auto":
        return DeviceChoice("auto", f"{DEVICE_VARIABLE}={requested}")
    if threads is not None:
        return DeviceChoice("cpu", f"threads={threads} was passed")
    if gpu_from is None:
        return DeviceChoice("cpu", f"{what} has not been faster on a GPU at any size measured")
    if given_on is not None:
        return DeviceChoice(given_on, f"the arrays of the graph were given in the memory of {given_on}")
    compared = f"{what} is faster on a GPU from {gpu_from:,} stored edges on, and the graph has {edges:,}"
    if edges < gpu_from or _has_gpu():
        return DeviceChoice("cpu" if edges < gpu_from else "cuda:0", compared)
    return DeviceChoice("cpu", "there is no GPU that can be used")


def usable_devices() -> list[str]:
    """Return the names of all devices that are usable on this machine."""
    from gpu_pregel.host.devices.cuda import unavailable_reason
    from gpu_pregel.host.devices.gpus import gpus

    names = ["cpu"]
    if unavailable_reason() is None:
        names += [f"cuda:{gpu.number}" for gpu in gpus().found]
    return names + ["emulated"] * _has_emulator() + ["python"]


def _has_emulator() -> bool:
    """Whether packages with which the emulated device works are installed."""
    if find_spec("numba_cuda") is None:
        return False
    from gpu_pregel.host.devices.toolkit import check_numba_cuda

    try:
        check_numba_cuda("")
    except MissingPackageError:
        return False
    return True


def _parse(name: str) -> tuple[str, int]:
    """Split a device name into its kind and its number."""
    if not isinstance(name, str):
        raise ArgumentTypeError(f"device must be a name such as 'auto' or 'cpu', not {name!r}")
    kind, colon, number = name.partition(":")
    if kind in ("cuda", "emulated") and (not colon or (number.isascii() and number.isdecimal())):
        return kind, int(number or 0)
    if name in DEVICES:
        return kind, 0
    raise DeviceError(f"unknown device {name!r}: use one of {', '.join(map(repr, DEVICE_NAMES))}")


def _resolve_auto(threads: int | None) -> tuple[str, int]:
    """Return the kind and the number of the device that "auto" selects."""
    requested = os.environ.get(DEVICE_VARIABLE) or "auto"
    try:
        kind, number = _parse(requested)
    except DeviceError as error:
        raise DeviceError(f"the environment variable {DEVICE_VARIABLE} is invalid: {error}") from None
    if kind != "auto":
        return kind, number
    return ("cuda" if threads is None and _has_gpu() else "cpu"), 0


@functools.cache
def _has_gpu() -> bool:
    """Whether the first GPU is usable; determined once per process, and only if the packages are installed."""
    if find_spec("numba_cuda") is None or find_spec("cupy") is None:
        return False
    from gpu_pregel.host.devices.cuda import unavailable_reason

    if unavailable_reason() is not None:
        return False
    try:
        _process_and_device("cuda", 0)
    except GpuPregelError as error:
        warnings.warn(f"device 'auto' uses the CPU: {error}", RuntimeWarning, stacklevel=4)
        return False
    return True


def _process_and_device(kind: str, number: int) -> tuple[int, Device]:
    """Return a device, created on first use, and the id of the process that created it."""
    with _lock:
        if (kind, number) not in _devices:
            _devices[kind, number] = os.getpid(), _create(kind, number)
        return _devices[kind, number]


def _create(kind: str, number: int) -> Device:
    if kind == "cuda":
        from gpu_pregel.host.devices.cuda import CudaDevice

        return CudaDevice(number)
    require("numba_cuda", "device 'emulated'", "gpu-pregel[emulated]")
    from gpu_pregel.host.devices.toolkit import check_numba_cuda

    check_numba_cuda("pip install gpu-pregel[emulated]")
    from gpu_pregel.host.devices.emulated import EmulatedDevice

    return EmulatedDevice(number)
