"""``on_failure="abort"``: the first failure ends its superstep, in every transport, and nothing is lost."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.agents import AgentResult, Context, RetryPolicy, Vertex
from gpu_pregel.errors import AgentsFailedError, ArgumentError
from tests.agents import ONCE

WAYS = [
    pytest.param({}, id="0 workers"),
    pytest.param({"threads": 4}, id="threads"),
    pytest.param({"workers": 1}, id="1 worker"),
    pytest.param({"workers": 2}, id="2 workers"),
    pytest.param({"max_concurrency": 4}, id="async, 0 workers"),
    pytest.param({"max_concurrency": 4, "workers": 1}, id="async, 1 worker"),
]
NAMES = ["1 done", "2 fail", "3 slow", "4 slow", "5 slow", "6 slow", "7 slow"]
SLOW = NAMES[2:]


def functions(folder: Path) -> dict[bool, Callable[[Context], Any]]:
    """An ordinary and an ``async`` function: the second vertex fails once the first is done, the others take long.

    They do not as soon as there is a file "mended".
    """

    def note(ctx: Context) -> None:
        with (folder / "log").open("a") as log:
            log.write(f"{ctx.vertex_id} {ctx.attempt}\n")

    def end(ctx: Context) -> None:
        ctx.value = f"{ctx.vertex_id}!"
        ctx.send_to_neighbors(ctx.vertex_id)
        ctx.vote_to_halt()
        (folder / ctx.vertex_id).touch()

    def receive(ctx: Context) -> None:
        ctx.value = ctx.messages
        ctx.vote_to_halt()

    def compute(ctx: Context) -> None:
        import time

        if ctx.superstep == 1:
            receive(ctx)
            return
        note(ctx)
        if not (folder / "mended").exists():
            if ctx.vertex_id == "2 fail":
                while not (folder / "1 done").exists():
                    time.sleep(0.002)
                time.sleep(0.05)
                raise RuntimeError("API rate limit")
            for _ in range(2000 if ctx.vertex_id != "1 done" else 0):
                time.sleep(0.01)
        end(ctx)

    async def compute_on_loop(ctx: Context) -> None:
        if ctx.superstep == 1:
            receive(ctx)
            return
        note(ctx)
        if not (folder / "mended").exists():
            if ctx.vertex_id == "2 fail":
                while not (folder / "1 done").exists():
                    await asyncio.sleep(0.002)
                await asyncio.sleep(0.05)
                raise RuntimeError("API rate limit")
            await asyncio.sleep(20 if ctx.vertex_id != "1 done" else 0)
        end(ctx)

    return {False: compute, True: compute_on_loop}


def vertices() -> list[Vertex]:
    return [Vertex(one, edges=["end"]) for one in NAMES] + [Vertex("end", halted=True)]


def check_held(result: AgentResult) -> None:
    assert (result.status, result.superstep) == ("failed", 0)
    assert list(result.failed) == ["2 fail"]
    assert result.failed["2 fail"].text == "API rate limit"
    assert set(result.cancelled) <= set(NAMES) - {"2 fail"}
    assert set(SLOW) <= set(result.cancelled)


def check_end(result: AgentResult) -> None:
    assert (result.status, result.cancelled, result.failed) == ("completed", [], {})
    assert result.values == {**{one: f"{one}!" for one in NAMES}, "end": NAMES}


@pytest.mark.parametrize("options", WAYS)
def test_the_first_failure_ends_the_superstep(options: dict[str, Any], tmp_path: Path) -> None:
    compute = functions(tmp_path)["max_concurrency" in options]
    begun = time.monotonic()
    with gp.agents.start(vertices(), compute, on_failure="abort", retry=ONCE, **options) as agents:
        assert not agents.step()
        assert time.monotonic() - begun < 12  # the others would take 20 seconds each
        check_held(agents.result())
        state: Any = agents.superstep_state
        assert {state[one].status for one in agents.result().cancelled} == {"pending"}
        assert {state[one].attempts for one in agents.result().cancelled} == {0}
        ended = set(NAMES) - set(agents.result().cancelled) - {"2 fail"}
        assert all(state[one].status == "completed" for one in ended)
        (tmp_path / "mended").touch()
        assert not agents.step()  # computes the cancelled ones; the failed one needs new attempts
        assert (agents.status, list(agents.result().failed), agents.result().cancelled) == ("failed", ["2 fail"], [])
        agents.retry()
        while agents.step():
            pass
        result = agents.result()
    check_end(result)
    attempts = Counter((tmp_path / "log").read_text().splitlines())
    assert set(attempts) == {f"{one} 1" for one in NAMES}  # nobody was charged
    assert attempts["2 fail 1"] == 2
    assert all(attempts[f"{one} 1"] == 1 for one in ended)


@pytest.mark.parametrize("options", WAYS)
def test_an_aborted_run_is_resumed(options: dict[str, Any], tmp_path: Path) -> None:
    compute = functions(tmp_path)["max_concurrency" in options]
    common: dict[str, Any] = {"on_failure": "abort", "retry": ONCE, **options}
    with gp.SQLiteStore(tmp_path / "runs.db") as store:
        with pytest.raises(AgentsFailedError, match=r"failed in superstep 0.*\n\d more cancelled") as caught:
            gp.agents.run(vertices(), compute, store=store, run_id="run", **common)
        check_held(caught.value.result)
        stored = gp.agents.state_at(store, "run")
        check_held(stored)
        assert stored.cancelled == sorted(caught.value.result.cancelled)
    (tmp_path / "mended").touch()
    with gp.SQLiteStore(tmp_path / "runs.db") as store:
        result = gp.agents.resume(store, "run", compute, retry_failed=True, **common)
        check_end(result)
        check_end(gp.agents.state_at(store, "run"))


@pytest.mark.parametrize("options", WAYS)
def test_an_aborted_run_continues_from_checkpoint_data(options: dict[str, Any], tmp_path: Path) -> None:
    compute = functions(tmp_path)["max_concurrency" in options]
    common: dict[str, Any] = {"on_failure": "abort", "retry": ONCE, **options}
    with gp.agents.start(vertices(), compute, **common) as agents:
        agents.step()
        data = agents.checkpoint_data()
    (tmp_path / "mended").touch()
    with gp.agents.start(data, compute, **common) as agents:
        agents.retry()
        while agents.step():
            pass
        check_end(agents.result())


@pytest.mark.parametrize("options", WAYS)
def test_attempts_that_are_left_come_first(options: dict[str, Any]) -> None:
    def flaky(ctx: Context) -> None:
        if ctx.attempt < 3:
            raise TimeoutError("later")
        ctx.vote_to_halt()

    async def flaky_on_loop(ctx: Context) -> None:
        flaky(ctx)

    compute: Any = flaky_on_loop if "max_concurrency" in options else flaky
    retry = RetryPolicy(attempts=3, wait=0)
    result = gp.agents.run([Vertex(k) for k in range(5)], compute, on_failure="abort", retry=retry, **options)
    assert (result.status, result.cancelled, result.trace[0]["retries"]) == ("completed", [], 10)


@pytest.mark.parametrize("options", WAYS)
def test_a_vertex_that_waits_for_its_next_attempt_is_cancelled_with_it(options: dict[str, Any], tmp_path: Path) -> None:
    folder = tmp_path

    def compute(ctx: Context) -> None:
        import time

        if ctx.vertex_id == "waits" and ctx.attempt == 1:
            (folder / "failed once").touch()
            raise TimeoutError("later")
        while not (folder / "failed once").exists():
            time.sleep(0.002)
        if ctx.vertex_id == "xfails" and not (folder / "mended").exists():
            time.sleep(0.05)
            raise gp.errors.AttemptError("for good", retryable=False)
        ctx.value = ctx.attempt
        ctx.vote_to_halt()

    async def compute_on_loop(ctx: Context) -> None:
        if ctx.vertex_id == "xfails":
            while not (folder / "failed once").exists():
                await asyncio.sleep(0.002)
        compute(ctx)

    function: Any = compute_on_loop if "max_concurrency" in options else compute
    retry = RetryPolicy(attempts=2, wait=1.0, jitter=0)
    names = [Vertex("waits"), Vertex("xfails")]
    with gp.agents.start(names, function, on_failure="abort", retry=retry, **options) as agents:
        agents.step()
        assert (agents.result().cancelled, list(agents.result().failed)) == (["waits"], ["xfails"])
        state: Any = agents.superstep_state
        assert (state["waits"].status, state["waits"].attempts, state.retryable) == ("failed", 1, ["waits"])
        (folder / "mended").touch()
        agents.retry()
        while agents.step():
            pass
        assert agents.result().values == {"waits": 2, "xfails": 1}


@pytest.mark.parametrize("options", WAYS)
def test_on_an_event_loop(options: dict[str, Any], tmp_path: Path) -> None:
    compute = functions(tmp_path)["max_concurrency" in options]

    async def run() -> AgentResult:
        with pytest.raises(AgentsFailedError) as caught:
            await gp.agents.arun(vertices(), compute, on_failure="abort", retry=ONCE, **options)
        result = caught.value.result
        assert isinstance(result, AgentResult)
        return result

    begun = time.monotonic()
    check_held(asyncio.run(run()))
    assert time.monotonic() - begun < 12


def test_async_functions_see_the_cancellation_and_may_complete() -> None:
    seen: list[str] = []

    async def compute(ctx: Context) -> None:
        ctx.vote_to_halt()
        if ctx.vertex_id == "fails":
            await asyncio.sleep(0.05)
            raise ValueError("no")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append(ctx.vertex_id)
            if ctx.vertex_id == "cleans up":
                raise
            if ctx.vertex_id == "ignores it":
                await asyncio.sleep(60)
        ctx.value = "completed"

    names = ["cleans up", "completes", "fails", "ignores it"]
    options: dict[str, Any] = {"on_failure": "abort", "retry": ONCE}
    with gp.agents.start([Vertex(one) for one in names], compute, **options) as agents:
        agents.step()
        assert sorted(seen) == ["cleans up", "completes", "ignores it"]
        assert agents.result().cancelled == ["cleans up", "ignores it"]
        state: Any = agents.superstep_state
        assert state.completed_results()[0]["completes"].value == "completed"


def test_what_an_abandoned_thread_does_has_no_effect(tmp_path: Path) -> None:
    import threading

    released, ended = threading.Event(), threading.Event()

    def compute(ctx: Context) -> None:
        ctx.vote_to_halt()
        if ctx.vertex_id == "fails" and not released.is_set():
            time.sleep(0.05)
            raise ValueError("no")
        if ctx.vertex_id == "slow" and not released.is_set():
            released.wait()
            try:
                ctx.value = "late"
                ctx.send("fails", "late")
            finally:
                ended.set()
        else:
            ctx.value = "in time"

    options: dict[str, Any] = {"on_failure": "abort", "retry": ONCE, "threads": 2}
    with gp.agents.start([Vertex("fails"), Vertex("slow")], compute, **options) as agents:
        agents.step()
        assert agents.result().cancelled == ["slow"]
        released.set()
        ended.wait()
        agents.retry()
        while agents.step():
            pass
        assert agents.result().values == {"fails": "in time", "slow": "in time"}
        assert len(agents.result().trace) == 1


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_a_refused_message_aborts_too(workers: int) -> None:
    def compute(ctx: Context) -> None:
        if ctx.vertex_id == "a":
            ctx.send("nobody", 1)
        ctx.vote_to_halt()

    with gp.agents.start(
        [Vertex("a"), Vertex("b")], compute, on_failure="abort", workers=workers, retry=ONCE
    ) as agents:
        assert not agents.step()
        assert (agents.status, list(agents.result().failed), agents.result().cancelled) == ("failed", ["a"], [])


def test_many_aborts_do_not_exhaust_a_worker(tmp_path: Path) -> None:
    folder = tmp_path

    def compute(ctx: Context) -> None:
        import time

        if ctx.vertex_id == "a fail" and not (folder / "mended").exists():
            raise ValueError("no")
        if ctx.vertex_id == "b slow" and not (folder / "mended").exists():
            time.sleep(10)
        ctx.vote_to_halt()

    with gp.agents.start(
        [Vertex("a fail"), Vertex("b slow")], compute, on_failure="abort", workers=1, retry=ONCE
    ) as agents:
        for _ in range(5):
            agents.retry(["a fail"] if "a fail" in agents.result().failed else [])
            agents.step()
            assert (list(agents.result().failed), agents.result().cancelled) == (["a fail"], ["b slow"])
        (folder / "mended").touch()
        agents.retry()
        while agents.step():
            pass
        assert agents.status == "completed"


def test_a_wrong_name_is_refused() -> None:
    with pytest.raises(ArgumentError, match="on_failure must be 'raise', 'continue' or 'abort'"):
        gp.agents.run([Vertex("a")], lambda ctx: None, on_failure="stop")
