"""Compiled forms of CUDA kernels in the cache on disk, so that each kernel is compiled once per machine.

An entry depends on the kernel's content and lines, and on the versions and the code of whatever compiles it.
"""

from __future__ import annotations

import functools
import hashlib
import sys
import weakref
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite
import numba

from gpu_pregel.host.devices import lowering
from gpu_pregel.host.devices.lowering import KernelIR, lower
from gpu_pregel.kernels.library.cache import load_value, save_value
from gpu_pregel.kernels.library.fingerprint import Fingerprint, source_digest
from gpu_pregel.kernels.library.jit_cuda import Kernel

_digests: weakref.WeakKeyDictionary[Kernel, str | None] = weakref.WeakKeyDictionary()


def kernel_digest(kernel: Kernel) -> str | None:
    """Return a digest that equal kernels share in all processes; None if the kernel uses objects of unknown content."""
    if kernel not in _digests:
        fingerprint = Fingerprint(with_package=True, with_lines=True)
        fingerprint.add(
            *(kernel.name, kernel.signature, kernel.launch_bounds, kernel.dynamic_shared),
            *(kernel.racy, kernel.relaxed, kernel.function),
        )
        _digests[kernel] = fingerprint.hexdigest() if fingerprint.is_complete else None
    return _digests[kernel]


def stored(kernel: Kernel, form: str, versions: tuple[object, ...], make: Callable[[], Any]) -> Any:
    """Return a form of a kernel from the cache, or the result of ``make``, which is added to the cache.

    Parameters
    ----------
    kernel : Kernel
    form : str
        What ``make`` returns, such as "ir".
    versions : tuple
        What the form depends on beside the kernel.
    make : callable
        Returns the form, which can be pickled and is not None.
    """
    digest = kernel_digest(kernel)
    if digest is None:
        return make()
    parts = (digest, form, sys.implementation.cache_tag, llvmlite.__version__, *versions)
    name = f"{kernel.name}-{form}-{hashlib.sha256(repr(parts).encode()).hexdigest()}"
    value = load_value(name)
    if value is None:
        value = make()
        save_value(name, value)
    return value


def lowered(kernel: Kernel) -> KernelIR:
    """Return a kernel's LLVM IR, which is the same for all chips and for the emulated device."""

    def make() -> tuple[Any, ...]:
        ir = lower(kernel.function, kernel.signature, block=kernel.launch_bounds)
        return ir.entry, ir.layout, [zlib.compress(module.encode(), 1) for module in ir.modules]

    entry, layout, modules = stored(kernel, "ir", lowering_versions(), make)
    return KernelIR(tuple(zlib.decompress(module).decode() for module in modules), entry, layout)


@functools.cache
def lowering_versions() -> tuple[object, ...]:
    """Return the versions on which the LLVM IR of a kernel depends."""
    sources = source_digest(Path(lowering.__file__))
    return (numba.__version__, lowering.compiler_version(), lowering.nvvm_versions(), sources)
