"""Launches, transfers and accesses of CUDA kernels, counted on the emulated device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np

from gpu_pregel.host.devices import get_device
from gpu_pregel.host.emulator.machine.runtime import forget_sectors
from gpu_pregel.host.programs.direction_costs import SECTOR


@dataclass
class KernelCounts:
    """What a run did.

    Attributes
    ----------
    kernels : list of dict
        A row per name of a kernel. Polling at barriers of the grid is left out of its "bytes" (of sectors), its
        "asked" (bytes that threads accessed), and of the accesses of its lanes.
    launches, readbacks : int
    uploaded, downloaded : int
        Bytes copied to the device, and to the host.
    downloads : list of array
        What was copied to the host.
    """

    kernels: list[dict[str, Any]] = field(default_factory=list)
    launches: int = 0
    readbacks: int = 0
    uploaded: int = 0
    downloaded: int = 0
    downloads: list[np.ndarray[Any, Any]] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        """Bytes of the sectors of all kernels."""
        return sum(kernel["bytes"] for kernel in self.kernels)


def count_run(work: Callable[[], Any]) -> KernelCounts:
    """Call ``work``, which runs on the emulated device, and return the counts, which do not depend on earlier runs."""
    device: Any = get_device("emulated")
    memory, download, launches = device.memory, device.download, device.launches
    before = memory.readbacks, memory.upload_bytes, memory.readback_bytes
    result = KernelCounts()

    def keep(array: Any) -> np.ndarray[Any, Any]:
        result.downloads.append(download(array))
        return result.downloads[-1]

    # The number of a launch determines the order of its threads.
    device.counts, device.launches = {}, 0
    forget_sectors()
    try:
        with patch.object(device, "download", keep):
            work()
        found = device.counts
        result.launches = device.launches
    finally:
        device.counts, device.launches = None, launches + device.launches
    result.readbacks, result.uploaded = memory.readbacks - before[0], memory.upload_bytes - before[1]
    result.downloaded = memory.readback_bytes - before[2]
    rows: dict[str, dict[str, Any]] = {}
    for compiled, counts in found.items():
        added = _totals(compiled, counts)
        # Profilers know kernels by their names, which different kernels of an algorithm may share.
        row = rows.setdefault(compiled.name, {"kernel": compiled.name, **dict.fromkeys(added, 0), "longest_lane": 0})
        for key, number in added.items():
            row[key] += number
        row["longest_lane"] = max(row["longest_lane"], counts.longest_lane)
    result.kernels = list(rows.values())
    return result


def _totals(compiled: Any, counts: Any) -> dict[str, int]:
    """Return the counts of a kernel that are sums over its launches."""
    waiting = list(counts.polling)
    added = {"launches": counts.launches, "bytes": SECTOR * int(np.delete(counts.sectors, waiting).sum())}
    for kind in ("load", "store", "atomic"):
        added[f"{kind}s"], added[f"{kind}_bytes"], _ = counts.of_kind(kind, compiled.sites)
    added["asked"] = int(np.delete(counts.bytes, waiting).sum())
    return added | {"shared": counts.shared, "lanes": counts.lanes, "lane_accesses": counts.lane_accesses}
