"""``gp.agents.serve``: errors, several runs at the same time, and stopping."""

from __future__ import annotations

import threading
import time
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.agents import Event, Vertex
from gpu_pregel.errors import AgentsFailedError, StoreError
from gpu_pregel.host.agents import run_finder
from gpu_pregel.host.agents.run_finder import RunFinder
from gpu_pregel.host.stores.store import Store
from tests.agents import ONCE
from tests.conformance.serving_programs import (
    asking,
    stopped,
    working,
)
from tests.stores import Open

LIMIT = 60
"""Seconds that a thread of these tests may take."""


# Errors


def test_a_run_that_raises_is_tried_again_later_and_told_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[Event] = []
    stop, calls = threading.Event(), 0

    def master(_: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            stop.set()
        raise OSError("no disk")

    gp.agents.start([Vertex("a", "counts")], working, store=store, run_id="run", master=master).stop()
    left = gp.agents.serve(store, working, master=master, interval=0.001, stop=stop, observer=events.append)
    assert left == {"error": 3}
    told = [event.facts for event in events if event.kind == "postpone"]
    assert told == [{"text": "OSError: no disk", "seconds": 0.002}]
    assert (store.run("run").head, store.run("run").lease) == (-1, 0)
    assert gp.agents.serve(store, working, master=master, once=True) == {"error": 1}
    assert gp.agents.serve(store, working, override="master", once=True) == {"completed": 1}


def test_a_run_that_makes_no_progress_is_tried_again_later(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[Event] = []
    stop = threading.Event()

    def observe(event: Event) -> None:
        if event.kind in ("claim", "postpone"):
            events.append(event)
            if len(events) == 4:
                stop.set()

    asking(store, "run")
    monkeypatch.setattr(RunFinder, "_read_due", lambda *_: 0.0)
    gp.agents.serve(store, working, interval=0.001, stop=stop, observer=observe)
    assert [event.kind for event in events] == ["claim", "postpone", "claim", "claim"]
    assert events[1].facts == {"text": "AgentError: it was continued without progress", "seconds": 0.002}


def test_pauses_grow_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    now, seconds = 1000.0, []
    store = gp.MemoryStore()
    stopped(store, "run")
    (run,) = store.unfinished("agents")
    finder = RunFinder(store, "*", None, 1.0, lambda *_: None)
    monkeypatch.setattr(run_finder, "time", SimpleNamespace(time=lambda: now))
    for _ in range(40):
        assert list(finder.find(())) == [run]
        finder.postpone(run, OSError("no disk"))
        assert list(finder.find(())) == []
        seconds.append(finder.next_time() - now)
        now += seconds[-1]
    assert seconds == [2, 4, 8, 16, 32, 64, 128, 256] + [300] * 32


def test_a_run_with_a_lower_limit_is_postponed(store: Store) -> None:
    events: list[Event] = []
    agents = gp.agents.start([Vertex("a", "counts")], working, store=store, run_id="run")
    agents.step(), agents.step()
    agents.stop()
    assert gp.agents.serve(store, working, once=True, max_supersteps=1, observer=events.append) == {"error": 1}
    assert "more than max_supersteps=1: raise it" in events[-1].facts["text"]


def test_a_run_that_another_program_takes_over_is_lost(opened: Open) -> None:
    events: list[Event] = []
    taken: list[gp.agents.AgentRun] = []

    def compute(ctx: Any) -> None:
        if not taken:
            taken.append(gp.agents.reopen(opened(), "run", compute, takeover=True))
        ctx.vote_to_halt()

    gp.agents.start([Vertex("a")], compute, store=opened(), run_id="run").stop()
    assert gp.agents.serve(opened(), compute, once=True, observer=events.append) == {}
    assert [event.kind for event in events if event.run and event.kind in ("claim", "lost", "release", "postpone")] == [
        "claim",
        "lost",
    ]
    with taken[0] as agents:
        while agents.step():
            pass
        assert agents.status == "completed"


def test_an_outage_of_the_store_is_waited_for(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[Event] = []
    stop, searches, listing = threading.Event(), 0, store.unfinished

    def search(kind: str) -> Any:
        nonlocal searches
        searches += 1
        if searches in (2, 3):
            raise StoreError(store.name, "is away")
        if searches == 4:
            stopped(store, "run")
        return listing(kind)

    def observe(event: Event) -> None:
        events.append(event)
        # The run may end before the search that found it does.
        if {"outage": 2, "release": 1}.items() <= Counter(one.kind for one in events).items():
            stop.set()

    monkeypatch.setattr(store, "unfinished", search)
    assert gp.agents.serve(store, working, interval=0.001, stop=stop, observer=observe) == {"completed": 1}
    told = [event.facts["text"].rpartition(": ")[2] for event in events if event.kind == "outage"]
    assert told == ["is away", "is over"]
    searches = 1
    with pytest.raises(StoreError, match="is away"):
        gp.agents.serve(store, working)


def test_an_error_of_an_observer_ends_serving_and_releases_the_runs(store: Store) -> None:
    def observe(event: Event) -> None:
        if event.kind == "refuse":
            raise ZeroDivisionError

    started, ends, threads = threading.Event(), threading.Event(), []

    def compute(ctx: Any) -> None:
        threads.append(threading.current_thread())
        started.set()
        assert ends.wait(LIMIT)

    gp.agents.start([Vertex("a")], compute, store=store, run_id="run").stop()
    listing = store.unfinished

    def search(kind: str) -> Any:
        if started.wait(0.0 if not store.run("run").lease else LIMIT):
            stopped(store, "other") if len(store.runs()) == 1 else None
        return listing(kind)

    store.unfinished = search  # type: ignore[method-assign]
    with pytest.raises(ZeroDivisionError):
        gp.agents.serve(store, compute, interval=0.001, observer=observe)
    assert (store.run("run").lease, store.run("run").head) == (0, -1)
    ends.set()
    threads[0].join(LIMIT)
    assert store.run("run").head == -1


# Several runs


@pytest.mark.parametrize("concurrency", [1, 2])
def test_runs_are_computed_at_the_same_time(store: Store, concurrency: int) -> None:
    meeting, running, most = threading.Barrier(concurrency), 0, 0
    lock = threading.Lock()

    def compute(ctx: Any) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        meeting.wait(LIMIT)
        with lock:
            running -= 1
        ctx.vote_to_halt()

    for name in range(4):
        gp.agents.start([Vertex("a")], compute, store=store, run_id=str(name)).stop()
    assert gp.agents.serve(store, compute, concurrency=concurrency, once=True) == {"completed": 4}
    assert most == concurrency


def test_supervisors_share_the_runs_of_a_store(opened: Open) -> None:
    computed: list[tuple[str, int]] = []
    events: list[Event] = []

    def compute(ctx: Any) -> None:
        computed.append((ctx.value, ctx.superstep))
        if ctx.superstep == 2:
            ctx.vote_to_halt()

    names = [f"run {k}" for k in range(8)]
    for name in names:
        gp.agents.start([Vertex("a", name)], compute, store=opened(), run_id=name).stop()
    found: list[dict[str, int]] = []

    def supervise(store: Store) -> None:
        found.append(gp.agents.serve(store, compute, concurrency=2, once=True, observer=events.append))

    threads = [threading.Thread(target=supervise, args=(opened(),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    assert sorted(computed) == [(name, step) for name in names for step in range(3)]
    assert sum(one.get("completed", 0) for one in found) == 8
    assert all(one.keys() <= {"completed"} for one in found)
    assert {event.kind for event in events} == {"claim", "superstep", "attempt", "commit", "end", "release"}


def test_a_stop_takes_effect_after_the_superstep(opened: Open) -> None:
    stop = threading.Event()

    async def compute(ctx: Any) -> None:
        ctx.value += 1
        if ctx.value == 3:
            stop.set()

    gp.agents.start([Vertex("a", 0)], compute, store=opened(), run_id="run", max_supersteps=None).stop()
    assert gp.agents.serve(opened(), compute, stop=stop) == {"stopped": 1}
    row = opened().run("run")
    assert (row.status, row.head, row.lease) == ("stopped", 2, 0)
    assert gp.agents.serve(opened(), compute, stop=stop) == {}
    assert gp.agents.state_at(opened(), "run").values == {"a": 3}


def test_a_timer_is_waited_for(store: Store) -> None:
    stop, woken = threading.Event(), []

    def compute(ctx: Any) -> None:
        if ctx.superstep == 0:
            ctx.wake_at(ctx.value)
        else:
            woken.append(time.time())
            stop.set()
        ctx.vote_to_halt()

    when = time.time() + 0.2
    gp.agents.run([Vertex("a", when)], compute, store=store, run_id="run", on_waiting="return")
    assert gp.agents.serve(store, compute, interval=LIMIT, stop=stop) == {"completed": 1}
    assert woken[0] >= when


def test_a_failed_run_tells_why(store: Store) -> None:
    events: list[Event] = []
    gp.agents.start([Vertex("a", "fails")], working, store=store, run_id="run", retry=ONCE).stop()
    assert gp.agents.serve(store, working, once=True, observer=[events.append]) == {"failed": 1}
    assert [(one.kind, one.run, one.facts.get("text")) for one in events if one.kind == "failure"] == [
        ("failure", "run", "not today")
    ]
    with pytest.raises(AgentsFailedError):
        gp.agents.resume(store, "run", working, retry_failed=True)
