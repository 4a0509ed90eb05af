"""Access to the memory of arrays by address, for helpers of CPU kernels that cannot be inlined.

Numba counts the references to an array that a helper takes, atomically and in every call; an address is an integer.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_BYTE, _WORD = ir.IntType(8), ir.IntType(64)


def _pointer(builder: Any, address: Any, element: Any = _WORD) -> Any:
    return builder.inttoptr(address, element.as_pointer())


@intrinsic
def address_of(typingctx: Any, array: Any) -> Any:
    """Return the address of the first element of an array, which the caller must keep alive."""
    if not isinstance(array, types.Array):
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.ptrtoint(view.data, _WORD)

    return types.int64(array), codegen


@intrinsic
def byte_at(typingctx: Any, address: Any) -> Any:
    """Return the byte at an address as an int64."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.zext(builder.load(_pointer(builder, arguments[0], _BYTE)), _WORD)

    return types.int64(types.int64), codegen


@intrinsic
def word_at(typingctx: Any, address: Any) -> Any:
    """Return the eight bytes at an address, of any alignment, as a uint64 in the byte order of the processor."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_pointer(builder, arguments[0]), align=1)

    return types.uint64(types.int64), codegen


@intrinsic
def shared_word_at(typingctx: Any, address: Any) -> Any:
    """Return an aligned uint64 that other threads may write: every call reads memory."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(_pointer(builder, arguments[0]), "monotonic", 8)

    return types.uint64(types.int64), codegen


@intrinsic
def set_word(typingctx: Any, address: Any, value: Any) -> Any:
    """Store an aligned uint64."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[1], _pointer(builder, arguments[0]))
        return context.get_dummy_value()

    return types.void(types.int64, types.uint64), codegen


@intrinsic
def add_to_word(typingctx: Any, address: Any, value: Any) -> Any:
    """Add to an aligned int64 that the threads share, and return its previous value."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.atomic_rmw("add", _pointer(builder, arguments[0]), arguments[1], "monotonic")

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def swap_word(typingctx: Any, address: Any, expected: Any, desired: Any) -> Any:
    """Set an aligned uint64 to ``desired`` if it is ``expected``; return whether it was."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(builder, arguments[0])
        return builder.extract_value(builder.cmpxchg(pointer, *arguments[1:], "seq_cst", "seq_cst"), 1)

    return types.boolean(types.int64, types.uint64, types.uint64), codegen


@intrinsic
def prefetch_at(typingctx: Any, address: Any) -> Any:
    """Prefetch the cache line of an address, which may be invalid."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte_pointer, word = _BYTE.as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte_pointer, word, word, word])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [_pointer(builder, arguments[0], _BYTE), word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(types.int64), codegen


@intrinsic
def number_at(typingctx: Any, address: Any) -> Any:
    """Return the number in the text at an address, and the address behind it, by ``strtod`` of C."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte_pointer = _BYTE.as_pointer()
        kind = ir.FunctionType(ir.DoubleType(), [byte_pointer, byte_pointer.as_pointer()])
        function = cgutils.get_or_insert_function(builder.module, kind, "strtod")
        end = cgutils.alloca_once(builder, byte_pointer)
        value = builder.call(function, [_pointer(builder, arguments[0], _BYTE), end])
        return context.make_tuple(builder, signature.return_type, [value, builder.ptrtoint(builder.load(end), _WORD)])

    return types.Tuple([types.float64, types.int64])(types.int64), codegen
