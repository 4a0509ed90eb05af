"""Values of 512 bits on the CPU, eight uint64 words that LLVM keeps in vector registers, for bit-parallel searches."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

LINE_WORDS = 8
LINE_BITS = 64 * LINE_WORDS

_WORD = ir.IntType(64)
_VECTOR = ir.VectorType(_WORD, LINE_WORDS)


class _Line(types.Type):
    def __init__(self) -> None:
        super().__init__("line of 512 bits")


_line = _Line()


@register_model(_Line)
class _LineModel(models.PrimitiveModel):
    def __init__(self, manager: Any, type_: Any) -> None:
        super().__init__(manager, type_, _VECTOR)


def _pointer(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    array, index = signature.args[:2]
    view = context.make_array(array)(context, builder, arguments[0])
    first = builder.mul(context.cast(builder, arguments[1], index, types.intp), ir.Constant(_WORD, LINE_WORDS))
    element = cgutils.get_item_pointer(context, builder, array, view, [first], wraparound=False)
    return builder.bitcast(element, _VECTOR.as_pointer())


@intrinsic
def load_line(typingctx: Any, words: Any, index: Any) -> Any:
    """Return line ``index`` of an array of uint64: words ``8 * index`` to ``8 * index + 7``."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_pointer(context, builder, signature, arguments), align=8)

    return _line(words, index), codegen


@intrinsic
def store_line(typingctx: Any, words: Any, index: Any, line: Any) -> Any:
    """Set line ``index`` of an array of uint64."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[2], _pointer(context, builder, signature, arguments), align=8)
        return context.get_dummy_value()

    return types.void(words, index, line), codegen


@intrinsic
def no_bits(typingctx: Any) -> Any:
    """Return a line without set bits."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return ir.Constant(_VECTOR, [0] * LINE_WORDS)

    return _line(), codegen


@intrinsic
def either(typingctx: Any, a: Any, b: Any) -> Any:
    """Return the bits set in a or b."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.or_(*arguments)

    return _line(a, b), codegen


@intrinsic
def both(typingctx: Any, a: Any, b: Any) -> Any:
    """Return the bits set in a and b."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.and_(*arguments)

    return _line(a, b), codegen


@intrinsic
def differing(typingctx: Any, a: Any, b: Any) -> Any:
    """Return the bits that differ between a and b."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.xor(*arguments)

    return _line(a, b), codegen


@intrinsic
def without(typingctx: Any, a: Any, b: Any) -> Any:
    """Return the bits set in a and not in b."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.and_(arguments[0], builder.not_(arguments[1]))

    return _line(a, b), codegen


def _reduce(builder: Any, operation: str, vector: Any) -> Any:
    kind = ir.FunctionType(_WORD, [_VECTOR])
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.{operation}.v{LINE_WORDS}i64")
    return builder.call(function, [vector])


@intrinsic
def any_bit(typingctx: Any, a: Any) -> Any:
    """Return whether any bit is set."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = _reduce(builder, "or", arguments[0])
        return builder.icmp_unsigned("!=", word, ir.Constant(_WORD, 0))

    return types.boolean(a), codegen


@intrinsic
def count_bits(typingctx: Any, a: Any) -> Any:
    """Return the number of set bits."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(_VECTOR, [_VECTOR])
        function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.ctpop.v{LINE_WORDS}i64")
        return _reduce(builder, "add", builder.call(function, [arguments[0]]))

    return types.int64(a), codegen
