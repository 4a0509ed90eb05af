"""Atomic combination of messages on CUDA, and the dtypes of inboxes.

A combiner for which the chip has an atomic instruction accesses the inbox once per message; others use a
compare-and-swap loop. No atomic handles bools and integers below 4 bytes, so their inboxes have elements of 4 bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.kernels.library import atomics_cuda
from gpu_pregel.kernels.library.atomics_cuda import compare_and_swap, fetch_and_or, load_bits
from gpu_pregel.kernels.library.bits_cuda import bit, bits_of_float, float_of_bits
from gpu_pregel.kernels.library.compiler_cuda import cuda, from_dtype
from gpu_pregel.kernels.library.jit_cuda import device
from gpu_pregel.kernels.programs.functions import Functions
from gpu_pregel.kernels.traverse.fields import Fields, make_cast

_SIGNED = {"min": "fetch_and_min", "max": "fetch_and_max"}
_UNSIGNED = {"min": "fetch_and_umin", "max": "fetch_and_umax"}
_EITHER = {"sum": "fetch_and_add", "or": "fetch_and_or", "and": "fetch_and_and"}


def inbox_dtypes(message: Fields) -> tuple[np.dtype[Any], ...]:
    """Return the dtypes of an inbox for messages of these fields."""
    if message.is_tuple:
        return message.dtypes
    dtype = message.dtypes[0]
    if dtype.itemsize < 4:
        return (np.dtype(np.int32 if dtype.kind == "i" else np.uint32),)
    return (dtype,)


def make_deliver(functions: Functions) -> tuple[Any, bool]:
    """``deliver(inbox, touched, v, message)``: combine a message into v's inbox; the first message sets v's bit.

    It returns whether this call set the bit; if all vertices apply, no bit is set. Also returned: whether it reads
    inboxes while other threads write them, as a compare-and-swap does.
    """
    combine_at, by_swapping = _make_combine_at(functions)
    always, nothing = functions.always, _bits_of_nothing(functions)

    def deliver(inbox, touched, v, message):
        # An inbox that equals the identity may be empty: the bit tells.
        if combine_at(inbox, v, message) == nothing and not always:
            own = bit(v)
            return fetch_and_or(touched, v >> np.uint32(5), own) & own == np.uint32(0)
        return False

    return device(deliver), by_swapping


def make_combine(functions: Functions) -> Any:
    """``combine(message, other)``: combine two messages in registers, to the same bits as ``deliver`` in an inbox."""
    function, cast = functions.combine, make_cast(device, functions.message)
    dtype = functions.message.dtypes[0]

    @device
    def first(message, other):
        return message if message != identity else other

    @device
    def smaller(message, other):
        # -0 is less than 0, and NaN changes nothing.
        is_less = other < message or (other == message and signed(bits_of_float(other)) < 0)
        return other if is_less else message

    @device
    def greater(message, other):
        is_greater = other > message or (other == message and signed(bits_of_float(other)) >= 0)
        return other if is_greater else message

    @device
    def by_function(message, other):
        return cast(function(message, other))

    identity, signed = functions.identity, from_dtype(np.dtype(f"i{max(4, dtype.itemsize)}"))
    if functions.takes_any:
        return first
    if dtype.kind == "f" and functions.built_in in ("min", "max"):
        return smaller if functions.built_in == "min" else greater
    return by_function


def _bits_of_nothing(functions: Functions) -> Any:
    """Return the bits of an empty inbox."""
    element = inbox_dtypes(functions.message)[0]
    return element.type(functions.identity).view(f"u{element.itemsize}")


def _make_combine_at(functions: Functions) -> tuple[Any, bool]:
    """``combine_at(inbox, v, message)``: combine, return the previous bits; also whether it works by swapping."""
    if functions.takes_any:
        return _make_take_first(functions), True
    dtype = functions.message.dtypes[0]
    if dtype.kind != "f":
        names = _EITHER | (_SIGNED if dtype.kind == "i" else _UNSIGNED)
        if functions.built_in in names:
            operation = getattr(atomics_cuda, names[functions.built_in])
            return _make_integer(operation, inbox_dtypes(functions.message)[0]), False
    elif functions.built_in in ("min", "max"):
        return _make_ordered_float(functions), False
    elif functions.built_in == "sum":
        return device(_add_float), False
    return _make_by_swapping(functions), True


def _make_take_first(functions: Functions) -> Any:
    """Store the first of several equal messages; threads that race store the same."""
    nothing = _bits_of_nothing(functions)

    def take_first(inbox, v, message):
        bits = load_bits(inbox, v)
        if bits == nothing:
            inbox[v] = message
        return bits

    return device(take_first)


def _make_integer(operation: Any, element: np.dtype[Any]) -> Any:
    as_element = from_dtype(element)

    def combine_integer(inbox, v, message):
        return operation(inbox, v, as_element(message))

    return device(combine_integer)


def _make_ordered_float(functions: Functions) -> Any:
    """Combine floats by integer atomics: positive floats are ordered as their bits are, negative ones in reverse."""
    built_in, dtype, nothing = functions.built_in, functions.message.dtypes[0], _bits_of_nothing(functions)
    signed = from_dtype(np.dtype(f"i{dtype.itemsize}"))
    positive = atomics_cuda.fetch_and_min if built_in == "min" else atomics_cuda.fetch_and_max
    negative = atomics_cuda.fetch_and_umax if built_in == "min" else atomics_cuda.fetch_and_umin

    def combine_ordered(inbox, v, message):
        bits = bits_of_float(message)
        if message != message:
            # NaN changes nothing, as in min(a, b) on the CPU, but may be the first message.
            return nothing
        if signed(bits) >= 0:
            return positive(inbox, v, signed(bits))
        return negative(inbox, v, bits)

    return device(combine_ordered)


def _add_float(inbox: Any, v: Any, message: Any) -> Any:
    return bits_of_float(cuda.atomic.add(inbox, v, message))


def _make_by_swapping(functions: Functions) -> Any:
    combine, cast = functions.combine, make_cast(device, functions.message)
    dtype = functions.message.dtypes[0]
    number, element = from_dtype(dtype), from_dtype(inbox_dtypes(functions.message)[0])

    @device
    def combine_floats(bits, message):
        return bits_of_float(cast(combine(float_of_bits(bits), message)))

    @device
    def combine_integers(bits, message):
        return element(cast(combine(number(bits), message)))

    combined = combine_floats if dtype.kind == "f" else combine_integers

    def combine_by_swapping(inbox, v, message):
        old = load_bits(inbox, v)
        while True:
            found = compare_and_swap(inbox, v, old, combined(old, message))
            if found == old:
                return old
            old = found

    return device(combine_by_swapping)
