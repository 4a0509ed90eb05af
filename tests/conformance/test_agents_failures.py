"""Failures, holds, retries and interrupts with any number of workers.

Compute functions count their calls by marks in a folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gpu_pregel.agents as agents
from gpu_pregel.agents import RetryPolicy, Vertex
from gpu_pregel.errors import AgentsFailedError, ArgumentError
from tests.agents import FEW, MORE_WORKERS, ONCE, PROCESSES, WITHOUT_WAIT, WORKERS, check, leave_mark, marks, values


@MORE_WORKERS
def test_only_failed_vertices_are_retried_with_the_same_input(workers: int, tmp_path: Path) -> None:
    folder, repaired = tmp_path / "marks", tmp_path
    folder.mkdir()
    leave, where = leave_mark(str(folder)), str(repaired)

    def compute(ctx: Any) -> None:
        import os

        if ctx.superstep == 0:
            for target in range(6):
                ctx.send(target, ctx.vertex_id)
            return
        leave(f"{ctx.vertex_id} {ctx.attempt} {ctx.messages} {ctx.value}")
        ctx.send(0, "lost, where the attempt fails")
        ctx.value = "lost too"
        ctx.messages.clear()
        if ctx.superstep == 1:
            if ctx.vertex_id in (2, 4) and not os.path.exists(f"{where}/{ctx.vertex_id}"):
                raise OSError(f"no file for {ctx.vertex_id}")
            ctx.value = ctx.vertex_id * 10
        ctx.vote_to_halt()

    inbox = [0, 1, 2, 3, 4, 5]
    begun = [f"{k} 1 {inbox} None" for k in range(6)]
    with agents.start([Vertex(k) for k in range(6)], compute, workers=workers, retry=ONCE, max_supersteps=2) as run:
        assert run.step()
        assert not run.step()
        result = run.result()
        assert (result.status, result.superstep, sorted(result.failed)) == ("failed", 1, [2, 4])
        assert {(one.superstep, one.kind, one.type) for one in result.failed.values()} == {(1, "exception", "OSError")}
        assert result.failed[4].text == "no file for 4"
        values(result, dict.fromkeys(range(6)))
        assert marks(folder) == begun

        assert not run.step()  # no vertex was retried
        assert marks(folder) == begun
        (repaired / "2").touch()
        (repaired / "4").touch()
        run.retry([4])
        assert not run.step()
        assert sorted(run.result().failed) == [2]
        assert marks(folder) == sorted([*begun, begun[4]])
        run.retry()
        assert not run.step()
        assert marks(folder) == sorted([*begun, begun[4], begun[2]])
        assert run.status == "max_supersteps"  # messages are pending
        check(run.result(), *((k, k * 10, [], True) for k in range(6)))
        assert not run.result().failed


@WORKERS
def test_failures_and_interrupts_in_one_superstep(workers: int, tmp_path: Path) -> None:
    folder, repaired = tmp_path / "marks", tmp_path / "repaired"
    folder.mkdir()
    leave, where = leave_mark(str(folder)), str(repaired)

    def compute(ctx: Any) -> None:
        import os

        leave(ctx.vertex_id)
        ctx.send("fine", ctx.vertex_id)
        ctx.aggregate("count", 1)
        if ctx.superstep == 0:
            return
        ctx.vote_to_halt()
        if ctx.vertex_id == "fails" and not os.path.exists(where):
            raise ValueError("broken")
        if ctx.vertex_id.startswith("asks"):
            first = ctx.interrupt({"ask": ctx.vertex_id})
            ctx.value = (first, ctx.interrupt(("and", first)))
            return
        ctx.value = (sorted(ctx.messages), ctx.aggregated("count"))

    vertices = [Vertex(name) for name in ("asks 1", "asks 2", "fails", "fine")]
    with agents.start(
        vertices,
        compute,
        workers=workers,
        retry=ONCE,
        aggregators={"count": "sum"},
        max_supersteps=2,
        on_limit="return",
    ) as run:
        assert run.step()
        assert not run.step()
        result = run.result()
        assert (result.status, list(result.failed)) == ("failed", ["fails"])
        assert result.interrupts == {"asks 1": {"ask": "asks 1"}, "asks 2": {"ask": "asks 2"}}
        assert marks(folder) == sorted(["asks 1", "asks 2", "fails", "fine"] * 2)

        run.answer("asks 2", 2)
        assert not run.step()
        assert run.status == "failed"
        assert run.result().interrupts == {"asks 1": {"ask": "asks 1"}, "asks 2": ("and", 2)}
        repaired.touch()
        run.retry(["fails"])
        assert not run.step()
        assert (run.status, run.result().failed) == ("interrupted", {})
        run.answer("asks 1", 1)
        assert not run.step()
        run.answer("asks 1", [1])
        run.answer("asks 2", [2])
        with pytest.raises(ArgumentError, match="vertex 'asks 2' is not waiting for an answer"):
            run.answer("asks 2", "again")
        assert not run.step()
        assert run.result().aggregates == {"count": 4}
        assert marks(folder) == sorted(["asks 1"] * 4 + ["asks 2"] * 4 + ["fails"] * 3 + ["fine"] * 2)
        values(
            run.result(),
            {
                "asks 1": (1, [1]),
                "asks 2": (2, [2]),
                "fails": ([], 4),
                "fine": (["asks 1", "asks 2", "fails", "fine"], 4),
            },
        )
        assert run.result().trace[1]["messages"] == 4


@WORKERS
def test_compute_cannot_catch_an_interrupt(workers: int) -> None:
    def compute(ctx: Any) -> None:
        try:
            ctx.value = ctx.interrupt("first")
            ctx.value = (ctx.value, ctx.interrupt("second"))
        except BaseException:
            ctx.value = "caught"
        ctx.send(0, "said")
        ctx.vote_to_halt()

    with agents.start([Vertex(0)], compute, workers=workers, max_supersteps=1) as run:
        assert not run.step()
        assert run.result().interrupts == {0: "first"}
        run.answer(0, 1)
        assert not run.step()
        assert run.result().interrupts == {0: "second"}
        run.answer(0, 2)
        assert not run.step()
        values(run.result(), {0: (1, 2)})


@WORKERS
def test_interrupts_of_async_functions(workers: int) -> None:
    """Two tasks of an attempt interrupt it at the same time: answers are in the order of the tasks."""

    async def compute(ctx: Any) -> None:
        import asyncio

        async def ask(what: str) -> Any:
            await asyncio.sleep(0)
            return ctx.interrupt(what)

        ctx.value = [ctx.attempt, *await asyncio.gather(ask("a"), ask("b"))]
        ctx.vote_to_halt()

    with agents.start([Vertex(k) for k in range(3)], compute, workers=workers) as run:
        assert not run.step()
        assert run.result().interrupts == dict.fromkeys(range(3), "a")
        for k in range(3):
            run.answer(k, k)
        assert not run.step()
        assert run.result().interrupts == dict.fromkeys(range(3), "b")
        for k in range(3):
            run.answer(k, -k)
        assert not run.step()
        values(run.result(), {k: [1, k, -k] for k in range(3)})  # an interrupted attempt is not charged


@WORKERS
def test_attempts_are_counted_and_a_retry_resets_the_count(workers: int, tmp_path: Path) -> None:
    leave = leave_mark(str(tmp_path))

    def compute(ctx: Any) -> None:
        leave(f"{ctx.vertex_id} {ctx.attempt}")
        if ctx.attempt <= ctx.vertex_id:
            raise ValueError(ctx.attempt)
        ctx.value = ctx.attempt
        ctx.vote_to_halt()

    vertices = [Vertex(k) for k in (0, 1, 2, 9)]
    with agents.start(vertices, compute, workers=workers, retry=WITHOUT_WAIT) as run:
        assert not run.step()
        once = ["0 1", "1 1", "1 2", "2 1", "2 2", "2 3"]
        assert marks(tmp_path) == sorted([*once, "9 1", "9 2", "9 3"])
        assert run.result().failed[9].text == "3"
        run.retry()
        assert not run.step()
        assert marks(tmp_path) == sorted([*once, *["9 1", "9 2", "9 3"] * 2])


@FEW
def test_only_exceptions_of_the_policy_are_retried(workers: int, tmp_path: Path) -> None:
    leave = leave_mark(str(tmp_path))

    class OursError(Exception):
        pass

    class MoreError(OursError):
        pass

    def compute(ctx: Any) -> None:
        leave(f"{ctx.vertex_id}")
        raise {"ours": OursError, "more": MoreError, "other": ValueError, "late": TimeoutError}[ctx.vertex_id]

    policy = RetryPolicy(attempts=3, wait=0, exceptions=(OursError,))
    vertices = [Vertex(name) for name in ("ours", "more", "other", "late")]
    result = agents.run(vertices, compute, workers=workers, retry=policy, on_failure="continue")
    assert result.status == "partial"
    assert marks(tmp_path) == sorted(["ours"] * 3 + ["more"] * 3 + ["other"] + ["late"] * 3)


@WORKERS
def test_continue_without_failed_vertices(workers: int) -> None:
    """A failed vertex keeps its value, sends nothing, is halted, and is activated by a later message."""

    def compute(ctx: Any) -> None:
        if ctx.superstep == 1 and ctx.vertex_id == "b":
            ctx.value = "spoilt"
            ctx.send("a", "lost")
            ctx.aggregate("count", 1)
            ctx.remove_vertex("a")
            raise KeyError("gone")
        ctx.value = [*ctx.value, ctx.superstep, *ctx.messages]
        ctx.aggregate("count", 1)
        if ctx.superstep == 0:
            ctx.send("b", f"input of {ctx.vertex_id}")
        elif ctx.vertex_id == "a" and ctx.superstep == 2:
            ctx.send("b", "wake")
        if ctx.superstep >= 2:
            ctx.vote_to_halt()

    vertices = [Vertex("a", []), Vertex("b", [])]
    result = agents.run(
        vertices, compute, workers=workers, retry=ONCE, on_failure="continue", aggregators={"count": "count"}
    )
    assert (result.status, result.superstep) == ("partial", 4)
    check(result, ("a", [0, 1, 2], [], True), ("b", [0, 3, "wake"], [], True))
    assert [row["failed"] for row in result.trace] == [0, 1, 0, 0]
    [(vertex, failed)] = result.failed.items()
    assert (vertex, failed[:4]) == ("b", (1, "exception", "KeyError", "'gone'"))
    assert failed.messages == ["input of a", "input of b"]


@WORKERS
def test_on_failure_may_be_a_function(workers: int) -> None:
    """Three vertices fail: one is retried twice, then the superstep is held, then the run continues."""
    decisions: list[list[Any]] = []

    def compute(ctx: Any) -> None:
        if ctx.vertex_id:
            raise ValueError(f"of {ctx.vertex_id}")
        ctx.value = ctx.superstep
        ctx.vote_to_halt()

    def decide(failures: Any) -> Any:
        decisions.append(sorted((vertex, one.type, one.text) for vertex, one in failures.items()))
        return [[2], (2,), "raise", "continue"][len(decisions) - 1]

    three = [(k, "ValueError", f"of {k}") for k in (1, 2, 3)]
    with agents.start(
        [Vertex(k, "old") for k in range(4)], compute, workers=workers, retry=ONCE, on_failure=decide
    ) as run:
        assert not run.step()
        assert run.status == "failed"
        assert decisions == [three] * 3
        assert not run.step()
        assert (run.status, len(decisions)) == ("partial", 4)
        values(run.result(), {0: 0, 1: "old", 2: "old", 3: "old"})


@FEW
def test_all_failures_are_reported_together(workers: int) -> None:
    def compute(ctx: Any) -> None:
        raise ValueError(f"no {ctx.vertex_id}")

    with pytest.raises(AgentsFailedError, match=r"(?s)8 vertices failed in superstep 0.*no 0.*and 3 more") as caught:
        agents.run([Vertex(k) for k in range(8)], compute, workers=workers, retry=ONCE)
    failed = caught.value.result.failed
    assert {vertex: one.text for vertex, one in failed.items()} == {k: f"no {k}" for k in range(8)}
    assert all("raise ValueError" in one.traceback for one in failed.values())


@WORKERS
def test_workers_are_usable_after_errors_of_every_kind(workers: int) -> None:
    def compute(ctx: Any) -> None:
        kinds = [ValueError, SystemExit, GeneratorExit, RecursionError, MemoryError, BaseException, StopIteration]
        ctx.value = [*ctx.value, ctx.superstep]
        if ctx.superstep == 0:
            ctx.send(ctx.vertex_id, None)
            return
        if ctx.superstep <= 3 and ctx.vertex_id % 2:
            raise kinds[(ctx.vertex_id + ctx.superstep) % len(kinds)]("on purpose")
        if ctx.superstep < 3:
            ctx.send((ctx.vertex_id + 1) % 8, None)
        ctx.vote_to_halt()

    result = agents.run([Vertex(k, []) for k in range(8)], compute, workers=workers, retry=ONCE, on_failure="continue")
    assert (result.status, result.superstep) == ("partial", 3)
    check(result, *((k, [0] if k % 2 else [0, 1], [], True) for k in range(8)))
    assert sorted(result.failed) == [1, 3, 5, 7]


@PROCESSES
def test_a_keyboard_interrupt_raised_in_a_worker_is_an_exception(workers: int) -> None:
    """Workers do not receive interrupts from the terminal."""

    def compute(ctx: Any) -> None:
        if ctx.vertex_id == 1:
            raise KeyboardInterrupt("of compute")
        ctx.value = 1
        ctx.vote_to_halt()

    async def compute_too(ctx: Any) -> None:
        compute(ctx)

    for one in (compute, compute_too):
        result = agents.run([Vertex(k) for k in range(3)], one, workers=workers, retry=ONCE, on_failure="continue")
        failed = result.failed[1]
        assert (failed.kind, failed.type, failed.text) == ("exception", "KeyboardInterrupt", "of compute")
        values(result, {0: 1, 1: None, 2: 1})
