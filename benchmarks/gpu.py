"""A report about a GPU in ten minutes: tests, results and speed of the algorithms, and bytes beside the counted ones.

Each part runs in a process with its own time limit, and the report is written after each, so that a failure, an endless
loop or a lost GPU loses nothing else. Nothing is downloaded. Beside the JSON file, a page of pictures is written with
the suffix ``.html``.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks._gpu_page import write_page
from benchmarks._gpu_parts import Settings, parts_of
from benchmarks._graphs import is_spec
from benchmarks._measure import machine, progress, write_json
from gpu_pregel.host.devices.cuda import unavailable_reason

HELP = "a report about a GPU: tests, speed and traffic, in ten minutes"

_REQUIRED = {"cupy": "CuPy", "numba_cuda": "numba-cuda", "cuda.bindings": "cuda-bindings"}
_OPTIONAL: dict[str, Callable[[], object]] = {
    "the tests": lambda: find_spec("pytest"),
    "compute-sanitizer": lambda: shutil.which("compute-sanitizer"),
    "Nsight Compute (ncu)": lambda: shutil.which("ncu"),
    "cuGraph": lambda: find_spec("cugraph"),
    "pictures (matplotlib)": lambda: find_spec("matplotlib"),
}
_LEAST_SECONDS = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    settings = Settings()
    parser.add_argument("--device", default=settings.device, help="cuda or cuda:N (default: cuda)")
    parser.add_argument("--minutes", type=float, default=10.0, help="time for the whole report (default: 10)")
    parser.add_argument(
        "--graphs", default=",".join(settings.graphs), help=f"graphs, in order (default: {','.join(settings.graphs)})"
    )
    parser.add_argument("--parts", help="parts to run, separated by commas (default: all)")


def run(arguments: argparse.Namespace) -> int:
    """Write the report; return 1 if a part failed or a result is wrong."""
    settings = Settings(device=arguments.device, graphs=tuple(arguments.graphs.split(",")))
    names = _check(arguments, settings)
    absent = [name for name, find in _OPTIONAL.items() if not find()]
    if absent:
        progress(f"not installed, and left out: {', '.join(absent)}")
    report: dict[str, Any] = {
        "benchmark": "gpu",
        "machine": machine(),
        "settings": asdict(settings),
        "left_out": absent,
        "parts": {},
    }
    end = time.monotonic() + 60 * arguments.minutes
    for name in names:
        limit = min(parts_of(settings)[name][1], end - time.monotonic())
        progress(f"{name}: at most {max(limit, 0):.0f} s")
        report["parts"][name] = (
            execute(name, replace(settings, limit=limit), limit)
            if limit >= _LEAST_SECONDS
            else {"skipped": "no time left"}
        )
        write_json(arguments.output, report)
        write_page(report, arguments.output.with_suffix(".html"))
    return int(any(map(has_failed, report["parts"].values())))


def _check(arguments: argparse.Namespace, settings: Settings) -> list[str]:
    """Return the names of the parts to run, or say what is missing before any work."""
    _check_output(arguments.output)
    kind, colon, number = settings.device.partition(":")
    if kind != "cuda" or (colon and not number.isdecimal()):
        raise ValueError(f"--device {settings.device!r} is not a GPU: give cuda or cuda:N")
    wrong = [spec for spec in settings.graphs if not is_spec(spec)]
    if wrong:
        raise ValueError(f"{wrong[0]!r} is not a graph: give kron:SCALE, uniform:SCALE or grid:SCALE")
    known = list(parts_of(settings))
    names = known if arguments.parts is None else [name.strip() for name in arguments.parts.split(",")]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"unknown part {unknown[0]!r}: use {', '.join(known)}")
    missing = [title for package, title in _REQUIRED.items() if not _is_installed(package)]
    reason = unavailable_reason(int(number or 0))
    if missing or reason:
        install = f"{', '.join(missing)} not installed: pip install gpu-pregel[cuda13]" if missing else ""
        raise ValueError(f"this report needs a GPU; {'; '.join(filter(None, [reason, install]))}")
    return names


def _check_output(output: Path | None) -> None:
    if output is None:
        raise ValueError("give the report's file: -o REPORT.json")
    if output.suffix == ".html":
        raise ValueError(f"{output} would be replaced by the page of pictures: give the report's file as REPORT.json")
    folder = next(one for one in output.absolute().parents if one.exists())
    if output.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise ValueError(f"cannot write {output}: give a file in a folder to which you may write")


def _is_installed(package: str) -> bool:
    return find_spec(package.partition(".")[0]) is not None and find_spec(package) is not None


def has_failed(part: dict[str, Any]) -> bool:
    """Return whether a part ended early, failed, or found a wrong result."""
    results = part.get("algorithms", {}).values()
    wrong = any("error" in one or one.get("correct") is False for one in results)
    statuses = [part, *(part.get(check, {}) for check in ("memcheck", "racecheck"))]
    return bool("error" in part or part.get("timed_out") or wrong or any(one.get("status") for one in statuses))


def execute(name: str, settings: Settings, limit: float) -> dict[str, Any]:
    """Run a part in a process of its own; return what it saved before it ended or its time was up."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "found.json")
        command = [sys.executable, "-m", "benchmarks._gpu_parts", name, str(output), json.dumps(asdict(settings))]
        begin = time.monotonic()
        with (
            open(Path(folder, "errors"), "w+") as errors,
            subprocess.Popen(command, stderr=errors, stdout=errors, start_new_session=True) as process,
        ):
            try:
                status: int | None = process.wait(limit)
            except subprocess.TimeoutExpired:
                status = None
                # The part may have started tools that would keep the GPU busy.
                os.killpg(process.pid, signal.SIGKILL)
            errors.seek(0)
            lines = errors.read().strip().splitlines()
        found: dict[str, Any] = json.loads(output.read_text()) if output.exists() else {}
    found["seconds"] = time.monotonic() - begin
    if status is None:
        found["timed_out"] = True
    elif status:
        found["error"] = f"the process ended with status {status}: {lines[-1] if lines else 'no output'}"
    return found
