"""What checkers share: the stored edges in parts, and errors that name a vertex."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gpu_pregel.errors import VerificationError
from gpu_pregel.host.graphs.graph import Graph

Array = np.ndarray[Any, Any]

_EDGES_AT_ONCE = 1 << 24


def edge_parts(graph: Graph) -> Iterator[tuple[Array, Array, Array | int]]:
    """Yield the sources, destinations and weights, or the weight 1, of a part of the stored edges after the other."""
    for begin in range(0, graph.num_stored_edges, _EDGES_AT_ONCE):
        end = min(begin + _EDGES_AT_ONCE, graph.num_stored_edges)
        u = np.searchsorted(graph.indptr, np.arange(begin, end), side="right") - 1
        weights = 1 if graph.weights is None else graph.weights[begin:end]
        yield u, graph.indices[begin:end].astype(np.int64), weights


def raise_if_any(faulty: Array, message: str, values: Array) -> None:
    """Raise ``VerificationError`` with the first faulty vertex and its value."""
    if faulty.any():
        v = int(faulty.argmax())
        raise VerificationError(message.format(v, values[v]))
