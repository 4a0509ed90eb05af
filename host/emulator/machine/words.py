"""Unchecked memory accesses and bit operations for code compiled by Numba; addresses are integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic as _numba_intrinsic

_WORD = ir.IntType(64)
_INTEGER = types.int64


def _instruction(arguments: int) -> Callable[[Callable[..., Any]], Callable[..., int]]:
    """Turn ``emit(builder, *values)``, which returns a 64-bit value or None, into an intrinsic on int64s."""

    def decorate(emit: Callable[..., Any]) -> Callable[..., int]:
        def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
            result = emit(builder, *values)
            return context.get_constant(_INTEGER, 0) if result is None else result

        signature = _INTEGER(*[_INTEGER] * arguments)
        typers: dict[int, Callable[..., Any]] = {
            1: lambda _context, _a: (signature, codegen),
            2: lambda _context, _a, _b: (signature, codegen),
            3: lambda _context, _a, _b, _c: (signature, codegen),
        }
        typer = typers[arguments]
        typer.__name__ = typer.__qualname__ = emit.__name__
        typer.__doc__ = emit.__doc__
        return cast("Callable[..., int]", _numba_intrinsic(typer))

    return decorate


def _pointer(builder: Any, address: Any, bits: int) -> Any:
    return builder.inttoptr(address, ir.IntType(bits).as_pointer())


def _element(builder: Any, base: Any, index: Any) -> Any:
    return _pointer(builder, builder.add(base, builder.shl(index, _WORD(3))), 64)


@_instruction(2)
def word(builder: Any, base: Any, index: Any) -> Any:
    """Return the word ``index`` words after ``base``."""
    return builder.load(_element(builder, base, index))


@_instruction(3)
def set_word(builder: Any, base: Any, index: Any, value: Any) -> None:
    """Set the word ``index`` words after ``base``."""
    builder.store(value, _element(builder, base, index))


def _reader(bits: int) -> Callable[..., int]:
    def read(builder: Any, address: Any) -> Any:
        value = builder.load(_pointer(builder, address, bits), align=1)
        return value if bits == 64 else builder.zext(value, _WORD)

    read.__name__ = f"read{bits}"
    return _instruction(1)(read)


def _writer(bits: int) -> Callable[..., int]:
    def write(builder: Any, address: Any, value: Any) -> None:
        narrow = value if bits == 64 else builder.trunc(value, ir.IntType(bits))
        builder.store(narrow, _pointer(builder, address, bits), align=1)

    write.__name__ = f"write{bits}"
    return _instruction(2)(write)


read8, read16, read32, read64 = (_reader(bits) for bits in (8, 16, 32, 64))
write8, write16, write32, write64 = (_writer(bits) for bits in (8, 16, 32, 64))


@_instruction(3)
def fill(builder: Any, address: Any, size: Any, value: Any) -> None:
    """Set ``size`` bytes at ``address`` to ``value``."""
    cgutils.memset(builder, _pointer(builder, address, 8), size, builder.trunc(value, ir.IntType(8)))


@_instruction(1)
def trailing_zeros(builder: Any, value: Any) -> Any:
    """Return the index of the lowest set bit."""
    return builder.cttz(value, ir.IntType(1)(1))


def _less_unsigned(builder: Any, a: Any, b: Any) -> Any:
    """Return 1 if ``a`` is less than ``b`` as unsigned integers."""
    return builder.zext(builder.icmp_unsigned("<", a, b), _WORD)


def _add_float32(builder: Any, a: Any, b: Any) -> Any:
    """Return the bits of the sum of two float32 values, given as bits."""
    short, single = ir.IntType(32), ir.FloatType()
    values = [builder.bitcast(builder.trunc(bits, short), single) for bits in (a, b)]
    return builder.zext(builder.bitcast(builder.fadd(*values), short), _WORD)


def _add_float64(builder: Any, a: Any, b: Any) -> Any:
    """Return the bits of the sum of two float64 values, given as bits."""
    values = [builder.bitcast(bits, ir.DoubleType()) for bits in (a, b)]
    return builder.bitcast(builder.fadd(*values), _WORD)


less_unsigned = _instruction(2)(_less_unsigned)
add_float32 = _instruction(2)(_add_float32)
add_float64 = _instruction(2)(_add_float64)


@_numba_intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def as_float(_context: Any, _bits: Any) -> Any:
    """Reinterpret an int64 as a float64."""

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return builder.bitcast(values[0], ir.DoubleType())

    return types.float64(_INTEGER), codegen
