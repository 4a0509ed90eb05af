"""NetworKit (C++ and OpenMP behind Python): its parallel and its serial algorithm, either of which may win."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.peers._contestant import PythonContestant


class NetworKit(PythonContestant):
    """``ParallelConnectedComponents``."""

    name = "networkit"
    package = "networkit"
    algorithm = "ParallelConnectedComponents"

    def convert(self, loaded: Any, threads: int) -> Any:
        """Give it each undirected edge once, as the coordinates that it builds from fastest."""
        import networkit

        networkit.setNumberOfThreads(threads)
        indptr, indices = loaded
        n = len(indptr) - 1
        src = np.repeat(np.arange(n, dtype=np.uint64), np.diff(indptr))
        once = src <= indices.astype(np.uint64)
        return networkit.GraphFromCoo((src[once], indices[once].astype(np.uint64)), n=n)

    def compute(self, graph: Any, threads: int) -> Any:  # noqa: ARG002
        """Run the algorithm; its threads were set before."""
        from networkit import components

        return getattr(components, self.algorithm)(graph).run()

    def count(self, result: Any) -> int:
        """Ask the algorithm."""
        return int(result.numberOfComponents())


class NetworKitSerial(NetworKit):
    """``ConnectedComponents``, breadth-first searches on one thread."""

    name = "networkit-serial"
    algorithm = "ConnectedComponents"
