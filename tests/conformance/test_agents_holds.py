"""Runs of agents in stores, one suite for all of them: resuming, holds, answers, past states, forks, claims."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.agents import Aggregator, RetryPolicy, Vertex
from gpu_pregel.errors import (
    AgentError,
    AgentsFailedError,
    ArgumentError,
    ArgumentTypeError,
    ClaimedError,
    CodecError,
    FencedError,
    StoreError,
)
from gpu_pregel.host.agents import formats
from gpu_pregel.host.agents import stored_runs as _stored
from gpu_pregel.host.agents.codec import decode, encode
from gpu_pregel.host.agents.codec import types as codec_types
from gpu_pregel.host.agents.formats import SavedSuperstep, Segment
from gpu_pregel.host.agents.parts import FailedAttempts
from gpu_pregel.host.agents.workers import transport
from gpu_pregel.host.stores.store import Store
from tests import crashes as crashing
from tests.agents import ONCE, rows
from tests.host.agents.workers.worker_programs import is_alive, running
from tests.stores import Open

STEPS = 6
ALL = os.environ.get("GPU_PREGEL_CRASHES") == "all"
"""Whether worker processes are tested with every store rather than with SQLite alone."""


@pytest.fixture
def opened(request: pytest.FixtureRequest, opened: Open) -> Open:
    """As in all suites of stores; by default, workers are tested with a SQLite file only."""
    chosen = request.node.callspec.params
    if not ALL and chosen["opened"] != "sqlite" and chosen.get("workers"):
        pytest.skip("runs with GPU_PREGEL_CRASHES=all")
    return opened


@pytest.fixture
def log(tmp_path: Path) -> str:
    return str(tmp_path / "log")


def left(result: gp.agents.AgentResult) -> bytes:
    """The codec bytes of a result, and the order of its vertices."""
    return encode((rows(result), list(result.vertices), result.superstep, result.aggregates, result.status))


def state(result: gp.agents.AgentResult) -> bytes:
    """The same without the status."""
    return encode((rows(result), list(result.vertices), result.superstep, result.aggregates))


def made(log: str) -> Counter[str]:
    """The count of each line."""
    return Counter(Path(log).read_text().splitlines())


# Resuming


@pytest.mark.parametrize(("workers", "base_every"), [(0, 1), (0, 2), (2, 2), (0, 50)])
def test_a_run_abandoned_after_each_superstep_resumes(opened: Open, log: str, workers: int, base_every: int) -> None:
    whole = crashing.run_to_end(gp.agents.start(crashing.VERTICES, run_id="run", **crashing.program(log)))
    options = {**crashing.program(log, workers), "store": opened(), "base_every": base_every}
    agents = gp.agents.start(crashing.VERTICES, run_id="run", **options)
    seen = {-1: state(agents.result())}
    while True:
        with agents:
            goes_on, result = agents.step(), agents.result()
            if agents.status == "interrupted":
                agents.answer("asks", "blue")
                goes_on = True
        seen[result.superstep - 1] = state(result)
        if not goes_on:
            break
        agents = gp.agents.reopen(run_id="run", **{**options, "store": opened()})
    assert left(result) == left(whole)
    assert set(made(log).values()) == {2}  # once in each of the two runs
    store = opened()
    for step, expected in seen.items():
        found = gp.agents.state_at(store, "run", step)
        assert state(found) == expected
        assert found.status == ("completed" if step == STEPS - 1 else "running")
    assert left(gp.agents.state_at(store, "run")) == left(whole)
    bases = [row.step for row in store.history("run") if row.base]
    assert bases == list(range(base_every - 1, STEPS, base_every))
    assert [row.status for row in store.history("run")] == ["running"] * (STEPS - 1) + ["completed"]


def counting(ctx: Any) -> None:
    ctx.value += 1
    ctx.aggregate("total", 1)
    if ctx.value == 10:
        ctx.vote_to_halt()


COUNTING: dict[str, Any] = {"compute": counting, "aggregators": {"total": Aggregator("sum", persistent=True)}}


def test_a_run_that_reached_its_limit_resumes_with_a_larger_one(store: Store) -> None:
    vertices = [Vertex(k, k) for k in range(3)]
    result = gp.agents.run(vertices, **COUNTING, store=store, run_id="run", max_supersteps=3)
    assert (result.status, store.run("run").status) == ("max_supersteps", "max_supersteps")
    for limit in (1, 3):
        again = gp.agents.resume(store, "run", **COUNTING, max_supersteps=limit)
        assert left(again) == left(result)
    assert gp.agents.resume(store, "run", **COUNTING, max_supersteps=5).superstep == 5
    result = gp.agents.resume(store, "run", **COUNTING)
    assert left(result) == left(gp.agents.run(vertices, **COUNTING))
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
            assert left(again) == left(result)
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
    gp.agents.run([Vertex(1, 0)], **COUNTING, store=opened(), run_id="run", max_supersteps=4)
    assert figures(gp.agents.resume(opened(), "run", **COUNTING)) == figures(whole)


# Holds


def troubled(log: str) -> Any:
    def compute(ctx: Any) -> None:
        import os

        with open(log, "a") as file:
            file.write(f"{ctx.superstep} {ctx.vertex_id}\n")
        if ctx.superstep == 1:
            if ctx.vertex_id == "fails" and not os.path.exists(log + ".mended"):
                raise ValueError(f"broken {ctx.attempt}")
            if ctx.vertex_id == "asks":
                ctx.aggregate("answers", ctx.interrupt("which?") + ctx.interrupt("really?"))
        ctx.value = [*(ctx.value or []), *ctx.messages]
        if ctx.superstep == 0:
            ctx.send("asks", ctx.vertex_id)
            ctx.send("fails", ctx.vertex_id)
        else:
            ctx.vote_to_halt()

    return compute


@pytest.mark.parametrize("workers", [0, 2])
def test_a_held_superstep_resumes_and_computes_only_the_rest(opened: Open, log: str, workers: int) -> None:
    vertices = [Vertex(name) for name in ("asks", "fails", "good")]
    options: dict[str, Any] = {
        "compute": troubled(log), "aggregators": {"answers": "list"}, "retry": ONCE, "workers": workers
    }  # fmt: skip
    with pytest.raises(AgentsFailedError, match="broken 1"):
        gp.agents.run(vertices, **options, store=opened(), run_id="run")
    assert opened().run("run").status == "failed"
    with pytest.raises(AgentsFailedError) as caught:
        gp.agents.resume(opened(), "run", **options)
    held = caught.value.result
    assert (held.superstep, held.interrupts) == (1, {"asks": "which?"})
    assert held.failed["fails"].text == "broken 1"
    assert held.failed["fails"].messages == ["asks", "good", "fails"]
    found = gp.agents.state_at(opened(), "run")
    assert (found.status, found.interrupts, found.failed) == ("failed", held.interrupts, held.failed)
    found = gp.agents.state_at(opened(), "run", 0)
    assert (found.status, found.interrupts, found.failed) == ("failed", {}, {})
    before = Counter({f"{step} {name}": 1 for step in (0, 1) for name in ("asks", "fails", "good")})
    assert made(log) == before
    Path(log + ".mended").touch()
    result = gp.agents.resume(opened(), "run", **options, answers={"asks": "this "}, retry_failed=True)
    assert (result.status, result.interrupts) == ("interrupted", {"asks": "really?"})
    found = gp.agents.state_at(opened(), "run")
    assert (found.status, found.interrupts, found.failed) == ("interrupted", {"asks": "really?"}, {})
    with pytest.raises(
        ArgumentError, match="vertex 'good' does not wait for an answer; waiting vertices: \\['asks'\\]"
    ):
        gp.agents.resume(opened(), "run", **options, answers={"good": 1})
    with gp.agents.reopen(opened(), "run", **options) as agents:  # the claim was released
        assert agents.status == "interrupted"
        agents.answer("asks", "yes")
    assert gp.agents.state_at(opened(), "run").interrupts == {}
    result = gp.agents.resume(opened(), "run", **options)  # the answer was durable
    assert result.status == "completed"
    assert result.aggregates == {"answers": ["this yes"]}
    assert made(log) == before + Counter({"1 asks": 2, "1 fails": 1})
    assert left(gp.agents.state_at(opened(), "run")) == left(result)


@pytest.mark.parametrize("workers", [0, 2])
def test_attempts_count_across_programs(opened: Open, tmp_path: Path, workers: int) -> None:
    log = str(tmp_path / "log")

    def compute(ctx: Any) -> None:
        with open(log, "a") as file:
            file.write(f"{ctx.attempt}\n")
        raise ValueError(f"attempt {ctx.attempt}")

    def interrupt(event: Any) -> None:
        if event.kind == "retry" and event.attempt == 2:
            raise KeyboardInterrupt

    options: dict[str, Any] = {"compute": compute, "retry": RetryPolicy(attempts=4, wait=0), "workers": workers}
    agents = gp.agents.start([Vertex("a")], **options, store=opened(), run_id="run", observer=interrupt)
    with agents, pytest.raises(KeyboardInterrupt):
        agents.step()
    first = len(made(log))
    for attempts in (4, 4):
        with pytest.raises(AgentsFailedError, match=f"attempt {attempts}"):
            gp.agents.resume(opened(), "run", **options)
    assert first < 4
    assert sorted(made(log)) == ["1", "2", "3", "4"]
    assert sum(made(log).values()) <= 5  # one was in progress, or not on record yet
    with pytest.raises(AgentsFailedError, match="attempt 4"):
        gp.agents.resume(opened(), "run", **options, retry_failed=True)
    assert made(log)["4"] == 2


def test_a_run_continues_without_failed_vertices(opened: Open) -> None:
    def compute(ctx: Any) -> None:
        if ctx.vertex_id == "b" and ctx.superstep == 1:
            raise ValueError("broken")
        ctx.value = ctx.superstep
        ctx.send_to_neighbors(ctx.superstep)
        if ctx.superstep == 3:
            ctx.interrupt()
        if ctx.superstep > 3:
            ctx.vote_to_halt()

    vertices = [Vertex("a", edges=["b"]), Vertex("b", edges=["a"])]
    options: dict[str, Any] = {"compute": compute, "retry": ONCE, "on_failure": "continue", "max_supersteps": 3}
    result = gp.agents.run(vertices, **options, store=opened(), run_id="run")
    assert result.failed["b"].superstep == 1
    for found in (gp.agents.state_at(opened(), "run"), gp.agents.resume(opened(), "run", **options)):
        assert found.failed == result.failed
        assert left(found) == left(result)


# Messages from outside


def echo(ctx: Any) -> None:
    ctx.value = [*(ctx.value or []), *ctx.messages]
    if ctx.superstep == 0 and ctx.vertex_id == "a":
        ctx.interrupt()
        ctx.send("b", "from a")
    ctx.vote_to_halt()


def test_messages_from_outside_are_durable_when_send_returns(opened: Open) -> None:
    agents = gp.agents.start([Vertex("a"), Vertex("b")], echo, store=opened(), run_id="run")
    agents.send("b", "early")
    other = gp.agents.reopen(opened(), "run", echo, takeover=True)  # the first one never closes
    with other:
        other.step()
        other.send("b", "while held")
        assert other.status == "interrupted"
    result = gp.agents.resume(opened(), "run", echo, answers={"a": None})
    assert result.values == {"a": [], "b": ["early", "from a", "while held"]}
    with gp.agents.reopen(opened(), "run", echo) as again:
        again.send("b", "late")
    result = gp.agents.resume(opened(), "run", echo)
    assert result.values["b"] == ["early", "from a", "while held", "late"]
    for step, expected in ((0, ["early"]), (1, ["early", "from a", "while held"]), (2, result.values["b"])):
        assert gp.agents.state_at(opened(), "run", step).values["b"] == expected
    with pytest.raises(FencedError):
        agents.send("b", "too late")
    with agents:
        pass


def test_a_message_that_could_not_be_stored_is_not_sent(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened()

    def refuse(*_: Any) -> Any:
        raise StoreError("the store", "is away")

    def send_in_vain(agents: gp.agents.AgentRun) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(store._database, "apply", refuse)
            with pytest.raises(StoreError, match="is away"):
                agents.send("b", "lost")

    with gp.agents.start([Vertex("a"), Vertex("b")], echo, store=store, run_id="run") as agents:
        send_in_vain(agents)
        agents.send("b", "early")
        agents.step()
        send_in_vain(agents)
        agents.step()
    result = gp.agents.resume(opened(), "run", echo, answers={"a": None})
    assert result.values == {"a": [], "b": ["early", "from a"]}


def test_stopping_a_run_that_another_program_took_over_ends_its_workers(opened: Open) -> None:
    agents = gp.agents.start([Vertex(1, 0)], **COUNTING, store=opened(), run_id="run", workers=1)
    pids = running(agents)
    assert gp.agents.resume(opened(), "run", **COUNTING, takeover=True).values == {1: 10}
    with pytest.raises(FencedError):
        agents.stop()
    assert not any(map(is_alive, pids))


# Past states and forks


def test_past_states_can_be_read_while_the_run_continues(opened: Open, log: str) -> None:
    options = {**crashing.program(log), "store": opened()}
    with gp.agents.start(crashing.VERTICES, run_id="run", **options) as agents:
        for step in range(2):
            agents.step()
            for seen in (gp.agents.state_at(opened(), "run"), gp.agents.state_at(opened(), "run", step)):
                assert state(seen) == state(agents.result())
        with pytest.raises(ArgumentError, match="run 'run' has no superstep 2 yet"):
            gp.agents.state_at(opened(), "run", 2)


@pytest.mark.parametrize("step", [-1, 2, STEPS - 1])
@pytest.mark.parametrize("base_every", [2, 50])
def test_a_fork_is_independent_of_its_parent(opened: Open, log: str, step: int, base_every: int) -> None:
    options = {**crashing.program(log), "store": opened(), "base_every": base_every}
    whole = crashing.run_to_end(gp.agents.start(crashing.VERTICES, run_id="run", **options))
    assert gp.agents.fork(opened(), "run", step, "fork") == "fork"
    parent = gp.agents.state_at(opened(), "run", step)
    assert state(gp.agents.state_at(opened(), "fork")) == state(parent)
    row = opened().run("fork")
    assert (row.branch, row.parent, row.head) == (1, ("run", step), step)
    opened().delete("run")
    keys = {line.split()[2] for line in made(log)}
    Path(log).unlink()
    result = crashing.run_to_end(gp.agents.reopen(run_id="fork", **options))
    if step == STEPS - 1:
        assert left(result) == left(whole)
        assert not Path(log).exists()
        return
    assert result.superstep == whole.superstep
    assert list(result.vertices) == list(whole.vertices)
    assert rows(result) != rows(whole)
    assert not keys & {line.split()[2] for line in made(log)}
    again = gp.agents.fork(opened(), "fork", max(step, 0))
    assert opened().run(again).branch == 2
    assert crashing.run_to_end(gp.agents.reopen(run_id=again, **options)).superstep == whole.superstep
    for one in ("fork", again):
        assert left(gp.agents.resume(run_id=one, **options)) == left(gp.agents.state_at(opened(), one))


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


def test_impossible_forks_are_refused(store: Store, log: str) -> None:
    gp.agents.run([Vertex(1, 0)], **COUNTING, store=store, run_id="run", max_supersteps=2)
    with pytest.raises(ArgumentError, match="run 'run' has no superstep 2 yet"):
        gp.agents.fork(store, "run", 2)
    with pytest.raises(ArgumentError, match="run 'run' already exists in"):
        gp.agents.fork(store, "run", 1, "run")
    with pytest.raises(ArgumentError, match="no run 'other'"):
        gp.agents.fork(store, "other", 1)


# Claims and refusals


@pytest.mark.parametrize("given", [None, "runs.db"])
def test_an_object_that_is_not_a_store_is_refused(given: Any) -> None:
    calls: list[Callable[[], object]] = [
        lambda: gp.agents.resume(given, "run", **COUNTING),
        lambda: gp.agents.reopen(given, "run", **COUNTING),
        lambda: gp.agents.state_at(given, "run"),
        lambda: gp.agents.fork(given, "run", 0),
    ]
    for call in calls:
        with pytest.raises(ArgumentTypeError, match=f"store must be a gp.SQLiteStore or another store, not {given!r}"):
            call()


def test_a_claimed_run_belongs_to_its_owner_until_it_is_taken_over(opened: Open) -> None:
    first = gp.agents.start([Vertex(1, 0)], **COUNTING, store=opened(), run_id="run")
    first.step()
    with pytest.raises(ClaimedError, match=r"run 'run' is claimed by process .* on .* until"):
        gp.agents.resume(opened(), "run", **COUNTING)
    second = gp.agents.reopen(opened(), "run", **COUNTING, takeover=True)
    second.step()
    with first, pytest.raises(FencedError, match=r"run 'run' was claimed by .* \(epoch 2\)"):
        first.step()
    assert first.status == "running"
    assert first.result().superstep == 1
    assert (
        opened().run("run").lease > time.time()
    )  # the end of the first program did not release the second one's claim
    with second:
        while second.step():
            pass
    assert second.result().values == {1: 10}
    assert opened().run("run").lease == 0
    assert [row.epoch for row in opened().history("run")] == [1] + [2] * 9


def test_a_claim_is_renewed_during_a_long_attempt(opened: Open) -> None:
    def compute(ctx: Any) -> None:
        time.sleep(1.2)
        with pytest.raises(ClaimedError):
            opened().claim("run", owner="somebody")
        ctx.vote_to_halt()

    result = gp.agents.run([Vertex(1)], compute, store=opened(), run_id="run", lease_seconds=0.9, retry=ONCE)
    assert result.status == "completed"


def test_a_run_that_cannot_be_resumed_is_released(opened: Open) -> None:
    gp.agents.run([Vertex(1, 0)], **COUNTING, store=opened(), run_id="run", max_supersteps=2)
    with pytest.raises(
        ArgumentError, match="needs the compute function 'compute', which was not passed; available: 'o"
    ):
        gp.agents.resume(opened(), "run", functions={"other": counting})
    with pytest.raises(ArgumentError, match="no run 'other' in"):
        gp.agents.resume(opened(), "other", counting)
    opened().create("numbers", "numeric", b"", owner="me", lease_seconds=1e-6)
    time.sleep(0.001)
    with pytest.raises(ArgumentError, match=r"run 'numbers' has numeric vertices: resume it with gp\.run"):
        gp.agents.resume(opened(), "numbers", counting)
    assert gp.agents.resume(opened(), "run", **COUNTING).values == {1: 10}


def test_a_run_whose_last_records_cannot_be_written_is_released(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise ValueError("cannot be encrypted")

    agents = gp.agents.start([Vertex(1, 0)], **COUNTING, store=store, run_id="run")
    agents.step()
    with monkeypatch.context() as patch:
        patch.setattr(store, "commit", refuse)
        patch.setattr(store, "flush", refuse)
        for attempt in (agents.step, agents.stop):
            with pytest.raises(ValueError, match="cannot be encrypted"):
                attempt()
    assert store.run("run").lease == 0
    assert gp.agents.resume(store, "run", **COUNTING).values == {1: 10}


def test_a_run_that_is_deleted_while_it_runs_is_fenced(opened: Open) -> None:
    with gp.agents.start([Vertex(1, 0)], **COUNTING, store=opened(), run_id="run") as agents:
        agents.step()
        with pytest.raises(ClaimedError):
            opened().delete("run")
        opened().delete("run", force=True)
        with pytest.raises(FencedError, match="run 'run' was deleted"):
            agents.step()
    assert opened().runs() == []


def test_failures_and_questions_are_reported_however_the_superstep_is_held(opened: Open) -> None:
    def compute(ctx: Any) -> None:
        if ctx.vertex_id == "fails":
            raise OSError("broken")
        if ctx.vertex_id == "asks":
            ctx.interrupt("which?")
        ctx.vote_to_halt()

    vertices = [Vertex(name) for name in ("asks", "fails", "good")]
    for on_failure in ("continue", "raise"):
        options: dict[str, Any] = {"on_failure": on_failure, "retry": ONCE}
        with gp.agents.start(vertices, compute, **options, store=opened(), run_id=on_failure) as agents:
            agents.step()
            if on_failure == "raise":
                agents.stop()
            result = agents.result()
        found = gp.agents.state_at(opened(), on_failure)
        assert result.status == {"continue": "interrupted", "raise": "stopped"}[on_failure]
        assert list(found.failed) == ["fails"]
        assert (found.status, found.failed, found.interrupts) == (result.status, result.failed, result.interrupts)


def test_a_vertex_that_will_be_retried_is_not_reported_as_failed(opened: Open) -> None:
    seen: list[tuple[int, list[str]]] = []

    def compute(ctx: Any) -> None:
        if ctx.vertex_id == "fails":
            seen.append((ctx.attempt, list(gp.agents.state_at(opened(), "run").failed)))
            raise OSError("broken")
        ctx.vote_to_halt()

    options: dict[str, Any] = {"retry": RetryPolicy(attempts=3, wait=0)}
    with pytest.raises(AgentsFailedError):
        gp.agents.run([Vertex("fails"), Vertex("good")], compute, **options, store=opened(), run_id="run")
    assert list(gp.agents.state_at(opened(), "run").failed) == ["fails"]
    with pytest.raises(AgentsFailedError):
        gp.agents.resume(opened(), "run", compute, **options, retry_failed=True)
    assert seen == [(1, []), (2, []), (3, [])] * 2
    # Another limit applies to failed vertices; it is recorded with the next attempt.
    with pytest.raises(AgentsFailedError):
        gp.agents.resume(opened(), "run", compute, retry=RetryPolicy(attempts=5, wait=0))
    assert seen[6:] == [(4, ["fails"]), (5, [])]


def test_an_answer_that_another_program_has_given_is_reported(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    def compute(ctx: Any) -> None:
        ctx.value = ctx.interrupt()
        ctx.vote_to_halt()

    def reopened(*arguments: Any, **options: Any) -> gp.agents.AgentRun:
        agents = gp.agents.reopen(*arguments, **options)
        opened().answer("run", 0, encode("asks"), 0, encode("yes"))
        return agents

    gp.agents.run([Vertex("asks")], compute, store=opened(), run_id="run")
    monkeypatch.setattr(_stored, "reopen", reopened)
    with pytest.raises(ArgumentError, match="has an answer"):
        gp.agents.resume(opened(), "run", compute, answers={"asks": "yes"})
    monkeypatch.undo()
    for _ in range(2):
        result = gp.agents.resume(opened(), "run", compute, answers={"asks": "yes"})
        assert (result.status, result.values) == ("completed", {"asks": "yes"})


@pytest.mark.parametrize("run_id", ["", "a\nb", "x" * 201])
def test_invalid_run_ids_are_refused(store: Store, run_id: str) -> None:
    with pytest.raises(ArgumentError, match="run_id"):
        gp.agents.run([Vertex(1, 0)], **COUNTING, store=store, run_id=run_id)
    with (
        gp.agents.start([Vertex(1, 0)], **COUNTING, store=store, run_id="run"),
        pytest.raises(ArgumentError, match="new_id"),
    ):
        gp.agents.fork(store, "run", -1, run_id)
    assert [row.id for row in store.runs()] == ["run"]


def test_run_ids_are_given_or_generated(store: Store) -> None:
    for run_id in ("über 'run'; DROP TABLE runs", "x" * 200, None):
        gp.agents.run([Vertex(1, 9)], **COUNTING, store=store, run_id=run_id)
    ids = [row.id for row in store.runs()]
    assert ids[:2] == ["über 'run'; DROP TABLE runs", "x" * 200]
    assert len(ids[2]) == 32
    with pytest.raises(ArgumentError, match=r"run 'x.*' already exists in .*: choose another id, or resume it"):
        gp.agents.run([Vertex(1, 9)], **COUNTING, store=store, run_id="x" * 200)


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
        codec_types._remove(codec_types._by_name["a point of this test"])
    found = gp.agents.state_at(opened(), "run")
    assert found.interrupts == {1: asked}
    with pytest.raises(CodecError, match="a point of this test"):
        found.values  # noqa: B018
    with pytest.raises((AgentsFailedError, CodecError), match="a point of this test"):
        gp.agents.resume(opened(), "run", compute, answers={1: None})


# What is written, and when


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat supersteps in this process as quick, however slow the machine is."""
    monkeypatch.setattr(transport, "_SLICE_SECONDS", 60)


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
    assert gp.agents.resume(opened(), "run", compute, max_supersteps=2).values == {
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


@pytest.mark.parametrize("workers", [0, 2])
def test_records_are_flushed_during_a_superstep(opened: Open, workers: int) -> None:
    def compute(ctx: Any) -> None:
        if ctx.superstep == 1:
            time.sleep(0.05)
        if ctx.superstep:
            ctx.vote_to_halt()

    count, flushed = 12, []
    store = opened()
    with gp.agents.start([Vertex(k) for k in range(count)], compute, workers=workers, store=store) as agents:
        agents.step()
        flush = store.flush

        def watched(claim: Any, step: int, segments: Any, status: Any = None) -> None:
            flush(claim, step, segments, status)
            flushed.append((time.monotonic(), sum(len(Segment.unpack(one).records) for one in segments)))

        store.flush = watched  # type: ignore[method-assign, assignment]
        begin = time.monotonic()
        agents.step()
        del store.flush
    on_record = 0
    for at, records in flushed:
        on_record += records
        # Attempts that ended 20 ms and one attempt ago are on record, with a margin for a busy machine.
        assert on_record >= (at - begin - 0.07) / 0.05 - 2
    assert on_record >= count // 2
    assert flushed[0][0] - begin < 0.5


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


def test_an_answer_may_be_repeated_after_the_vertex_has_continued(opened: Open) -> None:
    asks = {"a": 1, "late": 1, "b": 2}

    def compute(ctx: Any) -> None:
        if ctx.superstep == asks[ctx.vertex_id]:
            ctx.value = ctx.interrupt()
        if ctx.superstep == 3:
            ctx.vote_to_halt()

    gp.agents.run([Vertex(name) for name in asks], compute, store=opened(), run_id="run")
    answers = {}
    # First "a" has completed in the held superstep, then in committed ones.
    for vertex, waiting in (("a", {"late": None}), ("late", {"b": None}), ("b", {})):
        answers[vertex] = f"to {vertex}"
        for _ in range(2):
            assert gp.agents.resume(opened(), "run", compute, answers=answers).interrupts == waiting
        for wrong in ({"a": "another"}, {"nobody": "to a"}):
            with pytest.raises(ArgumentError, match="does not wait for an answer"):
                gp.agents.resume(opened(), "run", compute, answers=wrong)
    assert gp.agents.state_at(opened(), "run").values == answers


def test_a_second_answer_to_a_question_is_refused(opened: Open) -> None:
    gp.agents.run([Vertex("a"), Vertex("b")], echo, store=opened(), run_id="run")
    with gp.agents.reopen(opened(), "run", echo) as agents:
        opened().answer("run", 0, encode("a"), 0, encode("somebody else's"))
        with pytest.raises(ArgumentError, match="has an answer"):
            agents.answer("a", "mine")
