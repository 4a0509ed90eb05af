"""Accesses to memory that kernels make on the emulated device, by kernel."""

from __future__ import annotations

import linecache
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from gpu_pregel.host.devices.emulated import EmulatedDevice
from gpu_pregel.host.emulator.machine.compiled_kernel import CompiledKernel
from gpu_pregel.host.emulator.machine.runtime import AccessCounts


class Accesses(NamedTuple):
    """Accesses by threads of all launches of a kernel, and the 32-byte sectors and the operations of its warps."""

    loads: int
    stores: int
    atomics: int
    sectors: int
    warp_operations: int

    def __add__(self, other: Accesses) -> Accesses:  # type: ignore[override]
        return Accesses(*(one + two for one, two in zip(self, other, strict=True)))

    def __sub__(self, other: Accesses) -> Accesses:
        return Accesses(*(one - two for one, two in zip(self, other, strict=True)))


def count(device: EmulatedDevice, work: Callable[[], Any]) -> dict[str, Accesses]:
    """Call ``work``, which uses the device, and return the accesses of the kernels that it launches."""
    found: dict[str, Accesses] = {}
    for compiled, counts in counted(device, work).items():
        loads, stores, atomics = (counts.of_kind(kind, compiled.sites)[0] for kind in ("load", "store", "atomic"))
        added = Accesses(loads, stores, atomics, int(counts.sectors.sum()), counts.warp_operations)
        found[compiled.name] = found.get(compiled.name, Accesses(0, 0, 0, 0, 0)) + added
    return found


def count_launches(device: EmulatedDevice, work: Callable[[], Any]) -> tuple[dict[str, int], int]:
    """Call ``work``, which uses the device; return the launches of each kernel, and the number of readbacks."""
    before = device.memory.readbacks
    launches: Counter[str] = Counter()
    for compiled, counts in counted(device, work).items():
        launches[compiled.name] += counts.launches
    return dict(launches), device.memory.readbacks - before


def count_lines(device: EmulatedDevice, work: Callable[[], Any], kernel: str, text: str) -> int:
    """Call ``work`` and return the loads of a kernel in source lines that contain a text."""
    found = {compiled: counts for compiled, counts in counted(device, work).items() if compiled.name == kernel}
    assert found, f"no kernel {kernel} was launched"
    return sum(
        loads
        for compiled, counts in found.items()
        for site, loads in zip(compiled.sites, counts.executions.tolist(), strict=True)
        if site.kind == "load" and text in linecache.getline(site.file, site.line)
    )


def counted(device: EmulatedDevice, work: Callable[[], Any]) -> dict[CompiledKernel, AccessCounts]:
    """Call ``work``, which uses the device, and return the counts of each kernel."""
    found: dict[CompiledKernel, AccessCounts] = {}
    device.counts = found
    try:
        work()
    finally:
        device.counts = None
    return found
