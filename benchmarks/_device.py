"""The device under test: its name, its copy bandwidth, and the share of it that a figure reaches."""

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
    parser.add_argument("--device", default="cpu", help="device of gpu_pregel: cpu, cuda or cuda:1 (default: cpu)")


def set_device(name: str) -> dict[str, Any]:
    """Run our contestants on a device; return its description for the report."""
    global _bandwidth
    GpuPregel.device = name
    device = get_device(name)
    if not isinstance(device, CudaDevice):
        _bandwidth = None
        return {"name": device.name}
    _bandwidth = device.copy_bandwidth()
    progress(f"{device.gpu.name} copies {_bandwidth / 1e9:,.0f} GB/s (read plus write)")
    return {"name": device.name, "gpu": device.gpu.name, "copy_bytes_per_second": _bandwidth}


def format_device(graph: dict[str, Any]) -> str:
    """Format our time, edges per second and, on a GPU, the share of the copy bandwidth.

    The share counts one read of the CSR and one write of a label or value per vertex, whatever a kernel really moves.
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
