"""A substitute for CuPy without a GPU: work on a stream is deferred until the stream is synchronised."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

stack: list[Any] = []
"""The current devices and streams, innermost last."""


class CUDARuntimeError(RuntimeError):
    """Same name as CuPy's exception."""


class _Current:
    def __enter__(self) -> Any:
        stack.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        assert stack.pop() is self


class Device(_Current):
    """A GPU with a number."""

    def __init__(self, device: int) -> None:
        self.id = device
        self.waits = 0

    def synchronize(self) -> None:
        """Wait for all streams."""
        self.waits += 1


class Stream(_Current):
    """A queue of deferred work."""

    def __init__(self, non_blocking: bool = False) -> None:
        assert isinstance(stack[-1], Device), "a stream needs a current device"
        assert non_blocking
        self.ptr = 0x51
        self.work: list[Callable[[], object]] = []
        self.failure: Exception | None = None

    def synchronize(self) -> None:
        """Run the deferred work."""
        while self.work:
            self.work.pop(0)()
        if self.failure is not None:
            raise self.failure


class Event:
    """An event on a stream."""

    def record(self, stream: Stream) -> None:
        """Record the event."""
        self.stream = stream

    def synchronize(self) -> None:
        """Wait for the event."""
        self.stream.synchronize()


class MemoryPointer:
    """An address with a reference to its memory."""

    def __init__(self, memory: np.ndarray[Any, Any]) -> None:
        self.memory = memory
        self.ptr = memory.ctypes.data

    def memset_async(self, value: int, size: int, stream: Stream) -> None:
        """Set bytes to a value."""
        stream.work.append(lambda: ctypes.memset(self.ptr, value, size))

    def copy_from_device_async(self, src: MemoryPointer, size: int, stream: Stream) -> None:
        """Copy bytes."""
        stream.work.append(lambda: ctypes.memmove(self.ptr, src.ptr, size))


class ndarray:  # noqa: N801 (CuPy's name)
    """A one-dimensional array."""

    ndim = 1
    flags = SimpleNamespace(c_contiguous=True)

    def __init__(self, memory: np.ndarray[Any, Any]) -> None:
        self.data = MemoryPointer(memory)
        self.size, self.dtype, self.nbytes = memory.size, memory.dtype, memory.nbytes
        self.__cuda_array_interface__: dict[str, Any] = {}
        self.device = Device(1)

    def __getitem__(self, part: slice) -> ndarray:
        return ndarray(self.data.memory[part])

    def set(self, arr: np.ndarray[Any, Any], stream: Stream) -> None:
        """Copy from the host; the host array is read when the stream reaches the copy."""
        assert (arr.dtype, arr.shape) == (self.dtype, (self.size,))
        stream.work.append(lambda: self.data.memory.__setitem__(slice(None), arr))

    def get(self, stream: Stream, out: np.ndarray[Any, Any]) -> None:
        """Copy to the host."""
        assert (out.dtype, out.shape) == (self.dtype, (self.size,))
        stream.synchronize()
        out[:] = self.data.memory


class PooledMemory:
    """The memory of a GPU, part of which belongs to a pool."""

    def __init__(self) -> None:
        self.free, self.pooled, self.trims = 1 << 30, 0, 0

    def take(self, size: int) -> None:
        """Check that bytes can be allocated, and fail like CuPy if not."""
        if size > self.free:
            raise MemoryError(f"Out of memory allocating {size:,} bytes")

    def free_bytes(self) -> int:
        """Return the unused bytes of the pool."""
        return self.pooled

    def free_all_blocks(self) -> None:
        """Empty the pool."""
        self.free, self.pooled, self.trims = self.free + self.pooled, 0, self.trims + 1


class FakeCupy:
    """The part of CuPy that ``cupy_calls`` uses."""

    ndarray = ndarray
    __version__ = "0"

    def __init__(self) -> None:
        self.memory = PooledMemory()
        self.get_default_memory_pool = lambda: self.memory
        self.cuda = SimpleNamespace(
            Device=Device,
            Stream=Stream,
            Event=Event,
            alloc_pinned_memory=self._pinned,
            get_elapsed_time=lambda start_event, end_event: 2.0,
            runtime=SimpleNamespace(memGetInfo=lambda: (self.memory.free, 1 << 30)),
        )
        self.pinned: list[int] = []
        self.asarray = lambda a: a
        self.from_dlpack = lambda array: array.on_gpu

    def _pinned(self, size: int) -> bytearray:
        self.pinned.append(size)
        return bytearray(size)

    def empty(self, shape: int, dtype: Any) -> Any:
        """Return an array with arbitrary contents."""
        assert [type(one) for one in stack[-2:]] == [Device, Stream], "allocation without a current device and stream"
        memory: np.ndarray[Any, Any] = np.empty(shape, dtype)
        self.memory.take(memory.nbytes)
        memory.view(np.uint8)[:] = 0xA5
        return ndarray(memory)
