"""From a CUDA kernel's Python function to LLVM IR, PTX or what NVIDIA's linker takes, without a GPU or a CUDA context.

Numba-CUDA asks the current GPU for its compute capability when one function calls another, and libNVVM for a data
layout that is a constant: where it would ask, it is answered here.
"""

from __future__ import annotations

import contextlib
import functools
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gpu_pregel.errors import MissingPackageError

_DATA_LAYOUT = (
    "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-v16:16:16-"
    "v32:32:32-v64:64:64-v128:128:128-n16:32:64"
)
_lock = threading.RLock()
_asking = threading.local()


@dataclass(frozen=True)
class Lowered:
    """A kernel as LLVM IR for NVIDIA's NVVM, its own module first, those of the functions it calls after it."""

    modules: tuple[str, ...]
    entry: str
    argument_types: tuple[Any, ...]


def lower(function: Callable[..., Any], argument_types: Sequence[Any], *, cc: tuple[int, int] = (8, 0)) -> Lowered:
    """Compile a kernel to LLVM IR.

    Parameters
    ----------
    function : callable
        The kernel, plain Python.
    argument_types : sequence
        Numba's types of its arguments.
    cc : (int, int)
        Compute capability to compile for.

    Raises
    ------
    MissingPackageError
        The package numba-cuda is not installed.
    """
    library = _lower(function, argument_types, cc, fastmath=False)
    own, *others = library.modules
    # A module that two functions call is listed once for each, and in the order of a set.
    called = sorted(str(module) for module in {id(module): module for module in others}.values())
    return Lowered((str(own), *called), library._entry_name, tuple(argument_types))


def to_ptx(
    function: Callable[..., Any],
    argument_types: Sequence[Any],
    cc: tuple[int, int],
    *,
    fastmath: bool = False,
    max_registers: int | None = None,
    block: int | None = None,
) -> str:
    """Compile a kernel to PTX for compute capability ``cc``; needs NVIDIA's libNVVM, but no GPU.

    ``block`` is the most threads that a block of it will have.
    """
    library = _lower(function, argument_types, cc, fastmath=fastmath, block=block)
    text: str = library.get_asm_str(cc=cc)
    if max_registers is not None:
        text = re.sub(r"(\.visible \.entry [^{]*?\))(\s*\{)", rf"\1\n.maxnreg {max_registers}\2", text)
    return text


def to_ltoir(
    function: Callable[..., Any], argument_types: Sequence[Any], cc: tuple[int, int], *, block: int
) -> tuple[bytes, str]:
    """Compile a kernel to what NVIDIA's linker makes the same machine code of as of PTX; also return its name there."""
    library = _lower(function, argument_types, cc, fastmath=False, block=block)
    return library.get_ltoir(cc=cc), library._entry_name


def _lower(
    function: Callable[..., Any],
    argument_types: Sequence[Any],
    cc: tuple[int, int],
    *,
    fastmath: bool,
    block: int | None = None,
) -> Any:
    try:
        from numba.cuda import compiler, types
    except ImportError as error:
        raise MissingPackageError(
            "CUDA kernels cannot be compiled: numba-cuda is not installed; pip install gpu-pregel[emulated]"
        ) from error
    if not hasattr(compiler, "_compile_pyfunc_with_fixup"):
        raise MissingPackageError(
            "CUDA kernels cannot be compiled by this version of numba-cuda: pip install gpu-pregel[emulated]"
        )
    with _lock, _capability(cc), _data_layout(), _lines_only():
        library, _ = compiler._compile_pyfunc_with_fixup(
            function,
            types.void(*argument_types),
            device=False,
            abi="numba",
            cc=cc,
            lineinfo=True,
            fastmath=fastmath,
            launch_bounds=block,
        )
    return library


class _NoDevice:
    """Stands in for a GPU where only its compute capability is asked for."""

    def __init__(self, cc: tuple[int, int]) -> None:
        self.compute_capability = cc


@contextlib.contextmanager
def _capability(cc: tuple[int, int]) -> Iterator[None]:
    """Answer this thread's questions after the current GPU; other threads still hear of the real one."""
    from numba.cuda import dispatcher

    real = dispatcher.get_current_device

    def current_device() -> Any:
        answer = getattr(_asking, "device", None)
        return real() if answer is None else answer

    _asking.device = _NoDevice(cc)
    dispatcher.get_current_device = current_device
    try:
        yield
    finally:
        dispatcher.get_current_device = real
        _asking.device = None


class _NoNVVM:
    """Stands in for libNVVM where it cannot be loaded: two constants of it are all that lowering needs."""

    data_layout = _DATA_LAYOUT

    def get_ir_version(self) -> tuple[int, int, int, int]:
        return (2, 0, 3, 2)


@contextlib.contextmanager
def _data_layout() -> Iterator[None]:
    from numba.cuda.cudadrv import nvvm

    try:
        nvvm.NVVM()
    except Exception:  # libNVVM is missing, too old, or its binding is: each its own exception
        real = nvvm.NVVM
        nvvm.NVVM = _NoNVVM
        try:
            yield
        finally:
            nvvm.NVVM = real
    else:
        yield


@functools.cache
def _line_builder() -> Any:
    """A class that writes lines into IR, and of types and variables nothing: a quarter less time to lower."""
    from numba.cuda.debuginfo import CUDADIBuilder

    class LineBuilder(CUDADIBuilder):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self._locations: dict[tuple[int, int], Any] = {}

        def mark_variable(self, *_: Any, **__: Any) -> None:
            """Nothing: a line is all that is asked for."""

        update_variable = mark_variable

        def _di_subroutine_type(self, *_: Any) -> Any:
            return self.module.add_debug_info("DISubroutineType", {"types": self.module.add_metadata([])})

        def _di_location(self, line: int) -> Any:
            key = len(self.subprograms), line
            if key not in self._locations:
                self._locations[key] = super()._di_location(line)
            return self._locations[key]

    return LineBuilder


def _first_line(function: Callable[..., Any]) -> int:
    return function.__code__.co_firstlineno


@contextlib.contextmanager
def _lines_only() -> Iterator[None]:
    """Give all functions lines, lambdas and those typed at a prompt too, where Numba would look for the source."""
    from numba.cuda import lowering, target

    before = target.CUDADIBuilder, lowering.get_func_def_lineno
    target.CUDADIBuilder, lowering.get_func_def_lineno = _line_builder(), _first_line
    try:
        yield
    finally:
        target.CUDADIBuilder, lowering.get_func_def_lineno = before
