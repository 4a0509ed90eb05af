"""A compiled kernel as the emulated machine runs it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gpu_pregel.kernels.library.parameters import Parameter

BLOCK_FENCE = "block fence"
"""The kind of the sites of fences that order accesses within a block only."""


@dataclass(frozen=True)
class Site:
    """A source location at which a kernel calls the machine.

    Attributes
    ----------
    kind : {"load", "store", "atomic", "sync", "fence", "block fence", "check"}
    file : str
    line : int
    """

    kind: str
    file: str
    line: int


@dataclass(frozen=True, eq=False)
class CompiledKernel:
    """A kernel as native code; two kernels of the same name are two keys of a dict.

    Attributes
    ----------
    name : str
        Name of the Python function.
    entry : int
        Address of ``void emu_entry(int64 state)``.
    sites : list of Site
        Indexed by the site numbers that the code passes to the machine.
    shared_bytes : int
        Shared memory per block.
    dynamic_shared : int
        How much of it is not in arrays of fixed size.
    shared_granule : int
        Size of the smallest element type in shared memory: 1, 2, 4 or 8.
    local_bytes : int
        Size of a thread's local arrays, which are on its stack.
    uses_grid_barrier : bool
        Whether the kernel needs a cooperative launch.
    parameters : tuple of str
        Names of the parameters.
    layout : tuple
        How the code takes each argument.
    racy : frozenset of str
        Array parameters that are exempt from race detection.
    relaxed : frozenset of str
        Array parameters of which plain reads count as atomic.
    """

    name: str
    entry: int
    sites: list[Site]
    shared_bytes: int = 0
    dynamic_shared: int = 0
    shared_granule: int = 1
    local_bytes: int = 0
    uses_grid_barrier: bool = False
    parameters: tuple[str, ...] = ()
    layout: tuple[Parameter, ...] = ()
    racy: frozenset[str] = frozenset()
    relaxed: frozenset[str] = frozenset()
    _engine: Any = field(repr=False, default=None)
