"""What launches of kernels on a GPU have in common: compiling, linking and parameters; imported only for a GPU.

Numba-CUDA compiles a kernel in the same way as on machines without a GPU, and nvJitLink links it. ``core_launches`` and
``driver_launches`` load and launch it. Numba's own launch inspects all arrays and takes ten times as long.
"""

from __future__ import annotations

import ctypes
import functools
import operator
import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from cuda.bindings import nvjitlink
from cuda.pathfinder import load_nvidia_dynamic_lib
from numba.cuda import types
from numba.cuda.cudadrv import nvvm

from gpu_pregel.errors import ArgumentTypeError, DeviceError
from gpu_pregel.host.devices.compiled_kernels import kernel_digest, lowered, lowering_versions, stored
from gpu_pregel.host.devices.lowering import compile_ir
from gpu_pregel.kernels.library.compile_clock import compiling
from gpu_pregel.kernels.library.jit_cuda import Kernel


class Launcher(ABC):
    """Launches kernels on a stream of one GPU, which the caller must have made current.

    Parameters
    ----------
    number : int
        Number of the GPU.
    cc : (int, int)
        Compute capability of the GPU.
    stream : int
        CUDA handle of the stream.
    pointer : callable
        Returns the device address of an array.
    """

    def __init__(self, number: int, cc: tuple[int, int], stream: int, pointer: Callable[[Any], int]) -> None:
        nvvm.NVVM()  # raises if libNVVM is not installed
        self._cc = cc
        self._stream = stream
        self._number = number
        self._parameters = KernelParameters(pointer)
        self._loaded: weakref.WeakKeyDictionary[Kernel, LoadedKernel] = weakref.WeakKeyDictionary()
        self._by_digest: weakref.WeakValueDictionary[str | None, LoadedKernel] = weakref.WeakValueDictionary()
        self._lock = threading.RLock()
        self._thread = threading.local()

    def launch(self, kernel: Kernel, size: int, arguments: tuple[Any, ...]) -> None:
        """Launch a kernel over ``size`` items without waiting for it; compile the kernel on its first launch."""
        if not hasattr(self._thread, "has_context"):
            # A thread has no context before its first CUDA call.
            self._enter()
            self._thread.has_context = True
        loaded = self._loaded.get(kernel)
        if loaded is None:
            kernel = kernel.resolved(arguments)
            loaded = self._loaded.get(kernel) or self._load(kernel)
        blocks = -(-size // loaded.items)
        if loaded.cooperative:
            blocks = min(blocks, self._multiprocessors())
        self._start(loaded, blocks, self._parameters.flatten(loaded.kinds, arguments))

    @abstractmethod
    def _enter(self) -> None:
        """Make the GPU current in this thread."""

    @abstractmethod
    def _multiprocessors(self) -> int:
        """Return the number of multiprocessors of the GPU."""

    @abstractmethod
    def _load_code(self, kernel: Kernel) -> Any:
        """Link a kernel and load it on the GPU."""

    @abstractmethod
    def _start(self, loaded: LoadedKernel, blocks: int, parameters: list[Any]) -> None:
        """Launch a kernel with its parameters on the stream."""

    def _load(self, kernel: Kernel) -> LoadedKernel:
        with self._lock:
            if kernel not in self._loaded:
                with compiling():
                    self._loaded[kernel] = self._load_equal(kernel)
            return self._loaded[kernel]

    def _load_equal(self, kernel: Kernel) -> LoadedKernel:
        """Load a kernel, unless an equal one is loaded."""
        digest = kernel_digest(kernel)
        found = self._by_digest.get(digest)
        if found is None or found.items != kernel.items:
            kinds = tuple(map(parameter_kind, kernel.signature))
            shape = (kernel.block, kernel.items, kernel.cooperative)
            found = LoadedKernel(self._load_code(kernel), kinds, *shape)
            if digest is not None:
                self._by_digest[digest] = found
        return found


@dataclass(frozen=True, eq=False)
class LoadedKernel:
    """A kernel loaded on a GPU."""

    code: Any
    kinds: tuple[Any, ...]
    block: int
    items: int
    cooperative: bool


def link(kernel: Kernel, cc: tuple[int, int]) -> tuple[bytes, str]:
    """Return a kernel's machine code for a compute capability, and the name of its function.

    The code is linked from LTO-IR. Linking from PTX would add functions for divisions and for shuffles of diverged
    warps, which need half as many registers again on chips before sm_90.
    """

    def make() -> tuple[bytes, str]:
        ir = lowered(kernel)
        return _link_lto(compile_ir(ir, cc, lto=True), cc), ir.entry

    code, entry = stored(kernel, f"sm_{cc[0]}{cc[1]}", (*lowering_versions(), *_linker_versions()), make)
    return code, entry


def _link_lto(code: bytes, cc: tuple[int, int]) -> bytes:
    """Link LTO-IR to machine code."""
    handle = _new_linker(cc)
    try:
        nvjitlink.add_data(handle, nvjitlink.InputType.LTOIR, code, len(code), "kernel")
        nvjitlink.complete(handle)
        linked = bytearray(nvjitlink.get_linked_cubin_size(handle))
        nvjitlink.get_linked_cubin(handle, linked)
    except nvjitlink.nvJitLinkError as error:
        log = bytearray(nvjitlink.get_error_log_size(handle))
        nvjitlink.get_error_log(handle, log)
        text = log.rstrip(bytes(1)).decode(errors="replace")
        raise DeviceError(f"nvJitLink cannot link a kernel ({error}): {text}; please report this") from error
    finally:
        nvjitlink.destroy(handle)
    return bytes(linked)


def _new_linker(cc: tuple[int, int]) -> int:
    options = [f"-arch=sm_{cc[0]}{cc[1]}", "-lto"]
    return int(nvjitlink.create(len(options), options))


def check_linker(cc: tuple[int, int]) -> None:
    """Raise ``DeviceError`` if nvJitLink is older than chips of this compute capability."""
    try:
        nvjitlink.destroy(_new_linker(cc))
    except nvjitlink.nvJitLinkError as error:
        version, capability = (".".join(map(str, one)) for one in (linker_version(), cc))
        raise DeviceError(
            f"nvJitLink of CUDA {version} does not support compute capability {capability} ({error}): install newer "
            f"packages: pip install --upgrade --upgrade-strategy eager gpu-pregel[cuda{linker_version()[0]}]"
        ) from error


def linker_version() -> tuple[int, int]:
    """Return the version of CUDA that nvJitLink belongs to."""
    major, minor = nvjitlink.version()
    return int(major), int(minor)


@functools.cache
def _linker_versions() -> tuple[object, ...]:
    """Return what identifies libNVVM and nvJitLink: their own version numbers do not tell all releases apart."""
    found = [load_nvidia_dynamic_lib(name).abs_path for name in ("nvvm", "nvJitLink")]
    return tuple((path, os.stat(path).st_size, os.stat(path).st_mtime_ns) for path in found)


def parameter_kind(kind: Any) -> Any:
    """Return how to pass a parameter of a Numba type: an array's dtype, a scalar's conversion, or a tuple of both."""
    if isinstance(kind, types.Array):
        return np.dtype(numba.np.numpy_support.as_dtype(kind.dtype))
    if isinstance(kind, types.BaseTuple):
        return tuple(map(parameter_kind, kind))
    if isinstance(kind, types.Boolean):
        return bool
    as_c = getattr(ctypes, f"c_{ {'float32': 'float', 'float64': 'double'}.get(str(kind), str(kind)) }")
    if isinstance(kind, types.Integer):
        return lambda number: as_c(operator.index(number))
    return as_c


class KernelParameters:
    """Converts arrays and numbers to kernel parameters; the parameters of an array are cached while it exists."""

    def __init__(self, pointer: Callable[[Any], int]) -> None:
        self._pointer = pointer
        self._known: dict[int, tuple[weakref.ref[Any], np.dtype[Any], tuple[int, ...]]] = {}

    def flatten(self, kinds: Iterable[Any], arguments: Iterable[Any]) -> list[Any]:
        """Return the parameters for arguments of these kinds, in order.

        Raises
        ------
        ArgumentTypeError
            An argument is not a contiguous, one-dimensional array of the expected dtype on the device.
        """
        flat: list[Any] = []
        known = self._known
        for kind, argument in zip(kinds, arguments, strict=True):
            if type(kind) is tuple:
                flat += self.flatten(kind, argument)
            elif isinstance(kind, np.dtype):
                _, dtype, parameters = known.get(id(argument)) or self._add(argument)
                if dtype is not kind and dtype != kind:
                    raise ArgumentTypeError(f"the kernel expects an array of {kind}, not of {dtype}")
                flat += parameters
            else:
                flat.append(kind(argument))
        return flat

    def _add(self, array: Any) -> tuple[weakref.ref[Any], np.dtype[Any], tuple[int, ...]]:
        is_contiguous = getattr(getattr(array, "flags", None), "c_contiguous", False)
        if not hasattr(type(array), "__cuda_array_interface__") or array.ndim != 1 or not is_contiguous:
            raise ArgumentTypeError(
                f"kernels take contiguous arrays of one dimension in the memory of their GPU, as of CuPy, not "
                f"{type(array).__name__}: use cupy.ascontiguousarray, or frontier.upload for arrays of the host"
            )
        key, known = id(array), self._known

        def forget(_: Any) -> None:
            known.pop(key, None)

        itemsize = array.dtype.itemsize
        # Numba-CUDA's layout of an array parameter, which starts with two unused pointers.
        parameters = (0, 0, array.size, itemsize, self._pointer(array), array.size, itemsize)
        known[key] = weakref.ref(array, forget), array.dtype, parameters
        return known[key]
