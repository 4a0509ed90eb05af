"""A stand-in for a GPU: the real ``CudaDevice`` and its real launch parameters, over a fake CuPy and the emulator.

It needs NVIDIA's compilers, with which it links each kernel before the emulated device runs it.
Only what needs a driver is replaced: CuPy, the query for GPUs, and the driver's own functions (``StandinDriver``). A
launch is decoded from the bytes that the driver would copy.
"""

# ruff: noqa: N802 (the names of the driver's functions)

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gpu_pregel.host import devices
from gpu_pregel.host.devices import gpus
from gpu_pregel.host.devices.gpus import Gpu, Gpus
from gpu_pregel.host.emulator.machine.limits import MAX_SHARED, MAX_STATIC_SHARED, MULTIPROCESSORS
from tests.devices import EXHAUSTIVE
from tests.host.devices import fake_cupy
from tests.host.devices.fake_cupy import CUDARuntimeError, FakeCupy, Stream
from tests.kernels.chips import CHIPS

DRIVER_TYPES = (
    *("CUdevice_attribute", "CUfunction_attribute"),
    *("CUlaunchAttribute", "CUlaunchAttributeID", "CUlaunchConfig"),
)
"""What launches use of cuda-bindings that works without a driver."""
H100 = Gpu(0, "NVIDIA H100 (a stand-in)", (9, 0), 80 << 30)
_ARRAY_WORDS = ("meminfo", "parent", "size", "itemsize", "pointer", "length", "stride")
"""Numba-CUDA's layout of an array parameter."""


class StandinGpu:
    """One GPU that executes launches on the emulated device, in the order of their stream."""

    def __init__(self) -> None:
        from gpu_pregel.host.devices.emulated import EmulatedDevice

        with pytest.MonkeyPatch.context() as patch:
            self._own_streams(patch, {}, None)
            self.cupy = FakeCupy()
            self._streams, self._null = Stream.every, Stream.null
        self.cupy.memory.free = 1 << 34
        self.machine = EmulatedDevice(2)
        self.driver = StandinDriver(self)
        self.launches = 0
        self._current = threading.local()
        self._devices: dict[tuple[str, int], Any] = {}

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Make this the only GPU of the process, until its pending work has run."""
        from gpu_pregel.host.devices import cupy_calls, launches

        with pytest.MonkeyPatch.context() as patch:
            self._own_streams(patch, self._streams, self._null)
            patch.setattr(gpus, "_query", lambda: Gpus((H100,), (13, 0)))
            patch.setattr(cupy_calls, "cupy", self.cupy)
            patch.setattr(devices, "_has_gpu", devices._has_gpu.__wrapped__)
            patch.setattr(devices, "_devices", self._devices)
            patch.setattr(launches, "driver", self.driver)
            patch.setattr(launches, "link", self.driver.link)
            try:
                yield
                for stream in list(self._streams.values()):
                    if stream.failure is None:
                        stream.synchronize()
            finally:
                # CUDA keeps the error of a failed kernel until its process ends: the next test gets a new GPU.
                for stream in list(self._streams.values()):
                    if stream.failure is not None:
                        self._devices.clear()
                        stream.failure, stream.work = None, type(stream.work)(stream)

    @staticmethod
    def _own_streams(patch: pytest.MonkeyPatch, streams: dict[int, Stream], null: Stream | None) -> None:
        patch.setattr(Stream, "every", streams)
        patch.setattr(Stream, "null", null, raising=False)

    def enter(self, number: int) -> None:
        """Make the GPU current in this thread."""
        assert number == H100.number
        self._current.device = number

    def start(self, stream: Stream, config: Any, kernel: Any, parameters: PassedParameters) -> None:
        """Decode a launch as the driver does, and append it to the stream."""
        if getattr(self._current, "device", None) != H100.number:
            raise CUDARuntimeError("CUDA_ERROR_INVALID_CONTEXT: the thread has no current device")
        assert fake_cupy.stack[-1] is stream
        if config.grid[0] > 0x7FFFFFFF or config.block != (kernel.block, 1, 1) or config.grid[1:] != (1, 1):
            raise CUDARuntimeError(f"CUDA_ERROR_INVALID_VALUE: {config}")
        if config.grid[0] % config.cluster or config.shared > self.driver.dynamic_shared.get(kernel, MAX_STATIC_SHARED):
            raise CUDARuntimeError(f"CUDA_ERROR_INVALID_VALUE: {config}")
        if config.is_cooperative and config.grid[0] > MULTIPROCESSORS:
            raise CUDARuntimeError(f"CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE: {config}")
        declared = kernel.cooperative, kernel.cluster, kernel.dynamic_shared
        assert (config.is_cooperative, config.cluster, config.shared) == declared
        arguments = parameters.arguments(kernel.signature)
        self.launches += 1
        stream.work.append(partial(self.machine.launch, kernel, config.grid[0] * kernel.items, *arguments))


def _chips_for(kernel: Any) -> list[tuple[int, int]]:
    """Return the chips to link a kernel for: by default one that depends on the kernel's content."""
    from gpu_pregel.host.devices.compiled_kernels import kernel_digest

    chips = list(CHIPS.values())
    return chips if EXHAUSTIVE else [chips[int((kernel_digest(kernel) or "0")[:8], 16) % len(chips)]]


class StandinDriver:
    """The functions of the driver that ``launches`` calls, on a stand-in, and the linking of what they load."""

    def __init__(self, gpu: StandinGpu) -> None:
        from cuda.bindings import driver

        from gpu_pregel.host.devices import launches

        vars(self).update({name: getattr(driver, name) for name in DRIVER_TYPES})
        self.dynamic_shared: dict[Any, int] = {}
        self._gpu, self._link = gpu, launches.link
        self._linked: dict[tuple[bytes, str], Any] = {}
        self.loaded: list[Any] = []

    def link(self, kernel: Any, cc: tuple[int, int]) -> Any:
        """Link a kernel, as the device does before it loads the code, for one of several chips or for all."""
        assert cc == H100.compute_capability
        for chip in _chips_for(kernel):
            linked = self._link(kernel, chip)
            assert f".text.{linked.entry}\0".encode() in linked.code
        self._linked[linked.code, linked.entry] = kernel
        return linked

    def cuDeviceGet(self, number: int) -> tuple[int, int]:
        return 0, number

    def cuDevicePrimaryCtxRetain(self, device: int) -> tuple[int, int]:
        return 0, 0xC0 + device

    def cuCtxSetCurrent(self, context: int) -> tuple[int]:
        self._gpu.enter(context - 0xC0)
        return (0,)

    def cuDeviceGetAttribute(self, attribute: Any, device: int) -> tuple[int, int]:
        assert device == H100.number
        return 0, {
            "CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT": MULTIPROCESSORS,
            "CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": MAX_SHARED,
        }[attribute.name]

    def cuLibraryLoadData(self, code: bytes, *options: Any) -> tuple[int, bytes]:
        assert options == ([], [], 0, [], [], 0)
        return 0, code

    def cuLibraryGetKernel(self, library: bytes, name: bytes) -> tuple[int, Any]:
        return 0, self._linked[library, name.decode()]

    def cuKernelGetFunction(self, kernel: Any) -> tuple[int, Any]:
        self.loaded.append(kernel)
        return 0, kernel

    def cuFuncSetAttribute(self, kernel: Any, attribute: Any, value: int) -> tuple[int]:
        assert attribute.name == "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES"
        self.dynamic_shared[kernel] = value
        return (0,)

    def cuLaunchKernelEx(self, config: Any, kernel: Any, places: int, extra: int) -> tuple[int]:
        assert extra == 0
        passed = launch_of(config)
        self._gpu.start(Stream.every[passed.stream], passed, kernel, parameters_at(places, kernel.signature))
        return (0,)


def launch_of(config: Any) -> SimpleNamespace:
    """Decode the structure that describes a launch to the driver."""
    grid = config.gridDimX, config.gridDimY, config.gridDimZ
    block = config.blockDimX, config.blockDimY, config.blockDimZ
    attributes = {one.id.name.removeprefix("CU_LAUNCH_ATTRIBUTE_"): one.value for one in config.attrs}
    assert len(attributes) == config.numAttrs
    cooperative, cluster = attributes.pop("COOPERATIVE", None), attributes.pop("CLUSTER_DIMENSION", None)
    assert not attributes
    if cluster is not None:
        assert (cluster.clusterDim.y, cluster.clusterDim.z) == (1, 1)
    return SimpleNamespace(
        grid=grid,
        block=block,
        shared=config.sharedMemBytes,
        stream=int(config.hStream),
        is_cooperative=cooperative is not None and bool(cooperative.cooperative),
        cluster=1 if cluster is None else cluster.clusterDim.x,
    )


class PassedParameters:
    """The bytes of a launch's parameters, at these addresses, decoded by the types of the kernel's code."""

    def __init__(self, places: Iterable[int]) -> None:
        self._places: Iterator[int] = iter(places)

    def arguments(self, signature: Sequence[Any]) -> list[Any]:
        """Return the arguments for the emulated device; there are exactly as many parameters as the kernel has."""
        arguments = [self._next(kind) for kind in signature]
        assert next(self._places, None) is None, "more parameters than the kernel has"
        return arguments

    def _next(self, kind: Any) -> Any:
        from numba.cuda import types

        if isinstance(kind, types.Array):
            return self._next_array(np.dtype(str(kind.dtype)))
        if isinstance(kind, types.BaseTuple):
            return tuple(map(self._next, kind))
        return self._read(np.dtype("bool" if isinstance(kind, types.Boolean) else str(kind)))

    def _next_array(self, dtype: np.dtype[Any]) -> Any:
        from gpu_pregel.host.emulator.machine.arrays import Allocation, DeviceArray, EmulatedMemory

        words = {name: int(self._read(np.dtype(np.int64))) for name in _ARRAY_WORDS}
        size = words["size"]
        expected = {"meminfo": 0, "parent": 0, "itemsize": dtype.itemsize, "length": size, "stride": dtype.itemsize}
        assert expected.items() <= words.items(), words
        nbytes = size * dtype.itemsize
        block, offset = fake_cupy.find_block(words["pointer"], nbytes) if size else (Allocation(0), 0)
        return DeviceArray(EmulatedMemory(), block, offset, (size,), dtype)

    def _read(self, dtype: np.dtype[Any]) -> Any:
        place = next(self._places, None)
        assert place is not None, "fewer parameters than the kernel has"
        return np.frombuffer(ctypes.string_at(place, dtype.itemsize), dtype)[0]


def parameters_at(address: int, signature: Sequence[Any]) -> PassedParameters:
    """Return as many parameters as a kernel has, given the address of their addresses."""
    return PassedParameters((ctypes.c_uint64 * _count(signature)).from_address(address))


def _count(signature: Iterable[Any]) -> int:
    from numba.cuda import types

    return sum(
        len(_ARRAY_WORDS) if isinstance(kind, types.Array) else _count(kind) if isinstance(kind, types.BaseTuple) else 1
        for kind in signature
    )
