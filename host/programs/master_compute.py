"""Master compute: what the host decides after a superstep of a vertex program, by ``halt`` or ``master``."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from gpu_pregel.errors import ArgumentTypeError
from gpu_pregel.host.programs.master_step import Decision, MasterStep
from gpu_pregel.host.programs.program import VertexProgram
from gpu_pregel.host.traverse.functions import line_of
from gpu_pregel.kernels.traverse.fields import named_type


class MasterCompute:
    """Calls ``master`` of a program after each superstep, or ``halt`` after each but superstep 0.

    Parameters
    ----------
    program : VertexProgram
        Has one of the two.
    num_vertices : int
    """

    def __init__(self, program: VertexProgram, num_vertices: int) -> None:
        self._program, self._num_vertices = program, num_vertices
        self._aggregated = named_type("Aggregated", tuple(program.aggregators))
        names = tuple(one.name for one in program.declared_parameters)
        self._parameters = type("Parameters", (named_type("Parameters", names),), {"__setattr__": _refuse})

    def decide(
        self, superstep: int, active_vertices: int, totals: tuple[Any, ...], parameters: tuple[Any, ...]
    ) -> Decision:
        """Return what is decided after a superstep with these aggregates and parameters."""
        program = self._program
        if superstep == 0 and program.master is None:
            return Decision(False, parameters)
        role, function = ("halt", program.halt) if program.master is None else ("master", program.master)
        try:
            if program.master is None:
                return Decision(self._is_halted(totals, parameters), parameters)
            aggregated = self._aggregated(*totals)
            seen = self._parameters(*parameters)
            declared = program.declared_parameters
            step = MasterStep(declared, superstep, self._num_vertices, active_vertices, aggregated, seen)
            result = program.master(step)
            if result is not None:
                raise ArgumentTypeError(
                    f"master returns {result!r:.80}, but must return None: parameters are set by step.set(NAME=value), "
                    f"and the run is ended by step.halt()"
                )
        except Exception as error:
            place = line_of(function, _last_line_in(function, error.__traceback__))
            error.add_note(f"raised by {role} after superstep {superstep} ({place})")
            raise
        return step.decision

    def _is_halted(self, totals: tuple[Any, ...], parameters: tuple[Any, ...]) -> bool:
        halt: Any = self._program.halt
        seen = (self._parameters(*parameters),) if self._program.halt_takes_parameters else ()
        return bool(halt(self._aggregated(*totals), *seen))


def _last_line_in(function: Any, trace: TracebackType | None) -> TracebackType | None:
    """Return the last line of a traceback that is in the file of a function: the user's, not one of this package."""
    found = None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == function.__code__.co_filename:
            found = TracebackType(None, trace.tb_frame, trace.tb_lasti, trace.tb_lineno)
        trace = trace.tb_next
    return found


def _refuse(parameters: Any, name: str, value: Any) -> None:  # noqa: ARG001
    raise AttributeError(f"parameters are set by a call: step.set({name}={value!r})")


def master_compute(program: VertexProgram, num_vertices: int) -> MasterCompute | None:
    """Return what decides after each superstep; None if the program leaves nothing to decide."""
    if program.halt is None and program.master is None:
        return None
    return MasterCompute(program, num_vertices)
