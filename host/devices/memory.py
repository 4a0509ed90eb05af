"""Available host memory, and a check that fails early if an operation needs more."""

from __future__ import annotations

import os
from pathlib import Path

from gpu_pregel.errors import NotEnoughMemoryError

_CONTROL_GROUPS = Path("/sys/fs/cgroup")
_OWN_CONTROL_GROUP = Path("/proc/self/cgroup")
_LITTLE = 1 << 20
"""Fewer bytes are taken to be there: looking takes longer than building a small graph."""


def available_memory() -> int | None:
    """Return the bytes available to this process on the machine and in its control group, or None if unknown."""
    figures = [figure for figure in (_machine_memory(), _control_group_memory()) if figure is not None]
    return min(figures) if figures else None


def _machine_memory() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return None


def _control_group_memory() -> int | None:
    """Return the bytes left by the limits of this process's control group (version 2) and its ancestors."""
    try:
        group = _OWN_CONTROL_GROUP.read_text().strip().rsplit("::", 1)[1].lstrip("/")
    except (OSError, IndexError):
        return None
    root = _CONTROL_GROUPS
    left: int | None = None
    for folder in [root / group, *(root / group).parents]:
        if not folder.is_relative_to(root):
            break
        try:
            limit = (folder / "memory.max").read_text().strip()
            used = int((folder / "memory.current").read_text()) - _page_cache(folder)
        except (OSError, ValueError):
            continue
        if limit != "max":
            free = max(0, int(limit) - used)
            left = free if left is None else min(left, free)
    return left


def _page_cache(folder: Path) -> int:
    """Return the size of a control group's page cache, which the kernel reclaims on demand."""
    try:
        lines = (folder / "memory.stat").read_text().splitlines()
    except OSError:
        return 0
    figures = dict(line.split(maxsplit=1) for line in lines)
    return sum(int(figures.get(name, 0)) for name in ("active_file", "inactive_file"))


def format_bytes(size: float) -> str:
    """Format a number of bytes, for example as ``1.5 GiB``."""
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError


def require_memory(needed: int, purpose: str) -> None:
    """Raise ``NotEnoughMemoryError`` if ``purpose`` needs more bytes than are available, and more than 1 MiB."""
    if needed <= _LITTLE:
        return
    available = available_memory()
    if available is not None and needed > available:
        raise NotEnoughMemoryError(
            f"{purpose} needs {format_bytes(needed)} of memory, but only {format_bytes(available)} are available: "
            f"use a smaller graph or a machine with more memory"
        )
