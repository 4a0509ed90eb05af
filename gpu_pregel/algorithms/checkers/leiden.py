"""Checker of Leiden's communities: as that of Louvain's, and every community is connected."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.algorithms.checkers.louvain import check_numbers
from gpu_pregel.errors import VerificationError
from gpu_pregel.host.graphs.graph import Graph


def check_leiden(graph: Graph, result: Any) -> None:
    """Raise ``VerificationError`` unless ``result`` is a division into connected communities that pays.

    Communities are numbered by their smallest vertex, and their modularity is as stated and not below that of single
    vertices. A breadth-first search in NumPy from the smallest vertex of each community, along edges within it,
    reaches all of it.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> graph = gp.grid(4)
    >>> check_leiden(graph, gp.leiden(graph))
    """
    check_numbers(graph, result)
    n = graph.num_vertices
    labels = np.asarray(result)
    src = np.repeat(np.arange(n), np.diff(graph.indptr))
    dst = graph.indices.astype(np.int64)
    inner = labels[src] == labels[dst]
    if graph.weights is not None:
        inner &= graph.weights > 0
    src, dst = src[inner], dst[inner]
    reached = np.zeros(n, bool)
    reached[np.unique(labels, return_index=True)[1]] = True
    count = -1
    while count != (count := int(reached.sum())):
        reached[dst[reached[src]]] = True
    if not reached.all():
        v = int((~reached).argmax())
        raise VerificationError(f"vertex {v} is not connected to the rest of its community {labels[v]}")
