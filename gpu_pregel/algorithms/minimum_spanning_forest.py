"""Minimum and maximum spanning forests.

Otakar Borůvka: O jistém problému minimálním, 1926, with lock-free unions and shrinking lists of edges as in Alex
Fallin, Andres Gonzalez, Jarim Seo, Martin Burtscher: A high-performance MST implementation for GPUs (ECL-MST), SC 2023.
First a forest of the lightest edges is found; of the others, only those that join two of its trees remain: Vitaly
Osipov, Peter Sanders, Johannes Singler: The filter-Kruskal minimum spanning tree algorithm, ALENEX 2009.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gpu_pregel.algorithms._driver import AlgorithmRun, documented
from gpu_pregel.errors import GraphError
from gpu_pregel.host.arguments import check_flag
from gpu_pregel.host.devices import DeviceName
from gpu_pregel.host.graphs.graph import Graph, GraphLike
from gpu_pregel.host.graphs.results import Result
from gpu_pregel.host.superstep.advance import Advance
from gpu_pregel.host.traverse.arrays import argsort, take, unique
from gpu_pregel.host.traverse.operators import process_vertices, reduce_rows
from gpu_pregel.kernels.library import atomics

if TYPE_CHECKING:
    import numpy.typing as npt

Array = np.ndarray[Any, Any]

_NO_EDGE = np.iinfo(np.int64).max
_MAX_VERTICES = 1 << 31
_SHRINK = np.float64(2.0**-64)


@dataclass(frozen=True, eq=False, repr=False)
class SpanningForest(Result):
    """A minimum or maximum spanning forest: one tree for each component of the graph.

    Attributes
    ----------
    edges : uint32[k, 2]
        The vertices that each edge joins, the smaller one first, in ascending order, in host memory.
    weights : [k] or None
        The weight of each edge, in the type of the graph's weights; None if it has none.
    labels : uint32[n]
        The smallest vertex of each vertex's component, in host memory.
    maximum : bool
        Whether the total weight is the largest one instead of the smallest.
    """

    edges: npt.NDArray[np.uint32]
    weights: Array | None
    labels: npt.NDArray[np.uint32]
    maximum: bool

    @property
    def _values(self) -> Array:
        return self.edges

    def _columns(self) -> dict[str, Array]:
        ends = {"source": self.graph.to_ids(self.edges[:, 0]), "target": self.graph.to_ids(self.edges[:, 1])}
        return ends if self.weights is None else {**ends, "weight": self.weights}

    def __len__(self) -> int:
        """Return the number of edges."""
        return len(self.edges)

    def to_dict(self) -> dict[tuple[Any, Any], Any]:
        """Return a dict from pairs of the user's ids to the weights of the edges; without weights, they are 1."""
        source, target, *weights = (column.tolist() for column in self._columns().values())
        return dict(zip(zip(source, target, strict=True), *(weights or [[1] * len(source)]), strict=True))

    @cached_property
    def total_weight(self) -> int | float:
        """The sum of the weights; without weights, the number of edges. Floats are added in double precision.

        It is infinite beyond the range of float64, and NaN if weights are infinite with both signs.
        """
        if self.weights is None:
            return len(self.edges)
        if self.weights.dtype.kind == "f":
            with np.errstate(over="ignore", invalid="ignore"):
                total = self.weights.sum(dtype=np.float64)
                if not np.isfinite(total):  # a partial sum may be beyond the range of float64, but not the sum
                    total = (self.weights * _SHRINK).sum() / _SHRINK
            return float(total)
        if self.weights.itemsize < 8:
            return int(self.weights.sum(dtype=np.int64))
        # The sums of the halves cannot overflow.
        high, low = self.weights >> 32, self.weights & 0xFFFFFFFF
        return (int(high.sum(dtype=np.int64)) << 32) + int(low.sum(dtype=np.int64))

    @property
    def count(self) -> int:
        """Number of trees, isolated vertices included: that of the graph's components."""
        return self.graph.num_vertices - len(self.edges)

    def tree(self) -> Graph:
        """Return the forest as a graph with the same vertices and ids.

        Examples
        --------
        >>> import gpu_pregel as gp
        >>> triangle = gp.Graph.from_edgelist(["a", "b", "a"], ["b", "c", "c"], [1, 2, 3])
        >>> gp.minimum_spanning_forest(triangle).tree().neighbors("b").tolist()
        ['a', 'c']
        """
        u, v = self.edges[:, 0].astype(np.int64), self.edges[:, 1].astype(np.int64)
        built = Graph.from_edgelist(u, v, self.weights, num_vertices=self.graph.num_vertices)
        return built if self.graph.ids is None else Graph(built.to_csr(), directed=False, ids=self.graph.ids)

    def summary(self) -> dict[str, Any]:
        """Return the number of edges and trees, and the total weight."""
        return {"edges": len(self.edges), "trees": self.count, "weight": self.total_weight}

    def describe(self) -> str:
        """Return a one-line summary."""
        return f"{len(self.edges):,} edges of total weight {self.total_weight:,} in {self.count:,} trees"

    def __repr__(self) -> str:
        return f"<SpanningForest: {len(self.edges):,} edges in {self.count:,} trees>"


@documented
def minimum_spanning_forest(
    graph: GraphLike,
    *,
    maximum: bool = False,
    device: DeviceName = "auto",
    threads: int | None = None,
    progress: bool = False,
) -> SpanningForest:
    """Find the spanning forest of an undirected graph with the smallest total weight.

    Of edges with equal weights, the one that comes first by its smaller vertex number, then by its larger one, is
    preferred: the forest is unique. Self-loops are ignored; without weights, all edges have the same weight.
    Weights may be negative or infinite.

    Parameters
    ----------
    {graph}
    maximum : bool, default False
        Find the forest with the largest total weight instead.
    {options}

    Returns
    -------
    SpanningForest
        With ``edges``, ``weights``, ``total_weight``, ``labels`` and ``tree()``. Every run, device and number of
        threads gives the same forest.

    Raises
    ------
    GraphError
        The graph is directed, or has more than 2^31 vertices and the device is not the CPU.
    {errors}

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> forest = gp.minimum_spanning_forest(gp.Graph.from_edgelist([0, 1, 0, 5], [1, 2, 2, 6], [4.0, 2.0, 1.0, 7.0]))
    >>> forest.to_pandas().values.tolist(), forest.total_weight
    ([[0.0, 2.0, 1.0], [1.0, 2.0, 2.0], [5.0, 6.0, 7.0]], 10.0)
    """
    run = AlgorithmRun("minimum_spanning_forest", graph, device, threads, progress)
    maximum = check_flag("maximum", maximum)
    edges, weights, labels = run.execute(maximum)
    figures = (run.graph, run.stats(), run.trace())
    return SpanningForest(*figures, edges=edges, weights=weights, labels=labels, maximum=maximum)


def grow_by_operators(run: AlgorithmRun, maximum: bool) -> tuple[Any, ...]:
    """On the other devices than that of ``_boruvka_cpu``, return the edges, their weights and all labels."""
    graph, n = run.graph, run.graph.num_vertices
    if n > _MAX_VERTICES:
        raise GraphError(f"minimum_spanning_forest takes at most 2^31 vertices on {run.device.name}: pass device='cpu'")
    everything = run.frontier()
    dtype = np.dtype(np.float32) if graph.weights is None else graph.weights.dtype
    sign = -1 if maximum else 1
    worst = dtype.type(sign * np.inf if dtype.kind == "f" else getattr(np.iinfo(dtype), "min" if maximum else "max"))
    labels, parents = everything.full(0, np.int64), everything.full(0, np.int64)
    process_vertices(_start, everything, (labels, parents), returns=None)
    chosen, chosen_weights = everything.full(-1, np.int64), everything.full(0, dtype)
    own_weights, own_pairs = everything.full(0, dtype), everything.full(0, np.int64)
    # Each edge of the forest makes one tree of two.
    advance = Advance("joining trees", everything.device, n)
    size = 0
    while True:
        best, pairs = everything.full(worst, dtype), everything.full(_NO_EDGE, np.int64)
        state = labels, own_weights, own_pairs, best, worst, sign
        reduce_rows(_leaving_edge, "max" if maximum else "min", everything, state, finish=_find_best, returns=None)
        process_vertices(_find_first, everything, (labels, own_weights, own_pairs, best, pairs), returns=None)
        joined = process_vertices(_hook, everything, (labels, parents, best, pairs, chosen, chosen_weights))
        if not joined:
            break
        advance.take(int(joined))
        size += int(joined)
        process_vertices(_flatten, everything, (labels, parents), returns=None)
    # The edges of the forest are behind the -1 of vertices that did not choose any.
    taken, trees = argsort(chosen)[n - size :], unique(labels)
    edges, found = everything.download(take(chosen, taken)), everything.download(take(chosen_weights, taken))
    ends = np.stack([edges >> 32, edges & 0xFFFFFFFF], axis=1).astype(np.uint32)
    roots = everything.download(take(trees.firsts, trees.numbers)).astype(np.uint32)
    return ends, None if graph.weights is None else found, roots


def _start(v: Any, labels: Any, parents: Any) -> None:
    """Make v a tree."""
    labels[v] = v
    parents[v] = v


def _leaving_edge(
    v: Any, u: Any, weight: Any, labels: Any, own_weights: Any, own_pairs: Any, best: Any, worst: Any, sign: Any
) -> Any:
    """Return the weight of an edge that leaves the tree of v, and its ends; of equal weights the first ends count."""
    if labels[u] == labels[v]:
        return worst, sign * _NO_EDGE
    return weight, sign * ((min(u, v) << 32) | max(u, v))


def _find_best(
    v: Any, found: Any, labels: Any, own_weights: Any, own_pairs: Any, best: Any, worst: Any, sign: Any
) -> None:
    """Find the best weight of an edge that leaves the tree of v, and keep v's best edge."""
    weight, pair = found
    own_weights[v] = weight
    own_pairs[v] = _NO_EDGE if pair == _NO_EDGE or pair <= -_NO_EDGE else sign * pair
    if own_pairs[v] != _NO_EDGE:
        if sign > 0:
            atomics.min(best, labels[v], weight)
        else:
            atomics.max(best, labels[v], weight)


def _find_first(v: Any, labels: Any, own_weights: Any, own_pairs: Any, best: Any, pairs: Any) -> None:
    """Of the edges with this weight, find the first one."""
    tree = labels[v]
    if own_pairs[v] != _NO_EDGE and own_weights[v] == best[tree]:
        atomics.min(pairs, tree, own_pairs[v])


def _hook(v: Any, labels: Any, parents: Any, best: Any, pairs: Any, chosen: Any, chosen_weights: Any) -> int:
    """Make the root v a child of the tree that its edge leads to; return whether it is one now.

    Of two trees that have chosen the same edge, the smaller root stays.
    """
    pair = pairs[v]
    if pair == _NO_EDGE:
        return 0
    other = labels[pair >> 32]
    if other == v:
        other = labels[pair & 0xFFFFFFFF]
    if pairs[other] == pair and v < other:
        return 0
    parents[v] = other
    chosen[v] = pair
    chosen_weights[v] = best[v]
    return 1


def _flatten(v: Any, labels: Any, parents: Any) -> None:
    """Set the label of v to its root."""
    root = atomics.load(parents, v)
    while atomics.load(parents, root) != root:
        root = atomics.load(parents, root)
    atomics.store(parents, v, root)
    labels[v] = root
