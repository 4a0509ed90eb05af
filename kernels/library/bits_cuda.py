"""Bits on CUDA: bitmaps in uint32 words, with one bit per vertex and zeros beyond n, and the bits of floats."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.kernels.library.compiler_cuda import cuda, intrinsic, types
from gpu_pregel.kernels.library.jit_cuda import device

WORD_BITS = 32


@device
def get_bit(bitmap: Any, position: Any) -> Any:
    """Return whether the bit of a uint32 position is set."""
    return (bitmap[position >> np.uint32(5)] >> (position & np.uint32(31))) & np.uint32(1) != np.uint32(0)


@device
def bit(position: Any) -> Any:
    """Return a word in which only the bit of this uint32 position is set."""
    return np.uint32(np.uint32(1) << (position & np.uint32(31)))


@device
def rank_in(bits: Any, position: Any) -> Any:
    """Return the number of bits of a word below that of a position."""
    return np.uint32(cuda.popc(np.uint32(bits & np.uint32(bit(position) - np.uint32(1)))))


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
