"""NetworkX beside the backend for NetworkX: a table of functions on three graphs, and the graphs that are handed over.

Each function is called with ``backend="networkx"`` and with ``backend="gpu_pregel"``: for the first time on a graph,
which includes its conversion, and again, from the cache. Results are read to the end. ``--hand-over`` measures instead,
for every function, graphs of growing sizes; from its reports ``--sizes`` writes gpu_pregel/networkx/sizes.json.
``--scan`` looks for calls that are slower with priorities set than NetworkX alone, on small graphs of other shapes.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import networkx as nx

import gpu_pregel as gp
from benchmarks._graphs import generate
from benchmarks._hand_over import measure_sizes
from benchmarks._hand_over_scan import scan
from benchmarks._hand_over_sizes import write_sizes
from benchmarks._measure import Summary, format_ratio, format_seconds, machine, progress, table, version_of, write_json

HELP = "NetworkX beside the backend for NetworkX"

DATA = Path(os.environ.get("GPU_PREGEL_DATA", Path(__file__).parents[2] / "shared" / "data"))
_GRAPHS: dict[str, Callable[[], gp.Graph]] = {
    "kron:16": lambda: generate("kron:16"),
    "wiki-Vote": lambda: gp.read_graph(DATA / "snap" / "wiki-Vote.txt", directed=True),
    "wing": lambda: gp.read_graph(DATA / "mesh" / "wing.graph"),
}

Call = tuple[str, Callable[[Any], tuple[Any, ...]], dict[str, Any]]

_CALLS: dict[str, Call] = {
    "connected_components": ("connected_components", lambda graph: (graph,), {}),
    "biconnected_components": ("biconnected_components", lambda graph: (graph,), {}),
    "single_source_shortest_path_length": (
        "single_source_shortest_path_length",
        lambda graph: (graph, _hub(graph)),
        {},
    ),
    "bfs_edges": ("bfs_edges", lambda graph: (graph, _hub(graph)), {}),
    "dfs_edges": ("dfs_edges", lambda graph: (graph, _hub(graph)), {}),
    "single_source_dijkstra_path_length": (
        "single_source_dijkstra_path_length",
        lambda graph: (graph, _hub(graph)),
        {},
    ),
    "single_source_dijkstra": ("single_source_dijkstra", lambda graph: (graph, _hub(graph)), {}),
    "pagerank": ("pagerank", lambda graph: (graph,), {}),
    "hits": ("hits", lambda graph: (graph,), {}),
    "betweenness_centrality": ("betweenness_centrality", lambda graph: (graph,), {"k": 16, "seed": 1}),
    "degree_centrality": ("degree_centrality", lambda graph: (graph,), {}),
    "katz_centrality": ("katz_centrality", lambda graph: (graph,), {"alpha": 0.0005}),
    "triangles": ("triangles", lambda graph: (graph,), {}),
    "clustering": ("clustering", lambda graph: (graph,), {}),
    "core_number": ("core_number", lambda graph: (graph,), {}),
    "louvain_communities": ("community.louvain_communities", lambda graph: (graph,), {"seed": 1}),
    "label_propagation_communities": ("community.label_propagation_communities", lambda graph: (graph,), {}),
    "greedy_color": ("greedy_color", lambda graph: (graph,), {}),
    "maximal_independent_set": ("maximal_independent_set", lambda graph: (graph,), {"seed": 1}),
    "minimum_spanning_edges": ("minimum_spanning_edges", lambda graph: (graph,), {"data": False}),
    "jaccard_coefficient": ("jaccard_coefficient", lambda graph: (graph, _pairs(graph)), {}),
}
_SHORT = 0.3
"""Seconds of calls of each side at least."""
_ASKED = 20.0
"""How many times as fast as NetworkX these are asked to be, from the cache."""
_MUST = (
    "connected_components",
    "single_source_shortest_path_length",
    "single_source_dijkstra_path_length",
    "pagerank",
    "triangles",
    "betweenness_centrality",
    "louvain_communities",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommand's options."""
    parser.add_argument("--graphs", nargs="+", choices=_GRAPHS, default=list(_GRAPHS), help="graphs (default: all)")
    parser.add_argument("--functions", nargs="+", choices=_CALLS, default=list(_CALLS), help="functions (default: all)")
    parser.add_argument("--trials", type=int, default=15, help="calls of each side (default: 15)")
    parser.add_argument("--budget", type=float, default=3.0, help="seconds of calls of each side (default: 3)")
    parser.add_argument("--hand-over", action="store_true", help="measure graphs of growing sizes, instead")
    parser.add_argument(
        "--sizes", nargs="+", type=Path, metavar="REPORT", help="write sizes.json from such measurements"
    )
    parser.add_argument("--scan", action="store_true", help="look for calls that are slower with priorities")


def run(arguments: argparse.Namespace) -> int:
    """Measure, print the table, write the report; return 1 if a figure misses what is asked."""
    if arguments.hand_over:
        return measure_sizes(arguments.output)
    if arguments.sizes:
        return write_sizes(arguments.sizes)
    if arguments.scan:
        return scan(arguments.output)
    report: dict[str, Any] = {}
    for graph_name in arguments.graphs:
        graph = _networkx_graph(_GRAPHS[graph_name]())
        report[graph_name] = {name: _measure(name, graph, arguments) for name in arguments.functions}
    print(_table(report))
    missed = [
        f"{name} on {graph_name}"
        for graph_name, figures in report.items()
        for name, figure in figures.items()
        if name in _MUST and figure["ratio"] < _ASKED
    ]
    print("missed:", ", ".join(missed) or "nothing")
    write_json(
        arguments.output,
        {"benchmark": "networkx", "machine": machine() | {"networkx": version_of("networkx")}, "figures": report},
    )
    return 1 if missed else 0


def _networkx_graph(graph: gp.Graph) -> nx.Graph:
    """Return an undirected NetworkX graph without loops, and with weights from 1 to 255 by a hash of the ends."""
    result = nx.Graph(graph.to_undirected().simplify(combine="min").to_networkx())
    for u, v, data in result.edges(data=True):
        data["weight"] = (min(u, v) * 2654435761 + max(u, v) * 40503) % 255 + 1
    return result


def _hub(graph: nx.Graph) -> Any:
    return max(graph, key=graph.degree)


def _pairs(graph: nx.Graph) -> list[tuple[Any, Any]]:
    return list(graph.edges)[:100_000]


def _measure(name: str, graph: nx.Graph, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the seconds of NetworkX, of the first call and of later ones."""
    path, positional, options = _CALLS[name]
    function: Any = nx
    for part in path.split("."):
        function = getattr(function, part)
    given = positional(graph)

    def seconds(backend: str) -> float:
        start = time.perf_counter()
        _consume(function(*given, **options, backend=backend))
        return time.perf_counter() - start

    seconds("gpu_pregel")  # kernels are compiled, or loaded
    graph.__networkx_cache__.clear()
    first = seconds("gpu_pregel")
    cached, theirs = (_repeat(seconds, backend, arguments) for backend in ("gpu_pregel", "networkx"))
    ratio = Summary.of(theirs).median / Summary.of(cached).median
    progress(f"{name}: {format_seconds(Summary.of(theirs).median)}, {ratio:.0f} times as fast")
    return {"networkx": _figures(theirs), "first": first, "cached": _figures(cached), "ratio": ratio}


def _figures(seconds: list[float]) -> dict[str, Any]:
    summary = Summary.of(seconds)
    return {"median": summary.median, "quartiles": summary.quartiles, "calls": len(seconds)}


def _repeat(seconds: Callable[[str], float], backend: str, arguments: argparse.Namespace) -> list[float]:
    """Return the seconds of several calls, and of more if they are short: the first ones find cold caches."""
    found = [seconds(backend)]
    while sum(found) < arguments.budget and (len(found) < arguments.trials or sum(found) < _SHORT):
        found.append(seconds(backend))
    return found


def _consume(result: Any) -> None:
    if isinstance(result, Iterator):
        deque(result, maxlen=0)


def _table(report: dict[str, Any]) -> str:
    """Return for each function and graph the time of NetworkX, and how many times as fast the backend is."""
    heading = ["function"]
    for graph_name in report:
        heading += [f"{graph_name}: NetworkX", "first", "cached", "times"]
    rows = []
    for name in next(iter(report.values())):
        row = [name]
        for figures in report.values():
            figure = figures[name]
            theirs, cached = (figure[side]["median"] for side in ("networkx", "cached"))
            row += [format_seconds(theirs), format_seconds(figure["first"]), format_seconds(cached)]
            row.append(format_ratio(theirs / cached) if math.isfinite(theirs) else "")
        rows.append(row)
    return table(heading, rows)
