"""The state of a run on the emulated device: the emulator finds that a function fails, Python says for which vertex."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from gpu_pregel.errors import EmulationError, VertexError
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.programs.cuda_state import CudaState
from gpu_pregel.host.programs.program import VertexProgram
from gpu_pregel.host.programs.python_state import PythonState, twins
from gpu_pregel.host.programs.state import Activity, SuperstepFigures

Result = TypeVar("Result")


class EmulatedState(CudaState):
    """Repeats what the emulator refuses, such as an index beyond an array, on the device "python".

    So it does if a combiner raises, as the kernels do not record which messages it combined.

    Parameters
    ----------
    declaration : VertexProgram
    graph : Graph
    arguments, options
        Those of ``CudaState``.
    """

    def __init__(self, declaration: VertexProgram, graph: Graph, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._declaration, self._graph = declaration, graph

    def initialise(self) -> Activity:
        """Run superstep 0: ``init`` and the first frontier."""
        return self._explained(super().initialise, PythonState.initialise)

    def execute(
        self, direction: str, superstep: int, activity: Activity, totals: tuple[Any, ...], limit: int
    ) -> list[SuperstepFigures]:
        """Run a superstep in which the active vertices send, or up to ``limit`` of them."""
        run = super().execute

        def repeat(twin: PythonState) -> None:
            seen = totals
            for step in range(superstep, superstep + limit):
                (figures,) = twin.execute(direction, step, activity, seen, 1)
                seen = figures.totals
                if not figures.activity.active_vertices:
                    break

        return self._explained(lambda: run(direction, superstep, activity, totals, limit), repeat)

    def _explained(self, run: Callable[[], Result], repeat: Callable[[PythonState], Any]) -> Result:
        """Run supersteps; if the emulator refuses something, repeat them in Python, which names the vertex."""
        beginning = self.beginning(lambda array: array.peek())
        try:
            return run()
        except (EmulationError, VertexError) as error:
            if isinstance(error, VertexError) and error.role != "combine":  # it has the reason and the line
                raise
            for twin in twins(beginning, self._declaration, self._program, self._graph, always=self._always):
                repeat(twin)
            raise
