"""The nodes in the middle of a tree, in linear time as in NetworkX."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.networkx.all_pairs import is_connected
from gpu_pregel.networkx.graph import BackendGraph
from gpu_pregel.networkx.hop_searches import chain, search
from gpu_pregel.networkx.rows import rows
from gpu_pregel.networkx.searches import FORWARD, REVERSE, depth_first

Array = np.ndarray[Any, Any]


def is_tree(graph: BackendGraph) -> bool:
    """Return whether a graph with nodes is undirected and a tree."""
    return not graph.is_directed() and graph.number_of_edges() == len(graph) - 1 and is_connected(graph)


def tree_center(graph: BackendGraph) -> list[Any]:
    """Return the one or two nodes in the middle of the longest paths of a tree, in the order of the graph."""
    edges = rows(graph)
    end = int(search(edges, 0, None).order[-1])
    found = search(edges, end, None)
    parents = found.parents.astype(np.int64)
    parents[end] = -1
    path = chain(parents, int(found.order[-1]))
    return [graph.topology.nodes[v] for v in sorted({path[(len(path) - 1) // 2], path[len(path) // 2]})]


def tree_centroid(graph: BackendGraph) -> list[Any]:
    """Return the one or two nodes of a tree without which no part has more than half of the nodes.

    The sum of their distances to all nodes is the smallest. The one nearer to the first node is the first.
    """
    n, nodes = len(graph), graph.topology.nodes
    events = depth_first(graph, 0, FORWARD | REVERSE)
    is_forward = (1 << events.kinds) == FORWARD
    found = np.cumsum(is_forward)
    sizes, parents = np.empty(n, np.int64), np.empty(n, np.uint32)
    entered, left = events.targets[is_forward], events.targets[~is_forward]
    parents[entered] = events.sources[is_forward]
    sizes[entered] = 1 - found[is_forward]
    sizes[left] += found[~is_forward]
    v = int(np.argmin(np.where(2 * sizes >= n, sizes, n + 1)))
    return [nodes[v]] if 2 * sizes[v] > n else [nodes[int(parents[v])], nodes[v]]
