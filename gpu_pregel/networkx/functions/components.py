"""Connected components of every kind, bridges and articulation points."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

from gpu_pregel.algorithms import connected_components as components
from gpu_pregel.networkx.graph import BackendGraph

Array = np.ndarray[Any, Any]


def connected_components(G: BackendGraph) -> Iterator[set[Any]]:
    """Yield the components in the order of their first nodes."""
    yield from _groups(G, components.connected_components(G.engine()).labels)


def number_connected_components(G: BackendGraph) -> int:
    """Count the components."""
    return components.connected_components(G.engine()).count


def is_connected(G: BackendGraph) -> bool:
    """Tell whether there is one component."""
    if len(G) == 0:
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    return number_connected_components(G) == 1


def node_connected_component(G: BackendGraph, n: Any) -> set[Any]:
    """Return the nodes of the component of a node."""
    labels = components.connected_components(G.engine()).labels
    return set(G.nodes_at(np.flatnonzero(labels == labels[G.topology.numbers[n]])))


def _groups(G: BackendGraph, labels: Array) -> Iterator[set[Any]]:
    """Yield the nodes of each label, in the order of their first nodes; a label is the smallest vertex that has it."""
    order = np.argsort(labels, kind="stable")
    ends = np.flatnonzero(np.diff(labels[order])) + 1
    nodes = G.nodes_at(order)
    begin = 0
    for end in [*ends.tolist(), len(nodes)]:
        if begin < end:
            yield set(nodes[begin:end])
        begin = end
