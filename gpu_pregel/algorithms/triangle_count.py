"""Triangles: how many there are, and how many contain each vertex.

Thomas Schank, Dorothea Wagner: Finding, Counting and Listing All Triangles in Large Graphs, WEA 2005 ("forward"), on
bitmaps: a triangle is found once, in the row of its vertex of lowest degree. On CUDA the rows are looked up in hash
tables: Santosh Pandey et al.: TRUST: Triangle Counting Reloaded on GPUs, TPDS 2021.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpu_pregel.algorithms._arguments import check_undirected
from gpu_pregel.algorithms._devices import chooses_device
from gpu_pregel.algorithms._triangles import count_links, count_links_by_operators, has_kernels, neighborhoods
from gpu_pregel.host.devices import DeviceName, get_device
from gpu_pregel.host.graphs.graph import GraphLike, as_graph
from gpu_pregel.host.graphs.results import VertexResult
from gpu_pregel.host.superstep.phases import Phases
from gpu_pregel.host.traverse.frontier import Frontier

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False, repr=False)
class TriangleCounts(VertexResult):
    """The triangles of a graph.

    Attributes
    ----------
    counts : int64[n]
        The number of triangles that contain each vertex, in device memory; ``to_numpy()`` copies it to the host.
    """

    counts: Any

    value_name = "triangles"

    @property
    def _device_values(self) -> Any:
        return self.counts

    @cached_property
    def total(self) -> int:
        """Number of triangles of the graph."""
        return int(self._values.sum()) // 3

    def summary(self) -> dict[str, Any]:
        """Return the number of triangles, and the largest number at one vertex."""
        return {"triangles": self.total, "largest": int(self._values.max(initial=0))}

    def describe(self) -> str:
        """Return a one-line summary."""
        return f"{self.total:,} triangles, at most {self.summary()['largest']:,} at one vertex"

    def __repr__(self) -> str:
        return f"<TriangleCounts: {self.total:,} triangles, {len(self):,} vertices>"


@chooses_device
def triangle_count(
    graph: GraphLike, *, device: DeviceName = "auto", threads: int | None = None, progress: bool = False
) -> TriangleCounts:
    """Count the triangles of an undirected graph, in total and at each vertex.

    Self-loops and repeated edges are ignored.

    Parameters
    ----------
    graph : Graph, NetworkX graph or SciPy sparse matrix
        Undirected.
    device : {"auto", "cpu", "cuda", "cuda:N", "emulated", "emulated:SEED", "python"}
    threads : int, optional
        Number of CPU threads. Default: the processors available to this process.
    progress : bool, default False
        Show a progress bar on stderr.

    Returns
    -------
    TriangleCounts
        With ``total`` and ``counts``. Every run, device and number of threads gives the same counts.

    Raises
    ------
    GraphError
        The graph is directed.
    ArgumentTypeError
        ``graph`` is not a graph.
    DeviceError
        The device is unknown or cannot be used.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> triangles = gp.triangle_count(gp.Graph.from_edgelist([0, 0, 1, 2], [1, 2, 2, 3]))
    >>> triangles.total, triangles.counts.tolist()
    (1, [1, 1, 1, 0])
    """
    graph = as_graph(graph)
    check_undirected(graph, "triangle_count")
    target = get_device(device, threads=threads)
    run: Phases | Frontier
    if has_kernels(graph, target):
        run = Phases(target, shown=progress)
        counts = count_links(graph, target, run)
    else:
        run = Frontier(neighborhoods(graph), device=device, progress=progress)
        counts = count_links_by_operators(graph, run)
    return TriangleCounts(graph=graph, stats=run.stats(), trace=run.trace(), counts=counts)
