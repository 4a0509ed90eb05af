"""From which size of a graph on each function of the backend for NetworkX is faster than NetworkX's own.

Each function is measured on graphs of several shapes, of which the one that speaks most for NetworkX counts.
"""

from __future__ import annotations

import math
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
        case, shapes = found
        report[name] = {make.__name__.strip("_"): rows for make in shapes if (rows := _measure(name, case, make))}
        shown = map(_literal, _sizes(report[name]))
        progress("{}: {}, with conversion {}, a second: {}".format(name, *shown))
    _write({name: _sizes(shapes) for name, shapes in report.items()})
    write_json(
        output,
        {"benchmark": "networkx sizes", "machine": machine() | {"networkx": version_of("networkx")}, "figures": report},
    )
    return 0


def _sizes(shapes: dict[str, list[dict[str, float]]]) -> tuple[int, int, int]:
    """Return the sizes from which on the backend is never slower, without and with conversion, and that of a second."""
    cached, first = (max(_smallest(rows, side) for rows in shapes.values()) for side in ("cached", "first"))
    # Time grows with the size at least.
    second = min(rows[-1]["size"] / rows[-1]["networkx"] for rows in shapes.values())
    return cached, first, int(second)


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
        if (given := case.arguments(graph)) is None:
            return rows
        row = {"size": float(len(graph) + sum(map(len, graph._adj.values())))}
        function = FUNCTIONS[name].original()
        try:
            _seconds(function, given, "gpu_pregel")
        except Exception:
            # NetworkX refuses the shape, too, as the tests show: it may lack a path, or a centre.
            return rows
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


def _first_that_runs(name: str) -> tuple[Case, tuple[Callable[[int], nx.Graph], ...]] | None:
    """Return the first of the tests' calls, and the first kind of graph, of which the backend computes a result.

    None stands for functions that take no graph, and for those that NetworkX itself does not have.
    """
    if "networkx" not in FUNCTIONS[name].original().__wrapped__.backends:
        return None
    for shapes in (
        (_undirected, _grid, _hubs, _tree),
        (_directed, _sparse_directed),
        (_acyclic,),
        (_tree,),
        (_bipartite,),
    ):
        make = shapes[0]
        for case in CASES[name]:
            try:
                given = case.arguments(make(200))
                if given is not None and isinstance(given[0][0], nx.Graph):
                    _seconds(FUNCTIONS[name].original(), given, "gpu_pregel")
                    return case, shapes
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
def _grid(size: int) -> nx.Graph:
    side = max(math.isqrt(size // 5), 2)
    return _weighted(nx.convert_node_labels_to_integers(nx.grid_2d_graph(side, side)))


@cache
def _hubs(size: int) -> nx.Graph:
    return _weighted(nx.barabasi_albert_graph(max(size // 33, 18), 16, seed=1))


@cache
def _sparse_directed(size: int) -> nx.Graph:
    return _weighted(nx.gnm_random_graph(size // 3, size * 2 // 3, seed=1, directed=True, backend="networkx"))


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


def _write(sizes: dict[str, tuple[int, int, int]]) -> None:
    """Rewrite the table of the package."""
    path = Path(gpu_pregel.networkx.sizes.__file__)
    head = path.read_text().split("SIZES:")[0]
    lines = [f'    "{name}": ({", ".join(map(_literal, row))}),\n' for name, row in sizes.items()]
    path.write_text(f"{head}SIZES: dict[str, tuple[int, int, int]] = {{\n{''.join(lines)}}}\n")


def _literal(size: int) -> str:
    return "NEVER" if size == NEVER else f"{size:_}"
