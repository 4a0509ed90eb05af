"""Workers that are killed or stopped: results are equal, the right vertex is charged, and no run hangs."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import gpu_pregel.agents as agents
from gpu_pregel.agents import Event, RetryPolicy, Vertex
from gpu_pregel.errors import AgentError
from gpu_pregel.host.agents.codec import encode
from gpu_pregel.host.agents.workers.process import WorkerProcess
from tests.agents import one_per_partition
from tests.host.agents.workers.worker_programs import (
    children,
    counting,
    final_bytes,
    growth,
    is_alive,
    running,
    tokens,
    wait_for,
)
from tests.worker_faults import arm

ONE_TRY = RetryPolicy(attempts=1)
QUICK = RetryPolicy(attempts=3, wait=0.01)
PLACES = ("loading", "idle", "computing", "marked", "torn", "committing")

pytestmark = pytest.mark.usefixtures("one_run_id")


@pytest.mark.parametrize("program", [tokens, growth])
@pytest.mark.parametrize("place", PLACES)
def test_a_worker_is_killed_at(place: str, program: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    expected = final_bytes(agents.run(**program()))
    count = 3 if program is growth and place != "loading" else 1
    arm(monkeypatch, place, count, tmp_path / "mark")
    events: list[Event] = []
    result = agents.run(**program(), workers=2, retry=QUICK, observer=events.append)
    assert (tmp_path / "mark").exists()
    assert final_bytes(result) == expected
    if place != "loading":  # a worker that dies while loading is replaced before the run starts
        assert [event.facts["reason"] for event in events if event.kind == "death"] == ["ended by SIGKILL"]


@pytest.mark.parametrize("place", ["idle", "computing", "torn", "committing"])
def test_an_async_worker_is_killed_at(place: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def program() -> dict[str, Any]:
        async def compute(ctx: Any) -> None:
            import asyncio

            await asyncio.sleep(0)
            ctx.value = [*ctx.value, *ctx.messages]
            if ctx.superstep < 5:
                ctx.send_to_neighbors(ctx.vertex_id)
            ctx.vote_to_halt()

        return {"vertices": [Vertex(k, [], [(k + 1) % 30, (k * 5) % 30]) for k in range(30)], "compute": compute}

    expected = final_bytes(agents.run(**program()))
    arm(monkeypatch, place, 2, tmp_path / "mark")
    assert final_bytes(agents.run(**program(), workers=2, retry=QUICK)) == expected
    assert (tmp_path / "mark").exists()


def test_workers_are_killed_at_random_during_200_supersteps() -> None:
    program: dict[str, Any] = {
        "vertices": [Vertex(k) for k in range(40)],
        "compute": counting(200),
        "max_supersteps": 300,
    }
    expected = final_bytes(agents.run(**program))
    deaths = supersteps = 0

    def count(event: Event) -> None:
        nonlocal deaths
        deaths += event.kind == "death"

    patient = RetryPolicy(attempts=20, wait=0)
    with agents.start(**program, workers=2, retry=patient, observer=count) as run:
        over = threading.Event()

        def kill() -> None:
            draw, last = random.Random(1), 0
            while not over.wait(draw.uniform(0.2, 0.5)):
                if supersteps > last:  # new workers may take long to start
                    last = supersteps
                    os.kill(draw.choice(running(run)), signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            while run.step():
                supersteps += 1
                time.sleep(0.01)
        finally:
            over.set()
            killer.join()
        assert deaths >= 3
        assert final_bytes(run.result()) == expected


@pytest.mark.parametrize("kind", ["exit", "kill", "async"])
def test_a_vertex_that_always_kills_its_worker_fails_alone(kind: str) -> None:
    def end(kind: str) -> None:
        import os
        import signal

        if kind == "exit":
            os._exit(3)
        os.kill(os.getpid(), signal.SIGKILL)

    def ordinary(ctx: Any) -> None:
        if ctx.vertex_id == "bad" and ctx.superstep == 1:
            end(kind)
        work(ctx)

    async def asynchronous(ctx: Any) -> None:
        import asyncio

        await asyncio.sleep(0.02 if ctx.vertex_id == "bad" else 0.2)
        ordinary(ctx)

    def work(ctx: Any) -> None:
        ctx.value = ctx.value + 1
        if ctx.superstep == 2:
            ctx.vote_to_halt()

    events: list[Event] = []
    vertices = [Vertex("bad", 0), *(Vertex(k, 0) for k in range(20))]
    result = agents.run(
        vertices,
        asynchronous if kind == "async" else ordinary,
        workers=2,
        retry=RetryPolicy(attempts=2, wait=0),
        on_failure="continue",
        observer=events.append,
    )
    assert result.status == "partial"
    [(vertex, failed)] = result.failed.items()
    assert (vertex, failed.kind, failed.superstep) == ("bad", "death", 1)
    assert failed.text == ("exited with code 3" if kind == "exit" else "ended by SIGKILL")
    values = result.values
    assert values.pop("bad") == 1
    assert values == dict.fromkeys(range(20), 3)
    failures = [event for event in events if event.kind == "failure"]
    assert [(event.vertex, event.attempt) for event in failures] == [("bad", 2)]
    deaths = sum(event.kind == "death" for event in events)
    assert deaths == (3 if kind == "async" else 2)  # the first death of an async worker only makes suspects


def test_a_death_wakes_the_master(tmp_path: Path) -> None:
    """It waits for nothing else: the workers sleep for longer than this test may take."""

    def compute(ctx: Any) -> None:
        (tmp_path / str(ctx.attempt)).write_text(str(os.getpid()))
        time.sleep(3600)

    def count(event: Event) -> None:
        if event.kind == "death":
            deaths.release()

    deaths = threading.Semaphore(0)
    options: dict[str, Any] = {"retry": RetryPolicy(attempts=3, wait=0), "observer": count}
    with agents.start([Vertex(0)], compute, workers=1, **options) as run:
        thread = threading.Thread(target=run.step)
        thread.start()
        for attempt in (1, 2, 3):
            mark = tmp_path / str(attempt)
            wait_for(lambda mark=mark: mark.exists() and mark.read_text())
            os.kill(int(mark.read_text()), signal.SIGKILL)
            assert deaths.acquire(timeout=200)
        thread.join()
        assert run.result().failed[0].kind == "death"


def test_close_kills_stopped_workers_together(monkeypatch: pytest.MonkeyPatch) -> None:
    until: list[float] = []
    wait = WorkerProcess.wait

    def noted(self: WorkerProcess, time: float) -> None:
        until.append(time)
        wait(self, time)

    run = agents.start([Vertex(0)], counting(1), workers=2)
    pids = running(run)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    monkeypatch.setattr(WorkerProcess, "wait", noted)
    run.stop()
    assert len(until) == 2
    assert len(set(until)) == 1
    assert not any(map(is_alive, pids))
    assert not children()


def test_a_worker_that_cannot_load_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    arm(monkeypatch, "loading", 1, Path("/dev/null/always"))
    monkeypatch.setattr("gpu_pregel.host.agents.workers.pool._FRUITLESS", 2)
    with pytest.raises(AgentError, match="2 workers of partition"):
        agents.start([Vertex(0)], counting(1), workers=1)
    assert not children()


@pytest.mark.parametrize(("signal_number", "seconds"), [(signal.SIGSEGV, 0.0), (signal.SIGKILL, 1e9)])
def test_an_idle_worker_may_die_again_and_again(
    signal_number: signal.Signals, seconds: float, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """More often than is tolerated of a worker that dies before it computes: each time after a while, or if others
    kill it.
    """
    monkeypatch.setattr("gpu_pregel.host.agents.workers.pool._LASTING", seconds)
    busy, idle = one_per_partition(2)
    enough = tmp_path / "enough"

    def compute(ctx: Any) -> None:
        import time

        time.sleep(0.1)
        if ctx.vertex_id == idle or enough.exists():
            ctx.vote_to_halt()

    with agents.start([Vertex(busy), Vertex(idle)], compute, workers=2) as run:
        transport: Any = run._policy._transport
        partition = transport.place([encode(idle)])[0]
        deaths = 0
        while run.step():
            if deaths < 4 and transport._processes[partition].is_ready:
                os.kill(running(run)[partition], signal_number)
                deaths += 1
            elif deaths == 4:
                enough.touch()
        assert run.status == "completed"


def test_a_worker_that_is_stopped_while_it_loads_is_replaced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    arm(monkeypatch, "loading", 1, tmp_path / "mark", "stop")
    monkeypatch.setattr("gpu_pregel.host.agents.workers.pool._START", 5.0)
    result = agents.run([Vertex(k) for k in range(4)], counting(2), workers=2)
    assert (tmp_path / "mark").exists()
    assert result.status == "completed"


def test_a_worker_killed_by_the_master_charges_no_vertex() -> None:
    with agents.start([Vertex(k, 0) for k in range(4)], counting(0, seconds=0.3), workers=1, retry=ONE_TRY) as run:
        transport: Any = run._policy._transport
        timer = threading.Timer(0.1, transport._processes[0].kill, ("as the test requests",), {"spare": True})
        timer.start()
        run.step()
        assert set(run.result().values.values()) == {1}
        assert not run.result().failed


def test_kills_between_supersteps_lose_nothing() -> None:
    with agents.start([Vertex(k, 0) for k in range(10)], counting(6), workers=2) as run:
        more = True
        while more:
            for pid in running(run):
                os.kill(pid, signal.SIGKILL)
            more = run.step()
        assert run.result().status == "completed"
        expected = agents.run([Vertex(k, 0) for k in range(10)], counting(6))
        assert final_bytes(run.result()) == final_bytes(expected)


def test_a_replaced_worker_has_the_records_of_its_predecessor() -> None:
    def compute(ctx: agents.Context) -> None:
        ctx.value += 1
        if ctx.vertex_id == 2 and (ctx.superstep, ctx.attempt) == (0, 1):
            time.sleep(0.1)  # the record of vertex 1 reaches the master
            os._exit(3)

    options: dict[str, Any] = {"retry": RetryPolicy(attempts=2), "max_supersteps": 3, "on_limit": "return"}
    result = agents.run([Vertex(1, 0), Vertex(2, 0)], compute, workers=1, **options)
    assert (result.values, [row["retries"] for row in result.trace]) == ({1: 3, 2: 3}, [1, 0, 0])


def test_a_held_superstep_keeps_the_records_of_a_worker_that_died(tmp_path: Path) -> None:
    repaired = str(tmp_path / "repaired")

    def compute(ctx: Any) -> None:
        import os

        if ctx.vertex_id == 0 and not os.path.exists(repaired):
            raise ValueError
        ctx.value = [*ctx.value, os.getpid()]
        ctx.vote_to_halt()

    with agents.start([Vertex(k, []) for k in range(4)], compute, workers=1, retry=ONE_TRY) as run:
        [first] = running(run)
        run.step()
        assert run.status == "failed"
        os.kill(first, signal.SIGKILL)
        Path(repaired).touch()
        run.retry()
        while run.step():
            pass
        [second] = running(run)
        assert second != first
        assert run.result().values == {0: [second], 1: [first], 2: [first], 3: [first]}


@pytest.mark.parametrize("count", [3, 30])
def test_a_vertex_that_writes_to_all_descriptors_is_charged_alone(count: int) -> None:
    def compute(ctx: Any) -> None:
        import os
        import stat

        if ctx.vertex_id == 3 and ctx.superstep == 1:
            for descriptor in map(int, os.listdir("/proc/self/fd")):
                try:
                    if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                        os.write(descriptor, bytes(count))
                except OSError:
                    pass
        ctx.value += 1
        if ctx.superstep == 2:
            ctx.vote_to_halt()

    vertices = [Vertex(k, 0) for k in range(6)]
    result = agents.run(vertices, compute, workers=1, retry=QUICK, on_failure="continue")
    assert result.values == {k: 1 if k == 3 else 3 for k in range(6)}
    (failure,) = result.failed.values()
    assert (failure.kind, failure.superstep) == ("death", 1)
    assert failure.text.startswith("it sent an invalid frame")
