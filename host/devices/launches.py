"""Kernels on the current GPU: compiled as the tests compile them, and launched with little work; imported with a GPU.

Numba-CUDA compiles a kernel as on machines without a GPU; linking, loading and launching is cuda-core's, to which
Numba-CUDA leaves it too. Numba's own way to launch looks at every array anew, for ten times as long.
"""

from __future__ import annotations

import ctypes
import operator
import threading
import weakref
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numba
import numpy as np
from cuda.core import Device, LaunchConfig, Linker, LinkerOptions, ObjectCode, Stream, launch
from numba.cuda import types
from numba.cuda.cudadrv import nvvm

from gpu_pregel.host.devices.lowering import to_ltoir
from gpu_pregel.kernels.library.jit_cuda import Kernel


class Launcher:
    """Launches kernels on a stream of one GPU, which the caller has made current.

    Parameters
    ----------
    number : int
        Of the GPU.
    cc : (int, int)
        Its compute capability.
    stream : int
        CUDA's handle of the stream.
    pointer : callable
        The address of an array.
    """

    def __init__(self, number: int, cc: tuple[int, int], stream: int, pointer: Callable[[Any], int]) -> None:
        nvvm.NVVM()  # fails if it cannot be found
        self._cc = cc
        self._stream = Stream.from_handle(stream)
        self._number = number
        self._arguments = Arguments(pointer)
        self._ready: weakref.WeakKeyDictionary[Kernel, _Ready] = weakref.WeakKeyDictionary()
        self._lock = threading.RLock()
        self._thread = threading.local()

    def launch(self, kernel: Kernel, size: int, arguments: tuple[Any, ...]) -> None:
        """Launch a kernel over ``size`` items, compiling it if it is new here, and return before it has run."""
        if not hasattr(self._thread, "has_context"):
            # A thread that has called nothing of CUDA yet has no context.
            Device(self._number).set_current()
            self._thread.has_context = True
        ready = self._ready.get(kernel)
        if ready is None:
            kernel = kernel.resolved(arguments)
            ready = self._ready.get(kernel) or self._prepare(kernel)
        config = LaunchConfig(grid=-(-size // ready.items), block=ready.block)
        launch(self._stream, config, ready.code, *self._arguments.flatten(ready.kinds, arguments))

    def _prepare(self, kernel: Kernel) -> _Ready:
        with self._lock:
            if kernel not in self._ready:
                kinds = tuple(map(kind_of, kernel.signature))
                self._ready[kernel] = _Ready(load(kernel, self._cc), kinds, kernel.block, kernel.items)
            return self._ready[kernel]


class _Ready(NamedTuple):
    """A kernel loaded on a GPU."""

    code: Any
    kinds: tuple[Any, ...]
    block: int
    items: int


def link(kernel: Kernel, cc: tuple[int, int]) -> tuple[Any, str]:
    """A kernel's machine code for chips of this compute capability, and its name in there.

    It is linked from intermediate code. PTX would be linked with functions for divisions and for shuffles of warps
    that diverged, and on chips before sm_90 that takes half as many registers again.
    """
    code, entry = to_ltoir(kernel.function, kernel.signature, cc, block=kernel.block)
    options = LinkerOptions(arch=f"sm_{cc[0]}{cc[1]}", link_time_optimization=True)
    return Linker(ObjectCode.from_ltoir(code), options=options).link("cubin"), entry


def load(kernel: Kernel, cc: tuple[int, int]) -> Any:
    """A kernel as cuda-core launches it."""
    code, entry = link(kernel, cc)
    return code.get_kernel(entry)


def kind_of(kind: Any) -> Any:
    """How a parameter of this Numba type is handed over: an array's dtype, a scalar's conversion, a tuple of such."""
    if isinstance(kind, types.Array):
        return np.dtype(numba.np.numpy_support.as_dtype(kind.dtype))
    if isinstance(kind, types.BaseTuple):
        return tuple(map(kind_of, kind))
    if isinstance(kind, types.Boolean):
        return bool
    as_c = getattr(ctypes, f"c_{ {'float32': 'float', 'float64': 'double'}.get(str(kind), str(kind)) }")
    if isinstance(kind, types.Integer):
        return lambda number: as_c(operator.index(number))
    return as_c


class Arguments:
    """Makes parameters of kernels of arrays and numbers; each array is looked at once and forgotten when it goes."""

    def __init__(self, pointer: Callable[[Any], int]) -> None:
        self._pointer = pointer
        self._known: dict[int, tuple[weakref.ref[Any], np.dtype[Any], tuple[int, ...]]] = {}

    def flatten(self, kinds: Iterable[Any], arguments: Iterable[Any]) -> list[Any]:
        """The parameters, in order, for arguments of these kinds.

        Raises
        ------
        TypeError
            An argument is not an array on the device, of one dimension, contiguous and of the kernel's dtype.
        """
        flat: list[Any] = []
        known = self._known
        for kind, argument in zip(kinds, arguments, strict=True):
            if type(kind) is tuple:
                flat += self.flatten(kind, argument)
            elif isinstance(kind, np.dtype):
                _, dtype, parameters = known.get(id(argument)) or self._look_at(argument)
                if dtype is not kind and dtype != kind:
                    raise TypeError(f"a kernel takes an array of {kind} here, not of {dtype}")
                flat += parameters
            else:
                flat.append(kind(argument))
        return flat

    def _look_at(self, array: Any) -> tuple[weakref.ref[Any], np.dtype[Any], tuple[int, ...]]:
        if not hasattr(type(array), "__cuda_array_interface__") or array.ndim != 1 or not array.flags.c_contiguous:
            raise TypeError(f"a kernel takes contiguous arrays of one dimension on its device, not {type(array)}")
        key, known = id(array), self._known

        def forget(_: Any) -> None:
            known.pop(key, None)

        itemsize = array.dtype.itemsize
        # What Numba-CUDA compiles an array to: two pointers that are of no use here, then these.
        parameters = (0, 0, array.size, itemsize, self._pointer(array), array.size, itemsize)
        known[key] = weakref.ref(array, forget), array.dtype, parameters
        return known[key]
