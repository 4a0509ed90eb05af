"""Fixtures of the tests of worker processes."""

from __future__ import annotations

import pytest


@pytest.fixture
def one_run_id(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give all runs of a test the same random numbers."""
    monkeypatch.setattr("gpu_pregel.host.agents.recovery.new_run_id", lambda: "one")
