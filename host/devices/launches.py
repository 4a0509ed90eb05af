"""Launches kernels on a GPU by the driver's functions: compiling, linking, parameters; imported only for a GPU.

Numba-CUDA compiles a kernel in the same way as on machines without a GPU, and nvJitLink links it. Numba's own launch
inspects all arrays, and takes ten times as long; that of cuda-core converts each parameter.
"""

from __future__ import annotations

import ctypes
import functools
import operator
import os
import threading
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import numba
import numpy as np
from cuda.bindings import driver, nvjitlink
from cuda.pathfinder import load_nvidia_dynamic_lib
from numba.cuda import types
from numba.cuda.cudadrv import nvvm

from gpu_pregel.errors import ArgumentTypeError, DeviceError
from gpu_pregel.host.devices.compiled_kernels import kernel_digest, lowered, lowering_versions, stored
from gpu_pregel.host.devices.lowering import compile_ir
from gpu_pregel.kernels.library.compile_clock import compiling
from gpu_pregel.kernels.library.jit_cuda import Kernel


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
        self._stream = stream
        gpu = _call("cuDeviceGet", number)
        self._context = _call("cuDevicePrimaryCtxRetain", gpu)
        attribute = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
        self._multiprocessors = int(_call("cuDeviceGetAttribute", attribute, gpu))
        self._parameters = KernelParameters(pointer)
        self._loaded: weakref.WeakKeyDictionary[Kernel, LoadedKernel] = weakref.WeakKeyDictionary()
        self._by_digest: weakref.WeakValueDictionary[str | None, LoadedKernel] = weakref.WeakValueDictionary()
        self._lock = threading.RLock()
        self._thread = threading.local()

    def launch(self, kernel: Kernel, size: int, arguments: tuple[Any, ...]) -> None:
        """Launch a kernel over ``size`` items without waiting for it; compile the kernel on its first launch."""
        if not hasattr(self._thread, "has_context"):
            # A thread has no context before its first CUDA call.
            _call("cuCtxSetCurrent", self._context)
            self._thread.has_context = True
        loaded = self._loaded.get(kernel)
        if loaded is None:
            kernel = kernel.resolved(arguments)
            loaded = self._loaded.get(kernel) or self._load(kernel)
        blocks = -(-size // loaded.items)
        if loaded.cooperative:
            blocks = min(blocks, self._multiprocessors)
        loaded.start(blocks, self._stream, self._parameters.pack(loaded.kinds, arguments))

    def _load(self, kernel: Kernel) -> LoadedKernel:
        with self._lock:
            if kernel not in self._loaded:
                with compiling():
                    self._loaded[kernel] = self._load_equal(kernel)
            return self._loaded[kernel]

    def _load_equal(self, kernel: Kernel) -> LoadedKernel:
        """Link a kernel and load it on the GPU, unless an equal one is loaded."""
        digest = kernel_digest(kernel)
        found = self._by_digest.get(digest)
        if found is None or found.items != kernel.items:
            kinds = tuple(map(parameter_kind, kernel.signature))
            shape = (kernel.block, kernel.items, kernel.cooperative)
            found = LoadedKernel(_load_code(*link(kernel, self._cc)), kinds, *shape)
            if digest is not None:
                self._by_digest[digest] = found
        return found


class LoadedKernel:
    """A kernel loaded on a GPU, and the memory of its parameters, from which the driver copies them at each launch."""

    def __init__(self, code: Any, kinds: tuple[Any, ...], block: int, items: int, cooperative: bool) -> None:
        self.kinds, self.block, self.items, self.cooperative = kinds, block, items, cooperative
        self._code = code
        self._size = _SLOT * _count_parameters(kinds)
        self._slots = ctypes.create_string_buffer(self._size or _SLOT)
        self._address = ctypes.addressof(self._slots)
        addresses = range(self._address, self._address + self._size, _SLOT)
        self._places = (ctypes.c_void_p * (len(addresses) or 1))(*addresses)
        self._launch = (
            "cuLaunchCooperativeKernel" if cooperative else "cuLaunchKernel",
            (ctypes.addressof(self._places),) if cooperative else (ctypes.addressof(self._places), 0),
        )
        self._lock = threading.Lock()

    def start(self, blocks: int, stream: int, parameters: bytes) -> None:
        """Launch the kernel with packed parameters."""
        name, places = self._launch
        with self._lock:
            ctypes.memmove(self._address, parameters, self._size)
            _call(name, self._code, blocks, 1, 1, self.block, 1, 1, 0, stream, *places)


def _load_code(code: bytes, entry: str) -> Any:
    """Return a function of machine code that the driver can launch; it stays loaded until the process ends."""
    library = _call("cuLibraryLoadData", code, [], [], 0, [], [], 0)
    return _call("cuKernelGetFunction", _call("cuLibraryGetKernel", library, entry.encode()))


def _call(name: str, *arguments: Any) -> Any:
    """Call a function of the driver and return its result, if it has one."""
    try:
        status, *results = getattr(driver, name)(*arguments)
    except ValueError as error:  # the driver is newer than cuda-bindings
        raise RuntimeError(f"the NVIDIA driver failed: {name} returned an unknown CUDA_ERROR: {error}") from error
    if status:
        raise RuntimeError(f"the NVIDIA driver failed: {name} returned {status.name} ({int(status)})")
    return results[0] if results else None


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
    """Return what identifies libNVVM and nvJitLink: their own version numbers do not tell all releases apart.

    Times are in whole seconds, as layers of container images keep no more.
    """
    found = [load_nvidia_dynamic_lib(name).abs_path for name in ("nvvm", "nvJitLink")]
    return tuple((path, os.stat(path).st_size, int(os.stat(path).st_mtime)) for path in found)


_SLOT = 8
"""Bytes between the beginnings of two parameters in memory; no parameter is larger."""
_FLAGS = tuple(flag.to_bytes(_SLOT, "little") for flag in (0, 1))


def parameter_kind(kind: Any) -> Any:
    """Return how to pass a parameter of a Numba type: an array's dtype, what packs a scalar, or a tuple of both."""
    if isinstance(kind, types.Array):
        return np.dtype(numba.np.numpy_support.as_dtype(kind.dtype))
    if isinstance(kind, types.BaseTuple):
        return tuple(map(parameter_kind, kind))
    if isinstance(kind, types.Boolean):
        return lambda flag: _FLAGS[bool(flag)]
    if isinstance(kind, types.Integer):
        # In the order of bytes of these machines, the first ones are a smaller integer.
        return lambda number: (operator.index(number) & 0xFFFFFFFFFFFFFFFF).to_bytes(_SLOT, "little")
    as_c = {"float32": ctypes.c_float, "float64": ctypes.c_double}.get(str(kind))
    if as_c is None:
        raise ArgumentTypeError(f"kernels on a GPU do not take numbers of type {kind}: pass an array of them")
    return lambda number: bytes(as_c(number)).ljust(_SLOT, b"\0")


def _count_parameters(kinds: Iterable[Any]) -> int:
    return sum(
        _count_parameters(kind) if type(kind) is tuple else _OF_ARRAY if isinstance(kind, np.dtype) else 1
        for kind in kinds
    )


_OF_ARRAY = 7
"""Parameters of an array in Numba-CUDA's layout, which starts with two unused pointers."""


class KernelParameters:
    """Packs arrays and numbers as kernel parameters; those of an array are kept while it exists."""

    def __init__(self, pointer: Callable[[Any], int]) -> None:
        self._pointer = pointer
        self._known: dict[int, tuple[weakref.ref[Any], np.dtype[Any], bytes]] = {}

    def pack(self, kinds: Iterable[Any], arguments: Iterable[Any]) -> bytes:
        """Return the parameters for arguments of these kinds, in order, of 8 bytes each.

        Raises
        ------
        ArgumentTypeError
            An argument is not a contiguous, one-dimensional array of the expected dtype on the device.
        """
        parts: list[bytes] = []
        self._add(parts, kinds, arguments)
        return b"".join(parts)

    def _add(self, parts: list[bytes], kinds: Iterable[Any], arguments: Iterable[Any]) -> None:
        known = self._known
        for kind, argument in zip(kinds, arguments, strict=True):
            if type(kind) is tuple:
                self._add(parts, kind, argument)
            elif isinstance(kind, np.dtype):
                _, dtype, parameters = known.get(id(argument)) or self._learn(argument)
                if dtype is not kind and dtype != kind:
                    raise ArgumentTypeError(f"the kernel expects an array of {kind}, not of {dtype}")
                parts.append(parameters)
            else:
                parts.append(kind(argument))

    def _learn(self, array: Any) -> tuple[weakref.ref[Any], np.dtype[Any], bytes]:
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
        parameters = (0, 0, array.size, itemsize, self._pointer(array), array.size, itemsize)
        packed = b"".join(number.to_bytes(_SLOT, "little") for number in parameters)
        known[key] = weakref.ref(array, forget), array.dtype, packed
        return known[key]
