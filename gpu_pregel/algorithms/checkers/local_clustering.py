"""Checker of local clustering coefficients: counts the edges among the neighbours of each vertex again."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.algorithms.checkers.triangle_count import compare, count_links
from gpu_pregel.host.graphs.edge_arrays import to_host
from gpu_pregel.host.graphs.graph import Graph


def check_local_clustering(graph: Graph, result: Any) -> None:
    """Raise ``VerificationError`` unless ``result`` has the clustering coefficient of each vertex of ``graph``.

    Parameters
    ----------
    graph : Graph
    result : ClusteringCoefficients or float [n]

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> check_local_clustering(gp.Graph.from_edgelist([0, 0, 1], [1, 2, 2]), [1.0, 1.0, 1.0])
    """
    links, neighbors = count_links(graph)
    pairs = neighbors * (neighbors - 1)
    compare("coefficient", result, links / np.maximum(pairs, 1), 1e-12)
    if hasattr(result, "links"):
        compare("links", to_host(result.links), links // (1 if graph.is_directed else 2))
        compare("neighbors", to_host(result.neighbors), neighbors)
