"""Code that overwrites private attributes of its context fails its own vertex only."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.agents import Vertex
from tests.agents import FEW, ONCE

ATTRIBUTES = gp.agents.Context.__slots__
VALUES = (None, True, 1, "text", b"bytes", [1], [("a", "b")], [(b"", b"", b"")], [("add_edge", 1, 2)], {"a": 1}, object)


def program(cases: list[tuple[str, Any]], is_async: bool) -> Any:
    def compute(ctx: Any) -> None:
        if isinstance(ctx.vertex_id, int):
            name, value = cases[ctx.vertex_id]
            ctx.value += 1
            ctx.vote_to_halt()
            if value is object:
                delattr(ctx, name)
            else:
                setattr(ctx, name, value)
        else:
            ctx.value = ctx.superstep
            ctx.send("other" if ctx.vertex_id == "good" else "good", 1)
            ctx.vote_to_halt()

    async def compute_on_loop(ctx: Any) -> None:
        compute(ctx)

    return compute_on_loop if is_async else compute


@FEW
@pytest.mark.parametrize("is_async", [False, True])
def test_only_the_vertex_fails_whose_code_overwrites_its_context(workers: int, is_async: bool) -> None:
    cases = [case for case in product(ATTRIBUTES, VALUES) if case != ("_asked", b"bytes")]  # which is an interrupt
    result = gp.agents.run(
        [*(Vertex(k, 0) for k in range(len(cases))), Vertex("good"), Vertex("other")],
        program(cases, is_async),
        workers=workers,
        retry=ONCE,
        on_failure="continue",
        max_supersteps=3,
        on_limit="return",
    )
    assert result.status == "max_supersteps"
    assert {vertex: result.values[vertex] for vertex in ("good", "other")} == {"good": 2, "other": 2}
    failed = {cases[vertex][0] for vertex in result.failed}
    assert failed >= {"_outbox", "_aggregates", "_mutations", "_halted", "_asked"}
    texts = {failure.text for failure in result.failed.values()}
    assert any(text.startswith("private attributes of the context were overwritten") for text in texts)
