"""``gp.agents.serve``: which runs it continues, how often, and how it ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.agents import Event, Vertex
from gpu_pregel.errors import AgentsFailedError, ArgumentError, ArgumentTypeError, StoreError
from gpu_pregel.host.agents import run_finder
from gpu_pregel.host.agents.run_finder import RunFinder
from gpu_pregel.host.stores.store import Store
from tests.agents import ONCE
from tests.stores import Open

LATER = 1e11
"""A time that does not come."""
LIMIT = 60
"""Seconds that a thread of these tests may take."""


def working(ctx: Any) -> None:
    """Do what the value says."""
    doing = ctx.value if isinstance(ctx.value, str) else ""
    if ctx.messages:
        ctx.value = ctx.messages
    elif doing == "asks":
        ctx.value = ctx.interrupt("how much?")
    elif doing == "fails":
        raise ValueError("not today")
    elif doing.startswith("sleeps"):
        ctx.wake_at(LATER if doing == "sleeps long" else 1.0)
        ctx.value = "slept"
    elif ctx.superstep < 2 and doing == "counts":
        return
    ctx.vote_to_halt()


def begin(store: Store, run_id: str, value: str, **options: Any) -> None:
    """Run until the run ends or is held."""
    options = {"on_waiting": "return", "retry": ONCE, **options}
    with gp.agents.start([Vertex("a", value)], working, store=store, run_id=run_id, **options) as agents:
        while agents.step():
            pass


def stopped(store: Store, run_id: str) -> None:
    gp.agents.start([Vertex("a", "counts")], working, store=store, run_id=run_id).stop()


def crashed(store: Store, run_id: str) -> None:
    """Its owner has ended without releasing its claim, which has expired."""
    with gp.agents.start([Vertex("a", "counts")], working, store=store, run_id=run_id) as agents:
        agents.step()
    claim = store.claim(run_id, owner="somebody")
    store.flush(claim, 1, [], "running")
    store.renew(claim, 1e-6)
    time.sleep(1e-3)


def forked(store: Store, run_id: str) -> None:
    stopped(store, "parent")
    gp.agents.fork(store, "parent", -1, run_id)
    store.delete("parent")


def due(store: Store, run_id: str) -> None:
    """It waits for a timer that the last owner has not seen end."""
    options: dict[str, Any] = {"on_waiting": "return", "store": store, "run_id": run_id}
    agents = gp.agents.start([Vertex("a", "sleeps")], working, **options)
    agents.step()
    agents.__exit__()


def waiting(store: Store, run_id: str) -> None:
    begin(store, run_id, "sleeps long")


def waiting_with_message(store: Store, run_id: str) -> None:
    waiting(store, run_id)
    gp.agents.send(store, run_id, "a", 5)


def asking(store: Store, run_id: str) -> None:
    begin(store, run_id, "asks")


def answered(store: Store, run_id: str) -> None:
    asking(store, run_id)
    gp.agents.answer(store, run_id, "a", 42)


def failed(store: Store, run_id: str) -> None:
    begin(store, run_id, "fails")


def retried(store: Store, run_id: str) -> None:
    """Its program was stopped between ``retry`` and ``step``."""
    failed(store, run_id)
    with gp.agents.reopen(store, run_id, working) as agents:
        agents.retry()


def completed(store: Store, run_id: str) -> None:
    begin(store, run_id, "")


def sent_to(store: Store, run_id: str) -> None:
    completed(store, run_id)
    gp.agents.send(store, run_id, "a", 5)


def sent_to_and_crashed(store: Store, run_id: str) -> None:
    """Its owner has taken the message up, but not computed its superstep."""
    sent_to(store, run_id)
    with gp.agents.reopen(store, run_id, working) as agents:
        agents._take_requests()
    assert (store.run(run_id).status, store.requests.list(run_id)) == ("completed", [])


def cancelled(store: Store, run_id: str) -> None:
    asking(store, run_id)
    gp.agents.send(store, run_id, "a", 5)
    gp.agents.cancel(store, run_id)


def cancelled_without_owner(store: Store, run_id: str) -> None:
    """The owner of a run on another machine ends before it has seen the request."""
    stopped(store, run_id)
    claim = store.claim(run_id, owner="somebody")
    assert gp.agents.cancel(store, run_id) is True
    store.renew(claim, 1e-6)
    time.sleep(1e-3)


def limited(store: Store, run_id: str) -> None:
    begin(store, run_id, "counts", max_supersteps=1, on_limit="return")


def claimed(store: Store, run_id: str) -> None:
    stopped(store, run_id)
    store.claim(run_id, owner="somebody")


@pytest.mark.parametrize(
    ("prepare", "status", "value"),
    [
        (stopped, "completed", "counts"),
        (crashed, "completed", "counts"),
        (forked, "completed", "counts"),
        (due, "completed", "slept"),
        (waiting, None, "slept"),
        (waiting_with_message, "waiting", [5]),
        (asking, None, "asks"),
        (answered, "completed", 42),
        (failed, None, "fails"),
        (retried, "failed", "fails"),
        (completed, None, ""),
        (sent_to, "completed", [5]),
        (sent_to_and_crashed, "completed", [5]),
        (cancelled, None, "asks"),
        (cancelled_without_owner, "cancelled", "counts"),
        (limited, None, "counts"),
        (claimed, None, "counts"),
    ],
)
def test_which_runs_are_continued(
    store: Store, prepare: Callable[[Store, str], None], status: str | None, value: Any
) -> None:
    prepare(store, "run")
    before = store.run("run")
    left = gp.agents.serve(store, working, once=True)
    assert left == ({} if status is None else {status: 1})
    row = store.run("run")
    if status is None:
        assert row == before
    else:
        assert (row.status, row.lease, row.epoch) == (status, 0, before.epoch + 1)
    assert gp.agents.state_at(store, "run").values == {"a": value}
    assert gp.agents.serve(store, working, once=True) == {}


def test_a_held_run_is_read_once_until_it_changes(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    reads, load, stop = [], store.load, threading.Event()
    searches, listing = 0, store.unfinished
    asking(store, "asks")

    def note(run_id: str, *rest: Any) -> Any:
        reads.append(run_id)
        return load(run_id, *rest)

    def count(*_: Any) -> Any:
        nonlocal searches
        searches += 1
        if searches == 4:
            stop.set()
        return listing("agents")

    monkeypatch.setattr(store, "load", note)
    monkeypatch.setattr(store, "unfinished", count)
    assert gp.agents.serve(store, working, interval=0.01, stop=stop) == {}
    assert (searches, reads) == (4, ["asks"])


def test_a_run_that_is_cancelled_before_it_is_claimed_stays_so(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped(store, "run")
    listed, listing = store.unfinished("agents"), store.unfinished
    gp.agents.cancel(store, "run")
    monkeypatch.setattr(store, "unfinished", lambda kind: [listed.pop()] if listed else listing(kind))
    assert gp.agents.serve(store, working, once=True) == {}
    assert (store.run("run").status, store.run("run").head, listed) == ("cancelled", -1, [])


def test_only_runs_that_match(store: Store) -> None:
    for name in ("orders-1", "orders-2", "chat", "[x]*"):
        stopped(store, name)
    for pattern, count in [("orders-?", 2), ("none", 0), ("[x]*", 1), ("*", 1)]:
        assert gp.agents.serve(store, working, run=pattern, once=True) == ({"completed": count} if count else {})


# Options of the run


def test_options_are_those_of_the_run(store: Store) -> None:
    def adding(ctx: Any) -> None:
        ctx.value = [*ctx.value, list(ctx.messages), ctx.aggregated("most")]
        ctx.aggregate("most", ctx.vertex_id)
        for _ in range(2):
            ctx.send("b", 10)

    options: dict[str, Any] = {"combiner": "sum", "aggregators": {"most": "max"}}
    with gp.agents.start(
        [Vertex("a", []), Vertex("b", [])], adding, store=store, run_id="run", max_supersteps=2, **options
    ):
        pass
    assert gp.agents.serve(store, adding, once=True) == {"max_supersteps": 1}
    assert gp.agents.state_at(store, "run").values == {"a": [[], None, [], "b"], "b": [[], None, [40], "b"]}
    stopped(store, "limited")
    events: list[Event] = []
    assert gp.agents.serve(store, working, once=True, max_supersteps=1, observer=events.append) == {"max_supersteps": 1}
    asked = gp.agents.serve(store, working, once=True, combiner="sum", observer=events.append)
    assert asked == {}


def other(ctx: Any) -> None:
    ctx.value = "other"
    ctx.vote_to_halt()


def test_runs_of_other_functions_are_left_alone(store: Store) -> None:
    events: list[Event] = []
    for name in ("one", "two"):
        stopped(store, name)
    options: dict[str, Any] = {"once": True, "observer": events.append}
    assert gp.agents.serve(store, other, **options) == {}
    (event,) = events
    assert (event.kind, event.run) == ("refuse", "one")
    assert event.facts["text"].startswith(
        f"was started with {__name__}:working, not {__name__}:other: it is left alone"
    )
    assert [row.epoch for row in store.runs()] == [1, 1]
    assert gp.agents.serve(store, other, **options, override=["compute"]) == {"completed": 2}
    assert gp.agents.state_at(store, "one").values == {"a": "other"}


def test_a_fork_keeps_the_name_of_its_function(store: Store) -> None:
    stopped(store, "run")
    gp.agents.fork(store, "run", -1, "fork")
    store.delete("run")
    assert gp.agents.serve(store, other, once=True) == {}
    assert gp.agents.serve(store, working, once=True) == {"completed": 1}


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
        if event.kind == "release":
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


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"interval": 0}, "interval must be a finite number of seconds above 0"),
        ({"concurrency": 0}, "concurrency must be at least 1"),
        ({"once": 1}, "once must be True or False"),
        ({"stop": True}, "stop must be a threading.Event, not True"),
        ({"run": ""}, "run must have from 1 to 200 printable characters"),
        ({"run_id": "run"}, "serve has no parameter run_id"),
        ({"on_waiting": "wait"}, "serve has no parameter on_waiting"),
        ({"vertices": []}, "serve has no parameter vertices"),
        ({"compute": None}, "no compute function"),
        ({"override": "nothing"}, "override must be"),
        ({"store": "runs.db"}, "store must be a gp.SQLiteStore"),
    ],
)
def test_invalid_arguments_are_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises((ArgumentError, ArgumentTypeError), match=problem):
        gp.agents.serve(**{"store": gp.MemoryStore(), "compute": working, **options})


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
