"""Loads of edges in CUDA kernels."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from gpu_pregel.kernels.library.compiler_cuda import cgutils, intrinsic, types

_WORD = ir.IntType(32)
_GLOBAL = 1


@intrinsic
def load_once(typingctx: Any, array: Any, index: Any) -> Any:
    """Return ``array[index]``, a uint32 in global memory that the kernel does not write, and soon needs no more.

    The L1 cache replaces its sector first, and keeps values and labels, which are read at random. It is still cached:
    the 32 edges that a warp reads rarely begin at a sector, so that the next 32 share one with them.
    """
    if not isinstance(array, types.Array) or array.ndim != 1 or array.dtype != types.uint32:
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array_type, index_type = signature.args
        view = context.make_array(array_type)(context, builder, arguments[0])
        place = context.cast(builder, arguments[1], index_type, types.intp)
        pointer = cgutils.get_item_pointer(context, builder, array_type, view, [place], wraparound=False)
        pointer = builder.addrspacecast(pointer, ir.PointerType(_WORD, _GLOBAL))
        kind = ir.FunctionType(_WORD, [pointer.type])
        return builder.asm(kind, "ld.global.nc.L1::evict_first.u32 $0, [$1];", "=r,l", [pointer], False)

    return types.uint32(array, index), codegen
