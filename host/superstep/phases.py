"""Runs the phases of an algorithm on a device and records the time of each."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.superstep.progress import ProgressBar


class Phases:
    """Launches kernels on ``device``, showing a progress bar for each if ``shown``."""

    def __init__(self, device: Device, *, shown: bool) -> None:
        self._device = device
        self._shown = shown
        self._rows: list[dict[str, Any]] = []

    def run(self, name: str, kernel: Callable[..., Any], size: int, *arguments: Any) -> None:
        """Launch ``kernel`` over ``size`` items as the phase ``name``."""
        begin = perf_counter()
        with ProgressBar(name, shown=self._shown) as bar:
            self._device.launch(kernel, size, *arguments, tick=bar.tick)
            self._device.synchronize()
        self._rows.append({"phase": name, "seconds": perf_counter() - begin})

    def trace(self) -> tuple[dict[str, Any], ...]:
        """Return one row per phase: its name and its duration in seconds."""
        return tuple(self._rows)

    def stats(self) -> dict[str, Any]:
        """Return the device, the number of threads, and the total duration in seconds."""
        seconds = sum(row["seconds"] for row in self._rows)
        return {"device": self._device.name, "threads": self._device.threads, "seconds": seconds}
