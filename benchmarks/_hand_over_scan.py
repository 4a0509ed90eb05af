"""Calls that take longer with priorities set than NetworkX alone, on graphs of other shapes than sizes.json's.

The first of the tests' calls of each function that NetworkX answers is timed in alternation: without a backend; with
one that refuses at once, which is what NetworkX's own dispatch takes; and with ours on a graph that is not converted,
and on one that is. What seems slower is measured again, for longer, before it counts.
"""

from __future__ import annotations

import random
import signal
import statistics
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import networkx as nx

from benchmarks._measure import machine, progress, version_of, write_json
from gpu_pregel.networkx import FUNCTIONS
from gpu_pregel.networkx.backend import backend
from tests.gpu_pregel.networkx.cases import CASES
from tests.gpu_pregel.networkx.comparison import Arguments

_TRIED = 6
"""How many of the tests' calls of a function are tried, to find one that NetworkX answers."""
_SHARE, _LEAST, _MUCH = 1.2, 20e-6, 60e-6
"""A call that takes longer by this factor and this many seconds is slower, and much slower by as many as the last
number; calls that take longer by the factor alone are counted only."""
_FIRST, _AGAIN = (0.005, 3, 40), (0.03, 9, 150)
"""Seconds of calls of NetworkX, and how often each side is called at least and at most: at first, and to be sure."""
_LONG = 0.1
"""Seconds after which a call of NetworkX is given up: such graphs are above every size."""
_SIDES = ("networkx", "refused", "first", "converted")
_OURS = _SIDES[2:]

Times = dict[str, float]


def scan(output: Path | None) -> int:
    """Time all calls, print how many are slower, and write the report."""
    with warnings.catch_warnings():
        # NetworkX's warning costs as much when it is not shown.
        warnings.filterwarnings("ignore", message="Note: conversions")
        report = _report()
    print(report["counts"])
    environment = machine() | {"networkx": version_of("networkx")}
    write_json(output, {"benchmark": "networkx scan", "machine": environment} | report)
    return 0


def _report() -> dict[str, Any]:
    """Return the times of all calls, and which are slower."""
    slower: list[dict[str, Any]] = []
    total = 0
    over: dict[str, dict[str, int]] = {}
    _prefer(False)
    for shape, make in _GRAPHS.items():
        graph, calls = _with_attributes(make()), 0
        over[shape] = dict.fromkeys(_SIDES[1:], 0)
        for name, i, given in _calls(graph):
            calls += 1
            # Loads what it calls, and converts its graph for the rounds that follow.
            converted = _converted(name, given)
            times = _times(name, given, converted, *_FIRST)
            for side in _SIDES[1:]:
                over[shape][side] += _is_slower(times, side, 0.0)
            if any(_is_slower(times, side) for side in _SIDES):
                times = _times(name, given, converted, *_AGAIN)
                slower += [_described(shape, name, i, given, converted, times)] * any(
                    _is_slower(times, side) for side in _SIDES
                )
        total += calls
        progress(f"{shape}: {calls} calls, {sum(row['graph'] == shape for row in slower)} slower; {over[shape]} at all")
        over[shape] = {"calls": calls} | over[shape]
    counts = {"calls": total} | {
        f"{side} by {least * 1e6:.0f} us": _count(slower, side, least)
        for side in _SIDES[1:]
        for least in (_LEAST, _MUCH)
    }
    columns = (
        "microseconds of NetworkX alone, with priorities set for a backend that refuses at once, and for ours on a "
        "graph that is not converted, and on one that is; and why ours leaves the call to NetworkX on either, or that "
        "it takes it"
    )
    lines = {shape: _lines(shape, slower) for shape in _GRAPHS}
    return {"counts": counts, "slower by any time": over, "columns": columns, "slower": lines}


def _calls(graph: nx.Graph) -> Iterator[tuple[str, int, Arguments]]:
    """Yield the calls that are made of a graph, one of each function, by its position among the tests' calls."""
    for name in sorted(FUNCTIONS):
        if "networkx" not in FUNCTIONS[name].original().__wrapped__.backends:
            continue
        for i, case in enumerate(CASES[name][:_TRIED]):
            if (given := _runs(name, case.arguments, graph)) is not None:
                yield name, i, given
                break


def _runs(name: str, arguments: Callable[[nx.Graph], Arguments | None], graph: nx.Graph) -> Arguments | None:
    """Return the arguments of a call that NetworkX answers in time, and that can be repeated; else None."""
    try:
        given = arguments(graph.copy())
        if given is None or not hasattr(next(iter(given[0]), None), "__networkx_cache__"):
            return None
        with _time_limit():
            _seconds(name, given)
    except Exception:
        return None
    return None if any(isinstance(one, Iterator) for one in (*given[0], *given[1].values())) else given


@contextmanager
def _time_limit() -> Iterator[None]:
    def interrupt(*_: Any) -> None:
        raise TimeoutError

    handler = signal.signal(signal.SIGALRM, interrupt)
    # Again and again, as Python ignores what is raised while it collects garbage.
    timer = signal.setitimer(signal.ITIMER_REAL, _LONG, _LONG)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, handler)


def _converted(name: str, given: Arguments) -> dict[str, Any]:
    """Return the cache of a graph that has been converted for a call, if the backend takes that call."""
    graph = given[0][0]
    graph.__networkx_cache__ = {}
    try:
        for _ in range(2):
            _seconds(name, given, backend="gpu_pregel")
    except NotImplementedError:
        # The call is refused, whatever has converted its graph.
        nx.number_of_isolates(graph, backend="gpu_pregel")
    cache: dict[str, Any] = graph.__networkx_cache__
    return cache


def _times(name: str, given: Arguments, converted: dict[str, Any], budget: float, least: int, most: int) -> Times:
    """Return the median seconds of each side."""
    graph = given[0][0]
    found: dict[str, list[float]] = {side: [] for side in _SIDES}
    theirs = found["networkx"]
    while len(theirs) < least or (len(theirs) < most and sum(theirs) < budget):
        theirs.append(_seconds(name, given))
        _prefer(True)
        with _refusing():
            found["refused"].append(_seconds(name, given))
        for side in _OURS:
            graph.__networkx_cache__ = {} if side == "first" else converted
            found[side].append(_seconds(name, given))
        _prefer(False)
    return {side: statistics.median(seconds) for side, seconds in found.items()}


@contextmanager
def _refusing() -> Iterator[None]:
    """Let the backend refuse all calls, before it looks at them."""
    vars(backend)["can_run"] = lambda *_: False
    yield
    del vars(backend)["can_run"]


def _prefer(is_preferred: bool) -> None:
    """Set or clear NetworkX's priorities."""
    priority = nx.config.backend_priority
    priority.algos = priority.generators = ["gpu_pregel"] if is_preferred else []


def _seconds(name: str, given: Arguments, **options: str) -> float:
    args, kwargs = given
    function = FUNCTIONS[name].original()
    start = time.perf_counter()
    result = function(*args, **kwargs, **options)
    if isinstance(result, Iterator):
        deque(result, maxlen=0)
    return time.perf_counter() - start


def _is_slower(times: Times, side: str, least: float = _LEAST) -> bool:
    return times[side] > _SHARE * times["networkx"] and times[side] - times["networkx"] > least


def _count(slower: list[dict[str, Any]], side: str, least: float) -> int | dict[str, int]:
    """Return how many calls are slower, or how many of them the backend takes, and how many it leaves to NetworkX."""
    rows = [row for row in slower if _is_slower(row["seconds"], side, least)]
    if side not in _OURS:
        return len(rows)
    taken = sum(row[side] == "taken" for row in rows)
    return {"taken": taken, "left": len(rows) - taken}


def _lines(shape: str, slower: list[dict[str, Any]]) -> dict[str, str]:
    """Return what is reported of the calls on a graph that are slower."""
    return {
        f"{row['function']} {row['call']}": "; ".join(
            [" ".join(f"{row['seconds'][side] * 1e6:.1f}" for side in _SIDES), *(str(row[side]) for side in _OURS)]
        )
        for row in slower
        if row["graph"] == shape
    }


def _described(
    shape: str, name: str, i: int, given: Arguments, converted: dict[str, Any], times: Times
) -> dict[str, Any]:
    """Return what is reported of a call that is slower, and why the backend takes it or leaves it."""
    args, kwargs = given
    row: dict[str, Any] = {"graph": shape, "function": name, "call": i, "seconds": times}
    for side in _OURS:
        args[0].__networkx_cache__ = {} if side == "first" else converted
        can_run = backend.can_run(name, args, kwargs)
        reason = backend.should_run(name, args, kwargs) if can_run is True else can_run
        row[side] = "taken" if reason is True else reason
    return row


def _with_attributes(graph: nx.Graph) -> nx.Graph:
    """Give nodes and edges the attributes that the tests' calls name."""
    source = random.Random(1)
    for *_, data in graph.edges(data=True):
        data |= {"weight": source.randint(1, 9), "cost": source.randint(1, 5)}
    for i, node in enumerate(graph):
        graph.nodes[node].update(size=source.randint(1, 9), color="red" if i % 3 else "blue")
    return graph


def _broom(handle: int, hairs: int) -> nx.Graph:
    """Return a path that ends in a star."""
    graph = nx.path_graph(handle)
    graph.add_edges_from((handle - 1, handle + i) for i in range(hairs))
    return graph


def _cycles(count: int, length: int, isolated: int) -> nx.Graph:
    """Return cycles of growing lengths that are not joined, the smallest first, and isolated nodes."""
    graph = nx.disjoint_union_all([nx.cycle_graph(3 + i % length) for i in range(count)])
    graph.add_nodes_from(range(len(graph), len(graph) + isolated))
    return graph


def _scale_free(n: int) -> nx.DiGraph:
    graph = nx.DiGraph(nx.scale_free_graph(n, seed=1))
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    return graph


def _one_way(graph: nx.Graph) -> nx.DiGraph:
    """Return an acyclic graph, by the numbers of the nodes."""
    return nx.DiGraph((u, v) if u < v else (v, u) for u, v in graph.edges)


def _parallel(n: int) -> nx.MultiGraph:
    graph = nx.MultiGraph(nx.connected_watts_strogatz_graph(n, 4, 0.2, seed=1))
    graph.add_edges_from(list(graph.edges())[::5])
    return graph


_GRAPHS: dict[str, Callable[[], nx.Graph]] = {
    "florentine families": nx.florentine_families_graph,
    "karate club": nx.karate_club_graph,
    "les miserables": nx.les_miserables_graph,
    "directed ring, 60": lambda: nx.connected_watts_strogatz_graph(60, 4, 0.3, seed=1).to_directed(),
    "acyclic, 100": lambda: _one_way(nx.connected_watts_strogatz_graph(100, 4, 0.3, seed=1)),
    "cavemen, 96": lambda: nx.connected_caveman_graph(12, 8),
    "barbell, 80": lambda: nx.barbell_graph(30, 20),
    "parallel edges, 100": lambda: _parallel(100),
    "scale-free, 150": lambda: _scale_free(150),
    "small world, 200": lambda: nx.connected_watts_strogatz_graph(200, 4, 0.1, seed=1),
    "growing network, 250": lambda: nx.gn_graph(250, seed=1),
    "cycles, 250": lambda: _cycles(25, 15, 20),
    "clustered, 300": lambda: nx.powerlaw_cluster_graph(300, 5, 0.5, seed=1),
    "wheel, 400": lambda: nx.wheel_graph(400),
    "geometric, 500": lambda: nx.random_geometric_graph(500, 0.08, seed=1),
    "ternary tree, 700": lambda: nx.full_rary_tree(3, 700),
    "small world, 1,000": lambda: nx.connected_watts_strogatz_graph(1_000, 6, 0.1, seed=1),
    "cycles, 2,000": lambda: _cycles(150, 20, 300),
    "scale-free, 3,000": lambda: _scale_free(3_000),
    "broom, 5,000": lambda: _broom(2_500, 2_500),
}
"""Other graphs than those with which sizes.json was measured."""
