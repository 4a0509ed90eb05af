"""Declarations of CUDA kernels: the types of their arguments, the arrays they may race on, and their block size.

Nothing is compiled here; each device of ``gpu_pregel.host.devices`` compiles a kernel for its own target.
"""

from __future__ import annotations

import functools
import linecache
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from gpu_pregel.kernels.library.compiler_cuda import cuda, from_dtype

BLOCK = 256
"""Threads per block, unless a kernel declares another number."""
WARP = 32
WARPS = BLOCK // WARP
"""Warps per block of that size."""
OFFSETS = object()
"""In a signature, an array of edge positions: uint32 or int64, as in the argument passed."""


class KernelShape(NamedTuple):
    """What a launch needs to know about a kernel beside its code; :class:`Kernel` describes the attributes."""

    block: int
    items: int
    cooperative: bool
    dynamic_shared: int
    cluster: int

    def blocks(self, size: int, multiprocessors: int) -> int:
        """Return the number of blocks of a launch over ``size`` items."""
        blocks = -(-size // self.items)
        if self.cooperative:
            blocks = min(blocks, multiprocessors - multiprocessors % self.cluster)
        return blocks + -blocks % self.cluster


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel that has not been compiled.

    Attributes
    ----------
    function : callable
        The Python function.
    signature : tuple
        The Numba types of its arguments.
    racy : frozenset of str
        Array arguments on which threads race intentionally. The emulator reports races on all others.
    relaxed : frozenset of str
        Array arguments that some threads read plainly while others write them by atomic operations, which the emulator
        does not report; it reports plain writes that race.
    block : int
        Threads per block.
    items : int
        Work items per block: a launch of ``size`` items has ``ceil(size / items)`` blocks.
    cooperative : bool
        Whether blocks wait for each other: a launch has at most one block per multiprocessor, so that all of them are
        resident.
    dynamic_shared : int
        Bytes of shared memory per block beside the arrays of fixed size; ``cuda.shared.array(0, dtype)`` is an array of
        all of them. More than 48 KiB of shared memory are available only in this way.
    cluster : int
        Blocks that are resident together on neighbouring multiprocessors; a launch has whole clusters, so that its last
        blocks may have no items. More than one need compute capability 9.0.
    """

    function: Callable[..., Any]
    signature: tuple[Any, ...]
    racy: frozenset[str]
    relaxed: frozenset[str]
    block: int
    items: int
    cooperative: bool = False
    dynamic_shared: int = 0
    cluster: int = 1

    @property
    def shape(self) -> KernelShape:
        """Threads and items per block, and how blocks are launched."""
        return KernelShape(self.block, self.items, self.cooperative, self.dynamic_shared, self.cluster)

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.function.__name__

    @property
    def launch_bounds(self) -> int | tuple[int, int]:
        """Threads per block and, if cooperative, blocks per multiprocessor: registers are then saved for no others."""
        return (self.block, 1) if self.cooperative else self.block

    def resolved(self, arguments: tuple[Any, ...]) -> Kernel:
        """Return the kernel with the types of its ``OFFSETS`` taken from the arguments, which have a ``dtype``."""
        return self if OFFSETS not in self.signature else self._with_offsets(self._offsets_of(arguments))

    def _offsets_of(self, arguments: tuple[Any, ...]) -> Any:
        return arguments[self.signature.index(OFFSETS)].dtype

    @functools.cache  # noqa: B019 (a kernel lives as long as its module or program)
    def _with_offsets(self, dtype: Any) -> Kernel:
        array = from_dtype(dtype)[::1]
        return replace(self, signature=tuple(array if kind is OFFSETS else kind for kind in self.signature))


def kernel(
    *signature: Any,
    racy: tuple[str, ...] = (),
    relaxed: tuple[str, ...] = (),
    block: int = BLOCK,
    items: int | None = None,
    cooperative: bool = False,
    dynamic_shared: int = 0,
    cluster: int = 1,
) -> Callable[[Callable[..., Any]], Kernel]:
    """Declare a kernel by the types of its arguments; each thread has one work item unless ``items`` is given."""

    def declare(function: Callable[..., Any]) -> Kernel:
        shape = (block, items or block, cooperative, dynamic_shared, cluster)
        return Kernel(function, signature, frozenset(racy), frozenset(relaxed), *shape)

    return declare


def device(function: Callable[..., Any]) -> Any:
    """Declare a function that only kernels call; it has line information if its source is available."""
    code = function.__code__
    has_source = bool(linecache.getlines(code.co_filename, function.__globals__))
    return cuda.jit(device=True, lineinfo=has_source)(function)
