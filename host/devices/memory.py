"""How much memory there is, and the refusal of work that needs more, before it begins."""

from __future__ import annotations

import os
from pathlib import Path

from gpu_pregel.errors import NotEnoughMemoryError

_CONTROL_GROUPS = Path("/sys/fs/cgroup")
_OWN_CONTROL_GROUP = Path("/proc/self/cgroup")


def available_memory() -> int | None:
    """Bytes that this process can still get: the machine's and the control group's; None where unknown."""
    figures = [figure for figure in (_of_machine(), _of_control_group()) if figure is not None]
    return min(figures) if figures else None


def _of_machine() -> int | None:
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


def _of_control_group() -> int | None:
    """What the limits of this process's control group (version 2) and its parents leave."""
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
    """Bytes of files that a control group holds in memory and gives back when they are needed."""
    try:
        lines = (folder / "memory.stat").read_text().splitlines()
    except OSError:
        return 0
    figures = dict(line.split(maxsplit=1) for line in lines)
    return sum(int(figures.get(name, 0)) for name in ("active_file", "inactive_file"))


def format_bytes(size: float) -> str:
    """Write a number of bytes for people, as ``1.5 GiB``."""
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError


def require_memory(needed: int, purpose: str) -> None:
    """Raise ``NotEnoughMemoryError`` with both figures if ``purpose`` needs more bytes than there are."""
    available = available_memory()
    if available is not None and needed > available:
        raise NotEnoughMemoryError(
            f"{purpose} needs {format_bytes(needed)} of memory, and {format_bytes(available)} are available: "
            f"use a smaller graph or a machine with more memory"
        )
