"""A program's functions with guards: what one raises is recorded, and its kernel continues in all threads.

Only functions that may raise are guarded, in programs that have one. Their ``ctx`` carries the array of the record.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np

from gpu_pregel.kernels.library.attempts_cuda import attempt
from gpu_pregel.kernels.library.compiler_cuda import types
from gpu_pregel.kernels.library.jit_cuda import device
from gpu_pregel.kernels.programs.failures_cuda import record, role_bits
from gpu_pregel.kernels.programs.functions import Functions, VertexContext
from gpu_pregel.kernels.traverse.fields import Fields, generated, make_cast, packing
from gpu_pregel.kernels.traverse.guards_cuda import guard

_PLAIN = (
    "    plain = VertexContext(ctx.vertex, ctx.superstep, ctx.num_vertices, ctx.out_degree, ctx.in_degree, "
    "ctx.aggregated, ctx.parameters, ctx.captured, ctx.stream)\n"
)
_APPLYING = frozenset({"apply", "active", "wake", "aggregator"})
"""Functions whose failure ends the update of their vertex; the results of others are zero."""


def with_guards(functions: Functions, raising: Collection[str]) -> Functions:
    """Return the functions with guards around those roles that may raise; unchanged if there is none."""
    if not raising:
        return functions

    def guard_role(function: Any, role: str, arguments: str, number: int) -> Any:
        return _guarded(function, role, arguments, role_bits(role, number) if role in raising else None)

    guarded = replace(functions.wrapped(guard_role), records=True)
    return _with_failing_messages(guarded) if "combine" in raising else guarded


def _guarded(function: Any, role: str, arguments: str, bits: Any) -> Any:
    """Return a function that takes the kernel's ``ctx`` and passes the program's to ``function``.

    ``bits`` stand for the role; None if the function cannot raise.
    """
    failure = "record(ctx.failures, ctx.vertex, bits, status)"
    return guard(
        function,
        arguments,
        None if bits is None else f"{failure}; raise RuntimeError" if role in _APPLYING else failure,
        passed=arguments.replace("ctx", "plain"),
        before=_PLAIN,
        record=record,
        bits=bits,
        VertexContext=VertexContext,
    )


def _with_failing_messages(functions: Functions) -> Functions:
    """Return functions whose messages have one more field: the status with which ``combine`` failed, or 0.

    ``combine`` is called where no ``ctx`` is at hand; the vertex that takes the message records the failure.
    """
    plain = functions.message
    count = len(plain.dtypes)
    message = Fields((*plain.dtypes, np.dtype(np.uint8)), True)
    parts = functions.identity if plain.is_tuple else (functions.identity,)
    pack, packed_names = packing(plain)
    fields = ", ".join(f"x[{k}]" for k in range(count)) if plain.is_tuple else "x"
    names: dict[str, Any] = {
        "attempt": attempt,
        "cast": make_cast(device, plain),
        "record": record,
        "bits": role_bits("combine"),
        "status_of": types.uint8,
        **packed_names,
    }
    arguments = "value, weight, ctx" if functions.per_edge else "value, ctx"
    send = f"def send({arguments}):\n    x = cast(function({arguments}))\n    return ({fields}, status_of(0))\n"
    combine = (
        f"def combine(a, b):\n    result, status = attempt(function, ({pack('a')}, {pack('b')}))\n"
        f"    x = cast(result)\n    return ({fields}, status_of(max(max(status, a[{count}]), b[{count}])))\n"
    )
    apply = (
        f"def apply(old, message, ctx):\n    status = message[{count}]\n    if status != 0:\n"
        f"        record(ctx.failures, ctx.vertex, bits, status)\n        raise RuntimeError\n"
        f"    return function(old, {pack('message')}, ctx)\n"
    )
    return replace(
        functions,
        message=message,
        identity=(*parts, np.uint8(0)),
        send=generated(device, "send", send, function=functions.send, **names),
        combine=generated(device, "combine", combine, function=functions.combine, **names),
        apply=generated(device, "apply", apply, function=functions.apply, **names),
    )


def make_update_or_fail(functions: Functions, update: Any) -> Any:
    """``update_or_fail(values, v, message, ctx, sums)``: as ``update``, and whether it failed and changed nothing."""

    def always_updates(values, v, message, ctx, sums):
        is_active, wakes, sums = update(values, v, message, ctx, sums)
        return is_active, wakes, sums, False

    def may_fail(values, v, message, ctx, sums):
        (is_active, wakes, new_sums), status = attempt(update, (values, v, message, ctx, sums))
        if status != 0:
            return False, False, sums, True
        return is_active, wakes, new_sums, False

    return device(may_fail if functions.records else always_updates)
