"""Timeouts of attempts in worker processes: what is killed or cancelled, and who is charged."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

import gpu_pregel.agents as agents
from gpu_pregel.agents import Event, RetryPolicy, Vertex
from gpu_pregel.errors import AgentsFailedError
from gpu_pregel.host.agents.workers import pool
from tests.host.agents.workers.worker_programs import (
    counting,
    running,
)

LONG = 1.5
"""Seconds; longer than a busy machine interrupts a worker while it computes another vertex."""
ONE_TRY = RetryPolicy(attempts=1)
QUICK = RetryPolicy(attempts=3, wait=0.01)

pytestmark = pytest.mark.usefixtures("one_run_id")


def test_a_timeout_kills_an_ordinary_function_and_charges_only_its_vertex() -> None:
    def compute(ctx: Any) -> None:
        import time

        if ctx.vertex_id == 3 and ctx.superstep == 0:
            time.sleep(3600)
        ctx.value = ctx.attempt
        ctx.vote_to_halt()

    events: list[Event] = []
    result = agents.run(
        [Vertex(k) for k in range(8)],
        compute,
        workers=2,
        timeout=LONG,
        on_failure="continue",
        retry=RetryPolicy(attempts=2, wait=0),
        observer=events.append,
    )
    assert {key: (one.kind, one.type) for key, one in result.failed.items()} == {3: ("timeout", "TimeoutError")}
    assert result.values == {k: 1 if k != 3 else None for k in range(8)}
    assert [event.attempt for event in events if event.kind == "failure"] == [2]


def test_a_timeout_cancels_an_async_function_in_its_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_GRACE", 600.0)

    async def compute(ctx: Any) -> None:
        import asyncio

        if ctx.vertex_id == 3:
            await asyncio.sleep(60)
        ctx.vote_to_halt()

    with agents.start(
        [Vertex(k) for k in range(8)], compute, workers=1, timeout=LONG, on_failure="continue", retry=ONE_TRY
    ) as run:
        before = running(run)
        run.step()
        assert running(run) == before
        run.step()
        assert {key: one.kind for key, one in run.result().failed.items()} == {3: "timeout"}


@pytest.mark.parametrize("how", ["blocks", "refuses"])
def test_a_timeout_kills_an_async_function_that_cannot_be_cancelled(how: str) -> None:
    async def compute(ctx: Any) -> None:
        import asyncio
        import contextlib
        import time

        if ctx.vertex_id == 3:
            if how == "blocks":
                time.sleep(60)
            while True:
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(60)
        ctx.value = "done"
        ctx.vote_to_halt()

    result = agents.run(
        [Vertex(k) for k in range(8)], compute, workers=1, timeout=LONG, on_failure="continue", retry=ONE_TRY
    )
    assert {key: one.kind for key, one in result.failed.items()} == {3: "timeout"}
    assert result.values == {k: "done" if k != 3 else None for k in range(8)}


def test_a_timeout_error_of_a_function_is_an_exception() -> None:
    async def compute(ctx: Any) -> None:
        raise TimeoutError("of a server")

    with pytest.raises(AgentsFailedError) as caught:
        agents.run([Vertex(0)], compute, workers=1, timeout=5, retry=ONE_TRY)
    assert caught.value.result.failed[0].kind == "exception"


def stop_itself(ctx: Any) -> None:
    import os
    import signal

    if ctx.vertex_id == 1 and ctx.attempt == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    ctx.value = ctx.attempt
    ctx.vote_to_halt()


def test_a_timeout_kills_a_stopped_worker() -> None:
    result = agents.run([Vertex(k) for k in range(4)], stop_itself, workers=2, timeout=LONG, retry=QUICK)
    assert result.values == {0: 1, 1: 2, 2: 1, 3: 1}


def test_a_timeout_kills_a_worker_that_was_stopped_while_idle() -> None:
    with agents.start([Vertex(k) for k in range(4)], counting(1), workers=2, timeout=LONG) as run:
        run.step()
        os.kill(running(run)[0], signal.SIGSTOP)
        while run.step():
            pass
        assert run.result().status == "completed"
