"""Atomic operations on array elements in CUDA kernels, relaxed instructions that return the previous value; the fence.

They accept arrays of any numeric type of 4 or 8 bytes. Integer operations work on the bits of an element, so that
floats can be compared and swapped, or ordered as integers, without a second view of the array.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from gpu_pregel.kernels.library.compiler_cuda import cgutils, intrinsic, types

_ORDER = 'syncscope("device") monotonic'
"""Without a scope, NVVM orders atomics for chips from sm_100 with the host and other GPUs too (``.sys``)."""


def _element(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Return a pointer to the element, typed as an integer of the same size."""
    array_type, index_type = signature.args[:2]
    view = context.make_array(array_type)(context, builder, arguments[0])
    index = context.cast(builder, arguments[1], index_type, types.intp)
    pointer = cgutils.get_item_pointer(context, builder, array_type, view, [index], wraparound=False)
    return builder.bitcast(pointer, ir.IntType(array_type.dtype.bitwidth).as_pointer())


def _bits_of(array: Any) -> Any:
    """Return the unsigned integer type of the size of an array's elements; None if no atomic has that size."""
    if not isinstance(array, types.Array) or array.ndim != 1:
        return None
    return {32: types.uint32, 64: types.uint64}.get(getattr(array.dtype, "bitwidth", 0))


def _read_modify_write(operation: str, array: Any, index: Any, value: Any) -> Any:
    bits = _bits_of(array)
    if bits is None or not isinstance(value, (types.Integer, types.Boolean)):
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = context.cast(builder, arguments[2], signature.args[2], bits)
        return builder.atomic_rmw(operation, _element(context, builder, signature, arguments), word, _ORDER)

    return bits(array, index, value), codegen


@intrinsic
def fence(typingctx: Any) -> Any:
    """Order the accesses of this thread before and after it, for all threads of the GPU."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), ())
        builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.nvvm.membar.gl"), ())
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def fetch_and_add(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """Add an integer to ``array[index]``."""
    return _read_modify_write("add", array, index, value)


@intrinsic
def fetch_and_or(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """Set the bits of ``value`` in ``array[index]``."""
    return _read_modify_write("or", array, index, value)


@intrinsic
def fetch_and_and(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """Clear the bits of ``array[index]`` that are not set in ``value``."""
    return _read_modify_write("and", array, index, value)


@intrinsic
def fetch_and_min(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """Set ``array[index]``, as a signed integer, to the minimum of itself and ``value``."""
    return _read_modify_write("min", array, index, value)


@intrinsic
def fetch_and_max(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """Set ``array[index]``, as a signed integer, to the maximum of itself and ``value``."""
    return _read_modify_write("max", array, index, value)


@intrinsic
def fetch_and_umin(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """Set ``array[index]``, as an unsigned integer, to the minimum of itself and ``value``."""
    return _read_modify_write("umin", array, index, value)


@intrinsic
def fetch_and_umax(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """Set ``array[index]``, as an unsigned integer, to the maximum of itself and ``value``."""
    return _read_modify_write("umax", array, index, value)


@intrinsic
def compare_and_swap(typingctx: Any, array: Any, index: Any, expected: Any, desired: Any) -> Any:
    """Set the bits of ``array[index]`` to ``desired`` if they equal ``expected``."""
    bits = _bits_of(array)
    if bits is None:
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        old = context.cast(builder, arguments[2], signature.args[2], bits)
        new = context.cast(builder, arguments[3], signature.args[3], bits)
        pointer = _element(context, builder, signature, arguments)
        return builder.extract_value(builder.cmpxchg(pointer, old, new, _ORDER, "monotonic"), 0)

    return bits(array, index, expected, desired), codegen


@intrinsic
def load_bits(typingctx: Any, array: Any, index: Any) -> Any:
    """Return the bits of ``array[index]`` as an unsigned integer."""
    bits = _bits_of(array)
    if bits is None:
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_element(context, builder, signature, arguments))

    return bits(array, index), codegen


def _relaxed(kind: str, array: Any) -> tuple[str, Any]:
    """Return a relaxed load or store instruction and the operand's constraint; LLVM IR for NVVM has neither."""
    width = array.dtype.bitwidth
    constraint = "l" if width == 64 else "r"
    if kind == "load":
        return f"ld.relaxed.gpu.u{width} $0, [$1];", f"={constraint},l"
    return f"st.relaxed.gpu.u{width} [$0], $1;", f"l,{constraint}"


@intrinsic
def load_relaxed(typingctx: Any, array: Any, index: Any) -> Any:
    """Return ``array[index]``, which other threads may write by atomic operations."""
    if _bits_of(array) is None:
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _element(context, builder, signature, arguments)
        text, constraints = _relaxed("load", array)
        kind = ir.FunctionType(pointer.type.pointee, [pointer.type])
        bits = builder.asm(kind, text, constraints, [pointer], True)
        return builder.bitcast(bits, context.get_value_type(array.dtype))

    return array.dtype(array, index), codegen


@intrinsic
def store_relaxed(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """Set ``array[index]``, which other threads may read or write by atomic operations."""
    if _bits_of(array) is None:
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _element(context, builder, signature, arguments)
        number = context.cast(builder, arguments[2], signature.args[2], array.dtype)
        text, constraints = _relaxed("store", array)
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, pointer.type.pointee])
        builder.asm(kind, text, constraints, [pointer, builder.bitcast(number, pointer.type.pointee)], True)
        return context.get_dummy_value()

    return types.void(array, index, value), codegen
