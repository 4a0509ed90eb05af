"""Vertex programs whose functions raise; pytest does not rewrite the assertions of this module."""

from __future__ import annotations

from typing import Any

import numpy as np

import gpu_pregel as gp

INIT, FIRST, MESSAGE, RECEIVES, APPLY, ACTIVE, AGGREGATOR, COMBINE = range(8)
NUMBERS = (2, 3, 5)


def fail(kind: int, here: int) -> int:
    if here:
        if kind == 0:
            raise ValueError("negative")
        assert kind != 1, "odd"
        return NUMBERS[kind + 1]
    return 0


def failing(ctx: Any, role: int) -> int:
    given = ctx.parameters
    here = given.role == role and ctx.superstep == given.step and ctx.vertex % given.every == 7
    return fail(given.kind, here)


# One program whose functions raise where the parameters say, so that its kernels are compiled once.
PROGRAM = gp.VertexProgram(
    value=np.int64,
    parameters={"role": -1, "kind": 0, "step": 0, "every": 1000},
    init=lambda ctx: ctx.vertex + failing(ctx, INIT),
    initially_active=lambda ctx: failing(ctx, FIRST) == 0,
    message=lambda value, weight, ctx: value + np.int64(weight) * 0 + failing(ctx, MESSAGE),
    combine="min",
    receives=lambda value, ctx: failing(ctx, RECEIVES) == 0,
    # A repeated call that lacks the message does not fail.
    apply=lambda value, incoming, ctx: min(value, incoming) + (failing(ctx, APPLY) if incoming < 1 << 40 else 0),
    active=lambda old, new, ctx: failing(ctx, ACTIVE) != 0 or old != new,
    aggregators={
        "sum": gp.Aggregator("sum", lambda old, new, ctx: new - old + (failing(ctx, AGGREGATOR) if old != new else 0))
    },
)


def lesser(a: int, b: int) -> int:
    if a == 1010 or b == 1010:
        raise ValueError("ten")
    return min(a, b)


COMBINING = gp.VertexProgram(
    value=np.int64,
    init=lambda ctx: ctx.vertex + 1000,
    message=lambda value, ctx: value,
    combine=gp.Combiner(lesser, 1 << 40),
    apply=lambda value, incoming, ctx: min(value, incoming),
)


def checked_vertex(v: int, marks: Any, every: int) -> bool:
    if v % every == 7 and every < 1000:
        raise ValueError("negative")
    return bool(marks[v] > 0)


def checked_edge(u: int, v: int, weight: float, wanted: float) -> bool:
    return NUMBERS[2 + (weight == wanted)] > 0


def checked_receiver(v: int, wanted: float) -> bool:
    assert v % 100 != 50 or wanted != -1, "fifty"
    return True


def once(v: int, marks: Any) -> bool:
    before = marks[v]
    marks[v] = 0
    if before > 0:
        raise ValueError("the first time")
    return False
