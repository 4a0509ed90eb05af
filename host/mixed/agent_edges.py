"""The edges to vertices that are agents from the start."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.host.graphs.graph import Graph

Array = np.ndarray[Any, Any]


def edges_to(graph: Graph, is_agent: Array) -> tuple[Array, Array, list[float]]:
    """Return sources, targets and weights of the edges to some vertices, in the order of (target, source)."""
    places = np.flatnonzero(is_agent[graph.indices])
    sources = np.searchsorted(graph.indptr, places, side="right") - 1
    targets = graph.indices[places].astype(np.int64)
    order = np.lexsort((sources, targets))
    weights = np.ones(len(places)) if graph.weights is None else graph.weights[places]
    return sources[order], targets[order], weights[order].tolist()
