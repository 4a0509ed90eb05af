"""Launches, readbacks and bytes moved by CUDA kernels, counted on the emulated device."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gpu_pregel.host.devices import get_device
from gpu_pregel.host.programs.direction_costs import SECTOR


@dataclass
class KernelCounts:
    """Launches, readbacks and bytes moved during a run; ``kernels`` has a row per name of a kernel."""

    kernels: list[dict[str, Any]] = field(default_factory=list)
    launches: int = 0
    readbacks: int = 0

    @property
    def bytes(self) -> int:
        """Bytes of the sectors of all kernels."""
        return sum(kernel["bytes"] for kernel in self.kernels)


def count_run(work: Any) -> KernelCounts:
    """Call ``work``, which runs on the emulated device, and return the counts, less the bytes of grid barriers."""
    device: Any = get_device("emulated")
    launches, readbacks = device.launches, device.memory.readbacks
    device.counts = {}
    try:
        work()
        found = device.counts
    finally:
        device.counts = None
    result = KernelCounts(launches=device.launches - launches, readbacks=device.memory.readbacks - readbacks)
    rows: dict[str, dict[str, Any]] = {}
    for compiled, counts in found.items():
        # How often blocks poll at a barrier of the grid depends on their order; all poll one line of L2.
        moved = sum(
            int(sectors)
            for site, sectors in zip(compiled.sites, counts.sectors, strict=True)
            if "grid_barrier" not in site.file
        )
        added = {"launches": counts.launches, "bytes": SECTOR * moved}
        for kind in ("load", "store", "atomic"):
            added[f"{kind}s"], added[f"{kind}_bytes"], _ = counts.of_kind(kind, compiled.sites)
        added["shared"] = counts.shared
        # Profilers know kernels by their names, which different kernels of an algorithm may share.
        row = rows.setdefault(compiled.name, {"kernel": compiled.name, **dict.fromkeys(added, 0)})
        for key, number in added.items():
            row[key] += number
    result.kernels = list(rows.values())
    return result
