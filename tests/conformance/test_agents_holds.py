"""Agent runs in all stores: held supersteps with failures, questions and answers, and messages from outside."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.agents import RetryPolicy, Vertex
from gpu_pregel.errors import AgentsFailedError, ArgumentError, FencedError, StoreError
from gpu_pregel.host.agents.codec import encode
from gpu_pregel.host.agents.ledger import Ledger
from gpu_pregel.host.agents.recovery import begin_from_store
from tests.agents import FEW, ONCE, logged, result_bytes
from tests.stores import Open

# Failures


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


@FEW
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
    assert logged(log) == before
    Path(log + ".mended").touch()
    result = gp.agents.resume(opened(), "run", **options, answers={"asks": "this "}, retry_failed=True)
    assert (result.status, result.interrupts) == ("interrupted", {"asks": "really?"})
    found = gp.agents.state_at(opened(), "run")
    assert (found.status, found.interrupts, found.failed) == ("interrupted", {"asks": "really?"}, {})
    with pytest.raises(
        ArgumentError, match="vertex 'good' is not waiting for an answer; waiting vertices: \\['asks'\\]"
    ):
        gp.agents.resume(opened(), "run", **options, answers={"good": 1})
    with gp.agents.reopen(opened(), "run", **options) as agents:  # the claim was released
        assert agents.status == "interrupted"
        agents.answer("asks", "yes")
    assert gp.agents.state_at(opened(), "run").interrupts == {}
    result = gp.agents.resume(opened(), "run", **options)  # the answer was durable
    assert result.status == "completed"
    assert result.aggregates == {"answers": ["this yes"]}
    assert logged(log) == before + Counter({"1 asks": 2, "1 fails": 1})
    assert result_bytes(gp.agents.state_at(opened(), "run")) == result_bytes(result)


@FEW
def test_attempts_count_across_programs(opened: Open, log: str, workers: int) -> None:
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
    first = len(logged(log))
    for attempts in (4, 4):
        with pytest.raises(AgentsFailedError, match=f"attempt {attempts}"):
            gp.agents.resume(opened(), "run", **options)
    assert first < 4
    assert sorted(logged(log)) == ["1", "2", "3", "4"]
    assert sum(logged(log).values()) <= 5  # one was in progress or not yet on record
    with pytest.raises(AgentsFailedError, match="attempt 4"):
        gp.agents.resume(opened(), "run", **options, retry_failed=True)
    assert logged(log)["4"] == 2


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
    options: dict[str, Any] = {"compute": compute, "retry": ONCE, "on_failure": "continue"}
    options |= {"max_supersteps": 3, "on_limit": "return"}
    result = gp.agents.run(vertices, **options, store=opened(), run_id="run")
    assert result.failed["b"].superstep == 1
    for found in (gp.agents.state_at(opened(), "run"), gp.agents.resume(opened(), "run", **options)):
        assert found.failed == result.failed
        assert result_bytes(found) == result_bytes(result)


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
        gp.agents.resume(opened(), "run", compute, retry=RetryPolicy(attempts=5, wait=0), override="retry")
    assert seen[6:] == [(4, ["fails"]), (5, [])]


@pytest.mark.parametrize(("on_failure", "release"), [("continue", "this"), ("continue", "older"), ("raise", "this")])
def test_failures_that_a_lower_limit_makes_final_are_recorded(
    opened: Open, on_failure: str, release: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program ends between two attempts, and the next one permits no more; older ones recorded only the commit."""

    def compute(ctx: Any) -> None:
        if ctx.vertex_id == "fails":
            raise OSError("broken")
        ctx.vote_to_halt()

    def interrupt(event: Any) -> None:
        if event.kind == "retry":
            raise KeyboardInterrupt

    vertices = [Vertex("fails"), Vertex("good")]
    with (
        gp.agents.start(
            vertices, compute, store=opened(), run_id="run", observer=interrupt, on_failure=on_failure
        ) as agents,
        pytest.raises(KeyboardInterrupt),
    ):
        agents.step()
    assert gp.agents.state_at(opened(), "run").failed == {}
    if release == "older":
        apply = Ledger.apply_attempts
        monkeypatch.setattr(Ledger, "apply_attempts", lambda *arguments: apply(*arguments)[:0])
    options: dict[str, Any] = {"retry": ONCE, "override": "retry"}
    with gp.agents.reopen(opened(), "run", compute, **options) as agents:
        while agents.step():
            pass
        result = agents.result()
    assert (result.status, list(result.failed)) == ({"continue": "partial", "raise": "failed"}[on_failure], ["fails"])
    with gp.agents.reopen(opened(), "run", compute, **options) as agents:
        assert agents.result().failed == result.failed
    found = gp.agents.state_at(opened(), "run")
    assert (found.status, found.failed) == (result.status, result.failed)


# Questions and answers


def test_an_answer_that_another_program_has_given_is_reported(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    def compute(ctx: Any) -> None:
        ctx.value = ctx.interrupt()
        ctx.vote_to_halt()

    def begun(*arguments: Any, **options: Any) -> Any:
        recovered = begin_from_store(*arguments, **options)
        opened().answer("run", 0, encode("asks"), 0, encode("yes"))
        return recovered

    gp.agents.run([Vertex("asks")], compute, store=opened(), run_id="run")
    monkeypatch.setattr("gpu_pregel.host.agents.stored_runs.begin_from_store", begun)
    with pytest.raises(ArgumentError, match="has an answer"):
        gp.agents.resume(opened(), "run", compute, answers={"asks": "yes"})
    assert opened().run("run").lease == 0
    monkeypatch.undo()
    for _ in range(2):
        result = gp.agents.resume(opened(), "run", compute, answers={"asks": "yes"})
        assert (result.status, result.values) == ("completed", {"asks": "yes"})


def test_an_answer_may_be_repeated_after_the_vertex_has_continued(opened: Open) -> None:
    asks = {"a": 1, "late": 1, "b": 2}

    def compute(ctx: Any) -> None:
        if ctx.superstep == asks[ctx.vertex_id]:
            ctx.value = ctx.interrupt()
        if ctx.superstep == 3:
            ctx.vote_to_halt()

    gp.agents.run([Vertex(name) for name in asks], compute, store=opened(), run_id="run")
    answers = {}
    # At first "a" has completed in the held superstep, and later in a committed one.
    for vertex, waiting in (("a", {"late": None}), ("late", {"b": None}), ("b", {})):
        answers[vertex] = f"to {vertex}"
        for _ in range(2):
            assert gp.agents.resume(opened(), "run", compute, answers=answers).interrupts == waiting
        for wrong in ({"a": "another"}, {"nobody": "to a"}):
            with pytest.raises(ArgumentError, match="is not waiting for an answer"):
                gp.agents.resume(opened(), "run", compute, answers=wrong)
    assert gp.agents.state_at(opened(), "run").values == answers


def test_a_second_answer_to_a_question_is_refused(opened: Open) -> None:
    gp.agents.run([Vertex("a"), Vertex("b")], echo, store=opened(), run_id="run")
    with gp.agents.reopen(opened(), "run", echo) as agents:
        opened().answer("run", 0, encode("a"), 0, encode("somebody else's"))
        with pytest.raises(ArgumentError, match="has an answer"):
            agents.answer("a", "mine")


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
    other = gp.agents.reopen(opened(), "run", echo, takeover=True)  # the first run is never closed
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
