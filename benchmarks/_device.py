"""The device that we run on: which it is, how fast it copies, and what share of that a figure reaches."""

from __future__ import annotations

import argparse
from typing import Any

from benchmarks._measure import format_seconds, progress
from benchmarks.peers.ours import GpuPregel
from gpu_pregel.host.devices import get_device
from gpu_pregel.host.devices.cuda import CudaDevice

_bandwidth: float | None = None


def add_device(parser: argparse.ArgumentParser) -> None:
    """Declare ``--device``."""
    parser.add_argument("--device", default="cpu", help="where we run: cpu, cuda or cuda:1 (default: cpu)")


def set_device(name: str) -> dict[str, Any]:
    """Let our contestants run on a device; what the report says of it."""
    global _bandwidth
    GpuPregel.device = name
    device = get_device(name)
    if not isinstance(device, CudaDevice):
        _bandwidth = None
        return {"name": device.name}
    _bandwidth = device.copy_bandwidth()
    progress(f"{device.gpu.name} copies {_bandwidth / 1e9:,.0f} GB/s, read and written")
    return {"name": device.name, "gpu": device.gpu.name, "copy_bytes_per_second": _bandwidth}


def format_device(graph: dict[str, Any]) -> str:
    """Milliseconds and edges per second of ours and, on a GPU, the share of the copy bandwidth.

    The bytes are those of the CSR read once and of a label or value written: what reads more, or skips, is compared
    with that.
    """
    ours = graph["contestants"][0]
    if GpuPregel.device == "cpu" or not ours["median"]:
        return ""
    vertices, edges = graph["vertices"], graph["stored_edges"]
    rate = f"{GpuPregel.device}: {format_seconds(ours['median'])}, {edges / ours['median'] / 1e9:.2f} billion edges/s"
    if _bandwidth is None:
        return f"{rate}\n"
    share = (4 * (2 * vertices + 1) + 4 * edges) / ours["median"] / _bandwidth
    ours["copy_share"] = share
    return f"{rate}, {100 * share:.0f}% of the copy bandwidth\n"
