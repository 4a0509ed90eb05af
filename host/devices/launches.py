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
from typing import Any, NamedTuple

from cuda.bindings import driver, nvjitlink
from cuda.pathfinder import load_nvidia_dynamic_lib

from gpu_pregel.errors import ArgumentTypeError, DeviceError
from gpu_pregel.host.devices.compiled_kernels import kernel_digest, lowered, lowering_versions, stored
from gpu_pregel.host.devices.lowering import compile_ir, load_nvvm
from gpu_pregel.kernels.library.compile_clock import compiling
from gpu_pregel.kernels.library.jit_cuda import Kernel, KernelShape
from gpu_pregel.kernels.library.parameters import ArrayParameter, Parameter, count_words

_CLUSTERS = (9, 0)
"""The first compute capability with clusters of blocks."""


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
        load_nvvm()
        self._cc = cc
        self._stream = stream
        gpu = _call("cuDeviceGet", number)
        self._context = _call("cuDevicePrimaryCtxRetain", gpu)
        names = driver.CUdevice_attribute
        self._multiprocessors, self._max_shared = (
            int(_call("cuDeviceGetAttribute", attribute, gpu))
            for attribute in (
                names.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                names.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
            )
        )
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
        blocks = loaded.shape.blocks(size, self._multiprocessors)
        loaded.start(blocks, self._parameters.pack(loaded.kinds, arguments))

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
        if found is None or found.shape != kernel.shape:
            self._check_resources(kernel)
            linked = link(kernel, self._cc)
            code = _load_code(linked.code, linked.entry)
            found = LoadedKernel(code, linked.layout, kernel.shape, self._stream)
            if digest is not None:
                self._by_digest[digest] = found
        return found

    def _check_resources(self, kernel: Kernel) -> None:
        """Raise ``DeviceError`` if the GPU lacks what a kernel declares."""
        if kernel.dynamic_shared > self._max_shared:
            raise DeviceError(
                f"kernel {kernel.name} needs {kernel.dynamic_shared} bytes of shared memory per block; the GPU has "
                f"{self._max_shared}: use smaller arrays"
            )
        if kernel.cluster > 1 and self._cc < _CLUSTERS:
            capability, minimum = (".".join(map(str, one)) for one in (self._cc, _CLUSTERS))
            raise DeviceError(
                f"kernel {kernel.name} runs in clusters of {kernel.cluster} blocks, which need compute capability "
                f"{minimum}; the GPU has {capability}"
            )


class LoadedKernel:
    """A kernel loaded on a GPU, and the memory of its parameters, from which the driver copies them at each launch."""

    def __init__(self, code: Any, layout: tuple[Parameter, ...], shape: KernelShape, stream: int) -> None:
        self.kinds, self.shape, self._code = parameter_kinds(layout), shape, code
        if shape.dynamic_shared:
            attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            _call("cuFuncSetAttribute", code, attribute, shape.dynamic_shared)
        self._config = _launch_config(shape, stream)
        self._size = _SLOT * count_words(layout)
        self._slots = ctypes.create_string_buffer(self._size or _SLOT)
        self._address = ctypes.addressof(self._slots)
        addresses = range(self._address, self._address + self._size, _SLOT)
        self._places = (ctypes.c_void_p * (len(addresses) or 1))(*addresses)
        self._addresses = ctypes.addressof(self._places)
        self._lock = threading.Lock()

    def start(self, blocks: int, parameters: bytes) -> None:
        """Launch the kernel with packed parameters."""
        with self._lock:
            ctypes.memmove(self._address, parameters, self._size)
            self._config.gridDimX = blocks
            _call("cuLaunchKernelEx", self._config, self._code, self._addresses, 0)


def _launch_config(shape: KernelShape, stream: int) -> Any:
    """Return what the driver needs to know about launches of a kernel, but the number of blocks."""
    config = driver.CUlaunchConfig()
    config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1
    config.blockDimX, config.sharedMemBytes, config.hStream = shape.block, shape.dynamic_shared, stream
    names, attributes = driver.CUlaunchAttributeID, []
    if shape.cooperative:
        attributes.append(driver.CUlaunchAttribute())
        attributes[-1].id = names.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        attributes[-1].value.cooperative = 1
    if shape.cluster > 1:
        attributes.append(driver.CUlaunchAttribute())
        attributes[-1].id = names.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        cluster = attributes[-1].value.clusterDim
        cluster.x, cluster.y, cluster.z = shape.cluster, 1, 1
    config.attrs, config.numAttrs = attributes, len(attributes)
    return config


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


class LinkedKernel(NamedTuple):
    """A kernel's machine code, the name of its function, and how it takes each argument."""

    code: bytes
    entry: str
    layout: tuple[Parameter, ...]


def link(kernel: Kernel, cc: tuple[int, int]) -> LinkedKernel:
    """Return a kernel's machine code for a compute capability.

    The code is linked from LTO-IR. Linking from PTX would add functions for divisions and for shuffles of diverged
    warps, which need half as many registers again on chips before sm_90.
    """

    def make() -> LinkedKernel:
        ir = lowered(kernel)
        return LinkedKernel(_link_lto(compile_ir(ir, cc, lto=True), cc), ir.entry, ir.layout)

    linked: LinkedKernel = stored(kernel, f"sm_{cc[0]}{cc[1]}", (*lowering_versions(), *_linker_versions()), make)
    return linked


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


def parameter_kinds(layout: Iterable[Parameter]) -> tuple[Any, ...]:
    """Return how to pass each parameter: that of an array, what packs a number, or a tuple of both."""
    return tuple(map(_kind, layout))


@functools.cache  # equal parameters are one object
def _kind(parameter: Parameter) -> Any:
    if isinstance(parameter, ArrayParameter):
        return parameter
    if isinstance(parameter, tuple):
        return parameter_kinds(parameter)
    letter = "" if parameter is None else parameter.kind
    if letter == "b":
        return lambda flag: _FLAGS[bool(flag)]
    if letter in ("i", "u"):
        # In the order of bytes of these machines, the first ones are a smaller integer.
        return lambda number: (operator.index(number) & 0xFFFFFFFFFFFFFFFF).to_bytes(_SLOT, "little")
    as_c = {"float32": ctypes.c_float, "float64": ctypes.c_double}.get(str(parameter))
    if as_c is None:
        raise ArgumentTypeError(f"kernels on a GPU do not take numbers of type {parameter}: pass an array of them")
    return lambda number: bytes(as_c(number)).ljust(_SLOT, b"\0")


class KernelParameters:
    """Packs arrays and numbers as kernel parameters; those of an array are kept while it exists."""

    def __init__(self, pointer: Callable[[Any], int]) -> None:
        self._pointer = pointer
        self._known: dict[int, tuple[weakref.ref[Any], ArrayParameter, bytes]] = {}

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
            elif type(kind) is ArrayParameter:
                packed = known.get(id(argument))
                if packed is None or packed[1] is not kind:
                    packed = self._learn(kind, argument)
                parts.append(packed[2])
            else:
                parts.append(kind(argument))

    def _learn(self, kind: ArrayParameter, array: Any) -> tuple[weakref.ref[Any], ArrayParameter, bytes]:
        is_contiguous = getattr(getattr(array, "flags", None), "c_contiguous", False)
        if not hasattr(type(array), "__cuda_array_interface__") or array.ndim != 1 or not is_contiguous:
            raise ArgumentTypeError(
                f"kernels take contiguous arrays of one dimension in the memory of their GPU, as of CuPy, not "
                f"{type(array).__name__}: use cupy.ascontiguousarray, or frontier.upload for arrays of the host"
            )
        if array.dtype != kind.dtype:
            raise ArgumentTypeError(f"the kernel expects an array of {kind.dtype}, not of {array.dtype}")
        key, known = id(array), self._known

        def forget(_: Any) -> None:
            known.pop(key, None)

        words = kind.values(self._pointer(array), array.shape)
        packed = b"".join(word.to_bytes(_SLOT, "little") for word in words)
        known[key] = weakref.ref(array, forget), kind, packed
        return known[key]
