"""How one vertex takes and applies a message, for the kernels of the CPU and of CUDA.

Each ``make_…`` takes the decorator that compiles device functions for one of them and returns a function that kernels
call. Which vertices take messages is decided where one is taken, in ``apply``; the kernels over edges ask too, to skip
the rows and messages of other vertices, wherever they have the values of the receivers.
"""

from __future__ import annotations

from typing import Any

import numba

from gpu_pregel.kernels.programs.functions import Functions, make_context
from gpu_pregel.kernels.traverse.fields import Jit, generated, make_cast, make_changed, make_differs, make_get, make_put


def make_take_message(jit: Jit, functions: Functions, *, keeps_empty: bool = False) -> Any:
    """``take_message(inbox, v)``: the message in v's inbox, which is emptied; ``keeps_empty``: unless it is empty."""
    identity = functions.identity
    get, put = make_get(jit, functions.message), make_put(jit, functions.message)
    cast, differs = make_cast(jit, functions.message), make_differs(jit, functions.message)

    def take_message(inbox, v):
        message = cast(get(inbox, v))
        if not keeps_empty or differs(message, identity):
            put(inbox, v, identity)
        return message

    return jit(take_message)


def make_is_receiver(jit: Jit, functions: Functions) -> Any:
    """``is_receiver(receivers, v, n)``: whether the program's ``receives`` is true for the vertex at position v.

    ``receivers`` is (number of the first vertex, superstep, out-degrees, in-degrees, aggregates, values) as ``apply``
    will see them, or empty if the values are not at hand: then, and without ``receives``, every vertex is one.
    """
    receives: Any = functions.receives
    get, context = make_get(jit, functions.value), make_context(jit, functions.context)
    if receives is None:

        def is_receiver(receivers, v, n):
            return True

    else:

        def is_receiver(receivers, v, n):
            if len(receivers) == 0:
                return True
            first, superstep, out_degrees, in_degrees, aggregates, values = receivers
            ctx = context(first + v, superstep, n, out_degrees[v], in_degrees[v], aggregates)
            return receives(get(values, v), ctx) != 0

    return jit(is_receiver)


def make_accept(jit: Jit, functions: Functions) -> Any:
    """``accept(values, v, message, ctx)``: whether v applies, and the message that it takes: none if it receives none.

    If all vertices apply, one that receives nothing applies the identity.
    """
    receives: Any = functions.receives
    identity, always, get = functions.identity, functions.always, make_get(jit, functions.value)
    if receives is None:

        def accept(values, v, message, ctx):
            return True, message

    else:

        def accept(values, v, message, ctx):
            if receives(get(values, v), ctx) != 0:
                return True, message
            return always, identity

    return jit(accept)


def make_change(jit: Jit, functions: Functions, bits_of_float: Any) -> Any:
    """``change(old, message, ctx)``: whether a vertex that applies a message is active, and its new value."""
    apply: Any = functions.apply
    is_active: Any = functions.is_active
    cast, changed = make_cast(jit, functions.value), make_changed(jit, functions.value, bits_of_float)
    by_bits, always = is_active is None, functions.always

    def change(old, message, ctx):
        new = cast(apply(old, message, ctx))
        active = True
        if not always:
            active = changed(old, new) if by_bits else is_active(old, new, ctx) != 0
        return active, new

    return jit(change)


def make_update(jit: Jit, functions: Functions, fold: Any, bits_of_float: Any) -> Any:
    """``update(values, v, message, ctx, sums)``: apply a message.

    Returns whether v is active, whether it wakes an agent, and the aggregates with v's.
    """
    wake: Any = functions.wake
    wakes_none = wake is None
    get, put = make_get(jit, functions.value), make_put(jit, functions.value)
    change = make_change(jit, functions, bits_of_float)

    def update(values, v, message, ctx, sums):
        old = get(values, v)
        active, new = change(old, message, ctx)
        wakes = False if wakes_none else wake(old, new, ctx) != 0
        sums = fold(sums, old, new, ctx)
        # Last, so that a function that raises leaves the old value.
        put(values, v, new)
        return active, wakes, sums

    return jit(update)


def make_folding(jit: Jit, aggregators: tuple[Any, ...]) -> tuple[Any, Any, Any]:
    """``begin(partials, block)``, ``fold(sums, old, new, ctx)`` and ``finish(partials, block, sums)``.

    They keep a block's aggregates in registers, as a tuple. ``aggregators`` are those of ``Functions``.
    """
    count = len(aggregators)
    names: dict[str, Any] = {}
    loads, terms = [], []
    for k, (_, function, combine, dtype, _) in enumerate(aggregators):
        names |= {f"function{k}": function, f"combine{k}": combine, f"type{k}": numba.from_dtype(dtype)}
        loads.append(f"partials[{k}][block]")
        terms.append(f"type{k}(combine{k}(sums[{k}], type{k}(function{k}(old, new, ctx))))")
    stores = "".join(f"    partials[{k}][block] = sums[{k}]\n" for k in range(count)) or "    pass\n"
    loaded, folded = (f"({', '.join(parts)},)" if count else "0" for parts in (loads, terms))
    begin = f"def begin(partials, block):\n    return {loaded}\n"
    fold = f"def fold(sums, old, new, ctx):\n    return {folded}\n"
    finish = "def finish(partials, block, sums):\n" + stores
    return generated(jit, "begin", begin), generated(jit, "fold", fold, **names), generated(jit, "finish", finish)
