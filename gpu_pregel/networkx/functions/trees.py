"""Recognition of trees and forests; isolated nodes and self-loops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

from gpu_pregel.networkx.functions.components import number_connected_components
from gpu_pregel.networkx.graph import BackendGraph


def is_tree(G: BackendGraph) -> bool:
    """Tell whether the graph is connected and has no cycle, whatever the direction of its edges."""
    _check_nodes(G)
    return G.number_of_edges() == len(G) - 1 and number_connected_components(G) == 1


def is_forest(G: BackendGraph) -> bool:
    """Tell whether the graph has no cycle, whatever the direction of its edges."""
    _check_nodes(G)
    # A component has one edge less than nodes, or more.
    return G.number_of_edges() < len(G) and G.number_of_edges() == len(G) - number_connected_components(G)


def is_arborescence(G: BackendGraph) -> bool:
    """Tell whether the graph is a tree in which each node has at most one edge to it."""
    return is_tree(G) and int(G.topology.in_degrees.max()) <= 1


def is_branching(G: BackendGraph) -> bool:
    """Tell whether the graph is a forest in which each node has at most one edge to it."""
    return is_forest(G) and int(G.topology.in_degrees.max()) <= 1


def _check_nodes(G: BackendGraph) -> None:
    if len(G) == 0:
        raise nx.NetworkXPointlessConcept("G has no nodes.")


def isolates(G: BackendGraph) -> Iterator[Any]:
    """Yield the nodes without edges."""
    yield from G.nodes_at(np.flatnonzero(G.topology.total_degrees == 0))


def number_of_isolates(G: BackendGraph) -> int:
    """Count the nodes without edges."""
    return int(np.count_nonzero(G.topology.total_degrees == 0))


def number_of_selfloops(G: BackendGraph) -> int:
    """Count the edges from a node to itself."""
    return int(G.topology.loops.sum())
