"""Fixtures for the tests of all formats."""

from __future__ import annotations

import re
import resource
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import FormatError

Edges = list[tuple[Any, ...]]


def listed(graph: gp.Graph) -> Edges:
    """Return the sorted edges by the user's ids, with their weights if any."""
    src, dst, weight = graph.to_edgelist()
    columns = [graph.to_ids(src).tolist(), graph.to_ids(dst).tolist()]
    if weight is not None:
        columns.append(weight.tolist())
    return sorted(zip(*columns, strict=True))


def same(first: gp.Graph, second: gp.Graph) -> bool:
    """Return whether two graphs are bitwise equal."""
    pairs: list[tuple[Any, Any]] = [(first.indptr, second.indptr), (first.indices, second.indices)]
    pairs += [(first.weights, second.weights), (first.ids, second.ids)]
    if first.is_directed != second.is_directed:
        return False
    return all(a is b or (a is not None and b is not None and np.array_equal(a, b)) for a, b in pairs)


@pytest.fixture(scope="session")
def edges() -> Callable[[gp.Graph], Edges]:
    return listed


@pytest.fixture(scope="session")
def equal() -> Callable[[gp.Graph, gp.Graph], bool]:
    return same


@pytest.fixture
def write_file(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """Write a file with this name and content; return its path."""

    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture
def assert_rejected() -> Callable[..., None]:
    """Assert that reading raises ``FormatError`` with this file, line and problem."""

    def check(path: Path, line: int | None, problem: str, **options: Any) -> None:
        with pytest.raises(FormatError, match=re.escape(problem)) as caught:
            gp.read_graph(path, **options)
        place = f"{path}: " if line is None else f"{path}, line {line}: "
        assert str(caught.value).startswith(place), str(caught.value)

    return check


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read text in blocks of a few bytes, so that small files have many blocks."""
    monkeypatch.setattr("gpu_pregel.io._lines._BLOCK_BYTES", 7)


@contextmanager
def small_files() -> Iterator[None]:
    """Limit files to 4 KiB; the test runner must not write its own output meanwhile."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def small_disk() -> Callable[[], AbstractContextManager[None]]:
    return small_files
