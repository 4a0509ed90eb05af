"""Tests of the versions of NVIDIA's compilers that are refused, and of what the errors say to install."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from gpu_pregel.errors import DeviceError, MissingPackageError
from gpu_pregel.host.devices import toolkit
from gpu_pregel.host.devices.toolkit import check_driver, check_toolkit, libnvvm_version


@pytest.mark.parametrize(
    ("driver", "cc", "version"),
    [
        ((13, 1), (7, 5), (13, 5)),
        ((13, 5), (9, 0), (13, 0)),
        ((12, 0), (9, 0), (12, 9)),
        ((12, 8), (7, 0), (12, 8)),
        ((13, 0), (7, 0), (12, 9)),
    ],
)
def test_packages_of_the_major_version_of_the_driver_are_accepted(
    driver: tuple[int, int], cc: tuple[int, int], version: tuple[int, int]
) -> None:
    check_driver(driver)
    check_toolkit(driver, cc, version, version)


@pytest.mark.parametrize(
    ("driver", "libnvvm", "linker"),
    [((13, 0), (13, 0), (13, 5)), ((13, 5), (13, 4), (13, 5)), ((12, 4), (12, 6), (12, 9))],
)
def test_a_linker_that_is_newer_than_libnvvm_is_accepted(
    driver: tuple[int, int], libnvvm: tuple[int, int], linker: tuple[int, int]
) -> None:
    """As ``pip install torch`` beside the extra ``cuda13`` installs them."""
    check_toolkit(driver, (9, 0), libnvvm, linker)


@pytest.mark.parametrize(
    ("driver", "libnvvm", "linker", "message"),
    [
        ((13, 1), (12, 9), (12, 9), r"for CUDA 12, but the driver is for CUDA 13\.1 .*gpu-pregel\[cuda13\]"),
        ((12, 4), (13, 5), (13, 5), r"for CUDA 13, but the driver is for CUDA 12\.4 .*gpu-pregel\[cuda12\]"),
        ((13, 1), (13, 5), (13, 0), r"libNVVM is of CUDA 13\.5, but nvJitLink of CUDA 13\.0.*'nvidia-nvvm==13\.0\.\*'"),
        ((13, 1), (12, 9), (13, 5), r"libNVVM is of CUDA 12\.9, but nvJitLink of .*'nvidia-nvvm==13\.5\.\*'"),
        ((12, 4), (12, 9), (12, 6), r"nvJitLink of CUDA 12\.6.*'nvidia-cuda-nvcc-cu12==12\.6\.\*'"),
    ],
)
def test_other_combinations_are_refused(
    driver: tuple[int, int], libnvvm: tuple[int, int], linker: tuple[int, int], message: str
) -> None:
    with pytest.raises(DeviceError, match=message):
        check_toolkit(driver, (9, 0), libnvvm, linker)


@pytest.mark.parametrize("found", ["0.25.0", "0.30.3", "0.31.0", "1.0.0rc1"])
def test_untried_versions_of_numba_cuda_are_refused(monkeypatch: pytest.MonkeyPatch, found: str) -> None:
    monkeypatch.setattr(toolkit, "version", lambda _: found)
    with pytest.raises(MissingPackageError, match=rf"numba-cuda {found} is installed; at least .*: pip install this"):
        toolkit.check_numba_cuda("pip install this")


def test_the_versions_that_are_accepted_are_those_that_are_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    first, limit = (".".join(map(str, one)) for one in toolkit.NUMBA_CUDA)
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    extras = [
        one for extra in project["optional-dependencies"].values() for one in extra if one.startswith("numba-cuda")
    ]
    assert len(extras) >= 3
    assert {one.partition(">")[2] for one in extras} == {f"={first},<{limit}"}
    monkeypatch.setattr(toolkit, "version", lambda _: first)
    toolkit.check_numba_cuda("")


@pytest.mark.parametrize("found", ["2.5.0", "2.10.1", "3.0.0"])
def test_versions_of_numpy_beside_which_numba_cuda_fails_are_refused(
    monkeypatch: pytest.MonkeyPatch, found: str
) -> None:
    versions = {"numba-cuda": "0.30.4", "numpy": found}
    monkeypatch.setattr(toolkit, "version", versions.__getitem__)
    with pytest.raises(MissingPackageError, match=rf"NumPy {found} is installed.*: pip install 'numpy<2.5'"):
        toolkit.check_numba_cuda("")
    versions["numpy"] = "2.4.6"
    toolkit.check_numba_cuda("")


def test_extras_with_numba_cuda_limit_numpy() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    limit = ".".join(map(str, toolkit.NUMPY_LIMIT))
    extras = [one for one in project["optional-dependencies"].values() if any("numba-cuda" in part for part in one)]
    assert len(extras) == 3
    assert all(f"numpy<{limit}" in one for one in extras)


def test_an_old_chip_needs_old_compilers_whatever_the_driver() -> None:
    with pytest.raises(DeviceError, match=r"for CUDA 13, .* compute capability 7\.0: .*gpu-pregel\[cuda12\]"):
        check_toolkit((13, 0), (7, 0), (13, 0), (13, 0))


@pytest.mark.nvidia
def test_the_installed_packages_belong_together() -> None:
    from gpu_pregel.host.devices.launches import linker_version

    assert (12, 0) <= libnvvm_version() <= linker_version()


@pytest.mark.nvidia
def test_a_chip_that_the_linker_does_not_know() -> None:
    from gpu_pregel.host.devices.launches import _link_lto, check_linker

    check_linker((9, 0))
    with pytest.raises(DeviceError, match=r"does not support compute capability 99\.0 .*: pip install --upgrade"):
        check_linker((99, 0))
    with pytest.raises(DeviceError, match="nvJitLink cannot link a kernel"):
        _link_lto(b"no code", (9, 0))
