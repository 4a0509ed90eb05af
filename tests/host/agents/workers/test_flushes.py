"""Finished records are sent and made durable while other vertices compute, whatever these do."""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.agents import Event, Vertex
from gpu_pregel.errors import FencedError
from gpu_pregel.host.agents.codec import decode
from gpu_pregel.host.agents.formats import SavedSuperstep
from gpu_pregel.host.agents.recovery import read_run
from gpu_pregel.host.superstep import flush_timer
from gpu_pregel.host.superstep.flush_timer import FlushTimer, frequent_switches
from tests.agents import ONCE, logged


def stuck(how: str, path: str) -> Any:
    """Return a function whose vertex "slow" computes in superstep 1, after all others, until a file exists."""

    def wait() -> None:
        import os
        import time

        until = time.monotonic() + 200
        while not os.path.exists(path) and time.monotonic() < until:
            if how != "computes":
                time.sleep(0.01)

    def compute(ctx: Any) -> None:
        if ctx.superstep == 0:
            return
        if ctx.vertex_id == "slow":
            wait()
        ctx.value = "done"
        ctx.vote_to_halt()

    async def compute_on_loop(ctx: Any) -> None:
        compute(ctx)

    return compute_on_loop if how == "blocks the loop" else compute


def records(store: Any) -> set[Any]:
    """Return the vertices whose records of the running superstep are in a store."""
    return set(map(decode, read_run(store, "one").ledger().records))


def wait_until(condition: Callable[[], bool], seconds: float = 200.0) -> bool:
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("how", ["sleeps", "computes", "blocks the loop"])
def test_a_record_is_durable_while_another_vertex_computes(how: str, workers: int, tmp_path: Path) -> None:
    release = tmp_path / "release"
    names = ["a", "b", "slow"]  # computed in this order
    with gp.MemoryStore() as store:
        options: dict[str, Any] = {"store": store, "run_id": "one", "workers": workers}
        with gp.agents.start([Vertex(name) for name in names], stuck(how, str(release)), **options) as run:
            run.step()
            time.sleep(0.01)  # the timer calls too early for the next superstep, and must be set again
            thread = threading.Thread(target=run.step)
            thread.start()
            try:
                assert wait_until(lambda: records(store) == {"a", "b"}), records(store)
            finally:
                release.touch()
                thread.join()
            assert run.result().values == dict.fromkeys(names, "done")
        [*_, last] = store.load("one").commits()
        segments = SavedSuperstep.unpack(last.step, last.segments(), last.data).segments
        assert sorted(decode(vertex) for one in segments for vertex, _ in one.records) == names  # none twice


@pytest.mark.parametrize("workers", [0, 1])
def test_a_record_is_durable_while_an_observer_is_called(workers: int) -> None:
    seen: list[bool] = []

    def compute(ctx: Any) -> None:
        ctx.vote_to_halt()

    def observe(event: Event) -> None:
        if event.kind == "attempt":
            seen.append(wait_until(lambda: records(store) == {"a"}))

    with gp.MemoryStore() as store:
        gp.agents.run([Vertex("a")], compute, workers=workers, observer=observe, store=store, run_id="one")
    assert seen == [True]


@pytest.mark.parametrize("kind", ["ordinary", "async"])
def test_a_timeout_runs_no_vertex_again_that_has_ended(kind: str, tmp_path: Path) -> None:
    log = str(tmp_path / "log")

    def compute(ctx: Any) -> None:
        import time

        with open(log, "a") as file:
            file.write(f"{ctx.vertex_id}\n")
        if ctx.vertex_id == 30:
            time.sleep(3600)
        ctx.vote_to_halt()

    async def compute_on_loop(ctx: Any) -> None:
        compute(ctx)

    result = gp.agents.run(
        [Vertex(k) for k in range(40)],
        compute_on_loop if kind == "async" else compute,
        workers=1,
        timeout=1.5,
        retry=ONCE,
        on_failure="continue",
    )
    assert {vertex: one.kind for vertex, one in result.failed.items()} == {30: "timeout"}
    assert set(logged(log).values()) == {1}


def test_a_flush_that_fails_on_the_timer_ends_the_run(tmp_path: Path) -> None:
    """Another program takes the run while a vertex computes; the master raises the error when it is back."""

    def compute(ctx: Any) -> None:
        if ctx.vertex_id == "b":
            store.claim("one", owner="another", takeover=True)
            time.sleep(0.1)
        elif ctx.vertex_id == "c":
            Path(tmp_path / "computed").touch()
        ctx.vote_to_halt()

    with gp.MemoryStore() as store, pytest.raises(FencedError):
        gp.agents.run([Vertex(name) for name in "abc"], compute, store=store, run_id="one")
    assert not (tmp_path / "computed").exists()


def test_a_timer_calls_once_for_each_time_that_it_is_set() -> None:
    called = threading.Semaphore(0)
    timer = FlushTimer(called.release)
    for _ in range(3):
        timer.set(0.001)
        assert called.acquire(timeout=200)
    assert not called.acquire(timeout=0.02)
    for _ in range(5):
        timer.set(0.001)
    assert called.acquire(timeout=200)
    timer.close()


@pytest.mark.parametrize(("usual", "inside"), [(0.005, 0.0005), (0.0005025, 0.0005), (0.0002, 0.0002)])
def test_the_switch_interval_is_short_while_threads_flush_and_then_as_before(usual: float, inside: float) -> None:
    begun = threading.Semaphore(0)
    releases = [threading.Semaphore(0) for _ in range(2)]

    def flush(release: threading.Semaphore) -> None:
        begun.release()
        assert release.acquire(timeout=200)

    timers = [FlushTimer(partial(flush, release)) for release in releases]
    before = sys.getswitchinterval()
    sys.setswitchinterval(usual)
    usual = sys.getswitchinterval()  # in whole microseconds
    try:
        for timer in timers:
            timer.set(0.001)
            assert begun.acquire(timeout=200)
        for timer, release in zip(timers, releases, strict=True):
            assert sys.getswitchinterval() == pytest.approx(inside, abs=1e-6)
            release.release()
            timer.close()
        for _ in range(3):
            assert sys.getswitchinterval() == usual
            with frequent_switches:
                pass
    finally:
        sys.setswitchinterval(before)


def test_a_timer_whose_descriptor_was_closed_can_be_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    timer = FlushTimer(lambda: None)
    with monkeypatch.context() as patch:  # really closed, its number might be reused while the thread reads
        patch.setattr(timer._thread, "_settime", lambda *_: -1)
        assert not timer.set(0.001)
        timer.close()
    assert timer._thread not in flush_timer._idle
    timer._thread.end()


def test_timers_one_after_the_other_share_a_thread() -> None:
    threads, called = set(), threading.Semaphore(0)
    for _ in range(5):
        timer = FlushTimer(called.release)
        threads.add(timer._thread)
        timer.set(0.001)
        assert called.acquire(timeout=200)
        timer.close()
    assert len(threads) == 1


def test_a_closed_timer_calls_neither_its_function_nor_that_of_the_next() -> None:
    calls: list[str] = []
    first = FlushTimer(lambda: calls.append("first"))
    first.set(0.01)
    first.close()
    second = FlushTimer(lambda: calls.append("second"))
    assert second._thread is first._thread
    assert not first.set(0.001)
    time.sleep(0.03)
    assert calls == []
    second.close()


def test_closing_a_timer_waits_for_its_call() -> None:
    begun, respond, ended = threading.Event(), threading.Event(), threading.Event()

    def flush() -> None:
        begun.set()
        assert respond.wait(200)
        ended.set()

    timer = FlushTimer(flush)
    timer.set(0.001)
    assert begun.wait(200)
    closing = threading.Thread(target=timer.close)
    closing.start()
    time.sleep(0.01)
    assert closing.is_alive()
    assert timer._thread not in flush_timer._idle
    respond.set()
    closing.join(200)
    assert ended.is_set()


def test_a_timer_that_calls_is_closed_without_waiting() -> None:
    closed = threading.Event()

    def flush() -> None:
        timer.close()
        closed.set()

    timer = FlushTimer(flush)
    timer.set(0.001)
    assert closed.wait(200)
    assert timer._thread not in flush_timer._idle


def test_an_idle_thread_ends_and_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flush_timer, "_IDLE_SECONDS", 0.001)
    timer = FlushTimer(lambda: None)
    timer.close()
    assert wait_until(lambda: timer._thread not in flush_timer._idle)
    called = threading.Semaphore(0)
    other = FlushTimer(called.release)
    assert other._thread is not timer._thread
    other.set(0.001)
    assert called.acquire(timeout=200)
    other.close()


def test_an_idle_thread_whose_descriptor_was_closed_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    timer = FlushTimer(lambda: None)
    timer.close()
    monkeypatch.setattr(timer._thread, "_settime", lambda *_: -1)
    other = FlushTimer(lambda: None)
    assert other._thread is not timer._thread
    other.close()
    monkeypatch.undo()
    timer._thread.end()


def test_a_forked_process_has_timers_of_its_own() -> None:
    FlushTimer(lambda: None).close()  # leaves an idle thread
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12, as there is a thread
        child = os.fork()
    if child == 0:
        failed = 1
        try:
            called = threading.Semaphore(0)
            timer = FlushTimer(called.release)
            timer.set(0.001)
            failed = int(not called.acquire(timeout=200))
        finally:
            os._exit(failed)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
