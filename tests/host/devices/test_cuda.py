"""Tests of a GPU as a device without a GPU: a fake CuPy defers the work on a stream until it is waited for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from gpu_pregel.errors import ArgumentTypeError, DeviceError, NotEnoughMemoryError
from gpu_pregel.host import devices
from gpu_pregel.host.devices import cuda, uploads
from gpu_pregel.host.devices.gpus import Gpu, Gpus
from tests.host.devices import fake_cupy
from tests.host.devices.fake_cupy import FakeCupy

H100 = Gpu(0, "NVIDIA H100", (9, 0), 80 << 30)


class FakeLauncher:
    """Runs a plain function in place of a kernel, in the order of the stream."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.failures: list[Exception] = []

    def launch(self, kernel: Callable[..., None], size: int, arguments: tuple[Any, ...]) -> None:
        """Append the kernel to the stream."""
        assert isinstance(fake_cupy.stack[-2], fake_cupy.Device)
        if self.failures:
            raise self.failures.pop()
        memories = [one.memory if isinstance(one, fake_cupy.ndarray) else one for one in arguments]
        self.stream.work.append(lambda: kernel(size, *memories))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeCupy:
    fake = fake_cupy.install(monkeypatch)
    monkeypatch.setattr(cuda, "find_gpu", lambda number: H100)
    monkeypatch.setattr(cuda, "_make_launcher", lambda gpu, stream, calls: FakeLauncher(stream))
    return fake


@pytest.fixture
def device(fake: FakeCupy) -> cuda.CudaDevice:
    return cuda.CudaDevice(1)


def test_attributes_of_a_device(device: cuda.CudaDevice) -> None:
    assert (device.name, device.threads, device.is_host) == ("cuda:1", None, False)
    assert device._device.id == 1
    if find_spec("numba_cuda") is not None:
        assert device.kernels("components").compress.name == "compress"


@pytest.mark.parametrize("array", [np.arange(5), np.zeros(0, np.float32), np.arange(100_000, dtype=np.uint32)[::3]])
def test_upload_and_download(device: cuda.CudaDevice, array: np.ndarray[Any, Any]) -> None:
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


def test_small_readbacks_share_one_pinned_buffer(device: cuda.CudaDevice, fake: FakeCupy) -> None:
    small, large = np.arange(100, dtype=np.int64), np.arange(10_000, dtype=np.int64)
    first, second = device.download(device.upload(small)), device.download(device.upload(small + 1))
    assert first.tolist() == small.tolist()
    assert second.tolist() == (small + 1).tolist()
    assert device.download(device.upload(large)).tolist() == large.tolist()
    assert sorted(fake.pinned) == [cuda.STAGING_BYTES, uploads.UPLOAD_BYTES, uploads.UPLOAD_BYTES]
    flags = np.array([True, False, True])
    assert device.download(device.upload(flags)).tolist() == [True, False, True]


def test_a_launch_is_asynchronous(device: cuda.CudaDevice) -> None:
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


def test_too_little_memory_is_reported_before_and_during_allocation(device: cuda.CudaDevice, fake: FakeCupy) -> None:
    fake.memory.free, fake.memory.pooled = 1 << 20, 1 << 20
    device.require(2 << 20, "a run")
    with pytest.raises(
        NotEnoughMemoryError, match=r"a run needs 2\.0 MiB of memory on device cuda:1, but only 2\.0 MiB are"
    ):
        device.require((2 << 20) + 1, "a run")
    kept = device.full(100, 5, np.uint8)
    assert fake.memory.trims == 0
    # The allocation succeeds after the pool has been trimmed.
    assert device.empty(3 << 18, np.uint16).size == 3 << 18
    assert fake.memory.trims == 1
    with pytest.raises(
        NotEnoughMemoryError, match=r"array of 3\.0 MiB needs memory on device cuda:1, but only 2\.0 MiB"
    ):
        device.zeros(3 << 20, np.uint8)
    assert fake.memory.trims == 2
    assert device.download(kept).tolist() == [5] * 100


def test_the_memory_of_another_allocator_is_not_refused_before_it_has_been_asked(
    device: cuda.CudaDevice, fake: FakeCupy
) -> None:
    """As a pool of RMM, which has reserved nearly all memory of the GPU, so that the driver finds none."""
    fake.memory.free, fake.allocator = 1 << 10, lambda size: None
    reserved, take = 64 << 20, fake.memory.take

    def take_of_pool(size: int, number: int) -> Any:
        if size > reserved:
            raise MemoryError("std::bad_alloc: out_of_memory: Maximum pool size exceeded")
        fake.memory.free = reserved
        block = take(size, number)
        fake.memory.free = 1 << 10
        return block

    fake.memory.take = take_of_pool  # type: ignore[method-assign, assignment]
    device.require(32 << 20, "a run")
    assert device.available_memory() is None
    assert device.download(device.full(1 << 20, 7, np.uint8)).tolist() == [7] * (1 << 20)
    device.require(1 << 40, "a run")
    with pytest.raises(
        NotEnoughMemoryError,
        match=r"array of 128\.0 MiB needs memory on device cuda:1, but CuPy's allocator has no more: let its pool grow",
    ):
        device.empty(128 << 20, np.uint8)


def test_a_launch_that_runs_out_of_memory_is_retried(device: cuda.CudaDevice, fake: FakeCupy) -> None:
    array = device.zeros(1, np.uint8)

    def kernel(size: int, array: np.ndarray[Any, Any]) -> None:
        array += np.uint8(1)

    failure = RuntimeError("[2] Call to cuModuleLoadDataEx results in CUDA_ERROR_OUT_OF_MEMORY")
    device._launcher.failures = [failure]
    device.launch(kernel, 1, array)
    assert (device.download(array).tolist(), fake.memory.trims) == ([1], 1)
    device._launcher.failures = [failure, failure]
    with pytest.raises(NotEnoughMemoryError, match="a kernel needs memory on device"):
        device.launch(kernel, 1, array)


def test_too_little_page_locked_memory(device: cuda.CudaDevice, fake: FakeCupy) -> None:
    def fail(size: int) -> None:
        raise fake_cupy.CUDARuntimeError("cudaErrorMemoryAllocation: out of memory")

    allocate, fake.cuda.alloc_pinned_memory = fake.cuda.alloc_pinned_memory, fail
    for call in (lambda: device.upload(np.arange(5)), lambda: device.download(device.zeros(5, np.uint8))):
        with pytest.raises(NotEnoughMemoryError, match=r"device 'cuda:1': cuda.*page-locked memory on the host: end"):
            call()
    fake.cuda.alloc_pinned_memory = allocate
    assert device.download(device.upload(np.arange(5))).tolist() == [0, 1, 2, 3, 4]


def test_arrays_of_a_lost_gpu_are_released_silently(
    device: cuda.CudaDevice, fake: FakeCupy, monkeypatch: pytest.MonkeyPatch
) -> None:
    unraisable: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    adopted = device.adopt(fake_cupy.array_of([1, 2], np.int32))
    device._stream.failure = fake_cupy.CUDARuntimeError("cudaErrorECCUncorrectable: uncorrectable ECC error")
    del adopted
    assert unraisable == []
    with pytest.raises(DeviceError, match="ECCUncorrectable"):
        device.synchronize()


def test_cuda_errors_are_converted_and_others_are_not(device: cuda.CudaDevice) -> None:
    device._stream.failure = fake_cupy.CUDARuntimeError("cudaErrorIllegalAddress: an illegal memory access")
    with pytest.raises(DeviceError, match=r"'cuda:1': cudaErrorIllegalAddress.*; .*'emulated'"):
        device.synchronize()
    device._stream.failure = fake_cupy.CUDARuntimeError("cudaErrorECCUncorrectable: uncorrectable ECC error")
    with pytest.raises(DeviceError, match=r"the GPU has failed or is not available any more: .*Xid.* new process"):
        device.synchronize()
    with pytest.raises(ArgumentTypeError, match="only NumPy arrays can be uploaded, not list"):
        device.upload([1, 2])
    device._launcher.failures = [ZeroDivisionError("in our own code")]
    with pytest.raises(ZeroDivisionError):
        device.launch(print, 1)
    assert not fake_cupy.stack


def test_bandwidth_counts_reads_and_writes(device: cuda.CudaDevice) -> None:
    assert device.copy_bandwidth(1000, trials=2) == 2 * 1000 / 0.002


def test_a_failed_setup_names_the_extra_that_matches_the_driver(
    fake: FakeCupy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise fake_cupy.CUDARuntimeError("cudaErrorInsufficientDriver: CUDA driver version is insufficient")

    monkeypatch.setattr(cuda, "_make_launcher", fail)
    for version, extra in (((12, 4), "cuda12"), ((13, 1), "cuda13")):
        monkeypatch.setattr(cuda, "gpus", lambda version=version: Gpus((H100,), version))
        with pytest.raises(DeviceError, match=rf"InsufficientDriver.*pip install gpu-pregel\[{extra}\]"):
            cuda.CudaDevice()


@pytest.mark.parametrize(
    ("failure", "kind", "advice"),
    [
        ("cudaErrorMemoryAllocation: out of memory", NotEnoughMemoryError, "end other programs that use them"),
        ("cudaErrorDevicesUnavailable: CUDA-capable device(s) is/are busy", DeviceError, "nvidia-smi"),
    ],
)
def test_a_setup_that_the_gpu_prevents_needs_no_other_packages(
    fake: FakeCupy, monkeypatch: pytest.MonkeyPatch, failure: str, kind: Any, advice: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise fake_cupy.CUDARuntimeError(failure)

    monkeypatch.setattr(fake.cuda, "Stream", fail)
    with pytest.raises(kind, match=rf"'cuda:0': cudaError.*{advice}") as found:
        cuda.CudaDevice()
    assert "pip install" not in str(found.value)
    monkeypatch.setattr(devices, "_devices", {})
    monkeypatch.setattr(cuda, "unavailable_reason", lambda: None)
    monkeypatch.setattr(devices, "find_spec", lambda module: object())
    with pytest.warns(RuntimeWarning, match=f"device 'auto' uses the CPU: .*{advice}"):
        assert not devices._has_gpu.__wrapped__()


# On a GPU.


@pytest.mark.gpu
def test_on_a_gpu() -> None:
    from gpu_pregel.kernels.algorithms import components_cuda

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
