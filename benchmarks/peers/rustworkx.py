"""rustworkx (Rust with a Python interface, one thread)."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.peers._contestant import PythonContestant

_PIECE_EDGES = 1 << 20


class Rustworkx(PythonContestant):
    """``number_connected_components``, which avoids the Python sets of ``connected_components``."""

    name = "rustworkx"
    package = "rustworkx"

    def convert(self, loaded: Any, threads: int) -> Any:  # noqa: ARG002
        """Build a ``PyGraph`` in pieces, as it accepts edges only as Python tuples."""
        from rustworkx import PyGraph

        indptr, indices, _ = loaded
        n = len(indptr) - 1
        src = np.repeat(np.arange(n, dtype=np.int32), np.diff(indptr))
        once = src <= indices
        src, dst = src[once], indices[once]
        graph: Any = PyGraph(multigraph=True, node_count_hint=n, edge_count_hint=len(src))
        graph.add_nodes_from([None] * n)
        for begin in range(0, len(src), _PIECE_EDGES):
            piece = slice(begin, begin + _PIECE_EDGES)
            graph.extend_from_edge_list(list(zip(src[piece].tolist(), dst[piece].tolist(), strict=True)))
        return graph

    def compute(self, graph: Any, threads: int) -> Any:  # noqa: ARG002
        """Count the components."""
        import rustworkx

        return rustworkx.number_connected_components(graph)

    def answer(self, result: Any) -> Any:
        """Return the number itself."""
        return int(result)


class RustworkxCores(Rustworkx):
    """``core_number``."""

    algorithm = "core_number"

    def compute(self, graph: Any, threads: int) -> Any:  # noqa: ARG002
        """Find the core numbers."""
        import rustworkx

        return rustworkx.core_number(graph)

    def answer(self, result: Any) -> Any:
        """Return the largest core number."""
        return max(result.values())
