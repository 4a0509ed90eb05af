"""The only module that calls CuPy, which holds memory and streams for us; none of its own kernels are used.

Callers make a device and a stream current by ``with device, stream``. Arrays have one dimension.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

CALLS = (
    "cuda.Device(device)",
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
    "get_default_memory_pool()",
    "ndarray.get(stream=stream, out=out)",
    "ndarray.set(arr, stream=stream)",
    "cuda.MemoryPool.free_all_blocks()",
    "cuda.MemoryPool.free_bytes()",
)
"""Every call of CuPy in this module: positional arguments by the names that CuPy gives them. A test compares."""

Array = Any
"""``cupy.ndarray``."""


def new_device(number: int) -> Any:
    """The GPU of this number, current inside ``with``."""
    return cupy.cuda.Device(number)


def new_stream() -> Any:
    """A stream of the current device, current inside ``with``, that waits for no other stream."""
    return cupy.cuda.Stream(non_blocking=True)


def stream_pointer(stream: Any) -> int:
    """CUDA's handle of a stream."""
    return int(stream.ptr)


def synchronize(stream: Any) -> None:
    """Wait for all that was put on a stream."""
    stream.synchronize()


def empty(size: int, dtype: Any) -> Array:
    """An array on the current device, for work on the current stream."""
    return cupy.empty(size, dtype)


def pointer(array: Array) -> int:
    """Address of an array on its device."""
    return int(array.data.ptr)


def clear(array: Array, stream: Any) -> None:
    """Fill an array with zero bytes."""
    array.data.memset_async(0, array.nbytes, stream)


def copy_in(target: Array, source: np.ndarray[Any, Any], stream: Any) -> None:
    """Copy a host array to the device; it may be changed as soon as this returns."""
    target.set(source, stream=stream)
    # Where the GPU reads all of the host's memory, CUDA need not have read it yet.
    stream.synchronize()


def copy_out(target: np.ndarray[Any, Any], source: Array, stream: Any) -> None:
    """Copy an array to a host array of the same dtype and size, and wait for it."""
    source.get(stream=stream, out=target)


def copy(target: Array, source: Array, stream: Any) -> None:
    """Copy as many bytes of an array as ``source`` has to the beginning of another one on the same device."""
    target.data.copy_from_device_async(source.data, source.nbytes, stream)


def pinned(size: int) -> np.ndarray[Any, Any]:
    """So many bytes of host memory that the GPU reads and writes directly."""
    return np.frombuffer(cupy.cuda.alloc_pinned_memory(size), np.uint8, size)


def free_memory() -> int:
    """Bytes of the current device that nobody holds."""
    return int(cupy.cuda.runtime.memGetInfo()[0])


def unused_in_pool() -> int:
    """Bytes of the current device that CuPy's pool holds for arrays to come."""
    return int(cupy.get_default_memory_pool().free_bytes())


def trim() -> None:
    """Give what the pool holds unused on the current device back to it."""
    cupy.get_default_memory_pool().free_all_blocks()


def new_event() -> Any:
    """A mark to put on a stream of the current device."""
    return cupy.cuda.Event()


def record(event: Any, stream: Any) -> None:
    """Put a mark on a stream."""
    event.record(stream)


def seconds_between(begin: Any, end: Any) -> float:
    """Seconds from when the GPU reached one mark to when it reached another, which is waited for."""
    end.synchronize()
    return float(cupy.cuda.get_elapsed_time(begin, end)) / 1000


def version() -> str:
    """CuPy's version."""
    return str(cupy.__version__)
