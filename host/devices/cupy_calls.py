"""The only module that calls CuPy, which provides memory and streams; its own kernels are not used.

Callers make a device and a stream current with ``with device, stream``. Arrays have one dimension.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

CALLS = (
    "asarray(a)",
    "cuda.Device(device)",
    "cuda.Device.synchronize()",
    "cuda.Event()",
    "cuda.Event.record(stream)",
    "cuda.Event.synchronize()",
    "cuda.MemoryPointer.copy_from_device_async(src, size, stream)",
    "cuda.MemoryPointer.memset_async(value, size, stream)",
    "cuda.Stream(non_blocking=True)",
    "cuda.Stream.synchronize()",
    "cuda.alloc_pinned_memory(size)",
    "cuda.get_elapsed_time(start_event, end_event)",
    "cuda.runtime.memGetInfo()",
    "empty(shape, dtype)",
    "from_dlpack(array)",
    "get_default_memory_pool()",
    "ndarray.get(stream=stream, out=out)",
    "ndarray.set(arr, stream=stream)",
    "cuda.MemoryPool.free_all_blocks()",
    "cuda.MemoryPool.free_bytes()",
)
"""All calls of CuPy in this module, with CuPy's names of the positional arguments; checked by a test."""

Array = Any
"""``cupy.ndarray``."""


def new_device(number: int) -> Any:
    """Return a GPU, which is current inside ``with``."""
    return cupy.cuda.Device(number)


def new_stream() -> Any:
    """Return a non-blocking stream of the current device, which is current inside ``with``."""
    return cupy.cuda.Stream(non_blocking=True)


def stream_pointer(stream: Any) -> int:
    """Return the CUDA handle of a stream."""
    return int(stream.ptr)


def synchronize(stream: Any) -> None:
    """Wait until a stream has finished all its work."""
    stream.synchronize()


def empty(size: int, dtype: Any) -> Array:
    """Return an uninitialised array on the current device, for use on the current stream."""
    return cupy.empty(size, dtype)


def pointer(array: Array) -> int:
    """Return the device address of an array."""
    return int(array.data.ptr)


def clear(array: Array, stream: Any) -> None:
    """Fill an array with zero bytes."""
    array.data.memset_async(0, array.nbytes, stream)


def copy_in(target: Array, source: np.ndarray[Any, Any], stream: Any) -> None:
    """Copy a host array to the device; the host array may be modified once this returns."""
    target.set(source, stream=stream)
    # If the GPU can access all host memory, CUDA may not have read the array yet.
    stream.synchronize()


def copy_out(target: np.ndarray[Any, Any], source: Array, stream: Any) -> None:
    """Copy an array to a host array of the same dtype and size, and wait for the copy."""
    source.get(stream=stream, out=target)


def copy(target: Array, source: Array, stream: Any) -> None:
    """Copy all bytes of ``source`` to the beginning of ``target`` on the same device."""
    target.data.copy_from_device_async(source.data, source.nbytes, stream)


def as_array(array: Any) -> Array:
    """Return an object with the CUDA array interface as an array of the same memory."""
    return cupy.asarray(array)


def from_dlpack(tensor: Any) -> Array:
    """Return a tensor on a GPU as an array of the same memory; the current stream waits for its producer."""
    return cupy.from_dlpack(tensor)


def device_number(array: Any) -> int:
    """Return the number of the GPU that has an object with the CUDA array interface."""
    return int(cupy.asarray(array).device.id)


def synchronize_device(device: Any) -> None:
    """Wait until a GPU has finished all its work, on every stream."""
    device.synchronize()


def pinned(size: int) -> np.ndarray[Any, Any]:
    """Return ``size`` bytes of page-locked host memory."""
    return np.frombuffer(cupy.cuda.alloc_pinned_memory(size), np.uint8, size)


def free_memory() -> int:
    """Return the free memory of the current device in bytes."""
    return int(cupy.cuda.runtime.memGetInfo()[0])


def unused_in_pool() -> int:
    """Return the unused memory of CuPy's pool on the current device in bytes."""
    return int(cupy.get_default_memory_pool().free_bytes())


def trim() -> None:
    """Release the pool's unused memory on the current device."""
    cupy.get_default_memory_pool().free_all_blocks()


def new_event() -> Any:
    """Return an event for a stream of the current device."""
    return cupy.cuda.Event()


def record(event: Any, stream: Any) -> None:
    """Record an event on a stream."""
    event.record(stream)


def seconds_between(begin: Any, end: Any) -> float:
    """Return the seconds between two events, after waiting for the second one."""
    end.synchronize()
    return float(cupy.cuda.get_elapsed_time(begin, end)) / 1000


def version() -> str:
    """Return the version of CuPy."""
    return str(cupy.__version__)
