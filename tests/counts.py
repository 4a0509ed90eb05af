"""Accesses to memory that kernels make on the emulated device, by kernel."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any, NamedTuple

from gpu_pregel.host.devices.emulated import EmulatedDevice


class Accesses(NamedTuple):
    """Accesses by threads of all launches of a kernel, and the 32-byte sectors and the operations of its warps."""

    loads: int
    stores: int
    atomics: int
    sectors: int
    warp_operations: int

    def __sub__(self, other: Accesses) -> Accesses:
        return Accesses(*(one - two for one, two in zip(self, other, strict=True)))


def count(device: EmulatedDevice, work: Callable[[], Any]) -> dict[str, Accesses]:
    """Call ``work``, which uses the device, and return the accesses of the kernels that it launches."""
    found = {}
    for name, (compiled, counts) in _counted(device, work).items():
        loads, stores, atomics = (counts.of_kind(kind, compiled.sites)[0] for kind in ("load", "store", "atomic"))
        found[name] = Accesses(loads, stores, atomics, int(counts.sectors.sum()), counts.warp_operations)
    return found


def count_launches(device: EmulatedDevice, work: Callable[[], Any]) -> tuple[dict[str, int], int]:
    """Call ``work``, which uses the device; return the launches of each kernel, and the number of readbacks."""
    before = device.memory.readbacks
    launches = {name: counts.launches for name, (_, counts) in _counted(device, work).items()}
    return launches, device.memory.readbacks - before


def count_lines(device: EmulatedDevice, work: Callable[[], Any], kernel: str, text: str) -> int:
    """Call ``work`` and return the loads of a kernel in source lines that contain a text."""
    compiled, counts = _counted(device, work)[kernel]
    return sum(
        loads
        for site, loads in zip(compiled.sites, counts.executions.tolist(), strict=True)
        if site.kind == "load" and text in linecache.getline(site.file, site.line)
    )


def _counted(device: EmulatedDevice, work: Callable[[], Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    device.counts = found
    try:
        work()
    finally:
        device.counts = None
    return found
