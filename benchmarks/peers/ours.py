"""gpu_pregel itself, measured by the same rules as its peers."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import gpu_pregel as gp
from benchmarks.peers._contestant import PythonContestant
from gpu_pregel.algorithms.registry import algorithm


class GpuPregel(PythonContestant):
    """``gp.connected_components`` on a device; its own reader leaves nothing to convert.

    The first run includes the copy of the graph to a GPU, as it does for a user.
    """

    name = "gpu_pregel"
    package = "gpu_pregel"
    converts = False
    device: ClassVar[str] = "cpu"
    """Device, set by ``--device``."""
    verifies: ClassVar[bool] = False
    """Whether the algorithm's checker verifies the first result, set by ``-v``."""

    @classmethod
    def version(cls) -> str:
        """Return the version of the package."""
        return gp.__version__

    def load(self, path: Path) -> gp.Graph:
        """Read the graph."""
        graph: gp.Graph = gp.read_graph(path)
        return graph

    def compute(self, graph: gp.Graph, threads: int) -> Any:
        """Label the components."""
        return gp.connected_components(graph, **self.device_options(threads))

    def verify(self, graph: gp.Graph, result: Any) -> None:
        """Raise ``VerificationError`` if the checker finds a mistake in a result, or in one of several."""
        if self.verifies:
            for one in result if isinstance(result, list) else [result]:
                algorithm(self.algorithm).load_checker()(graph, one)

    @classmethod
    def device_options(cls, threads: int) -> dict[str, Any]:
        """Return the options that select device and threads."""
        return {"device": GpuPregel.device, "threads": threads if GpuPregel.device == "cpu" else None}

    def answer(self, result: Any) -> Any:
        """Return the number of components."""
        return int(result.count)
