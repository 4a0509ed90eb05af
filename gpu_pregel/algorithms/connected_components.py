"""Connected components, weak ones where the graph is directed.

Michael Sutton, Tal Ben-Nun, Amnon Barak: Optimizing Parallel Graph Connectivity Computation via Subgraph Sampling
(Afforest), IPDPS 2018. Few neighbours of each vertex are linked first; that finds nearly all of the largest
component, whose edges then need not be read. Hooking is that of Yossi Shiloach and Uzi Vishkin: An O(log n) parallel
connectivity algorithm, Journal of Algorithms 3(1), 1982.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpu_pregel.host.devices import get_device
from gpu_pregel.host.graphs.graph import Graph, check_graph
from gpu_pregel.host.graphs.results import VertexResult, to_host
from gpu_pregel.host.superstep.phases import Phases

NEIGHBOR_ROUNDS = 2

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, repr=False)
class Components(VertexResult):
    """The connected components of a graph.

    Attributes
    ----------
    labels : uint32[n]
        For each vertex the smallest vertex of its component; in the memory of the device until it is asked for as
        ``to_numpy()`` or otherwise.
    """

    labels: Any

    value_name = "component"

    @cached_property
    def _values(self) -> Array:
        return to_host(self.labels)

    @property
    def _value_ids(self) -> Array:
        return self.graph.to_ids(self._values)

    @cached_property
    def _roots(self) -> Array:
        roots: Array = self._values == np.arange(len(self._values), dtype=self._values.dtype)
        return roots

    @cached_property
    def count(self) -> int:
        """Number of components."""
        return int(np.count_nonzero(self._roots))

    def relabel(self) -> Array:
        """Number the components 0 to ``count - 1`` by their smallest vertex; uint32[n]."""
        labels = self._values
        ranks: Array = np.cumsum(self._roots, dtype=labels.dtype) - labels.dtype.type(1)
        return ranks[labels]

    def sizes(self) -> Array:
        """Number of vertices of each component, in the order of :meth:`relabel`; int64[count]."""
        sizes: Array = np.bincount(self._values, minlength=len(self._values))
        return sizes[self._roots]

    def __repr__(self) -> str:
        return f"<Components: {self.count:,} of {len(self.labels):,} vertices>"


def connected_components(
    graph: Graph, *, device: str = "auto", threads: int | None = None, progress: bool = False
) -> Components:
    """Find the connected components of a graph; the weak ones, without building the CSC, if it is directed.

    Parameters
    ----------
    graph : Graph
    device : {"auto", "cpu", "cuda", "cuda:N", "emulated", "emulated:SEED"}
    threads : int, optional
        Default: the processors that this process may use.
    progress : bool, default False
        Show a progress bar on stderr.

    Returns
    -------
    Components
        With ``labels``, ``count``, ``sizes()`` and ``relabel()``. The same on every run, device and number of threads.

    Raises
    ------
    ArgumentTypeError
        ``graph`` is no ``Graph``.
    DeviceError
        There is no such device.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> components = gp.connected_components(gp.Graph.from_edgelist([0, 1, 3], [1, 2, 4]))
    >>> components.count, components.labels.tolist(), components.sizes().tolist()
    (2, [0, 0, 0, 3, 3], [3, 2])
    """
    check_graph(graph)
    n = graph.num_vertices
    target = get_device(device, threads=threads)
    kernels = target.kernels("components")
    edges = graph._csr_on(target, 4 * (n + 1))
    labels = target.empty(n, np.uint32)
    largest = target.empty(1, np.uint32)
    phases = Phases(target, shown=progress)
    phases.run("initialise", kernels.initialise, n, *edges, labels)
    phases.run("link sampled", kernels.link_sampled, n, *edges, NEIGHBOR_ROUNDS, labels)
    phases.run("compress sampled", kernels.compress, n, labels)
    phases.run("estimate largest", kernels.estimate_largest, min(n, 1), labels, largest)
    both_ways = not graph.is_directed
    phases.run("link rest", kernels.link_rest, n, *edges, NEIGHBOR_ROUNDS, both_ways, largest, labels)
    phases.run("compress", kernels.compress, n, labels)
    return Components(graph=graph, stats=phases.stats(), trace=phases.trace(), labels=labels)
