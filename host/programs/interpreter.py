"""Calls of a program's functions by the Python interpreter, and checks of what they return.

Functions get and return Python numbers: integers are exact, and floats have 64 bits. Only a result is rounded to its
declared dtype, as in compiled code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpu_pregel.errors import VertexError
from gpu_pregel.host.traverse.functions import interpreted_function, line_of
from gpu_pregel.host.traverse.interpreted import MisfitError, fit, indexed_expression
from gpu_pregel.kernels.programs.functions import VertexContext
from gpu_pregel.kernels.programs.stages import stage_of
from gpu_pregel.kernels.traverse.fields import Fields


class UserFunction:
    """A function of a program, which is called as it is.

    Parameters
    ----------
    role : str
        What the function is in the program, such as "apply".
    function : callable
    fields : Fields
        The declared type of its result.
    id_of : callable
        Returns the user's id of a vertex.
    number : int
        That of an aggregator.
    copies_arrays : bool
        As in :func:`interpreted_function`.
    """

    def __init__(
        self,
        role: str,
        function: Any,
        fields: Fields,
        id_of: Callable[[int], Any],
        number: int = 0,
        *,
        copies_arrays: bool = False,
    ) -> None:
        self.role, self._stage = role, stage_of(role, number)
        self._function = interpreted_function(function, copies_arrays=copies_arrays)
        self._fields, self._id_of = fields, id_of

    def __call__(self, vertex: int, superstep: int, *arguments: Any) -> Any:
        """Call the function for a vertex, and return its result as Python numbers that fit the declared type.

        Raises
        ------
        VertexError
            The function divides by zero, indexes out of range or calls itself too deeply, or its result does not fit.
            Any other exception of the function is raised as it is, with a note that names the vertex.
        """
        if isinstance(arguments[-1], VertexContext):
            arguments = (*arguments[:-1], arguments[-1].at_stage(self._stage))
        try:
            result = self._function(*arguments)
        except (ArithmeticError, IndexError, RecursionError) as error:
            subject = indexed_expression(error.__traceback__) if "out of bounds for axis" in str(error) else ""
            failure, trace = f"{type(error).__name__}: {subject}{error}", error.__traceback__
        except Exception as error:
            place = line_of(self._function, error.__traceback__)
            error.add_note(
                f"raised by {self.role} for vertex {self._id_of(vertex)!r} in superstep {superstep} ({place})"
            )
            raise
        else:
            try:
                return fit(result, self._fields, wraps=self.role == "combine")
            except MisfitError as error:
                failure, trace = f"it returns {error}", None
        place = line_of(self._function, trace)
        failed = VertexError(self.role, self._id_of(vertex), superstep, failure, place)
        # With this traceback a debugger starts in the function.
        raise failed.with_traceback(trace)
