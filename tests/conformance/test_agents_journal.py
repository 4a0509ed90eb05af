"""Agent runs in all stores: what is written, in how many transactions, and when."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import Mock

import pytest

import gpu_pregel as gp
from gpu_pregel.agents import RetryPolicy, Vertex
from gpu_pregel.errors import AgentError, AgentsFailedError, StoreError
from gpu_pregel.host.agents import formats
from gpu_pregel.host.agents.codec import decode, encode
from gpu_pregel.host.agents.formats import SavedSuperstep, Segment
from gpu_pregel.host.agents.parts import FailedAttempts
from gpu_pregel.host.agents.workers import transport
from gpu_pregel.host.stores.store import Store
from gpu_pregel.host.superstep import journal
from tests.agents import FEW, ONCE
from tests.conformance.agent_programs import COUNTING
from tests.stores import Open


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat supersteps in this process as quick, however slow the machine is."""
    monkeypatch.setattr(transport, "SLICE_SECONDS", 600)
    monkeypatch.setattr(journal, "FLUSH_AFTER", 600)


@pytest.mark.usefixtures("quick")
def test_a_quick_superstep_is_one_forced_transaction(store: Store) -> None:
    with gp.agents.start([Vertex(k, 0) for k in range(100)], **COUNTING, store=store, run_id="run") as agents:
        for _ in range(8):
            before = store.counts.transactions, store.counts.forced
            agents.step()
            assert (store.counts.transactions, store.counts.forced) == (before[0] + 1, before[1] + 1)


@pytest.mark.usefixtures("quick")
def test_durability_decides_whether_a_quick_superstep_is_forced(store: Store) -> None:
    options = {**COUNTING, "durability": "process", "store": store}
    with gp.agents.start([Vertex(1, 0)], run_id="run", **options) as agents:
        while agents.step():
            pass
    assert (store.counts.transactions, store.counts.forced) == (12, 0)  # create, 10 commits, release


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("count", "value", "rows"), [(1, 0, 0), (16, 0, 0), (17, 0, 1), (1, "x" * 4000, 1)])
def test_a_small_last_segment_is_stored_inside_its_commit(opened: Open, count: int, value: Any, rows: int) -> None:
    def compute(ctx: Any) -> None:
        ctx.value *= 2
        ctx.send((ctx.vertex_id + 1) % count, ctx.value) if ctx.superstep < 2 else ctx.vote_to_halt()

    vertices = [Vertex(k, value or k) for k in range(count)]
    result = gp.agents.run(vertices, compute, store=opened(), run_id="run")
    commits = list(opened().load("run").commits())
    assert [len(list(commit.segments())) for commit in commits] == [rows] * 3
    for commit in commits:
        segments = SavedSuperstep.unpack(commit.step, commit.segments(), commit.data).segments
        assert [len(segment.records) for segment in segments] == [count]
    assert gp.agents.state_at(opened(), "run").values == result.values == {k: (value or k) * 8 for k in range(count)}
    gp.agents.fork(opened(), "run", 1, "fork")
    assert gp.agents.resume(opened(), "fork", compute).values == result.values


def test_segments_are_divided_and_a_record_too_large_for_one_is_named(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compute(ctx: Any) -> None:
        ctx.value = "x" * (200 if ctx.superstep == 0 else 2000 if ctx.vertex_id == 7 else 1)

    monkeypatch.setattr(formats, "_MAX_SEGMENT", 1000)
    monkeypatch.setattr(formats, "MAX_BLOB", 1500)
    with gp.agents.start([Vertex(k) for k in range(20)], compute, store=opened(), run_id="run") as agents:
        agents.step()
        segments = [Segment.unpack(one) for commit in opened().load("run").commits() for one in commit.segments()]
        assert sorted(decode(vertex) for segment in segments for vertex, _ in segment.records) == list(range(20))
        assert 4 < len(segments) <= 20
        with pytest.raises(
            AgentError, match=r"the record or message of vertex 7 takes 2,\d\d\d bytes, and a store holds"
        ):
            agents.step()
    monkeypatch.undo()
    assert gp.agents.resume(opened(), "run", compute, max_supersteps=2, on_limit="return").values == {
        k: "x" * (2000 if k == 7 else 1) for k in range(20)
    }


def test_a_record_that_is_too_large_is_named_among_other_events(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    def compute(ctx: Any) -> None:
        if ctx.vertex_id == "large":
            ctx.value = "x" * 4000
        else:
            raise OSError("x" * 300)

    monkeypatch.setattr(formats, "_MAX_SEGMENT", 1000)
    monkeypatch.setattr(formats, "MAX_BLOB", 3000)
    options: dict[str, Any] = {"retry": ONCE, "store": opened()}
    with (
        gp.agents.start([Vertex("large"), Vertex("fails")], compute, run_id="large", **options) as agents,
        pytest.raises(AgentError, match=r"the record or message of vertex 'large' takes 4,\d\d\d bytes"),
    ):
        agents.step()
    names = [f"fails {k}" for k in range(20)]
    with pytest.raises(AgentsFailedError):
        gp.agents.run([Vertex(name) for name in names], compute, run_id="many", **options)
    assert len(list(opened().load("many").held())) > 5
    assert sorted(gp.agents.state_at(opened(), "many").failed) == sorted(names)


@FEW
def test_records_are_flushed_during_a_superstep(opened: Open, workers: int, tmp_path: Path) -> None:
    """Each vertex waits until those that its process has computed before are on record."""
    computed, on_record = tmp_path / "computed", tmp_path / "on record"
    computed.mkdir()
    on_record.mkdir()

    def compute(ctx: Any) -> None:
        if ctx.superstep:
            mine = {one.name.split(".")[1] for one in computed.glob(f"{os.getpid()}.*")}
            until = time.monotonic() + 200
            while not mine <= set(os.listdir(on_record)):
                assert time.monotonic() < until, "their records are not written"
                time.sleep(0.001)
            (computed / f"{os.getpid()}.{ctx.vertex_id}").touch()
            time.sleep(0.006)  # longer than a slice of a superstep in process
            ctx.vote_to_halt()

    count, store = 12, opened()
    options: dict[str, Any] = {"workers": workers, "store": store, "retry": ONCE}
    with gp.agents.start([Vertex(k) for k in range(count)], compute, **options) as agents:
        agents.step()
        flush = store.flush

        def watched(claim: Any, step: int, segments: Any, status: Any = None, **options: Any) -> None:
            flush(claim, step, segments, status, **options)
            for segment in map(Segment.unpack, segments):
                for vertex, _ in segment.records:
                    (on_record / str(decode(vertex))).touch()

        store.flush = watched  # type: ignore[method-assign]
        agents.step()
        del store.flush
        assert agents.status == "completed"
    assert len(list(computed.iterdir())) == count


def test_a_failed_attempt_is_on_record_before_the_next_one(opened: Open) -> None:
    store = opened()

    def compute(ctx: Any) -> None:
        if ctx.vertex_id == "fails" and ctx.attempt < 3:
            raise ValueError
        if ctx.attempt > 1:
            others = [other for piece in opened().load("run").held() for other in Segment.unpack(piece).others]
            failed = [(other.vertex, other.attempts) for other in others if isinstance(other, FailedAttempts)]
            assert (encode("fails"), ctx.attempt - 1) in failed
        ctx.vote_to_halt()

    retry = RetryPolicy(attempts=3, wait=0)
    result = gp.agents.run([Vertex("fails"), Vertex("b")], compute, retry=retry, store=store, run_id="run")
    assert result.status == "completed"


def test_an_answer_is_durable_before_the_vertex_runs(opened: Open) -> None:
    def compute(ctx: Any) -> None:
        answer = ctx.interrupt()
        found = opened().answers("run", 0)
        assert [(decode(one.vertex), one.number, decode(one.data)) for one in found] == [("a", 0, answer)]
        ctx.vote_to_halt()

    options: dict[str, Any] = {"compute": compute, "retry": ONCE}
    gp.agents.run([Vertex("a")], **options, store=opened(), run_id="run")
    assert gp.agents.resume(opened(), "run", **options, answers={"a": [1, "yes"]}).status == "completed"


@pytest.mark.parametrize("base_every", [1, 50])
def test_a_superstep_folded_again_after_a_failed_commit_is_committed_as_it_became(
    store: Store, base_every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message that was durable, and what master compute decided, are those of the second attempt."""

    def compute(ctx: Any) -> None:
        ctx.value = list(ctx.messages)
        ctx.vote_to_halt()

    def master(ctx: Any) -> None:
        folds.append(ctx.superstep)
        ctx.use(f"fold {len(folds)}")

    folds: list[int] = []
    functions = {f"fold {k}": compute for k in range(9)}
    options: dict[str, Any] = {
        "functions": {"compute": compute, **functions},
        "master": master,
        "base_every": base_every,
    }
    with gp.agents.start([Vertex("a")], **options, store=store, run_id="run") as agents:
        with monkeypatch.context() as patch:
            patch.setattr(store, "commit", Mock(side_effect=StoreError(store.name, "is full")))
            with pytest.raises(StoreError, match="is full"):
                agents.step()
        agents.send("a", "hello")
        agents.step()
        expected = agents.checkpoint_data()
    with gp.agents.reopen(store, "run", **options) as agents:
        assert agents.checkpoint_data() == expected
        while agents.step():
            pass
        assert agents.result().values == {"a": ["hello"]}


WRITING = {"flush", "commit", "_clear", "_committed"}


class Interruption:
    """Raises KeyboardInterrupt before a line of the journal's functions that write, counted as they are executed."""

    def __init__(self, line: int) -> None:
        self.left = line

    def __enter__(self) -> None:
        self.before = sys.gettrace()
        sys.settrace(self.enter)

    def __exit__(self, *_: object) -> None:
        sys.settrace(self.before)

    def enter(self, frame: FrameType, event: str, argument: object) -> Any:
        code = frame.f_code
        return self.count if code.co_filename == journal.__file__ and code.co_name in WRITING else None

    def count(self, frame: FrameType, event: str, argument: object) -> Any:
        self.left -= event == "line"
        if self.left == 0:
            self.left = -1
            raise KeyboardInterrupt
        return self.count


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("base_every", [1, 50])
def test_an_interrupt_while_the_journal_writes_loses_nothing(base_every: int) -> None:
    """No thread writes: interrupts before a lock is released, which signals do not cause, would block it forever."""

    def compute(ctx: Any) -> None:
        ctx.value += len(ctx.messages) + 1
        ctx.send_to_neighbors(1) if ctx.superstep < 2 else ctx.vote_to_halt()

    options: dict[str, Any] = {"compute": compute, "base_every": base_every}
    for line in range(1, 1000):
        with gp.MemoryStore() as store:
            interruption = Interruption(line)
            with gp.agents.start(
                [Vertex(0, 0, [1]), Vertex(1, 0, [0])], store=store, run_id="run", **options
            ) as agents:
                with interruption, suppress(KeyboardInterrupt):
                    while agents.step():
                        pass
                while agents.step():
                    pass
                expected = agents.result()
            assert expected.values == {0: 5, 1: 5}
            assert encode(gp.agents.state_at(store, "run").values) == encode(expected.values), line
            assert [commit.step for commit in store.history("run")] == [0, 1, 2]
        if interruption.left > 0:
            return
    pytest.fail("the run does not end")
