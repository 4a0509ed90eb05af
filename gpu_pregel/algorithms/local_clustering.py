"""Local clustering coefficients, as LDBC Graphalytics defines them.

Alexandru Iosup et al.: LDBC Graphalytics, PVLDB 9(13), 2016. Duncan Watts, Steven Strogatz: Collective dynamics of
"small-world" networks, Nature 393, 1998.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpu_pregel.algorithms._driver import AlgorithmRun, documented
from gpu_pregel.algorithms._triangles import (
    both_directions,
    count_forward,
    count_links,
    count_links_by_operators,
    neighborhoods,
)
from gpu_pregel.host.devices import DeviceName
from gpu_pregel.host.graphs.edge_arrays import to_host
from gpu_pregel.host.graphs.graph import GraphLike
from gpu_pregel.host.graphs.results import VertexResult
from gpu_pregel.host.traverse.operators import process_vertices

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False, repr=False)
class ClusteringCoefficients(VertexResult):
    """The local clustering coefficient of each vertex.

    Attributes
    ----------
    coefficients : float64[n]
        The share of the pairs of neighbours of each vertex that are joined, 0 to 1; 0 with fewer than two neighbours.
    links : int64[n]
        The number of joined pairs of neighbours: unordered pairs if the graph is undirected, ordered ones if directed.
    neighbors : uint32[n]
        The number of neighbours. All are in device memory; ``to_numpy()`` copies the coefficients to the host.
    """

    coefficients: Any
    links: Any
    neighbors: Any

    value_name = "clustering"

    @property
    def _device_values(self) -> Any:
        return self.coefficients

    @cached_property
    def average(self) -> float:
        """The mean coefficient of all vertices, as NetworkX's ``average_clustering``; 0 if there are none."""
        return float(self._values.mean()) if len(self) else 0.0

    @cached_property
    def transitivity(self) -> float:
        """The share of all pairs of neighbours of one vertex that are joined, as NetworkX's ``transitivity``."""
        degrees = to_host(self.neighbors).astype(np.float64)
        pairs = float(degrees @ (degrees - 1))
        orders = 1 if self.graph.is_directed else 2
        return orders * int(to_host(self.links).sum()) / pairs if pairs else 0.0

    def summary(self) -> dict[str, Any]:
        """Return the average coefficient and the transitivity."""
        return {"average": self.average, "transitivity": self.transitivity}

    def describe(self) -> str:
        """Return a one-line summary."""
        return f"average clustering {self.average:.6f}, transitivity {self.transitivity:.6f}"

    def __repr__(self) -> str:
        return f"<ClusteringCoefficients: average {self.average:.6f}, {len(self):,} vertices>"


@documented
def local_clustering(
    graph: GraphLike, *, device: DeviceName = "auto", threads: int | None = None, progress: bool = False
) -> ClusteringCoefficients:
    """Compute the local clustering coefficient of each vertex: how many of its neighbours are neighbours of each other.

    Neighbours are the other ends of a vertex's edges in either direction. In an undirected graph, the coefficient is
    the number of edges among the neighbours divided by that of pairs, as in NetworkX's ``clustering``. In a directed
    graph, it is the number of directed edges among them divided by that of ordered pairs, as in LDBC Graphalytics;
    NetworkX has another definition there. Self-loops and repeated edges are ignored.

    Parameters
    ----------
    {graph}
    {options}

    Returns
    -------
    ClusteringCoefficients
        With ``coefficients``, ``average`` and ``transitivity``. Every run, device and number of threads gives the
        same coefficients.

    Raises
    ------
    {errors}

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> clustering = gp.local_clustering(gp.Graph.from_edgelist([0, 0, 0, 1], [1, 2, 3, 2]))
    >>> clustering.coefficients.round(3).tolist(), clustering.transitivity
    ([0.333, 1.0, 1.0, 0.0], 0.6)
    """
    run = AlgorithmRun("local_clustering", graph, device, threads, progress)
    fields = run.execute()
    return ClusteringCoefficients(run.graph, run.stats(), run.trace(), **fields)


def compute_by_rows(run: AlgorithmRun) -> dict[str, Any]:
    """On the CPU, count the links in the CSR or in packed rows."""
    return _divide_links(run, count_links(run), run.graph.num_vertices, both_directions(run.graph))


def compute_by_tables(run: AlgorithmRun) -> dict[str, Any]:
    """On CUDA, count the links in tables of forward rows, which undirected graphs have."""
    if run.graph.is_directed:
        return compute_by_operators(run)
    return _divide_links(run, count_forward(run), run.graph.num_stored_edges, run.graph._csr_on(run.device, 0))


def _divide_links(run: AlgorithmRun, links: Any, size: int, rows: tuple[Any, ...]) -> dict[str, Any]:
    """Count the neighbours with the kernel for ``rows``, which runs over ``size`` items, and divide."""
    graph, target, phases = run.graph, run.device, run.phases
    n, kernels = graph.num_vertices, target.kernels("triangles")
    neighbors, coefficients = target.zeros(n, np.uint32), target.empty(n, np.float64)
    phases.run("count neighbors", kernels.count_neighbors, size, *rows, neighbors)
    orders = 1.0 if graph.is_directed else 2.0
    phases.run("divide", kernels.divide_links, n, links, neighbors, orders, coefficients)
    return {"coefficients": coefficients, "links": links, "neighbors": neighbors}


def compute_by_operators(run: AlgorithmRun) -> dict[str, Any]:
    """On the device "python", and on CUDA for directed graphs, count the links by operators."""
    graph, everything = run.graph, run.frontier(graph=neighborhoods(run.graph))
    links = count_links_by_operators(graph, everything)
    neighbors, coefficients = everything.full(0, np.uint32), everything.full(0, np.float64)
    orders = 1 if graph.is_directed else 2
    arrays = [everything.csr().indptr, orders, links, neighbors, coefficients]
    process_vertices(_divide, everything, arrays, returns=None)
    return {"coefficients": coefficients, "links": links, "neighbors": neighbors}


def _divide(v: int, indptr: Array, orders: int, links: Array, neighbors: Array, coefficients: Array) -> None:
    """Divide the number of links by that of pairs of neighbours; ``orders`` is 2 for unordered links."""
    degree = indptr[v + 1] - indptr[v]
    neighbors[v] = degree
    if degree > 1:
        pairs = float(degree) * (degree - 1.0)
        coefficients[v] = orders * links[v] / pairs
