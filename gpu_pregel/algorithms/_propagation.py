"""Connected components by propagating labels, as a vertex program.

Xiaowei Zhu, Wenguang Chen, Weimin Zheng, Xiaosong Ma: Gemini, OSDI 2016.
"""

from __future__ import annotations

import numpy as np

from gpu_pregel.host.devices import DeviceName
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.programs.program import VertexProgram
from gpu_pregel.host.programs.run import ProgramResult, run

_PROGRAM = VertexProgram(
    value=np.uint32,
    init=lambda ctx: ctx.vertex,
    message=lambda value, ctx: value,  # noqa: ARG005
    combine="min",
    apply=lambda value, incoming, ctx: min(value, incoming),  # noqa: ARG005
)


def propagate_components(graph: Graph, device: DeviceName, threads: int | None, progress: bool) -> ProgramResult:
    """Send each vertex's smallest known label to its neighbours until none changes; a superstep per step of a path."""
    return run(
        graph.to_undirected(combine="min") if graph.is_directed else graph,
        _PROGRAM,
        device=device,
        threads=threads,
        progress=progress,
    )
