"""Runs the phases of an algorithm on a device and records the time of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from gpu_pregel.host.arguments import check_flag
from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.superstep.failures import explaining_failures
from gpu_pregel.host.superstep.progress import ProgressBar
from gpu_pregel.kernels.library.compile_clock import compile_seconds


class Phases:
    """Launches kernels on ``device``, showing a progress bar for each if ``shown``."""

    def __init__(self, device: Device, *, shown: bool) -> None:
        self._device = device
        self._shown = check_flag("progress", shown)
        self._rows: list[dict[str, Any]] = []

    def run(self, name: str, kernel: Callable[..., Any], size: int, *arguments: Any, chunk: int | None = None) -> None:
        """Launch ``kernel`` over ``size`` items as the phase ``name``; CPU threads claim ``chunk`` at a time."""
        with self.measure(name) as bar:
            self._device.launch(kernel, size, *arguments, chunk=chunk, tick=bar.tick)

    def run_all(self, phases: list[tuple[Any, ...]], *, chunk: int | None = None) -> None:
        """Run phases given as ``(name, kernel, size, *arguments)``; a GPU runs and times them as one."""
        for group in [[phase] for phase in phases] if self._device.is_host else [phases]:
            with self.measure(", ".join(name for name, *_ in group)) as bar:
                for _, kernel, size, *arguments in group:
                    self._device.launch(kernel, size, *arguments, chunk=chunk, tick=bar.tick)

    @contextmanager
    def measure(self, name: str) -> Iterator[ProgressBar]:
        """Record what is launched in the context as the phase ``name``."""
        begin, compiled = perf_counter(), compile_seconds()
        with ProgressBar(name, shown=self._shown) as bar, explaining_failures():
            yield bar
            self._device.synchronize()
        compiled = compile_seconds() - compiled
        seconds = max(0.0, perf_counter() - begin - compiled)
        self._rows.append({"phase": name, "seconds": seconds, "compile_seconds": compiled})

    def trace(self) -> tuple[dict[str, Any], ...]:
        """Return one row per phase: its name, its duration, and how long its kernel took to compile or load."""
        return tuple(self._rows)
