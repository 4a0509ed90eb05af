"""Checks of the results of a vertex program's functions, and the errors for functions that cannot be compiled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numba
import numpy as np
from numba import types

from gpu_pregel.errors import ProgramError
from gpu_pregel.host.programs.program import VertexProgram
from gpu_pregel.host.traverse.compilation import check_result, named_tuple_type, numba_type, place_of, result_type
from gpu_pregel.host.traverse.interpreted import BOOL
from gpu_pregel.host.traverse.type_words import in_words
from gpu_pregel.kernels.library.cache import load_value, save_value
from gpu_pregel.kernels.library.captured import argument_type
from gpu_pregel.kernels.programs.functions import Parameters, VertexContext
from gpu_pregel.kernels.traverse.fields import Fields


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
        self._parameters = named_tuple_type("Parameters", dict(parameters))
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
        dtypes = self._check_aggregators(contributions, numba_type(self._value))
        results = {"init": self._value, "message": self._message, "combine": self._message, "apply": self._value}
        kinds = self.argument_types(dtypes)
        for role in ("init", "message", "combine", "apply", "receives", "active", "wake", "initially_active"):
            if role in device:
                check_result(device[role], role, kinds[role], results.get(role, BOOL))
        if self._note is not None:
            save_value(self._note, dtypes)
        return dtypes

    def argument_types(self, dtypes: dict[str, np.dtype[Any]]) -> dict[str, tuple[Any, ...]]:
        """Return the types of the functions' arguments, by role; ``dtypes`` are those of the aggregates."""
        value, message, weight = numba_type(self._value), numba_type(self._message), self._weight
        context = self._context_type(named_tuple_type("Aggregated", dtypes))
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
