"""Timing, statistics over trials, a description of the machine, and reports as JSON and tables."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

Result = TypeVar("Result")

_UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6))


@dataclass(frozen=True)
class Summary:
    """Several trials, in seconds or another unit: median, quartiles and minimum."""

    trials: list[float]
    median: float
    minimum: float
    quartiles: tuple[float, float]

    @classmethod
    def of(cls, trials: Iterable[float]) -> Summary:
        """Summarise at least one figure."""
        figures = [float(figure) for figure in trials]
        lower, median, upper = np.percentile(figures, [25, 50, 75]).tolist()
        return cls(figures, median, min(figures), (lower, upper))

    @property
    def spread(self) -> float:
        """Interquartile range as a share of the median."""
        return (self.quartiles[1] - self.quartiles[0]) / self.median if self.median else 0.0


def timed(function: Callable[..., Result], *arguments: Any, **options: Any) -> tuple[Result, float]:
    """Call ``function`` and return its result and its wall time in seconds."""
    start = time.perf_counter()
    result = function(*arguments, **options)
    return result, time.perf_counter() - start


def in_turn(names: Sequence[str], trials: int, trial: Callable[[str], None], budget: float = float("inf")) -> None:
    """Call ``trial(name)`` for every name in turn, ``trials`` times, so that a slow spell affects all alike.

    A name that has used more than ``budget`` seconds takes no further turn.
    """
    spent = dict.fromkeys(names, 0.0)
    for number in range(trials):
        contestants = [name for name in names if spent[name] <= budget]
        progress(f"  trial {number + 1} of {trials}: {', '.join(contestants)}")
        for name in contestants:
            spent[name] += timed(trial, name)[1]


def run_program(command: Sequence[str | Path], *, threads: int | None = None, timeout: float = 1800) -> str:
    """Run a program and return its stdout; a failure raises an error with the last line that it printed."""
    environment = dict(os.environ)
    if threads is not None:
        environment |= {"OMP_NUM_THREADS": str(threads), "PARLAY_NUM_THREADS": str(threads)}
    # Open MPI refuses to run as root by default, and containers often do.
    environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    name = Path(command[0]).name
    try:
        done = subprocess.run(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"{name} did not finish within {timeout:.0f} s") from None
    if done.returncode:
        last_line = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
        raise RuntimeError(f"{name} ended with status {done.returncode}: {last_line}")
    return done.stdout


def version_of(package: str) -> str:
    """Return the version of an installed package."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def machine() -> dict[str, Any]:
    """Describe the machine and the software, which a reader needs to judge a figure."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "usable_cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "system": platform.platform(),
        "python": platform.python_version(),
        "gpu_pregel": version_of("gpu-pregel"),
        "numpy": version_of("numpy"),
        "numba": version_of("numba"),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def commit() -> str:
    """Return the commit of the checkout, with "-dirty" if files differ from it."""
    command = ["git", "describe", "--always", "--abbrev=12", "--exclude=*", "--dirty"]
    done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def write_json(path: Path | None, report: dict[str, Any]) -> None:
    """Write a report to ``path`` atomically; do nothing if the path is None."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished.write_text(json.dumps(report, indent=2) + "\n")
    unfinished.replace(path)
    progress(f"wrote {path}")


def table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format aligned columns: the first left-aligned, the others right-aligned."""
    lines = [list(heading), *(list(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heading))]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def format_seconds(seconds: float | None) -> str:
    """Format a duration with three significant digits: ``9.28 ms``, ``1.24 s``."""
    if seconds is None:
        return "-"
    unit, size = next(((unit, size) for unit, size in _UNITS if seconds >= size), _UNITS[-1])
    amount = seconds / size
    return f"{amount:.{2 if amount < 10 else 1 if amount < 100 else 0}f} {unit}"


def format_ratio(ratio: float | None) -> str:
    """Format a ratio with at least two significant digits: ``0.0042``, ``0.38``, ``2.66``."""
    if ratio is None:
        return "-"
    return f"{ratio:.2f}" if ratio >= 0.095 else f"{ratio:.2g}"


def progress(message: str) -> None:
    """Print a progress message to stderr."""
    print(message, file=sys.stderr, flush=True)
