"""Operations of the 32 lanes of a warp: shuffles of numbers and tuples of numbers, sums, scans and a search.

All lanes of the warp must call them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir

from gpu_pregel.kernels.library.compiler_cuda import cgutils, cuda, intrinsic, types
from gpu_pregel.kernels.library.jit_cuda import WARP, device

ALL = np.uint32(0xFFFFFFFF)
"""The mask of all lanes."""
_UP, _INDEX = 1, 0
_CLAMP = {_UP: 0x00, _INDEX: 0x1F}
_I32, _I64 = ir.IntType(32), ir.IntType(64)


def _shuffle_word(builder: Any, mode: int, word: Any, lane: Any) -> Any:
    """Shuffle 32 bits."""
    result = ir.LiteralStructType((_I32, ir.IntType(1)))
    function_type = ir.FunctionType(result, [_I32] * 5)
    function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.nvvm.shfl.sync.i32")
    call = builder.call(function, [_I32(-1), _I32(mode), word, lane, _I32(_CLAMP[mode])])
    return builder.extract_value(call, 0)


def _shuffle(context: Any, builder: Any, mode: int, kind: Any, value: Any, lane: Any) -> Any:
    """Shuffle a number, or every number of a tuple."""
    if isinstance(kind, types.BaseTuple):
        parts = [
            _shuffle(context, builder, mode, part, builder.extract_value(value, k), lane) for k, part in enumerate(kind)
        ]
        return context.make_tuple(builder, kind, parts)
    llvm_type = context.get_value_type(kind)
    if isinstance(kind, types.Float):
        value = builder.bitcast(value, ir.IntType(kind.bitwidth))
    width = value.type.width
    if width <= 32:
        word = builder.zext(value, _I32) if width < 32 else value
        moved = _shuffle_word(builder, mode, word, lane)
        moved = builder.trunc(moved, value.type) if width < 32 else moved
    else:
        low = _shuffle_word(builder, mode, builder.trunc(value, _I32), lane)
        high = _shuffle_word(builder, mode, builder.trunc(builder.lshr(value, _I64(32)), _I32), lane)
        moved = builder.or_(builder.shl(builder.zext(high, _I64), _I64(32)), builder.zext(low, _I64))
    return builder.bitcast(moved, llvm_type)


def _make_shuffle(mode: int, value: Any, lane: Any) -> Any:
    kind = types.unliteral(value)

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = context.cast(builder, arguments[1], signature.args[1], types.int32)
        return _shuffle(context, builder, mode, kind, arguments[0], number)

    return kind(kind, lane), codegen


@intrinsic
def shuffle(typingctx: Any, value: Any, lane: Any) -> Any:
    """Return the ``value`` of another lane."""
    return _make_shuffle(_INDEX, value, lane)


@intrinsic
def shuffle_up(typingctx: Any, value: Any, distance: Any) -> Any:
    """Return the ``value`` of the lane ``distance`` below, or the lane's own if there is none."""
    return _make_shuffle(_UP, value, distance)


@device
def lane_number() -> Any:
    """Return the number of this thread within its warp."""
    return np.uint32(cuda.threadIdx.x) & np.uint32(WARP - 1)


@device
def sum_up_to(count: Any) -> Any:
    """Return the sum of ``count``, a uint32, over this lane and the lanes below it."""
    lane = lane_number()
    distance = np.uint32(1)
    while distance < np.uint32(WARP):
        below = shuffle_up(count, distance)
        if lane >= distance:
            count = np.uint32(count + below)
        distance = np.uint32(distance << np.uint32(1))
    return count


@device
def owner_of(position: Any, upto: Any) -> Any:
    """Return the first lane whose ``upto``, which must not decrease, is greater than ``position``; 31 if none is."""
    owner = np.uint32(0)
    step = np.uint32(WARP // 2)
    while step > np.uint32(0):
        if shuffle(upto, owner + step - np.uint32(1)) <= position:
            owner = np.uint32(owner + step)
        step = np.uint32(step >> np.uint32(1))
    return owner


@device
def sum_of_warp(value: Any) -> Any:
    """Return, to lane 0 only, the sum of ``value`` over all lanes."""
    lane = lane_number()
    distance = np.uint32(WARP // 2)
    while distance > np.uint32(0):
        value += shuffle(value, lane + distance)
        distance = np.uint32(distance >> np.uint32(1))
    return value
