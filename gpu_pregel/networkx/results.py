"""Builds the results of functions: graphs of NetworkX, and sets and pairs of nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import networkx

    from gpu_pregel.networkx.graph import BackendGraph

Array = np.ndarray[Any, Any]


def pairs(graph: BackendGraph, sources: Array, targets: Array) -> Iterator[tuple[Any, Any]]:
    """Return an iterator of pairs of nodes."""
    return zip(graph.nodes_at(sources), graph.nodes_at(targets), strict=True)


def sets(nodes: Sequence[Any], ends: Array) -> Iterator[set[Any]]:
    """Yield the sets of consecutive nodes, of which set ``i`` ends at ``ends[i]``."""
    begin = 0
    for end in ends.tolist():
        # Most sets of many are of one node.
        yield {nodes[begin]} if end - begin == 1 else set(nodes[begin:end])
        begin = end


def digraph(
    nodes: Sequence[Any],
    edges: Iterator[tuple[Any, Any]],
    node_data: Sequence[dict[Any, Any]] | None = None,
    **attributes: Any,
) -> networkx.DiGraph[Any]:
    """Return a directed graph of NetworkX with these nodes and edges between them, in this order.

    The dicts are written directly, since ``add_edges_from`` takes several times as long.
    """
    import networkx

    graph: networkx.DiGraph[Any] = networkx.DiGraph(**attributes)
    successors: dict[Any, dict[Any, Any]] = {node: {} for node in nodes}
    predecessors: dict[Any, dict[Any, Any]] = {node: {} for node in nodes}
    for u, v in edges:
        successors[u][v] = predecessors[v][u] = {}
    data = [{} for _ in nodes] if node_data is None else node_data
    graph._node = dict(zip(nodes, data, strict=True))
    graph._adj = successors
    graph._pred = predecessors
    return graph
