"""Integer arithmetic that raises ``OverflowError`` instead of wrapping around, for functions compiled with checks.

A compiler pass replaces ``+``, ``-``, ``*``, ``**``, ``<<`` and ``>>`` in a function. All others stay as they are, and
so do operations of two unsigned integers, which wrap around.
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
_INPLACE = {
    operator.iadd: operator.add,
    operator.isub: operator.sub,
    operator.imul: operator.mul,
    operator.ipow: operator.pow,
    operator.ilshift: operator.lshift,
    operator.irshift: operator.rshift,
}


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
        if not (a.signed or b.signed):
            return unchecked
        # As in Numba, the result has 64 bits, and a sign if one of the operands has one.
        both = types.int64

        def exact(a: Any, b: Any) -> Any:
            result, overflows = with_overflow(both(a), both(b))
            if overflows:
                raise OverflowError("integer overflow")
            return result

        return exact

    return checked


_CHECKED = {plain: _make_checked(plain, name) for plain, name in _OPERATORS.items()}
_multiply = _CHECKED[operator.mul]


def _power(a: Any, b: Any) -> Any:
    return a**b


@overload(_power, prefer_literal=True)
def _choose_power(a: Any, b: Any) -> Any:
    if not (isinstance(a, types.Integer) and isinstance(b, types.Integer)):
        if isinstance(b, types.IntegerLiteral):
            exponent = b.literal_value

            def constant(a: Any, b: Any) -> Any:
                return a**exponent  # Numba multiplies if it is a constant, which rounds otherwise

            return constant
        return _power
    if not (a.signed or b.signed):
        return _power
    both = types.int64

    def exact(a: Any, b: Any) -> Any:
        if b < 0:
            return both(a) ** both(b)
        result, square, rest = both(1), both(a), both(b)
        while rest > 0:
            if rest & 1:
                result = _multiply(result, square)
            rest >>= 1
            if rest > 0:
                square = _multiply(square, square)
        return result

    return exact


def _shift_left(a: Any, b: Any) -> Any:
    return a << b


@overload(_shift_left)
def _choose_shift_left(a: Any, b: Any) -> Any:
    if not (isinstance(a, types.Integer) and isinstance(b, types.Integer)):
        return _shift_left
    wide = types.int64 if a.signed else types.uint64
    wraps = not a.signed

    def exact(a: Any, b: Any) -> Any:
        if b < 0 or (b > 63 and a != 0 and not wraps):
            raise OverflowError("integer overflow")
        if b > 63:
            return wide(0)
        result = wide(a) << b
        if result >> b != wide(a) and not wraps:
            raise OverflowError("integer overflow")
        return result

    return exact


def _shift_right(a: Any, b: Any) -> Any:
    return a >> b


@overload(_shift_right)
def _choose_shift_right(a: Any, b: Any) -> Any:
    if not (isinstance(a, types.Integer) and isinstance(b, types.Integer)):
        return _shift_right
    wide = types.int64 if a.signed else types.uint64

    def exact(a: Any, b: Any) -> Any:
        if b < 0:
            raise OverflowError("negative shift count")
        if b > 63:  # the processor would use the lowest six bits of the count
            return wide(-1) if a < 0 else wide(0)
        return wide(a) >> b

    return exact


_CHECKED.update({operator.pow: _power, operator.lshift: _shift_left, operator.rshift: _shift_right})


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
