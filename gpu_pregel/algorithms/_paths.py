"""What searches for shortest paths share: sources, predecessors, and the base class of their results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_pregel.algorithms._arguments import vertex_number, vertex_numbers
from gpu_pregel.algorithms._driver import host_device
from gpu_pregel.errors import ArgumentError
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.graphs.results import VertexResult

Array = np.ndarray[Any, Any]

UNREACHED = np.iinfo(np.int64).max
"""The distance of vertices that cannot be reached, if distances are integers."""


def mask_unreached(values: Array, unreached: int) -> Array:
    """Return values of which those of vertices that were not reached are masked, so that tables have no value there."""
    masked: Array = np.ma.MaskedArray(values, values == unreached, fill_value=unreached)
    return masked


@dataclass(frozen=True, eq=False, repr=False)
class PathResult(VertexResult):
    """A result with one shortest path to each vertex that the search reached.

    Attributes
    ----------
    sources : int64[k]
        The numbers of the vertices where paths begin, in ascending order.
    """

    sources: Array

    @property
    def _predecessors(self) -> Array:
        """The vertex before each one on its path: itself for a source, -1 if there is no path; in host memory."""
        raise NotImplementedError

    def path(self, target: Any) -> list[Any]:
        """Return the ids of the vertices on a shortest path from a source to ``target``, both included.

        Raises
        ------
        UnknownVertexError
            No vertex has this id.
        ArgumentError
            The search did not reach the vertex.
        """
        v = self.graph.vertex(target)
        before = self._predecessors
        if before[v] < 0:
            raise ArgumentError(f"there is no path to {target!r}: the search did not reach it")
        numbers = [v]
        while before[v] != v:
            v = int(before[v])
            numbers.append(v)
        ids: list[Any] = self.graph.to_ids(np.array(numbers[::-1], np.int64)).tolist()
        return ids

    def _predecessor_ids(self) -> Array:
        """Return the predecessors as ids of the user, masked where there is none."""
        before = self._predecessors
        found = before >= 0
        if not len(before):
            return np.ma.MaskedArray(self.graph.to_ids(before))
        ids: Array = np.ma.MaskedArray(self.graph.to_ids(np.where(found, before, 0)), ~found)
        return ids


def source_numbers(graph: Graph, source: Any) -> Array:
    """Return the distinct numbers of one source or of a list, set or array of several, in ascending order."""
    if isinstance(source, (list, set)) or (hasattr(source, "__array__") and not isinstance(source, np.generic)):
        return np.unique(vertex_numbers(graph, "source", source))
    return np.array([vertex_number(graph, "source", source)], np.int64)


def find_predecessors(graph: Graph, sources: Array, distances: Array) -> Array:
    """Return the smallest predecessors that form a tree, int64[n]; see ``Distances.predecessors``."""
    target = host_device()
    kernels: Any = target.kernels("predecessors")
    n = graph.num_vertices
    predecessors: Array = target.empty(n, np.int64)
    figures = target.zeros(1, np.int64)
    is_float = distances.dtype.kind == "f"
    words = distances.view(f"u{distances.dtype.itemsize}") if is_float else distances
    unreached = np.array([np.inf], distances.dtype).view(words.dtype)[0] if is_float else np.int64(UNREACHED)
    target.launch(kernels.find_predecessors, n, *graph.csc, unreached, words, predecessors, figures)
    predecessors[sources] = sources
    if figures[0] > len(sources):
        arguments = (tuple(graph.to_csr()), tuple(graph.csc), unreached, words, predecessors)
        target.launch(kernels.settle_plateaus, 1, *arguments, target.zeros(n, np.int64), target.empty(n, np.uint32))
    return predecessors
