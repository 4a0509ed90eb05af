"""Agent runs in all stores: past states, also of types that are no longer registered, and forks."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.agents import Vertex
from gpu_pregel.errors import AgentsFailedError, ArgumentError, ArgumentTypeError, CodecError
from gpu_pregel.host.agents.codec import encode
from gpu_pregel.host.agents.codec import types as codec_types
from gpu_pregel.host.stores.store import Store
from gpu_pregel.host.superstep import base_writer
from tests import crashes as crashing
from tests.agents import logged, result_bytes, rows, state_bytes
from tests.conformance.agent_programs import COUNTING
from tests.stores import Open, begin

# Past states and forks


def test_past_states_can_be_read_while_the_run_continues(opened: Open, log: str) -> None:
    options = {**crashing.program(log), "store": opened()}
    with gp.agents.start(crashing.VERTICES, run_id="run", **options) as agents:
        for step in range(2):
            agents.step()
            for seen in (gp.agents.state_at(opened(), "run"), gp.agents.state_at(opened(), "run", step)):
                assert state_bytes(seen) == state_bytes(agents.result())
        with pytest.raises(ArgumentError, match="run 'run' has no superstep 2 yet"):
            gp.agents.state_at(opened(), "run", 2)


def test_a_base_written_in_the_background_has_the_state_after_its_superstep(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compute(ctx: Any) -> None:
        ctx.value += sum(ctx.messages)
        ctx.send_to_neighbors(ctx.superstep + 1)
        if ctx.superstep == 2:
            ctx.add_vertex("new", 0, ["a"])
            ctx.remove_vertex("c")

    vertices = [Vertex("a", 0, ["b"]), Vertex("b", 0, ["a"]), Vertex("c", 0)]
    may_pack, pack = threading.Event(), base_writer.BaseWriter._pack
    monkeypatch.setattr(base_writer, "LARGE_BASE", 0)
    monkeypatch.setattr(base_writer.BaseWriter, "_pack", lambda writer: pack(writer) if may_pack.wait(200) else b"")
    for run_id, base_every in (("without", 50), ("with", 2)):
        may_pack.clear()
        options: dict[str, Any] = {"store": store, "run_id": run_id, "base_every": base_every, "max_supersteps": 9}
        with gp.agents.start(vertices, compute, **options) as agents:
            for superstep in range(5):
                agents.step()
                if superstep == 1:
                    agents.send("a", 1000)
            may_pack.set()
    assert [row.step for row in store.history("with") if row.base] == [1]
    results = []
    for run_id in ("without", "with"):
        assert gp.agents.state_at(store, run_id, 1).values == {"a": 1, "b": 1, "c": 0}
        assert gp.agents.state_at(store, run_id, 2).values == {"a": 1003, "b": 3, "new": 0}
        gp.agents.fork(store, run_id, 1, f"fork of {run_id}")
        options = {"max_supersteps": 4, "on_limit": "return"}
        results.append(gp.agents.resume(store, f"fork of {run_id}", compute, **options).values)
    assert results == [{"a": 6, "b": 6, "new": 0}] * 2


@pytest.mark.parametrize("step", [-1, 2, crashing.STEPS - 1])
@pytest.mark.parametrize("base_every", [2, 50])
def test_a_fork_is_independent_of_its_parent(opened: Open, log: str, step: int, base_every: int) -> None:
    options = {**crashing.program(log), "store": opened(), "base_every": base_every}
    whole = crashing.run_to_end(gp.agents.start(crashing.VERTICES, run_id="run", **options))
    assert gp.agents.fork(opened(), "run", step, "fork") == "fork"
    parent = gp.agents.state_at(opened(), "run", step)
    assert state_bytes(gp.agents.state_at(opened(), "fork")) == state_bytes(parent)
    row = opened().run("fork")
    assert (row.branch, row.parent, row.head) == (1, ("run", step), step)
    opened().delete("run")
    keys = {line.split()[2] for line in logged(log)}
    Path(log).unlink()
    result = crashing.run_to_end(gp.agents.reopen(run_id="fork", **options))
    if step == crashing.STEPS - 1:
        assert result_bytes(result) == result_bytes(whole)
        assert not Path(log).exists()
        return
    assert result.superstep == whole.superstep
    assert list(result.vertices) == list(whole.vertices)
    assert rows(result) != rows(whole)
    assert not keys & {line.split()[2] for line in logged(log)}
    again = gp.agents.fork(opened(), "fork", max(step, 0))
    assert opened().run(again).branch == 2
    assert crashing.run_to_end(gp.agents.reopen(run_id=again, **options)).superstep == whole.superstep
    for one in ("fork", again):
        assert result_bytes(gp.agents.resume(run_id=one, **options)) == result_bytes(gp.agents.state_at(opened(), one))


def test_a_fork_of_a_held_superstep_starts_that_superstep_again(opened: Open, log: str) -> None:
    options = {**crashing.program(log), "store": opened()}
    with gp.agents.start(crashing.VERTICES, run_id="run", **options) as agents:
        while agents.step():
            pass
        assert agents.status == "interrupted"
        gp.agents.fork(opened(), "run", crashing.HELD - 1, "fork")
        with gp.agents.reopen(run_id="fork", **options) as fork:
            assert fork.status == "running"
            assert not fork.step()
            assert fork.result().interrupts == {"asks": "which?"}
        agents.answer("asks", "blue")
        agents.step()
    assert opened().run("fork").head == crashing.HELD - 1


def test_impossible_forks_are_refused(store: Store) -> None:
    gp.agents.run([Vertex(1, 0)], **COUNTING, store=store, run_id="run", max_supersteps=2, on_limit="return")
    with pytest.raises(ArgumentError, match="run 'run' has no superstep 2 yet"):
        gp.agents.fork(store, "run", 2)
    with pytest.raises(ArgumentError, match="run 'run' already exists in"):
        gp.agents.fork(store, "run", 1, "run")
    with pytest.raises(ArgumentError, match="no run 'other'"):
        gp.agents.fork(store, "other", 1)


# Types that are no longer registered


@dataclass
class Point:
    x: int


def test_unregistered_types_are_named(opened: Open) -> None:
    def compute(ctx: Any) -> None:
        if ctx.superstep == 1:
            ctx.interrupt(ctx.value)
        ctx.value = type(ctx.value)(ctx.value.x + 1)
        ctx.vote_to_halt() if ctx.superstep else ctx.send(1, ctx.value)

    gp.agents.register(Point, "a point of this test")
    try:
        gp.agents.run([Vertex(1, Point(1))], compute, store=opened(), run_id="run")
        found = gp.agents.state_at(opened(), "run")
        assert (found.values, found.interrupts) == ({1: Point(2)}, {1: Point(2)})
        asked = encode(Point(2))
    finally:
        codec_types._remove(codec_types.by_name["a point of this test"])
    found = gp.agents.state_at(opened(), "run")
    assert found.interrupts == {1: asked}
    with pytest.raises(CodecError, match="a point of this test"):
        found.values  # noqa: B018
    with pytest.raises((AgentsFailedError, CodecError), match="a point of this test"):
        gp.agents.resume(opened(), "run", compute, answers={1: None})


def test_a_fork_may_edit_values(opened: Open) -> None:
    def double(ctx: Any) -> None:
        ctx.value *= 2
        ctx.vote_to_halt()

    gp.agents.run([Vertex("a", 1, edges=["b"]), Vertex("b", 2)], double, store=opened(), run_id="run")
    assert gp.agents.fork(opened(), "run", 0, "fork", values={"a": 50}) == "fork"
    result = gp.agents.resume(opened(), "fork", double)
    assert (result.values, result.superstep, len(result.vertices["a"].edges)) == ({"a": 100, "b": 4}, 2, 1)
    assert gp.agents.state_at(opened(), "run").values == {"a": 2, "b": 4}
    with pytest.raises(ArgumentError, match="no vertex 'c' in run 'run' after superstep 0"):
        gp.agents.fork(opened(), "run", 0, "other", values={"c": 1})
    with pytest.raises(CodecError, match="the value of vertex 'a'"):
        gp.agents.fork(opened(), "run", 0, "other", values={"a": object()})
    with pytest.raises(ArgumentTypeError, match="values must be a mapping"):
        gp.agents.fork(opened(), "run", 0, "other", values=["a"])  # type: ignore[arg-type]
    assert [row.id for row in opened().runs()] == ["run", "fork"]


def test_runs_expire_by_age_and_status(opened: Open) -> None:
    store = opened()
    for name, status in [("old", "completed"), ("held", "interrupted"), ("gone", "cancelled"), ("new", "completed")]:
        store.release(begin(store, name), status)
    begin(store, "claimed", status="completed")
    claimed = {"old": 0.0, "gone": 0.0}
    later = store._database.exact_now() + 1000
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store._database, "exact_now", lambda: later)
        patch.setattr(store._database, "now", lambda: later)
        store.release(store.claim("new", owner="first"), "completed")
        store.renew(store.claim("claimed", owner="first", takeover=True))
        assert store.expire(1001) == []
        assert store.expire(500, dry_run=True) == ["old", "gone"]
        assert store.expire(500, statuses=["interrupted"], dry_run=True) == ["held"]
        assert store.expire(500) == list(claimed)
        assert store.expire(0) == ["new"]  # the claimed run is as old
    assert [row.id for row in opened().runs()] == ["held", "claimed"]
    for wrong in ("completed", None):
        with pytest.raises(ArgumentTypeError, match="statuses must be a list"):
            store.expire(1, statuses=wrong)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"statuses must be 'completed', .*, not 'complete'"):
        store.expire(0, statuses=["complete"])


def test_a_run_that_is_claimed_meanwhile_does_not_expire(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.release(begin(store, "run"), "completed")
    rows = store._transactions._table.rows()
    store.claim("run", owner="second")
    monkeypatch.setattr(store._transactions._table, "rows", lambda: rows)
    assert store.expire(0) == []
    assert store.run("run").owner == "second"
