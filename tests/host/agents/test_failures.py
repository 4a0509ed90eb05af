"""Failures of vertices: retries with the same input, holds, interrupts and answers, and runs that continue."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import AgentsFailedError, ArgumentError

Vertex = gp.agents.Vertex
WITHOUT_WAIT = gp.agents.RetryPolicy(attempts=3, wait=0)
ONCE = gp.agents.RetryPolicy(attempts=1)


def test_a_retry_has_the_same_input() -> None:
    seen: list[Any] = []

    def compute(ctx: Any) -> None:
        if ctx.superstep == 0:
            ctx.send("b", ctx.vertex_id)
        elif ctx.vertex_id == "b":
            seen.append((ctx.attempt, list(ctx.messages), ctx.value))
            ctx.messages.clear()
            ctx.value = "spoilt"
            ctx.send("a", "never sent by a failed attempt")
            if ctx.attempt < 3:
                raise ValueError("not yet")
            ctx.value = "done"
        else:
            ctx.value = ctx.messages
        ctx.vote_to_halt()

    result = gp.agents.run([Vertex("a"), Vertex("b", 7)], compute, retry=WITHOUT_WAIT)
    assert seen == [(attempt, ["a", "b"], 7) for attempt in (1, 2, 3)]
    assert result.values == {"a": ["never sent by a failed attempt"], "b": "done"}
    assert result.trace[1]["retries"] == 2


def test_failures_are_reported_together_and_siblings_keep_their_records() -> None:
    calls: list[Any] = []
    broken = {"b", "c"}

    def compute(ctx: Any) -> None:
        calls.append(ctx.vertex_id)
        if ctx.vertex_id in broken:
            raise RuntimeError(f"no {ctx.vertex_id}")
        ctx.value = 1
        ctx.vote_to_halt()

    vertices = [Vertex(name, 0) for name in "abcd"]
    with pytest.raises(AgentsFailedError, match=r"2 vertices failed in superstep 0, which is held") as caught:
        gp.agents.run(vertices, compute, retry=ONCE)
    result = caught.value.result
    assert result.status == "failed"
    assert sorted(result.failed) == ["b", "c"]
    assert result.failed["b"].type == "RuntimeError"
    assert result.failed["b"].text == "no b"
    assert "raise RuntimeError" in result.failed["b"].traceback
    assert result.values == dict.fromkeys("abcd", 0)  # nothing is committed

    calls.clear()
    with gp.agents.start(vertices, compute, retry=ONCE) as agents:
        assert not agents.step()
        assert agents.status == "failed"
        broken.clear()
        agents.retry(["b"])
        assert not agents.step()  # c is still failed
        agents.retry()
        while agents.step():
            pass
        assert agents.result().values == dict.fromkeys("abcd", 1)
        assert agents.result().status == "completed"
    assert calls == ["a", "b", "c", "d", "b", "c"]


def test_a_single_failure_is_reported_in_the_singular() -> None:
    def fails(ctx: Any) -> None:
        raise OSError("no such place")

    with pytest.raises(AgentsFailedError, match=r"^1 vertex failed in superstep 0, which is held: vertex 'a': OSError"):
        gp.agents.run([Vertex("a")], fails, retry=gp.agents.RetryPolicy(attempts=1))


def test_continue_without_failed_vertices() -> None:
    def compute(ctx: Any) -> None:
        if ctx.superstep == 1 and ctx.vertex_id == "b":
            ctx.value = "spoilt"
            ctx.send("a", "lost")
            raise KeyError("gone")
        ctx.value = ctx.superstep
        if ctx.superstep == 0:
            ctx.send("b", "input")
        else:
            ctx.vote_to_halt()

    result = gp.agents.run([Vertex("a"), Vertex("b")], compute, retry=ONCE, on_failure="continue")
    assert result.status == "partial"
    assert result.values == {"a": 1, "b": 0}
    assert result.vertices["b"].halted
    failed = result.failed["b"]
    assert (failed.superstep, failed.kind, failed.type, failed.messages) == (1, "exception", "KeyError", ["input"] * 2)


def test_on_failure_may_be_a_function() -> None:
    decisions: list[Any] = []

    def compute(ctx: Any) -> None:
        if len(decisions) < 2:
            raise ValueError(ctx.vertex_id)
        ctx.vote_to_halt()

    def decide(failures: Any) -> Any:
        decisions.append({vertex: failure.text for vertex, failure in failures.items()})
        return list(failures)

    result = gp.agents.run([Vertex(1), Vertex(2)], compute, retry=ONCE, on_failure=decide)
    assert decisions == [{1: "1", 2: "2"}] * 2
    assert result.status == "completed"


def test_only_exceptions_of_the_policy_are_retried() -> None:
    attempts: list[int] = []

    def compute(ctx: Any) -> None:
        attempts.append(ctx.attempt)
        raise KeyError if ctx.attempt == 2 else OSError

    policy = gp.agents.RetryPolicy(attempts=5, wait=0, exceptions=(OSError,))
    with pytest.raises(AgentsFailedError):
        gp.agents.run([Vertex("a")], compute, retry=policy)
    assert attempts == [1, 2]


def test_interrupts_hold_the_superstep_until_they_are_answered() -> None:
    calls: list[Any] = []

    def compute(ctx: Any) -> None:
        calls.append((ctx.vertex_id, ctx.attempt))
        if ctx.vertex_id == "a":
            ctx.send("b", "lost with the attempt")
            first = ctx.interrupt({"ask": "name"})
            second = ctx.interrupt(f"age of {first}")
            ctx.value = (first, second)
        else:
            ctx.value = len(ctx.messages)
        ctx.vote_to_halt()

    with gp.agents.start([Vertex("a"), Vertex("b")], compute) as agents:
        assert not agents.step()
        assert agents.status == "interrupted"
        assert agents.result().interrupts == {"a": {"ask": "name"}}
        with pytest.raises(ArgumentError, match="vertex 'b' is not waiting for an answer"):
            agents.answer("b", 1)
        agents.answer("a", "Ada")
        assert not agents.step()
        assert agents.result().interrupts == {"a": "age of Ada"}
        agents.answer("a", 36)
        while agents.step():
            pass
        assert agents.result().values == {"a": ("Ada", 36), "b": 1}
    # b is computed once in superstep 0; a restarts after each answer, and no attempt is charged.
    assert calls == [("a", 1), ("b", 1), ("a", 1), ("a", 1), ("b", 1)]


def test_failures_and_interrupts_in_one_superstep() -> None:
    healed = False

    def compute(ctx: Any) -> None:
        if ctx.vertex_id == "fails" and not healed:
            raise ValueError("broken")
        if ctx.vertex_id == "asks":
            ctx.value = ctx.interrupt("?")
        ctx.vote_to_halt()

    with gp.agents.start([Vertex("asks"), Vertex("fails"), Vertex("fine")], compute, retry=ONCE) as agents:
        agents.step()
        result = agents.result()
        assert (result.status, list(result.failed), result.interrupts) == ("failed", ["fails"], {"asks": "?"})
        healed = True
        agents.retry()
        agents.step()
        assert agents.status == "interrupted"
        agents.answer("asks", "yes")
        while agents.step():
            pass
        assert agents.result().values == {"asks": "yes", "fails": None, "fine": None}


@pytest.mark.parametrize(
    ("fault", "kind", "text"),
    [
        (lambda ctx: 5, "exception", "compute must return None, but returned int"),
        (lambda ctx: setattr(ctx, "value", object()), "data", "the value"),
        (lambda ctx: ctx.send("a", lambda: 1), "data", "a message"),
        (lambda ctx: ctx.aggregate("none", 1), "exception", "no aggregator 'none'"),
        (lambda ctx: ctx.send(1.5, 1), "data", "id is of type float"),
    ],
)
def test_faults_of_compute_functions(fault: Any, kind: str, text: str) -> None:
    with pytest.raises(AgentsFailedError) as caught:
        gp.agents.run([Vertex("a")], lambda ctx: fault(ctx), retry=ONCE)
    failed = caught.value.result.failed["a"]
    assert text in failed.text
    assert kind in failed.kind


def test_limits_of_messages_and_outboxes() -> None:
    def compute(ctx: Any) -> None:
        for _ in range(10):
            ctx.send("a", b"x" * 100)

    with pytest.raises(AgentsFailedError, match="outbox has more than 500 bytes"):
        gp.agents.run([Vertex("a")], compute, retry=ONCE, max_outbox=500)
    with pytest.raises(AgentsFailedError, match="a message"):
        gp.agents.run([Vertex("a")], compute, retry=ONCE, max_message=50)


def test_exceptions_without_a_usable_text() -> None:
    class NastyError(Exception):
        def __str__(self) -> str:
            raise ZeroDivisionError

        def __reduce__(self) -> Any:
            raise TypeError

    def compute(ctx: Any) -> None:
        raise NastyError

    with pytest.raises(AgentsFailedError) as caught:
        gp.agents.run([Vertex("a")], compute, retry=ONCE)
    assert "NastyError" in caught.value.result.failed["a"].type
    assert "ZeroDivisionError" in caught.value.result.failed["a"].text


def test_observers_receive_all_events(caplog: pytest.LogCaptureFixture) -> None:
    events: list[Any] = []

    def compute(ctx: Any) -> None:
        if ctx.attempt == 1:
            raise ValueError("once")
        ctx.vote_to_halt()

    with caplog.at_level(logging.DEBUG, "gpu_pregel.agents"):
        gp.agents.run([Vertex("a")], compute, retry=WITHOUT_WAIT, observer=[events.append, gp.agents.LogObserver()])
    assert [event.kind for event in events] == ["superstep", "attempt", "retry", "attempt", "commit", "end"]
    assert events[2].vertex == "a"
    assert events[2].facts["text"] == "once"
    assert [record.levelname for record in caplog.records if "retry" in record.getMessage()] == ["WARNING"]


def test_policies_are_checked() -> None:
    for wrong in ({"attempts": 0}, {"wait": -1}, {"factor": 0.5}, {"jitter": 2}):
        with pytest.raises(ArgumentError, match=next(iter(wrong))):
            gp.agents.RetryPolicy(**wrong)
    assert [gp.agents.RetryPolicy(wait=1, jitter=0, max_wait=3).seconds_before(k) for k in (2, 3, 4)] == [1, 2, 3]


@pytest.mark.parametrize("workers", [0, 1])
def test_an_exception_that_cannot_be_examined_fails_only_its_vertex(workers: int) -> None:
    class EvasiveError(Exception):
        def __getattribute__(self, name: str) -> Any:
            raise SystemExit(3)

    def compute(ctx: Any) -> None:
        ctx.vote_to_halt()
        if ctx.vertex_id == "a":
            raise EvasiveError

    vertices = [Vertex("a"), Vertex("b")]
    result = gp.agents.run(vertices, compute, workers=workers, retry=ONCE, on_failure="continue")
    assert [(name, one.kind, one.text) for name, one in result.failed.items()] == [
        ("a", "exception", "<no description: SystemExit>")
    ]
