"""The state of a run on the CPU with ``check=True``: compiled code finds that something fails, Python says where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba.core.errors import NumbaError

from gpu_pregel.errors import ProgramError
from gpu_pregel.host.devices.cpu import CpuDevice
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.graphs.partitions import Partition
from gpu_pregel.host.programs.compiler import CompiledProgram
from gpu_pregel.host.programs.cpu_state import CpuState
from gpu_pregel.host.programs.program import VertexProgram, functions_of
from gpu_pregel.host.programs.python_state import PythonState, twins
from gpu_pregel.host.programs.state import Activity, SuperstepFigures
from gpu_pregel.host.traverse.functions import is_recursive

Result = TypeVar("Result")


class CheckedState(CpuState):
    """Runs kernels compiled with checks; repeats a superstep that fails on the device "python", from where it began.

    Parameters
    ----------
    program : CompiledProgram
        Compiled with checks.
    declaration : VertexProgram
    graph : Graph
    partitions : list of Partition
    device : CpuDevice
    always : bool
        Whether every vertex applies in every superstep.
    """

    def __init__(
        self,
        program: CompiledProgram,
        declaration: VertexProgram,
        graph: Graph,
        partitions: list[Partition],
        device: CpuDevice,
        *,
        always: bool,
    ) -> None:
        super().__init__(program, partitions, graph.out_degrees, graph.in_degrees, device, always=always)
        self._declaration, self._graph = declaration, graph
        self._is_recursive = any(map(is_recursive, functions_of(declaration)))

    def initialise(self) -> Activity:
        """Run superstep 0: ``init`` and the first frontier."""
        return self._checked(0, super().initialise, PythonState.initialise)

    def execute(
        self, direction: str, superstep: int, activity: Activity, totals: tuple[Any, ...], limit: int
    ) -> list[SuperstepFigures]:
        """Run a superstep in which the active vertices send; ``totals`` are the aggregates that it sees."""
        arguments = direction, superstep, activity, totals, limit
        run = super().execute
        return self._checked(superstep, lambda: run(*arguments), lambda twin: twin.execute(*arguments))

    def _checked(self, superstep: int, run: Callable[[], Result], repeat: Callable[[PythonState], Result]) -> Result:
        """Run a superstep; if it fails, repeat it in Python, which raises an error that names the vertex."""
        beginning = self.beginning(np.copy)

        def repeat_in_python() -> None:
            for twin in twins(beginning, self._declaration, self._program, self._graph, always=self._always):
                repeat(twin)

        if self._is_recursive:  # in compiled code, too deep a recursion ends the process
            repeat_in_python()
        try:
            return run()
        except NumbaError:
            raise
        except Exception as error:
            failure = error
        repeat_in_python()
        raise ProgramError(
            f"a function fails in superstep {superstep} in compiled code ({type(failure).__name__}: {failure}), but "
            f"not in Python, where integers are exact: an intermediate result exceeds 64 bits, or is negative and of "
            f"an unsigned dtype; convert its operands, as with np.int64(x) or float(x)"
        ) from failure
