"""Lowering of a CUDA kernel's Python function to LLVM IR, LTO-IR and PTX without a GPU or a CUDA context.

Only this module of the engine imports Numba-CUDA, as only ``compiler_cuda`` of the kernels does; another compiler needs
another implementation of both.

Numba-CUDA queries the current GPU for its compute capability when one function calls another, and libNVVM for a
constant data layout. This module intercepts both queries.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numba
import numpy as np

from gpu_pregel.errors import MissingPackageError
from gpu_pregel.host.arguments import require
from gpu_pregel.kernels.library.parameters import ArrayParameter, Parameter

_DATA_LAYOUT = (
    "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-v16:16:16-"
    "v32:32:32-v64:64:64-v128:128:128-n16:32:64"
)
_CAPABILITY = (7, 0)
"""The compute capability for which kernels are lowered: the lowest, as the LLVM IR is the same for all."""
_ARRAY = ("unused", "unused", "size", "itemsize", "address", "shape", "strides")
"""The words of an array parameter."""
_lock = threading.RLock()
_thread = threading.local()


@dataclass(frozen=True)
class KernelIR:
    """A kernel as LLVM IR for NVVM.

    Attributes
    ----------
    modules : tuple of str
        Its own module, and those of the functions that it calls.
    entry : str
        The name of its function.
    layout : tuple
        How it takes each of its arguments.
    """

    modules: tuple[str, ...]
    entry: str
    layout: tuple[Parameter, ...]


def lower(function: Callable[..., Any], argument_types: Sequence[Any], *, block: Any = None) -> KernelIR:
    """Compile a kernel to LLVM IR.

    Parameters
    ----------
    function : callable
        The kernel as a plain Python function.
    argument_types : sequence
        Numba types of its parameters.
    block : int or (int, int), optional
        The maximum number of threads per block, and the number of blocks per multiprocessor for which registers are
        allocated.

    Raises
    ------
    MissingPackageError
        The package numba-cuda is not installed.
    """
    library = _code_library(function, argument_types, block)
    # A function that is called by none of the modules before its own would not be linked.
    modules: dict[int, str] = {}
    _add_modules(library, modules)
    return KernelIR(tuple(modules.values()), library._entry_name, layout_of(argument_types))


def layout_of(argument_types: Iterable[Any]) -> tuple[Parameter, ...]:
    """Return how a kernel takes arguments of these Numba types."""
    return tuple(map(_parameter, argument_types))


def _parameter(kind: Any) -> Parameter:
    from numba.cuda import types

    if isinstance(kind, types.Array):
        return ArrayParameter(_dtype(kind.dtype), kind.ndim, _ARRAY)
    if isinstance(kind, types.BaseTuple):
        return layout_of(kind)
    return None if isinstance(kind, types.NoneType) else _dtype(kind)


def _dtype(kind: Any) -> np.dtype[Any]:
    dtype: np.dtype[Any] = numba.np.numpy_support.as_dtype(kind)
    return dtype


def _add_modules(library: Any, modules: dict[int, str]) -> None:
    """Add the modules of a library by id, callers before the functions that they call, in the same order every time."""
    if id(library) not in modules:
        modules[id(library)] = str(library._module)
        for called in sorted(library._linking_libraries, key=lambda one: (one.name, str(one._module.name))):
            _add_modules(called, modules)


def compile_ir(ir: KernelIR, cc: tuple[int, int], *, lto: bool) -> bytes:
    """Compile LLVM IR to LTO-IR or PTX for a compute capability; this needs libNVVM."""
    from numba.cuda.cudadrv import nvrtc, nvvm

    options: dict[str, Any] = {"opt": 3, "arch": nvrtc.get_arch_option(*cc)}
    if lto:
        options["gen-lto"] = None
    code: bytes = nvvm.compile_ir(list(ir.modules), **options)
    return code


def load_nvvm() -> None:
    """Load libNVVM; each reason why it cannot be loaded has an exception of its own."""
    from numba.cuda.cudadrv import nvvm

    nvvm.NVVM()


def compiler_version() -> str:
    """Return the version of Numba-CUDA."""
    _require_packages()
    return version("numba-cuda")


def nvvm_versions() -> tuple[object, ...]:
    """Return the versions and the data layout of libNVVM, which are part of lowered kernels."""
    from numba.cuda.cudadrv import nvvm

    with _fixed_data_layout():
        library = nvvm.NVVM()
        return (*library.get_ir_version(), library.data_layout)


def _code_library(function: Callable[..., Any], argument_types: Sequence[Any], block: Any) -> Any:
    """Return Numba-CUDA's code library of a kernel."""
    _require_packages()
    from numba.cuda import compiler, types

    if not hasattr(compiler, "_compile_pyfunc_with_fixup"):
        raise MissingPackageError(
            "compiling CUDA kernels needs another version of numba-cuda: pip install gpu-pregel[emulated]"
        )
    with compiling_functions():
        library, _ = compiler._compile_pyfunc_with_fixup(
            function,
            types.void(*argument_types),
            device=False,
            abi="numba",
            cc=_CAPABILITY,
            lineinfo=True,
            fastmath=False,
            launch_bounds=block,
        )
    return library


def _require_packages() -> None:
    require("numba_cuda", "compiling CUDA kernels", "gpu-pregel[emulated]")


@contextlib.contextmanager
def compiling_functions() -> Iterator[None]:
    """Let Numba-CUDA compile device functions without a GPU, one thread at a time."""
    _require_packages()
    with _lock, _fixed_capability(_CAPABILITY), _fixed_data_layout(), _line_info_only():
        yield


class _CapabilityOnly:
    """Replaces a GPU where only its compute capability is needed."""

    def __init__(self, cc: tuple[int, int]) -> None:
        self.compute_capability = cc


@contextlib.contextmanager
def _fixed_capability(cc: tuple[int, int]) -> Iterator[None]:
    """Replace the current GPU in this thread; other threads still get the real one."""
    from numba.cuda import dispatcher

    real = dispatcher.get_current_device

    def current_device() -> Any:
        device = getattr(_thread, "device", None)
        return real() if device is None else device

    _thread.device = _CapabilityOnly(cc)
    dispatcher.get_current_device = current_device
    try:
        yield
    finally:
        dispatcher.get_current_device = real
        _thread.device = None


class _NVVMConstants:
    """Replaces libNVVM where it cannot be loaded; lowering needs only these two constants."""

    data_layout = _DATA_LAYOUT

    def get_ir_version(self) -> tuple[int, int, int, int]:
        return (2, 0, 3, 2)


@contextlib.contextmanager
def _fixed_data_layout() -> Iterator[None]:
    """Replace libNVVM if it cannot be loaded."""
    from numba.cuda.cudadrv import nvvm

    try:
        nvvm.NVVM()
    except Exception:  # libNVVM or its binding is missing or too old; each case has its own exception
        real = nvvm.NVVM
        nvvm.NVVM = _NVVMConstants
        try:
            yield
        finally:
            nvvm.NVVM = real
    else:
        yield


@functools.cache
def _line_builder() -> Any:
    """Return a debug info builder that emits only lines, which makes lowering a quarter faster."""
    from numba.cuda.debuginfo import CUDADIBuilder

    class LineBuilder(CUDADIBuilder):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self._locations: dict[tuple[int, int], Any] = {}

        def mark_variable(self, *_: Any, **__: Any) -> None:
            """Emit nothing."""

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
def _line_info_only() -> Iterator[None]:
    """Emit only line numbers, including those of functions without a source file, such as lambdas at a prompt."""
    from numba.cuda import lowering, target

    before = target.CUDADIBuilder, lowering.get_func_def_lineno
    target.CUDADIBuilder, lowering.get_func_def_lineno = _line_builder(), _first_line
    try:
        yield
    finally:
        target.CUDADIBuilder, lowering.get_func_def_lineno = before
