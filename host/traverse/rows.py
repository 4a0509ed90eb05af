"""Compilation of the functions of ``reduce_rows``: the message of an edge, and what its vertex does with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import types

from gpu_pregel.errors import ProgramError
from gpu_pregel.host.traverse.bodies import check_returned, content_key, kept, result_of, shown_type
from gpu_pregel.host.traverse.combiners import Combiner, absorbing, resolve_combiner
from gpu_pregel.host.traverse.compilation import check_result, numba_type
from gpu_pregel.host.traverse.functions import device_function
from gpu_pregel.kernels.library.jit_cpu import device
from gpu_pregel.kernels.traverse.fields import Fields, generated, make_cast

Function = Callable[..., Any]


class RowBodies(NamedTuple):
    """What a kernel that reduces rows is made from.

    Attributes
    ----------
    message, finish : callable
        The user's functions.
    combine : str or Combiner
    kinds : tuple of Numba types
        The types of the arrays and numbers that are passed to both functions.
    weight : Numba type
    has_weights : bool
        Whether the weights of the graph are read; without, every weight is 1.
    transpose : bool
        Whether rows are those of the in-edges.
    """

    message: Function
    combine: str | Combiner
    finish: Function
    kinds: tuple[Any, ...]
    weight: Any
    has_weights: bool
    transpose: bool

    @property
    def functions(self) -> tuple[Function, ...]:
        """The user's functions."""
        own = (self.message, self.finish)
        return (*own, self.combine.function) if isinstance(self.combine, Combiner) else own

    @property
    def key(self) -> tuple[Any, ...]:
        """What kernels of these bodies depend on."""
        combine = self.combine if isinstance(self.combine, str) else repr(self.combine.identity)
        return (*map(content_key, self.functions), combine, self.kinds, self.weight, self.has_weights)

    @property
    def message_arguments(self) -> tuple[Any, ...]:
        """The types of the arguments of ``message``."""
        return types.int64, types.int64, self.weight, *self.kinds


class CompiledRows(NamedTuple):
    """The functions compiled for use in kernels, after checks of their results.

    Attributes
    ----------
    message, combine, finish : callable
    fields : Fields
        The types of a message: those of its numbers.
    identity : number or tuple
    absorbing : number or None
        The message that no other changes, after which a row is not read on.
    total : dtype or None
        Of the sum of what ``finish`` returns; None if it returns none.
    """

    message: Any
    combine: Any
    finish: Any
    fields: Fields
    identity: Any
    absorbing: Any
    total: np.dtype[Any] | None


def compile_rows(bodies: RowBodies, returns: str | None, jit: Any = device) -> CompiledRows:
    """Return the functions compiled with ``jit``, after a check of their results, which is kept on disk.

    Raises
    ------
    ProgramError
        A function cannot be compiled, or returns something else than it must.
    """
    dtypes, is_tuple, total = kept("rows", bodies, bodies.functions, returns, lambda: _check(bodies, returns))
    fields = Fields(tuple(map(np.dtype, dtypes)), is_tuple)
    combine, identity = resolve_combiner(bodies.combine, fields)
    return CompiledRows(
        message=device_function(bodies.message, jit),
        combine=device_function(combine, jit),
        finish=device_function(bodies.finish, jit),
        fields=fields,
        identity=identity,
        absorbing=absorbing(bodies.combine, fields),
        total=None if total is None else np.dtype(total),
    )


def _check(bodies: RowBodies, returns: str | None) -> tuple[tuple[str, ...], bool, str | None]:
    """Raise an error unless the functions return what they must; return the dtypes of messages and of a sum."""
    fields = message_fields(bodies)
    if isinstance(bodies.combine, Combiner):
        kind = numba_type(fields)
        check_result(device_function(bodies.combine.function, device), "combine", (kind, kind), fields)
    resolve_combiner(bodies.combine, fields)
    arguments = (types.int64, numba_type(fields), *bodies.kinds)
    result, place = result_of(bodies.finish, "finish", arguments, bodies.kinds)
    check_returned("finish", result, returns, place)
    total = "<f8" if isinstance(result, types.Float) else "<i8"
    return tuple(dtype.str for dtype in fields.dtypes), fields.is_tuple, total if returns == "sum" else None


def message_fields(bodies: RowBodies) -> Fields:
    """Return the types of what ``message`` returns: a number, or a tuple of numbers."""
    result, place = result_of(bodies.message, "message", bodies.message_arguments, bodies.kinds)
    result = types.unliteral(result)
    parts = list(result) if isinstance(result, types.BaseTuple) else [result]
    if not parts or not all(isinstance(part, (types.Boolean, types.Integer, types.Float)) for part in parts):
        raise ProgramError(
            f"message returns {shown_type(result)}, but must return a number or a tuple of numbers{place}"
        )
    dtypes = tuple(np.dtype(str(types.unliteral(part)).replace("boolean", "bool")) for part in parts)
    return Fields(dtypes, isinstance(result, types.BaseTuple))


def row_body(rows: CompiledRows, count: int, *, has_weights: bool) -> Any:
    """Return ``body(v, indptr, indices, weights, *arrays)`` for the CPU: reduce the row of v and finish it.

    ``count`` is the number of arrays. Reading ends at the message that no other changes.
    """
    names = "".join(f", a{k}" for k in range(count))
    weight = "weights[e]" if has_weights else "one"
    source = (
        f"def body(v, indptr, indices, weights{names}):\n"
        f"    found = identity\n"
        f"    for e in range(indptr[v], indptr[v + 1]):\n"
        f"        found = cast(combine(found, cast(message(v, int64(indices[e]), {weight}{names}))))\n"
        f"        if {'found == absorbing' if rows.absorbing is not None else 'False'}:\n"
        f"            break\n"
        f"    return finish(v, found{names})\n"
    )
    given: dict[str, Any] = {"message": rows.message, "combine": rows.combine, "finish": rows.finish}
    given |= {"cast": make_cast(device, rows.fields), "identity": rows.identity, "absorbing": rows.absorbing}
    return generated(device, "body", source, **given, int64=np.int64, one=np.float32(1))
