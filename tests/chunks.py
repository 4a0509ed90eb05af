"""Small chunks of work, so that threads meet at the borders of chunks even on small graphs."""

from __future__ import annotations

import pytest

from gpu_pregel.host.devices import cpu


def shrink_chunks(monkeypatch: pytest.MonkeyPatch, size: int = 16) -> None:
    """Make CPU threads claim at most ``size`` items at a time, and share any more than that."""
    for name in ("_SERIAL_SIZE", "_MIN_CHUNK", "_MAX_CHUNK"):
        monkeypatch.setattr(cpu, name, size)
