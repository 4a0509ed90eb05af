"""Atomic operations for the bodies of operators, the same on every device.

Each is a Python function, for bodies that run interpreted, and has a compiled version for the CPU and one for CUDA
(``atomics_cuda``). They work on one-dimensional arrays of integers and floats of 32 or 64 bits, with relaxed ordering:
a value may be read by another thread only in the next call of an operator, unless that thread reads the same element.
Values are converted to the dtype of the array: floats lose their fraction in an array of integers.

``min``, ``max`` and ``add`` return the previous value; ``write_min`` and ``write_max`` return whether they changed the
element. ``write_min`` does the same in Ligra and Gemini, so that the slot of a ported program returns its result.

Examples
--------
>>> import gpu_pregel as gp, numpy as np
>>> distances = np.array([5.0, 2.0])
>>> float(gp.atomics.min(distances, 0, 3.0)), gp.atomics.write_min(distances, 1, 3.0), distances.tolist()
(5.0, False, [3.0, 2.0])

Bellman and Ford's search, ported from its signal and slot:

>>> roads = gp.Graph.from_edgelist(["A", "A", "B"], ["B", "C", "C"], [1.0, 5.0, 2.0], directed=True)
>>> lengths = np.array([0.0, np.inf, np.inf])
>>> active = gp.Frontier(roads, [0])
>>> while active:
...     active = gp.process_edges(lambda u, v, weight, lengths: gp.atomics.write_min(
...         lengths, v, gp.atomics.load(lengths, u) + weight), active, [lengths], returns="frontier")
>>> lengths.tolist()
[0.0, 1.0, 3.0]
"""

from __future__ import annotations

import builtins
from typing import Any

from numba.core import types
from numba.core.errors import TypingError
from numba.extending import overload

from gpu_pregel.kernels.library import atomics_cpu


def load(array: Any, index: Any) -> Any:
    """Return ``array[index]``, which other threads may write: every call reads memory."""
    return array[index]


def store(array: Any, index: Any, value: Any) -> None:
    """Set ``array[index] = value`` in a single write, so that no other thread reads part of it."""
    array[index] = value


def min(array: Any, index: Any, value: Any) -> Any:
    """Set ``array[index]`` to the minimum of itself and ``value``; return the previous element."""
    old = array[index]
    array[index] = builtins.min(old, array.dtype.type(value))
    return old


def max(array: Any, index: Any, value: Any) -> Any:
    """Set ``array[index]`` to the maximum of itself and ``value``; return the previous element."""
    old = array[index]
    array[index] = builtins.max(old, array.dtype.type(value))
    return old


def write_min(array: Any, index: Any, value: Any) -> bool:
    """Set ``array[index]`` to ``value`` if that is smaller; return whether it was."""
    return bool(min(array, index, value) > array.dtype.type(value))


def write_max(array: Any, index: Any, value: Any) -> bool:
    """Set ``array[index]`` to ``value`` if that is larger; return whether it was."""
    return bool(max(array, index, value) < array.dtype.type(value))


def add(array: Any, index: Any, value: Any) -> Any:
    """Add ``value`` to ``array[index]``; return the previous element. The order of float sums is not fixed."""
    old = array[index]
    array[index] = old + array.dtype.type(value)
    return old


def bitwise_or(array: Any, index: Any, value: Any) -> Any:
    """Set the bits of ``value`` in ``array[index]``, an array of integers; return the previous element."""
    old = array[index]
    array[index] = old | array.dtype.type(value)
    return old


def compare_and_swap(array: Any, index: Any, expected: Any, desired: Any) -> bool:
    """Set ``array[index]`` to ``desired`` if it holds ``expected``; return whether it did. Floats compare by bits."""
    dtype = array.dtype.type
    if array[index].tobytes() != dtype(expected).tobytes():
        return False
    array[index] = dtype(desired)
    return True


PORTABLE = (load, store, min, max, write_min, write_max, add, bitwise_or, compare_and_swap)
"""The operations; each has an overload for every compiler."""


def is_atomic_array(array: Any) -> bool:
    """Whether a Numba type is an array on which the operations work."""
    return (
        getattr(array, "ndim", None) == 1
        and isinstance(array, types.Array)
        and isinstance(array.dtype, (types.Integer, types.Float))
        and getattr(array.dtype, "bitwidth", 0) in (32, 64)
    )


def can_write(array: Any) -> bool:
    """Whether a Numba type is an array that the operations can change; raise ``TypingError`` if it is read-only."""
    if not is_atomic_array(array):
        return False
    if not array.mutable:
        # What Numba says of other writes.
        raise TypingError(f"Cannot modify readonly array of type: {array}")
    return True


@overload(load, target="cpu", strict=False)
def _load(array: Any, index: Any) -> Any:
    if is_atomic_array(array):
        return lambda array, index: atomics_cpu.load(array, index)
    return None


@overload(store, target="cpu", strict=False)
def _store(array: Any, index: Any, value: Any) -> Any:
    if can_write(array):
        return lambda array, index, value: atomics_cpu.store(array, index, value)
    return None


@overload(min, target="cpu", strict=False)
def _min(array: Any, index: Any, value: Any) -> Any:
    if not can_write(array):
        return None
    dtype = array.dtype

    def lower(array: Any, index: Any, value: Any) -> Any:
        new = dtype(value)
        old = atomics_cpu.load(array, index)
        while new < old:
            if atomics_cpu.compare_and_swap(array, index, old, new):
                return old
            old = atomics_cpu.load(array, index)
        return old

    return lower


@overload(max, target="cpu", strict=False)
def _max(array: Any, index: Any, value: Any) -> Any:
    if not can_write(array):
        return None
    dtype = array.dtype

    def raise_to(array: Any, index: Any, value: Any) -> Any:
        new = dtype(value)
        old = atomics_cpu.load(array, index)
        while new > old:
            if atomics_cpu.compare_and_swap(array, index, old, new):
                return old
            old = atomics_cpu.load(array, index)
        return old

    return raise_to


@overload(write_min, target="cpu", strict=False)
def _write_min(array: Any, index: Any, value: Any) -> Any:
    return lowering(array) if can_write(array) else None


@overload(write_max, target="cpu", strict=False)
def _write_max(array: Any, index: Any, value: Any) -> Any:
    return raising(array) if can_write(array) else None


def lowering(array: Any) -> Any:
    """Return the implementation of ``write_min`` for a Numba type, on every device."""
    dtype, lower = array.dtype, min
    return lambda array, index, value: lower(array, index, value) > dtype(value)


def raising(array: Any) -> Any:
    """Return the implementation of ``write_max`` for a Numba type, on every device."""
    dtype, raise_to = array.dtype, max
    return lambda array, index, value: raise_to(array, index, value) < dtype(value)


@overload(add, target="cpu", strict=False)
def _add(array: Any, index: Any, value: Any) -> Any:
    if not can_write(array):
        return None
    dtype = array.dtype
    if isinstance(dtype, types.Integer):
        return lambda array, index, value: atomics_cpu.fetch_and_add(array, index, dtype(value))

    def add_float(array: Any, index: Any, value: Any) -> Any:
        old = atomics_cpu.load(array, index)
        while not atomics_cpu.compare_and_swap(array, index, old, dtype(old + dtype(value))):
            old = atomics_cpu.load(array, index)
        return old

    return add_float


@overload(bitwise_or, target="cpu", strict=False)
def _bitwise_or(array: Any, index: Any, value: Any) -> Any:
    if not can_write(array) or not isinstance(array.dtype, types.Integer):
        return None
    dtype = array.dtype
    return lambda array, index, value: atomics_cpu.fetch_and_or(array, index, dtype(value))


@overload(compare_and_swap, target="cpu", strict=False)
def _compare_and_swap(array: Any, index: Any, expected: Any, desired: Any) -> Any:
    if can_write(array):
        return lambda array, index, expected, desired: atomics_cpu.compare_and_swap(array, index, expected, desired)
    return None
