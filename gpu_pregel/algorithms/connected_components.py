"""Connected components; weak components if the graph is directed.

Michael Sutton, Tal Ben-Nun, Amnon Barak: Optimizing Parallel Graph Connectivity Computation via Subgraph Sampling
(Afforest), IPDPS 2018. Linking a few neighbours of each vertex first finds most of the largest component, whose
remaining edges can then be skipped. Hooking follows Yossi Shiloach, Uzi Vishkin: An O(log n) parallel connectivity
algorithm, Journal of Algorithms 3(1), 1982. The method "propagation" is from Xiaowei Zhu, Wenguang Chen, Weimin Zheng,
Xiaosong Ma: Gemini, OSDI 2016.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gpu_pregel.algorithms._driver import AlgorithmRun, documented
from gpu_pregel.host.arguments import check_choice
from gpu_pregel.host.devices import DeviceName
from gpu_pregel.host.graphs.graph import Graph, GraphLike
from gpu_pregel.host.graphs.results import VertexResult
from gpu_pregel.host.programs.program import VertexProgram
from gpu_pregel.host.traverse.operators import process_edges, process_vertices

if TYPE_CHECKING:
    import numpy.typing as npt

Array = np.ndarray[Any, Any]

_SERIAL_SIZE = 1 << 20
"""Vertices and stored edges up to which one thread takes less time than waking another one for each phase."""


@dataclass(frozen=True, eq=False, repr=False)
class Components(VertexResult):
    """The connected components of a graph.

    Attributes
    ----------
    labels : uint32[n]
        The smallest vertex of each vertex's component, in device memory; ``to_numpy()`` copies it to the host.
    """

    labels: Any

    value_name = "component"

    @property
    def _device_values(self) -> Any:
        return self.labels

    def _to_ids(self, values: Array) -> Array:
        return self.graph.to_ids(values)

    @cached_property
    def _roots(self) -> Array:
        roots: Array = self._values == np.arange(len(self._values), dtype=self._values.dtype)
        return roots

    @cached_property
    def count(self) -> int:
        """Number of components."""
        return int(np.count_nonzero(self._roots))

    def relabel(self) -> npt.NDArray[np.uint32]:
        """Return component numbers from 0 to ``count - 1``, ordered by smallest vertex; uint32[n]."""
        labels = self._values
        ranks: Array = np.cumsum(self._roots, dtype=labels.dtype) - labels.dtype.type(1)
        return ranks[labels]

    def sizes(self) -> npt.NDArray[np.int64]:
        """Return the number of vertices of each component, in the order of :meth:`relabel`; int64[count]."""
        sizes: Array = np.bincount(self._values, minlength=len(self._values))
        return sizes[self._roots]

    def largest(self) -> Graph:
        """Return the subgraph of the largest component; of several, that with the smallest vertex number.

        Examples
        --------
        >>> import gpu_pregel as gp
        >>> graph = gp.Graph.from_edgelist([1, 2, 7], [2, 5, 9])
        >>> gp.connected_components(graph).largest().ids.tolist()
        [1, 2, 5]
        """
        labels = self._values
        sizes = np.bincount(labels, minlength=1)
        return self.graph._induced(labels == sizes.argmax())

    def summary(self) -> dict[str, Any]:
        """Return the number of components and the size of the largest one."""
        return {"components": self.count, "largest": int(self.sizes().max(initial=0))}

    def describe(self) -> str:
        """Return a one-line summary."""
        largest, n = self.summary()["largest"], len(self.labels)
        share = f" ({largest / n:.1%} of the vertices)" if n else ""
        return f"{self.count:,} components, the largest of {largest:,} vertices{share}"

    def __repr__(self) -> str:
        return f"<Components: {self.count:,} of {len(self.labels):,} vertices>"


@documented
def connected_components(
    graph: GraphLike,
    *,
    method: Literal["afforest", "propagation"] = "afforest",
    device: DeviceName = "auto",
    threads: int | None = None,
    progress: bool = False,
) -> Components:
    """Find the connected components of a graph; the weak components if it is directed.

    Parameters
    ----------
    {graph}
    method : {"afforest", "propagation"}
        "propagation" sends labels along edges until none changes, as Gemini does: a superstep for every edge of the
        longest shortest path, on a copy without directions if the graph is directed.
    {options}

    Returns
    -------
    Components
        With ``labels``, ``count``, ``sizes()`` and ``relabel()``. Every run, method, device and number of threads
        gives the same labels.

    Raises
    ------
    ArgumentError
        The method is unknown.
    {errors}

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> components = gp.connected_components(gp.Graph.from_edgelist([0, 1, 3], [1, 2, 4]))
    >>> components.count, components.labels.tolist(), components.sizes().tolist()
    (2, [0, 0, 0, 3, 3], [3, 2])
    """
    run = AlgorithmRun("connected_components", graph, device, threads, progress)
    is_propagation = check_choice("method", method, ("afforest", "propagation")) == "propagation"
    labels = _propagate(run) if is_propagation else run.execute()
    return Components(run.graph, run.stats(), run.trace(), labels=labels)


_PROPAGATION = VertexProgram(
    value=np.uint32,
    init=lambda ctx: ctx.vertex,
    message=lambda value, ctx: value,  # noqa: ARG005
    combine="min",
    apply=lambda value, incoming, ctx: min(value, incoming),  # noqa: ARG005
)


def _propagate(run: AlgorithmRun) -> Any:
    """Send each vertex's smallest known label to its neighbours until none changes; a superstep per step of a path."""
    graph = run.graph
    return run.program(_PROPAGATION, graph=graph.to_undirected(combine="min") if graph.is_directed else graph).values


def run_afforest(run: AlgorithmRun) -> Any:
    """On the CPU and on CUDA, run the phases of Afforest."""
    graph, device = run.graph, run.device
    n = graph.num_vertices
    kernels = device.kernels("components")
    edges = graph._csr_on(device, 4 * n + 4)
    labels = device.empty(n, np.uint32)
    chunk = n if n + graph.num_stored_edges <= _SERIAL_SIZE else None
    run.phases.run_all(kernels.phases(n, *edges, not graph.is_directed, labels, device.empty), chunk=chunk)
    return labels


def link_edges(run: AlgorithmRun) -> Array:
    """On the device "python", link the ends of every edge, then compress; no other thread writes."""
    frontier = run.frontier()
    labels = np.arange(run.graph.num_vertices, dtype=np.uint32)
    process_edges(_link, frontier, [labels], returns="sum")
    process_vertices(_compress, frontier, [labels])
    return labels


def _link(u: int, v: int, weight: float, labels: Array) -> int:
    """Make the smaller root of both trees the parent of the larger one; no other thread writes."""
    p, q = _root(u, labels), _root(v, labels)
    labels[max(p, q)] = min(p, q)
    return 0


def _compress(v: int, labels: Array) -> int:
    labels[v] = _root(v, labels)
    return 0


def _root(v: int, labels: Array) -> int:
    """Return the root of a vertex, and shorten its path (path halving)."""
    while labels[v] != v:
        labels[v] = labels[labels[v]]
        v = labels[v]
    return v
