"""Errors of CUDA: CuPy, Numba, cuda-core and cuda-bindings each have their own exceptions for them."""

from __future__ import annotations

import re

from gpu_pregel.errors import DeviceError, GpuPregelError, NotEnoughMemoryError

_LOST = re.compile(
    "ECC_?Uncorrectable|NVLINK_?Uncorrectable|DEVICES?_?UNAVAILABLE|HARDWARE_?STACK_?ERROR|NO_?DEVICE|SYSTEM_?NOT_?READY"
    "|DEVICE_?UNINITIALIZED|(?:CUDA_ERROR_|cudaError)UNKNOWN",
    re.IGNORECASE,
)
"""Errors of the GPU itself, and of its connection, not of a kernel."""


def is_cuda_error(error: Exception) -> bool:
    """Whether CUDA failed."""
    return not isinstance(error, GpuPregelError) and any(word in str(error) for word in ("cudaError", "CUDA_ERROR"))


def is_lost(error: Exception) -> bool:
    """Whether the GPU itself has failed, or is not available any more."""
    return is_cuda_error(error) and _LOST.search(str(error)) is not None


def is_out_of_memory(error: Exception) -> bool:
    """Whether CUDA or CuPy's pool could not allocate memory."""
    if isinstance(error, GpuPregelError):
        return False
    text = str(error)
    return isinstance(error, MemoryError) or "OUT_OF_MEMORY" in text or "cudaErrorMemoryAllocation" in text


def explained(device: str, error: Exception) -> DeviceError | NotEnoughMemoryError:
    """Return the error for a failed call of CUDA: what it means and what to do."""
    if is_out_of_memory(error):
        return NotEnoughMemoryError(
            f"device {device!r}: {error}; too little memory is left on the GPU, or too little page-locked memory on "
            f"the host: end other programs that use them (nvidia-smi, ulimit -l), or use a smaller graph"
        )
    if is_lost(error):
        advice = (
            "the GPU has failed or is not available any more: look for messages of the driver (dmesg | grep Xid, "
            "nvidia-smi), and run again in a new process"
        )
    else:
        advice = (
            "CUDA may report an error long after the kernel that caused it: run on device 'emulated' to find the "
            "kernel, and on the GPU again in a new process"
        )
    return DeviceError(f"device {device!r}: {error}; {advice}")
