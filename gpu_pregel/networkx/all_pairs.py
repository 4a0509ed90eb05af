"""What the distances of all pairs of nodes add up to: searches from all vertices on all processors, or on a GPU."""

from __future__ import annotations

from typing import Any, NamedTuple

import networkx as nx
import numpy as np

from gpu_pregel.algorithms._searches import DISTANCES, FARTHEST, INVERSES, REACHED, Searches, inverse_unit
from gpu_pregel.algorithms.connected_components import connected_components
from gpu_pregel.algorithms.strongly_connected_components import strongly_connected_components
from gpu_pregel.host.devices.threads import parallel, thread_count
from gpu_pregel.kernels.networkx.dijkstra_cpu import CONTRADICTION, weighted_figures
from gpu_pregel.kernels.networkx.searches_cpu import reaches_fewer
from gpu_pregel.networkx.conditions import EXACT
from gpu_pregel.networkx.graph import Array, BackendGraph
from gpu_pregel.networkx.rows import rows, weighted_rows

_CHUNK = 8
_FEW = 20
"""Nodes are few if they are at most the graph's nodes divided by this."""


class Figures(NamedTuple):
    """Of each vertex: the vertices that it reaches, itself among them, and sums of their distances."""

    reached: Array
    distances: list[Any]
    """Integers if all weights are."""
    squares: Array | None
    """Sums of the squared distances, of searches by weight only."""
    inverses: Array
    """Sums of the inverses of distances other than 0."""
    farthest: list[Any]

    def check(self, vertices: int | None = None) -> None:
        """Raise NetworkX's error if one of the first searches contradicts itself, as with negative weights."""
        if np.any(self.reached[:vertices] == CONTRADICTION):
            raise ValueError("Contradictory paths found:", "negative weights?")


def all_figures(graph: BackendGraph, weight: Any = None) -> Figures:
    """Search from all vertices along out-edges, by weight if it is given; an edge of None counts 1.

    Where weights are negative and a search contradicts itself, its figures are not of use: see :meth:`Figures.check`.
    """
    return _by_hops(graph) if weight is None else _by_weight(graph, weight)


def _by_hops(graph: BackendGraph) -> Figures:
    searches: Searches = graph.run_of("closeness_centrality").execute()
    # The distances from v are those to v along reversed edges.
    found = searches.run(transpose=True)
    return Figures(
        reached=found[:, REACHED] + 1,
        distances=found[:, DISTANCES].tolist(),
        squares=None,
        inverses=found[:, INVERSES] / inverse_unit(len(graph)),
        farthest=found[:, FARTHEST].tolist(),
    )


def _by_weight(graph: BackendGraph, weight: Any) -> Figures:
    edges = weighted_rows(graph, weight)
    found = np.zeros((len(graph), 5))
    parallel(weighted_figures, len(graph), _CHUNK, *edges[:3], found, threads=thread_count(None))
    if edges.integers and found[:, 1:3].max(initial=0) >= EXACT:
        raise NotImplementedError(f"the edges' {weight!r} add up to more than 2^53")
    return Figures(
        reached=found[:, 0].astype(np.int64),
        # The distance of a lone node from itself is the integer 0, whatever weights are.
        distances=edges.numbers(found[:, 1]) if len(graph) > 1 else [0] * len(graph),
        squares=found[:, 2],
        inverses=found[:, 3],
        # Of equal distances NetworkX's maximum is the first, the integer 0 of the source.
        farthest=[number or 0 for number in edges.numbers(found[:, 4])],
    )


def has_negative_weight(graph: BackendGraph, weight: Any) -> bool:
    """Return whether an edge's weight is negative."""
    column = graph.edge_values(weight, scalars=True)
    return column is not None and len(column) > 0 and bool(column.min() < 0)


def is_connected(graph: BackendGraph) -> bool:
    """Return whether the graph is connected, strongly if it is directed."""
    if len(graph) == 0:
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    # As in NetworkX, no more is read of a graph whose first node reaches few others.
    limit = len(graph) // _FEW
    scratch = np.empty(limit, np.uint32), np.zeros(len(graph), np.uint8)
    if limit > 1 and reaches_fewer(limit, *rows(graph), *scratch):
        return False
    find = strongly_connected_components if graph.is_directed() else connected_components
    return find(graph.engine()).count == 1


def check_connected(graph: BackendGraph) -> None:
    """Raise NetworkX's error if the graph is not connected."""
    if not is_connected(graph):
        raise nx.NetworkXError(f"Graph is not {'strongly ' if graph.is_directed() else ''}connected.")
