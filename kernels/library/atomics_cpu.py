"""Atomic operations on array elements for kernels that run on several CPU threads, as LLVM instructions.

``compare_and_swap`` is sequentially consistent; all others have relaxed (monotonic) ordering, which suffices because
kernels exchange single words and their threads are joined before the results are read. They accept integers; loads,
stores and swaps also accept floats, of which they compare the bits.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def _element_pointer(context: Any, builder: Any, array_type: Any, array: Any, index_type: Any, index: Any) -> Any:
    view = context.make_array(array_type)(context, builder, array)
    index = context.cast(builder, index, index_type, types.intp)
    return cgutils.get_item_pointer(context, builder, array_type, view, [index], wraparound=False)


def _is_integer_array(array: Any) -> bool:
    return isinstance(array, types.Array) and array.ndim == 1 and isinstance(array.dtype, types.Integer)


def _is_number_array(array: Any) -> bool:
    return isinstance(array, types.Array) and array.ndim == 1 and isinstance(array.dtype, (types.Integer, types.Float))


def _bits_pointer(builder: Any, pointer: Any, dtype: Any) -> Any:
    """Return a pointer to an element, typed as an integer of the same size."""
    return builder.bitcast(pointer, ir.IntType(dtype.bitwidth).as_pointer())


@intrinsic
def load(typingctx: Any, array: Any, index: Any) -> Any:
    """Return ``array[index]``, which other threads may write: every call reads memory."""
    if not _is_number_array(array):
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _element_pointer(context, builder, signature.args[0], arguments[0], signature.args[1], arguments[1])
        bits = _bits_pointer(builder, pointer, array.dtype)
        word = builder.load_atomic(bits, "monotonic", array.dtype.bitwidth // 8)
        return builder.bitcast(word, context.get_value_type(array.dtype))

    return array.dtype(array, index), codegen


@intrinsic
def store(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """Set ``array[index] = value`` in a single write, so that no other thread reads part of it."""
    if not _is_number_array(array):
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _element_pointer(context, builder, signature.args[0], arguments[0], signature.args[1], arguments[1])
        bits = _bits_pointer(builder, pointer, array.dtype)
        word = context.cast(builder, arguments[2], signature.args[2], array.dtype)
        word = builder.bitcast(word, ir.IntType(array.dtype.bitwidth))
        builder.store_atomic(word, bits, "monotonic", array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, index, value), codegen


def _read_modify_write(operation: str, array: Any, index: Any, value: Any) -> Any:
    """Return the signature and the code generator of LLVM's ``atomicrmw`` instruction."""
    if not _is_integer_array(array):
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _element_pointer(context, builder, signature.args[0], arguments[0], signature.args[1], arguments[1])
        word = context.cast(builder, arguments[2], signature.args[2], array.dtype)
        return builder.atomic_rmw(operation, pointer, word, "monotonic")

    return array.dtype(array, index, value), codegen


@intrinsic
def fetch_and_add(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """Add ``value`` to ``array[index]`` and return its previous value."""
    return _read_modify_write("add", array, index, value)


@intrinsic
def fetch_and_or(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """Set the bits of ``value`` in ``array[index]`` and return its previous value."""
    return _read_modify_write("or", array, index, value)


@intrinsic
def compare_and_swap(typingctx: Any, array: Any, index: Any, expected: Any, desired: Any) -> Any:
    """Set ``array[index]`` to ``desired`` if it holds ``expected``; return whether it did."""
    if not _is_number_array(array):
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _element_pointer(context, builder, signature.args[0], arguments[0], signature.args[1], arguments[1])
        word = ir.IntType(array.dtype.bitwidth)
        old = builder.bitcast(context.cast(builder, arguments[2], signature.args[2], array.dtype), word)
        new = builder.bitcast(context.cast(builder, arguments[3], signature.args[3], array.dtype), word)
        result = builder.cmpxchg(_bits_pointer(builder, pointer, array.dtype), old, new, "seq_cst", "seq_cst")
        return builder.extract_value(result, 1)

    return types.boolean(array, index, expected, desired), codegen


@intrinsic
def prefetch(typingctx: Any, array: Any, index: Any) -> Any:
    """Prefetch ``array[index]`` into the cache; the index may be out of range."""
    if not isinstance(array, types.Array) or array.ndim != 1:
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _element_pointer(context, builder, signature.args[0], arguments[0], signature.args[1], arguments[1])
        byte_pointer = ir.PointerType(ir.IntType(8))
        word = ir.IntType(32)
        function_type = ir.FunctionType(ir.VoidType(), [byte_pointer, word, word, word])
        function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.prefetch.p0")
        builder.call(function, [builder.bitcast(pointer, byte_pointer), word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(array, index), codegen
