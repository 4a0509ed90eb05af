"""SciPy's ``csgraph`` (compiled, one thread)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from benchmarks.peers._contestant import PythonContestant


class SciPy(PythonContestant):
    """Weak components, on the dtype that SciPy uses, so that no copy is timed."""

    name = "scipy"
    package = "scipy"
    modules = ("scipy.sparse.csgraph",)
    options: ClassVar[dict[str, Any]] = {"directed": False}

    def convert(self, loaded: Any, threads: int) -> Any:  # noqa: ARG002
        """Build a ``csr_array`` of float64 and int32."""
        from scipy.sparse import csr_array

        indptr, indices, weights = loaded
        n = len(indptr) - 1
        if len(indices) <= np.iinfo(np.int32).max:
            indptr = indptr.astype(np.int32)
        data = np.ones(len(indices)) if weights is None else weights.astype(np.float64)
        return csr_array((data, indices, indptr), shape=(n, n))

    def compute(self, graph: Any, threads: int) -> Any:  # noqa: ARG002
        """Label the components."""
        from scipy.sparse.csgraph import connected_components

        return connected_components(graph, **self.options)

    def answer(self, result: Any) -> Any:
        """Return the first of the two results."""
        return int(result[0])


class SciPyStrong(SciPy):
    """Strong components, which equal the weak ones if every edge is stored in both directions; faster in SciPy."""

    name = "scipy-strong"
    options: ClassVar[dict[str, Any]] = {"directed": True, "connection": "strong"}


class SciPyStrongComponents(SciPyStrong):
    """Strong components of a directed graph."""

    name = "scipy"
    algorithm = "strongly_connected_components"


class SciPySearch(SciPy):
    """``breadth_first_order`` from each source."""

    algorithm = "bfs"

    def compute(self, graph: Any, threads: int) -> Any:  # noqa: ARG002
        """Search from each source."""
        from scipy.sparse.csgraph import breadth_first_order

        return [breadth_first_order(graph, source, return_predecessors=False) for source in self.sources]

    def answer(self, result: Any) -> Any:
        """Return the number of vertices that each search reaches."""
        return [len(order) for order in result]


class SciPyPaths(SciPy):
    """``dijkstra`` from each source."""

    algorithm = "sssp"
    suffix = ".wsg"

    def compute(self, graph: Any, threads: int) -> Any:  # noqa: ARG002
        """Search from each source."""
        from scipy.sparse.csgraph import dijkstra

        return [dijkstra(graph, indices=source) for source in self.sources]

    def answer(self, result: Any) -> Any:
        """Return the number of vertices that each search reaches."""
        return [int(np.isfinite(distances).sum()) for distances in result]


class SciPySpanningForest(SciPy):
    """``minimum_spanning_tree``."""

    algorithm = "minimum_spanning_forest"
    suffix = ".wsg"

    def compute(self, graph: Any, threads: int) -> Any:  # noqa: ARG002
        """Find the forest."""
        from scipy.sparse.csgraph import minimum_spanning_tree

        return minimum_spanning_tree(graph)

    def answer(self, result: Any) -> Any:
        """Return the total weight."""
        return int(result.sum())
