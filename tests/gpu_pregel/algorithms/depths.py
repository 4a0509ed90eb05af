"""The number of edges on a shortest path from vertex 0 to each vertex, by breadth-first search.

The example of CONTRIBUTING: a test adds this file to a copy of the package.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_pregel.errors import VerificationError
from gpu_pregel.host.graphs.edge_arrays import to_host
from gpu_pregel.host.graphs.graph import Graph, GraphLike
from gpu_pregel.host.graphs.results import VertexResult
from gpu_pregel.host.programs.program import VertexProgram
from gpu_pregel.host.programs.run import run


@dataclass(frozen=True, eq=False, repr=False)
class Depths(VertexResult):
    """The distance of each vertex from vertex 0.

    Attributes
    ----------
    depths : int64[n]
        The number of edges; -1 for unreachable vertices.
    """

    depths: Any

    value_name = "depth"

    @property
    def _values(self) -> np.ndarray[Any, Any]:
        return to_host(self.depths)


_PROGRAM = VertexProgram(
    value=np.int64,
    init=lambda ctx: 0 if ctx.vertex == 0 else -1,
    initially_active=lambda ctx: ctx.vertex == 0,
    message=lambda value, ctx: value + 1,
    combine="min",
    apply=lambda value, incoming, ctx: incoming if value < 0 else value,
)


def depths(graph: GraphLike, *, device: str = "auto", threads: int | None = None, progress: bool = False) -> Depths:
    """Find the number of edges from vertex 0 to each vertex."""
    found = run(graph, _PROGRAM, device=device, threads=threads, progress=progress)
    return Depths(graph=found.graph, stats=found.stats, trace=found.trace, depths=found.values)


def check_depths(graph: Graph, result: Any) -> None:
    """Raise ``VerificationError`` unless the depths agree with SciPy's shortest paths."""
    from scipy.sparse.csgraph import shortest_path

    if graph.num_vertices == 0:
        return
    expected = shortest_path(graph.to_scipy(), unweighted=True, indices=0)
    wrong = np.where(np.isinf(expected), -1, expected) != np.asarray(result)
    if wrong.any():
        raise VerificationError(f"vertex {int(wrong.argmax())} has a wrong depth")
