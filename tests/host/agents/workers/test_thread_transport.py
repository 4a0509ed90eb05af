"""Ordinary functions on threads of this process: side by side, and ended with the run."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from contextvars import ContextVar
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.agents import Event, Vertex
from gpu_pregel.errors import AgentsFailedError, ArgumentError
from gpu_pregel.host.agents.workers import thread_pool, thread_transport
from tests.agents import ONCE
from tests.host.agents.workers.worker_programs import wait_for

LONG = 20.0
"""Seconds after which a test fails instead of waiting for ever."""
variable: ContextVar[str] = ContextVar("variable", default="default")


def vertices(count: int) -> list[Vertex]:
    return [Vertex(k) for k in range(count)]


def test_attempts_run_side_by_side() -> None:
    barrier = threading.Barrier(12)

    def compute(ctx: Any) -> None:
        barrier.wait(LONG)
        ctx.vote_to_halt()

    assert gp.agents.run(vertices(12), compute, threads=12).status == "completed"


def test_attempts_run_side_by_side_beside_other_tasks_of_an_event_loop() -> None:
    barrier = threading.Barrier(5)
    loops: list[int] = []

    def compute(ctx: Any) -> None:
        barrier.wait(LONG)
        assert threading.get_ident() not in loops
        ctx.vote_to_halt()

    async def tick() -> None:
        loops.append(threading.get_ident())
        await asyncio.to_thread(barrier.wait, LONG)

    async def main() -> str:
        other = asyncio.create_task(tick())
        result = await gp.agents.arun(vertices(4), compute, threads=4)
        await other
        return result.status

    assert asyncio.run(main()) == "completed"


@pytest.mark.parametrize("threads", [1, 3])
def test_tasks_wait_for_a_free_thread_in_order(threads: int) -> None:
    lock = threading.Lock()
    started: list[int] = []
    running, most = 0, 0

    def compute(ctx: Any) -> None:
        nonlocal running, most
        with lock:
            started.append(ctx.vertex_id)
            running += 1
            most = max(most, running)
        threading.Event().wait(0.005)
        with lock:
            running -= 1
        ctx.vote_to_halt()

    gp.agents.run(vertices(20), compute, threads=threads)
    assert most == threads
    assert all(abs(vertex - place) < threads for place, vertex in enumerate(started))


def test_quick_vertices_that_become_slow_run_side_by_side() -> None:
    """The thread of the master computes those that were quick, and must not leave the others waiting."""
    barrier = threading.Barrier(6)

    def compute(ctx: Any) -> None:
        if ctx.superstep == 3:
            barrier.wait(LONG)
            ctx.vote_to_halt()

    assert gp.agents.run(vertices(6), compute, threads=8).superstep == 4


def test_a_single_vertex_is_computed_on_the_thread_of_the_caller() -> None:
    def compute(ctx: Any) -> None:
        ctx.value = (ctx.value or []) + [threading.get_ident()]
        if ctx.superstep == 1 or ctx.vertex_id == 1:
            ctx.vote_to_halt()

    def idents(**options: Any) -> dict[int, list[int]]:
        return gp.agents.run(vertices(2), compute, **options).values

    own = threading.get_ident()
    assert idents() == {0: [own, own], 1: [own]}
    found = idents(threads=2)
    assert found[0][1] == own
    assert own not in (found[0][0], *found[1])
    assert own not in idents(threads=2, timeout=LONG)[0]


def test_attempts_see_the_context_variables_of_the_caller_and_keep_theirs() -> None:
    def compute(ctx: Any) -> None:
        ctx.value = [*(ctx.value or []), variable.get()]
        variable.set("changed")
        if ctx.superstep == 1 or ctx.vertex_id == 1:
            ctx.vote_to_halt()

    before = variable.set("caller's")
    try:
        expected = {0: ["caller's"] * 2, 1: ["caller's"]}
        assert gp.agents.run(vertices(2), compute, threads=2).values == expected
        assert asyncio.run(gp.agents.arun(vertices(2), compute, threads=2)).values == expected
        assert variable.get() == "caller's"
    finally:
        variable.reset(before)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_exit_fails_only_its_attempt(error: type[BaseException]) -> None:
    def compute(ctx: Any) -> None:
        if ctx.vertex_id == 1:
            raise error("enough")
        ctx.value = "done"
        ctx.vote_to_halt()

    result = gp.agents.run(vertices(3), compute, threads=2, on_failure="continue")
    assert result.values == {0: "done", 1: None, 2: "done"}
    assert [(one.type, one.text) for one in result.failed.values()] == [(error.__name__, "enough")]


def test_an_exception_that_cannot_be_described_fails_its_attempt() -> None:
    class SilentError(KeyboardInterrupt):
        def __str__(self) -> str:
            raise KeyboardInterrupt

    def compute(ctx: Any) -> None:
        ctx.vote_to_halt()
        if ctx.vertex_id == 1:
            raise SilentError

    result = gp.agents.run(vertices(2), compute, threads=2, on_failure="continue", retry=ONCE)
    assert "SilentError" in result.failed[1].text


# Observers and the end of a run


def test_observers_are_called_by_one_thread_at_a_time() -> None:
    calling = threading.Lock()
    seen: list[Any] = []

    def observe(event: Event) -> None:
        assert calling.acquire(blocking=False)
        threading.Event().wait(0.001)
        if event.kind == "emit":
            seen.append((event.vertex, event.facts["sequence"]))
        calling.release()

    def compute(ctx: Any) -> None:
        for _ in range(5):
            ctx.emit(None)
        ctx.vote_to_halt()

    assert gp.agents.run(vertices(6), compute, threads=6, observer=observe).status == "completed"
    assert sorted(seen) == [(vertex, k) for vertex in range(6) for k in range(5)]
    assert all([k for one, k in seen if one == vertex] == list(range(5)) for vertex in range(6))


def test_the_end_of_a_run_does_not_wait_for_attempts() -> None:
    released, refused = threading.Event(), threading.Event()

    def compute(ctx: Any) -> None:
        released.wait(LONG)
        with pytest.raises(RuntimeError, match="has ended"):
            ctx.send(0, 1)
        with pytest.raises(RuntimeError, match="has ended"):
            ctx.emit(1)
        refused.set()

    async def main() -> None:
        running = asyncio.create_task(gp.agents.arun(vertices(2), compute, threads=2, observer=lambda event: None))
        await asyncio.sleep(0.05)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert not released.is_set()
        released.set()

    asyncio.run(main())
    assert refused.wait(LONG)


@pytest.mark.usefixtures("interrupts")
def test_the_process_ends_without_waiting_for_hanging_attempts() -> None:
    program = """
import os, signal, threading, time
import gpu_pregel as gp
running = threading.Semaphore(0)
def compute(ctx):
    running.release()
    threading.Event().wait()
def interrupt():
    running.acquire(), running.acquire()
    os.kill(os.getpid(), signal.SIGINT)
    while signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Thread(target=interrupt).start()
try:
    gp.agents.run([gp.agents.Vertex(0), gp.agents.Vertex(1)], compute, threads=2)
except KeyboardInterrupt:
    print("interrupted")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=LONG, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("interrupted\n", "", 0)


def test_a_run_continues_after_a_function_of_another_kind() -> None:
    """Between an ``async`` function and an ordinary one."""

    async def asking(ctx: Any) -> None:
        await asyncio.sleep(0)
        ctx.value = [*(ctx.value or []), "async"]

    def plain(ctx: Any) -> None:
        ctx.value = [*ctx.value, "plain"]
        if ctx.superstep == 3:
            ctx.vote_to_halt()

    def master(m: Any) -> None:
        m.use("plain" if m.superstep % 2 == 0 else "compute")

    options: dict[str, Any] = {"functions": {"plain": plain}, "master": master, "threads": 3}
    expected = dict.fromkeys(range(4), ["async", "plain"] * 2)
    assert gp.agents.run(vertices(4), asking, **options).values == expected
    assert asyncio.run(gp.agents.arun(vertices(4), asking, **options)).values == expected


def test_a_run_begins_in_an_attempt_of_another() -> None:
    def inner(ctx: Any) -> None:
        ctx.value = 1
        ctx.vote_to_halt()

    def outer(ctx: Any) -> None:
        ctx.value = sum(gp.agents.run(vertices(3), inner, threads=2).values.values())
        ctx.vote_to_halt()

    assert gp.agents.run(vertices(3), outer, threads=3).values == {0: 3, 1: 3, 2: 3}


# Threads and arguments


def test_idle_threads_are_used_again() -> None:
    def compute(ctx: Any) -> None:
        ctx.value = threading.get_ident()
        ctx.vote_to_halt()

    def idents() -> set[int]:
        return set(gp.agents.run(vertices(2), compute, threads=1).values.values())

    first = idents()
    wait_for(lambda: any(one.ident in first for one in thread_pool._idle))
    assert idents() <= {one.ident for one in threading.enumerate() if one.name == "gpu_pregel agents"}
    assert len(first) == 1


def test_an_idle_thread_ends_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_pool, "_IDLE_SECONDS", 0.001)
    monkeypatch.setattr(thread_pool, "_idle", [])
    called: list[threading.Thread] = []
    thread_pool.call_on_thread(lambda: called.append(threading.current_thread()))
    wait_for(lambda: called and not called[0].is_alive())
    assert thread_pool._idle == []


def test_a_run_needs_no_more_threads_than_the_system_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = 0

    def call_on_thread(job: Any) -> None:
        nonlocal begun
        begun += 1
        if begun > allowed:
            raise RuntimeError("can't start new thread")
        thread_pool.call_on_thread(job)

    def compute(ctx: Any) -> None:
        threading.Event().wait(0.002)
        ctx.vote_to_halt()

    monkeypatch.setattr(thread_transport, "call_on_thread", call_on_thread)
    allowed = 1
    assert gp.agents.run(vertices(6), compute, threads=6).status == "completed"
    assert begun > 1
    allowed = 0
    with pytest.raises(RuntimeError, match="can't start new thread"):
        gp.agents.run(vertices(6), compute, threads=6)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"threads": 2, "workers": 1}, "threads=2 are threads of this process, but workers=1 compute in others"),
        ({"threads": -1}, "threads must be from 0 to 1,024, not -1"),
        ({"threads": 1025}, "threads must be from 0 to 1,024, not 1,025"),
        ({"timeout": 1}, "pass workers=1 or threads=1, or make it async"),
        ({"threads": 2, "max_memory": 1 << 30}, "max_memory limits worker processes, but workers=0"),
    ],
)
def test_options_that_exclude_each_other_are_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        gp.agents.run([Vertex(0)], lambda ctx: None, **options)


def test_a_failure_ends_the_run_as_in_process() -> None:
    def compute(ctx: Any) -> None:
        ctx.value = "done"
        ctx.vote_to_halt()
        if ctx.vertex_id == 1:
            raise ValueError("no")

    with pytest.raises(AgentsFailedError) as caught:
        gp.agents.run(vertices(3), compute, threads=2, retry=ONCE)
    assert caught.value.result.failed[1].text == "no"
