"""Which vertices take messages, for the kernels of the CPU and of CUDA.

The rule is applied where a message is taken, in ``apply``. The kernels over edges apply it too, to skip the rows and
messages of other vertices, wherever they have the values of the receivers.
"""

from __future__ import annotations

from typing import Any

from gpu_pregel.kernels.programs.functions import Functions, make_context
from gpu_pregel.kernels.traverse.fields import Jit, make_get


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
