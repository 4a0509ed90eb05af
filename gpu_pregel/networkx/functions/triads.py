"""Triads and structural holes."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

from gpu_pregel.host.devices.threads import parallel, thread_count
from gpu_pregel.kernels.networkx.neighborhoods_cpu import count_triads, measure_holes
from gpu_pregel.networkx.functions.clustering import triangles_of
from gpu_pregel.networkx.graph import Array, BackendGraph
from gpu_pregel.networkx.neighbor_rows import NeighborRows, symmetric_rows
from gpu_pregel.networkx.topology import first_of_parallel

_CHUNK = 16
_NAMES = [
    "003",
    "012",
    "102",
    "021D",
    "021U",
    "021C",
    "111D",
    "111U",
    "030T",
    "030C",
    "201",
    "120D",
    "120U",
    "120C",
    "210",
    "300",
]


def triadic_census(G: BackendGraph, nodelist: Any = None) -> dict[str, int]:
    """Count the triads of each type."""
    n = len(G)
    graph = G.engine().simplify(combine="min")
    # 1 for an out-edge, 2 for an in-edge, 3 for both.
    once = (
        None if graph.num_stored_edges == G.topology.m else first_of_parallel(G.topology.indptr, G.topology.neighbors)
    )
    rows = symmetric_rows(G, once, backward=2.0)
    codes = rows.values.astype(np.int64)
    counts = np.zeros((n, 64), np.int64)
    parallel(count_triads, n, _CHUNK, rows.indptr, rows.neighbors, codes, counts, threads=thread_count(None))
    census = dict.fromkeys(_NAMES, 0)
    for code, count in enumerate(counts.sum(axis=0).tolist()):
        census[_type_of(code)] += count
    census["003"] = n * (n - 1) * (n - 2) // 6 - sum(census.values()) + census["003"]
    return census


def _type_of(code: int) -> str:
    """Return the name of the triad whose three pairs of vertices are joined as two bits each of the code say.

    Holland and Leinhardt's names have the numbers of mutual, single and missing edges, then a letter for their form.
    """
    pairs = ((0, 1), (0, 2), (1, 2))
    edges = set()
    for i, (u, v) in enumerate(pairs):
        bits = code >> (2 * i) & 3
        edges |= ({(u, v)} if bits & 1 else set()) | ({(v, u)} if bits & 2 else set())
    mutual = {(u, v) for u, v in pairs if {(u, v), (v, u)} <= edges}
    single = [(u, v) for u, v in edges if (v, u) not in edges]
    name = f"{len(mutual)}{len(single)}{3 - len(mutual) - len(single)}"
    return name + _form(name, mutual, single)


def _form(name: str, mutual: set[tuple[int, int]], single: list[tuple[int, int]]) -> str:
    sources, targets = ({edge[i] for edge in single} for i in (0, 1))
    if name in ("021", "120"):
        if len(sources) == 1:
            return "D"
        return "U" if len(targets) == 1 else "C"
    if name == "030":
        return "C" if len(sources) == 3 else "T"
    if name == "111":
        # The single edge points to the mutual pair if "D", away from it if "U".
        return "D" if targets & {v for pair in mutual for v in pair} else "U"
    return ""


def constraint(G: BackendGraph, nodes: Any = None, weight: Any = None) -> dict[Any, float]:
    """Return how much the neighbours of each node are joined to each other."""
    vertices = _vertices(G, nodes)
    if not len(vertices):
        return {}
    rows, totals, _ = _mutual_rows(G, weight)
    shares, loops = _divided(rows, totals)
    sums = _measure(rows, shares, shares, vertices, by_row=False)
    # NetworkX has two formulas for nodes without neighbours.
    empty = totals - 2 * loops == 0 if nodes is None else G.topology.degrees == 0
    sums[empty[vertices]] = np.nan
    return G.values_at(vertices, sums)


def effective_size(G: BackendGraph, nodes: Any = None, weight: Any = None) -> dict[Any, float]:
    """Return the number of neighbours of each node less what is redundant in their connections."""
    nodes = None if nodes is None else list(nodes)
    vertices = _vertices(G, nodes)
    if not len(vertices):
        return {}
    if nodes is not None and weight is None and not G.is_directed():
        return _effective_size_by_edges(G, nodes)
    rows, totals, largest = _mutual_rows(G, weight)
    shares, loops = _divided(rows, totals)
    degrees, empty = np.diff(rows.indptr), np.diff(rows.indptr) - (loops > 0) == 0
    if nodes is None:
        # NetworkX 3.6 divides by the maximum of the column, and not of the row as it does for a list of nodes.
        parts = rows.values / largest[rows.neighbors]
    else:
        parts, _ = _divided(rows, largest)
        others = G.topology.sources != G.topology.neighbors
        empty = np.bincount(G.topology.sources[others], minlength=len(G)) == 0
    sums = degrees[vertices] - _measure(rows, shares, parts, vertices, by_row=True)
    sums[empty[vertices]] = np.nan
    return G.values_at(vertices, sums)


def _effective_size_by_edges(G: BackendGraph, nodes: list[Any]) -> dict[Any, float]:
    """Return the number of neighbours less their mean degree among themselves; a self-loop there is an edge."""
    topology = G.topology
    vertices, edges = triangles_of(G, nodes)
    at_loops = topology.sources == topology.neighbors
    has_loop = np.bincount(topology.sources[at_loops], minlength=len(G))
    degrees = topology.degrees - has_loop
    loops = np.bincount(topology.sources, has_loop[topology.neighbors], minlength=len(G)) - has_loop
    with np.errstate(invalid="ignore", divide="ignore"):
        sizes = degrees[vertices] - (edges + 2 * loops[vertices]) / degrees[vertices]
    sizes[degrees[vertices] == 0] = np.nan
    return G.values_at(vertices, sizes)


def _vertices(G: BackendGraph, nodes: Any) -> Array:
    if nodes is None:
        if not len(G):
            raise nx.NetworkXError("Graph has no nodes or edges")
        return np.arange(len(G))
    return np.array([G.topology.numbers[u] for u in nodes], np.int64)


def _mutual_rows(G: BackendGraph, weight: Any) -> tuple[NeighborRows, Array, Array]:
    """Return the weights between neighbours in both directions, and the sum and maximum of each row."""
    n, column = len(G), G.moderate_values(weight, scalars=False)
    if column is not None and len(column) and column.min() <= 0:
        raise NotImplementedError(f"the edges' {weight!r} are not all positive")
    rows = symmetric_rows(G, column, loops=True)
    if not G.is_directed():
        rows = rows._replace(values=2 * rows.values)
    sources = np.repeat(np.arange(n), np.diff(rows.indptr))
    largest = np.zeros(n)
    np.maximum.at(largest, sources, rows.values)
    return rows, np.bincount(sources, rows.values, minlength=n), largest


def _divided(rows: NeighborRows, divisors: Array) -> tuple[Array, Array]:
    """Return the values divided by a number for each row, and those of self-loops."""
    sources = np.repeat(np.arange(len(divisors)), np.diff(rows.indptr))
    values = rows.values / divisors[sources]
    at_loops = sources == rows.neighbors
    loops = np.zeros(len(divisors))
    loops[sources[at_loops]] = values[at_loops]
    return values, loops


def _measure(rows: NeighborRows, shares: Array, weights: Array, vertices: Array, *, by_row: bool) -> Array:
    sums = np.empty(len(vertices))
    arguments = (rows.indptr, rows.neighbors, shares, weights, by_row, vertices, sums)
    parallel(measure_holes, len(vertices), _CHUNK, *arguments, threads=thread_count(None))
    return sums
