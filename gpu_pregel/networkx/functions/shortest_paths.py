"""Shortest paths by the number of edges."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

from gpu_pregel.kernels.networkx.searches_cpu import breadth_first
from gpu_pregel.networkx.graph import BackendGraph

Array = np.ndarray[Any, Any]


def single_source_shortest_path_length(G: BackendGraph, source: Any, cutoff: float | None = None) -> dict[Any, int]:
    """Return the hops to each node within the cutoff, in the order in which they are found."""
    if source not in G:
        raise nx.NodeNotFound(f"Source {source} is not in G")
    n = len(G)
    order, depths, parents = np.empty(n, np.uint32), np.full(n, -1, np.int64), np.empty(n, np.uint32)
    order[0] = G.topology.numbers[source]
    depths[order[0]] = 0
    limit = np.inf if cutoff is None else float(cutoff)
    count = breadth_first(G.topology.indptr, G.topology.neighbors, limit, 1, order, depths, parents)
    found = order[:count]
    return dict(zip(G.nodes_at(found), depths[found].tolist(), strict=True))
