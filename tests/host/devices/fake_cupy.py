"""A substitute for CuPy without a GPU: work on a stream is deferred until something waits for it.

A stream's work runs when the host, or another stream that runs, waits for it, and not before. What nothing orders
therefore happens late, so that arrays are read before they are written, and overwritten before they are read.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

FIRST_HANDLE = 0x50
"""The handle of the first stream is greater by one, as the legacy default stream exists already."""
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
        for stream in list(Stream.every.values()):
            stream.synchronize()


class Stream(_Current):
    """A queue of deferred work; CUDA orders a blocking stream with the legacy default stream."""

    null: Stream
    every: ClassVar[dict[int, Stream]] = {}

    def __init__(self, non_blocking: bool = False) -> None:
        self.ptr = FIRST_HANDLE + len(Stream.every)
        self.is_blocking = not non_blocking
        self.work = _Queue(self)
        self.waits = 0
        self.failure: Exception | None = None
        Stream.every[self.ptr] = self

    def synchronize(self) -> None:
        """Run the deferred work."""
        self.waits += 1
        self.work.run(self.work.begun)
        if self.failure is not None:
            raise self.failure


class _Queue:
    """The work of a stream; ``begun`` and ``done`` count what has been appended and what has run."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.items: list[Callable[[], object]] = []
        self.begun = self.done = 0

    def append(self, item: Callable[[], object]) -> None:
        """Append work, after that of the streams that CUDA orders before it."""
        for other in list(Stream.every.values()):
            one_is_null = (other is Stream.null) != (self.stream is Stream.null)
            if one_is_null and other.is_blocking and self.stream.is_blocking:
                self._append(other.work.until_now())
        self._append(item)

    def _append(self, item: Callable[[], object]) -> None:
        self.items.append(item)
        self.begun += 1

    def until_now(self) -> Callable[[], None]:
        """Return a function that runs what has been appended so far."""
        begun = self.begun
        return lambda: self.run(begun)

    def run(self, until: int) -> None:
        """Run the first items, in order."""
        while self.done < until:
            self.done += 1
            self.items.pop(0)()


class Event:
    """An event on a stream."""

    every: ClassVar[dict[int, Callable[[], None]]] = {}

    def __init__(self) -> None:
        self.ptr = 0xE000 + len(Event.every)
        Event.every[self.ptr] = lambda: None

    def record(self, stream: Stream) -> None:
        """Record the event."""
        Event.every[self.ptr] = stream.work.until_now()

    def synchronize(self) -> None:
        """Wait for the event."""
        Event.every[self.ptr]()


class Block:
    """Memory of a pool; it returns to the stream that allocated it."""

    def __init__(self, bytes: np.ndarray[Any, Any], free: list[np.ndarray[Any, Any]]) -> None:
        self.bytes = bytes
        self._free = free

    def __del__(self) -> None:
        self._free.append(self.bytes)


class MemoryPointer:
    """An address with a reference to its memory."""

    def __init__(self, mem: Any, offset: int) -> None:
        self.mem = mem
        self.ptr = mem.ptr + offset

    def memset_async(self, value: int, size: int, stream: Stream) -> None:
        """Set bytes to a value."""
        stream.work.append(partial(ctypes.memset, self.ptr, value, size))

    def copy_from_device_async(self, src: MemoryPointer, size: int, stream: Stream) -> None:
        """Copy bytes."""
        stream.work.append(partial(ctypes.memmove, self.ptr, src.ptr, size))


class UnownedMemory:
    """Memory that an owner keeps."""

    def __init__(self, ptr: int, size: int, owner: object, device_id: int) -> None:
        self.ptr, self.size, self.owner, self.device_id = ptr, size, owner, device_id


class ndarray:  # noqa: N801 (CuPy's name)
    """A one-dimensional array."""

    ndim = 1
    flags = SimpleNamespace(c_contiguous=True)

    def __init__(self, shape: Any, dtype: Any, memptr: MemoryPointer) -> None:
        self.size = int(np.prod(shape))
        self.shape, self.dtype, self.data = (self.size,), np.dtype(dtype), memptr
        self.nbytes = self.size * self.dtype.itemsize
        self.__cuda_array_interface__: dict[str, Any] = {}
        self.device = Device(1)

    @property
    def memory(self) -> np.ndarray[Any, Any]:
        """The elements as the GPU finds them; this keeps no reference to the memory."""
        content = (ctypes.c_byte * self.nbytes).from_address(self.data.ptr)
        return np.frombuffer(content, self.dtype) if self.size else np.empty(0, self.dtype)

    def __getitem__(self, part: slice) -> ndarray:
        start, stop, _ = part.indices(self.size)
        place = self.data.ptr - self.data.mem.ptr + start * self.dtype.itemsize
        return ndarray(max(0, stop - start), self.dtype, MemoryPointer(self.data.mem, place))

    def view(self) -> ndarray:
        """Return another array of the same memory."""
        other = self[:]
        other.flags = self.flags
        return other

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the type and the number of the device."""
        return 2, self.device.id

    def set(self, arr: np.ndarray[Any, Any], stream: Stream) -> None:
        """Copy from the host; the host array is read when the stream reaches the copy."""
        assert (arr.dtype, arr.shape) == (self.dtype, (self.size,))
        memory = self.memory
        stream.work.append(lambda: memory.__setitem__(slice(None), arr))

    def get(self, stream: Stream, out: np.ndarray[Any, Any]) -> None:
        """Copy to the host."""
        assert (out.dtype, out.shape) == (self.dtype, (self.size,))
        memory = self.memory
        stream.work.append(lambda: out.__setitem__(slice(None), memory))
        stream.synchronize()


class _Bytes:
    """A part of the memory that no pool manages, or a block of a pool."""

    def __init__(self, block: Any) -> None:
        self.block = block
        self.ptr = getattr(block, "bytes", block).ctypes.data


def array_of(values: Any, dtype: Any) -> ndarray:
    """Return a complete array of a user, outside of the pool."""
    memory = np.array(values, dtype)
    return ndarray(memory.size, memory.dtype, MemoryPointer(_Bytes(memory), 0))


class PooledMemory:
    """The memory of a GPU, part of which belongs to a pool."""

    def __init__(self) -> None:
        self.free, self.pooled, self.trims = 1 << 30, 0, 0
        self.blocks: dict[tuple[int, int], list[np.ndarray[Any, Any]]] = {}

    def take(self, size: int) -> Block:
        """Return memory, which the pool reuses if the current stream has allocated it before; fail like CuPy."""
        if size > self.free:
            raise MemoryError(f"Out of memory allocating {size:,} bytes")
        free = self.blocks.setdefault((current_stream().ptr, size), [])
        return Block(free.pop() if free else np.full(size, 0xA5, np.uint8), free)

    def free_bytes(self) -> int:
        """Return the unused bytes of the pool."""
        return self.pooled

    def free_all_blocks(self) -> None:
        """Empty the pool."""
        self.free, self.pooled, self.trims = self.free + self.pooled, 0, self.trims + 1


def current_stream() -> Stream:
    """Return the current stream, by default the legacy default stream."""
    return next((one for one in reversed(stack) if isinstance(one, Stream)), Stream.null)


class FakeCupy:
    """The part of CuPy that ``cupy_calls`` uses."""

    ndarray = ndarray
    __version__ = "0"

    def __init__(self) -> None:
        Stream.every = {}
        Stream.null = Stream()
        Stream.every = {0: Stream.null}
        Stream.null.ptr = 0
        self.memory = PooledMemory()
        self.get_default_memory_pool = lambda: self.memory
        self.cuda = SimpleNamespace(
            Device=Device,
            Stream=Stream,
            Event=Event,
            MemoryPointer=MemoryPointer,
            UnownedMemory=UnownedMemory,
            alloc_pinned_memory=self._pinned,
            get_current_stream=current_stream,
            get_elapsed_time=lambda start_event, end_event: 2.0,
            runtime=SimpleNamespace(
                memGetInfo=lambda: (self.memory.free, 1 << 30),
                eventRecord=self._record,
                streamWaitEvent=self._wait,
                pointerGetAttributes=lambda ptr: SimpleNamespace(device=1),
            ),
        )
        self.pinned: list[int] = []
        self.asarray = lambda a: a.on_gpu
        self.from_dlpack = lambda array: array.__dlpack__(stream=current_stream().ptr)

    def _pinned(self, size: int) -> bytearray:
        self.pinned.append(size)
        return bytearray(size)

    def _record(self, event: int, stream: int) -> None:
        Event.every[event] = Stream.every[stream].work.until_now()

    def _wait(self, stream: int, event: int) -> None:
        Stream.every[stream].work.append(Event.every[event])

    def empty(self, shape: int, dtype: Any) -> Any:
        """Return an array with arbitrary contents."""
        assert [type(one) for one in stack[-2:]] == [Device, Stream], "allocation without a current device and stream"
        block = self.memory.take(shape * np.dtype(dtype).itemsize)
        return ndarray(shape, dtype, MemoryPointer(_Bytes(block), 0))
