"""Keeps types that the tests of the codec register out of the workers of other tests."""

from __future__ import annotations

import pytest

from gpu_pregel.host.agents.codec import registered
from gpu_pregel.host.agents.workers import pool as workers


@pytest.fixture(autouse=True)
def _no_types_of_the_codecs_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        workers,
        "registered",
        lambda: {name: one for name, one in registered().items() if ".test_codec" not in one.__module__},
    )
