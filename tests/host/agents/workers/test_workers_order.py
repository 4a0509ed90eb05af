"""A worker commits a superstep before it computes the next one, whatever compute functions do to their event loop."""

from __future__ import annotations

from typing import Any

import pytest

import gpu_pregel.agents as agents
from gpu_pregel.agents import Event, RetryPolicy, Vertex
from gpu_pregel.errors import AgentError
from gpu_pregel.host.agents.records import NO_CHANGE, Batch, VertexData
from gpu_pregel.host.agents.workers import pipes
from gpu_pregel.host.agents.workers.channel import Channel
from gpu_pregel.host.agents.workers.executor import Executor
from tests.agents import ONCE, ONE_WORKER, WORKERS, values
from tests.host.agents.workers.worker_programs import counting, partition_options

pytestmark = pytest.mark.usefixtures("one_run_id")


def spoil(how: str) -> Any:
    """Return a function whose vertex "bad" disturbs the event loop in superstep 1, when the others have ended.

    All vertices count the supersteps that they have seen in their values.
    """

    async def compute(ctx: Any) -> None:
        import asyncio

        if ctx.vertex_id == "bad":
            await asyncio.sleep(0.01)
        ctx.value = ctx.value + 1
        if ctx.superstep == 4:
            ctx.vote_to_halt()
        if ctx.vertex_id == "bad" and ctx.superstep == 1:
            disturb(asyncio)

    def disturb(asyncio: Any) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        if how == "cancels itself":
            task.cancel()
        elif how == "cancels all":
            for one in asyncio.all_tasks():
                one.cancel()
        elif how == "stops the loop":
            loop.stop()

    return compute


@WORKERS
@pytest.mark.parametrize("how", ["cancels itself", "cancels all", "stops the loop"])
def test_an_attempt_that_disturbs_its_event_loop_fails_alone(how: str, workers: int) -> None:
    names = ["a", "b", "c", "bad"]
    result = agents.run(
        [Vertex(name, 0) for name in names], spoil(how), workers=workers, retry=ONCE, on_failure="continue"
    )
    assert {name: one.superstep for name, one in result.failed.items()} == {"bad": 1}
    assert result.status == "partial"
    values(result, {"a": 5, "b": 5, "c": 5, "bad": 1})


@ONE_WORKER
def test_an_attempt_cannot_cancel_a_running_one_of_another_vertex(workers: int) -> None:
    async def compute(ctx: Any) -> None:
        import asyncio

        if ctx.vertex_id == "bad":
            await asyncio.sleep(0.05)
            for one in asyncio.all_tasks():
                one.cancel()
        await asyncio.sleep(0.2)
        ctx.value = "done"
        ctx.vote_to_halt()

    names = ["a", "b", "c", "bad"]
    result = agents.run([Vertex(name) for name in names], compute, workers=workers, retry=ONCE, on_failure="continue")
    values(result, {"a": "done", "b": "done", "c": "done", "bad": None})
    assert list(result.failed) == ["bad"]


def test_a_worker_that_dies_just_after_an_attempt_charges_its_vertex() -> None:
    """It dies before it has sent the record, three times in succession."""

    async def compute(ctx: Any) -> None:
        import asyncio
        import os

        if ctx.superstep == 1:
            asyncio.get_running_loop().call_soon(os._exit, 3)
        ctx.value = ctx.value + 1
        if ctx.superstep == 2:
            ctx.vote_to_halt()

    events: list[Event] = []
    policy = RetryPolicy(attempts=3, wait=0)
    result = agents.run([Vertex(0, 0)], compute, workers=1, retry=policy, on_failure="continue", observer=events.append)
    assert any(event.kind == "death" for event in events)
    if result.failed:
        assert (result.failed[0].kind, result.values) == ("death", {0: 1})
    else:  # a busy machine: the record was sent within the millisecond
        assert result.values == {0: 3}


@pytest.mark.parametrize("kind", ["ordinary", "async"])
@pytest.mark.parametrize("lost", [1, 3])
def test_a_worker_that_has_lost_a_commit_is_replaced(lost: int, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker refuses the batch of the next superstep, as its vertices are those of the last one."""
    count = counting(5)

    async def count_on_loop(ctx: Any) -> None:
        count(ctx)

    compute = count if kind == "ordinary" else count_on_loop
    commits = 0
    add = Channel._add

    def lossy(self: Channel, kind: int, content: bytes) -> None:
        nonlocal commits
        commits += kind == pipes.COMMIT
        if kind != pipes.COMMIT or commits != lost:
            add(self, kind, content)

    expected = agents.run([Vertex(k, 0) for k in range(6)], count)
    monkeypatch.setattr(Channel, "_add", lossy)
    events: list[Event] = []
    result = agents.run([Vertex(k, 0) for k in range(6)], compute, workers=1, observer=events.append)
    values(result, dict(expected.values))
    assert [event.superstep for event in events if event.kind == "death"] == [lost]
    assert not result.failed


def test_an_executor_refuses_a_batch_of_another_superstep() -> None:
    executor = Executor(partition_options(lambda ctx: ctx.vote_to_halt()))
    executor.load({b"a": VertexData(b"", ())})
    executor.commit(6, NO_CHANGE)
    executor.commit(6, NO_CHANGE)  # a repetition
    for step in (6, 8):
        with pytest.raises(AgentError, match=rf"superstep {step} .* superstep 7"):
            executor.execute(Batch(step, 1, "compute", {}, []), print)
    with pytest.raises(AgentError, match=r"superstep 8 .* superstep 7"):
        executor.commit(8, NO_CHANGE)


def test_a_worker_refuses_the_batch_of_another_generation(monkeypatch: pytest.MonkeyPatch) -> None:
    pack_batch = pipes.pack_batch

    def pack_for_another(generation: int, batch: Batch) -> bytes:
        is_wrong = batch.step == 1 and generation == 0
        return pack_batch(generation + is_wrong, batch)

    monkeypatch.setattr(pipes, "pack_batch", pack_for_another)
    events: list[Event] = []
    result = agents.run([Vertex(k, 0) for k in range(6)], counting(5), workers=1, observer=events.append)
    assert [event.superstep for event in events if event.kind == "death"] == [1]
    assert not result.failed
    monkeypatch.undo()
    values(result, dict(agents.run([Vertex(k, 0) for k in range(6)], counting(5)).values))
