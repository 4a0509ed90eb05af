"""Tests of the versions of NVIDIA's compilers that are refused, and of what the errors say to install."""

from __future__ import annotations

import pytest

from gpu_pregel.errors import DeviceError
from gpu_pregel.host.devices.toolkit import check_driver, check_toolkit, libnvvm_version
from tests.kernels import chips
from tests.packages import needs


@pytest.mark.parametrize(
    ("driver", "version"), [((13, 1), (13, 5)), ((13, 5), (13, 0)), ((12, 0), (12, 9)), ((12, 8), (12, 8))]
)
def test_packages_of_the_major_version_of_the_driver_are_accepted(
    driver: tuple[int, int], version: tuple[int, int]
) -> None:
    check_driver(driver)
    check_toolkit(driver, version, version)


@pytest.mark.parametrize(
    ("driver", "libnvvm", "linker", "message"),
    [
        ((13, 1), (12, 9), (12, 9), r"for CUDA 12, but the driver is for CUDA 13 \(13\.1\): .*gpu-pregel\[cuda13\]"),
        ((12, 4), (13, 5), (13, 5), r"for CUDA 13, but the driver is for CUDA 12 \(12\.4\): .*gpu-pregel\[cuda12\]"),
        ((13, 1), (13, 5), (13, 0), r"libNVVM is of CUDA 13\.5, but nvJitLink of CUDA 13\.0.*'nvidia-nvvm==13\.0\.\*'"),
        ((13, 1), (12, 9), (13, 5), r"libNVVM is of CUDA 12\.9, but nvJitLink of .*'nvidia-nvvm==13\.5\.\*'"),
        ((12, 4), (12, 9), (12, 6), r"nvJitLink of CUDA 12\.6.*'nvidia-cuda-nvcc-cu12==12\.6\.\*'"),
    ],
)
def test_other_combinations_are_refused(
    driver: tuple[int, int], libnvvm: tuple[int, int], linker: tuple[int, int], message: str
) -> None:
    with pytest.raises(DeviceError, match=message):
        check_toolkit(driver, libnvvm, linker)


def test_the_installed_packages_belong_together() -> None:
    needs("cuda.core", "test-cuda")
    chips.check_tools()
    from gpu_pregel.host.devices.launches import linker_version

    assert libnvvm_version() == linker_version() >= (12, 0)
