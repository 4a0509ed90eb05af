"""Fixtures of conformance suites that need stores: each store, the path of a file, a log."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.host.stores.store import Store
from tests.agents import ON_THREADS
from tests.devices import EXHAUSTIVE
from tests.stores import STORES, Open

_names = itertools.count()


@pytest.fixture(params=STORES)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Opens the store of this test; each call opens a durable store again."""
    workers = request.node.callspec.params.get("workers")
    if request.param != "sqlite" and (workers or workers is ON_THREADS) and not EXHAUSTIVE:
        pytest.skip("runs with GPU_PREGEL_TESTS=all")
    stores: list[Store] = []

    def open_store(**options: Any) -> Store:
        if request.param == "memory":
            store: Store = stores[0] if stores else gp.MemoryStore(**options)
        elif request.param == "sqlite":
            store = gp.SQLiteStore(tmp_path / "runs.db", **options)
        else:
            store = gp.PostgresStore(request.getfixturevalue("postgres"), schema=schema, **options)
        stores.append(store)
        return store

    schema = f"conformance_{next(_names)}"
    yield open_store
    for store in stores:
        store.close()


@pytest.fixture
def store(opened: Open) -> Store:
    return opened()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of a SQLite store."""
    return tmp_path / "runs.db"


@pytest.fixture
def log(tmp_path: Path) -> str:
    """The log to which compute functions write lines."""
    return str(tmp_path / "log")
