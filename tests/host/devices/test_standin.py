"""Tests of the stand-in for a GPU: what fails on a GPU fails on it, and what a GPU defers is deferred."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import DeviceError, EmulationError, NotEnoughMemoryError
from gpu_pregel.host import devices
from gpu_pregel.host.devices import get_device, gpus, usable_devices
from gpu_pregel.host.devices.gpus import Gpus
from tests.host.devices import fake_cupy, standin
from tests.host.devices.standin import StandinGpu

pytestmark = pytest.mark.nvidia


@pytest.fixture
def gpu() -> StandinGpu:
    return StandinGpu()


@pytest.fixture
def device(gpu: StandinGpu) -> Iterator[Any]:
    with gpu.installed():
        yield get_device("cuda")


def compress(device: Any, *arguments: Any, size: int = 100) -> None:
    from gpu_pregel.kernels.algorithms import components_cuda

    device.launch(components_cuda.compress, size, *arguments)


def chain(size: int = 100) -> np.ndarray[Any, Any]:
    return np.maximum(np.arange(size, dtype=np.uint32), 1) - np.uint32(1)


def test_it_is_the_only_gpu_while_it_is_installed(gpu: StandinGpu) -> None:
    before = usable_devices()
    with gpu.installed():
        assert usable_devices() == ["cpu", "cuda:0", "emulated", "python"]
        assert get_device("auto").name == "cuda:0"
        with pytest.raises(DeviceError, match="this machine has 1 GPU,"):
            get_device("cuda:1")
    assert usable_devices() == before


def test_launches_run_when_their_stream_is_synchronised(gpu: StandinGpu, device: Any) -> None:
    labels = device.upload(chain())
    compress(device, labels)
    assert gpu.launches == 1
    assert gpu.machine.launches == 0
    # A stream that does not block finds not even what was uploaded.
    assert labels.get(stream=fake_cupy.Stream(non_blocking=True)).tolist() == [0xCDCDCDCD] * 100
    assert device.download(labels).tolist() == [0] * 100
    assert gpu.machine.launches == 1


def test_new_and_freed_memory_is_garbage(device: Any) -> None:
    assert set(device.download(device.empty(8, np.uint8))) == {0xCD}
    kept = device.upload(chain())
    pointer = kept.data.ptr
    compress(device, kept)
    result = device.empty(100, np.uint32)
    device._cupy.copy(result, kept, device._stream)
    del kept
    again = device.empty(100, np.uint32)
    assert again.data.ptr == pointer
    # It was freed after the copy.
    assert device.download(result).tolist() == [0] * 100
    compress(device, again)
    with pytest.raises(EmulationError, match="labels"):
        device.synchronize()


def test_the_error_of_a_kernel_stays_until_the_next_test(gpu: StandinGpu) -> None:
    with gpu.installed():
        device: Any = get_device("cuda")
        compress(device, device.upload(np.array([0, 7], np.uint32)), size=2)
        for _ in range(2):
            with pytest.raises(EmulationError, match="labels"):
                device.synchronize()
    with gpu.installed():
        assert get_device("cuda") is not device
        assert get_device("cuda").download(get_device("cuda").zeros(3, np.uint8)).tolist() == [0] * 3


def test_errors_of_launches_that_nobody_waits_for_are_raised_at_the_end(gpu: StandinGpu) -> None:
    def run() -> None:
        with gpu.installed():
            device: Any = get_device("cuda")
            compress(device, device.upload(np.array([0, 7], np.uint32)), size=2)

    with pytest.raises(EmulationError, match="labels"):
        run()


def test_a_launch_with_memory_that_is_not_allocated_fails(device: Any) -> None:
    labels = device.upload(chain())
    gone = labels.data.ptr
    device._launcher._parameters._pointer = lambda array: gone + 4
    with pytest.raises(DeviceError, match="cudaErrorIllegalAddress: no array has 400 bytes"):
        compress(device, labels)
    device._launcher._parameters._known.clear()
    device._launcher._parameters._pointer = lambda array: 0
    with pytest.raises(DeviceError, match="cudaErrorIllegalAddress: no array has 400 bytes at 0x0"):
        compress(device, labels)


def test_each_thread_makes_the_gpu_current(device: Any) -> None:
    labels, errors = device.upload(chain()), []
    compress(device, labels)
    device._launcher._thread.has_context = True

    def work() -> None:
        device._launcher._thread.has_context = True
        try:
            compress(device, labels)
        except DeviceError as error:
            errors.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert "CUDA_ERROR_INVALID_CONTEXT" in errors[0]


def test_memory_is_limited(device: Any) -> None:
    with pytest.raises(NotEnoughMemoryError):
        device.empty(1 << 50, np.uint8)


def test_parameters_are_decoded_by_the_types_of_the_kernel(device: Any) -> None:
    from numba.cuda import types

    from gpu_pregel.host.devices.launches import parameter_kinds
    from gpu_pregel.host.devices.lowering import layout_of

    signature = (types.float32, types.boolean, types.int64, types.Tuple((types.uint32[::1], types.float64)))
    array = device.upload(chain(3))
    kinds = parameter_kinds(layout_of(signature))
    packed = ctypes.create_string_buffer(device._launcher._parameters.pack(kinds, (1.5, True, -1, (array, 0.1))))
    places = range(ctypes.addressof(packed), ctypes.addressof(packed) + len(packed) - 1, 8)
    first, flag, number, (passed, last) = standin.PassedParameters(places).arguments(signature)
    assert (first, flag, number, passed.address, passed.size, last) == (1.5, True, -1, array.data.ptr, 3, 0.1)
    with pytest.raises(AssertionError, match="more parameters"):
        standin.PassedParameters([*places, 0]).arguments(signature)
    with pytest.raises(AssertionError, match="fewer parameters"):
        standin.PassedParameters(places[:-1]).arguments(signature)
    packed[6 * 8] = b"\x08"
    with pytest.raises(AssertionError, match="itemsize"):
        standin.PassedParameters(places).arguments(signature)


def test_memory_is_allocated_on_the_current_stream(gpu: StandinGpu) -> None:
    with pytest.raises(AssertionError, match="without a current device and stream"):
        gpu.cupy.empty(3, np.uint8)
    assert not fake_cupy.stack


def test_each_kernel_is_loaded_once_and_launched_in_blocks_or_together(gpu: StandinGpu) -> None:
    from numba import cuda
    from numba.cuda import types

    from gpu_pregel.kernels.library.jit_cuda import kernel

    @kernel(types.uint32[::1], types.int64, cooperative=True)
    def fill(out: Any, value: int) -> None:
        for i in range(cuda.grid(1), len(out), cuda.gridsize(1)):
            out[i] = value

    with gpu.installed():
        before = len(gpu.driver.loaded)
        device: Any = get_device("cuda")
        labels = device.upload(chain())
        compress(device, labels)
        assert device.download(labels).tolist() == [0] * 100
        many = device.empty(5000, np.uint32)
        device.launch(fill, 5000, many, 7)
        device.launch(fill, 100, labels, 8)
        assert set(device.download(many)) == {7}
        assert set(device.download(labels)) == {8}
        assert gp.connected_components(gp.grid(12, holes=0), device="cuda").to_numpy().tolist() == [0] * 144
    loaded = [one.name for one in gpu.driver.loaded[before:]]
    assert loaded.count("fill") == 1
    assert len(loaded) == len(set(loaded))


def test_kernels_with_dynamic_shared_memory_and_clusters_run(gpu: StandinGpu) -> None:
    from numba import cuda
    from numba.cuda import types

    from gpu_pregel.kernels.library.jit_cuda import kernel

    @kernel(types.int64[::1], dynamic_shared=64 << 10, cluster=4, items=1)
    def count_blocks(out: Any) -> None:
        numbers = cuda.shared.array(0, types.int64)
        numbers[len(numbers) - 1 - cuda.threadIdx.x] = cuda.gridDim.x
        cuda.syncthreads()
        if cuda.threadIdx.x == 0 and cuda.blockIdx.x < len(out):
            out[cuda.blockIdx.x] = numbers[len(numbers) - 256]

    with gpu.installed():
        device: Any = get_device("cuda")
        out = device.empty(5, np.int64)
        device.launch(count_blocks, 5, out)
        assert device.download(out).tolist() == [8] * 5
        # Without the attribute of the function, the driver would refuse the launch.
        gpu.driver.dynamic_shared.clear()
        with pytest.raises(DeviceError, match="CUDA_ERROR_INVALID_VALUE"):
            device.launch(count_blocks, 5, out)


def test_a_chip_that_is_newer_than_the_packages_is_refused_before_any_work(gpu: StandinGpu) -> None:
    newer = replace(standin.H100, compute_capability=(99, 0))
    with gpu.installed(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpus, "_query", lambda: Gpus((newer,), (13, 0)))
        with pytest.raises(DeviceError, match=r"does not support compute capability 99\.0"):
            get_device("cuda")


def test_a_driver_that_gives_no_context(gpu: StandinGpu) -> None:
    from cuda.bindings.driver import CUresult

    with gpu.installed(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(devices, "_devices", {})
        patch.setattr(
            gpu.driver, "cuDevicePrimaryCtxRetain", lambda device: (CUresult.CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,)
        )
        with pytest.raises(DeviceError, match=r"cuDevicePrimaryCtxRetain returned CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"):
            get_device("cuda")
