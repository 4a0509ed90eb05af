"""``Timeline``: what it records of runs in every store, its limits, and that runs do not depend on it."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import gpu_pregel as gp
import gpu_pregel.agents as agents
from gpu_pregel.agents import Event, RetryPolicy, Timeline, Vertex
from gpu_pregel.errors import ArgumentTypeError, StoreError, UnknownRunError
from gpu_pregel.host.agents.observers import timeline as timelines
from gpu_pregel.host.stores.store import Store
from tests.agents import FEW, WITHOUT_WAIT
from tests.stores import Open, XorCipher, execute


def work(ctx: Any) -> None:
    ctx.emit("thinking ")
    ctx.emit("hard")
    ctx.emit({"tool": 1})
    if ctx.superstep == 1 and ctx.attempt == 1:
        raise OSError("first attempt")
    if ctx.superstep == 2:
        ctx.vote_to_halt()


def record(store: Store, **options: Any) -> Timeline:
    timeline = Timeline(store)
    agents.run([Vertex("a")], work, store=store, run_id="run", observer=timeline, retry=WITHOUT_WAIT, **options)
    return timeline


def summary(timeline: Timeline, run_id: str = "run") -> list[tuple[Any, ...]]:
    return [(one.superstep, one.kind, one.attempt) for one in timeline.read(run_id)]


ATTEMPT = ["emit", "emit", "attempt"]
EXPECTED = [
    (0, "superstep", None),
    *[(0, kind, 1) for kind in ATTEMPT],
    (0, "commit", None),
    (1, "superstep", None),
    *[(1, kind, 1) for kind in ATTEMPT],
    (1, "retry", 1),
    *[(1, kind, 2) for kind in ATTEMPT],
    (1, "commit", None),
    (2, "superstep", None),
    *[(2, kind, 1) for kind in ATTEMPT],
    (2, "commit", None),
    (2, "end", None),
]


@FEW
def test_events_are_recorded_in_order(opened: Open, workers: int) -> None:
    store = opened()
    begin = time.time()
    timeline = record(store, workers=workers)
    assert summary(timeline) == EXPECTED
    assert timeline.problem is None
    events = timeline.read("run")
    assert [one.facts["text"] for one in events if one.kind == "emit" and "text" in one.facts] == ["thinking hard"] * 4
    assert next(one.facts["payload"] for one in events if "payload" in one.facts)[:2] == ["dict", "1"]
    ends = [one for one in events if one.kind == "attempt"]
    assert [one.facts["status"] for one in ends] == ["completed", "failed", "completed", "completed"]
    for one in ends:
        assert begin - 1 < one.facts["began"] <= one.facts["began"] + one.facts["seconds"] < one.time + 1
    assert [one.vertex for one in ends] == ["a"] * 4
    assert summary(Timeline(opened())) == EXPECTED  # in another program


def test_tokens_of_state_graphs_are_texts() -> None:
    def talk(ctx: Any) -> None:
        for payload in (("messages", "to"), ("messages", "ken"), ("custom", "data"), ("messages", ["part"])):
            ctx.emit(payload)
        ctx.vote_to_halt()

    store = gp.MemoryStore()
    timeline = Timeline(store)
    agents.run([Vertex("a")], talk, store=store, run_id="run", observer=timeline)
    emitted = [one.facts for one in timeline.read("run") if one.kind == "emit"]
    assert emitted[0] == {"text": "token"}
    assert [facts["payload"][0] for facts in emitted[1:]] == ["tuple", "tuple"]


def test_asynchronous_attempts_have_times(store: Store) -> None:
    async def wait(ctx: Any) -> None:
        import asyncio

        await asyncio.sleep(0.02)
        ctx.vote_to_halt()

    timeline = Timeline(store)
    agents.run([Vertex(k) for k in range(3)], wait, store=store, run_id="run", observer=timeline)
    ends = [one.facts for one in timeline.read("run") if one.kind == "attempt"]
    assert len(ends) == 3
    assert all(facts["seconds"] >= 0.019 for facts in ends)


def test_events_go_with_their_run(store: Store) -> None:
    """They are forked, pruned and deleted with it."""
    timeline = record(store, base_every=1)
    agents.fork(store, "run", 1, "fork")
    assert summary(timeline, "fork") == [one for one in EXPECTED if one[0] < 2]
    agents.resume(store, "fork", work, observer=timeline, retry=WITHOUT_WAIT)
    assert summary(timeline, "fork") == EXPECTED
    store.events.add("run", 0, b"old", limit=1 << 20)
    store.prune("run", before=2)
    assert {row.step for row in store.events.read("run")} == {2}
    store.delete("run", force=True)
    with pytest.raises(UnknownRunError):
        timeline.read("run")
    assert store._database.query(f"SELECT COUNT(DISTINCT run) FROM {store._database.dialect.prefix}events", ()) == [
        (1,)
    ]


def test_oldest_events_are_removed(store: Store) -> None:
    agents.run([Vertex("a")], work, store=store, run_id="run", retry=WITHOUT_WAIT)
    assert list(store.events.read("run")) == []
    for step in range(33):
        store.events.add("run", step, bytes(100), limit=1000)
    steps = [row.step for row in store.events.read("run")]
    assert steps == list(range(23, 33))
    numbers = [row.number for row in store.events.read("run")]
    assert numbers == sorted(set(numbers))
    assert [row.step for row in store.events.read("run", numbers[-3])] == [31, 32]


def test_encrypted_events_need_the_cipher(opened: Open) -> None:
    store = opened(cipher=XorCipher())
    record(store)
    if isinstance(store, gp.MemoryStore):
        return
    assert not any(b"thinking" in bytes(row[0]) for row in store._database.query(
        f"SELECT data FROM {store._database.dialect.prefix}events", ()
    ))  # fmt: skip
    with pytest.raises(StoreError, match=r"recorded events [0-9]+: is encrypted"):
        Timeline(opened()).read("run")


def test_damaged_events_are_an_error_that_names_the_run(store: Store) -> None:
    timeline = record(store)
    execute(store, "UPDATE @events SET step = step + 1")
    with pytest.raises(StoreError, match=r"run 'run'.*recorded events [0-9]+: is damaged"):
        timeline.read("run")


def test_the_table_is_created_when_it_is_needed(path: Path) -> None:
    """So a database without it is one of the last release."""
    with gp.SQLiteStore(path) as store:
        agents.run([Vertex("a")], work, store=store, run_id="run", retry=WITHOUT_WAIT)
        store.prune("run", keep=1)
        assert not store.events.has_tables()
    with gp.SQLiteStore(path, read_only=True) as store:
        assert Timeline(store).read("run") == []
    with gp.SQLiteStore(path) as first, gp.SQLiteStore(path) as second:
        for store in (first, second):
            store.events.add("run", 1, b"one", limit=100)
        assert [row.data for row in second.events.read("run")] == [b"one", b"one"]
    with gp.SQLiteStore(path) as store:
        assert len(list(store.events.read("run"))) == 2
    with closing(sqlite3.connect(path)) as other:
        other.execute("ALTER TABLE events ADD COLUMN mine TEXT")
    with pytest.raises(StoreError, match="does not have the tables of a store"):
        gp.SQLiteStore(path)


def test_several_programs_add_the_first_events_at_once(opened: Open) -> None:
    stores = [opened() for _ in range(4)]
    agents.run([Vertex("a")], work, store=stores[0], run_id="run", retry=WITHOUT_WAIT)
    barrier = threading.Barrier(4)

    def add(store: Store) -> list[int]:
        barrier.wait()
        return [store.events.add("run", 0, b"events", limit=1 << 20) for _ in range(5)]

    with ThreadPoolExecutor(4) as pool:
        numbers = [number for added in pool.map(add, stores) for number in added]
    assert [row.number for row in stores[0].events.read("run")] == sorted(set(numbers))
    assert len(numbers) == 20


# A run does not depend on its timeline.


def test_a_run_goes_on_if_nothing_can_be_recorded(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise StoreError("the store", "has no space left")

    monkeypatch.setattr(store.events, "add", fail)
    with caplog.at_level("WARNING", "gpu_pregel.agents"):
        timeline = record(store)
    assert agents.state_at(store, "run").status == "completed"
    assert "has no space left" in str(timeline.problem)
    assert "run 'run' is not recorded" in caplog.text


def test_a_run_without_a_store_is_not_recorded(store: Store) -> None:
    timeline = Timeline(store)
    assert agents.run([Vertex("a")], work, observer=timeline, retry=WITHOUT_WAIT).status == "completed"
    assert "no run" in str(timeline.problem)


@pytest.mark.parametrize("given", [None, "runs.db"])
def test_a_timeline_needs_a_store(given: Any) -> None:
    with pytest.raises(ArgumentTypeError, match=r"store must be a gp\.SQLiteStore"):
        Timeline(given)


def test_many_events_are_counted_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timelines, "_LIMITS", {"attempt": 10, "emit": 5})
    monkeypatch.setattr(timelines, "_MAX_TEXT", 30)

    def talk(ctx: Any) -> None:
        ctx.emit([ctx.vertex_id])
        if ctx.vertex_id == 0:
            for _ in range(4):
                ctx.emit("ten letter")
        if ctx.vertex_id == 99:
            raise ValueError("last")
        ctx.vote_to_halt()

    store = gp.MemoryStore()
    timeline = Timeline(store)
    options: dict[str, Any] = {"retry": RetryPolicy(attempts=1), "on_failure": "continue"}
    agents.run([Vertex(k) for k in range(100)], talk, store=store, run_id="run", observer=timeline, **options)
    events = timeline.read("run")
    counts = Counter(one.kind for one in events)
    assert (counts["attempt"], counts["emit"], counts["failure"], counts["omitted"]) == (10, 5, 1, 1)
    (omitted,) = [one.facts for one in events if one.kind == "omitted"]
    assert omitted == {"attempt completed": 89, "attempt failed": 1, "emit": 96, "characters emitted": 10}
    assert [one.facts["text"] for one in events if one.kind == "emit" and "text" in one.facts] == ["ten letter" * 3]


def test_times_of_attempts_are_only_measured_for_observers_that_want_them() -> None:
    facts: list[dict[str, Any]] = []

    def plain(event: Event) -> None:
        if event.kind == "attempt":
            facts.append(event.facts)

    class Wanting:
        wants_times = True

        def __call__(self, event: Event) -> None:
            plain(event)

    agents.run([Vertex("a")], work, observer=plain, retry=WITHOUT_WAIT)
    assert not any("seconds" in one or "began" in one for one in facts)
    facts.clear()
    agents.run([Vertex(k) for k in range(1000)], lambda ctx: ctx.vote_to_halt(), observer=Wanting())
    assert len(facts) == 1000
    assert 200 <= sum("seconds" in one for one in facts) < 1000  # of quick ones the first
