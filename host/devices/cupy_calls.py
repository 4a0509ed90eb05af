"""The only module that calls CuPy, which provides memory and streams; its own kernels are not used.

Callers make a device and a stream current with ``with device, stream``. Arrays have one dimension.
"""

from __future__ import annotations

from typing import Any

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
    "cuda.MemoryPointer(mem, offset)",
    "cuda.Stream(non_blocking=False)",
    "cuda.Stream.synchronize()",
    "cuda.UnownedMemory(ptr, size, owner, device_id)",
    "cuda.alloc_pinned_memory(size)",
    "cuda.get_allocator()",
    "cuda.get_current_stream()",
    "cuda.get_elapsed_time(start_event, end_event)",
    "cuda.runtime.eventRecord(event, stream)",
    "cuda.runtime.memGetInfo()",
    "cuda.runtime.pointerGetAttributes(ptr)",
    "cuda.runtime.streamWaitEvent(stream, event)",
    "empty(shape, dtype)",
    "from_dlpack(array)",
    "get_default_memory_pool()",
    "ndarray(shape, dtype, memptr)",
    "ndarray.get(stream=stream, out=out)",
    "ndarray.set(arr, stream=stream)",
    "ndarray.view()",
    "cuda.MemoryPool.free_all_blocks()",
    "cuda.MemoryPool.free_bytes()",
)
"""All calls of CuPy in this module, with CuPy's names of the positional arguments; checked by a test."""


class _Cupy:
    """CuPy, imported at the first use: this module can be imported without it, and examined by doctest."""

    _names = ("__version__", "asarray", "cuda", "empty", "from_dlpack", "get_default_memory_pool", "ndarray")

    def __getattr__(self, name: str) -> Any:
        if name not in self._names:
            raise AttributeError(name)
        import cupy

        found = getattr(cupy, name)
        setattr(self, name, found)
        return found


cupy: Any = _Cupy()
Array = Any
"""``cupy.ndarray``."""
_STREAMS_NAMED = 3
"""The first version of the CUDA array interface that names the producer's stream."""


def new_device(number: int) -> Any:
    """Return a GPU, which is current inside ``with``."""
    return cupy.cuda.Device(number)


def new_stream() -> Any:
    """Return a stream of the current device, which is current inside ``with``.

    CUDA orders its work with that of the legacy default stream, in both directions.
    """
    return cupy.cuda.Stream(non_blocking=False)


def stream_pointer(stream: Any) -> int:
    """Return the CUDA handle of a stream."""
    return int(stream.ptr)


def current_stream() -> int:
    """Return the CUDA handle of this thread's current stream on the current device."""
    return int(cupy.cuda.get_current_stream().ptr)


def wait_for_stream(waiting: int, earlier: int) -> None:
    """Let one stream wait for the work that another one has been given so far; both are CUDA handles."""
    event = cupy.cuda.Event()
    cupy.cuda.runtime.eventRecord(event.ptr, earlier)
    cupy.cuda.runtime.streamWaitEvent(waiting, event.ptr)


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
    """Begin to copy a page-locked host array to the device; it must not be modified until the stream has copied it."""
    target.set(source, stream=stream)


def copy_out(target: np.ndarray[Any, Any], source: Array, stream: Any) -> None:
    """Copy an array to a host array of the same dtype and size, and wait for the copy."""
    source.get(stream=stream, out=target)


def copy(target: Array, source: Array, stream: Any) -> None:
    """Copy all bytes of ``source`` to the beginning of ``target`` on the same device."""
    target.data.copy_from_device_async(source.data, source.nbytes, stream)


def as_array(array: Any, device: Any) -> Array:
    """Return a user's array as an array of the same memory, which the current stream may use.

    The current stream waits for the producer of a tensor by DLPack's protocol, and must already wait for the stream on
    which the caller uses CuPy. CuPy waits for the stream that the CUDA array interface names. Before its version 3, the
    interface names none, and only all work on the device is known to include that of the producer.
    """
    if isinstance(array, cupy.ndarray):
        return array.view()
    if hasattr(array, "__dlpack__"):
        return from_dlpack(array)
    if array.__cuda_array_interface__["version"] < _STREAMS_NAMED:
        device.synchronize()
    return cupy.asarray(array)


def from_dlpack(tensor: Any) -> Array:
    """Return a tensor on a GPU as an array of the same memory; the current stream waits for its producer."""
    return cupy.from_dlpack(tensor)


def device_number(pointer: int) -> int:
    """Return the number of the GPU that has the memory at an address."""
    return int(cupy.cuda.runtime.pointerGetAttributes(pointer).device)


def lend(array: Array, owner: object) -> Array:
    """Return an array of the same memory; ``owner`` is kept until no array or tensor of this memory is left."""
    memory = cupy.cuda.UnownedMemory(array.data.ptr, array.nbytes, owner, array.device.id)
    return cupy.ndarray(array.shape, array.dtype, cupy.cuda.MemoryPointer(memory, 0))


def synchronize_device(device: Any) -> None:
    """Wait until a GPU has finished all its work, on every stream."""
    device.synchronize()


def pinned(size: int) -> np.ndarray[Any, Any]:
    """Return ``size`` bytes of page-locked host memory."""
    return np.frombuffer(cupy.cuda.alloc_pinned_memory(size), np.uint8, size)


def free_memory() -> int:
    """Return the free memory of the current device in bytes."""
    return int(cupy.cuda.runtime.memGetInfo()[0])


def has_own_pool() -> bool:
    """Whether CuPy's default pool provides its memory, and no allocator of another library, such as RMM's pool."""
    return getattr(cupy.cuda.get_allocator(), "__self__", None) is cupy.get_default_memory_pool()


def unused_in_pool() -> int:
    """Return the unused memory of CuPy's default pool on the current device in bytes."""
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


def wait_for(event: Any) -> None:
    """Wait until a stream has reached an event; an event that was never recorded is not waited for."""
    event.synchronize()


def seconds_between(begin: Any, end: Any) -> float:
    """Return the seconds between two events, after waiting for the second one."""
    end.synchronize()
    return float(cupy.cuda.get_elapsed_time(begin, end)) / 1000


def version() -> str:
    """Return the version of CuPy."""
    return str(cupy.__version__)
