"""``gp.agents.serve``: which runs it continues, with which options, and which arguments it takes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.agents import Event, Vertex
from gpu_pregel.errors import ArgumentError, ArgumentTypeError
from gpu_pregel.host.agents import run_finder
from gpu_pregel.host.stores.store import Store
from tests.conformance.serving_programs import (
    answered,
    asking,
    asking_and_crashed,
    cancelled,
    cancelled_without_owner,
    claimed,
    completed,
    crashed,
    due,
    failed,
    forked,
    limited,
    retried,
    retried_by_id,
    sent_to,
    sent_to_and_crashed,
    stopped,
    waiting,
    waiting_and_crashed,
    waiting_with_message,
    working,
)


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
        (asking_and_crashed, "interrupted", "asks"),
        (waiting_and_crashed, "waiting", "slept"),
        (answered, "completed", 42),
        (failed, None, "fails"),
        (retried, "failed", "fails"),
        (retried_by_id, "failed", "fails"),
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


@pytest.mark.parametrize("when", ["before", "while"])
def test_a_run_that_is_cancelled_before_it_is_claimed_stays_so(
    store: Store, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped(store, "run")
    listed, listing, claim = store.unfinished("agents"), store.unfinished, store.claim
    if when == "before":
        gp.agents.cancel(store, "run")

    def claim_late(run_id: str, **options: Any) -> Any:
        monkeypatch.setattr(store, "claim", claim)
        gp.agents.cancel(store, "run")
        return claim(run_id, **options)

    monkeypatch.setattr(store, "unfinished", lambda kind: [listed.pop()] if listed else listing(kind))
    monkeypatch.setattr(store, "claim", claim_late)
    assert gp.agents.serve(store, working, once=True) == {}
    row = store.run("run")
    assert (row.status, row.head, row.lease, listed) == ("cancelled", -1, 0, [])
    assert row.epoch == {"before": 2, "while": 3}[when]


def test_a_run_that_its_owner_completes_before_it_is_claimed_is_not_taken_up(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    agents = gp.agents.start([Vertex("a", "counts")], working, store=store, run_id="run")
    unfinished = store.unfinished

    def list_and_complete(kind: str) -> Any:
        listed = unfinished(kind)
        with agents:
            while agents.step():
                pass
        return listed

    monkeypatch.setattr(store, "unfinished", list_and_complete)
    monkeypatch.setattr(run_finder, "is_gone", lambda owner: True)
    assert gp.agents.serve(store, working, once=True) == {}
    assert store.run("run").epoch == 1


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
        f"was started with {working.__module__}:working, not {__name__}:other: it is left alone"
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
