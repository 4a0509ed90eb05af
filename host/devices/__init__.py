"""Devices: where arrays lie and kernels run.

A device has a ``name``, ``empty(shape, dtype)``, ``kernels(family)`` and ``launch(kernel, size, *arguments)``;
algorithms use nothing else of it.
"""

from __future__ import annotations

from gpu_pregel.errors import ArgumentTypeError, DeviceError
from gpu_pregel.host.devices.cpu import CpuDevice

DEVICES = ("auto", "cpu")


def get_device(name: str = "auto", *, threads: int | None = None) -> CpuDevice:
    """Return the device called ``name``; "auto" takes the best one there is.

    Raises
    ------
    DeviceError
        There is no such device in this version.
    """
    if not isinstance(name, str):
        raise ArgumentTypeError(f"device must be a name such as 'auto' or 'cpu', not {name!r}")
    if name not in DEVICES:
        raise DeviceError(f"there is no device {name!r} in this version: use one of {', '.join(map(repr, DEVICES))}")
    return CpuDevice(threads)
