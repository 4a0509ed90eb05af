"""Bits on the CPU: bitmaps in uint64 words, with one bit per vertex and zeros beyond n, and the bits of floats."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from gpu_pregel.kernels.library.jit_cpu import inline

WORD_BITS = 64


@intrinsic
def trailing_zeros(typingctx: Any, word: Any) -> Any:
    """Return the position of the lowest set bit of a nonzero word."""
    if not isinstance(word, types.Integer) or word.bitwidth != WORD_BITS:
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        integer = ir.IntType(WORD_BITS)
        function_type = ir.FunctionType(integer, [integer, ir.IntType(1)])
        function = cgutils.get_or_insert_function(builder.module, function_type, f"llvm.cttz.i{WORD_BITS}")
        return builder.call(function, [arguments[0], ir.IntType(1)(1)])

    return types.int64(word), codegen


@intrinsic
def popcount(typingctx: Any, word: Any) -> Any:
    """Return the number of set bits of a word."""
    if not isinstance(word, types.Integer) or word.bitwidth != WORD_BITS:
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(word), codegen


@inline
def get_bit(bitmap: Any, position: Any) -> Any:
    """Return whether a bit is set."""
    return (bitmap[position >> 6] >> np.uint64(position & 63)) & np.uint64(1) != np.uint64(0)


@inline
def bit(position: Any) -> Any:
    """Return a word in which only the bit of this position is set."""
    return np.uint64(1) << np.uint64(position & 63)


def _reinterpret(result: Any, value: Any) -> Any:
    """Return the signature and the code generator of a cast that keeps the bits."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(result))

    return result(value), codegen


@intrinsic
def bits_of_float(typingctx: Any, value: Any) -> Any:
    """Return the bits of a float as an unsigned integer of the same size."""
    if not isinstance(value, types.Float):
        return None
    return _reinterpret({32: types.uint32, 64: types.uint64}[value.bitwidth], value)


@intrinsic
def float_of_bits(typingctx: Any, value: Any) -> Any:
    """Return the float whose bits are an unsigned integer of the same size."""
    if value not in (types.uint32, types.uint64):
        return None
    return _reinterpret({32: types.float32, 64: types.float64}[value.bitwidth], value)
