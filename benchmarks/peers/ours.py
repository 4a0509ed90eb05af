"""gpu_pregel itself, measured by the rules that hold for everybody."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import gpu_pregel as gp
from benchmarks.peers._contestant import PythonContestant


class GpuPregel(PythonContestant):
    """``gp.connected_components`` on a device; its own reader, hence nothing to convert.

    Copying the graph to a GPU is part of the first run, as it is for a user.
    """

    name = "gpu_pregel"
    package = "gpu_pregel"
    converts = False
    device: ClassVar[str] = "cpu"
    """Where it runs; ``--device`` sets it."""

    @classmethod
    def version(cls) -> str:
        """Version of the package."""
        return gp.__version__

    def load(self, path: Path) -> gp.Graph:
        """Read the graph."""
        graph: gp.Graph = gp.read_graph(path)
        return graph

    def compute(self, graph: gp.Graph, threads: int) -> gp.Components:
        """Label the components."""
        return gp.connected_components(graph, **self.where(threads))

    @classmethod
    def where(cls, threads: int) -> dict[str, Any]:
        """Options that say where to run."""
        return {"device": cls.device, "threads": threads if cls.device == "cpu" else None}

    def count(self, result: Any) -> int:
        """Number of labels."""
        return int(result.count)
