"""SciPy's ``csgraph.connected_components`` (compiled, one thread): weak components and, faster, strong ones."""

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

        indptr, indices = loaded
        n = len(indptr) - 1
        if len(indices) <= np.iinfo(np.int32).max:
            indptr = indptr.astype(np.int32)
        return csr_array((np.ones(len(indices)), indices, indptr), shape=(n, n))

    def compute(self, graph: Any, threads: int) -> Any:  # noqa: ARG002
        """Label the components."""
        from scipy.sparse.csgraph import connected_components

        return connected_components(graph, **self.options)

    def count(self, result: Any) -> int:
        """Return the first of the two results."""
        return int(result[0])


class SciPyStrong(SciPy):
    """Strong components, which equal the weak ones if every edge is stored in both directions; faster in SciPy."""

    name = "scipy-strong"
    options: ClassVar[dict[str, Any]] = {"directed": True, "connection": "strong"}
