"""NetworKit (C++ and OpenMP with a Python interface): its parallel and its serial algorithm."""

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
        """Build from coordinates, its fastest constructor, with each undirected edge once."""
        import networkit

        networkit.setNumberOfThreads(threads)
        indptr, indices = loaded
        n = len(indptr) - 1
        src = np.repeat(np.arange(n, dtype=np.uint64), np.diff(indptr))
        once = src <= indices.astype(np.uint64)
        return networkit.GraphFromCoo((src[once], indices[once].astype(np.uint64)), n=n)

    def compute(self, graph: Any, threads: int) -> Any:  # noqa: ARG002
        """Run the algorithm; ``convert`` has set its threads."""
        from networkit import components

        return getattr(components, self.algorithm)(graph).run()

    def count(self, result: Any) -> int:
        """Return the number that the algorithm reports."""
        return int(result.numberOfComponents())


class NetworKitSerial(NetworKit):
    """``ConnectedComponents``, breadth-first searches on one thread."""

    name = "networkit-serial"
    algorithm = "ConnectedComponents"
