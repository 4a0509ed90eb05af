"""All stores: runs, commits, answers, arguments and numbers of transactions."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, FencedError, StoreError
from gpu_pregel.host.stores.blobs import PART
from gpu_pregel.host.stores.store import Store
from tests.stores import Open, begin, contents, run_to

# A run


def test_create_writes_a_row_and_a_base(store: Store, opened: Open) -> None:
    before = time.time()
    claim = begin(store, meta=b"meta", schema=3)
    assert (claim.run_id, claim.epoch, claim.owner) == ("run", 1, "first")
    for seen in (store, opened()):
        row = seen.run("run")
        assert row == seen.runs()[0]
        assert row[:7] == ("run", "agents", 0, None, -1, 1, "first")
        assert (row.status, row.schema, row.meta) == ("running", 3, b"meta")
        assert row.lease == pytest.approx(row.created + 60)
        assert row.created == pytest.approx(before, abs=60)
        assert seen.history("run") == []
        saved = seen.load("run")
        assert (saved.step, saved.base_step, saved.blobs, saved.answers) == (-1, -1, (), [])
        assert contents(saved) == [b"base", [], []]


def test_commits_are_read_back_in_order(store: Store, opened: Open) -> None:
    claim = begin(store)
    store.commit(claim, 0, b"zero", [b"a", b"b"])
    store.flush(claim, 1, [b"c"])
    store.flush(claim, 1, [b"d", b"e"])
    store.commit(claim, 1, b"one", [b"f"])
    store.commit(claim, 2, b"two", [], status="completed")
    everything = [(0, b"zero", [b"a", b"b"]), (1, b"one", [b"c", b"d", b"e", b"f"]), (2, b"two", [])]
    for seen in (store, opened()):
        assert contents(seen.load("run")) == [b"base", everything, []]
        assert contents(seen.load("run", 1)) == [b"base", everything[:2], []]
        assert contents(seen.load("run", -1)) == [b"base", [], []]
        assert seen.run("run").head == 2
        assert seen.run("run").status == "completed"
        history = seen.history("run")
        assert [(row.step, row.after, row.epoch, row.status) for row in history] == [
            (0, -1, 1, "running"),
            (1, 0, 1, "running"),
            (2, 1, 1, "completed"),
        ]
        assert [(row.segments, row.base) for row in history] == [(2, False), (4, False), (0, False)]
        assert [row.size for row in history] == [6, 7, 3]
        assert [row.time for row in history] == sorted(row.time for row in history)


def test_load_returns_the_held_superstep_with_its_answers(store: Store, opened: Open) -> None:
    claim = begin(store)
    run_to(store, claim, 0, 3)
    store.flush(claim, 3, [b"x", b"y"])
    store.flush(claim, 3, [], status="interrupted")
    opened().answer("run", 3, b"vertex b", 0, b"yes")
    opened().answer("run", 3, b"vertex a", 1, b"no")
    opened().answer("run", 3, b"vertex a", 0, b"")
    saved = opened().load("run")
    assert (saved.step, saved.run.status, list(saved.held())) == (2, "interrupted", [b"x", b"y"])
    given = [(b"vertex a", 0, b""), (b"vertex a", 1, b"no"), (b"vertex b", 0, b"yes")]
    assert [answer[:3] for answer in saved.answers] == given
    assert [answer[:3] for answer in store.answers("run", 3)] == given
    assert store.answers("run", 2) == []
    # A requested superstep is returned without the held one after it.
    assert list(store.load("run", 2).held()) == []
    # Answers do not invalidate the claim.
    store.commit(claim, 3, b"three", [b"z"])
    assert [list(commit.segments()) for commit in store.load("run").commits()][-1] == [b"x", b"y", b"z"]
    assert store.load("run").answers == []
    # The latest answer to a vertex remains.
    store.answer("run", 4, b"vertex a", 0, b"perhaps")
    for vertex, expected in ((b"vertex a", b"perhaps"), (b"vertex b", b"yes")):
        last = opened().last_answer("run", vertex)
        assert last is not None
        assert (last.vertex, last.data) == (vertex, expected)
    assert store.last_answer("run", b"vertex") is None


def test_only_a_held_superstep_is_answered_and_once(store: Store) -> None:
    claim = begin(store)
    run_to(store, claim, 0, 2)
    store.answer("run", 2, b"v", 0, b"yes")
    with pytest.raises(ArgumentError, match=r"interrupt 0 of vertex b'v' of run 'run' already has an answer"):
        store.answer("run", 2, b"v", 0, b"no")
    for step in (1, 3):
        with pytest.raises(ArgumentError, match=rf"superstep {step} of run 'run' is not held: its head is 1"):
            store.answer("run", step, b"v", 1, b"no")
    with pytest.raises(ArgumentError, match="no run 'other'"):
        store.answer("other", 0, b"v", 0, b"no")
    assert [answer.data for answer in store.answers("run", 2)] == [b"yes"]


def test_answer_during_the_commit_is_refused(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    claim = begin(store)
    table = store._reader.table
    find = table.find

    def find_and_commit(run_id: str) -> Any:
        row = find(run_id)
        if row.head == -1:
            store.commit(claim, 0, b"zero")
        return row

    monkeypatch.setattr(table, "find", find_and_commit)
    with pytest.raises(ArgumentError, match="superstep 0 of run 'run' is not held: its head is 0"):
        store.answer("run", 0, b"v", 0, b"yes")
    assert store.answers("run", 0) == []


def test_long_chains_many_segments_and_all_bytes(store: Store) -> None:
    claim = begin(store)
    every = bytes(range(256))
    for step in range(130):
        store.commit(claim, step, every * (step % 3), [every + bytes((step,))] * (step % 20))
    for step, commit in enumerate(store.load("run").commits()):
        assert commit.step == step
        assert commit.data == every * (step % 3)
        assert list(commit.segments()) == [every + bytes((step,))] * (step % 20)
    assert step == 129
    assert len(store.history("run")) == 130


def test_supersteps_can_be_skipped_with_after(store: Store) -> None:
    claim = begin(store)
    store.commit(claim, 9, b"nine", after=-1)
    store.commit(claim, 19, b"nineteen", after=9, base=b"state 19")
    store.commit(claim, 29, b"twenty-nine", after=19)
    with pytest.raises(FencedError, match="has superstep 29 as its head, not 19"):
        store.commit(claim, 39, b"", after=19)
    assert [(row.step, row.after) for row in store.history("run")] == [(9, -1), (19, 9), (29, 19)]
    assert contents(store.load("run")) == [b"state 19", [(29, b"twenty-nine", [])], []]
    with pytest.raises(ArgumentError, match="superstep 15 of run 'run' was not committed on its own"):
        store.load("run", 15)
    store.flush(claim, 30, [b"held"])
    with pytest.raises(ArgumentError, match="superstep 30 of run 'run' has segments: commit it first"):
        store.commit(claim, 39, b"", after=29)


def test_buffers_and_arrays_are_stored(store: Store) -> None:
    arrays: dict[str, np.ndarray[Any, Any]] = {
        "rank": np.arange(5, dtype=np.float32),
        "none": np.zeros(0),
        "grid": np.eye(3),
    }
    large = np.arange(PART // 8 + 1)
    claim = store.create("n", "numeric", memoryview(b"header"), owner="o", blobs=arrays, durability="process")
    store.commit(claim, 0, bytearray(b"c"), [np.arange(3, dtype=np.uint8)], base=b"", blobs={"large": large})
    saved = store.load("n", -1)
    assert saved.base() == b"header"
    assert saved.blobs == ("rank", "none", "grid")
    for name, array in arrays.items():
        assert saved.blob(name) == array.tobytes()
    saved = store.load("n")
    assert (saved.base(), saved.blobs) == (b"", ("large",))
    assert np.array_equal(np.frombuffer(saved.blob("large"), large.dtype), large)
    with pytest.raises(KeyError):
        saved.blob("rank")
    assert store.run("n").kind == "numeric"


# Arguments


@pytest.mark.parametrize("name", ["", "a\0b", "a\nb", "x" * 201, "\ud800"])
def test_run_ids_must_be_short_and_printable(store: Store, name: str) -> None:
    with pytest.raises(ArgumentError, match="run_id must have from 1 to 200 printable characters"):
        begin(store, name)
    with pytest.raises(ArgumentError, match="no run"):
        store.load(name)


@pytest.mark.parametrize("name", ["é", "漢字 🚀", "a'b\";--", "%s ? {} @runs", "x" * 200])
def test_any_printable_run_id_is_accepted(store: Store, name: str) -> None:
    claim = begin(store, name, owner=name, status=name)
    store.commit(claim, 0, b"", [b"s"], status=name, base=b"", blobs={name: b"array"})
    assert (store.run(name).owner, store.history(name)[0].status) == (name, name)
    assert store.load(name).blob(name) == b"array"


def test_invalid_arguments_write_nothing(store: Store) -> None:
    claim = begin(store)
    wrong: list[tuple[Callable[[], Any], type[Exception], str]] = [
        (lambda: begin(store, 3), ArgumentTypeError, "run_id must be a string, not 3"),  # type: ignore[arg-type]
        (
            lambda: store.create("a", "else", b"", owner="o"),
            ArgumentError,
            "kind must be 'agents', 'numeric' or 'mixed'",
        ),
        (lambda: begin(store, "a", durability="disk"), ArgumentError, "durability must be 'machine' or 'process'"),
        (
            lambda: begin(store, "a", lease_seconds=0),
            ArgumentError,
            "lease_seconds must be a finite number of seconds above 0",
        ),
        (
            lambda: begin(store, "a", lease_seconds=10**9),
            ArgumentError,
            "lease_seconds must be below 1,000,000 seconds",
        ),
        (lambda: store.renew(claim, 1e300), ArgumentError, "lease_seconds must be below 1,000,000 seconds, not 1e"),
        (lambda: begin(store, "a", lease_seconds="1"), ArgumentTypeError, "lease_seconds must be a number, not '1'"),
        (lambda: begin(store, "a", meta="text"), ArgumentTypeError, "meta must be bytes or a contiguous buffer"),
        (lambda: begin(store, "a", blobs={"x": None}), ArgumentTypeError, "blob 'x' must be bytes"),
        (lambda: begin(store, "a", blobs={"": b""}), ArgumentError, "the name of a blob must have"),
        (lambda: store.commit(claim, 0, "text"), ArgumentTypeError, "commit must be bytes"),
        (lambda: store.commit(claim, 0, b"", b"one"), ArgumentTypeError, "segments must be a list of bytes"),
        (lambda: store.commit(claim, 0, b"", [3]), ArgumentTypeError, "a segment must be bytes"),
        (lambda: store.commit(claim, 0, np.zeros((3, 3))[:, 0]), ArgumentTypeError, "contiguous buffer"),
        (lambda: store.commit(claim, 0, b"", blobs={"x": b""}), ArgumentError, "stored with a base: pass base="),
        (lambda: store.commit(claim, -1, b""), ArgumentError, "step must be at least 0, not -1"),
        (lambda: store.commit(claim, 1 << 63, b""), ArgumentError, "step must be from"),
        (lambda: store.commit(claim, 5, b"", after=5), ArgumentError, "step must be at least 6, not 5"),
        (lambda: store.commit(claim, 0, b"", status=""), ArgumentError, "status must have"),
        (lambda: store.flush(claim, True, []), ArgumentTypeError, "step must be a whole number"),
        (lambda: store.load("run", -2), ArgumentError, "step must be at least -1, not -2"),
    ]
    for attempt, error, problem in wrong:
        with pytest.raises(error, match=problem):
            attempt()
    assert [row.id for row in store.runs()] == ["run"]
    assert store.run("run").head == -1


# Counting


def test_each_call_is_one_transaction(store: Store) -> None:
    store.counts.transactions = store.counts.forced = 0
    claim = begin(store, durability="machine")
    assert (store.counts.transactions, store.counts.forced) == (1, 1)
    calls: list[Callable[[], Any]] = [
        lambda: store.commit(claim, 0, b"commit", [b"a", b"b"], base=b"base", blobs={"x": b"y"}),
        lambda: store.flush(claim, 1, [b"a", b"b"], "failed"),
        lambda: store.answer("run", 1, b"v", 0, b""),
        lambda: store.renew(claim),
        lambda: store.put_base(claim, 0, b"base", prune=True),
        lambda: store.fork("run", 0, "fork", b"base"),
        lambda: store.prune("run", keep=1),
        lambda: store.release(claim, "stopped"),
        lambda: store.claim("run", owner="next", durability="process"),
        lambda: store.delete("fork"),
    ]
    for number, call in enumerate(calls, 2):
        call()
        assert store.counts.transactions == number
    assert store.counts.forced == len(calls)
    later = store.claim("run", owner="next", durability="process", takeover=True)
    store.commit(later, 1, b"")
    assert store.counts.forced == len(calls)


def test_what_nobody_relies_on_is_not_forced(store: Store) -> None:
    store.counts.transactions = store.counts.forced = 0
    claim = store.create("run", "agents", b"base", owner="me", durability="machine", forced=False)
    assert (store.counts.transactions, store.counts.forced) == (1, 0)
    store.commit(claim, 0, b"commit")
    assert (store.counts.transactions, store.counts.forced) == (2, 1)
    store.release(claim)
    assert (store.counts.transactions, store.counts.forced) == (3, 1)
    assert store.run("run").lease == 0


# Model-based test


@given(data=st.data())
@settings(max_examples=25)
def test_store_behaves_like_a_list(data: st.DataObject) -> None:
    """Apply random calls to a store in memory and to a list."""
    store = gp.MemoryStore()
    claim = begin(store)
    done: list[list[bytes]] = []
    held: list[bytes] = []
    blobs = st.lists(st.binary(max_size=8), max_size=3)
    for _ in range(data.draw(st.integers(1, 12))):
        action = data.draw(st.sampled_from(["commit", "flush", "base", "claim", "load", "stale"]))
        if action == "commit":
            pieces = data.draw(blobs)
            store.commit(claim, len(done), b"", pieces)
            done.append(held + pieces)
            held = []
        elif action == "flush":
            pieces = data.draw(blobs)
            store.flush(claim, len(done), pieces)
            held = held + pieces
        elif action == "base":
            step = data.draw(st.integers(-1, len(done) - 1))
            store.put_base(claim, step, b"base")
        elif action == "claim":
            claim = store.claim("run", owner="x", takeover=True)
        elif action == "stale":
            with pytest.raises(FencedError):
                store.commit(claim, len(done) + 1, b"")
        saved = store.load("run")
        segments = [list(commit.segments()) for commit in saved.commits()]
        assert segments == done[saved.base_step + 1 :]
        assert list(saved.held()) == held
    store.close()


def test_a_store_is_closed_between_the_calls_of_other_threads(opened: Open) -> None:
    store, reads = opened(), 0
    begin(store)

    def read() -> None:
        nonlocal reads
        with suppress(StoreError):
            while store.runs():
                reads += 1

    thread = threading.Thread(target=read)
    thread.start()
    while not reads:
        time.sleep(0.001)
    store.close()
    thread.join(60)
    assert not thread.is_alive()
    with pytest.raises(StoreError, match="is closed"):
        store.runs()


# Unfinished runs


def test_unfinished_runs(store: Store) -> None:
    """Those that have not ended, or were asked to continue, the one that changed first at first."""
    statuses = ["running", "stopped", "waiting", "failed", "interrupted", "completed", "partial"]
    ended = ["halted", "max_supersteps", "cancelled"]
    for status in (*statuses, *ended):
        store.commit(begin(store, status), 0, b"commit", status=status)
    store.create("numeric", "numeric", b"", owner="me")
    assert [run.id for run in store.unfinished("agents")] == statuses[:5]
    assert [run.id for run in store.unfinished("numeric")] == ["numeric"]
    for status in (*statuses[5:], *ended):
        store.requests.add(status, b"please")
    assert [run.id for run in store.unfinished("agents")] == statuses
    with pytest.raises(ArgumentError, match="kind must be 'agents', 'numeric' or 'mixed', not 'agent'"):
        store.unfinished("agent")


def test_what_is_known_of_an_unfinished_run(store: Store) -> None:
    claim = begin(store, lease_seconds=60.0)
    store.commit(claim, 0, b"commit", status="completed")
    assert store.unfinished("agents") == []
    store.flush(claim, 1, [b"one", b"two"])
    (run,) = store.unfinished("agents")
    assert (run.id, run.status, run.head, run.epoch, run.owner) == ("run", "completed", 0, 1, "first")
    assert (run.pending, run.answers, run.last_request, run.is_claimed) == (2, 0, None, True)
    store.answer("run", 1, b"a", 0, b"yes")
    store.answer("run", 1, b"b", 0, b"no")
    number = store.requests.add("run", b"please")
    store.release(claim)
    (run,) = store.unfinished("agents")
    assert (run.answers, run.last_request, run.is_claimed, run.lease) == (2, number, False, 0)
    claim = store.claim("run", owner="second")
    store.commit(claim, 1, b"commit", status="failed")
    store.renew(claim, 1e-6)
    time.sleep(1e-3)
    (run,) = store.unfinished("agents")
    assert (run.status, run.head, run.epoch, run.owner, run.pending) == ("failed", 1, 2, "second", 0)
    assert (run.answers, run.is_claimed, run.lease > 0) == (0, False, True)
