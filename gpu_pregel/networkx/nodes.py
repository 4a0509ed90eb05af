"""What functions of NetworkX take as nodes: one of them, a collection of them, or None for all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

from gpu_pregel.networkx.graph import Array, BackendGraph


def chosen_nodes(graph: BackendGraph, nbunch: Any = None) -> Iterator[Any]:
    """Yield the nodes of the graph among those given, with the errors of NetworkX's ``nbunch_iter``."""
    if nbunch is None:
        return iter(graph)
    return iter([nbunch]) if nbunch in graph else _in_graph(graph, nbunch)


def chosen_vertices(graph: BackendGraph, nbunch: Any = None) -> Array:
    """Return the vertices of :func:`chosen_nodes`, int64."""
    if nbunch is None:
        return np.arange(len(graph))
    return np.array([graph.topology.numbers[node] for node in chosen_nodes(graph, nbunch)], np.int64)


def _in_graph(graph: BackendGraph, nbunch: Any) -> Iterator[Any]:
    node = None
    try:
        for node in nbunch:
            if node in graph.topology.numbers:
                yield node
    except TypeError as error:
        message = str(error)
        if "object is not iterable" in message:
            raise nx.NetworkXError(f"Node {nbunch} is not in the graph.") from error
        if "hashable" in message:
            raise nx.NetworkXError(f"Node {node} in sequence nbunch is not a valid node.") from error
        if "iter" in message:
            raise nx.NetworkXError("nbunch is not a node or a sequence of nodes.") from error
        raise
