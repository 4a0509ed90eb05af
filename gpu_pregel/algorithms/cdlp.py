"""Community detection by label propagation, as LDBC Graphalytics defines it.

Usha Nandini Raghavan, Réka Albert, Soundar Kumara: Near linear time algorithm to detect community structures in
large-scale networks, Physical Review E 76, 2007; made synchronous and deterministic by Alexandru Iosup et al.: LDBC
Graphalytics, PVLDB 9(13), 2016.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpu_pregel.algorithms._driver import AlgorithmRun, documented
from gpu_pregel.host.arguments import check_integer
from gpu_pregel.host.devices import DeviceName
from gpu_pregel.host.graphs.csr import read_only
from gpu_pregel.host.graphs.edge_arrays import to_host
from gpu_pregel.host.graphs.graph import Graph, GraphLike
from gpu_pregel.host.graphs.results import VertexResult
from gpu_pregel.host.traverse.arrays import arange
from gpu_pregel.host.traverse.operators import count_labels

Array = np.ndarray[Any, Any]

_FEW = 4
"""If a quarter of the edges or fewer are at vertices whose label has changed, only their neighbours are recomputed."""


@dataclass(frozen=True, eq=False, repr=False)
class CommunityLabels(VertexResult):
    """The labels of a label propagation, each of which is a vertex.

    Attributes
    ----------
    labels : uint32[n]
        The number of the vertex whose id is the label, in device memory; ``to_numpy()`` copies it to the host, and
        ``result[id]``, ``to_dict()`` and files have ids.
    iterations : int
        The number of iterations that were asked for.
    """

    labels: Any
    iterations: int

    value_name = "label"

    @property
    def _device_values(self) -> Any:
        return self.labels

    def _to_ids(self, values: Array) -> Array:
        return self.graph.to_ids(values)

    def sizes(self) -> dict[Any, int]:
        """Return the number of vertices with each label, by the id that is the label."""
        labels, sizes = np.unique(self._values, return_counts=True)
        return dict(zip(self._to_ids(labels).tolist(), sizes.tolist(), strict=True))

    @cached_property
    def count(self) -> int:
        """Number of different labels."""
        return len(np.unique(self._values))

    def summary(self) -> dict[str, Any]:
        """Return the number of labels and the size of the largest community."""
        return {"communities": self.count, "largest": max(self.sizes().values(), default=0)}

    def describe(self) -> str:
        """Return a one-line summary."""
        return f"{self.count:,} communities of {len(self):,} vertices, the largest of {self.summary()['largest']:,}"

    def __repr__(self) -> str:
        return f"<CommunityLabels: {self.count:,} of {len(self):,} vertices>"


@documented
def cdlp(
    graph: GraphLike,
    *,
    iterations: int = 10,
    device: DeviceName = "auto",
    threads: int | None = None,
    progress: bool = False,
) -> CommunityLabels:
    """Find communities by synchronous label propagation (CDLP of LDBC Graphalytics).

    Every vertex starts with its id as its label. In each iteration all vertices take the most frequent label of their
    neighbours at the same time; of several, the smallest. In a directed graph, out-edges and in-edges count alike, so
    that two vertices with edges in both directions count twice; so do parallel edges. A vertex without edges keeps its
    label. If the ids are not integers, the vertex numbers are the labels that are compared.

    Parameters
    ----------
    {graph}
        Weights are not used.
    iterations : int, default 10
        Number of iterations, at least 0.
    {options}

    Returns
    -------
    CommunityLabels
        With ``labels``, ``count`` and ``sizes()``. Every run, device and number of threads gives the same labels.

    Raises
    ------
    ArgumentError
        ``iterations`` is negative.
    {errors}

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> gp.cdlp(gp.Graph.from_edgelist([1, 2, 3, 5], [2, 3, 1, 6])).to_dict()
    {1: 1, 2: 1, 3: 1, 5: 5, 6: 6}
    """
    run = AlgorithmRun("cdlp", graph, device, threads, progress)
    iterations = check_integer("iterations", iterations, 0)
    starts, order = _ranks(run.graph)
    labels = run.execute(starts, order is None, iterations)
    if order is not None:
        labels = run.device.upload(order[to_host(labels)])
    return CommunityLabels(run.graph, run.stats(), run.trace(), labels=labels, iterations=iterations)


def _ranks(graph: Graph) -> tuple[Array, Array | None]:
    """Return the rank of each vertex's id, and the vertices by rank; None if that is the order of their numbers."""
    ids, n = graph.ids, graph.num_vertices
    numbers = np.arange(n, dtype=np.uint32)
    if ids is None or ids.dtype.kind not in "iu" or bool((ids[1:] > ids[:-1]).all()):
        return numbers, None
    order = np.argsort(ids).astype(np.uint32)
    ranks = np.empty(n, np.uint32)
    ranks[order] = numbers
    return ranks, order


def propagate(run: AlgorithmRun, labels: Array, rows_are_sorted: bool, iterations: int) -> Array:
    """On the CPU, run the iterations with kernels; each thread counts labels in a table of its own.

    ``rows_are_sorted`` by label at first if the vertices are in the order of their ids.
    """
    graph, target, phases = run.graph, run.device, run.phases
    n, m, threads = graph.num_vertices, graph.num_stored_edges, target.threads or 1
    target.require(8 * n * threads + 9 * n, f"label propagation with {threads} threads")
    kernels = target.kernels("cdlp")
    both = graph.is_directed
    edges = [read_only(array) for csr in (graph.to_csr(), graph.csc) for array in (csr.indptr, csr.indices)]
    tables, found = np.zeros((threads, n), np.uint32), np.empty((threads, n + 1), np.uint32)
    active = np.zeros(n, np.uint8)
    others = np.empty(n, np.uint32)
    everywhere = True
    for number in range(iterations):
        slots, changes = np.zeros(1, np.int64), np.zeros(2, np.int64)
        name = f"iteration {number + 1}"
        if number == 0 and rows_are_sorted and not both:
            phases.run(name, kernels.propagate_first, n, *edges[:2], others, changes)
        else:
            state = (both, everywhere, active, labels, tables, found, slots)
            phases.run(name, kernels.propagate, n, *edges, *state, others, changes)
        everywhere = bool(changes[1] * _FEW > m * (1 + both))
        if not everywhere:
            phases.run("activate", kernels.activate, n, *edges, both, labels, others, active)
        labels, others = others, labels
        if changes[0] == 0:
            break
    return labels


def propagate_by_operators(run: AlgorithmRun, labels: Any, rows_are_sorted: bool, iterations: int) -> Any:
    """On the other devices, run the iterations by operators, on a graph whose rows have all neighbours."""
    frontier = run.frontier(graph=_with_all_neighbours(run.graph))
    # Without an order of the ids, labels begin as the numbers of the vertices.
    labels = arange(frontier, dtype=np.uint32) if rows_are_sorted else frontier.upload(labels)
    others = frontier.full(0, np.uint32)
    for _ in range(iterations):
        changed = count_labels(_label_of, frontier, (labels, others), finish=_take, returns="sum")
        labels, others = others, labels
        if changed == 0:
            break
    return labels


def _label_of(v: Any, u: Any, weight: Any, labels: Any, others: Any) -> int:
    return int(labels[u])


def _take(v: Any, label: Any, total: Any, labels: Any, others: Any) -> int:
    """Set the most frequent label of v's neighbours, if it has any; return whether it changes."""
    own = labels[v]
    others[v] = own if label < 0 else label
    return 1 if others[v] != own else 0


def _with_all_neighbours(graph: Graph) -> Graph:
    """Return a graph in whose rows are the ends of out-edges and of in-edges."""
    if not graph.is_directed:
        return graph
    sources = np.repeat(np.arange(graph.num_vertices), graph.out_degrees)
    ends = sources, graph.indices.astype(np.int64)
    both = np.concatenate(ends), np.concatenate(ends[::-1])
    return Graph.from_edgelist(*both, num_vertices=graph.num_vertices, directed=True)
