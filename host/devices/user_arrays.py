"""Arrays of users in device memory: those of CuPy, PyTorch and others with the CUDA array interface or DLPack."""

from __future__ import annotations

import operator
import sys
from typing import Any, cast

from gpu_pregel.errors import ArgumentTypeError, DeviceError
from gpu_pregel.host.arguments import require
from gpu_pregel.host.devices import get_device
from gpu_pregel.host.devices.device import MemoryDevice

_EMULATED = "gpu_pregel.host.emulator.machine.arrays"
_DLPACK_CUDA = 2


def find_device(values: object) -> MemoryDevice | None:
    """Return the device whose memory holds an array; None for anything that is not in device memory.

    Raises
    ------
    ArgumentTypeError
        The array does not follow the CUDA array interface, or is not in the memory of a GPU.
    DeviceError
        The array is on a GPU that cannot be used.
    MissingPackageError
        The array is on a GPU, but CuPy is not installed.
    """
    emulated = sys.modules.get(_EMULATED)
    if emulated is not None and isinstance(values, emulated.DeviceArray):
        return _memory_device("emulated")
    place = _place_of(values)
    if place is None:
        return None
    pointer, number = place
    calls = _cupy_calls()
    if number is None:
        try:
            # The null pointer of an empty array is on no GPU.
            number = calls.device_number(pointer) if pointer else 0
        except RuntimeError as error:  # CuPy's
            raise DeviceError(f"the GPU of an array at {pointer:#x} cannot be found: {error}") from error
    if number < 0:
        raise ArgumentTypeError(f"an array with the CUDA array interface is not in the memory of a GPU: {pointer:#x}")
    return _memory_device(f"cuda:{number}")


def _place_of(values: Any) -> tuple[int, int | None] | None:
    """Return the address of an array with the CUDA array interface, and the number of its GPU if it names one."""
    try:
        interface = getattr(values, "__cuda_array_interface__", None)
        if interface is None:
            return None
        number = operator.index(values.__dlpack_device__()[1]) if hasattr(values, "__dlpack_device__") else None
        return operator.index(interface["data"][0]), number
    except Exception as error:  # PyTorch refuses tensors that require gradients
        raise ArgumentTypeError(f"an array in the memory of a GPU cannot be used: {error!r}") from error


def import_dlpack(tensor: Any) -> Any:
    """Return a DLPack tensor on a GPU as a CuPy array without copying it; None for a tensor anywhere else."""
    if not hasattr(tensor, "__dlpack_device__") or tensor.__dlpack_device__()[0] != _DLPACK_CUDA:
        return None
    return _cupy_calls().from_dlpack(tensor)


def hand_out(values: Any) -> Any:
    """Return an array in device memory, or a tuple of them, for use on any stream; anything else unchanged."""
    if isinstance(values, tuple):
        parts = [hand_out(part) for part in values]
        return values._make(parts) if hasattr(values, "_make") else tuple(parts)
    device = find_device(values)
    return values if device is None else device.hand_out(values)


def _cupy_calls() -> Any:
    require("cupy", "an array in the memory of a GPU", "gpu-pregel[cuda12] or gpu-pregel[cuda13]")
    from gpu_pregel.host.devices import cupy_calls

    return cupy_calls


def _memory_device(name: str) -> MemoryDevice:
    # Comparing it with the protocol takes as long as a launch.
    return cast(MemoryDevice, get_device(name))
