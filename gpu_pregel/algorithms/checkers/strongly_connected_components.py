"""Checker of strongly connected components: each is strongly connected, and between them there is no cycle."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.errors import VerificationError
from gpu_pregel.host.graphs.graph import Graph

Array = np.ndarray[Any, Any]


def check_strongly_connected_components(graph: Graph, result: Any) -> None:
    """Raise ``VerificationError`` unless the labels are the strongly connected components of ``graph``.

    They are if every vertex reaches its label, and is reached from it, within its component, and if the edges between
    components form no cycle.

    Parameters
    ----------
    graph : Graph
    result : StrongComponents or integer array_like[n]
        The smallest vertex of each vertex's component.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> graph = gp.Graph.from_edgelist([0, 1, 1], [1, 0, 2], directed=True)
    >>> check_strongly_connected_components(graph, [0, 0, 2])
    """
    n = graph.num_vertices
    labels = np.asarray(result)
    if labels.shape != (n,):
        raise VerificationError(f"labels have shape {labels.shape}, not ({n},)")
    labels = labels.astype(np.int64)
    wrong = (labels > np.arange(n)) | (labels < 0)
    if wrong.any():
        raise VerificationError(f"vertex {int(wrong.argmax())} has a label that is not the smallest of its component")
    sources = np.repeat(np.arange(n, dtype=np.int64), np.diff(graph.indptr))
    targets = graph.indices.astype(np.int64)
    inside = labels[sources] == labels[targets]
    for one, other in ((sources[inside], targets[inside]), (targets[inside], sources[inside])):
        reached = _reached(n, one, other, labels == np.arange(n))
        if not reached.all():
            raise VerificationError(f"vertex {int((~reached).argmax())} is not strongly connected to its label")
    _raise_if_cyclic(n, labels[sources[~inside]], labels[targets[~inside]])


def _reached(n: int, sources: Array, targets: Array, reached: Array) -> Array:
    """Return which vertices can be reached from those in ``reached``."""
    frontier = reached
    while frontier.any():
        found = np.zeros(n, bool)
        found[targets[frontier[sources]]] = True
        frontier = found & ~reached
        reached = reached | frontier
    return reached


def _raise_if_cyclic(n: int, sources: Array, targets: Array) -> None:
    """Raise unless vertices without in-edges can be removed until no edge is left."""
    while sources.size:
        has_in_edge = np.zeros(n, bool)
        has_in_edge[targets] = True
        kept = has_in_edge[sources]
        if kept.all():
            raise VerificationError(f"the component of vertex {sources.min()} is part of a larger one")
        sources, targets = sources[kept], targets[kept]
