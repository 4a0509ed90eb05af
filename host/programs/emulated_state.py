"""The state of a run on the emulated device: the emulator finds that a function fails, Python says for which vertex."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from gpu_pregel.errors import EmulationError, VertexError
from gpu_pregel.host.devices.python import PythonDevice
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.programs.cuda_state import CudaState
from gpu_pregel.host.programs.program import VertexProgram
from gpu_pregel.host.programs.python_state import PythonState, interpret_program
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
        values, frontier = [array.peek() for array in self.values], self.frontier.peek().view(np.uint64)
        aggregates, posted = tuple(array.peek() for array in self.aggregates), self.posted
        try:
            return run()
        except (EmulationError, VertexError) as error:
            if isinstance(error, VertexError) and error.role != "combine":  # it has the reason and the line
                raise
            dtypes = {name: dtype for name, dtype, _ in self._program.aggregates}
            program = interpret_program(self._declaration, dtypes)
            for asks_everyone in (False, True):
                twin = PythonState(program, self._graph, PythonDevice(), always=self._always)
                twin.set_parameters(self._sent_with, self._seed)
                twin.attach([array.copy() for array in values], frontier.copy())
                twin.context_arrays, twin._given = tuple(array.copy() for array in aggregates), self._given
                twin.posted, twin.asks_everyone = posted, asks_everyone
                if self.excluded is not None:
                    twin.exclude(self.excluded)
                repeat(twin)
            raise
