"""Agent runs in all stores: resuming them after any superstep, at a limit, when stopped, and when ended."""

from __future__ import annotations

from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.agents import Vertex
from gpu_pregel.errors import CheckpointError
from gpu_pregel.host.stores.store import Store
from tests import crashes as crashing
from tests.agents import logged, result_bytes, state_bytes
from tests.conformance.agent_programs import COUNTING
from tests.stores import Open


@pytest.mark.parametrize(("workers", "base_every", "large"), [(0, 1, 1), (0, 2, 0), (2, 2, 1 << 20), (0, 50, 0)])
def test_a_run_abandoned_after_each_superstep_resumes(
    opened: Open, log: str, workers: int, base_every: int, large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpu_pregel.host.superstep.base_writer.LARGE_BASE", large)
    whole = crashing.run_to_end(gp.agents.start(crashing.VERTICES, run_id="run", **crashing.program(log)))
    options = {**crashing.program(log, workers), "store": opened(), "base_every": base_every}
    agents = gp.agents.start(crashing.VERTICES, run_id="run", **options)
    seen = {-1: state_bytes(agents.result())}
    while True:
        with agents:
            continues, result = agents.step(), agents.result()
            if agents.status == "interrupted":
                agents.answer("asks", "blue")
                continues = True
        seen[result.superstep - 1] = state_bytes(result)
        if not continues:
            break
        agents = gp.agents.reopen(run_id="run", **{**options, "store": opened()})
    assert result_bytes(result) == result_bytes(whole)
    assert set(logged(log).values()) == {2}  # once in each of the two runs
    store = opened()
    for step, expected in seen.items():
        found = gp.agents.state_at(store, "run", step)
        assert state_bytes(found) == expected
        assert found.status == ("completed" if step == crashing.STEPS - 1 else "running")
    assert result_bytes(gp.agents.state_at(store, "run")) == result_bytes(whole)
    bases = [row.step for row in store.history("run") if row.base]
    assert bases == list(range(base_every - 1, crashing.STEPS, base_every))
    assert [row.status for row in store.history("run")] == ["running"] * (crashing.STEPS - 1) + ["completed"]


def test_a_run_that_reached_its_limit_resumes_with_a_larger_one(store: Store) -> None:
    vertices = [Vertex(k, k) for k in range(3)]
    result = gp.agents.run(vertices, **COUNTING, store=store, run_id="run", max_supersteps=3, on_limit="return")
    assert (result.status, store.run("run").status) == ("max_supersteps", "max_supersteps")
    with pytest.raises(CheckpointError, match=r"holds 3 supersteps, more than max_supersteps=2: raise it, or start"):
        gp.agents.resume(store, "run", **COUNTING, max_supersteps=2)
    again = gp.agents.resume(store, "run", **COUNTING, max_supersteps=3, on_limit="return")
    assert result_bytes(again) == result_bytes(result)
    assert gp.agents.resume(store, "run", **COUNTING, max_supersteps=5, on_limit="return").superstep == 5
    result = gp.agents.resume(store, "run", **COUNTING)
    assert result_bytes(result) == result_bytes(gp.agents.run(vertices, **COUNTING))
    assert result.values == dict.fromkeys(range(3), 10)
    assert [row.step for row in store.history("run")] == list(range(10))


def test_resuming_a_run_that_has_ended_returns_the_same_result(store: Store) -> None:
    def halt(m: Any) -> None:
        if m.superstep == 4:
            m.halt()

    ends: dict[str, dict[str, Any]] = {"completed": {}, "halted": {"master": halt}}
    for run_id, options in ends.items():
        result = gp.agents.run([Vertex(1, 1)], **COUNTING, **options, store=store, run_id=run_id)
        assert result.status == run_id
        for _ in range(2):
            again = gp.agents.resume(store, run_id, **COUNTING, **options)
            assert result_bytes(again) == result_bytes(result)
            assert store.run(run_id).status == run_id
    assert [row.step for row in store.history("halted")] == [0, 1, 2, 3, 4]


def test_a_stopped_run_resumes(opened: Open) -> None:
    with gp.agents.start([Vertex(1, 0)], **COUNTING, store=opened(), run_id="run") as agents:
        agents.step()
        agents.stop()
    assert opened().run("run").status == "stopped"
    assert gp.agents.resume(opened(), "run", **COUNTING).values == {1: 10}


def test_the_trace_of_a_resumed_run_equals_that_of_an_uninterrupted_one(opened: Open) -> None:
    def figures(result: Any) -> list[Any]:
        return [{name: row[name] for name in row if name != "seconds"} for row in result.trace]

    whole = gp.agents.run([Vertex(1, 0)], **COUNTING)
    gp.agents.run([Vertex(1, 0)], **COUNTING, store=opened(), run_id="run", max_supersteps=4, on_limit="return")
    assert figures(gp.agents.resume(opened(), "run", **COUNTING)) == figures(whole)
