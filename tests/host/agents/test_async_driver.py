"""Runs on an event loop: their threads, connections that they keep, and cancellation at any time."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.agents import AgentResult, RetryPolicy, Vertex
from gpu_pregel.host.agents import async_driver
from gpu_pregel.host.agents.workers.transport import InProcessTransport
from tests.agents import ONCE, values


class NoThreads(ThreadPoolExecutor):
    """A default executor that nothing may use."""

    def submit(self, *args: Any, **options: Any) -> Future[Any]:
        raise AssertionError("the default executor was used")


@pytest.mark.parametrize("store, vertices", [(None, 1), (gp.MemoryStore(), 1), (None, 1000)])
def test_runs_side_by_side_compute_on_the_callers_loop(store: gp.MemoryStore | None, vertices: int) -> None:
    """All attempts of all runs wait for each other."""
    count = 2 if vertices > 1 else 40
    caller: ContextVar[str] = ContextVar("caller")

    async def main() -> list[AgentResult]:
        loop, all_here, missing = asyncio.get_running_loop(), asyncio.Event(), list(range(count * vertices))
        loop.set_default_executor(NoThreads())

        async def compute(ctx: Any) -> None:
            assert asyncio.get_running_loop() is loop
            missing.pop()
            if not missing:
                all_here.set()
            await all_here.wait()
            ctx.value = caller.get()
            ctx.vote_to_halt()

        caller.set("the test")
        given = [Vertex(k) for k in range(vertices)]
        runs = [gp.agents.arun(given, compute, store=store, max_concurrency=vertices, retry=ONCE) for _ in range(count)]
        return await asyncio.gather(*runs)

    for result in asyncio.run(main()):
        values(result, dict.fromkeys(range(vertices), "the test"))


async def _in_a_notebook(*args: Any, **options: Any) -> AgentResult:
    return gp.agents.run(*args, **options)


@pytest.mark.parametrize(
    "run",
    [
        gp.agents.run,
        lambda *args: asyncio.run(_in_a_notebook(*args)),
        lambda *args: asyncio.run(gp.agents.arun(*args)),
    ],
    ids=["run", "run in a notebook", "arun"],
)
def test_a_connection_is_kept_across_supersteps(run: Callable[..., AgentResult]) -> None:
    ours, theirs = socket.socketpair()
    kept: list[Any] = []

    async def compute(ctx: Any) -> None:
        if not kept:
            kept.extend(await asyncio.open_connection(sock=ours))
        reader, writer = kept
        writer.write(f"{ctx.superstep}\n".encode())
        await writer.drain()
        theirs.sendall(theirs.recv(100))
        ctx.value += (await reader.readline()).decode()
        if ctx.superstep == 2:
            writer.close()
            ctx.vote_to_halt()

    with ours, theirs:
        values(run([Vertex("a", "")], compute), {"a": "0\n1\n2\n"})


@pytest.mark.parametrize("workers", [0, 1])
def test_a_cancelled_run_ends_at_once_and_can_be_resumed(workers: int, tmp_path: Path) -> None:
    started, log = str(tmp_path / "started"), str(tmp_path / "log")
    store = gp.MemoryStore()

    async def compute(ctx: Any) -> None:
        import os

        with open(log, "a") as file:
            file.write(f"{ctx.vertex_id} ")
        while ctx.vertex_id == "quick" and not os.path.exists(started):
            await asyncio.sleep(0.001)
        if ctx.vertex_id == "slow" and not os.path.exists(started):
            os.close(os.open(started, os.O_CREAT))
            try:
                await asyncio.sleep(600)
            finally:
                with open(log, "a") as file:
                    file.write("cancelled ")
        ctx.value = "done"
        ctx.vote_to_halt()

    async def main() -> None:
        completed, loop = asyncio.Event(), asyncio.get_running_loop()

        def observe(event: gp.agents.Event) -> None:
            if event.kind == "attempt":
                loop.call_soon_threadsafe(completed.set)

        options: dict[str, Any] = {
            "workers": workers,
            "store": store,
            "run_id": "run",
            "retry": ONCE,
            "observer": observe,
        }
        vertices = [Vertex("quick"), Vertex("slow")]
        task = asyncio.create_task(gp.agents.arun(vertices, compute, **options))
        await completed.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}
        values(await gp.agents.aresume(store, "run", compute, workers=workers), {"quick": "done", "slow": "done"})

    asyncio.run(main())
    assert sorted(Path(log).read_text().split()) == [*["cancelled"] * (not workers), "quick", "slow", "slow"]


@pytest.mark.parametrize("stored", [False, True])
def test_a_cancelled_run_leaves_a_blocked_function(stored: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, release = threading.Event(), threading.Event()
    computed: list[str] = []
    taken: list[Any] = []
    take = InProcessTransport.take

    def noted(self: InProcessTransport) -> list[Any]:
        taken.append(self)
        return take(self)

    monkeypatch.setattr(InProcessTransport, "take", noted)
    store = gp.MemoryStore() if stored else None

    def compute(ctx: Any) -> None:
        computed.append(ctx.vertex_id)
        if not release.is_set():
            begun.set()
            if not release.wait(200):
                computed.append("nobody has released it")
        ctx.value = "done"
        ctx.vote_to_halt()

    async def main() -> None:
        vertices = [Vertex("a"), Vertex("b")]
        task = asyncio.create_task(gp.agents.arun(vertices, compute, store=store, run_id="run"))
        while not begun.is_set():
            await asyncio.sleep(0.001)
        (thread,) = [one for one in threading.enumerate() if one.name.startswith("arun") and one.is_alive()]
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        release.set()
        thread.join(200)
        assert computed == ["a"]
        assert taken == []  # the thread has left the master alone

    asyncio.run(main())
    if store is not None:
        assert [row.status for row in store.runs()] == ["stopped"]
        values(gp.agents.resume(store, "run", compute), {"a": "done", "b": "done"})
        assert computed == ["a", "a", "b"]


@pytest.mark.parametrize(("seconds", "expected"), [(1e9, 1), (-1.0, 20)])
def test_short_supersteps_follow_each_other_on_the_thread(
    seconds: float, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event loop hands over as rarely as the limit allows; here there is none, or one below a superstep."""
    handed: list[Any] = []
    submit = async_driver._CallThread.submit

    def counted(self: async_driver._CallThread, call: Callable[[], Any]) -> Future[Any]:
        handed.append(call)
        return submit(self, call)

    monkeypatch.setattr(async_driver._CallThread, "submit", counted)
    monkeypatch.setattr(async_driver, "_SECONDS_ON_THREAD", seconds)

    def compute(ctx: Any) -> None:
        ctx.value += 1
        if ctx.value == 20:
            ctx.vote_to_halt()

    result = asyncio.run(gp.agents.arun([Vertex("a", 0)], compute))
    assert (len(handed), len(result.trace)) == (expected, 20)
    values(result, {"a": 20})


def test_a_cancelled_run_of_short_supersteps_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the thread is, it computes no further superstep."""
    monkeypatch.setattr(async_driver, "_SECONDS_ON_THREAD", 1e9)
    computed: list[int] = []

    def compute(ctx: Any) -> None:
        computed.append(ctx.superstep)

    async def main() -> None:
        for count in range(20):
            task = asyncio.create_task(gp.agents.arun([Vertex("a", 0)], compute, max_supersteps=1 << 60))
            while len(computed) <= count * 10:
                await asyncio.sleep(0)
            (thread,) = [one for one in threading.enumerate() if one.name.startswith("arun") and one.is_alive()]
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            thread.join(200)
            assert not thread.is_alive()
            assert computed == list(range(len(computed)))
            computed.clear()

    asyncio.run(main())


def test_a_run_that_is_cancelled_while_it_starts_can_be_resumed() -> None:
    begun, release = threading.Event(), threading.Event()
    store = gp.MemoryStore()

    async def compute(ctx: Any) -> None:
        ctx.vote_to_halt()
        computed.append(ctx.vertex_id)

    def vertices() -> Iterator[Vertex]:
        begun.set()
        assert release.wait(200)
        yield Vertex("a")

    async def main() -> None:
        task = asyncio.create_task(gp.agents.arun(vertices(), compute, store=store, run_id="run"))
        while not begun.is_set():
            await asyncio.sleep(0.001)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0)
        release.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    computed: list[str] = []
    asyncio.run(main())
    assert computed == []
    assert gp.agents.resume(store, "run", compute).status == "completed"


def test_a_second_cancellation_does_not_cut_the_cleanup_short() -> None:
    ended: list[str] = []
    store = gp.MemoryStore()

    async def main() -> None:
        begun, cancelled, release = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def compute(ctx: Any) -> None:
            begun.set()
            try:
                await asyncio.sleep(600)
            finally:
                cancelled.set()
                await release.wait()
                ended.append(ctx.vertex_id)

        task = asyncio.create_task(gp.agents.arun([Vertex("a")], compute, store=store, run_id="run", timeout=600))
        await begun.wait()
        task.cancel()
        await cancelled.wait()
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        release.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended == ["a"]

    asyncio.run(main())
    assert [row.status for row in store.runs()] == ["stopped"]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_delayed_attempt_of_a_run_on_a_loop(workers: int) -> None:
    async def compute(ctx: Any) -> None:
        if ctx.attempt == 1:
            raise ValueError("the first attempt")
        ctx.value = ctx.attempt
        ctx.vote_to_halt()

    retry = RetryPolicy(attempts=2, wait=0.01)
    values(asyncio.run(gp.agents.arun([Vertex("a")], compute, workers=workers, retry=retry)), {"a": 2})


@pytest.mark.parametrize(("timeout", "workers"), [(None, 0), (60, 0), (60, 1)])
def test_attempts_that_code_on_the_loop_cancels_fail(timeout: float | None, workers: int) -> None:
    async def compute(ctx: Any) -> None:
        import asyncio

        ctx.vote_to_halt()
        if ctx.vertex_id == "cancels itself":
            asyncio.current_task().cancel()  # type: ignore[union-attr]
        elif ctx.vertex_id == "cancels all":
            await asyncio.sleep(0.01)
            for task in asyncio.all_tasks():
                task.cancel()
            await asyncio.sleep(0)
        elif ctx.vertex_id == "sleeps":
            await asyncio.sleep(0.05)
        ctx.value = "done"

    names = ["cancels all", "cancels itself", "fine", "sleeps", "waits for a place"]
    result = gp.agents.run(
        [Vertex(name) for name in names],
        compute,
        retry=ONCE,
        on_failure="continue",
        timeout=timeout,
        max_concurrency=2,
        workers=workers,
    )
    failure = result.failed["cancels itself"]
    assert (failure.type, failure.text) == ("CancelledError", "the attempt's task was cancelled")
    assert sorted(result.failed) == names[:2]
    values(result, {name: None if name in names[:2] else "done" for name in names})
