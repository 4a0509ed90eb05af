"""How CUDA kernels are declared: with the types of their arguments, the arrays they race on, and their block.

Nothing is compiled here: a device compiles a kernel for what it runs on (``gpu_pregel.host.devices``).
"""

from __future__ import annotations

import functools
import linecache
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numba
from numba import cuda

BLOCK = 256
"""Threads of a block, unless a kernel says otherwise."""
WARP = 32
WARPS = BLOCK // WARP
"""Warps of such a block."""
OFFSETS = object()
"""In a signature: positions of edges, uint32 where they all fit and int64 elsewhere, as the array that is given."""


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel, not compiled yet.

    Attributes
    ----------
    function : callable
        Plain Python.
    signature : tuple
        Numba's types of its arguments.
    racy : frozenset of str
        Array arguments that threads read and write in no order on purpose; others that do so are at fault.
    block : int
        Threads of a block.
    items : int
        Work items of a block: a launch of ``size`` items has ``ceil(size / items)`` blocks.
    """

    function: Callable[..., Any]
    signature: tuple[Any, ...]
    racy: frozenset[str]
    block: int
    items: int

    @property
    def name(self) -> str:
        """Its name."""
        return self.function.__name__

    def resolved(self, arguments: tuple[Any, ...]) -> Kernel:
        """Take the types of its ``OFFSETS`` from the arguments, which have a ``dtype``."""
        return self if OFFSETS not in self.signature else self._with_offsets(self._offsets_of(arguments))

    def _offsets_of(self, arguments: tuple[Any, ...]) -> Any:
        return arguments[self.signature.index(OFFSETS)].dtype

    @functools.cache  # noqa: B019 (kernels live as long as their modules, or the program that they are made of)
    def _with_offsets(self, dtype: Any) -> Kernel:
        array = numba.from_dtype(dtype)[::1]
        return replace(self, signature=tuple(array if kind is OFFSETS else kind for kind in self.signature))


def kernel(
    *signature: Any, racy: tuple[str, ...] = (), block: int = BLOCK, items: int | None = None
) -> Callable[[Callable[..., Any]], Kernel]:
    """Declare a kernel by the types of its arguments; a thread per item unless ``items`` says how many a block has."""

    def declare(function: Callable[..., Any]) -> Kernel:
        return Kernel(function, signature, frozenset(racy), block, items or block)

    return declare


def device(function: Callable[..., Any]) -> Any:
    """Declare a function that kernels call, compiled as part of them; with its lines where its source is at hand."""
    code = function.__code__
    has_source = bool(linecache.getlines(code.co_filename, function.__globals__))
    return cuda.jit(device=True, lineinfo=has_source)(function)
