"""Integer arithmetic that raises ``OverflowError`` instead of wrapping around, for functions compiled with checks.

A compiler pass replaces ``+``, ``-`` and ``*`` in a function. All other operators stay as they are.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from numba import types
from numba.core import ir
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.untyped_passes import IRProcessing
from numba.extending import intrinsic, overload

_OPERATORS = {operator.add: "add", operator.sub: "sub", operator.mul: "mul"}
_INPLACE = {operator.iadd: operator.add, operator.isub: operator.sub, operator.imul: operator.mul}


def _make_checked(plain: Callable[[Any, Any], Any], name: str) -> Callable[[Any, Any], Any]:
    """Return an operator like ``plain`` that raises an error on overflow of integers; ``name`` is LLVM's for it."""

    def checked(a: Any, b: Any) -> Any:
        return plain(a, b)

    def unchecked(a: Any, b: Any) -> Any:
        return plain(a, b)

    @intrinsic
    def with_overflow(typing_context: Any, a: Any, b: Any) -> Any:
        """The result, and whether it overflows, by one instruction of the processor."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pair = getattr(builder, f"{'s' if a.signed else 'u'}{name}_with_overflow")(*arguments)
            parts = [builder.extract_value(pair, k) for k in range(2)]
            return context.make_tuple(builder, signature.return_type, parts)

        return types.Tuple([a, types.boolean])(a, b), generate

    @overload(checked)
    def choose(a: Any, b: Any) -> Any:
        if not (isinstance(a, types.Integer) and isinstance(b, types.Integer)):
            return unchecked
        # As in Numba, the result has 64 bits, and a sign if one of the operands has one.
        both = types.int64 if a.signed or b.signed else types.uint64

        def exact(a: Any, b: Any) -> Any:
            result, overflows = with_overflow(both(a), both(b))
            if overflows:
                raise OverflowError("integer overflow")
            return result

        return exact

    return checked


_CHECKED = {plain: _make_checked(plain, name) for plain, name in _OPERATORS.items()}


@register_pass(mutates_CFG=False, analysis_only=False)
class _CheckOverflow(FunctionPass):
    """Replace the arithmetic operators of a function by the checked ones."""

    _name = "gpu_pregel_check_overflow"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        for block in state.func_ir.blocks.values():
            for statement in block.find_insts(ir.Assign):
                value = statement.value
                if isinstance(value, ir.Expr) and value.op in ("binop", "inplace_binop"):
                    plain = _INPLACE.get(value.fn, value.fn)
                    if plain in _CHECKED:
                        statement.value = _binary(_CHECKED[plain], value)
        return True


def _binary(operation: Any, value: ir.Expr) -> ir.Expr:
    """Return an expression with the operands of another one; ``ir.Expr.binop`` takes Python's operators only."""
    static = dict.fromkeys(("static_lhs", "static_rhs"), ir.UNDEFINED)
    return ir.Expr("binop", value.loc, fn=operation, lhs=value.lhs, rhs=value.rhs, **static)


class OverflowChecker(CompilerBase):
    """Numba's compiler with checked integer arithmetic."""

    def define_pipelines(self) -> list[Any]:
        """Return Numba's passes, with ours after the function has been read."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(_CheckOverflow, IRProcessing)
        passes.finalize()
        return [passes]
