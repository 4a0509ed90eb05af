"""The result of a search for communities, and its modularity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpu_pregel.algorithms._arguments import check_undirected, check_weights_nonnegative
from gpu_pregel.algorithms._driver import documented, host_device
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, GraphError
from gpu_pregel.host.arguments import check_integer, check_number
from gpu_pregel.host.graphs.csr import read_only
from gpu_pregel.host.graphs.graph import Graph, GraphLike, as_graph
from gpu_pregel.host.graphs.results import VertexResult
from gpu_pregel.host.graphs.vertex_values import by_vertex_number

Array = np.ndarray[Any, Any]

MAX_RESOLUTION = 1e6
_VERTICES_PER_SUM = 1 << 10


@dataclass(frozen=True, eq=False, repr=False)
class Communities(VertexResult):
    """The communities of a graph.

    Attributes
    ----------
    labels : uint32[n]
        The community of each vertex, from 0 to ``count - 1`` in the order of their smallest vertex, in device memory;
        ``to_numpy()`` copies it to the host.
    levels : tuple of uint32[n]
        The communities after each level, in device memory; each contains whole communities of the one before. The last
        is ``labels``.
    resolution : float
        The resolution of the modularity.
    """

    labels: Any
    levels: tuple[Any, ...]
    resolution: float

    value_name = "community"

    @property
    def _device_values(self) -> Any:
        return self.labels

    @cached_property
    def count(self) -> int:
        """Number of communities."""
        return int(self._values.max()) + 1 if len(self) else 0

    @cached_property
    def modularity(self) -> float:
        """Their modularity, at the resolution of the search; see :func:`gpu_pregel.modularity`."""
        return modularity(self.graph, self._values, self.resolution)

    def sizes(self) -> Array:
        """Return the number of vertices of each community, int64[count]."""
        return np.bincount(self._values, minlength=self.count)

    def members(self, community: int) -> Array:
        """Return the ids of the vertices of a community, whose number is from 0 to ``count - 1``.

        Raises
        ------
        ArgumentError
            There is no community of this number.
        """
        if not 0 <= check_integer("community", community, 0) < self.count:
            raise ArgumentError(f"community must be below {self.count:,}, the number of communities, not {community:,}")
        return self.graph.to_ids(np.flatnonzero(self._values == community))

    def summary(self) -> dict[str, Any]:
        """Return the number of communities, the size of the largest one and the modularity."""
        largest = int(self.sizes().max(initial=0))
        return {"communities": self.count, "largest": largest, "modularity": self.modularity}

    def describe(self) -> str:
        """Return a one-line summary."""
        largest, n = int(self.sizes().max(initial=0)), len(self)
        return f"{self.count:,} communities, the largest of {largest:,} of {n:,}; modularity {self.modularity:.4f}"

    def __repr__(self) -> str:
        return f"<Communities: {self.count:,} of {len(self):,} vertices>"


def check_resolution(resolution: Any) -> float:
    """Return the resolution as a float, or raise unless it is from 0 to 1,000,000."""
    return float(check_number("resolution", resolution, 0, MAX_RESOLUTION))


def check_weights(graph: Graph, name: str) -> None:
    """Raise ``GraphError`` if the graph is directed, has a negative weight or weights whose sum is not finite."""
    check_undirected(graph, name)
    check_weights_nonnegative(graph, name)
    if graph.weights is not None:
        with np.errstate(over="ignore"):
            total = 2 * graph.weights.sum(dtype=np.float64)
        if not np.isfinite(total):
            raise GraphError(f"{name} needs weights whose sum is finite: divide them by a large number")


@documented
def modularity(graph: GraphLike, labels: Any, resolution: float = 1.0) -> float:
    """Return the modularity of communities of an undirected graph.

    With the weights A of the edges, twice those of self-loops on the diagonal, the degrees k and 2m, the sum of A:
    the sum over all pairs of vertices with equal labels of ``A[u, v] / 2m - resolution * k[u] * k[v] / (2m)**2``.
    M. E. J. Newman: Analysis of weighted networks, Physical Review E 70, 2004; the resolution is that of J. Reichardt,
    S. Bornholdt: Statistical mechanics of community detection, Physical Review E 74, 2006.

    Parameters
    ----------
    {graph}
        Undirected, with weights of at least 0, or none.
    labels : array_like of int [n], mapping of ids to int, Series, or Communities
        The community of each vertex. The integers of an array are labels by vertex number, also if they look like ids;
        a mapping or a Series of pandas has the ids as keys or index.
    resolution : float, default 1.0
        From 0 to 1,000,000; the larger, the smaller the best communities.

    Returns
    -------
    float
        At most 1; 0.0 if the graph has no edges.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument is invalid.
    GraphError
        The graph is directed, or has a negative weight or weights whose sum is infinite.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> gp.modularity(gp.Graph.from_edgelist([0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3]), [0, 0, 0, 1, 1, 1])
    0.5
    """
    graph = as_graph(graph)
    check_weights(graph, "modularity")
    resolution = check_resolution(resolution)
    n = graph.num_vertices
    given = np.asarray(_by_number(graph, labels))
    if given.shape != (n,):
        raise ArgumentError(
            f"labels have shape {given.shape}, not ({n},): give one label for each vertex, or a mapping from ids"
        )
    if n and given.dtype.kind not in "iub":
        raise ArgumentTypeError(
            f"labels must be integers, not {given.dtype}: number the communities from 0, and pass an array by vertex "
            "number or a mapping from ids"
        )
    if graph.num_stored_edges == 0:
        return 0.0
    numbers = given if _is_dense(given) else np.unique(given, return_inverse=True)[1]
    numbers = numbers.astype(np.uint32, copy=False)
    host = host_device()
    kernels = host.kernels("communities")
    blocks = -(-n // _VERTICES_PER_SUM)
    sums = np.empty((blocks, 2))
    degrees = np.empty(n)
    arrays = (read_only(graph.indptr), read_only(graph.indices))
    weights = None if graph.weights is None else read_only(graph.weights)
    host.launch(kernels.sum_inner_weights, blocks, _VERTICES_PER_SUM, *arrays, weights, numbers, degrees, sums, chunk=4)
    inner, total = sums.sum(axis=0).tolist()
    if total == 0:
        return 0.0
    shares = np.bincount(numbers, weights=degrees) / total
    return float(inner / total - resolution * (shares**2).sum())


def _by_number(graph: Graph, labels: Any) -> Any:
    """Return labels by vertex number, if they are a mapping of the user's ids."""
    if isinstance(labels, (list, tuple)) and any(isinstance(one, (set, frozenset)) for one in labels):
        raise ArgumentTypeError("labels must be the community of each vertex, not sets of vertices: pass a dict")
    if not isinstance(labels, Mapping):
        return by_vertex_number(graph, "labels", labels)
    try:
        return [labels[one] for one in graph.to_ids(np.arange(graph.num_vertices)).tolist()]
    except KeyError as error:
        raise ArgumentError(f"labels have no community of vertex {error.args[0]!r}: give one to each vertex") from None


def _is_dense(labels: Array) -> bool:
    """Whether the labels are numbers below the number of vertices."""
    return labels.dtype.kind != "b" and int(labels.min()) >= 0 and int(labels.max()) < len(labels)
