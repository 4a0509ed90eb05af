"""Arrays of users in device memory: those of CuPy, PyTorch and others with the CUDA array interface or DLPack."""

from __future__ import annotations

import sys
from typing import Any

from gpu_pregel.host.arguments import require
from gpu_pregel.host.devices import get_device
from gpu_pregel.host.devices.device import MemoryDevice

_EMULATED = "gpu_pregel.host.emulator.machine.arrays"
_DLPACK_CUDA = 2


def find_device(values: object) -> MemoryDevice | None:
    """Return the device whose memory holds an array; None for anything that is not in device memory.

    Raises
    ------
    MissingPackageError
        The array is on a GPU, but CuPy is not installed.
    """
    emulated = sys.modules.get(_EMULATED)
    if emulated is not None and isinstance(values, emulated.DeviceArray):
        return _memory_device("emulated")
    if getattr(values, "__cuda_array_interface__", None) is None:
        return None
    return _memory_device(f"cuda:{_cupy_calls().device_number(values)}")


def import_dlpack(tensor: Any) -> Any:
    """Return a DLPack tensor on a GPU as a CuPy array without copying it; None for a tensor anywhere else."""
    if not hasattr(tensor, "__dlpack_device__") or tensor.__dlpack_device__()[0] != _DLPACK_CUDA:
        return None
    return _cupy_calls().from_dlpack(tensor)


def _cupy_calls() -> Any:
    require("cupy", "an array in the memory of a GPU", "gpu-pregel[cuda12] or gpu-pregel[cuda13]")
    from gpu_pregel.host.devices import cupy_calls

    return cupy_calls


def _memory_device(name: str) -> MemoryDevice:
    device = get_device(name)
    assert isinstance(device, MemoryDevice)
    return device
