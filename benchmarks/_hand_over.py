"""From which size of a graph on each function of the backend for NetworkX is faster than NetworkX's own."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import networkx as nx

import gpu_pregel.networkx.sizes
from benchmarks._measure import machine, progress, version_of, write_json
from gpu_pregel.networkx import FUNCTIONS
from gpu_pregel.networkx.sizes import NEVER
from tests.gpu_pregel.networkx.cases import CASES
from tests.gpu_pregel.networkx.comparison import Case

_SIZES = [2**k for k in range(6, 19)]
"""Sizes that are tried: nodes and stored edges."""
_TRIALS = 5
_SURE = 3
"""After so many sizes in a row with which the backend is faster, no larger graph is tried."""
_LONG = 0.2
"""Seconds of a call of NetworkX after which no larger graph is tried."""


def measure_sizes(output: Path | None) -> int:
    """Measure every function, write sizes.py, and a report of all times if ``output`` is given."""
    report: dict[str, Any] = {}
    for name in sorted(FUNCTIONS):
        if (found := _first_that_runs(name)) is None:
            continue
        report[name] = _measure(name, *found)
        shown = (_literal(_smallest(report[name], side)) for side in ("cached", "first"))
        progress(f"{name}: {', with conversion '.join(shown)}")
    _write({name: (_smallest(rows, "cached"), _smallest(rows, "first")) for name, rows in report.items()})
    write_json(
        output,
        {"benchmark": "networkx sizes", "machine": machine() | {"networkx": version_of("networkx")}, "figures": report},
    )
    return 0


def _smallest(rows: list[dict[str, float]], side: str) -> int:
    """Return the size from which on the backend is never slower; the size is between two that were tried."""
    found = NEVER
    for row in reversed(rows):
        if row[side] > row["networkx"]:
            break
        found = int(row["size"])
    return found


def _measure(name: str, case: Case, make: Callable[[int], nx.Graph]) -> list[dict[str, float]]:
    """Return for each size the seconds of NetworkX, and of the backend with and without conversion."""
    rows: list[dict[str, float]] = []
    for size in _SIZES:
        graph = make(size)
        graph.__networkx_cache__.clear()
        given = case.arguments(graph)
        assert given is not None
        row = {"size": float(len(graph) + sum(map(len, graph._adj.values())))}
        function = FUNCTIONS[name].original()
        _seconds(function, given, "gpu_pregel")
        trials: dict[str, list[float]] = {"networkx": [], "cached": [], "first": []}
        for _ in range(_TRIALS):
            trials["networkx"].append(_seconds(function, given, "networkx"))
            trials["cached"].append(_seconds(function, given, "gpu_pregel"))
            if isinstance(graph, nx.Graph):
                graph.__networkx_cache__.clear()
            trials["first"].append(_seconds(function, given, "gpu_pregel"))
        rows.append(row | {side: sorted(seconds)[_TRIALS // 2] for side, seconds in trials.items()})
        latest = rows[-_SURE:]
        is_sure = len(latest) == _SURE and all(max(one["first"], one["cached"]) < one["networkx"] for one in latest)
        if is_sure or rows[-1]["networkx"] > _LONG:
            break
    return rows


def _seconds(function: Any, given: tuple[tuple[Any, ...], dict[str, Any]], backend: str) -> float:
    args, kwargs = given
    start = time.perf_counter()
    result = function(*args, **kwargs, backend=backend)
    if isinstance(result, Iterator):
        deque(result, maxlen=0)
    return time.perf_counter() - start


def _first_that_runs(name: str) -> tuple[Case, Callable[[int], nx.Graph]] | None:
    """Return the first of the tests' calls, and the first kind of graph, of which the backend computes a result.

    None stands for functions that take no graph, and for those that NetworkX itself does not have.
    """
    if "networkx" not in FUNCTIONS[name].original().__wrapped__.backends:
        return None
    for make in (_undirected, _directed, _acyclic, _tree, _bipartite):
        for case in CASES[name]:
            try:
                given = case.arguments(make(200))
                if given is not None and isinstance(given[0][0], nx.Graph):
                    _seconds(FUNCTIONS[name].original(), given, "gpu_pregel")
                    return case, make
            except Exception:
                continue
    return None


def _weighted(graph: nx.Graph) -> nx.Graph:
    source = random.Random(1)
    for *_, data in graph.edges(data=True):
        data["weight"] = source.randint(1, 9)
    return graph


@cache
def _undirected(size: int) -> nx.Graph:
    return _weighted(nx.gnm_random_graph(size // 9, size * 4 // 9, seed=1, backend="networkx"))


@cache
def _directed(size: int) -> nx.Graph:
    return _weighted(nx.gnm_random_graph(size // 9, size * 8 // 9, seed=1, directed=True, backend="networkx"))


@cache
def _acyclic(size: int) -> nx.Graph:
    graph = nx.DiGraph((u, v) for u, v in _directed(2 * size).edges if u < v)
    return _weighted(graph)


@cache
def _tree(size: int) -> nx.Graph:
    return _weighted(nx.random_labeled_tree(max(size // 3, 2), seed=1))


@cache
def _bipartite(size: int) -> nx.Graph:
    return nx.bipartite.gnmk_random_graph(size // 18, size // 18, size * 4 // 9, seed=1)


def _write(sizes: dict[str, tuple[int, int]]) -> None:
    """Rewrite the table of the package."""
    path = Path(gpu_pregel.networkx.sizes.__file__)
    head = path.read_text().split("SIZES:")[0]
    lines = [f'    "{name}": ({_literal(cached)}, {_literal(first)}),\n' for name, (cached, first) in sizes.items()]
    path.write_text(f"{head}SIZES: dict[str, tuple[int, int]] = {{\n{''.join(lines)}}}\n")


def _literal(size: int) -> str:
    return "NEVER" if size == NEVER else f"{size:_}"
