"""The record of what ``gpu-pregel warm`` has compiled, in the cache itself; ``gpu-pregel info`` reads it too.

A record is named by a digest of the sources, the versions and the processor or the GPU for which kernels are compiled:
after a change of any of them there is none.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from gpu_pregel import __version__

_PACKAGES = ("numba", "llvmlite", "numpy")
_CUDA_PACKAGES = (
    "numba-cuda",
    *(f"nvidia-{name}{suffix}" for name in ("nvvm", "cuda-nvcc", "nvjitlink") for suffix in ("", "-cu12")),
)
PREFIX = "warmed_"
"""How the names of records begin."""
_FOLDERS = ("gpu_pregel.algorithms", "gpu_pregel.host", "gpu_pregel.kernels")


class WarmRecord(NamedTuple):
    """The steps that are complete for one target, named by commands, and the files of the cache that they need."""

    steps: frozenset[str]
    files: frozenset[str]

    def missing(self) -> int:
        """Return how many of the files are no longer in the cache."""
        from gpu_pregel.kernels.library.cache import cache_directory

        found = {file.name for file in os.scandir(cache_directory() or os.devnull)}
        return len(self.files - found)


def load_record(target: str) -> WarmRecord | None:
    """Return the record of a target, "cpu" or a chip such as "sm_90"; None if there is none."""
    from gpu_pregel.kernels.library.cache import load_value

    stored = load_value(_name(target))
    return None if stored is None else WarmRecord(*map(frozenset, stored))


def save_record(target: str, steps: Iterable[str], files: Iterable[str]) -> None:
    """Save the record of a target."""
    from gpu_pregel.kernels.library.cache import save_value

    save_value(_name(target), (sorted(steps), sorted(files)))


def processor() -> str:
    """Return the name of the processor for which kernels of the CPU are compiled."""
    return _processor()[1]


def _processor() -> tuple[str, ...]:
    """Return what Numba names its code by: the system, the processor and its features."""
    from numba.core.registry import cpu_target

    found: tuple[str, ...] = cpu_target.target_context.codegen().magic_tuple()
    return found


def _name(target: str) -> str:
    from gpu_pregel.kernels.library.fingerprint import source_digest

    folders = (Path(import_module(name).__file__ or "").parent for name in _FOLDERS)
    sources = [source_digest(folder.resolve()) for folder in folders]
    is_cpu = target == "cpu"
    packages = _PACKAGES if is_cpu else (*_PACKAGES, *_CUDA_PACKAGES)
    versions = [__version__, sys.implementation.cache_tag, *map(_version, packages)]
    parts = (target, sources, versions, _processor() if is_cpu else ())
    return f"{PREFIX}{target}-{hashlib.sha256(repr(parts).encode()).hexdigest()}"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
