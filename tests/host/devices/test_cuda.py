"""Tests of a GPU as a device, without one: CuPy and the driver are stood in for, Numba-CUDA compiles in earnest."""

from __future__ import annotations

import ctypes
import gc
import inspect
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gpu_pregel.errors import ArgumentTypeError, DeviceError, MissingPackageError, NotEnoughMemoryError
from gpu_pregel.host import devices
from gpu_pregel.host.devices import cuda, gpus
from gpu_pregel.host.devices.gpus import Gpu, Gpus
from tests.host.devices import fake_cupy
from tests.host.devices.fake_cupy import FakeCupy

H100 = Gpu(0, "NVIDIA H100", (9, 0), 80 << 30)


class FakeLauncher:
    """Runs a plain function where a kernel would be, in the order of the stream."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.failures: list[Exception] = []

    def launch(self, kernel: Callable[..., None], size: int, arguments: tuple[Any, ...]) -> None:
        """Put it on the stream."""
        assert isinstance(fake_cupy.stack[-2], fake_cupy.Device)
        if self.failures:
            raise self.failures.pop()
        memories = [one.data.memory if isinstance(one, fake_cupy.ndarray) else one for one in arguments]
        self.stream.work.append(lambda: kernel(size, *memories))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeCupy:
    pytest.importorskip("cupy")
    from gpu_pregel.host.devices import cupy_calls

    fake = FakeCupy()
    monkeypatch.setattr(cupy_calls, "cupy", fake)
    monkeypatch.setattr(cuda, "find_gpu", lambda number: H100)
    monkeypatch.setattr(cuda, "_make_launcher", lambda gpu, stream, calls: FakeLauncher(stream))
    return fake


@pytest.fixture
def device(fake: FakeCupy) -> cuda.CudaDevice:
    return cuda.CudaDevice(1)


def test_what_a_device_is(device: cuda.CudaDevice) -> None:
    assert (device.name, device.threads, device.is_host) == ("cuda:1", None, False)
    assert device._device.id == 1
    if find_spec("numba_cuda") is not None:
        assert device.kernels("components").compress.name == "compress"


@pytest.mark.parametrize("array", [np.arange(5), np.zeros(0, np.float32), np.arange(100_000, dtype=np.uint32)[::3]])
def test_arrays_go_up_and_come_down(device: cuda.CudaDevice, array: np.ndarray[Any, Any]) -> None:
    expected = array.copy()
    uploaded = device.upload(array)
    array[:] = 7
    down = device.download(uploaded)
    assert down.dtype == expected.dtype
    assert down.tolist() == expected.tolist()


@pytest.mark.parametrize("size", [0, 1, 5, 1 << 14, (1 << 14) + 1, 100_001])
@pytest.mark.parametrize("value", [0, 7, np.inf])
def test_zeros_and_full(device: cuda.CudaDevice, size: int, value: float) -> None:
    assert device.download(device.zeros(size, np.uint16)).tolist() == [0] * size
    assert device.download(device.full(size, value, np.float32)).tolist() == [value] * size


def test_small_readbacks_go_through_one_pinned_buffer(device: cuda.CudaDevice, fake: FakeCupy) -> None:
    small, large = np.arange(100, dtype=np.int64), np.arange(10_000, dtype=np.int64)
    first, second = device.download(device.upload(small)), device.download(device.upload(small + 1))
    assert first.tolist() == small.tolist()
    assert second.tolist() == (small + 1).tolist()
    assert fake.pinned == [cuda.STAGING]
    assert device.download(device.upload(large)).tolist() == large.tolist()
    assert fake.pinned == [cuda.STAGING]
    flags = np.array([True, False, True])
    assert device.download(device.upload(flags)).tolist() == [True, False, True]


def test_a_launch_returns_before_the_kernel_has_run(device: cuda.CudaDevice) -> None:
    done: list[int] = []
    ticks: list[tuple[int, int]] = []

    def kernel(size: int, array: np.ndarray[Any, Any], addend: int) -> None:
        done.append(size)
        array += np.uint32(addend)

    array = device.upload(np.arange(4, dtype=np.uint32))
    device.launch(kernel, 4, array, 3, tick=lambda *row: ticks.append(row))
    device.launch(kernel, 0, array, 3)
    assert (done, ticks) == ([], [(4, 4)])
    assert device.download(array).tolist() == [3, 4, 5, 6]
    device.launch(kernel, 4, array, 1, chunk=2)
    device.synchronize()
    assert done == [4, 4]


def test_memory_that_is_missing_is_told_before_and_on_the_way(device: cuda.CudaDevice, fake: FakeCupy) -> None:
    fake.memory.free, fake.memory.pooled = 1 << 20, 1 << 20
    device.require(2 << 20, "a run")
    with pytest.raises(
        NotEnoughMemoryError, match=r"a run needs 2\.0 MiB of memory on device cuda:1, and 2\.0 MiB are"
    ):
        device.require((2 << 20) + 1, "a run")
    kept = device.full(100, 5, np.uint8)
    assert fake.memory.trims == 0
    # The pool's memory is found by trimming it.
    assert device.empty(3 << 18, np.uint16).size == 3 << 18
    assert fake.memory.trims == 1
    with pytest.raises(NotEnoughMemoryError, match=r"array of 3\.0 MiB finds no memory on device cuda:1, and 2\.0 MiB"):
        device.zeros(3 << 20, np.uint8)
    assert fake.memory.trims == 2
    assert device.download(kept).tolist() == [5] * 100


def test_a_launch_that_finds_no_memory_is_tried_again(device: cuda.CudaDevice, fake: FakeCupy) -> None:
    array = device.zeros(1, np.uint8)

    def kernel(size: int, array: np.ndarray[Any, Any]) -> None:
        array += np.uint8(1)

    failure = RuntimeError("[2] Call to cuModuleLoadDataEx results in CUDA_ERROR_OUT_OF_MEMORY")
    device._launcher.failures = [failure]
    device.launch(kernel, 1, array)
    assert (device.download(array).tolist(), fake.memory.trims) == ([1], 1)
    device._launcher.failures = [failure, failure]
    with pytest.raises(NotEnoughMemoryError, match="a kernel finds no memory"):
        device.launch(kernel, 1, array)


def test_errors_of_cuda_are_ours_and_others_stay(device: cuda.CudaDevice) -> None:
    device._stream.failure = fake_cupy.CUDARuntimeError("cudaErrorIllegalAddress: an illegal memory access")
    with pytest.raises(DeviceError, match=r"'cuda:1': cudaErrorIllegalAddress.*; .*'emulated'"):
        device.synchronize()
    with pytest.raises(ArgumentTypeError, match="only NumPy arrays are uploaded, not list"):
        device.upload([1, 2])
    device._launcher.failures = [ZeroDivisionError("in our own code")]
    with pytest.raises(ZeroDivisionError):
        device.launch(print, 1)
    assert not fake_cupy.stack


def test_bandwidth_counts_reads_and_writes(device: cuda.CudaDevice) -> None:
    assert device.copy_bandwidth(1000, trials=2) == 2 * 1000 / 0.002


def test_a_setup_that_fails_names_the_extra_for_the_driver(fake: FakeCupy, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise fake_cupy.CUDARuntimeError("cudaErrorInsufficientDriver: CUDA driver version is insufficient")

    monkeypatch.setattr(cuda, "_make_launcher", fail)
    for version, extra in (((12, 4), "cuda12"), ((13, 1), "cuda13")):
        monkeypatch.setattr(cuda, "gpus", lambda version=version: Gpus((H100,), version))
        with pytest.raises(DeviceError, match=rf"InsufficientDriver.*pip install gpu-pregel\[{extra}\]"):
            cuda.CudaDevice()


# What the driver tells.


class FakeDriver:
    """NVIDIA's driver, with two GPUs unless it fails."""

    def __init__(self, status: int = 0, count: int = 2) -> None:
        self.status = status
        self.count = count

    def cuInit(self, flags: int) -> int:  # noqa: N802
        return self.status

    def cuGetErrorName(self, status: int, text: Any) -> int:  # noqa: N802
        text._obj.value = b"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"
        return 0

    def cuDriverGetVersion(self, version: Any) -> int:  # noqa: N802
        version._obj.value = 13010
        return 0

    def cuDeviceGetCount(self, count: Any) -> int:  # noqa: N802
        count._obj.value = self.count
        return 0

    def cuDeviceGet(self, device: Any, number: int) -> int:  # noqa: N802
        device._obj.value = 40 + number
        return 0

    def cuDeviceGetName(self, name: Any, size: int, device: int) -> int:  # noqa: N802
        name.value = b"NVIDIA H%d" % device
        return 0

    def cuDeviceGetAttribute(self, value: Any, attribute: int, device: int) -> int:  # noqa: N802
        value._obj.value = {75: 9, 76: device - 40}[attribute]
        return 0

    def cuDeviceTotalMem_v2(self, size: Any, device: int) -> int:  # noqa: N802
        assert isinstance(size._obj, ctypes.c_size_t)
        size._obj.value = 80 << 30
        return 0


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Any], None]]:
    def load(driver: Any) -> None:
        gpus._ask.cache_clear()

        def open_library(name: str) -> Any:
            assert name == "libcuda.so.1"
            if driver is None:
                raise OSError(name)
            return driver

        monkeypatch.setattr(ctypes, "CDLL", open_library)

    yield load
    gpus._ask.cache_clear()


def test_the_driver_is_asked_for_its_gpus(driver: Callable[[Any], None]) -> None:
    driver(FakeDriver())
    first, second = Gpu(0, "NVIDIA H40", (9, 0), 80 << 30), Gpu(1, "NVIDIA H41", (9, 1), 80 << 30)
    assert gpus.gpus() == Gpus((first, second), (13, 1))


@pytest.mark.parametrize(
    ("fake_driver", "message"),
    [
        (None, "there is no NVIDIA driver: libcuda.so.1 cannot be loaded"),
        (FakeDriver(100), "the NVIDIA driver finds no GPU"),
        (FakeDriver(803), r"cuInit returns CUDA_ERROR_SYSTEM_DRIVER_MISMATCH \(803\)"),
        (FakeDriver(0, 0), "finds no GPU that this process may use: look at CUDA_VISIBLE_DEVICES"),
    ],
)
def test_reasons_for_no_gpu(driver: Callable[[Any], None], fake_driver: Any, message: str) -> None:
    driver(fake_driver)
    with pytest.raises(DeviceError, match=f"device 'cuda:0' cannot be used: .*{message}"):
        cuda.CudaDevice()
    assert re.search(message, str(cuda.why_unusable()))


def test_a_gpu_that_is_not_there_or_too_old(driver: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch) -> None:
    driver(FakeDriver())
    with pytest.raises(DeviceError, match="'cuda:2' cannot be used: there are 2 GPUs, numbered from 0"):
        cuda.find_gpu(2)
    monkeypatch.setattr(cuda, "OLDEST", (9, 1))
    with pytest.raises(DeviceError, match=r"NVIDIA H40 has compute capability 9\.0, and 9\.1 is the least"):
        cuda.find_gpu(0)


def test_packages_that_are_missing(driver: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch) -> None:
    driver(FakeDriver())
    monkeypatch.setattr(cuda, "find_spec", lambda module: None)
    with pytest.raises(
        MissingPackageError, match=r"numba-cuda and cupy not installed; pip install gpu-pregel\[cuda13\]"
    ):
        cuda.find_gpu(0)
    monkeypatch.setattr(cuda, "find_spec", lambda module: object())
    assert cuda.find_gpu(1).name == "NVIDIA H41"
    assert cuda.why_unusable() is None


def test_nothing_of_cuda_is_imported_with_the_devices() -> None:
    program = (
        "import sys, gpu_pregel.host.devices.cuda as d\n"
        "assert d.why_unusable() is not None or 'cupy' not in sys.modules\n"
        "assert not {'cupy', 'numba.cuda', 'gpu_pregel.host.devices.launches'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


# What reaches the driver.


class Recorded:
    """A launcher of a GPU that is not there, and what it launches."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from gpu_pregel.host.devices import launches

        self.calls: list[tuple[Any, Any, Any, list[Any]]] = []
        self.current: list[int] = []
        self.loaded: list[Any] = []
        self.launcher = launches.Launcher(3, (9, 0), 0x51, _pointer)

        def launch(stream: Any, config: Any, kernel: Any, *arguments: Any) -> None:
            ParamHolder(arguments)  # refuses what cuda-core cannot hand over
            self.calls.append((stream, config, kernel, list(arguments)))

        from cuda.core._kernel_arg_handler import ParamHolder

        monkeypatch.setattr(launches, "launch", launch)
        monkeypatch.setattr(
            launches, "Device", lambda number: SimpleNamespace(set_current=lambda: self.current.append(number))
        )
        monkeypatch.setattr(launches, "load", self.load)

    def load(self, kernel: Any, cc: tuple[int, int]) -> Any:
        """Compile for a chip and link, but load nothing; the kernel is its PTX."""
        from gpu_pregel.host.devices import launches
        from gpu_pregel.host.devices.lowering import to_ptx

        assert cc == (9, 0)
        code, entry = launches.link(kernel, cc)
        assert code.code[:4] == b"\x7fELF"
        assert f".text.{entry}".encode() in code.code
        self.loaded.append(kernel)
        return to_ptx(kernel.function, kernel.signature, cc, block=kernel.block)


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Recorded:
    pytest.importorskip("numba_cuda")
    pytest.importorskip("cupy")
    return Recorded(monkeypatch)


def _array(size: int, dtype: Any, address: int) -> Any:
    """A real CuPy array, of memory that is not there."""
    import cupy

    memory = cupy.cuda.UnownedMemory(address, max(size * np.dtype(dtype).itemsize, 1), None, 0)
    return cupy.ndarray((size,), dtype, cupy.cuda.MemoryPointer(memory, 0))


def _pointer(array: Any) -> int:
    return int(array.data.ptr)


def _as_parameters(pointer: int, size: int, itemsize: int) -> list[int]:
    return [0, 0, size, itemsize, pointer, size, itemsize]


def test_a_kernel_is_compiled_once_and_launched_on_the_stream(recorded: Recorded) -> None:
    from gpu_pregel.kernels import components_cuda

    launch, kernel = recorded.launcher.launch, components_cuda.initialise
    indptr, indices = _array(1001, np.uint32, 0x10000), _array(0, np.uint32, 0)
    labels = _array(1000, np.uint32, 0x30000)
    for size in (1000, 1000, 100):
        launch(kernel, size, (indptr, indices, labels))
    (stream, first, ptx, arguments), second, third = recorded.calls
    assert int(stream.handle) == 0x51
    assert (first.grid, first.block, third[1].grid) == ((4, 1, 1), (256, 1, 1), (1, 1, 1))
    expected = [*_as_parameters(0x10000, 1001, 4), *_as_parameters(0, 0, 4), *_as_parameters(0x30000, 1000, 4)]
    assert arguments == second[3] == third[3] == expected
    assert len(recorded.loaded) == 1
    assert ".target sm_90" in ptx
    assert len(re.findall(r"\.maxntid 256\b", ptx)) == 1
    # The other width of offsets is another kernel.
    launch(kernel, 1000, (_array(1001, np.int64, 0x10000), indices, labels))
    assert recorded.calls[-1][3][:7] == _as_parameters(0x10000, 1001, 8)
    assert len(recorded.loaded) == 2
    assert recorded.current == [3]
    thread = threading.Thread(target=launch, args=(kernel, 1000, (indptr, indices, labels)))
    thread.start()
    thread.join()
    assert recorded.current == [3, 3]


def test_a_block_may_have_other_items_than_threads(recorded: Recorded) -> None:
    from gpu_pregel.kernels import components_cuda

    largest, labels = _array(1, np.uint32, 0x10000), _array(1000, np.uint32, 0x30000)
    recorded.launcher.launch(components_cuda.estimate_largest, 1, (labels, largest))
    assert (recorded.calls[0][1].grid, recorded.calls[0][1].block) == ((1, 1, 1), (1024, 1, 1))


def test_parameters_are_those_of_the_code_and_of_numba(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    from numba.cuda import types
    from numba.cuda.cudadrv import devicearray
    from numba.cuda.dispatcher import _Kernel

    from gpu_pregel.kernels.jit_cuda import kernel

    floats, words = types.float32[::1], types.uint32[::1]
    numbers = (types.int64, types.uint32, types.float32, types.float64, types.boolean)

    @kernel(types.Tuple((floats, words)), types.Tuple(()), *numbers, words)
    def of_all_kinds(arrays: Any, nothing: Any, a: Any, b: Any, c: Any, d: Any, e: Any, out: Any) -> None:
        if e:
            out[0] = arrays[1][0] + a + b + np.uint32(c + d + arrays[0][0])

    arrays = [_array(3, np.float32, 0x1000), _array(5, np.uint32, 0x2000), _array(1, np.uint32, 0x3000)]
    given = (np.int64(-3), 7, np.float32(1.5), 2.5, np.bool_(True))
    recorded.launcher.launch(of_all_kinds, 1, ((arrays[0], arrays[1]), (), *given, arrays[2]))
    _, _, ptx, parameters = recorded.calls[0]
    declared = re.findall(r"\.param \.([uf]\d+)", ptx.split(".entry")[1].split(")")[0])
    assert list(map(_size, parameters)) == [{"u64": 8, "u32": 4, "f32": 4, "f64": 8, "u8": 1}[one] for one in declared]
    theirs = [_array_of_numba(array, devicearray) for array in arrays]
    numba_kernel = _Kernel.__new__(_Kernel)
    numba_kernel.extensions = []
    expected: list[Any] = []
    plain = (-3, 7, 1.5, 2.5, True)
    for kind, value in zip(of_all_kinds.signature, ((theirs[0], theirs[1]), (), *plain, theirs[2]), strict=True):
        numba_kernel._prepare_args(kind, value, 0, [], expected)
    assert [(type(one), getattr(one, "value", one)) for one in parameters] == [
        (type(one), getattr(one, "value", one)) for one in expected
    ]


def _size(parameter: Any) -> int:
    """Bytes that cuda-core hands over."""
    if isinstance(parameter, bool):
        return 1
    return 8 if isinstance(parameter, int) else ctypes.sizeof(parameter)


def _array_of_numba(array: Any, devicearray: Any) -> Any:
    memory = SimpleNamespace(device_ctypes_pointer=ctypes.c_void_p(_pointer(array)))
    return devicearray.DeviceNDArray((array.size,), (array.dtype.itemsize,), array.dtype, gpu_data=memory)


def test_arrays_are_looked_at_once_and_forgotten_with_them() -> None:
    pytest.importorskip("numba_cuda")
    pytest.importorskip("cupy")
    from gpu_pregel.host.devices.launches import Arguments

    asked: list[int] = []

    def pointer(array: Any) -> int:
        asked.append(_pointer(array))
        return asked[-1]

    arguments, double = Arguments(pointer), np.dtype(np.float64)
    array = _array(4, np.float64, 0x4000)
    first = arguments.flatten((double,), (array,))
    assert arguments.flatten(((double, bool),), ((array, 1),)) == [*first, True]
    assert asked == [0x4000]
    assert arguments.flatten((double,), (array[1:],)) == _as_parameters(0x4008, 3, 8)
    assert asked == [0x4000, 0x4008]
    gc.collect()
    assert len(arguments._known) == 1
    del array
    gc.collect()
    assert not arguments._known


def test_arguments_that_are_refused() -> None:
    pytest.importorskip("numba_cuda")
    pytest.importorskip("cupy")
    from numba.cuda import types

    from gpu_pregel.host.devices.launches import Arguments, kind_of

    arguments, byte = Arguments(_pointer), kind_of(types.uint8[::1])
    for wrong in ([1], np.zeros(3, np.uint8), 5, _array(8, np.uint8, 0)[::2]):
        with pytest.raises(TypeError, match="a kernel takes contiguous arrays of one dimension on its device"):
            arguments.flatten((byte,), (wrong,))
    with pytest.raises(TypeError, match="an array of uint8 here, not of bool"):
        arguments.flatten((byte,), (_array(8, np.bool_, 0),))
    with pytest.raises(TypeError, match="float"):
        arguments.flatten((kind_of(types.int64),), (1.5,))
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        arguments.flatten((byte, byte), (_array(8, np.uint8, 0),))


def test_what_we_call_of_cuda_core_is_there() -> None:
    core = pytest.importorskip("cuda.core")
    inspect.signature(core.launch).bind("stream", "config", "kernel", 1, 2)
    inspect.signature(core.Stream.from_handle).bind(0x51)
    config = core.LaunchConfig(grid=3, block=256)
    assert (config.grid, config.block, config.is_cooperative) == ((3, 1, 1), (256, 1, 1), False)
    assert callable(core.Device.set_current)
    assert callable(core.ObjectCode.get_kernel)


# On a GPU.


@pytest.mark.gpu
def test_on_a_gpu() -> None:
    from gpu_pregel.kernels import components_cuda

    device = devices.get_device("cuda")
    assert isinstance(device, cuda.CudaDevice)
    n = 100_000
    labels = device.upload(np.maximum(np.arange(n, dtype=np.uint32), 1) - np.uint32(1))
    device.launch(components_cuda.compress, n, labels)
    assert not device.download(labels).any()
    assert device.download(device.full(n, 3, np.float64)).tolist() == [3.0] * n
    assert device.download(device.zeros(n, np.uint8)).sum() == 0
    assert device.copy_bandwidth(1 << 24) > 1e9
    with pytest.raises(NotEnoughMemoryError):
        device.empty(1 << 50, np.uint8)
    device.require(1 << 20, "a test")
    device.trim()
