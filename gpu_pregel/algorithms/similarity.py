"""Similarity of pairs of vertices by their neighbours: Jaccard, overlap and cosine coefficients.

Paul Jaccard: The distribution of the flora in the alpine zone, New Phytologist 11(2), 1912; the names and the weighted
forms of the first two are cuGraph's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_pregel.algorithms._arguments import vertex_numbers
from gpu_pregel.algorithms._driver import AlgorithmRun, documented
from gpu_pregel.algorithms._iterations import weights_in_use
from gpu_pregel.algorithms._triangles import without_repetitions
from gpu_pregel.errors import ArgumentError, ArgumentTypeError
from gpu_pregel.host.devices import DeviceName
from gpu_pregel.host.graphs import csr as host_csr
from gpu_pregel.host.graphs.csr import INDEX_DTYPE
from gpu_pregel.host.graphs.graph import Graph, GraphLike
from gpu_pregel.host.graphs.results import Result
from gpu_pregel.host.traverse.operators import intersect_rows, process_vertices, reduce_rows
from gpu_pregel.kernels.algorithms.coefficients import COSINE, JACCARD, OVERLAP, ratio

Array = np.ndarray[Any, Any]

_ROWS_AT_ONCE = 64
_LARGEST_EXPONENT = 1000


@dataclass(frozen=True, eq=False, repr=False)
class PairScores(Result):
    """A coefficient of similarity for each of some pairs of vertices.

    Attributes
    ----------
    first, second : uint32[k]
        The vertex numbers of each pair, in host memory. In files and tables they are the user's ids.
    scores : float64[k]
        The coefficient of each pair, 0 to 1, in device memory; ``to_numpy()`` copies it to the host.
    adjacent : bool
        Whether the pairs are those of all adjacent vertices.
    weighted : bool
        Whether the weights of edges were taken into account.
    """

    first: Array
    second: Array
    scores: Any
    adjacent: bool
    weighted: bool

    @property
    def _device_values(self) -> Any:
        return self.scores

    def _columns(self) -> dict[str, Array]:
        ids = self.graph.to_ids
        return {"first": ids(self.first), "second": ids(self.second), "score": self._values}

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.first)

    def to_dict(self) -> dict[tuple[Any, Any], float]:
        """Return a dict from pairs of ids to scores."""
        first, second, scores = (column.tolist() for column in self._columns().values())
        return dict(zip(zip(first, second, strict=True), scores, strict=True))

    def summary(self) -> dict[str, Any]:
        """Return the number of pairs, and the mean and the largest score."""
        scores = self._values
        mean = float(scores.mean()) if len(scores) else 0.0
        return {"pairs": len(scores), "mean": mean, "largest": float(scores.max(initial=0.0))}

    def describe(self) -> str:
        """Return a one-line summary."""
        figures = self.summary()
        return f"{figures['pairs']:,} pairs, scores up to {figures['largest']:.6f}, {figures['mean']:.6f} on average"

    def __repr__(self) -> str:
        return f"<PairScores: {len(self):,} pairs>"


@documented
def jaccard(
    graph: GraphLike,
    pairs: Any = None,
    *,
    weighted: bool = True,
    device: DeviceName = "auto",
    threads: int | None = None,
    progress: bool = False,
) -> PairScores:
    """Compute the Jaccard coefficient of pairs of vertices: shared neighbours, by the weights of edges, if any.

    Weights are used if the graph has them, unless ``weighted=False``.

    It is the number of common neighbours divided by that of vertices which are a neighbour of one or both; 0 if there
    are none. Self-loops are ignored, while NetworkX takes a vertex with one for its own neighbour; of repeated edges
    only the one of smallest weight counts.

    Parameters
    ----------
    {graph}
        Undirected.
    pairs : array_like [k, 2], or data frame of two columns, optional
        The ids of the two vertices of each pair. Default: all pairs of adjacent vertices, each once, by vertex number.
    weighted : bool, default True
        If the graph has weights, divide the sum of the smaller of the two weights of each common neighbour by the sum
        of the larger ones over all neighbours, taking 0 for a missing edge.
    {options}

    Returns
    -------
    PairScores
        With ``first``, ``second`` and ``scores``, float64[k].

    Raises
    ------
    ArgumentError
        ``pairs`` are not pairs of ids of vertices.
    GraphError
        The graph is directed; with ``weighted``, it has negative weights, or they sum to more than 1e150.
    {errors}

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> graph = gp.Graph.from_edgelist(["a", "a", "b", "b"], ["c", "d", "c", "e"])
    >>> gp.jaccard(graph, pairs=[("a", "b")]).to_dict()
    {('a', 'b'): 0.3333333333333333}
    """
    return _similarity(AlgorithmRun("jaccard", graph, device, threads, progress), JACCARD, pairs, weighted)


@documented
def overlap(
    graph: GraphLike,
    pairs: Any = None,
    *,
    weighted: bool = True,
    device: DeviceName = "auto",
    threads: int | None = None,
    progress: bool = False,
) -> PairScores:
    """Compute the overlap coefficient of pairs of vertices: shared neighbours, by the weights of edges, if any.

    Weights are used if the graph has them, unless ``weighted=False``.

    It is the number of common neighbours divided by the smaller of the two degrees. With weights, it is the sum of
    the smaller of the two weights of each common neighbour, divided by the smaller of the two sums of weights.

    Parameters
    ----------
    {graph}
        Undirected.
    pairs : array_like [k, 2], or data frame of two columns, optional
        The ids of the two vertices of each pair. Default: all pairs of adjacent vertices.
    weighted : bool, default True
        Whether to use the weights of the edges, if the graph has any.
    {options}

    Returns
    -------
    PairScores
        With ``first``, ``second`` and ``scores``, float64[k].

    Raises
    ------
    ArgumentError, GraphError
        As for :func:`jaccard`.
    {errors}

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> graph = gp.Graph.from_edgelist(["a", "a", "b", "b"], ["c", "d", "c", "e"])
    >>> gp.overlap(graph, pairs=[("a", "b")]).scores.tolist()
    [0.5]
    """
    return _similarity(AlgorithmRun("overlap", graph, device, threads, progress), OVERLAP, pairs, weighted)


@documented
def cosine(
    graph: GraphLike,
    pairs: Any = None,
    *,
    weighted: bool = True,
    device: DeviceName = "auto",
    threads: int | None = None,
    progress: bool = False,
) -> PairScores:
    """Compute the cosine similarity of pairs of vertices: that of their rows of weights, or of ones.

    Weights are used if the graph has them, unless ``weighted=False``.

    It is the number of common neighbours divided by the geometric mean of the two degrees. With weights, the
    elements of the matrix are the weights, otherwise 1.

    Parameters
    ----------
    {graph}
        Undirected.
    pairs : array_like [k, 2], or data frame of two columns, optional
        The ids of the two vertices of each pair. Default: all pairs of adjacent vertices.
    weighted : bool, default True
        Whether to use the weights of the edges, if the graph has any.
    {options}

    Returns
    -------
    PairScores
        With ``first``, ``second`` and ``scores``, float64[k].

    Raises
    ------
    ArgumentError, GraphError
        As for :func:`jaccard`.
    {errors}

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> graph = gp.Graph.from_edgelist(["a", "a", "b", "b"], ["c", "d", "c", "e"], [3.0, 4.0, 5.0, 12.0])
    >>> gp.cosine(graph, pairs=[("a", "b")]).scores.round(4).tolist()
    [0.2308]
    """
    return _similarity(AlgorithmRun("cosine", graph, device, threads, progress), COSINE, pairs, weighted)


def _similarity(run: AlgorithmRun, kind: int, pairs: Any, weighted: bool) -> PairScores:
    weighted = weights_in_use(run.graph, weighted, run.name)
    given = None if pairs is None else _pair_numbers(run.graph, pairs)
    first, second, scores = run.execute(given, kind, weighted)
    figures = (run.graph, run.stats(), run.trace())
    return PairScores(*figures, first, second, scores=scores, adjacent=given is None, weighted=weighted)


def score_by_kernels(
    run: AlgorithmRun, given: tuple[Array, Array] | None, kind: int, weighted: bool
) -> tuple[Array, Array, Any]:
    """On the CPU, return the pairs, of all adjacent vertices if none are given, and their scores."""
    if weighted:
        return score_by_operators(run, given, kind, weighted)
    graph, threads = without_repetitions(run.graph), run.device.threads or 1
    kernels, rows = run.device.kernels("similarity"), (graph.indptr, graph.indices)
    first, second = _adjacent_pairs(graph, threads) if given is None else given
    scores = np.empty(len(first), np.float64)
    if given is None:
        n = graph.num_vertices
        begins = np.zeros(n + 1, np.int64)
        np.cumsum(np.bincount(first, minlength=n), out=begins[1:])
        run.phases.run("score adjacent", kernels.score_adjacent, n, *rows, begins, kind, scores, chunk=_ROWS_AT_ONCE)
    else:
        run.phases.run("score pairs", kernels.score_pairs, len(first), *rows, first, second, kind, scores)
    return first, second, scores


def score_by_operators(
    run: AlgorithmRun, given: tuple[Array, Array] | None, kind: int, weighted: bool
) -> tuple[Array, Array, Any]:
    """On the other devices, and by weights, do the same."""
    everything = run.frontier(graph=without_repetitions(run.graph))
    ends = everything.edges() if given is None else tuple(map(everything.upload, given))
    sizes, scales = everything.full(0, np.float64), everything.full(1, np.float64)
    if weighted:
        if kind == COSINE:
            scales = everything.upload(_scales(everything.graph))
        arrays = [kind, sizes, scales]
        reduce_rows(_amount, "sum", everything, arrays, finish=_store_size, returns=None)
        scores = intersect_rows(_common_amount, everything, arrays, pairs=ends, finish=_score)
    else:
        arrays = [kind, sizes, everything.csr().indptr]
        process_vertices(_store_degree, everything, arrays, returns=None)
        scores = intersect_rows(_count_common, everything, arrays, pairs=ends, finish=_score)
    first, second = map(everything.download, ends) if given is None else given
    return first, second, scores


def _pair_numbers(graph: Graph, pairs: Any) -> tuple[Array, Array]:
    """Return the vertex numbers of pairs of ids."""
    if hasattr(pairs, "columns"):
        columns = [pairs[name] for name in pairs.columns]
    elif isinstance(pairs, np.ndarray):
        columns = list(pairs.T) if pairs.ndim == 2 else []
    else:
        rows = list(pairs) if isinstance(pairs, Iterable) else [pairs]
        is_paired = all(isinstance(row, Sequence) and not isinstance(row, str) and len(row) == 2 for row in rows)
        columns = [[row[place] for row in rows] for place in range(2)] if is_paired else []
    if len(columns) != 2:
        raise ArgumentTypeError(
            "pairs must be an array of two columns, a list of pairs of ids or a data frame of two columns"
        )
    if len(columns[0]) == 0:
        raise ArgumentError("pairs is empty: give at least one pair of ids, or None for all adjacent vertices")
    first, second = (vertex_numbers(graph, "pairs", column).astype(INDEX_DTYPE) for column in columns)
    if isinstance(pairs, (set, frozenset)):
        order = np.lexsort((second, first))
        return first[order], second[order]
    return first, second


def _adjacent_pairs(graph: Graph, threads: int) -> tuple[Array, Array]:
    sources = host_csr.sources(graph.to_csr(), threads=threads)
    ascending = sources < graph.indices
    return sources[ascending], graph.indices[ascending]


def _scales(graph: Graph) -> Array:
    """Return a power of two for each row by which its weights are multiplied, so that no square underflows."""
    weights = np.asarray(graph.weights, np.float64)
    largest = np.zeros(graph.num_vertices)
    rows = np.flatnonzero(graph.out_degrees)
    if len(rows):
        largest[rows] = np.maximum.reduceat(weights, graph.indptr[rows])
    scales: Array = np.ldexp(1.0, np.minimum(-np.frexp(largest)[1], _LARGEST_EXPONENT))
    return scales


def _amount(v: int, u: int, weight: float, kind: int, sizes: Array, scales: Array) -> Any:
    """Return the scaled weight of an edge, or its square."""
    scaled = float(weight) * scales[v]
    return scaled * scaled if kind == COSINE else scaled


def _store_size(v: int, size: float, kind: int, sizes: Array, scales: Array) -> None:
    sizes[v] = size


def _store_degree(v: int, kind: int, sizes: Array, indptr: Array) -> None:
    sizes[v] = indptr[v + 1] - indptr[v]


def _common_amount(
    i: int, u: int, v: int, w: int, weight_u: float, weight_v: float, kind: int, sizes: Array, scales: Array
) -> Any:
    """Return what a common neighbour adds: the product of the scaled weights, or the smaller one."""
    one, other = float(weight_u) * scales[u], float(weight_v) * scales[v]
    return one * other if kind == COSINE else min(one, other)


def _count_common(i: int, u: int, v: int, w: int, weight_u: float, weight_v: float, *arrays: Any) -> int:
    return 1


def _score(i: int, u: int, v: int, common: float, kind: int, sizes: Array, _: Array) -> Any:
    return ratio(kind, float(common), sizes[u], sizes[v])
