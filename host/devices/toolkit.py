"""NVIDIA's compilers and the packages that contain them: which versions work together, and what to install."""

from __future__ import annotations

import re
from importlib.metadata import version

from gpu_pregel.errors import DeviceError, MissingPackageError
from gpu_pregel.host.devices.lowering import KernelIR, compile_ir, nvvm_versions

NUMBA_CUDA = (0, 30, 4), (0, 31)
"""The first version of numba-cuda that works, and the first that has not been tried, as in pyproject.toml."""
NUMPY_LIMIT = 2, 5
"""The first version of NumPy beside which these versions of numba-cuda fail, as in pyproject.toml."""
MIN_CAPABILITY_OF_13 = (7, 5)
"""The first compute capability that CUDA 13's compilers support."""
MIN_DRIVER = (12, 0)
"""The first CUDA version of a driver for which there are packages."""


def install_command(cuda_version: tuple[int, int], cc: tuple[int, int]) -> str:
    """Return the install command for a driver that supports CUDA up to this version, and for a compute capability."""
    return f"pip install gpu-pregel[cuda{_packages_for(cuda_version, cc)}]"


def _packages_for(cuda_version: tuple[int, int], cc: tuple[int, int]) -> int:
    """Return the major version of CUDA whose packages a driver and a GPU need."""
    return 13 if cuda_version >= (13, 0) and cc >= MIN_CAPABILITY_OF_13 else 12


def check_numba_cuda(install: str) -> None:
    """Raise ``MissingPackageError`` unless the version of numba-cuda is one that compiles our kernels.

    Earlier versions cannot be imported beside the newest Numba; later ones have not been tried (``tests/versions.py``).
    """
    found, numpy = version("numba-cuda"), version("numpy")
    if not NUMBA_CUDA[0] <= _numbers(found) < NUMBA_CUDA[1]:
        raise MissingPackageError(
            f"numba-cuda {found} is installed; at least {_text(NUMBA_CUDA[0])}, below {_text(NUMBA_CUDA[1])} is "
            f"needed: {install}"
        )
    if _numbers(numpy) >= NUMPY_LIMIT:
        limit = _text(NUMPY_LIMIT)
        raise MissingPackageError(
            f"NumPy {numpy} is installed, but numba-cuda {found} needs one below {limit}: pip install 'numpy<{limit}'"
        )


def check_driver(cuda_version: tuple[int, int]) -> None:
    """Raise ``DeviceError`` if the driver is too old for all packages."""
    if cuda_version < MIN_DRIVER:
        raise DeviceError(
            f"the NVIDIA driver supports CUDA up to {_text(cuda_version)}; at least {_text(MIN_DRIVER)} is required: "
            f"install a newer driver (525 or later)"
        )


def check_toolkit(
    driver: tuple[int, int], cc: tuple[int, int], libnvvm: tuple[int, int], linker: tuple[int, int]
) -> None:
    """Check that libNVVM, nvJitLink and the driver work together, given the version of CUDA that each belongs to.

    The linker reads code of libNVVM of the same major version of CUDA that is not newer than itself, and the packages
    must be those for the driver and for the compute capability of the GPU.

    Raises
    ------
    DeviceError
        They do not; the message names the versions and what to install.
    """
    if linker[0] != _packages_for(driver, cc):
        raise DeviceError(
            f"the installed packages are for CUDA {linker[0]}, but the driver is for CUDA {_text(driver)} and the GPU "
            f"has compute capability {_text(cc)}: {install_command(driver, cc)}, in a new environment"
        )
    if libnvvm > linker or libnvvm[0] != linker[0]:
        package = "nvidia-nvvm" if linker[0] >= 13 else "nvidia-cuda-nvcc-cu12"
        raise DeviceError(
            f"libNVVM is of CUDA {_text(libnvvm)}, but nvJitLink of CUDA {_text(linker)}, which cannot link its code: "
            f"pip install '{package}=={_text(linker)}.*'"
        )


def libnvvm_version() -> tuple[int, int]:
    """Return the version of CUDA that libNVVM belongs to, which it writes into the code that it generates."""
    *ir_version, layout = nvvm_versions()
    numbers = ", ".join(f"i32 {number}" for number in ir_version)
    module = f'target triple = "nvptx64-nvidia-cuda"\ntarget datalayout = "{layout}"\n'
    module += f"define void @f() {{\n  ret void\n}}\n!nvvmir.version = !{{!0}}\n!0 = !{{{numbers}}}\n"
    text = compile_ir(KernelIR((module,), "f", ()), (8, 0), lto=False).decode()
    found = re.search(r"release (\d+)\.(\d+)", text)
    if found is None:
        raise DeviceError(f"libNVVM does not name its version in {text[:200]!r}")
    return int(found[1]), int(found[2])


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:3]))


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
