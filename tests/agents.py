"""Helpers for tests of agent vertices: numbers of workers, checks of results, marks in a folder and lines in a log.

Compute functions of tests are defined inside functions, so that they are pickled by value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gpu_pregel.agents import AgentResult, RetryPolicy
from gpu_pregel.host.agents.codec import encode, id_key, place_of_key
from gpu_pregel.host.agents.options import RunOptions
from tests.devices import LONG


class _OnThreads(int):
    """The number of workers, 0, of tests that compute on threads of this process."""


ON_THREADS = _OnThreads(0)
_THREADS_CASE = pytest.param(ON_THREADS, id="threads")


@contextmanager
def threads_by_default(workers: Any) -> Iterator[None]:
    """Let runs compute on four threads for which nothing else is said, if ``workers`` is ``ON_THREADS``."""
    with pytest.MonkeyPatch.context() as patch:
        if workers is ON_THREADS:
            patch.setitem(RunOptions.__init__.__kwdefaults__ or {}, "threads", 4)
        yield


def _numbers_of_workers(*default: int) -> pytest.MarkDecorator:
    """Run a test with each of four numbers of workers, by default only with these, and on threads."""
    every = (0, 1, 2, 5)
    cases = [pytest.param(k, marks=() if k in default else LONG) for k in every]
    return pytest.mark.parametrize("workers", [*cases, _THREADS_CASE])


WORKERS = _numbers_of_workers(0, 2)
"""In process, and with several worker processes."""
MORE_WORKERS = _numbers_of_workers(0, 5)
"""The same for tests whose results depend on how many workers divide the vertices, such as those of order."""
ONE_WORKER = _numbers_of_workers(0, 1)
"""The same for tests of attempts that share a worker."""
FEW = pytest.mark.parametrize("workers", [0, 2, _THREADS_CASE])
PROCESSES = pytest.mark.parametrize("workers", [1, 2, 5])
ONCE = RetryPolicy(attempts=1)
WITHOUT_WAIT = RetryPolicy(attempts=3, wait=0)
EVENT_KINDS = (
    "superstep",
    "emit",
    "attempt",
    "retry",
    "failure",
    "interrupt",
    "death",
    "undeliverable",
    "commit",
    "hold",
    "end",
)


def rows(result: AgentResult) -> list[tuple[Any, Any, list[tuple[Any, Any]], bool]]:
    """Return (id, value, edges, halted) of all vertices, in the order of ids."""
    found = [(one.id, one.value, [(edge.target, edge.weight) for edge in one.edges], one.halted)
             for one in result.vertices.values()]  # fmt: skip
    return sorted(found, key=lambda row: encode(row[0]))


def check(result: AgentResult, *expected: tuple[Any, Any, list[tuple[Any, Any]], bool]) -> None:
    """Assert that a result has these (id, value, edges, halted), with equal bytes."""
    wanted = sorted(expected, key=lambda row: encode(row[0]))
    assert rows(result) == wanted
    assert encode(rows(result)) == encode(wanted)  # 1, 1.0 and True are equal, but have different bytes


def values(result: AgentResult, expected: dict[Any, Any]) -> None:
    """Assert that a result has these values, with equal bytes."""
    found = result.values  # decodes all values
    assert found == expected
    order = sorted(expected, key=encode)
    assert encode([found[one] for one in order]) == encode([expected[one] for one in order])


def state_bytes(result: AgentResult) -> bytes:
    """Return the codec bytes of the vertices, their order, the superstep and the aggregates."""
    return encode((rows(result), list(result.vertices), result.superstep, result.aggregates))


def result_bytes(result: AgentResult) -> bytes:
    """Return the codec bytes of the same and the status."""
    return encode((rows(result), list(result.vertices), result.superstep, result.aggregates, result.status))


def one_per_partition(count: int) -> list[int]:
    """Return the first vertex of each of ``count`` partitions."""
    found: dict[int, int] = {}
    vertex = 0
    while len(found) < count:
        found.setdefault(place_of_key(id_key(vertex), count), vertex)
        vertex += 1
    return sorted(found.values())


def marks(folder: Path) -> list[str]:
    """Return the names of the marks of compute functions, one for each attempt."""
    return sorted(one.name.rpartition(".")[0] for one in folder.iterdir())


def logged(log: str) -> Counter[str]:
    """Return how often each line is in the log that compute functions write."""
    return Counter(Path(log).read_text().splitlines())


def leave_mark(folder: str) -> Any:
    """Return a function with which compute functions leave a mark, in any process."""

    def leave(name: str) -> None:
        import os
        import tempfile

        os.close(tempfile.mkstemp("", f"{name}.", folder)[0])

    return leave
