"""Compiles kernels for the current GPU and launches them; imported only when a GPU is used.

Numba-CUDA compiles a kernel in the same way as on machines without a GPU; cuda-core links, loads and launches it.
Numba's own launch inspects all arrays at every launch and takes ten times as long.
"""

from __future__ import annotations

import ctypes
import functools
import operator
import os
import threading
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from cuda.bindings import nvjitlink
from cuda.core import Device, LaunchConfig, Linker, LinkerOptions, ObjectCode, Stream, launch
from cuda.pathfinder import load_nvidia_dynamic_lib
from numba.cuda import types
from numba.cuda.cudadrv import nvvm

from gpu_pregel.host.devices.compiled_kernels import kernel_digest, lowered, lowering_versions, stored
from gpu_pregel.host.devices.lowering import compile_ir
from gpu_pregel.kernels.library.compile_clock import compiling
from gpu_pregel.kernels.library.jit_cuda import Kernel

_COOPERATIVE = "is_cooperative" if hasattr(LaunchConfig, "is_cooperative") else "cooperative_launch"
"""The option of a launch whose blocks are all resident; its name depends on the version of cuda-core."""


class Launcher:
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
        self._stream = Stream.from_handle(stream)
        self._number = number
        self._parameters = KernelParameters(pointer)
        self._loaded: weakref.WeakKeyDictionary[Kernel, _LoadedKernel] = weakref.WeakKeyDictionary()
        self._by_digest: weakref.WeakValueDictionary[str | None, _LoadedKernel] = weakref.WeakValueDictionary()
        self._lock = threading.RLock()
        self._thread = threading.local()

    def launch(self, kernel: Kernel, size: int, arguments: tuple[Any, ...]) -> None:
        """Launch a kernel over ``size`` items without waiting for it; compile the kernel on its first launch."""
        if not hasattr(self._thread, "has_context"):
            # A thread has no context before its first CUDA call.
            Device(self._number).set_current()
            self._thread.has_context = True
        loaded = self._loaded.get(kernel)
        if loaded is None:
            kernel = kernel.resolved(arguments)
            loaded = self._loaded.get(kernel) or self._load(kernel)
        launch(
            self._stream, self._config(loaded, size), loaded.code, *self._parameters.flatten(loaded.kinds, arguments)
        )

    def _config(self, loaded: _LoadedKernel, size: int) -> LaunchConfig:
        """Return the shape of a launch over ``size`` items."""
        blocks = -(-size // loaded.items)
        if not loaded.cooperative:
            return LaunchConfig(grid=blocks, block=loaded.block)
        blocks = min(blocks, int(Device(self._number).properties.multiprocessor_count))
        return LaunchConfig(grid=blocks, block=loaded.block, **{_COOPERATIVE: True})

    def _load(self, kernel: Kernel) -> _LoadedKernel:
        with self._lock:
            if kernel not in self._loaded:
                with compiling():
                    self._loaded[kernel] = self._load_equal(kernel)
            return self._loaded[kernel]

    def _load_equal(self, kernel: Kernel) -> _LoadedKernel:
        """Load a kernel, unless an equal one is loaded."""
        digest = kernel_digest(kernel)
        found = self._by_digest.get(digest)
        if found is None or found.items != kernel.items:
            kinds = tuple(map(parameter_kind, kernel.signature))
            shape = (kernel.block, kernel.items, kernel.cooperative)
            found = _LoadedKernel(load(kernel, self._cc), kinds, *shape)
            if digest is not None:
                self._by_digest[digest] = found
        return found


@dataclass(frozen=True, eq=False)
class _LoadedKernel:
    """A kernel loaded on a GPU."""

    code: Any
    kinds: tuple[Any, ...]
    block: int
    items: int
    cooperative: bool


def link(kernel: Kernel, cc: tuple[int, int]) -> tuple[Any, str]:
    """Return a kernel's machine code for a compute capability, and the name of its function.

    The code is linked from LTO-IR. Linking from PTX would add functions for divisions and for shuffles of diverged
    warps, which need half as many registers again on chips before sm_90.
    """

    def make() -> tuple[bytes, str]:
        ir = lowered(kernel)
        code = ObjectCode.from_ltoir(compile_ir(ir, cc, lto=True))
        options = LinkerOptions(arch=f"sm_{cc[0]}{cc[1]}", link_time_optimization=True)
        return bytes(Linker(code, options=options).link("cubin").code), ir.entry

    code, entry = stored(kernel, f"sm_{cc[0]}{cc[1]}", (*lowering_versions(), *_linker_versions()), make)
    return ObjectCode.from_cubin(code), entry


def linker_version() -> tuple[int, int]:
    """Return the version of CUDA that nvJitLink belongs to."""
    major, minor = nvjitlink.version()
    return int(major), int(minor)


@functools.cache
def _linker_versions() -> tuple[object, ...]:
    """Return what identifies libNVVM and nvJitLink: their own version numbers do not tell all releases apart."""
    found = [load_nvidia_dynamic_lib(name).abs_path for name in ("nvvm", "nvJitLink")]
    return tuple((path, os.stat(path).st_size, os.stat(path).st_mtime_ns) for path in found)


def load(kernel: Kernel, cc: tuple[int, int]) -> Any:
    """Return a kernel that cuda-core can launch."""
    code, entry = link(kernel, cc)
    return code.get_kernel(entry)


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
        TypeError
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
                    raise TypeError(f"the kernel expects an array of {kind}, not of {dtype}")
                flat += parameters
            else:
                flat.append(kind(argument))
        return flat

    def _add(self, array: Any) -> tuple[weakref.ref[Any], np.dtype[Any], tuple[int, ...]]:
        if not hasattr(type(array), "__cuda_array_interface__") or array.ndim != 1 or not array.flags.c_contiguous:
            raise TypeError(f"a kernel expects contiguous one-dimensional arrays on its device, not {type(array)}")
        key, known = id(array), self._known

        def forget(_: Any) -> None:
            known.pop(key, None)

        itemsize = array.dtype.itemsize
        # Numba-CUDA's layout of an array parameter, which starts with two unused pointers.
        parameters = (0, 0, array.size, itemsize, self._pointer(array), array.size, itemsize)
        known[key] = weakref.ref(array, forget), array.dtype, parameters
        return known[key]
