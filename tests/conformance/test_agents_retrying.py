"""Exceptions that say whether and when their attempt is retried, and runs that are started or resumed by one call."""

from __future__ import annotations

import asyncio
import pickle
import time
from collections.abc import Iterator
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.agents import Event, RetryPolicy, Vertex
from gpu_pregel.errors import (
    ArgumentError,
    ArgumentTypeError,
    AttemptError,
    CheckpointError,
    ClaimedError,
    RunExistsError,
    UnknownRunError,
)
from gpu_pregel.host.stores.store import Store
from tests.agents import FEW
from tests.conformance.agent_programs import COUNTING
from tests.stores import Open


@FEW
def test_the_exception_decides_about_the_next_attempt_and_the_policy_about_their_number(workers: int) -> None:
    from gpu_pregel.errors import AttemptError  # the function is pickled by value

    def compute(ctx: Any) -> None:
        if ctx.vertex_id == "never":
            raise AttemptError("closed", retryable=False)
        if ctx.vertex_id == "always":
            raise AttemptError("busy", retry_after=0)
        if ctx.attempt == 1:
            raise AttemptError("busy", retry_after=0.05)
        ctx.value = ctx.attempt
        ctx.vote_to_halt()

    result = gp.agents.run(
        [Vertex("never"), Vertex("always"), Vertex("later")],
        compute,
        workers=workers,
        on_failure="continue",
        retry=RetryPolicy(attempts=4, wait=1000, jitter=0, max_wait=1000, exceptions=(ValueError,)),
    )
    assert result.values == {"never": None, "always": None, "later": 2}
    assert {name: (one.type, one.text) for name, one in result.failed.items()} == {
        "never": ("AttemptError", "closed"),
        "always": ("AttemptError", "busy"),
    }
    assert result.trace[0]["retries"] == 3 + 1


def test_a_resumed_run_waits_for_the_next_attempt_as_well(opened: Open) -> None:
    times: list[float] = []

    async def compute(ctx: Any) -> None:
        times.append(time.time())
        if ctx.attempt == 1:
            raise AttemptError("busy", retry_after=2)
        ctx.value = ctx.attempt
        ctx.vote_to_halt()

    async def cut_short() -> None:
        loop, failed = asyncio.get_running_loop(), asyncio.Event()

        def observe(event: Event) -> None:
            if event.kind == "retry":
                loop.call_soon_threadsafe(failed.set)

        run = gp.agents.arun([Vertex("a")], compute, store=opened(), run_id="run", observer=observe)
        task = asyncio.create_task(run)
        await failed.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cut_short())
    assert len(times) == 1
    assert gp.agents.resume(opened(), "run", compute).values == {"a": 2}
    assert times[1] - times[0] >= 2


@pytest.mark.parametrize(
    ("options", "kind", "problem"),
    [
        ({"retry_after": -1}, ArgumentError, "retry_after=-1"),
        ({"retry_after": "1"}, ArgumentTypeError, "must be a number"),
        ({"retry_after": 1, "retryable": False}, ArgumentError, "retryable=False"),
        ({"retryable": 0}, ArgumentTypeError, "must be a bool"),
    ],
)
def test_contradictory_exceptions_are_refused(options: dict[str, Any], kind: type[Exception], problem: str) -> None:
    with pytest.raises(kind, match=problem):
        AttemptError("text", **options)


def test_the_exception_can_be_pickled() -> None:
    copy = pickle.loads(pickle.dumps(AttemptError("busy", retry_after=2.5)))
    assert (str(copy), copy.retryable, copy.retry_after) == ("busy", True, 2.5)


# Start or resume


def in_a_loop(vertices: Any, **options: Any) -> Any:
    return asyncio.run(gp.agents.astart_or_resume(vertices, **options))


@pytest.mark.parametrize("begin", [gp.agents.start_or_resume, in_a_loop])
def test_a_run_is_computed_once_however_often_it_is_started(opened: Open, begin: Any) -> None:
    def vertices() -> Iterator[Vertex]:
        read.append(1)
        yield Vertex("a", 0)

    read: list[int] = []
    options: dict[str, Any] = {**COUNTING, "run_id": "run"}
    with gp.agents.start(vertices(), **options, store=opened()) as agents:
        agents.step()
        with pytest.raises(ClaimedError):
            begin(vertices(), **options, store=opened())
    for _ in range(2):
        result = begin(vertices(), **options, store=opened())
        assert (result.status, result.values, result.superstep) == ("completed", {"a": 10}, 10)
    assert len(read) == 1
    assert begin(vertices(), **{**options, "run_id": "new"}, store=opened()).values == {"a": 10}


def test_a_run_that_another_program_begins_meanwhile_is_resumed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def find(run_id: str) -> None:
        monkeypatch.undo()
        gp.agents.run([Vertex("b", 5)], **COUNTING, store=store, run_id="run")
        raise UnknownRunError(run_id)

    monkeypatch.setattr(store, "run", find)
    result = gp.agents.start_or_resume([Vertex("a", 0)], **COUNTING, store=store, run_id="run")
    assert result.values == {"b": 10}


def test_a_cancelled_run_is_not_computed_again(opened: Open) -> None:
    computed: list[int] = []

    def compute(ctx: Any) -> None:
        computed.append(ctx.superstep)
        if ctx.superstep == 1:
            ctx.interrupt("continue?")

    options: dict[str, Any] = {"compute": compute, "run_id": "run"}
    assert gp.agents.start_or_resume([Vertex("a", 5)], **options, store=opened()).status == "interrupted"
    gp.agents.cancel(opened(), "run")
    for _ in range(2):
        result = gp.agents.start_or_resume([Vertex("a", 0)], **options, store=opened())
        assert (result.status, result.values, result.superstep) == ("cancelled", {"a": 5}, 1)
    row = opened().run("run")
    assert (row.status, row.lease, computed) == ("cancelled", 0, [0, 1])
    assert gp.agents.resume(opened(), **options).status == "interrupted"


def test_an_error_of_the_users_functions_is_no_sign_of_another_program(store: Store) -> None:
    def observer(event: Any) -> None:
        if store.run("run").epoch == 1:
            raise RunExistsError("of another store")

    with pytest.raises(RunExistsError, match="of another store"):
        gp.agents.start_or_resume([Vertex("a", 0)], **COUNTING, store=store, run_id="run", observer=observer)


def test_options_may_be_overridden_whether_or_not_the_run_exists(store: Store) -> None:
    options: dict[str, Any] = {**COUNTING, "store": store, "run_id": "run", "override": "on_failure"}
    for on_failure in ("continue", "raise"):
        result = gp.agents.start_or_resume([Vertex("a", 0)], **options, on_failure=on_failure)
        assert (result.status, result.values) == ("completed", {"a": 10})
    with pytest.raises(CheckpointError, match="was started with on_failure='raise'"):
        gp.agents.resume(store, "run", **COUNTING, on_failure="continue")


def test_start_or_resume_needs_a_store_and_an_id(store: Store) -> None:
    for options in ({"store": store}, {"run_id": "run"}):
        with pytest.raises(ArgumentError, match="store= and run_id=: pass both"):
            gp.agents.start_or_resume([Vertex("a")], **COUNTING, **options)
        with pytest.raises(ArgumentError, match="store= and run_id=: pass both"):
            in_a_loop([Vertex("a")], **COUNTING, **options)
