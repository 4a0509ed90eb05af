"""Worker processes compute the same results as one process, for all kinds of data, and leave nothing behind."""

from __future__ import annotations

import gc
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import gpu_pregel.agents as agents
from gpu_pregel.agents import RetryPolicy, Vertex
from gpu_pregel.errors import AgentError, AgentsFailedError, ArgumentError
from tests.agents import ONCE
from tests.host.agents.workers.worker_programs import (
    children,
    final_bytes,
    growth,
    is_alive,
    pagerank,
    running,
    tokens,
    wait_for,
)

pytestmark = pytest.mark.usefixtures("one_run_id")


def halt(ctx: Any) -> None:
    ctx.vote_to_halt()


@pytest.mark.parametrize("program", [pagerank, tokens, growth])
def test_equal_results_with_any_number_of_workers(program: Any) -> None:
    expected = final_bytes(agents.run(**program()))
    for workers in (1, 2, 5):
        assert final_bytes(agents.run(**program(), workers=workers)) == expected


def test_equal_results_of_async_functions() -> None:
    def program() -> dict[str, Any]:
        async def compute(ctx: Any) -> None:
            import asyncio

            await asyncio.sleep(0.001 * (hash(ctx.vertex_id) % 3))
            ctx.value = ctx.value + sum(ctx.messages)
            if ctx.superstep < 4:
                ctx.send_to_neighbors(ctx.vertex_id)
            ctx.vote_to_halt()

        return {"vertices": [Vertex(k, 0, [(k + 1) % 40, (k * 3) % 40]) for k in range(40)], "compute": compute}

    expected = final_bytes(agents.run(**program()))
    for workers, concurrency in ((1, 1), (2, 3), (2, 64)):
        assert final_bytes(agents.run(**program(), workers=workers, max_concurrency=concurrency)) == expected


def test_retries_start_while_other_attempts_run(tmp_path: Path) -> None:
    tried_again = tmp_path / "tried again"

    async def compute(ctx: Any) -> None:
        import asyncio

        if ctx.vertex_id == "slow":
            async with asyncio.timeout(200):
                while not tried_again.exists():
                    await asyncio.sleep(0.01)
        elif ctx.attempt == 1:
            raise OSError("try again")
        else:
            tried_again.touch()
        ctx.vote_to_halt()

    policy = RetryPolicy(attempts=2, wait=0.01)
    assert agents.run([Vertex("slow"), Vertex("quick")], compute, workers=1, retry=policy).status == "completed"


def test_large_messages_pass_in_both_directions() -> None:
    def compute(ctx: Any) -> None:
        if ctx.superstep == 0:
            ctx.send((ctx.vertex_id + 1) % 2, bytes([ctx.vertex_id + 1]) * 60_000_000)
        else:
            ctx.value = (len(ctx.messages[0]), ctx.messages[0][-1])
        ctx.vote_to_halt()

    result = agents.run([Vertex(0), Vertex(1)], compute, workers=2)
    assert result.values == {0: (60_000_000, 2), 1: (60_000_000, 1)}


def test_registered_types_and_arbitrary_weights() -> None:
    @dataclass
    class Offer:
        price: int

    agents.register(Offer, "an offer of a test")

    def compute(ctx: Any) -> None:
        if ctx.superstep == 0:
            ctx.send("b", Offer(3))
            ctx.add_edge("a", "b", {"since": (1, 2)})
        elif ctx.messages:
            ctx.value = [ctx.messages[0], Offer(4)]
        ctx.vote_to_halt()

    vertices = [Vertex("a", edges=[agents.Edge("b", [Offer(1)])]), Vertex("b", halted=True)]
    result = agents.run(vertices, compute, workers=2)
    assert result.values["b"] == [Offer(3), Offer(4)]
    assert [edge.weight for edge in result.vertices["a"].edges] == [[Offer(1)], {"since": (1, 2)}]


def test_exceptions_that_cannot_be_unpickled_are_reported() -> None:
    def compute(ctx: Any) -> None:
        class LocalError(Exception):
            pass

        class NoTextError(Exception):
            def __str__(self) -> str:
                raise ValueError("no text")

        class NoReduceError(Exception):
            def __reduce__(self) -> Any:
                raise TypeError("no pickle")

        class WrongTextError(Exception):
            def __str__(self) -> str:
                return 3  # type: ignore[return-value]

        kinds = [LocalError, NoTextError, NoReduceError, WrongTextError, SystemExit, GeneratorExit]
        raise kinds[ctx.vertex_id]("\udc80 of a test")

    with pytest.raises(AgentsFailedError) as caught:
        agents.run([Vertex(k) for k in range(6)], compute, workers=2, retry=ONCE)
    failed = caught.value.result.failed
    assert [one.type.rpartition(".")[2] for one in failed.values()] == [
        "LocalError", "NoTextError", "NoReduceError", "WrongTextError", "SystemExit", "GeneratorExit",
    ]  # fmt: skip
    assert failed[0].text == r"\udc80 of a test"
    assert "no text" in failed[1].text
    assert all("compute" in one.traceback for one in failed.values())


def test_values_that_cannot_be_encoded_fail_only_their_vertex() -> None:
    def compute(ctx: Any) -> None:
        if ctx.vertex_id == 1:
            ctx.value = {"here": [object()]}
        elif ctx.vertex_id == 2:
            ctx.send(0, lambda: None)
        else:
            ctx.value = "done"
        ctx.vote_to_halt()

    result = agents.run([Vertex(k) for k in range(4)], compute, workers=2, on_failure="continue")
    assert {key: one.kind for key, one in result.failed.items()} == {1: "data", 2: "data"}
    assert "here" in result.failed[1].text
    assert result.values[3] == "done"


def test_a_worker_is_usable_after_an_error() -> None:
    def compute(ctx: Any) -> None:
        import os

        if ctx.superstep == 0 and ctx.vertex_id == 0:
            raise ValueError
        ctx.value = os.getpid()
        if ctx.superstep == 0:
            ctx.send(1, 0)
        ctx.vote_to_halt()

    with agents.start([Vertex(0), Vertex(1)], compute, workers=1, on_failure="continue", retry=ONCE) as run:
        [pid] = running(run)
        while run.step():
            pass
        assert run.result().values == {0: None, 1: pid}


def test_functions_that_cannot_be_pickled_are_refused_before_work() -> None:
    lock = threading.Lock()

    def compute(ctx: Any) -> None:
        lock.acquire()

    with pytest.raises(ArgumentError, match=r"'compute' cannot be sent to worker processes.*workers=0"):
        agents.run([Vertex(0)], compute, workers=2)
    assert not children()


def test_functions_that_cannot_be_unpickled_are_refused_before_work() -> None:
    class Odd:
        def __reduce__(self) -> Any:
            return eval, ("1 / 0",)

    odd = Odd()

    def compute(ctx: Any) -> None:
        ctx.value = odd

    with pytest.raises(AgentError, match="ZeroDivisionError"):
        agents.start([Vertex(0)], compute, workers=2)
    assert not children()


def test_close_leaves_no_process_and_no_descriptor() -> None:
    def compute(ctx: Any) -> None:
        import subprocess

        ctx.value = subprocess.Popen(["sleep", "60"]).pid
        ctx.vote_to_halt()

    run = agents.start([Vertex(0), Vertex(1)], compute, workers=2)
    run.step()
    started = [*running(run), *run.result().values.values()]
    assert all(map(is_alive, started))
    run.stop()
    run.stop()
    wait_for(lambda: not any(map(is_alive, started)))
    assert not children()


def test_a_worker_outlives_the_thread_that_started_it() -> None:
    runs: list[agents.AgentRun] = []
    thread = threading.Thread(target=lambda: runs.append(agents.start([Vertex(0)], halt, workers=1)))
    thread.start()
    thread.join()
    before = running(runs[0])
    time.sleep(0.1)
    runs[0].step()
    assert running(runs[0]) == before
    runs[0].stop()


def test_garbage_collection_of_a_run_ends_its_workers() -> None:
    run = agents.start([Vertex(0)], halt, workers=2)
    pids = running(run)
    del run
    gc.collect()
    wait_for(lambda: not any(map(is_alive, pids)))
    assert not children()
