"""A substitute for CuPy without a GPU: work on a stream is deferred until something waits for it.

A stream's work runs when the host, or another stream that runs, waits for it, and not before. What nothing orders
therefore happens late, so that arrays are read before they are written, and overwritten before they are read.

Memory is that of the emulated device, which records the bytes that were written. It is garbage when it is allocated and
becomes garbage again, in the order of its stream, when it is freed.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from gpu_pregel.host.devices import cupy_calls, user_arrays
from gpu_pregel.host.emulator.machine import layout
from gpu_pregel.host.emulator.machine.arrays import Allocation, Bytes

FIRST_HANDLE = 0x50
"""The handle of the first stream is greater by one, as the legacy default stream exists already."""


class _Stack(threading.local, Sequence[Any]):
    """What each thread has entered."""

    def __init__(self) -> None:
        self._entered: list[Any] = []
        self.append, self.pop = self._entered.append, self._entered.pop

    def __getitem__(self, place: Any) -> Any:
        return self._entered[place]

    def __len__(self) -> int:
        return len(self._entered)


stack = _Stack()
"""The current devices and streams of this thread, innermost last."""
_live: dict[int, tuple[Allocation, int]] = {}
"""The blocks that arrays have, with the number of their GPU, by address."""


def find_block(pointer: int, size: int) -> tuple[Allocation, int]:
    """Return the block of an array that has ``size`` bytes at an address, and their offset; fail like CUDA without."""
    exact = _live.get(pointer)
    for block, _ in [exact] if exact else list(_live.values()):
        if block.address <= pointer <= pointer + size <= block.address + block.nbytes:
            return block, pointer - block.address
    raise CUDARuntimeError(f"cudaErrorIllegalAddress: no array has {size} bytes at {pointer:#x}")


def _views(pointer: int, size: int) -> tuple[Bytes, Bytes]:
    """Return the bytes at an address, and flags that say which were written; both keep no reference to the array."""
    block, offset = find_block(pointer, size) if size else (Allocation(0), 0)
    return block.bytes[offset : offset + size], block.written[offset : offset + size]


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
                self.append_unordered(other.work.until_now())
        self.append_unordered(item)

    def append_unordered(self, item: Callable[[], object]) -> None:
        """Append work that other streams are not ordered with."""
        self.items.append(item)
        self.begun += 1

    def until_now(self) -> Callable[[], None]:
        """Return a function that runs what has been appended so far."""
        begun = self.begun
        return lambda: self.run(begun)

    def run(self, until: int) -> None:
        """Run the first items, in order; after a failure, the stream stays unusable."""
        while self.done < until and self.stream.failure is None:
            self.done += 1
            try:
                self.items.pop(0)()
            except Exception as error:
                self.stream.failure = error
        if self.stream.failure is not None:
            raise self.stream.failure


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
    """Memory of a GPU; memory of a pool returns to the stream that allocated it, which fills it with garbage."""

    def __init__(self, allocation: Allocation, device: int, stream: Stream | None = None, pool: Any = None) -> None:
        self.size, self.device_id = allocation.nbytes, device
        # CuPy allocates nothing for an array without elements.
        self.ptr = allocation.address if self.size else 0
        # CuPy's memory ends with its last reference. Python's collector ends a cycle's objects earlier, and some are
        # then used again; it does not end NumPy's arrays earlier.
        self._end = np.empty(0)
        if self.size:
            _live[self.ptr] = allocation, device
            weakref.finalize(self._end, _end, allocation, stream, pool).atexit = False


def _end(allocation: Allocation, stream: Stream | None, pool: list[Allocation] | None) -> None:
    del _live[allocation.address]
    if stream is not None and pool is not None:
        stream.work.append_unordered(partial(_fill, (allocation.bytes, allocation.written), layout.POISON, 0))
        pool.append(allocation)


def _fill(views: tuple[Bytes, Bytes], value: int, is_written: int) -> None:
    views[0][:], views[1][:] = value, is_written


def _copy(views: tuple[Any, Any], contents: tuple[Any, Any]) -> None:
    views[0][:], views[1][:] = contents


class MemoryPointer:
    """An address with a reference to its memory."""

    def __init__(self, mem: Any, offset: int) -> None:
        self.mem = mem
        self.ptr = mem.ptr + offset

    def memset_async(self, value: int, size: int, stream: Stream) -> None:
        """Set bytes to a value."""
        stream.work.append(partial(_fill, _views(self.ptr, size), value, 1))

    def copy_from_device_async(self, src: MemoryPointer, size: int, stream: Stream) -> None:
        """Copy bytes; those that were never written stay unwritten."""
        stream.work.append(partial(_copy, _views(self.ptr, size), _views(src.ptr, size)))


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
        if self.dtype.kind not in "biufc" or not self.dtype.isnative:
            raise ValueError(f"Unsupported dtype {self.dtype}")
        self.nbytes = self.size * self.dtype.itemsize
        self.device = Device(memptr.mem.device_id)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (self.data.ptr, False), "version": 3}

    def __len__(self) -> int:
        return self.size

    @property
    def memory(self) -> np.ndarray[Any, Any]:
        """The elements as the GPU finds them; this keeps no reference to the memory."""
        return _views(self.data.ptr, self.nbytes)[0].view(self.dtype)

    def __getitem__(self, part: slice) -> ndarray:
        start, stop, _ = part.indices(self.size)
        place = self.data.ptr - self.data.mem.ptr + start * self.dtype.itemsize
        return ndarray(max(0, stop - start), self.dtype, MemoryPointer(self.data.mem, place))

    def __setitem__(self, place: int, value: Any) -> None:
        current_stream().work.append(partial(self.memory.__setitem__, place, value))

    def view(self, dtype: Any = None) -> ndarray:
        """Return another array of the same memory, as elements of a dtype of the same size if one is given."""
        other = self[:]
        other.flags = self.flags
        if dtype is not None:
            assert np.dtype(dtype).itemsize == self.dtype.itemsize
            other.dtype = np.dtype(dtype)
        return other

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the type and the number of the device."""
        return 2, self.device.id

    def set(self, arr: np.ndarray[Any, Any], stream: Stream) -> None:
        """Copy from the host; the host array is read when the stream reaches the copy."""
        assert (arr.dtype, arr.shape) == (self.dtype, (self.size,))
        stream.work.append(partial(_copy, (self.memory, _views(self.data.ptr, self.nbytes)[1]), (arr, 1)))

    def get(self, stream: Stream | None = None, out: np.ndarray[Any, Any] | None = None) -> np.ndarray[Any, Any]:
        """Copy to the host in the order of one stream, and wait for it."""
        stream, out = stream or current_stream(), np.empty(self.shape, self.dtype) if out is None else out
        assert (out.dtype, out.shape) == (self.dtype, (self.size,))
        memory = self.memory
        stream.work.append(lambda: out.__setitem__(slice(None), memory))
        stream.synchronize()
        return out


def array_of(values: Any, dtype: Any) -> ndarray:
    """Return a complete array of a user, outside of the pool."""
    contents = np.array(values, dtype)
    array = ndarray(contents.size, contents.dtype, MemoryPointer(Block(Allocation(contents.nbytes), 1), 0))
    _copy((array.memory, _views(array.data.ptr, array.nbytes)[1]), (contents, 1))
    return array


class PooledMemory:
    """The memory of a GPU, part of which belongs to a pool."""

    def __init__(self) -> None:
        self.free, self.pooled, self.trims = 1 << 30, 0, 0
        self.blocks: dict[tuple[int, int], list[Allocation]] = {}

    def take(self, size: int, device: int) -> Block:
        """Return memory, which the pool reuses if the current stream has allocated it before; fail like CuPy."""
        if size > self.free:
            raise MemoryError(f"Out of memory allocating {size:,} bytes")
        stream = current_stream()
        free = self.blocks.setdefault((stream.ptr, size), [])
        return Block(free.pop() if free else Allocation(size), device, stream, free)

    def malloc(self, size: int) -> Any:
        """CuPy's default allocator."""
        raise NotImplementedError(size)

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
        self.allocator: Any = self.memory.malloc
        self.get_default_memory_pool = lambda: self.memory
        self.cuda = SimpleNamespace(
            Device=Device,
            Stream=Stream,
            Event=Event,
            MemoryPointer=MemoryPointer,
            UnownedMemory=UnownedMemory,
            alloc_pinned_memory=self._pinned,
            get_allocator=lambda: self.allocator,
            get_current_stream=current_stream,
            get_elapsed_time=lambda start_event, end_event: 2.0,
            runtime=SimpleNamespace(
                memGetInfo=lambda: (self.memory.free, 1 << 30),
                eventRecord=self._record,
                streamWaitEvent=self._wait,
                pointerGetAttributes=lambda ptr: SimpleNamespace(device=_live[find_block(ptr, 1)[0].address][1]),
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
        block = self.memory.take(shape * np.dtype(dtype).itemsize, stack[-2].id)
        return ndarray(shape, dtype, MemoryPointer(block, 0))


def install(patch: pytest.MonkeyPatch) -> FakeCupy:
    """Replace CuPy, installed or not."""
    fake = FakeCupy()
    patch.setattr(cupy_calls, "cupy", fake)
    patch.setattr(user_arrays, "require", lambda *_: fake)
    return fake
