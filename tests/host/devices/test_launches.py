"""Tests of the arguments that a launch passes to the driver; kernels are compiled and linked, but not run."""

# ruff: noqa: N802 (the names of the driver's functions)

from __future__ import annotations

import ctypes
import gc
import re
import threading
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from gpu_pregel.errors import ArgumentTypeError, DeviceError
from tests.host.devices import standin
from tests.packages import needs

pytestmark = pytest.mark.nvidia


class RecordingLauncher:
    """A launcher for a GPU that does not exist, which records its launches."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from cuda.bindings import driver

        from gpu_pregel.host.devices import launches

        self.calls: list[Call] = []
        self.current: list[int] = []
        self.loaded: list[Any] = []
        self._own_link = launches.link
        self.limits: list[tuple[Any, str, int]] = []
        vars(self).update({name: getattr(driver, name) for name in standin.DRIVER_TYPES})
        monkeypatch.setattr(launches, "driver", self)
        monkeypatch.setattr(launches, "link", self.link)
        self.launcher = launches.Launcher(3, (9, 0), 0x51, _pointer)

    def link(self, kernel: Any, cc: tuple[int, int]) -> Any:
        """Compile and link for a chip."""
        assert cc == (9, 0)
        linked = self._own_link(kernel, cc)
        assert linked.code[:4] == b"\x7fELF"
        assert f".text.{linked.entry}".encode() in linked.code
        self.loaded.append(kernel)
        return linked

    # The functions of the driver.

    def cuDeviceGet(self, number: int) -> tuple[int, int]:
        return 0, number

    def cuDevicePrimaryCtxRetain(self, device: int) -> tuple[int, int]:
        return 0, 0xC0 + device

    def cuDeviceGetAttribute(self, attribute: Any, device: int) -> tuple[int, int]:
        assert device == 3
        return 0, {
            "CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT": 132,
            "CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 232448,
        }[attribute.name]

    def cuCtxSetCurrent(self, context: int) -> tuple[int]:
        self.current.append(context - 0xC0)
        return (0,)

    def cuLibraryLoadData(self, code: bytes, *options: Any) -> tuple[int, Any]:
        assert options == ([], [], 0, [], [], 0)
        return 0, self.loaded[-1]

    def cuLibraryGetKernel(self, library: Any, name: bytes) -> tuple[int, Any]:
        return 0, library

    def cuKernelGetFunction(self, kernel: Any) -> tuple[int, Any]:
        return 0, kernel

    def cuFuncSetAttribute(self, kernel: Any, attribute: Any, value: int) -> tuple[int]:
        self.limits.append((kernel, attribute.name, value))
        return (0,)

    def cuLaunchKernelEx(self, config: Any, kernel: Any, places: int, extra: int) -> tuple[int]:
        """Copy as many bytes of each parameter as the code declares, as the driver does."""
        passed = standin.launch_of(config)
        assert (passed.grid[1:], passed.block[1:], passed.stream, extra) == ((1, 1), (1, 1), 0x51, 0)
        ptx = _ptx_of(kernel)
        declared = re.findall(r"\.param \.([uf]\d+)", ptx.split(".entry")[1].split(")")[0])
        sizes = [{"u64": 8, "u32": 4, "f32": 4, "f64": 8, "u8": 1}[one] for one in declared]
        addresses = (ctypes.c_uint64 * len(sizes)).from_address(places)
        parameters = list(map(ctypes.string_at, addresses, sizes))
        shape = passed.grid[0], passed.block[0], passed.is_cooperative, passed.cluster, passed.shared
        self.calls.append(Call(*shape, ptx, parameters))
        return (0,)


class Call(NamedTuple):
    """A launch: its shape, the PTX of the kernel and the bytes of each parameter."""

    blocks: int
    block: int
    is_cooperative: bool
    cluster: int
    shared: int
    ptx: str
    parameters: list[bytes]


def _ptx_of(kernel: Any) -> str:
    from tests.kernels.ptx import to_ptx

    return to_ptx(kernel.function, kernel.signature, (9, 0), block=kernel.launch_bounds)


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> RecordingLauncher:
    return RecordingLauncher(monkeypatch)


def _array(size: int, dtype: Any, address: int) -> Any:
    """Return a real CuPy array on memory that does not exist."""
    import cupy

    memory = cupy.cuda.UnownedMemory(address, max(size * np.dtype(dtype).itemsize, 1), None, 0)
    return cupy.ndarray((size,), dtype, cupy.cuda.MemoryPointer(memory, 0))


def _pointer(array: Any) -> int:
    return int(array.data.ptr)


def _array_parameters(pointer: int, size: int, itemsize: int) -> list[bytes]:
    return [number.to_bytes(8, "little") for number in (0, 0, size, itemsize, pointer, size, itemsize)]


def test_a_kernel_is_compiled_once_and_launched_on_the_stream(recorded: RecordingLauncher) -> None:
    from gpu_pregel.kernels.algorithms import components_cuda

    launch, kernel = recorded.launcher.launch, components_cuda.initialise
    indptr, indices = _array(1001, np.uint32, 0x10000), _array(0, np.uint32, 0)
    labels, largest = (_array(1000, np.uint32, pointer) for pointer in (0x30000, 0x40000))
    for size in (1000, 1000, 100):
        launch(kernel, size, (indptr, indices, labels, largest))
    first, second, third = recorded.calls
    assert (first.blocks, first.block, third.blocks, first.is_cooperative) == (4, 256, 1, False)
    vertices = [*_array_parameters(0x30000, 1000, 4), *_array_parameters(0x40000, 1000, 4)]
    expected = [*_array_parameters(0x10000, 1001, 4), *_array_parameters(0, 0, 4), *vertices]
    assert first.parameters == second.parameters == third.parameters == expected
    assert len(recorded.loaded) == 1
    assert ".target sm_90" in first.ptx
    assert len(re.findall(r"\.maxntid 256\b", first.ptx)) == 1
    # The other width of offsets needs another kernel.
    launch(kernel, 1000, (_array(1001, np.int64, 0x10000), indices, labels, largest))
    assert recorded.calls[-1].parameters[:7] == _array_parameters(0x10000, 1001, 8)
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
    assert [(call.blocks, call.block) for call in recorded.calls] == [(2, 1024), (1, 1024)]


def test_machine_code_on_disk_depends_on_compiler_and_linker(
    recorded: RecordingLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gpu_pregel.host.devices import compiled_kernels, launches
    from gpu_pregel.kernels.algorithms import components_cuda

    given: list[Any] = []

    def stored(kernel: Any, form: str, versions: tuple[object, ...], make: Any) -> Any:
        given.append((form, versions))
        return b"\x7fELF", "compress", ()

    monkeypatch.setattr(launches, "stored", stored)
    recorded._own_link(components_cuda.compress, (8, 9))
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
    assert [call.blocks for call in recorded.calls] == [1, 80, 132]
    assert all(call.is_cooperative for call in recorded.calls)
    assert ".minnctapersm 1" in recorded.calls[0].ptx


def test_a_launch_states_shared_memory_and_clusters(recorded: RecordingLauncher) -> None:
    from numba import cuda
    from numba.cuda import types

    from gpu_pregel.kernels.library.jit_cuda import kernel

    @kernel(types.uint32[::1], dynamic_shared=200 << 10, cluster=8, items=100)
    def reverse(out: Any) -> None:
        words = cuda.shared.array(0, types.uint32)
        words[cuda.threadIdx.x] = out[cuda.threadIdx.x]
        cuda.syncthreads()
        out[cuda.threadIdx.x] = words[255 - cuda.threadIdx.x]

    @kernel(cooperative=True, cluster=8)
    def nothing() -> None:
        pass

    launch, out = recorded.launcher.launch, _array(256, np.uint32, 0x10000)
    for size in (801, 800):
        launch(reverse, size, (out,))
    launch(nothing, 1 << 20, ())
    launch(replace(reverse, dynamic_shared=4096, cluster=1), 801, (out,))
    expected = [(16, False, 8, 200 << 10), (8, False, 8, 200 << 10), (128, True, 8, 0), (9, False, 1, 4096)]
    assert [(one.blocks, one.is_cooperative, one.cluster, one.shared) for one in recorded.calls] == expected
    assert ".extern .shared" in recorded.calls[0].ptx
    limits = [(name, value) for _, name, value in recorded.limits]
    assert limits == [("CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES", size) for size in (200 << 10, 4096)]


def test_a_kernel_that_the_gpu_cannot_run_is_not_linked(recorded: RecordingLauncher) -> None:
    from gpu_pregel.host.devices.launches import Launcher
    from gpu_pregel.kernels.library.jit_cuda import kernel

    def nothing() -> None:
        pass

    with pytest.raises(DeviceError, match="nothing needs 232449 bytes of shared memory per block; the GPU has 232448"):
        recorded.launcher.launch(kernel(dynamic_shared=232449)(nothing), 1, ())
    older = Launcher(3, (8, 9), 0x51, _pointer)
    with pytest.raises(
        DeviceError, match=r"clusters of 2 blocks, which need compute capability 9\.0; the GPU has 8\.9"
    ):
        older.launch(kernel(cluster=2)(nothing), 1, ())
    assert not recorded.loaded


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
    (call,) = recorded.calls
    theirs = [_array_of_numba(array, devicearray) for array in arrays]
    numba_kernel = _Kernel.__new__(_Kernel)
    numba_kernel.extensions = []
    expected: list[Any] = []
    plain = (-3, 7, 1.5, 2.5, True)
    for kind, value in zip(kernel_of_all_types.signature, ((theirs[0], theirs[1]), (), *plain, theirs[2]), strict=True):
        numba_kernel._prepare_args(kind, value, 0, [], expected)
    of_numba = [one.to_bytes(8, "little", signed=True) if isinstance(one, int) else bytes(one) for one in expected]
    assert len(of_numba) == len(call.parameters)
    # A flag has eight bytes there, of which the driver copies one.
    assert all(one.startswith(ours) for one, ours in zip(of_numba, call.parameters, strict=True))


def _array_of_numba(array: Any, devicearray: Any) -> Any:
    memory = SimpleNamespace(device_ctypes_pointer=ctypes.c_void_p(_pointer(array)))
    return devicearray.DeviceNDArray((array.size,), (array.dtype.itemsize,), array.dtype, gpu_data=memory)


def test_numbers_have_the_bytes_that_cuda_core_passes() -> None:
    needs("cuda.core", "emulated")
    from cuda.core._kernel_arg_handler import ParamHolder
    from numba.cuda import types

    from gpu_pregel.host.devices.launches import parameter_kinds
    from gpu_pregel.host.devices.lowering import layout_of

    numbers: list[tuple[Any, Any, Any]] = [
        (types.int64, -3, ctypes.c_int64),
        (types.uint64, 2**64 - 1, ctypes.c_uint64),
        (types.uint32, 7, ctypes.c_uint32),
        (types.int8, -1, ctypes.c_int8),
        (types.float32, 1.5, ctypes.c_float),
        (types.float32, 1e300, ctypes.c_float),
        (types.float64, 2.5, ctypes.c_double),
        (types.boolean, True, bool),
        (types.boolean, False, bool),
        (types.boolean, np.False_, bool),
    ]
    holder = ParamHolder(tuple(as_c(number) for _, number, as_c in numbers))
    places = (ctypes.c_uint64 * len(numbers)).from_address(holder.ptr)
    for place, (kind, number, as_c) in zip(places, numbers, strict=True):
        packed = parameter_kinds(layout_of([kind]))[0](number)
        size = 1 if as_c is bool else ctypes.sizeof(as_c)
        assert (packed[:size], len(packed)) == (ctypes.string_at(place, size), 8)


def test_threads_that_launch_one_kernel_do_not_mix_their_parameters(recorded: RecordingLauncher) -> None:
    from numba.cuda import types

    from gpu_pregel.kernels.library.jit_cuda import kernel

    @kernel(types.uint32[::1], types.int64, types.int64)
    def put(out: Any, first: int, second: int) -> None:
        out[first] = second

    out = _array(1, np.uint32, 0x10000)
    recorded.launcher.launch(put, 1, (out, 0, 0))

    def work(number: int) -> None:
        for _ in range(50):
            recorded.launcher.launch(put, 1, (out, number, number))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    passed = Counter(int.from_bytes(call.parameters[-1], "little") for call in recorded.calls)
    # The first launch passed 0, too.
    assert passed == {0: 51, 1: 50, 2: 50, 3: 50}


def test_equal_kernels_are_loaded_once(recorded: RecordingLauncher) -> None:
    from numba.cuda import types

    from gpu_pregel.kernels.library.jit_cuda import kernel

    def make() -> Any:
        @kernel(types.uint32[::1])
        def clear_first(out: Any) -> None:
            out[0] = 0

        return clear_first

    for one in (make(), make()):
        recorded.launcher.launch(one, 1, (_array(1, np.uint32, 0x10000),))
    assert len(recorded.loaded) == 1


def test_a_kernel_can_be_launched_again_after_a_failure(
    recorded: RecordingLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cuda.bindings.driver import CUresult

    from gpu_pregel.host.devices.cuda_errors import is_cuda_error
    from gpu_pregel.kernels.algorithms import components_cuda

    def unknown(*_: Any) -> Any:
        raise ValueError("9999 is not a valid CUresult")

    labels = _array(8, np.uint32, 0x10000)
    for fail in (unknown, lambda *_: (CUresult.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,)):
        with monkeypatch.context() as patch:
            patch.setattr(recorded, "cuLaunchKernelEx", fail, raising=False)
            with pytest.raises(RuntimeError, match="the NVIDIA driver failed: cuLaunchKernelEx returned") as caught:
                recorded.launcher.launch(components_cuda.compress, 8, (labels,))
        assert is_cuda_error(caught.value)
        recorded.launcher.launch(components_cuda.compress, 8, (labels,))
    assert len(recorded.calls) == 2


@pytest.mark.usefixtures("young_heap")
def test_array_parameters_are_cached_while_the_array_exists() -> None:
    from numba.cuda import types

    from gpu_pregel.host.devices.launches import KernelParameters, parameter_kinds
    from gpu_pregel.host.devices.lowering import layout_of

    queried: list[int] = []

    def pointer(array: Any) -> int:
        queried.append(_pointer(array))
        return queried[-1]

    parameters, (double, flag) = (
        KernelParameters(pointer),
        parameter_kinds(layout_of([types.float64[::1], types.boolean])),
    )
    array = _array(4, np.float64, 0x4000)
    first = parameters.pack((double,), (array,))
    assert parameters.pack(((double, flag),), ((array, 1),)) == first + b"\1" + bytes(7)
    assert queried == [0x4000]
    assert parameters.pack((double,), (array[1:],)) == b"".join(_array_parameters(0x4008, 3, 8))
    assert queried == [0x4000, 0x4008]
    gc.collect()
    assert len(parameters._known) == 1
    del array
    gc.collect()
    assert not parameters._known


def test_an_array_is_passed_as_each_kernel_takes_it() -> None:
    from gpu_pregel.host.devices.launches import KernelParameters, parameter_kinds
    from gpu_pregel.kernels.library.parameters import ArrayParameter, count_words

    parameters, array, double = KernelParameters(_pointer), _array(4, np.float64, 0x4000), np.dtype(np.float64)
    layout = [ArrayParameter(double, 1, words) for words in (("address", "shape"), ("strides", "address"))]
    packed = [parameters.pack(parameter_kinds([one]), (array,)) for one in (*layout, layout[0])]
    expected = [(0x4000, 4), (8, 0x4000), (0x4000, 4)]
    assert packed == [b"".join(number.to_bytes(8, "little") for number in words) for words in expected]
    assert count_words([*layout, (layout[0], double), None]) == 8


def test_invalid_arguments() -> None:
    from numba.cuda import types

    from gpu_pregel.host.devices.launches import KernelParameters, parameter_kinds
    from gpu_pregel.host.devices.lowering import layout_of

    def kinds(*signature: Any) -> tuple[Any, ...]:
        return parameter_kinds(layout_of(signature))

    parameters, (byte,) = KernelParameters(_pointer), kinds(types.uint8[::1])
    flat = _array(8, np.uint8, 0)
    of_numba = type("DeviceNDArray", (), {"__cuda_array_interface__": {}, "flags": {"C_CONTIGUOUS": True}, "ndim": 1})
    for wrong in ([1], np.zeros(3, np.uint8), 5, flat[::2], flat.reshape(2, 4), of_numba()):
        with pytest.raises(
            ArgumentTypeError, match=rf"take contiguous arrays of one .*, not {type(wrong).__name__}: use"
        ):
            parameters.pack((byte,), (wrong,))
    with pytest.raises(ArgumentTypeError, match="the kernel expects an array of uint8, not of bool"):
        parameters.pack((byte,), (_array(8, np.bool_, 0),))
    with pytest.raises(TypeError, match="float"):
        parameters.pack(kinds(types.int64), (1.5,))
    with pytest.raises(ArgumentTypeError, match="do not take numbers of type complex128"):
        kinds(types.complex128)
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        parameters.pack((byte, byte), (_array(8, np.uint8, 0),))


def test_the_functions_of_the_driver_exist() -> None:
    driver = needs("cuda.bindings.driver", "emulated")
    for name in ("LaunchKernelEx", "FuncSetAttribute", "LibraryLoadData", "LibraryGetKernel", "KernelGetFunction"):
        assert callable(getattr(driver, f"cu{name}"))
    for name in ("CtxSetCurrent", "DeviceGet", "DeviceGetAttribute", "DevicePrimaryCtxRetain"):
        assert callable(getattr(driver, f"cu{name}"))
