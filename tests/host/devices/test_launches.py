"""Tests of the arguments that a launch passes to the driver; kernels are compiled and linked, but not run."""

from __future__ import annotations

import ctypes
import gc
import inspect
import re
import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gpu_pregel.errors import ArgumentTypeError
from tests.host.devices.standin import launch_config
from tests.packages import needs


class RecordingLauncher:
    """A launcher for a GPU that does not exist, which records its launches."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from gpu_pregel.host.devices import core_launches

        self.calls: list[tuple[Any, Any, Any, list[Any]]] = []
        self.current: list[int] = []
        self.loaded: list[Any] = []
        self.launcher = core_launches.CoreLauncher(3, (9, 0), 0x51, _pointer)

        def launch(stream: Any, config: Any, kernel: Any, *arguments: Any) -> None:
            ParamHolder(arguments)  # raises for arguments that cuda-core cannot pass
            self.calls.append((stream, config, kernel, list(arguments)))

        from cuda.core._kernel_arg_handler import ParamHolder

        monkeypatch.setattr(core_launches, "launch", launch)
        monkeypatch.setattr(
            core_launches,
            "Device",
            lambda number: SimpleNamespace(
                set_current=lambda: self.current.append(number), properties=SimpleNamespace(multiprocessor_count=132)
            ),
        )
        monkeypatch.setattr(core_launches, "LaunchConfig", launch_config)
        monkeypatch.setattr(core_launches, "load", self.load)

    def load(self, kernel: Any, cc: tuple[int, int]) -> Any:
        """Compile and link for a chip without loading; return the PTX as the kernel."""
        from gpu_pregel.host.devices import launches
        from tests.kernels.ptx import to_ptx

        assert cc == (9, 0)
        code, entry = launches.link(kernel, cc)
        assert code[:4] == b"\x7fELF"
        assert f".text.{entry}".encode() in code
        self.loaded.append(kernel)
        return to_ptx(kernel.function, kernel.signature, cc, block=kernel.launch_bounds)


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> RecordingLauncher:
    needs("numba_cuda", "emulated")
    needs("cupy", "test-cuda")
    return RecordingLauncher(monkeypatch)


def _array(size: int, dtype: Any, address: int) -> Any:
    """Return a real CuPy array on memory that does not exist."""
    import cupy

    memory = cupy.cuda.UnownedMemory(address, max(size * np.dtype(dtype).itemsize, 1), None, 0)
    return cupy.ndarray((size,), dtype, cupy.cuda.MemoryPointer(memory, 0))


def _pointer(array: Any) -> int:
    return int(array.data.ptr)


def _array_parameters(pointer: int, size: int, itemsize: int) -> list[int]:
    return [0, 0, size, itemsize, pointer, size, itemsize]


def test_a_kernel_is_compiled_once_and_launched_on_the_stream(recorded: RecordingLauncher) -> None:
    from gpu_pregel.kernels.algorithms import components_cuda

    launch, kernel = recorded.launcher.launch, components_cuda.initialise
    indptr, indices = _array(1001, np.uint32, 0x10000), _array(0, np.uint32, 0)
    labels, largest = (_array(1000, np.uint32, pointer) for pointer in (0x30000, 0x40000))
    for size in (1000, 1000, 100):
        launch(kernel, size, (indptr, indices, labels, largest))
    (stream, first, ptx, arguments), second, third = recorded.calls
    assert int(stream.handle) == 0x51
    assert (first.grid, first.block, third[1].grid) == ((4, 1, 1), (256, 1, 1), (1, 1, 1))
    vertices = [*_array_parameters(0x30000, 1000, 4), *_array_parameters(0x40000, 1000, 4)]
    expected = [*_array_parameters(0x10000, 1001, 4), *_array_parameters(0, 0, 4), *vertices]
    assert arguments == second[3] == third[3] == expected
    assert len(recorded.loaded) == 1
    assert ".target sm_90" in ptx
    assert len(re.findall(r"\.maxntid 256\b", ptx)) == 1
    # The other width of offsets needs another kernel.
    launch(kernel, 1000, (_array(1001, np.int64, 0x10000), indices, labels, largest))
    assert recorded.calls[-1][3][:7] == _array_parameters(0x10000, 1001, 8)
    assert len(recorded.loaded) == 2
    assert recorded.current == [3]
    thread = threading.Thread(target=launch, args=(kernel, 1000, (indptr, indices, labels, largest)))
    thread.start()
    thread.join()
    assert recorded.current == [3, 3]


def test_items_per_block_may_differ_from_threads_per_block(recorded: RecordingLauncher) -> None:
    from numba.cuda import types

    from gpu_pregel.kernels.library.jit_cuda import kernel

    @kernel(types.uint32[::1], block=1024, items=100)
    def clear(out: Any) -> None:
        out[0] = 0

    recorded.launcher.launch(clear, 101, (_array(1, np.uint32, 0x10000),))
    # An equal function in blocks of more items.
    recorded.launcher.launch(replace(clear, items=200), 101, (_array(1, np.uint32, 0x10000),))
    assert [(config.grid, config.block) for _, config, *_ in recorded.calls] == [
        ((2, 1, 1), (1024, 1, 1)),
        ((1, 1, 1), (1024, 1, 1)),
    ]


def test_machine_code_on_disk_depends_on_compiler_and_linker(
    recorded: RecordingLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gpu_pregel.host.devices import compiled_kernels, launches
    from gpu_pregel.kernels.algorithms import components_cuda

    given: list[Any] = []

    def stored(kernel: Any, form: str, versions: tuple[object, ...], make: Any) -> Any:
        given.append((form, versions))
        return b"\x7fELF", "compress"

    monkeypatch.setattr(launches, "stored", stored)
    launches.link(components_cuda.compress, (8, 9))
    ((form, versions),) = given
    assert form == "sm_89"
    assert set(compiled_kernels.lowering_versions()) < set(versions)
    paths = [one[0] for one in versions if isinstance(one, tuple) and isinstance(one[0], str)]
    assert ["nvvm" in path for path in paths] == [True, False]
    assert "nvJitLink" in paths[1]


def test_a_cooperative_launch_has_a_block_per_multiprocessor_at_most(recorded: RecordingLauncher) -> None:
    from gpu_pregel.kernels.library.jit_cuda import kernel

    @kernel(cooperative=True)
    def nothing() -> None:
        pass

    for size in (1, 20 << 10, 1 << 20):
        recorded.launcher.launch(nothing, size, ())
    assert [call[1].grid[0] for call in recorded.calls] == [1, 80, 132]
    assert all(call[1].is_cooperative for call in recorded.calls)
    assert ".minnctapersm 1" in recorded.calls[0][2]


def test_parameters_match_the_code_and_numba(recorded: RecordingLauncher, monkeypatch: pytest.MonkeyPatch) -> None:
    from numba.cuda import types
    from numba.cuda.cudadrv import devicearray
    from numba.cuda.dispatcher import _Kernel

    from gpu_pregel.kernels.library.jit_cuda import kernel

    floats, words = types.float32[::1], types.uint32[::1]
    numbers = (types.int64, types.uint32, types.float32, types.float64, types.boolean)

    @kernel(types.Tuple((floats, words)), types.Tuple(()), *numbers, words)
    def kernel_of_all_types(arrays: Any, nothing: Any, a: Any, b: Any, c: Any, d: Any, e: Any, out: Any) -> None:
        if e:
            out[0] = arrays[1][0] + a + b + np.uint32(c + d + arrays[0][0])

    arrays = [_array(3, np.float32, 0x1000), _array(5, np.uint32, 0x2000), _array(1, np.uint32, 0x3000)]
    given = (np.int64(-3), 7, np.float32(1.5), 2.5, np.bool_(True))
    recorded.launcher.launch(kernel_of_all_types, 1, ((arrays[0], arrays[1]), (), *given, arrays[2]))
    _, _, ptx, parameters = recorded.calls[0]
    declared = re.findall(r"\.param \.([uf]\d+)", ptx.split(".entry")[1].split(")")[0])
    assert list(map(_size, parameters)) == [{"u64": 8, "u32": 4, "f32": 4, "f64": 8, "u8": 1}[one] for one in declared]
    theirs = [_array_of_numba(array, devicearray) for array in arrays]
    numba_kernel = _Kernel.__new__(_Kernel)
    numba_kernel.extensions = []
    expected: list[Any] = []
    plain = (-3, 7, 1.5, 2.5, True)
    for kind, value in zip(kernel_of_all_types.signature, ((theirs[0], theirs[1]), (), *plain, theirs[2]), strict=True):
        numba_kernel._prepare_args(kind, value, 0, [], expected)
    assert [(type(one), getattr(one, "value", one)) for one in parameters] == [
        (type(one), getattr(one, "value", one)) for one in expected
    ]


def _size(parameter: Any) -> int:
    """Return the bytes that cuda-core passes."""
    if isinstance(parameter, bool):
        return 1
    return 8 if isinstance(parameter, int) else ctypes.sizeof(parameter)


def _array_of_numba(array: Any, devicearray: Any) -> Any:
    memory = SimpleNamespace(device_ctypes_pointer=ctypes.c_void_p(_pointer(array)))
    return devicearray.DeviceNDArray((array.size,), (array.dtype.itemsize,), array.dtype, gpu_data=memory)


def test_the_driver_gets_the_bytes_that_cuda_core_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    needs("cuda.core", "emulated")
    from cuda.core._kernel_arg_handler import ParamHolder
    from numba.cuda import types

    from gpu_pregel.host.devices import driver_launches
    from gpu_pregel.host.devices.launches import LoadedKernel, parameter_kind

    launched: list[tuple[Any, ...]] = []

    def launch(code: Any, *arguments: int) -> tuple[int]:
        *shape, places, _ = arguments
        addresses = (ctypes.c_uint64 * len(sizes)).from_address(places)
        launched.append((code, *shape, list(map(ctypes.string_at, addresses, sizes))))
        return (0,)

    driver = SimpleNamespace(
        cuDeviceGet=lambda number: (0, number),
        cuDevicePrimaryCtxRetain=lambda device: (0, 0xC0),
        cuLaunchKernel=launch,
    )
    monkeypatch.setattr(driver_launches, "driver", driver)
    launcher = driver_launches.DriverLauncher(3, (9, 0), 0x51, _pointer)
    numbers = ((types.int64, -3), (types.uint32, 7), (types.float32, 1.5), (types.float64, 2.5), (types.boolean, True))
    given = [1 << 62, *(parameter_kind(kind)(number) for kind, number in numbers)]
    sizes = [8, 8, 4, 4, 8, 1]
    holder = ParamHolder(tuple(given))
    theirs = (ctypes.c_uint64 * len(sizes)).from_address(holder.ptr)
    launcher._start(LoadedKernel("code", (), 256, 256, False), 5, given)
    assert launched == [("code", 5, 1, 1, 256, 1, 1, 0, 0x51, list(map(ctypes.string_at, theirs, sizes)))]


@pytest.mark.usefixtures("young_heap")
def test_array_parameters_are_cached_while_the_array_exists() -> None:
    needs("numba_cuda", "emulated")
    needs("cupy", "test-cuda")
    from gpu_pregel.host.devices.launches import KernelParameters

    queried: list[int] = []

    def pointer(array: Any) -> int:
        queried.append(_pointer(array))
        return queried[-1]

    parameters, double = KernelParameters(pointer), np.dtype(np.float64)
    array = _array(4, np.float64, 0x4000)
    first = parameters.flatten((double,), (array,))
    assert parameters.flatten(((double, bool),), ((array, 1),)) == [*first, True]
    assert queried == [0x4000]
    assert parameters.flatten((double,), (array[1:],)) == _array_parameters(0x4008, 3, 8)
    assert queried == [0x4000, 0x4008]
    gc.collect()
    assert len(parameters._known) == 1
    del array
    gc.collect()
    assert not parameters._known


def test_invalid_arguments() -> None:
    needs("numba_cuda", "emulated")
    needs("cupy", "test-cuda")
    from numba.cuda import types

    from gpu_pregel.host.devices.launches import KernelParameters, parameter_kind

    parameters, byte = KernelParameters(_pointer), parameter_kind(types.uint8[::1])
    of_numba = type("DeviceNDArray", (), {"__cuda_array_interface__": {}, "flags": {"C_CONTIGUOUS": True}, "ndim": 1})
    for wrong in ([1], np.zeros(3, np.uint8), 5, _array(8, np.uint8, 0)[::2], of_numba()):
        with pytest.raises(
            ArgumentTypeError, match=rf"take contiguous arrays of one .*, not {type(wrong).__name__}: use"
        ):
            parameters.flatten((byte,), (wrong,))
    with pytest.raises(ArgumentTypeError, match="the kernel expects an array of uint8, not of bool"):
        parameters.flatten((byte,), (_array(8, np.bool_, 0),))
    with pytest.raises(TypeError, match="float"):
        parameters.flatten((parameter_kind(types.int64),), (1.5,))
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        parameters.flatten((byte, byte), (_array(8, np.uint8, 0),))


def test_the_calls_of_cuda_core_exist() -> None:
    core = needs("cuda.core", "emulated")
    inspect.signature(core.launch).bind("stream", "config", "kernel", 1, 2)
    inspect.signature(core.Stream.from_handle).bind(0x51)
    config = core.LaunchConfig(grid=3, block=256)
    assert (config.grid, config.block, config.is_cooperative) == ((3, 1, 1), (256, 1, 1), False)
    assert callable(core.Device.set_current)
    assert callable(core.ObjectCode.get_kernel)
    driver = needs("cuda.bindings.driver", "emulated")
    for name in ("LaunchKernel", "LaunchCooperativeKernel", "LibraryLoadData", "LibraryGetKernel", "CtxSetCurrent"):
        assert callable(getattr(driver, f"cu{name}"))
