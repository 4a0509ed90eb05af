"""Tests of the names, the selection and the reuse of devices, and of their common methods."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

from gpu_pregel.errors import ArgumentError, DeviceError, GpuPregelError, MissingPackageError
from gpu_pregel.host import devices
from gpu_pregel.host.devices import cuda, get_device
from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.devices.threads import available_threads

needs_numba_cuda = pytest.mark.skipif(find_spec("numba_cuda") is None, reason="numba-cuda is not installed")


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Isolate each test from the devices of other tests."""
    monkeypatch.setattr(devices, "_devices", {})
    monkeypatch.delenv(devices.DEVICE_VARIABLE, raising=False)
    devices._has_gpu.cache_clear()
    yield
    devices._has_gpu.cache_clear()


class FakeGpu:
    """A substitute for a GPU."""

    def __init__(self, number: int) -> None:
        self.name = f"cuda:{number}"


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a machine with a GPU and its packages."""
    monkeypatch.setattr(devices, "find_spec", lambda module: object())
    monkeypatch.setattr(cuda, "unavailable_reason", lambda: None)
    monkeypatch.setattr(cuda, "CudaDevice", FakeGpu)


@pytest.mark.parametrize("name", ["", "tpu", "CPU", "cpu:1", "auto:0", "cuda:", "cuda:-1", "cuda:one", "emulated:²"])
def test_unknown_names(name: str) -> None:
    with pytest.raises(DeviceError, match=r"unknown device .*: use one of 'auto', 'cpu', 'cuda', 'cuda:N'"):
        get_device(name)


@needs_numba_cuda
def test_one_emulated_device_per_seed() -> None:
    from gpu_pregel.host.devices.emulated import EmulatedDevice

    first, second = get_device("emulated"), get_device("emulated:7")
    assert isinstance(first, EmulatedDevice)
    assert isinstance(second, EmulatedDevice)
    assert get_device("emulated:0") is first
    assert get_device("emulated:007") is second
    assert (first.seed, second.seed) == (0, 7)


def test_threads_of_the_cpu() -> None:
    assert (get_device("cpu", threads=3).threads, get_device("cpu").threads) == (3, available_threads())


def test_without_a_gpu_auto_is_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "unavailable_reason", lambda: "no GPU")
    assert get_device().name == "cpu"
    monkeypatch.setattr(cuda, "unavailable_reason", lambda: pytest.fail("queried without the packages"))
    monkeypatch.setattr(devices, "find_spec", lambda module: None)
    devices._has_gpu.cache_clear()
    assert get_device().name == "cpu"


@pytest.mark.usefixtures("gpu")
def test_with_a_gpu_auto_is_the_gpu_unless_threads_are_given() -> None:
    device = get_device()
    assert device.name == "cuda:0"
    assert get_device("cuda") is get_device("cuda:0") is device
    assert get_device("cuda:1").name == "cuda:1"
    assert get_device(threads=2).name == "cpu"


@pytest.mark.usefixtures("gpu")
def test_a_gpu_whose_setup_fails_is_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(number: int) -> None:
        raise DeviceError(f"device 'cuda:{number}' cannot be used: the driver is too old")

    monkeypatch.setattr(cuda, "CudaDevice", fail)
    with pytest.warns(RuntimeWarning, match="device 'auto' uses the CPU: .* the driver is too old") as caught:
        assert get_device().name == "cpu"
    assert caught[0].filename == __file__
    assert get_device().name == "cpu"
    with pytest.raises(DeviceError, match="too old"):
        get_device("cuda")


@pytest.mark.parametrize("name", ["cuda", "cuda:1", "emulated", "python"])
def test_threads_apply_only_to_the_cpu(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        ArgumentError, match=r"threads=2 applies only to the CPU: omit it for device '(cuda|emulated|python)'"
    ):
        get_device(name, threads=2)
    monkeypatch.setenv(devices.DEVICE_VARIABLE, name)
    with pytest.raises(ArgumentError, match="threads=2 applies only to the CPU"):
        get_device(threads=2)


@pytest.mark.usefixtures("gpu")
def test_the_environment_variable_selects_the_device_for_auto(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, name in (("cpu", "cpu"), ("python", "python"), ("cuda:1", "cuda:1"), ("auto", "cuda:0"), ("", "cuda:0")):
        monkeypatch.setenv(devices.DEVICE_VARIABLE, value)
        assert get_device().name == name
    monkeypatch.setenv(devices.DEVICE_VARIABLE, "gpu")
    with pytest.raises(
        DeviceError, match="the environment variable GPU_PREGEL_DEVICE is invalid: unknown device 'gpu'"
    ):
        get_device()
    assert get_device("cpu").name == "cpu"


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "find_spec", lambda module: None)
    monkeypatch.setitem(sys.modules, "numba_cuda", None)
    with pytest.raises(MissingPackageError, match=r"'emulated' needs the package numba_cuda: pip install gpu-pregel\["):
        get_device("emulated")
    assert "emulated" not in devices.usable_devices()


@pytest.mark.usefixtures("gpu")
def test_a_gpu_cannot_be_used_after_a_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    get_device("cuda")
    parent = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    with pytest.raises(DeviceError, match="forked from one that uses it; start processes with the method 'spawn'"):
        get_device("cuda")


@needs_numba_cuda
def test_the_emulated_device_is_not_usable_beside_a_numpy_that_is_too_new(monkeypatch: pytest.MonkeyPatch) -> None:
    from gpu_pregel.host.devices import toolkit

    versions = {"numba-cuda": "0.30.4", "numpy": "2.5.0"}
    monkeypatch.setattr(toolkit, "version", versions.__getitem__)
    assert "emulated" not in devices.usable_devices()
    with pytest.raises(MissingPackageError, match=r"NumPy 2\.5\.0 is installed"):
        get_device("emulated")


def test_usable_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    names = devices.usable_devices()
    assert names[0] == "cpu"
    for name in names:
        assert get_device(name).name == name
    if "cuda:0" not in names:
        with pytest.raises(GpuPregelError, match="'cuda:0' cannot be used"):
            get_device("cuda")


def _methods(kind: type) -> dict[str, Any]:
    return {name: one for name, one in vars(kind).items() if inspect.isfunction(one) and name[0] != "_"}


@needs_numba_cuda
def test_all_devices_implement_the_interface() -> None:
    from gpu_pregel.host.devices.emulated import EmulatedDevice

    for kind in (cuda.CudaDevice, EmulatedDevice):
        for name, method in _methods(Device).items():
            theirs = inspect.signature(getattr(kind, name)).parameters
            assert [(one.name, one.kind, one.default) for one in theirs.values()] == [
                (one.name, one.kind, one.default) for one in inspect.signature(method).parameters.values()
            ], (kind, name)
        assert (kind.is_host, kind.threads) == (False, None)
