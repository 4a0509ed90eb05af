"""Checks of the results of a vertex program's functions, and the errors for functions that cannot be compiled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numba
import numpy as np
from numba import types

from gpu_pregel.errors import ProgramError
from gpu_pregel.host.programs.interpreter import BOOL
from gpu_pregel.host.programs.program import VertexProgram
from gpu_pregel.host.traverse.combiners import field_names
from gpu_pregel.host.traverse.compilation import DRAW_IS_MISSING, place_of, result_type
from gpu_pregel.host.traverse.type_words import in_words
from gpu_pregel.kernels.library.cache import load_value, save_value
from gpu_pregel.kernels.library.captured import argument_type
from gpu_pregel.kernels.programs.functions import Parameters, VertexContext
from gpu_pregel.kernels.traverse.fields import Fields, named_type


class ProgramChecks:
    """Compiles a program's functions one by one and checks their results, once per program and machine.

    The result is cached on disk with the kernels, so that the next process compiles nothing.
    """

    def __init__(
        self,
        program: VertexProgram,
        value: Fields,
        message: Fields,
        parameters: Parameters,
        digest: str | None,
        *,
        weight: np.dtype[Any] | None = None,
        draws: bool = False,
        captured: Sequence[np.dtype[Any]] = (),
    ) -> None:
        self._program = program
        self._stream = types.UniTuple(types.int64, 3) if draws else types.none
        self._parameters = _named_type("Parameters", dict(parameters))
        self._captured = types.Tuple([argument_type(dtype) for dtype in captured]) if captured else types.none
        self._value = value
        self._message = message
        # Without weights, each is 1 of this type.
        weight = np.dtype(np.float32) if weight is None else weight
        self._weight = numba.from_dtype(weight)
        self._note = None if digest is None else f"program-{weight}-{digest}"

    def run(self, device: dict[str, Any], contributions: dict[str, Any]) -> dict[str, np.dtype[Any]]:
        """Raise ``ProgramError`` at the first error; return the dtypes of the aggregates."""
        if self._note is not None:
            known: dict[str, np.dtype[Any]] | None = load_value(self._note)
            if known is not None:
                return known
        dtypes = self._check_aggregators(contributions, _numba_type(self._value))
        results = {"init": self._value, "message": self._message, "combine": self._message, "apply": self._value}
        kinds = self.argument_types(dtypes)
        for role in ("init", "message", "combine", "apply", "receives", "active", "wake", "initially_active"):
            if role in device:
                _check(device[role], role, kinds[role], results.get(role, BOOL))
        if self._note is not None:
            save_value(self._note, dtypes)
        return dtypes

    def argument_types(self, dtypes: dict[str, np.dtype[Any]]) -> dict[str, tuple[Any, ...]]:
        """Return the types of the functions' arguments, by role; ``dtypes`` are those of the aggregates."""
        value, message, weight = _numba_type(self._value), _numba_type(self._message), self._weight
        context = self._context_type(_named_type("Aggregated", dtypes))
        return {
            "init": (context,),
            "initially_active": (context,),
            "message": (value, weight, context) if self._program.sends_per_edge else (value, context),
            "combine": (message, message),
            "apply": (value, message, context),
            "receives": (value, context),
            "active": (value, value, context),
            "wake": (value, value, context),
            "aggregator": (value, value, context),
        }

    def _check_aggregators(self, contributions: dict[str, Any], value: Any) -> dict[str, np.dtype[Any]]:
        """Return the dtypes of the aggregates; an aggregator that reads an aggregate must declare its dtype."""
        dtypes: dict[str, np.dtype[Any]] = {}
        context = self._context_type(types.none)
        for name, aggregator in self._program.aggregators.items():
            role = f"aggregator {name!r}"
            if aggregator.dtype is not None:
                dtypes[name] = np.dtype(aggregator.dtype)
                continue
            result = result_type(contributions[name], role, (value, value, context))
            if isinstance(result, types.Boolean):
                dtypes[name] = np.dtype(np.int64 if aggregator.combine == "sum" else np.bool_)
            elif isinstance(result, (types.Integer, types.Float)):
                dtypes[name] = np.dtype(np.float64 if isinstance(result, types.Float) else np.int64)
            else:
                raise ProgramError(
                    f"{role} returns {in_words(result)}, but must return a number{place_of(contributions[name])}"
                )
        return dtypes

    def _context_type(self, aggregated: Any) -> Any:
        parts = [types.int64] * 5 + [aggregated, self._parameters, self._captured, self._stream]
        return types.BaseTuple.from_types(parts, VertexContext)


def _numba_type(fields: Fields) -> Any:
    if fields.names is not None:
        return _named_type("Value", dict(zip(fields.names, fields.dtypes, strict=True)))
    parts = [numba.from_dtype(dtype) for dtype in fields.dtypes]
    return types.Tuple(parts) if fields.is_tuple else parts[0]


def _named_type(name: str, dtypes: dict[str, np.dtype[Any]]) -> Any:
    """Return the type of a named tuple of numbers, or of None if there are no names."""
    if not dtypes:
        return types.none
    return types.BaseTuple.from_types(
        [numba.from_dtype(dtype) for dtype in dtypes.values()], named_type(name, tuple(dtypes))
    )


def _check(function: Any, role: str, arguments: tuple[Any, ...], fields: Fields) -> None:
    result = result_type(function, role, arguments)
    if isinstance(result, types.BoundFunction):
        raise ProgramError(f"{role} returns a method, not its result{place_of(function)}: {DRAW_IS_MISSING}")
    if fields is BOOL:
        if not isinstance(result, (types.Boolean, types.Integer)):
            raise ProgramError(f"{role} returns {in_words(result)}, but must return True or False{place_of(function)}")
        return
    parts = list(result) if isinstance(result, types.BaseTuple) else [result]
    if isinstance(result, types.BaseTuple) != fields.is_tuple or len(parts) != len(fields.dtypes):
        raise ProgramError(
            f"{role} returns {in_words(result)}, but {field_names(fields)} is declared{place_of(function)}"
        )
    for k, (part, dtype) in enumerate(zip(parts, fields.dtypes, strict=True)):
        where = f" in field {fields.names[k]!r}" if fields.names else f" in field {k}" if fields.is_tuple else ""
        found = f"{role} returns {in_words(part)}{where}, but {field_names(fields)} is declared"
        if not isinstance(part, (types.Boolean, types.Integer, types.Float)):
            raise ProgramError(f"{found}{place_of(function)}")
        if isinstance(part, types.Float) and dtype.kind != "f":
            raise ProgramError(
                f"{found}, and floats are not converted to integers silently{place_of(function)}: convert the result, "
                f"as with np.{dtype}(x), or declare float64"
            )
