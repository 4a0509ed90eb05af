"""Fixtures of the tests of workflows."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import gpu_pregel as gp
from gpu_pregel.host.stores.store import Store
from tests.stores import STORES

_names = itertools.count()


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no proxy and no key of the machine take part."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name.startswith("OPENAI_"):
            monkeypatch.delenv(name)


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A store of each kind."""
    if request.param == "memory":
        opened: Store = gp.MemoryStore()
    elif request.param == "sqlite":
        opened = gp.SQLiteStore(tmp_path / "runs.db")
    else:
        opened = gp.PostgresStore(request.getfixturevalue("postgres"), schema=f"workflows_{next(_names)}")
    with opened:
        yield opened
