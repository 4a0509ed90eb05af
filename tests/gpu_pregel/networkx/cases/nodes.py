"""Cases whose arguments are nodes of the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import networkx as nx

from tests.gpu_pregel.networkx.comparison import Arguments, Case


def at(*places: int, graphs: Sequence[str] = (), **options: Any) -> Case:
    """Return the case that passes the graph and the nodes at these places, where it has them."""

    def arguments(graph: nx.Graph) -> Arguments | None:
        nodes = list(graph)
        if any(not -len(nodes) <= place < len(nodes) for place in places):
            return None
        return (graph, *(nodes[place] for place in places)), options

    return Case(arguments, graphs=graphs)


def from_first(graphs: Sequence[str] = (), **options: Any) -> Case:
    """Return the case that passes the graph and its first node."""
    return at(0, graphs=graphs, **options)


def from_last(graphs: Sequence[str] = (), **options: Any) -> Case:
    """Return the case that passes the graph and its last node."""
    return at(-1, graphs=graphs, **options)


def between(source: int, target: int, graphs: Sequence[str] = (), **options: Any) -> Case:
    """Return the case that passes the graph and the nodes at two places."""
    return at(source, target, graphs=graphs, **options)
