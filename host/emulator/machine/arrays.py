"""Device arrays of the emulator: they reject the conversions that CuPy rejects and track which bytes were written."""

from __future__ import annotations

import math
import weakref
from typing import Any, NoReturn

import numpy as np

from gpu_pregel.host.emulator.machine import layout as at

ALIGNMENT = 256
RED_ZONE = 256
"""Bytes on each side of an allocation that belong to no array."""

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


class Allocation:
    """A block of memory between red zones, with one shadow byte per byte."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self._held = np.full(nbytes + 2 * RED_ZONE + ALIGNMENT, at.POISON, np.uint8)
        start = -(-(self._held.ctypes.data + RED_ZONE) // ALIGNMENT) * ALIGNMENT - self._held.ctypes.data
        self.bytes: Bytes = self._held[start : start + nbytes]
        self.address = self._held.ctypes.data + start
        self.written: Bytes = np.zeros(nbytes, np.uint8)
        self._races: dict[int, np.ndarray[Any, np.dtype[np.int64]]] = {}

    def races(self, granule: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the shadow words for race detection per ``granule`` bytes, allocated on first use."""
        if granule not in self._races:
            self._races[granule] = np.zeros((self.nbytes // granule + 1) * at.RACE_WORDS, np.int64)
        return self._races[granule]


class EmulatedMemory:
    """The memory of one emulated device.

    Parameters
    ----------
    capacity : int, optional
        Size in bytes; unlimited by default. An allocation that exceeds it fails.

    Attributes
    ----------
    live_bytes, peak_bytes : int
        Bytes currently allocated, and the maximum so far.
    readbacks, readback_bytes, uploads, upload_bytes : int
        Number and total size of copies to and from the host.
    """

    def __init__(self, capacity: int | None = None) -> None:
        self.capacity = capacity
        self.live_bytes = self.peak_bytes = 0
        self.readbacks = self.readback_bytes = 0
        self.uploads = self.upload_bytes = 0

    def empty(self, size: int | tuple[int, ...], dtype: Any) -> DeviceArray:
        """Return an uninitialised array."""
        dtype, length = np.dtype(dtype), _length(size)
        nbytes = length * dtype.itemsize
        if dtype.hasobject:
            raise TypeError(f"dtype {dtype} is not supported in device memory")
        if self.capacity is not None and self.live_bytes + nbytes > self.capacity:
            raise MemoryError(
                f"out of memory allocating {nbytes} bytes (allocated so far: {self.live_bytes} bytes, limit: "
                f"{self.capacity} bytes)"
            )
        allocation = Allocation(nbytes)
        self.live_bytes += nbytes
        self.peak_bytes = max(self.peak_bytes, self.live_bytes)
        weakref.finalize(allocation, self._release, nbytes).atexit = False
        return DeviceArray(self, allocation, 0, (length,), dtype)

    def _release(self, nbytes: int) -> None:
        self.live_bytes -= nbytes

    def zeros(self, size: int | tuple[int, ...], dtype: Any) -> DeviceArray:
        """Return an array of zeros."""
        return self.full(size, 0, dtype)

    def full(self, size: int | tuple[int, ...], value: Any, dtype: Any) -> DeviceArray:
        """Return an array filled with ``value``."""
        array = self.empty(size, dtype)
        array.fill(value)
        return array

    def asarray(self, host: Any, dtype: Any = None) -> DeviceArray:
        """Copy a one-dimensional host array to the device; a device array is returned unchanged."""
        if isinstance(host, DeviceArray):
            if dtype is not None and host.dtype != np.dtype(dtype):
                raise TypeError(f"array has dtype {host.dtype}, not {np.dtype(dtype)}: device arrays are not converted")
            return host
        source = np.ascontiguousarray(host, dtype)
        if source.ndim != 1:
            raise ValueError(f"array has {source.ndim} dimensions: device arrays have one")
        array = self.empty(source.size, source.dtype)
        array.set(source)
        return array


def _length(size: int | tuple[int, ...]) -> int:
    if isinstance(size, tuple):
        if len(size) != 1:
            raise ValueError(f"shape {size} has {len(size)} dimensions: device arrays have one")
        size = size[0]
    length = int(size)
    if length < 0:
        raise ValueError(f"size {length} is negative")
    return length


def _refuse(what: str) -> NoReturn:
    raise TypeError(f"implicit conversion to {what} is not allowed: use .get()")


class DeviceArray:
    """A contiguous array in emulated memory; slices and views share its memory.

    Attributes
    ----------
    memory : EmulatedMemory
    allocation : Allocation
    offset : int
        Position of the first element in the allocation, in bytes.
    address : int
        Address of the first element.
    shape : tuple
        The length, or empty for a single element.
    dtype : numpy.dtype
    """

    __hash__ = object.__hash__
    # NumPy must not treat this as a sequence or a scalar.
    __array_ufunc__ = None

    def __init__(
        self, memory: EmulatedMemory, allocation: Allocation, offset: int, shape: tuple[int, ...], dtype: Any
    ) -> None:
        self.memory = memory
        self.allocation = allocation
        self.shape = shape
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.offset = offset

    @property
    def address(self) -> int:
        """Address of the first element."""
        return self.allocation.address + self.offset

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """1, or 0 for a single element."""
        return len(self.shape)

    @property
    def itemsize(self) -> int:
        """Size of an element in bytes."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Size of all elements in bytes."""
        return self.size * self.itemsize

    def _host(self) -> np.ndarray[Any, Any]:
        """Return a view of the elements, without counting a readback."""
        return self.allocation.bytes[self.offset : self.offset + self.nbytes].view(self.dtype)

    def _mark_written(self) -> None:
        self.allocation.written[self.offset : self.offset + self.nbytes] = 1

    def get(self) -> np.ndarray[Any, Any]:
        """Copy to the host and count a readback."""
        self.memory.readbacks += 1
        self.memory.readback_bytes += self.nbytes
        return self.peek()

    def peek(self) -> np.ndarray[Any, Any]:
        """Copy to the host as a debugger does, without counting a readback."""
        return self._host().copy().reshape(self.shape)

    def set(self, host: Any) -> None:
        """Copy from a host array of the same shape and dtype."""
        source = np.asarray(host)
        if source.shape != self.shape or source.dtype != self.dtype:
            raise ValueError(
                f"array of shape {source.shape} and dtype {source.dtype} does not fit an array of shape {self.shape} "
                f"and dtype {self.dtype}"
            )
        self._host()[:] = source.reshape(-1)
        self._mark_written()
        self.memory.uploads += 1
        self.memory.upload_bytes += self.nbytes

    def fill(self, value: Any) -> None:
        """Set all elements to a scalar."""
        if isinstance(value, DeviceArray):
            _refuse("a scalar")
        if np.ndim(value):
            raise TypeError("fill takes a scalar")
        self._host()[:] = value
        self._mark_written()

    def copy(self) -> DeviceArray:
        """Copy to a new array on the device; unwritten bytes stay marked as unwritten."""
        other = self.memory.empty(self.size, self.dtype)
        end = self.offset + self.nbytes
        other.allocation.bytes[:] = self.allocation.bytes[self.offset : end]
        other.allocation.written[:] = self.allocation.written[self.offset : end]
        return DeviceArray(self.memory, other.allocation, 0, self.shape, self.dtype)

    def readable(self) -> ReadableArray:
        """Return the same array as one that NumPy may read."""
        return ReadableArray(self.memory, self.allocation, self.offset, self.shape, self.dtype)

    def view(self, dtype: Any) -> DeviceArray:
        """Return a view of the same bytes with another dtype."""
        dtype = np.dtype(dtype)
        if self.nbytes % dtype.itemsize:
            raise ValueError(f"{self.nbytes} bytes is not a multiple of the size of dtype {dtype}")
        return DeviceArray(self.memory, self.allocation, self.offset, (self.nbytes // dtype.itemsize,), dtype)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __getitem__(self, key: Any) -> DeviceArray:
        if not self.shape:
            raise IndexError("too many indices for array: it is a single element")
        if isinstance(key, slice):
            start, stop, step = key.indices(self.size)
            if step != 1:
                raise NotImplementedError(f"device arrays support only contiguous slices, not a step of {step}")
            return self._part(start, (max(stop - start, 0),))
        if isinstance(key, bool) or not isinstance(key, (int, np.integer)):
            raise TypeError(f"index must be an integer or a slice, not {type(key).__name__}")
        place = int(key) + (self.size if key < 0 else 0)
        if not 0 <= place < self.size:
            raise IndexError(f"index {key} is out of bounds for an array of {self.size} elements")
        return self._part(place, ())

    def _part(self, start: int, shape: tuple[int, ...]) -> DeviceArray:
        return DeviceArray(self.memory, self.allocation, self.offset + start * self.itemsize, shape, self.dtype)

    def __setitem__(self, key: Any, value: Any) -> None:
        part = self[key]
        if isinstance(value, DeviceArray):
            if value.shape != part.shape or value.dtype != part.dtype:
                raise ValueError(f"array of shape {value.shape} and dtype {value.dtype} does not fit {part!r}")
            source, own = value.offset, part.offset
            for mine, other in (
                (part.allocation.bytes, value.allocation.bytes),
                (part.allocation.written, value.allocation.written),
            ):
                mine[own : own + part.nbytes] = other[source : source + part.nbytes].copy()
        elif np.ndim(value) or isinstance(value, np.ndarray):
            raise TypeError("an element or slice of a device array takes a scalar or a device array: use .set()")
        else:
            part.fill(value)

    def __repr__(self) -> str:
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype})"

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        _refuse("a NumPy array")

    def __bool__(self) -> bool:
        _refuse("a truth value")

    def __float__(self) -> float:
        _refuse("a float")

    def __int__(self) -> int:
        _refuse("an integer")

    def __index__(self) -> int:
        _refuse("an integer")

    def __complex__(self) -> complex:
        _refuse("a complex number")

    def __iter__(self) -> NoReturn:
        _refuse("a sequence")

    def __contains__(self, item: object) -> bool:
        _refuse("a sequence")

    def _arithmetic(self, _other: object = None) -> NoReturn:
        raise TypeError("device arrays do not support arithmetic or comparison: use a kernel")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _arithmetic
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = _arithmetic
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __lshift__ = __rshift__ = _arithmetic
    __iadd__ = __isub__ = __imul__ = __iand__ = __ior__ = __ixor__ = _arithmetic
    __neg__ = __invert__ = __abs__ = _arithmetic
    __lt__ = __le__ = __gt__ = __ge__ = _arithmetic
    __eq__ = __ne__ = _arithmetic


class ReadableArray(DeviceArray):
    """A device array that NumPy may read, as users do with results: it is in this process's memory."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:  # type: ignore[override]
        if copy is False:
            raise ValueError("the array is copied to the host, so copy=False is not possible")
        return self.get().astype(dtype or self.dtype, copy=False)
