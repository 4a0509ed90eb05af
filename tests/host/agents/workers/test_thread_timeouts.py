"""Timeouts of attempts on threads of this process, which are abandoned, as threads cannot be ended."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.agents import Event, RetryPolicy, Vertex
from gpu_pregel.host.agents.workers import thread_pool
from tests.agents import ONCE
from tests.host.agents.workers.worker_programs import wait_for

LONG = 20.0
"""Seconds after which a test fails instead of waiting for ever."""
SHORT = 0.5
"""A timeout; longer than a busy machine interrupts a thread."""
AGAIN = RetryPolicy(attempts=2, wait=0)


def vertices(count: int) -> list[Vertex]:
    return [Vertex(k) for k in range(count)]


def test_an_attempt_that_exceeds_its_timeout_is_abandoned() -> None:
    released, lost = threading.Event(), list[str]()
    late = threading.Event()

    def compute(ctx: Any) -> None:
        ctx.send(0, ctx.attempt) if ctx.superstep == 0 else None
        if ctx.superstep == 0 and ctx.attempt == 1:
            released.wait(LONG)
            for use in (lambda: ctx.send(0, "late"), lambda: ctx.emit("late"), ctx.heartbeat):
                with pytest.raises(RuntimeError, match="has ended"):
                    use()
                lost.append("refused")
            ctx.value = "late"
            late.set()
        else:
            ctx.value = [*(ctx.value or []), *ctx.messages]
        ctx.vote_to_halt()

    events: list[Event] = []
    with gp.agents.start([Vertex(0)], compute, threads=1, timeout=SHORT, retry=AGAIN, observer=events.append) as agents:
        assert agents.step()
        released.set()
        assert late.wait(LONG)
        assert not agents.step()
        assert agents.result().values == {0: [2]}
    assert len(lost) == 3
    failed = [event.facts["text"] for event in events if event.kind == "retry"]
    assert len(failed) == 1
    assert "took more than 0.5 s and was abandoned: its thread cannot be ended" in failed[0]
    assert not [event for event in events if event.kind == "emit"]


@pytest.mark.parametrize("in_loop", [False, True])
def test_abandoned_threads_do_not_count(in_loop: bool) -> None:
    released = threading.Event()

    def compute(ctx: Any) -> None:
        if ctx.vertex_id < 2:
            released.wait(LONG)
        ctx.value = "done"
        ctx.vote_to_halt()

    options: dict[str, Any] = {"threads": 1, "timeout": SHORT, "retry": ONCE, "on_failure": "continue"}
    if in_loop:
        result = asyncio.run(gp.agents.arun(vertices(4), compute, **options))
    else:
        result = gp.agents.run(vertices(4), compute, **options)
    released.set()
    assert {key: one.kind for key, one in result.failed.items()} == dict.fromkeys(range(2), "timeout")
    assert result.values == {0: None, 1: None, 2: "done", 3: "done"}


def test_what_an_abandoned_attempt_does_to_a_large_value_is_lost() -> None:
    """Its thread goes on until it is idle, between the end of the next attempt and the commit."""
    released, again = threading.Event(), threading.Event()
    abandoned: list[int | None] = []

    def outlast(ctx: Any) -> None:
        while not again.is_set():
            ctx.heartbeat()
            again.wait(0.01)
        wait_for(lambda: ctx.heartbeat() or 0 in ended)
        released.set()
        wait_for(lambda: ctx.heartbeat() or any(one.ident in abandoned for one in thread_pool._idle))

    def compute(ctx: Any) -> None:
        if ctx.vertex_id == 0:
            ctx.value.append(ctx.superstep)
        if ctx.vertex_id == 0 and ctx.superstep == 1 and ctx.attempt == 1:
            abandoned.append(threading.get_ident())
            released.wait(LONG)
            ctx.value.append("late")
        elif ctx.vertex_id == 0 and ctx.superstep == 1:
            again.set()
        elif ctx.vertex_id == 1 and ctx.superstep == 1:
            outlast(ctx)
        if ctx.superstep == 3:
            ctx.vote_to_halt()

    def observe(event: Event) -> None:
        if event.kind == "attempt" and event.superstep == 1 and event.attempt == 2:
            ended.append(event.vertex)

    ended: list[int] = []
    large = list(range(20_000))
    given = [Vertex(0, large), Vertex(1)]
    result = gp.agents.run(given, compute, threads=2, timeout=SHORT, retry=AGAIN, observer=observe)
    assert result.values == {0: [*large, 0, 1, 2, 3], 1: None}


def test_heartbeats_extend_the_timeout() -> None:
    def compute(ctx: Any) -> None:
        for _ in range(8):
            threading.Event().wait(SHORT / 4)
            ctx.heartbeat()
        ctx.value = ctx.attempt
        ctx.vote_to_halt()

    assert gp.agents.run(vertices(2), compute, threads=2, timeout=1.5 * SHORT).values == {0: 1, 1: 1}


def test_timeouts_do_not_count_the_time_of_observers() -> None:
    def observe(event: Event) -> None:
        if event.kind == "emit":
            threading.Event().wait(1.4 * SHORT)

    def compute(ctx: Any) -> None:
        ctx.emit(1)
        ctx.value = ctx.attempt
        ctx.vote_to_halt()

    result = gp.agents.run(vertices(2), compute, threads=2, timeout=SHORT, observer=observe)
    assert result.values == {0: 1, 1: 1}
