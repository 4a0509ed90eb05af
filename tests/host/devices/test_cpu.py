"""Tests of the CPU as a device."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from gpu_pregel.errors import ArgumentTypeError, DeviceError
from gpu_pregel.host.devices import get_device
from gpu_pregel.host.devices.threads import available_threads
from gpu_pregel.kernels.library.work_cpu import CHUNK, NEXT, SIZE


def test_auto_selects_the_cpu_with_all_its_threads() -> None:
    device = get_device()
    assert device.name == "cpu"
    assert device.threads == available_threads()
    assert get_device("cpu", threads=7).threads == 7


@pytest.mark.parametrize("name", ["auto", "cpu"])
def test_arrays_and_kernels(name: str) -> None:
    device = get_device(name)
    assert device.empty(6, np.uint32).shape == (6,)
    assert callable(device.kernels("components").compress)


@pytest.mark.parametrize(
    ("size", "threads", "chunk"), [(0, 2, 0), (4096, 2, 4096), (4097, 1, 1024), (1 << 20, 2, 1 << 14)]
)
def test_small_work_runs_in_this_thread_and_large_work_in_chunks(size: int, threads: int, chunk: int) -> None:
    seen: list[tuple[int, int, bool]] = []

    def kernel(work: Any) -> None:
        seen.append((int(work[SIZE]), int(work[CHUNK]), threading.current_thread() is threading.main_thread()))
        work[NEXT] = work[SIZE]

    get_device("cpu", threads=threads).launch(kernel, size)
    assert seen[0] == (size, chunk, size <= 4096)


def test_unknown_devices_raise() -> None:
    with pytest.raises(DeviceError, match="unknown device 'tpu': use one of"):
        get_device("tpu")
    with pytest.raises(ArgumentTypeError, match="device must be a name"):
        get_device(None)  # type: ignore[arg-type]


def test_the_python_device_runs_no_kernels() -> None:
    device = get_device("python")
    assert (device.name, device.threads, device.is_host) == ("python", None, True)
    with pytest.raises(DeviceError, match=r"device 'python' runs only vertex programs .* use device='cpu'"):
        device.kernels("components")
