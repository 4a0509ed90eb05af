"""Fixtures of the tests of the cache of compiled code."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_pregel.kernels.library import cache


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setattr(cache, "cache_directory", lambda: str(tmp_path))
    return tmp_path
