"""Durable timers: ``ctx.wake_at``."""

from __future__ import annotations

import asyncio
import datetime
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.agents import Vertex
from gpu_pregel.errors import AgentsFailedError
from gpu_pregel.host.agents import agent_run
from gpu_pregel.host.stores.store import Store
from tests.agents import FEW, ONCE, result_bytes
from tests.stores import Open

LATER = 1e11
"""A time that does not come."""


def reminding(seconds: float) -> Callable[[Any], None]:
    """Return a function whose vertices sleep once, and then keep the times at which they begin."""

    def compute(ctx: Any) -> None:
        if ctx.superstep == 0:
            ctx.wake_at(ctx.value[0] + seconds)
        else:
            ctx.value = [*ctx.value, ctx.superstep, list(ctx.messages), time.time()]
        ctx.vote_to_halt()

    return compute


class SleepingClock:
    """A module ``time`` whose time passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = LATER

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds


@FEW
def test_a_run_waits_for_its_timers_in_their_order(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def compute(ctx: Any) -> None:
        if ctx.superstep == 0:
            ctx.wake_at(LATER + ctx.value)
        else:
            ctx.value = ctx.superstep
        ctx.vote_to_halt()

    clock = SleepingClock()
    monkeypatch.setattr(agent_run, "time", clock)
    result = gp.agents.run([Vertex("a", 5), Vertex("b", 1), Vertex("c", 9), Vertex("d", 5)], compute, workers=workers)
    assert clock.now == pytest.approx(LATER + 9)
    assert (result.status, result.values, result.timers) == ("completed", {"a": 2, "b": 1, "c": 3, "d": 2}, {})


def test_a_run_may_end_as_waiting_and_is_resumed_later(opened: Open) -> None:
    options: dict[str, Any] = {"compute": reminding(LATER), "on_waiting": "return"}
    result = gp.agents.run([Vertex("a", [0.0])], **options, store=opened(), run_id="run")
    for found in (result, gp.agents.state_at(opened(), "run"), gp.agents.resume(opened(), "run", **options)):
        assert (found.status, found.timers, found.superstep) == ("waiting", {"a": LATER}, 1)
    assert (opened().run("run").status, opened().run("run").lease) == ("waiting", 0)
    begin = time.time()
    options["compute"] = reminding(0.5)
    gp.agents.run([Vertex("a", [begin])], **options, store=opened(), run_id="soon")
    final = gp.agents.resume(opened(), "soon", options["compute"])
    assert (final.status, final.superstep, final.timers) == ("completed", 2, {})
    assert final.values["a"][1:3] == [1, []]
    assert final.values["a"][3] >= begin + 0.5


@pytest.mark.parametrize("base_every", [1, 50])
def test_what_wakes_in_a_superstep_is_replayed(opened: Open, base_every: int) -> None:
    failing = True

    def compute(ctx: Any) -> None:
        if ctx.superstep == 0:
            ctx.wake_at({"now": 0, "later": LATER, "fails": 0}[ctx.vertex_id])
        elif failing and ctx.vertex_id == "fails":
            raise ValueError("not yet")
        else:
            ctx.value = ctx.superstep
        ctx.vote_to_halt()

    options: dict[str, Any] = {"on_waiting": "return", "base_every": base_every, "retry": ONCE}
    names = [Vertex(name) for name in ("now", "later", "fails")]
    with pytest.raises(AgentsFailedError):
        gp.agents.run(names, compute, **options, store=opened(), run_id="run")
    assert gp.agents.state_at(opened(), "run", 0).timers == {"now": 0, "later": LATER, "fails": 0}
    assert gp.agents.state_at(opened(), "run").timers == {"later": LATER}
    failing = False
    result = gp.agents.resume(opened(), "run", compute, **options, retry_failed=True)
    assert (result.status, result.values) == ("waiting", {"now": 1, "later": None, "fails": 1})
    found = gp.agents.state_at(opened(), "run")
    assert (result_bytes(found), found.timers) == (result_bytes(result), {"later": LATER})


def test_a_timer_that_came_just_before_a_crash_is_not_lost(opened: Open) -> None:
    vertices = [Vertex("a", [0.0])]
    options: dict[str, Any] = {"compute": reminding(0.0), "on_waiting": "return"}
    agents = gp.agents.start(vertices, **options, store=opened(), run_id="run")
    agents.step()
    assert agents.status == "waiting"
    assert agents._wake_due() is None
    with gp.agents.reopen(opened(), "run", **options, takeover=True) as other:
        assert other.result().timers == {}
        other.step()
        assert other.result().values["a"][:3] == [0.0, 1, []]
        assert not other.step()
    agents.__exit__()


def test_a_timer_is_kept_by_messages_replaced_by_another_and_removed_with_its_vertex(store: Store) -> None:
    def compute(ctx: Any) -> None:
        if ctx.superstep == 0:
            ctx.wake_at(1.0)
            ctx.wake_at(LATER)
        for message in ctx.messages:
            ctx.value = message
            if message == "again":
                ctx.wake_at(datetime.datetime.fromtimestamp(LATER / 10, datetime.UTC))
            if message == "remove":
                ctx.remove_vertex("a")
        ctx.vote_to_halt()

    with gp.agents.start([Vertex("a")], compute, store=store, run_id="run", on_waiting="return") as agents:
        expected: list[tuple[str, dict[str, float]]] = [
            ("keep", {"a": LATER}),
            ("again", {"a": LATER / 10}),
            ("remove", {}),
        ]
        agents.step()
        for message, timers in expected:
            assert agents.status == "waiting"
            agents.send("a", message)
            agents.step()
            assert agents.result().timers == timers
        assert agents.status == "completed"


def test_a_timer_is_part_of_checkpoint_data() -> None:
    compute = reminding(0.2)
    with gp.agents.start([Vertex("a", [time.time()])], compute, on_waiting="return") as agents:
        agents.step()
        data = agents.checkpoint_data()
    result = gp.agents.run(data, compute)
    assert (result.status, result.values["a"][1:3]) == ("completed", [1, []])


def test_a_waiting_run_stops_and_takes_requests_up(opened: Open) -> None:
    def compute(ctx: Any) -> None:
        ctx.value = ctx.messages
        ctx.wake_at(LATER)
        ctx.vote_to_halt()

    agents = gp.agents.start([Vertex("a")], compute, store=opened(), run_id="run")
    with agents:
        assert agents.step()
        gp.agents.send(opened(), "run", "a", 5)
        while agents.result().values != {"a": [5]}:
            assert agents.step()
        stopper = threading.Timer(0.1, agents.stop)
        stopper.start()
        while agents.step():
            pass
        stopper.join()
        assert agents.status == "stopped"
    with gp.agents.reopen(opened(), "run", compute) as agents:
        assert agents.step()
        gp.agents.cancel(opened(), "run")
        assert (agents.step(), agents.status) == (False, "cancelled")
    assert gp.agents.state_at(opened(), "run").timers == {"a": LATER}


def test_a_run_on_an_event_loop_waits_without_blocking_it() -> None:
    async def compute(ctx: Any) -> None:
        if ctx.superstep == 0:
            ctx.wake_at(ctx.value)
        ctx.vote_to_halt()

    async def main() -> Any:
        begin = time.time()
        first = await gp.agents.arun([Vertex("a", begin + 0.2)], compute)
        assert time.time() >= begin + 0.2
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(gp.agents.arun([Vertex("a", LATER)], compute), 0.05)
        return first

    result = asyncio.run(main())
    assert (result.status, result.superstep) == ("completed", 2)


@pytest.mark.parametrize(
    ("when", "problem"),
    [
        ("soon", "when must be seconds since 1970 or a datetime with a time zone"),
        (True, "when must be seconds"),
        (float("nan"), "no time in seconds since 1970"),
        (-1, "no time in seconds since 1970"),
        (datetime.datetime(2026, 1, 1), "has no time zone"),
        (datetime.datetime(1960, 1, 1, tzinfo=datetime.UTC), "no time in seconds since 1970"),
    ],
)
def test_what_is_no_time_fails_the_attempt(when: Any, problem: str) -> None:
    def compute(ctx: Any) -> None:
        ctx.wake_at(when)

    with pytest.raises(AgentsFailedError, match=problem):
        gp.agents.run([Vertex("a")], compute, retry=ONCE)
