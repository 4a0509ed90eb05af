"""``gpu-pregel info``: versions, devices, threads, memory and the cache of compiled kernels."""

from __future__ import annotations

import argparse
import platform
import sys
import textwrap
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from gpu_pregel import __version__
from gpu_pregel.algorithms.registry import ALGORITHMS
from gpu_pregel.cli import _common

if TYPE_CHECKING:
    from gpu_pregel.cli._warm_record import WarmRecord

_PACKAGES = (
    "numpy",
    "numba",
    "llvmlite",
    "scipy",
    "pyarrow",
    "tqdm",
    "networkx",
    "numba-cuda",
    "cuda-core",
    "cupy-cuda12x",
    "cupy-cuda13x",
)


def add_parser(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "info",
        help="print versions, devices, threads and memory; clear the cache",
        description="Print versions, devices, threads, memory, and the cache of compiled kernels.",
        epilog=_common.example("info --clear-cache"),
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--clear-cache", action="store_true", help="delete all cached kernels")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Run the command; its output is data and goes to stdout."""
    facts = _clear() if options.clear_cache else collect()
    if options.json:
        _common.print_json(facts)
        return
    for name, value in facts.items():
        if isinstance(value, dict):
            value = [f"{key} {item}" for key, item in value.items()]
        if isinstance(value, list):
            value = textwrap.fill(
                ", ".join(map(_common.printable, value)), 88, break_long_words=False, break_on_hyphens=False
            )
            value = value.replace("\n", "\n" + " " * 16)
        else:
            value = _common.printable(value)
        print(f"{name:<16}{value}")


def _clear() -> dict[str, Any]:
    from gpu_pregel.host.devices.memory import format_bytes
    from gpu_pregel.kernels.library.cache import clear_cache

    return {"kernel cache": _cache_folder(), "deleted": format_bytes(clear_cache())}


def _cache_size() -> str:
    from gpu_pregel.host.devices.memory import format_bytes
    from gpu_pregel.kernels.library.cache import cache_limit, cache_size

    _common.check_cache_limit()
    return f"{format_bytes(cache_size())} of at most {format_bytes(cache_limit())}"


def _cached_kernels() -> dict[str, str]:
    """Return the numbers and sizes of cached kernels by device."""
    from gpu_pregel.host.devices.memory import format_bytes
    from gpu_pregel.kernels.library.cache import cached_kernels

    found = cached_kernels()
    kinds = [kind for kind in sorted(found) if kind != "other"]
    return {_target_name(kind): f"{found[kind].kernels:,} of {format_bytes(found[kind].size)}" for kind in kinds}


def _warmed() -> dict[str, str]:
    """Return the algorithms that ``gpu-pregel warm`` has compiled for each device from the installed sources."""
    from gpu_pregel.cli._warm_record import load_record
    from gpu_pregel.kernels.library.cache import cached_kernels

    chips = [kind for kind in sorted(cached_kernels()) if kind.startswith("sm_")]
    return {_target_name(target): _algorithms(load_record(target)) for target in ("cpu", *chips)}


def _algorithms(record: WarmRecord | None) -> str:
    if record is None:
        return "none"
    missing = record.missing()
    if missing:
        return f"incomplete: {missing:,} kernels have been deleted since gpu-pregel warm"
    commands = [entry.command for entry in ALGORITHMS if entry.command in record.steps]
    return "all algorithms" if len(commands) == len(ALGORITHMS) else " ".join(commands)


def _target_name(kind: str) -> str:
    """Return what a kind of kernels is for: "cuda (compute capability 9.0)" for "sm_90"."""
    if kind.startswith("sm_"):
        return f"cuda (compute capability {kind[3:-1]}.{kind[-1]})"
    return {"ir": "cuda (LLVM IR)"}.get(kind, kind)


def _cache_folder() -> str:
    from gpu_pregel.kernels.library.cache import cache_directory, is_writable

    folder = cache_directory()
    if folder is None:
        return "cannot be written: kernels are compiled in every process"
    return folder if is_writable() else f"{folder} (read-only: what it lacks is compiled in every process)"


def collect() -> dict[str, Any]:
    """Return the facts that ``gpu-pregel info`` prints."""
    from numba import config

    from gpu_pregel.host.devices import usable_devices
    from gpu_pregel.host.devices.memory import available_memory, format_bytes
    from gpu_pregel.host.devices.threads import available_threads
    from gpu_pregel.networkx import FUNCTIONS

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
        "kernel cache": _cache_folder(),
        "cache size": _cache_size(),
        "cached kernels": _cached_kernels(),
        "warmed": _warmed(),
        "gpu faster from": {entry.command: _edges(entry.gpu_from) for entry in ALGORITHMS},
        "networkx": sorted(function.path for function in FUNCTIONS.values()),
    }


def _edges(count: int | None) -> str:
    """Return the number of stored edges from which on ``device="auto"`` takes a GPU."""
    return "never" if count is None else f"{count:_}"


def _gpus() -> list[str]:
    """Return a line for each GPU; a single one with the reason if there is none, or a last one if none can be used."""
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
