"""``ctx.heartbeat``: timeouts count from the last one."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.agents import Vertex
from gpu_pregel.host.agents.workers import pool
from tests.agents import ONCE

OPTIONS: dict[str, Any] = {"retry": ONCE, "on_failure": "continue", "timeout": 1.5}
BEATS, PAUSE = 20, 0.1
"""Together longer than the timeout, and each pause so short that a busy machine does not exceed the timeout."""


def test_an_ordinary_function_that_reports_progress_outlives_its_timeout() -> None:
    def compute(ctx: Any) -> None:
        for _ in range(BEATS):
            time.sleep(PAUSE)
            if ctx.vertex_id != "silent":
                ctx.heartbeat()
        ctx.value = "done"
        ctx.vote_to_halt()

    result = gp.agents.run([Vertex("alive"), Vertex("silent")], compute, workers=2, **OPTIONS)
    assert result.values == {"alive": "done", "silent": None}
    assert {name: one.kind for name, one in result.failed.items()} == {"silent": "timeout"}


@pytest.mark.parametrize("workers", [0, 1])
def test_an_async_function_that_reports_progress_outlives_its_timeout(
    workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "_GRACE", 0.3)  # otherwise the attempts end before their worker would be killed

    async def compute(ctx: Any) -> None:
        if ctx.vertex_id == "blocks":
            for _ in range(BEATS):
                time.sleep(PAUSE)
                ctx.heartbeat()
            await asyncio.sleep(0)
        else:
            for _ in range(BEATS):
                await asyncio.sleep(PAUSE)
                if ctx.vertex_id == "alive":
                    ctx.heartbeat()
                if ctx.vertex_id == "thread":
                    await asyncio.to_thread(ctx.heartbeat)
        ctx.value = "done"
        ctx.vote_to_halt()

    for vertices in (["blocks"], ["alive", "thread", "silent"]):
        result = gp.agents.run(list(map(Vertex, vertices)), compute, workers=workers, **OPTIONS)
        assert result.values == {name: None if name == "silent" else "done" for name in vertices}
        assert {one.kind for one in result.failed.values()} <= {"timeout"}


def test_a_heartbeat_after_the_attempt_is_refused() -> None:
    kept: list[Any] = []

    def compute(ctx: Any) -> None:
        ctx.heartbeat()  # nothing to report to, and no error
        kept.append(ctx)
        ctx.vote_to_halt()

    assert gp.agents.run([Vertex("a")], compute).status == "completed"
    with pytest.raises(RuntimeError, match="the attempt has ended"):
        kept[0].heartbeat()
