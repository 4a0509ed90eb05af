"""Workers that kill or stop themselves at a given place; the package itself contains no faults."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def arm(monkeypatch: pytest.MonkeyPatch, place: str, count: int, mark: Path, how: str = "kill") -> None:
    """End the worker that first creates ``mark`` when it reaches ``place`` for the ``count``-th time.

    Places are "loading", "idle" (a batch has arrived), "computing", "marked" (a frame is written, and its mark not
    cleared), "torn" (half a frame is written) and "committing". With ``how="stop"`` the worker stops instead.
    """
    _set_fault(monkeypatch, f"{place}:{count}:{mark}:{how}")


def forbid_cgroups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start workers that find no cgroup that they may divide."""
    _set_fault(monkeypatch, "no cgroups")


def _set_fault(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    folder, paths = str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")
    if folder not in paths.split(os.pathsep):
        monkeypatch.setenv("PYTHONPATH", f"{folder}{os.pathsep}{paths}".rstrip(os.pathsep))
    monkeypatch.setenv("GPU_PREGEL_WORKER_FAULT", fault)


def disarm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start later workers without a fault."""
    monkeypatch.delenv("GPU_PREGEL_WORKER_FAULT")
