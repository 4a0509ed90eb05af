"""A set of active vertices, for operators and for the start of a run."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, GraphError
from gpu_pregel.host.graphs.edge_arrays import as_vector
from gpu_pregel.host.graphs.graph import Graph, GraphLike, as_graph
from gpu_pregel.host.graphs.partitions import full_bitmap, pack_bits
from gpu_pregel.host.programs.state import ProgramState

Array = np.ndarray[Any, Any]


class Frontier:
    """A set of active vertices of a graph, as a bitmap.

    Parameters
    ----------
    graph : Graph, NetworkX graph or SciPy sparse matrix
    vertices : array_like of int, or of bool [n], optional
        Vertex numbers, or whether each vertex is in the frontier. Default: all vertices.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> frontier = gp.Frontier(gp.grid(3), [4, 0])
    >>> len(frontier), frontier.vertices().tolist(), 4 in frontier
    (2, [0, 4], True)
    """

    def __init__(self, graph: GraphLike, vertices: Any = None) -> None:
        self.graph = as_graph(graph)
        n = self.graph.num_vertices
        if vertices is None:
            self.words = full_bitmap(n)
        else:
            self.words = pack_bits(_flags("vertices", vertices, n))
        self._states: dict[Any, ProgramState] = {}

    def flags(self) -> Array:
        """Return bool[n]: whether each vertex is in the frontier."""
        bits: Array = np.unpackbits(self.words.astype("<u8").view(np.uint8), bitorder="little")
        return bits[: self.graph.num_vertices].astype(bool)

    def vertices(self) -> Array:
        """Return the numbers of the vertices in the frontier, in ascending order, as int64[len]."""
        return np.flatnonzero(self.flags())

    def __len__(self) -> int:
        return int(np.bitwise_count(self.words).sum())

    def __contains__(self, vertex: int) -> bool:
        return 0 <= vertex < self.graph.num_vertices and bool(int(self.words[vertex // 64]) >> (vertex % 64) & 1)

    def __repr__(self) -> str:
        return f"<Frontier: {len(self):,} of {self.graph.num_vertices:,} vertices>"


def frontier_words(graph: Graph, given: Any) -> Array:
    """Return the bitmap, which the caller may change, of the vertices given as ``frontier=`` of a run."""
    if not isinstance(given, Frontier):
        return pack_bits(_flags("frontier", given, graph.num_vertices))
    if given.graph is not graph:
        raise ArgumentError("frontier belongs to another graph: pass frontier.vertices(), its vertex numbers")
    return given.words.copy()


def _flags(name: str, vertices: Any, n: int) -> Array:
    """Return bool[n] from vertex numbers, or from whether each vertex is meant."""
    chosen = as_vector(name, vertices)
    if chosen.dtype.kind == "b":
        if len(chosen) != n:
            raise GraphError(f"{name} has {len(chosen):,} flags, but the graph has {n:,} vertices")
        return chosen
    if chosen.size and chosen.dtype.kind not in "iu":
        raise ArgumentTypeError(f"{name} must be vertex numbers, not {chosen.dtype}; graph.vertices(ids) finds them")
    if chosen.size and (chosen.min() < 0 or chosen.max() >= n):
        wrong = chosen[(chosen < 0) | (chosen >= n)][0]
        raise GraphError(f"{name}: no vertex {wrong:,} in a graph of {n:,} vertices: use numbers below {n:,}")
    flags = np.zeros(n, bool)
    flags[chosen.astype(np.int64)] = True
    return flags
