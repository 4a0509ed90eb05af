"""Errors for functions that raise on a CUDA device: the failed call is repeated in Python, which says where and why."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.errors import DeviceError, NotEnoughMemoryError, ProgramError, VertexError
from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.devices.python import PythonDevice
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.programs.bodies import Bodies
from gpu_pregel.host.programs.compiler import CompiledProgram
from gpu_pregel.host.programs.interpreter import line_of
from gpu_pregel.host.programs.program import VertexProgram
from gpu_pregel.host.programs.python_state import PythonState, interpret_program
from gpu_pregel.host.programs.state import ProgramState
from gpu_pregel.kernels.programs.failures_cuda import FunctionFailure, read_edge_failure

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
            failed = VertexError(role, vertex, called, _text(error), line_of(function, error.__traceback__))
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


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _weights(graph: Graph, u: int, v: int) -> list[Any]:
    """Return the weights of the edges from u to v or, if an operator follows them backwards, from v to u."""
    for row, other in ((u, v), (v, u)):
        first, last = graph.indptr[row : row + 2]
        places = first + np.flatnonzero(graph.indices[first:last] == other)
        if len(places):
            break
    return [1.0] if graph.weights is None else graph.weights[places].tolist()


def check_bodies(record: Array, bodies: Bodies, arrays: tuple[Any, ...], graph: Graph, device: Device) -> None:
    """Raise ``ProgramError`` if a kernel recorded that a function of an operator raised.

    The call is repeated in Python to learn where and why; by then the arrays may have changed.
    """
    failure = read_edge_failure(*record.tolist())
    if failure is None:
        return
    u, v = failure.vertex, failure.other
    is_body = v is not None or bodies.weight is None
    function: Any = bodies.body if is_body else bodies.receives
    numbers = (bool, int, float, np.generic)
    copies = [array if isinstance(array, numbers) else device.download(array) for array in arrays]
    plain, cause = getattr(function, "py_func", function), None
    try:
        for given in [(u,)] if v is None else [(u, v, weight) for weight in _weights(graph, u, v)]:
            plain(*given, *copies)
    except Exception as error:
        cause = error
    ids = graph.to_ids(np.array([u] if v is None else [u, v])).tolist()
    where = f"vertex {ids[0]!r}" if v is None else f"the edge from {ids[0]!r} to {ids[1]!r}"
    why = f"{failure.exception} in compiled code; a second call, with the arrays as they are now, does not fail"
    if cause is not None:
        why = _text(cause)
    place = line_of(function, None if cause is None else cause.__traceback__)
    raise ProgramError(f"{'the body' if is_body else 'receives'} fails for {where} ({place}): {why}") from cause
