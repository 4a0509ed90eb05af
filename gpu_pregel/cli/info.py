"""``gpu-pregel info``: versions, devices, threads and memory."""

from __future__ import annotations

import argparse
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from gpu_pregel import __version__
from gpu_pregel.cli import _common

_PACKAGES = (
    "numpy",
    "numba",
    "llvmlite",
    "scipy",
    "pyarrow",
    "tqdm",
    "numba-cuda",
    "cuda-core",
    "cupy-cuda12x",
    "cupy-cuda13x",
)


def add_parser(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser("info", help="print versions, devices, threads and memory", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Carry the command out; what it prints is its data, so it goes to stdout."""
    facts = collect()
    if options.json:
        _common.print_json(facts)
        return
    for name, value in facts.items():
        if isinstance(value, dict):
            value = ", ".join(f"{key} {item}" for key, item in value.items())
        elif isinstance(value, list):
            value = ", ".join(value)
        print(f"{name:<16}{value}")


def collect() -> dict[str, Any]:
    """What ``gpu-pregel info`` prints."""
    from numba import config

    from gpu_pregel.host.devices import usable_devices
    from gpu_pregel.host.devices.memory import available_memory, format_bytes
    from gpu_pregel.host.devices.threads import available_threads
    from gpu_pregel.kernels.library.cache import cache_directory

    memory = available_memory()
    return {
        "gpu_pregel": __version__,
        "python": f"{platform.python_version()} ({sys.executable})",
        "platform": platform.platform(),
        "packages": {name: found for name in _PACKAGES if (found := _version(name))},
        "devices": usable_devices(),
        "gpus": _gpus(),
        "threads": available_threads(),
        "threading": "kernels run on this package's own threads and use none of Numba's threading layers",
        "numba layer": f"{config.THREADING_LAYER} (priority: {' '.join(config.THREADING_LAYER_PRIORITY)})",
        "memory": "unknown" if memory is None else f"{format_bytes(memory)} available",
        "kernel cache": cache_directory() or "none can be written: kernels are compiled in every process",
    }


def _gpus() -> list[str]:
    """A line for each GPU, or one that says why there is none or it cannot be used."""
    from gpu_pregel.errors import DeviceError
    from gpu_pregel.host.devices.cuda import unavailable_reason
    from gpu_pregel.host.devices.gpus import gpus
    from gpu_pregel.host.devices.memory import format_bytes

    try:
        found = gpus()
    except DeviceError as error:
        return [f"none: {error}"]
    lines = [
        f"cuda:{gpu.number} {gpu.name} (compute capability {'.'.join(map(str, gpu.compute_capability))}, "
        f"{format_bytes(gpu.memory)}, driver for CUDA {'.'.join(map(str, found.cuda_version))})"
        for gpu in found.found
    ]
    reason = unavailable_reason()
    return lines if reason is None else [*lines, reason]


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
