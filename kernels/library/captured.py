"""Arrays that the functions of a program have captured: compiled code takes them as arguments, not as constants.

In a function, a :class:`Captured` stands for each. A compiler pass replaces it by ``ctx.captured[position]``, where
``ctx`` is the function's last argument, so that functions with other arrays need not be compiled again.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, NamedTuple

import numba
import numpy as np
from numba.core import ir, rewrites, types


class Captured(NamedTuple):
    """What stands for an array in a function: the place of the array among all those captured, and its dtype."""

    position: int
    dtype: np.dtype[Any]


def can_pass(value: object) -> bool:
    """Whether a captured value is an array that kernels can take as an argument; others remain constants."""
    return (
        isinstance(value, np.ndarray)
        and value.ndim == 1
        and value.dtype.isnative
        and value.dtype.kind in "biuf"
        and value.dtype != np.float16
        and value.dtype.itemsize <= 8
    )


def argument_type(dtype: np.dtype[Any]) -> Any:
    """Return the type with which kernels take an array of a dtype; functions may not write to it."""
    return types.Array(numba.from_dtype(dtype), 1, "C", readonly=True)


def register(ir: Any, rewrites: ModuleType) -> None:
    """Add the pass to a compiler, by its modules of intermediate code and of passes that rewrite it."""

    @rewrites.register_rewrite("before-inference")
    class ReadCaptured(rewrites.Rewrite):  # type: ignore[name-defined]
        """Reads arrays from the ``ctx`` of a function."""

        def match(self, function: Any, block: Any, *_: Any) -> bool:
            """Whether a block uses an array."""
            self._function, self._block = function, block
            return any(map(is_captured, block.find_insts(ir.Assign)))

        def apply(self) -> Any:
            """Return the block with arrays of ``ctx``."""
            changed = self._block.copy()
            changed.clear()
            for statement in self._block.body:
                if is_captured(statement):
                    for one in self._read(statement):
                        changed.append(one)
                else:
                    changed.append(statement)
            return changed

        def _read(self, statement: Any) -> list[Any]:
            place, target, position = statement.loc, statement.target, statement.value.value.position
            last = self._function.arg_count - 1
            ctx, arrays = (target.scope.redefine(f"$captured.{name}", place) for name in ("ctx", "arrays"))
            values = {
                ctx: ir.Arg(self._function.arg_names[last], last, place),
                arrays: ir.Expr.getattr(ctx, "captured", place),
                target: ir.Expr.static_getitem(arrays, position, None, place),
            }
            self._function._definitions[target.name].remove(statement.value)
            for variable, value in values.items():
                self._function._definitions[variable.name].append(value)
            return [ir.Assign(value, variable, place) for variable, value in values.items()]

    def is_captured(statement: Any) -> bool:
        if not isinstance(statement, ir.Assign) or not isinstance(statement.value, (ir.Global, ir.FreeVar)):
            return False
        return isinstance(statement.value.value, Captured)


register(ir, rewrites)
