"""From which size of a graph on each function of the backend for NetworkX is faster than NetworkX's own.

Each function is measured on sparse graphs, on dense ones, and on others, of several shapes each.
"""

from __future__ import annotations

import gc
import math
import random
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import networkx as nx

from benchmarks._hand_over_sizes import SURE, Row, described, sizes_of
from benchmarks._measure import machine, progress, version_of, write_json
from gpu_pregel.networkx import FUNCTIONS, backend, hand_over
from gpu_pregel.networkx.few_nodes import reads_few_nodes
from tests.gpu_pregel.networkx.cases import CASES
from tests.gpu_pregel.networkx.comparison import Case, call

_SIZES = [2**k for k in range(4, 19)]
_LARGE = [2_500 * 2**k for k in range(10)]
"""Sizes that are tried: nodes and stored edges; and those of complete graphs, which are dense from the first on."""
_RUNS = 200
"""The size with which a call is tried first; it may make no sense for a smaller graph."""
_TRIALS, _FEWEST = 25, 3
_ENOUGH = 0.02
_LONGEST = 2.0
"""Seconds of calls of NetworkX after which fewer trials are made, and after which no other."""
_SMALLEST = 256
"""After some sizes in a row with which the backend is faster, of which the last is no smaller than this, no larger
graph is tried: the time of NetworkX with much larger ones is estimated by that."""
_LONG = 0.1
"""Seconds of a call of NetworkX after which no larger graph is tried."""

Make = Callable[[int], nx.Graph]


def measure_sizes(output: Path | None) -> int:
    """Measure every function, and write a report of all times, from which ``--sizes`` writes sizes.json."""
    shapes: dict[str, dict[str, list[Row]]] = {}
    for name in sorted(FUNCTIONS):
        if found := _shapes_that_run(name):
            shapes[name] = {make.__name__.strip("_"): _measure(name, case, make) for case, make in found}
            progress(f"{name}: {sizes_of(shapes[name])}")
    environment = machine() | {"networkx": version_of("networkx")}
    write_json(output, {"benchmark": "networkx sizes", "machine": environment} | described(shapes))
    return 0


def _measure(name: str, case: Case, make: Make) -> list[Row]:
    """Return for each size the seconds of NetworkX, and of the backend with and without conversion.

    Calls that the backend leaves to NetworkX as they read few nodes are missing: of graphs that are not converted, or
    of all.
    """
    rows: list[Row] = []
    entry = FUNCTIONS[name]
    for size in _LARGE if "complete" in make.__name__ else _SIZES:
        graph = make(size)
        if (given := case.arguments(graph)) is None:
            if size < _RUNS:
                continue
            return rows
        graph = given[0][0]
        graph.__networkx_cache__.clear()
        function = entry.original()
        is_left = reads_few_nodes(graph, entry, *given, is_converted=False) is not None
        try:
            _seconds(function, given, "gpu_pregel")
        except Exception:
            # NetworkX refuses the shape, too, as the tests show: it may lack a path, or a centre.
            if not rows and size < _RUNS:
                continue
            if rows:
                rows[-1]["refused"] = 1.0
            return rows
        is_left_if_converted = reads_few_nodes(graph, entry, *given, is_converted=True) is not None
        trials: dict[str, list[float]] = {"networkx": [], "cached": [], "first": []}
        # Otherwise a collection now and then visits all graphs.
        gc.freeze()
        # In alternation, so that a slow spell affects all sides alike.
        converted = graph.__networkx_cache__
        for i in range(_TRIALS):
            if sum(trials["networkx"]) > (_ENOUGH if i >= _FEWEST else _LONGEST):
                break
            graph.__networkx_cache__ = converted
            trials["networkx"].append(_seconds_asked(function, given, is_taken=False))
            if not is_left_if_converted:
                trials["cached"].append(_seconds_asked(function, given, is_taken=True))
            if not is_left:
                graph.__networkx_cache__ = {}
                trials["first"].append(_seconds_asked(function, given, is_taken=True))
        edges = sum(map(len, graph._adj.values()))
        row = {"size": float(len(graph) + edges), "edges": edges / len(graph)}
        rows.append(row | {side: sorted(seconds)[len(seconds) // 2] for side, seconds in trials.items() if seconds})
        latest = rows[-SURE:]
        is_sure = len(latest) == SURE and all(
            max(one.get("first", 0.0), one.get("cached", 0.0)) < one["networkx"] for one in latest
        )
        if (is_sure and size >= _SMALLEST) or rows[-1]["networkx"] > _LONG:
            break
    return rows


def _seconds_asked(function: Any, given: tuple[tuple[Any, ...], dict[str, Any]], *, is_taken: bool) -> float:
    """Return the seconds of a call, also of functions that it calls, where priorities are asked first.

    It is taken or handed over, whatever the answer is.
    """
    priority, hands_over = nx.config.backend_priority, hand_over.hands_over
    before = priority.algos, priority.generators
    priority.algos = priority.generators = ["gpu_pregel"]
    vars(backend)["hands_over"] = lambda *call: (hands_over(*call), None if is_taken else "it is measured")[1]
    try:
        return _seconds(function, given, None)
    finally:
        priority.algos, priority.generators = before
        vars(backend)["hands_over"] = hands_over


def _seconds(function: Any, given: tuple[tuple[Any, ...], dict[str, Any]], backend: str | None) -> float:
    args, kwargs = given
    start = time.perf_counter()
    result = function(*args, **kwargs, backend=backend)
    if isinstance(result, Iterator):
        deque(result, maxlen=0)
    return time.perf_counter() - start


def _shapes_that_run(name: str) -> list[tuple[Case, Make]]:
    """Return the shapes of graphs with which a function is measured, and the call of the tests that is made of each.

    None are returned for functions that take no graph, and for those that NetworkX itself does not have.
    """
    if "networkx" not in FUNCTIONS[name].original().__wrapped__.backends:
        return []
    if name == "find_negative_cycle":
        return [(call(0), _negative)]
    if name == "lowest_common_ancestor":
        return [(Case(lambda graph: ((graph, *list(graph)[-2:]), {})), _acyclic)]
    if name in ("eulerian_circuit", "eulerian_path"):
        return [(call(), _circulant)]
    found: list[tuple[Case, Make]] = []
    for first, *others in (
        (_undirected, _grid, _hubs, _tree, _pieces, _complete),
        (_directed, _sparse_directed, _complete_directed),
    ):
        if case := _case_that_runs(name, first):
            found += [(case, make) for make in (first, *others)]
    for make in (_acyclic, _tree, _bipartite):
        if not found and (case := _case_that_runs(name, make)):
            found.append((case, make))
    return found


def _case_that_runs(name: str, make: Make) -> Case | None:
    """Return the first of the tests' calls of which the backend computes a result."""
    for case in CASES[name]:
        try:
            graph = make(_RUNS).copy()
            if (given := case.arguments(graph)) is not None and given[0][0] is graph:
                _seconds(FUNCTIONS[name].original(), given, "gpu_pregel")
                return case
        except Exception:
            continue
    return None


def _weighted(graph: nx.Graph) -> nx.Graph:
    source = random.Random(1)
    for *_, data in graph.edges(data=True):
        data["weight"] = source.randint(1, 9)
    for node in graph:
        graph.nodes[node]["size"] = source.randint(1, 9)
    return graph


@cache
def _undirected(size: int) -> nx.Graph:
    return _weighted(nx.gnm_random_graph(max(size // 9, 4), size * 4 // 9, seed=1, backend="networkx"))


@cache
def _directed(size: int) -> nx.Graph:
    return _weighted(nx.gnm_random_graph(max(size // 9, 4), size * 8 // 9, seed=1, directed=True, backend="networkx"))


@cache
def _grid(size: int) -> nx.Graph:
    side = max(math.isqrt(size // 5), 2)
    return _weighted(nx.convert_node_labels_to_integers(nx.grid_2d_graph(side, side)))


@cache
def _hubs(size: int) -> nx.Graph:
    edges = min(max(math.isqrt(size) // 3, 2), 16)
    return _weighted(nx.barabasi_albert_graph(max(size // (2 * edges + 1), edges + 2), edges, seed=1))


@cache
def _sparse_directed(size: int) -> nx.Graph:
    return _weighted(nx.gnm_random_graph(size // 3, size * 2 // 3, seed=1, directed=True, backend="networkx"))


@cache
def _negative(size: int) -> nx.DiGraph:
    graph = _directed(size).copy()
    for *_, data in graph.edges(data=True):
        data["weight"] -= 2
    return graph


@cache
def _circulant(size: int) -> nx.Graph:
    return _weighted(nx.circulant_graph(max(size // 5, 7), [1, 3]))


@cache
def _acyclic(size: int) -> nx.Graph:
    graph = nx.DiGraph((u, v) for u, v in _directed(2 * size).edges if u < v)
    return _weighted(graph)


@cache
def _tree(size: int) -> nx.Graph:
    return _weighted(nx.random_labeled_tree(max(size // 3, 2), seed=1))


@cache
def _pieces(size: int) -> nx.Graph:
    """Return a random graph of small components."""
    return _weighted(nx.gnm_random_graph(size // 2, size // 4, seed=1, backend="networkx"))


@cache
def _complete(size: int) -> nx.Graph:
    return _weighted(nx.complete_graph(max(math.isqrt(size), 3)))


@cache
def _complete_directed(size: int) -> nx.Graph:
    return _weighted(nx.complete_graph(max(math.isqrt(size), 3), nx.DiGraph))


@cache
def _bipartite(size: int) -> nx.Graph:
    half = max(size // 18, 3)
    return nx.bipartite.gnmk_random_graph(half, half, size * 4 // 9, seed=1)
