"""Fixtures of the tests of stores: the path of a file, and a schema on a server with and without a proxy."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

import gpu_pregel as gp
from tests.postgres import Cluster, Proxy

_numbers = itertools.count()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
def schema() -> str:
    return f"special_{next(_numbers)}"


@pytest.fixture
def store(postgres: str, schema: str) -> Iterator[gp.PostgresStore]:
    with gp.PostgresStore(postgres, schema=schema) as opened:
        yield opened


@pytest.fixture
def proxy(cluster: Cluster) -> Iterator[Proxy]:
    with Proxy(cluster) as opened:
        yield opened


@pytest.fixture
def proxied(proxy: Proxy, schema: str) -> Iterator[gp.PostgresStore]:
    """The store of ``store``, opened through the proxy."""
    with gp.PostgresStore(proxy.dsn, schema=schema, patience=10) as opened:
        yield opened
