"""The functions of ``atomics``, ``draws`` and ``sorted_rows`` for CUDA; importing this module registers them.

Operations on integers, and ``add``, are single instructions. The minimum and the maximum of floats are found by integer
instructions, which order positive floats by their bits and negative ones in reverse.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpu_pregel.kernels.library import atomics, atomics_cuda, captured, draws, records, sorted_rows
from gpu_pregel.kernels.library.bits_cuda import bits_of_float, float_of_bits
from gpu_pregel.kernels.library.compiler_cuda import (
    cuda,
    infer_getattr,
    ir,
    lower_builtin,
    lower_cast,
    overload,
    rewrites,
    templates,
    types,
)

_SIGNED = {32: types.int32, 64: types.int64}


def _number(array: Any) -> Any:
    """Return the type of an array's elements, or None if there are no atomics for it."""
    return array.dtype if atomics.is_atomic_array(array) else None


@overload(atomics.load, target="cuda", strict=False)
def _load(array: Any, index: Any) -> Any:
    if _number(array) is None:
        return None
    return lambda array, index: atomics_cuda.load_relaxed(array, index)


@overload(atomics.store, target="cuda", strict=False)
def _store(array: Any, index: Any, value: Any) -> Any:
    if _number(array) is None:
        return None
    return lambda array, index, value: atomics_cuda.store_relaxed(array, index, value)


def _bound(array: Any, name: str) -> Any:
    """Return the implementation of "min" or "max" for an array."""
    number = _number(array)
    if number is None:
        return None
    signed = getattr(atomics_cuda, f"fetch_and_{name}")
    unsigned = getattr(atomics_cuda, f"fetch_and_u{name}")
    opposite = getattr(atomics_cuda, {"min": "fetch_and_umax", "max": "fetch_and_umin"}[name])
    lowers = name == "min"
    if isinstance(number, types.Integer):
        operation = signed if number.signed else unsigned
        return lambda array, index, value: number(operation(array, index, number(value)))
    bits_type = _SIGNED[number.bitwidth]

    def bound_float(array: Any, index: Any, value: Any) -> Any:
        new, old = number(value), atomics_cuda.load_relaxed(array, index)
        # NaN changes nothing and remains, and neither zero replaces the other.
        if new < old if lowers else new > old:
            bits = bits_type(bits_of_float(new))
            if bits >= 0:
                old = float_of_bits(signed(array, index, bits))
            else:
                old = float_of_bits(opposite(array, index, bits))
        return old

    return bound_float


@overload(atomics.min, target="cuda", strict=False)
def _min(array: Any, index: Any, value: Any) -> Any:
    return _bound(array, "min")


@overload(atomics.max, target="cuda", strict=False)
def _max(array: Any, index: Any, value: Any) -> Any:
    return _bound(array, "max")


@overload(atomics.write_min, target="cuda", strict=False)
def _write_min(array: Any, index: Any, value: Any) -> Any:
    return None if _number(array) is None else atomics.lowering(array)


@overload(atomics.write_max, target="cuda", strict=False)
def _write_max(array: Any, index: Any, value: Any) -> Any:
    return None if _number(array) is None else atomics.raising(array)


@overload(atomics.add, target="cuda", strict=False)
def _add(array: Any, index: Any, value: Any) -> Any:
    number = _number(array)
    if number is None:
        return None
    if isinstance(number, types.Float):
        return lambda array, index, value: cuda.atomic.add(array, index, number(value))
    return lambda array, index, value: number(atomics_cuda.fetch_and_add(array, index, number(value)))


@overload(atomics.bitwise_or, target="cuda", strict=False)
def _bitwise_or(array: Any, index: Any, value: Any) -> Any:
    number = _number(array)
    if not isinstance(number, types.Integer):
        return None
    return lambda array, index, value: number(atomics_cuda.fetch_and_or(array, index, number(value)))


@overload(atomics.compare_and_swap, target="cuda", strict=False)
def _compare_and_swap(array: Any, index: Any, expected: Any, desired: Any) -> Any:
    number = _number(array)
    if number is None:
        return None
    if isinstance(number, types.Integer):
        bits = {32: types.uint32, 64: types.uint64}[number.bitwidth]

        def swap_integer(array: Any, index: Any, expected: Any, desired: Any) -> Any:
            old = bits(number(expected))
            return atomics_cuda.compare_and_swap(array, index, old, number(desired)) == old

        return swap_integer

    def swap_float(array: Any, index: Any, expected: Any, desired: Any) -> Any:
        old = bits_of_float(number(expected))
        return atomics_cuda.compare_and_swap(array, index, old, bits_of_float(number(desired))) == old

    return swap_float


def _share(function: Callable[..., Any]) -> None:
    """Make a function that uses no atomics callable in bodies as it is."""
    overload(function, target="cuda", strict=False)(lambda *_: function)


for shared in (*sorted_rows.PORTABLE, *draws.PORTABLE):
    _share(shared)
draws.register_method("cuda", templates.make_overload_method_template, infer_getattr, overload)
records.register(templates, lower_builtin, lower_cast)
captured.register(ir, rewrites)
