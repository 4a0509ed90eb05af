"""cuGraph (RAPIDS, on a GPU), through its own interface and as a NetworkX backend."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np

from benchmarks.peers._contestant import PythonContestant


class CuGraph(PythonContestant):
    """``cugraph.weakly_connected_components``; its result stays on the GPU."""

    name = "cugraph"
    package = "cugraph"
    modules: ClassVar[tuple[str, ...]] = ("cugraph", "cudf", "cupy")

    def convert(self, loaded: Any, threads: int) -> Any:  # noqa: ARG002
        """Copy the CSR to the GPU and build cuGraph's graph."""
        import cudf
        import cugraph

        indptr, indices, _ = loaded
        graph = cugraph.Graph(directed=False)
        graph.from_cudf_adjlist(cudf.Series(indptr), cudf.Series(indices.astype(np.int32)), None)
        return graph

    def compute(self, graph: Any, threads: int) -> Any:  # noqa: ARG002
        """Label the components and wait for the GPU."""
        import cugraph
        import cupy

        labels = cugraph.weakly_connected_components(graph)
        cupy.cuda.Device().synchronize()
        return labels

    def answer(self, result: Any) -> Any:
        """Return the number of distinct labels."""
        return int(result["labels"].nunique())


class NxCuGraph(PythonContestant):
    """``networkx.number_connected_components`` with the backend cugraph, on a graph already on the GPU."""

    name = "nx-cugraph"
    package = "nx_cugraph"
    modules: ClassVar[tuple[str, ...]] = ("networkx", "nx_cugraph", "cupy")

    @classmethod
    def why_unavailable(cls, threads: int) -> str | None:
        """Return a reason if one of the packages is not installed."""
        return super().why_unavailable(threads) or (
            None if find_spec("networkx") else "the package networkx is not installed"
        )

    def convert(self, loaded: Any, threads: int) -> Any:  # noqa: ARG002
        """Copy the edges to the GPU."""
        import cupy
        import nx_cugraph

        indptr, indices, _ = loaded
        n = len(indptr) - 1
        sources = cupy.asarray(np.repeat(np.arange(n, dtype=np.int32), np.diff(indptr)))
        return nx_cugraph.Graph.from_coo(n, sources, cupy.asarray(indices.astype(np.int32)))

    def compute(self, graph: Any, threads: int) -> Any:  # noqa: ARG002
        """Count the components."""
        import networkx

        return networkx.number_connected_components(graph, backend="cugraph")

    def answer(self, result: Any) -> Any:
        """Return the number itself."""
        return int(result)
