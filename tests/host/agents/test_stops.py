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
from tests.agents import FEW, ONCE

pytestmark = pytest.mark.usefixtures("interrupts")


@pytest.mark.parametrize("workers", [0, 1])
def test_another_thread_stops_a_run_at_its_next_commit(workers: int, tmp_path: Path) -> None:
    started = str(tmp_path / "started")

    def compute(ctx: Any) -> None:
        Path(started).touch()
        time.sleep(0.2)
        ctx.value += 1

    with gp.agents.start([Vertex("a", 0)], compute, workers=workers) as agents:

        def stop() -> None:
            while not os.path.exists(started):
                time.sleep(0.01)
            agents.stop()

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
        if ctx.vertex_id == 1:
            time.sleep(float(sys.argv[2]))
    ctx.value += 1

result = gp.agents.run([gp.agents.Vertex(k, 0) for k in range(3)], compute, workers=int(sys.argv[3]))
print(result.status, result.superstep, result.values)
"""


def run_with_interrupts(path: Path, seconds: float, workers: int, count: int) -> subprocess.CompletedProcess[str]:
    """Run the program, and send it a number of SIGINTs once a vertex sleeps."""
    log = path / "log"
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(log), str(seconds), str(workers)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    while not log.exists() or "1 1" not in log.read_text():
        assert process.poll() is None
        time.sleep(0.02)
    for _ in range(count):
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


@FEW
def test_the_first_interrupt_stops_at_the_next_commit(workers: int, tmp_path: Path) -> None:
    done = run_with_interrupts(tmp_path, 1.0, workers, 1)
    assert done.stdout.split(None, 2) == ["stopped", "2", "{0: 2, 1: 2, 2: 2}\n"]
    assert done.returncode == 0


@FEW
def test_the_second_interrupt_stops_immediately(workers: int, tmp_path: Path) -> None:
    begin = time.monotonic()
    done = run_with_interrupts(tmp_path, 600.0, workers, 2)
    assert time.monotonic() - begin < 300
    assert done.stderr.rstrip().endswith("KeyboardInterrupt")
    assert done.stdout == ""


@FEW
def test_an_interrupted_superstep_continues(workers: int, tmp_path: Path) -> None:
    log = tmp_path / "log"

    def compute(ctx: Any) -> None:
        with open(log, "a") as file:
            file.write(f"{ctx.vertex_id} {ctx.attempt}\n")
        if ctx.vertex_id == 1 and not os.path.exists(f"{log}.cut"):
            Path(f"{log}.cut").touch()
            if not workers:
                raise KeyboardInterrupt
            time.sleep(1.0)  # a worker continues meanwhile
        ctx.value += 1
        ctx.vote_to_halt()

    def interrupt() -> None:
        while not os.path.exists(f"{log}.cut"):
            time.sleep(0.01)
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)

    with gp.agents.start([Vertex(k, 0) for k in range(3)], compute, workers=workers, retry=ONCE) as agents:
        thread = threading.Thread(target=interrupt if workers else lambda: None)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            agents.step()
        thread.join()
        assert agents.status == "running"
        assert not agents.step()
        assert agents.result().values == {0: 1, 1: 1, 2: 1}
    assert {line.split()[1] for line in log.read_text().splitlines()} == {"1"}


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
