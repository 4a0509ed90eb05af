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

from gpu_pregel.algorithms._driver import AlgorithmRun, documented
from gpu_pregel.algorithms._triangles import count_links_by_operators, neighborhoods
from gpu_pregel.host.devices import DeviceName
from gpu_pregel.host.graphs.graph import GraphLike
from gpu_pregel.host.graphs.results import VertexResult

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


@documented
def triangle_count(
    graph: GraphLike, *, device: DeviceName = "auto", threads: int | None = None, progress: bool = False
) -> TriangleCounts:
    """Count the triangles of an undirected graph, in total and at each vertex.

    Self-loops and repeated edges are ignored.

    Parameters
    ----------
    {graph}
        Undirected.
    {options}

    Returns
    -------
    TriangleCounts
        With ``total`` and ``counts``. Every run, device and number of threads gives the same counts.

    Raises
    ------
    GraphError
        The graph is directed.
    {errors}

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> triangles = gp.triangle_count(gp.Graph.from_edgelist([0, 0, 1, 2], [1, 2, 2, 3]))
    >>> triangles.total, triangles.counts.tolist()
    (1, [1, 1, 1, 0])
    """
    run = AlgorithmRun("triangle_count", graph, device, threads, progress)
    counts = run.execute()
    return TriangleCounts(run.graph, run.stats(), run.trace(), counts=counts)


def count_by_operators(run: AlgorithmRun) -> Any:
    """On the device "python", count the triangles of each vertex; for the CPU and CUDA see ``_triangles``."""
    return count_links_by_operators(run.graph, run.frontier(graph=neighborhoods(run.graph)))
