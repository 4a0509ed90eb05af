"""A substitute for CuPy without a GPU: work on a stream is deferred until the stream is synchronised.

Memory is that of the emulated device, which records the bytes that were written. It is garbage when it is allocated,
and becomes garbage again, in the order of its stream, when its last array is gone.
"""

from __future__ import annotations

import functools
import itertools
import threading
import weakref
from collections import defaultdict
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from gpu_pregel.host.emulator.machine import layout
from gpu_pregel.host.emulator.machine.arrays import Allocation, Bytes


class _Stack(threading.local):
    def __init__(self) -> None:
        self.entered: list[Any] = []


_stack = _Stack()
_live: dict[int, Allocation] = {}
"""The blocks that arrays have, by address."""


def entered() -> list[Any]:
    """Return the current devices and streams of this thread, innermost last."""
    return _stack.entered


def find_block(pointer: int, size: int) -> tuple[Allocation, int]:
    """Return the block of an array that has ``size`` bytes at an address, and their offset; fail like CUDA without."""
    exact = _live.get(pointer)
    for block in [exact] if exact else list(_live.values()):
        if block.address <= pointer <= pointer + size <= block.address + block.nbytes:
            return block, pointer - block.address
    raise CUDARuntimeError(f"cudaErrorIllegalAddress: no array has {size} bytes at {pointer:#x}")


def current_stream() -> Stream:
    """Return the innermost stream of this thread, or the default stream, which other streams do not wait for."""
    return next((one for one in reversed(entered()) if isinstance(one, Stream)), DEFAULT_STREAM)


class CUDARuntimeError(RuntimeError):
    """Same name as CuPy's exception."""


class _Current:
    def __enter__(self) -> Any:
        entered().append(self)
        return self

    def __exit__(self, *_: object) -> None:
        assert entered().pop() is self


class Device(_Current):
    """A GPU with a number."""

    def __init__(self, device: int) -> None:
        self.id = device
        self.waits = 0

    def synchronize(self) -> None:
        """Wait for all streams."""
        self.waits += 1
        for stream in list(Stream.known.values()):
            stream.synchronize()


class Stream(_Current):
    """A queue of deferred work."""

    known: ClassVar[weakref.WeakValueDictionary[int, Stream]] = weakref.WeakValueDictionary()
    """The streams by handle."""
    _handles = itertools.count(0x51)

    def __init__(self, non_blocking: bool = False) -> None:
        assert isinstance(entered()[-1], Device), "a stream needs a current device"
        assert non_blocking
        self._start(next(self._handles))

    def _start(self, handle: int) -> None:
        self.ptr = handle
        self.work: list[Callable[[], object]] = []
        self.failure: Exception | None = None
        self.known[self.ptr] = self

    def enqueue(self, work: Callable[..., object], *arguments: Any) -> None:
        """Defer a call."""
        self.work.append(functools.partial(work, *arguments))

    def synchronize(self) -> None:
        """Run the deferred work; once it has failed, the stream stays unusable."""
        while self.work and self.failure is None:
            try:
                self.work.pop(0)()
            except Exception as error:
                self.failure = error
        if self.failure is not None:
            self.work.clear()
            raise self.failure


DEFAULT_STREAM = Stream.__new__(Stream)
DEFAULT_STREAM._start(0)


class Event:
    """An event on a stream."""

    def record(self, stream: Stream) -> None:
        """Record the event."""
        self.stream = stream

    def synchronize(self) -> None:
        """Wait for the event."""
        self.stream.synchronize()


class Memory:
    """A block of memory, which its stream fills with garbage when the last array of it is gone."""

    def __init__(self, block: Allocation, free: Callable[[Allocation], None] | None = None) -> None:
        self.block = block
        # CuPy's memory ends with its last reference. The garbage collector clears references to Python objects earlier,
        # also of those that are then used again, but not references to arrays.
        self._end = np.empty(0)
        if block.nbytes:
            _live[block.address] = block
            weakref.finalize(self._end, _end, block, free).atexit = False


def _end(block: Allocation, free: Callable[[Allocation], None] | None) -> None:
    del _live[block.address]
    if free is not None:
        free(block)


class MemoryPointer:
    """An address with a reference to its memory; deferred work refers to the bytes only."""

    def __init__(self, mem: Memory, offset: int, size: int) -> None:
        self.mem, self.offset, self.size = mem, offset, size
        # CuPy allocates nothing for an array without elements.
        self.ptr = mem.block.address + offset if mem.block.nbytes else 0

    def bytes(self, size: int) -> tuple[Bytes, Bytes]:
        """Return views of the contents, and of the flags that say which bytes were written."""
        if size > self.size:
            raise CUDARuntimeError(f"cudaErrorInvalidValue: {size} bytes of an array of {self.size}")
        part = slice(self.offset, self.offset + size)
        return self.mem.block.bytes[part], self.mem.block.written[part]

    def memset_async(self, value: int, size: int, stream: Stream) -> None:
        """Set bytes to a value."""
        contents, written = self.bytes(size)
        stream.enqueue(contents.fill, value)
        stream.enqueue(written.fill, 1)

    def copy_from_device_async(self, src: MemoryPointer, size: int, stream: Stream) -> None:
        """Copy bytes; those that were never written stay unwritten."""
        for target, source in zip(self.bytes(size), src.bytes(size), strict=True):
            stream.enqueue(_copy, target, source)


def _copy(target: Any, source: Any) -> None:
    target[:] = source


class ndarray:  # noqa: N801 (CuPy's name)
    """A one-dimensional array: that of a host array's contents, or of uninitialised memory."""

    ndim = 1
    flags = SimpleNamespace(c_contiguous=True)

    def __init__(self, memory: np.ndarray[Any, Any] | MemoryPointer, dtype: Any = None, device: Any = None) -> None:
        if isinstance(memory, np.ndarray):
            dtype, memory = memory.dtype, _pointer_to(memory)
        self.data = memory
        self.dtype = np.dtype(dtype)
        self.nbytes = memory.size
        self.size = memory.size // self.dtype.itemsize
        self.shape = (self.size,)
        self.device = device or Device(1)

    @property
    def memory(self) -> np.ndarray[Any, Any]:
        """A view of the contents."""
        return self.data.bytes(self.nbytes)[0].view(self.dtype)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (self.data.ptr, False), "version": 3}

    def __len__(self) -> int:
        return int(self.size)

    def __getitem__(self, part: slice) -> ndarray:
        first, last, step = part.indices(self.size)
        assert step == 1
        itemsize = self.dtype.itemsize
        pointer = MemoryPointer(self.data.mem, self.data.offset + first * itemsize, max(last - first, 0) * itemsize)
        return ndarray(pointer, self.dtype, self.device)

    def __setitem__(self, place: int, value: Any) -> None:
        current_stream().enqueue(self.memory.__setitem__, place, value)

    def set(self, arr: np.ndarray[Any, Any], stream: Stream) -> None:
        """Copy from the host; the host array is read when the stream reaches the copy."""
        assert (arr.dtype, arr.shape) == (self.dtype, self.shape)
        stream.enqueue(_copy, self.memory, arr)
        stream.enqueue(self.data.bytes(self.nbytes)[1].fill, 1)

    def get(self, stream: Stream | None = None, out: np.ndarray[Any, Any] | None = None) -> np.ndarray[Any, Any]:
        """Copy to the host, after the work of one stream."""
        stream, out = stream or current_stream(), np.empty(self.shape, self.dtype) if out is None else out
        assert (out.dtype, out.shape) == (self.dtype, self.shape)
        stream.enqueue(_copy, out, self.memory)
        stream.synchronize()
        return out


def _pointer_to(contents: np.ndarray[Any, Any]) -> MemoryPointer:
    """Return the address of new memory with the contents of a host array."""
    memory = Memory(Allocation(contents.nbytes))
    memory.block.bytes[:], memory.block.written[:] = np.ascontiguousarray(contents).view(np.uint8), 1
    return MemoryPointer(memory, 0, contents.nbytes)


class PooledMemory:
    """The memory of a GPU, part of which belongs to a pool."""

    def __init__(self) -> None:
        self.free, self.pooled, self.trims = 1 << 30, 0, 0
        self._freed: dict[tuple[int, int], list[Allocation]] = defaultdict(list)

    def take(self, size: int, stream: Stream) -> Memory:
        """Return a block that the stream has freed, or a new one; fail like CuPy without memory."""
        if size > self.free:
            raise MemoryError(f"Out of memory allocating {size:,} bytes")
        blocks = self._freed[stream.ptr, size]
        return Memory(blocks.pop() if blocks else Allocation(size), functools.partial(self._give_back, stream))

    def _give_back(self, stream: Stream, block: Allocation) -> None:
        """Keep a block for its stream, which fills it with garbage after all work so far."""
        stream.enqueue(block.bytes.fill, layout.POISON)
        stream.enqueue(block.written.fill, 0)
        self._freed[stream.ptr, block.nbytes].append(block)

    def free_bytes(self) -> int:
        """Return the unused bytes of the pool."""
        return self.pooled

    def free_all_blocks(self) -> None:
        """Empty the pool."""
        self.free, self.pooled, self.trims = self.free + self.pooled, 0, self.trims + 1
        self._freed.clear()


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
        assert [type(one) for one in entered()[-2:]] == [Device, Stream], "allocation without a device and a stream"
        device, stream = entered()[-2:]
        size = shape * np.dtype(dtype).itemsize
        return ndarray(MemoryPointer(self.memory.take(size, stream), 0, size), dtype, device)
