"""What tests of agent vertices share: numbers of workers, what a run left, and marks that workers leave in a folder.

Compute functions of tests are made inside functions, so that they travel by value.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpu_pregel.agents import AgentResult, RetryPolicy
from gpu_pregel.host.agents.codec import encode, id_key, place_of_key

WORKERS = pytest.mark.parametrize("workers", [0, 1, 2, 5])
"""In process, and in several numbers of processes."""
PROCESSES = pytest.mark.parametrize("workers", [1, 2, 5])
ONCE = RetryPolicy(attempts=1)
AT_ONCE = RetryPolicy(attempts=3, wait=0)


def rows(result: AgentResult) -> list[tuple[Any, Any, list[tuple[Any, Any]], bool]]:
    """(id, value, edges, halted) of every vertex, in the order of ids."""
    found = [(one.id, one.value, [(edge.target, edge.weight) for edge in one.edges], one.halted)
             for one in result.vertices.values()]  # fmt: skip
    return sorted(found, key=lambda row: encode(row[0]))


def check(result: AgentResult, *expected: tuple[Any, Any, list[tuple[Any, Any]], bool]) -> None:
    """Assert that a run left these (id, value, edges, halted), bit for bit."""
    wanted = sorted(expected, key=lambda row: encode(row[0]))
    assert rows(result) == wanted
    assert encode(rows(result)) == encode(wanted)  # 1, 1.0 and True are equal, and not the same


def values(result: AgentResult, expected: dict[Any, Any]) -> None:
    """Assert that a run left these values, bit for bit."""
    assert result.values == expected
    order = sorted(expected, key=encode)
    assert encode([result.values[one] for one in order]) == encode([expected[one] for one in order])


def apart(count: int) -> list[int]:
    """The first vertices of each of so many partitions."""
    found: dict[int, int] = {}
    vertex = 0
    while len(found) < count:
        found.setdefault(place_of_key(id_key(vertex), count), vertex)
        vertex += 1
    return sorted(found.values())


def marks(folder: Path) -> list[str]:
    """Names of the marks that compute functions left, one for each attempt."""
    return sorted(one.name.rpartition(".")[0] for one in folder.iterdir())


def leave_mark(folder: str) -> Any:
    """A function that leaves a mark, to be used by compute functions in any process."""

    def leave(name: str) -> None:
        import os
        import tempfile

        os.close(tempfile.mkstemp("", f"{name}.", folder)[0])

    return leave
