"""Compiles kernels to PTX, which needs NVIDIA's libNVVM but no GPU."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from gpu_pregel.host.devices.lowering import compile_ir, lower


def to_ptx(
    function: Callable[..., Any],
    argument_types: Sequence[Any],
    cc: tuple[int, int],
    *,
    max_registers: int | None = None,
    block: int | tuple[int, int] | None = None,
) -> str:
    """Compile a kernel to PTX for compute capability ``cc`` with at most ``block`` threads per block."""
    text = compile_ir(lower(function, argument_types, block=block), cc, lto=False).decode().strip("\0\n ")
    if max_registers is not None:
        text = re.sub(r"(\.visible \.entry [^{]*?\))(\s*\{)", rf"\1\n.maxnreg {max_registers}\2", text)
    return text
