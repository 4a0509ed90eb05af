"""Tests of the queries to NVIDIA's driver and of the reasons for not finding a GPU, with a fake driver."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gpu_pregel.errors import DeviceError, MissingPackageError
from gpu_pregel.host.devices import cuda, gpus
from gpu_pregel.host.devices.gpus import Gpu, Gpus


class FakeDriver:
    """A substitute for NVIDIA's driver with two GPUs, whose initialisation may fail."""

    def __init__(self, status: int = 0, count: int = 2) -> None:
        self.status = status
        self.count = count
        self.version = 13010

    def cuInit(self, flags: int) -> int:  # noqa: N802
        return self.status

    def cuGetErrorName(self, status: int, text: Any) -> int:  # noqa: N802
        text._obj.value = b"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"
        return 0

    def cuDriverGetVersion(self, version: Any) -> int:  # noqa: N802
        version._obj.value = self.version
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
        value._obj.value = {75: 9, 76: device - 40, 38: 60 << 20}[attribute]
        return 0

    def cuDeviceTotalMem_v2(self, size: Any, device: int) -> int:  # noqa: N802
        assert isinstance(size._obj, ctypes.c_size_t)
        size._obj.value = 80 << 30
        return 0


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Any], None]]:
    def load(driver: Any) -> None:
        gpus._query.cache_clear()

        def open_library(name: str) -> Any:
            assert name == "libcuda.so.1"
            if driver is None:
                raise OSError(name)
            return driver

        monkeypatch.setattr(ctypes, "CDLL", open_library)

    yield load
    gpus._query.cache_clear()


def test_gpus_are_read_from_the_driver(driver: Callable[[Any], None]) -> None:
    driver(FakeDriver())
    first, second = (Gpu(k, f"NVIDIA H4{k}", (9, k), 80 << 30, 60 << 20) for k in range(2))
    assert gpus.gpus() == Gpus((first, second), (13, 1))


@pytest.mark.parametrize(
    ("fake_driver", "message"),
    [
        (None, "no NVIDIA driver is installed: libcuda.so.1 cannot be loaded"),
        (FakeDriver(100), "the NVIDIA driver finds no GPU"),
        (FakeDriver(803), r"cuInit returned CUDA_ERROR_SYSTEM_DRIVER_MISMATCH \(803\): run nvidia-smi"),
        (object(), "libcuda.so.1 has no function cuInit: install a newer NVIDIA driver"),
        (FakeDriver(0, 0), "finds no GPU visible to this process: check CUDA_VISIBLE_DEVICES"),
    ],
)
def test_reasons_for_not_finding_a_gpu(driver: Callable[[Any], None], fake_driver: Any, message: str) -> None:
    driver(fake_driver)
    with pytest.raises(DeviceError, match=f"device 'cuda:0' cannot be used: .*{message}"):
        cuda.CudaDevice()
    assert re.search(message, str(cuda.unavailable_reason()))


def test_a_gpu_that_does_not_exist_or_is_too_old(
    driver: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    driver(FakeDriver())
    with pytest.raises(DeviceError, match="'cuda:2' cannot be used: this machine has 2 GPUs, numbered from 0"):
        cuda.find_gpu(2)
    monkeypatch.setattr(cuda, "MIN_COMPUTE_CAPABILITY", (9, 1))
    with pytest.raises(
        DeviceError, match=r"NVIDIA H40 has compute capability 9\.0; at least 9\.1 is .*: use device='cpu'"
    ):
        cuda.find_gpu(0)


def test_a_driver_that_is_too_old(driver: Callable[[Any], None]) -> None:
    old = FakeDriver()
    old.version = 11080
    driver(old)
    with pytest.raises(
        DeviceError, match=r"'cuda:0' cannot be used: .* CUDA up to 11\.8; at least 12\.0 is required: install a newer"
    ):
        cuda.CudaDevice()


def test_missing_packages(driver: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch) -> None:
    driver(FakeDriver())
    monkeypatch.setattr(cuda, "find_spec", lambda module: None)
    with pytest.raises(
        MissingPackageError, match=r"numba-cuda and cupy not installed; pip install gpu-pregel\[cuda13\]"
    ):
        cuda.find_gpu(0)
    monkeypatch.setattr(cuda, "find_spec", lambda module: object())
    assert cuda.find_gpu(1).name == "NVIDIA H41"
    assert cuda.unavailable_reason() is None


def test_importing_the_devices_imports_no_cuda_package() -> None:
    program = (
        "import sys, gpu_pregel.host.devices.cuda as d\n"
        "assert d.unavailable_reason() is not None or 'cupy' not in sys.modules\n"
        "assert not {'cupy', 'numba.cuda', 'gpu_pregel.host.devices.launches'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
