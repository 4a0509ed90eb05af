"""Errors for functions that raise on a CUDA device: the failed call is repeated in Python, which says where and why."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.errors import DeviceError, NotEnoughMemoryError, VertexError
from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.devices.python import PythonDevice
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.programs.compiler import CompiledProgram
from gpu_pregel.host.programs.program import VertexProgram
from gpu_pregel.host.programs.python_state import PythonState, interpret_program
from gpu_pregel.host.programs.state import ProgramState
from gpu_pregel.host.traverse.functions import line_of, text_of
from gpu_pregel.kernels.programs.failures_cuda import FunctionFailure

Array = np.ndarray[Any, Any]


class FailureReport:
    """Makes the errors of a run on a CUDA device.

    Parameters
    ----------
    program : CompiledProgram
    graph : Graph
    device : Device
    """

    def __init__(self, program: CompiledProgram, graph: Graph, device: Device) -> None:
        self._program, self._graph, self._device = program, graph, device

    def error_of(
        self, failure: FunctionFailure, superstep: int, state: ProgramState, parameters: tuple[tuple[Any, ...], int]
    ) -> VertexError:
        """Return the error for a function that raised in a superstep; a message is sent in the one before.

        ``parameters`` are their values and the seed. The kernels leave what the function was called with: value and
        inbox of the vertex, and the aggregates.
        """
        called = superstep - (failure.role == "message")
        role, vertex = failure.role, self._graph.to_ids(np.array([failure.vertex])).tolist()[0]
        function = _function_of(self._program.declaration, role)
        try:
            self._repeat(failure, superstep, state, parameters)
        except VertexError as error:
            return error
        except (DeviceError, NotEnoughMemoryError):
            raise
        except Exception as error:
            failed = VertexError(role, vertex, called, text_of(error), line_of(function, error.__traceback__))
            failed.__cause__ = error
            return failed
        problem = f"{failure.exception} in compiled code"
        if role != "combine":
            problem += ", but not in Python, where integers are exact and floats have 64 bits"
        return VertexError(role, vertex, called, problem, line_of(function))

    def _repeat(
        self, failure: FunctionFailure, superstep: int, state: ProgramState, parameters: tuple[tuple[Any, ...], int]
    ) -> None:
        """Call the function of one vertex, and those before it in the superstep, in Python."""
        program, download = self._program, self._device.download
        dtypes = {name: dtype for name, dtype, _ in program.aggregates}
        twin = PythonState(interpret_program(program.declaration, dtypes), self._graph, PythonDevice(), always=False)
        twin.set_parameters(*parameters)
        v = failure.vertex
        for array, own in zip(twin.values, state.values, strict=True):
            array[v : v + 1] = download(own[v : v + 1])
        seen = tuple(download(array) for array in state.aggregates)
        message = tuple(
            download(array[v : v + 1]).astype(dtype)[0].item()
            for array, dtype in zip(state.vertices.inbox, program.message.dtypes, strict=True)
        )
        twin.repeat(failure.role, v, superstep, seen, message)


def _function_of(program: VertexProgram, role: str) -> Any:
    """Return the function of a role."""
    if role == "combine" and not isinstance(program.combine, str):
        return program.combine.function
    aggregators = {f"aggregator {name!r}": one.function for name, one in program.aggregators.items()}
    return aggregators[role] if role in aggregators else getattr(program, role)
