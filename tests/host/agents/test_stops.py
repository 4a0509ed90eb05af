"""Runs that are stopped: by another thread, by cancellation, and by SIGINT."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.agents import Vertex
from tests.agents import FEW, ON_THREADS, ONCE
from tests.host.agents.workers.worker_programs import wait_for

pytestmark = pytest.mark.usefixtures("interrupts")


@pytest.mark.parametrize("workers", [0, 1])
def test_another_thread_stops_a_run_at_its_next_commit(workers: int, tmp_path: Path) -> None:
    started, stopped = tmp_path / "started", tmp_path / "stopped"

    def compute(ctx: Any) -> None:
        started.touch()
        while not stopped.exists():
            time.sleep(0.01)
        ctx.value += 1

    with gp.agents.start([Vertex("a", 0)], compute, workers=workers) as agents:

        def stop() -> None:
            wait_for(started.exists)
            agents.stop()
            stopped.touch()

        thread = threading.Thread(target=stop)
        thread.start()
        while agents.step():
            pass
        thread.join()
        result = agents.result()
    assert (result.status, result.superstep, result.values) == ("stopped", 1, {"a": 1})


@pytest.mark.parametrize("workers", [0, 1])
def test_a_cancelled_arun_stops_at_its_next_commit(workers: int) -> None:
    events: list[str] = []

    def compute(ctx: Any) -> None:
        time.sleep(0.05)

    async def main() -> None:
        task = asyncio.create_task(
            gp.agents.arun([Vertex("a")], compute, workers=workers, observer=lambda event: events.append(event.kind))
        )
        while "commit" not in events:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert events[-1] == "end"

    asyncio.run(main())


PROGRAM = """
import os, signal, sys, time
import gpu_pregel as gp

def compute(ctx):
    if ctx.superstep == 1:
        with open(sys.argv[1], "a") as log:
            log.write(f"{ctx.vertex_id} {ctx.attempt}\\n")
        while ctx.vertex_id == 1 and not os.path.exists(sys.argv[2]):
            time.sleep(0.01)
    ctx.value += 1

result = gp.agents.run([gp.agents.Vertex(k, 0) for k in range(3)], compute, workers=int(sys.argv[3]))
print(result.status, result.superstep, result.values)
"""


def run_with_interrupts(path: Path, workers: int, count: int) -> subprocess.CompletedProcess[str]:
    """Run the program; send it a number of SIGINTs while a vertex waits, which ends after the first of one."""
    log, go = path / "log", path / "go"
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(log), str(go), str(workers)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    while not log.exists() or "1 1" not in log.read_text():
        assert process.poll() is None
        time.sleep(0.02)
    for _ in range(count):
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        wait_for(lambda: not is_pending(process.pid, signal.SIGINT))
    if count == 1:
        go.touch()
    out, err = process.communicate(timeout=200)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def is_pending(pid: int, number: int) -> bool:
    """Whether a signal that was sent to a process has not been delivered."""
    with open(f"/proc/{pid}/status") as file:
        masks = [int(line.split()[1], 16) for line in file if line.startswith(("SigPnd", "ShdPnd"))]
    return any(mask >> (number - 1) & 1 for mask in masks)


@FEW
def test_the_first_interrupt_stops_at_the_next_commit(workers: int, tmp_path: Path) -> None:
    done = run_with_interrupts(tmp_path, workers, 1)
    assert done.stdout.split(None, 2) == ["stopped", "2", "{0: 2, 1: 2, 2: 2}\n"]
    assert done.returncode == 0


@FEW
def test_the_second_interrupt_stops_immediately(workers: int, tmp_path: Path) -> None:
    done = run_with_interrupts(tmp_path, workers, 2)
    assert done.stderr.rstrip().endswith("KeyboardInterrupt")
    assert done.stdout == ""


@FEW
def test_an_interrupted_superstep_continues(workers: int, tmp_path: Path) -> None:
    log, cut, goes_on = tmp_path / "log", tmp_path / "cut", tmp_path / "goes on"
    elsewhere = workers or workers is ON_THREADS

    def compute(ctx: Any) -> None:
        with open(log, "a") as file:
            file.write(f"{ctx.vertex_id} {ctx.attempt}\n")
        if ctx.vertex_id == 1 and not cut.exists():
            cut.touch()
            if not elsewhere:
                raise KeyboardInterrupt
            while not goes_on.exists():  # a worker or a thread continues meanwhile
                time.sleep(0.01)
        ctx.value += 1
        ctx.vote_to_halt()

    def interrupt() -> None:
        wait_for(cut.exists)
        os.kill(os.getpid(), signal.SIGINT)

    with gp.agents.start([Vertex(k, 0) for k in range(3)], compute, workers=workers, retry=ONCE) as agents:
        thread = threading.Thread(target=interrupt if elsewhere else lambda: None)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            agents.step()
        goes_on.touch()
        thread.join()
        assert agents.status == "running"
        assert not agents.step()
        assert agents.result().values == {0: 1, 1: 1, 2: 1}
    assert {line.split()[1] for line in log.read_text().splitlines()} == {"1"}


@pytest.mark.parametrize("workers", [2, ON_THREADS])
@pytest.mark.parametrize("method", ["take", "submit"])
def test_an_interrupt_while_attempts_change_hands_loses_none(
    workers: int, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with gp.agents.start([Vertex(k, 0) for k in range(3)], _count, workers=workers, retry=ONCE) as agents:
        transport = agents._policy._transport
        plain = getattr(transport, method)
        has_begun: list[bool] = []

        def interrupted(*arguments: Any) -> Any:
            result = plain(*arguments)
            if not has_begun and (method == "submit" or result):
                has_begun.append(True)
                signal.raise_signal(signal.SIGINT)
            return result

        monkeypatch.setattr(transport, method, interrupted)
        with pytest.raises(KeyboardInterrupt):
            agents.step()
        assert has_begun
        while agents.step():
            pass
        assert agents.result().values == {0: 1, 1: 1, 2: 1}


def _count(ctx: Any) -> None:
    ctx.value += 1
    ctx.vote_to_halt()


@pytest.mark.parametrize("in_loop", [False, True])
def test_interrupted_async_attempts_do_not_fail(in_loop: bool) -> None:
    attempts: list[Any] = []

    async def compute(ctx: Any) -> None:
        attempts.append((ctx.vertex_id, ctx.attempt))
        if ctx.vertex_id == 1 and (1, 1) not in attempts[:-1]:
            threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
            await asyncio.sleep(60)
        ctx.value += 1
        ctx.vote_to_halt()

    def steps() -> None:
        with gp.agents.start([Vertex(k, 0) for k in range(3)], compute, retry=ONCE) as agents:
            with pytest.raises(KeyboardInterrupt):
                agents.step()
            assert not agents.step()
            assert (agents.status, agents.result().values) == ("completed", {0: 1, 1: 1, 2: 1})

    async def in_a_notebook() -> None:
        steps()

    if in_loop:
        loop = asyncio.new_event_loop()
        loop.run_until_complete(in_a_notebook())
        loop.close()
    else:
        steps()
    assert sorted(attempts) == [(0, 1), (1, 1), (1, 1), (2, 1)]
