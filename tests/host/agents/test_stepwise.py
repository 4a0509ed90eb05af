"""Runs step by step: checkpoint data, messages from outside, stopping, and interruptions."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import AgentError, ArgumentError, CodecError
from gpu_pregel.host.agents.codec import encode
from gpu_pregel.host.agents.formats import Segment
from gpu_pregel.host.agents.parts import EarlyMessage

pytestmark = pytest.mark.usefixtures("interrupts")

Vertex = gp.agents.Vertex
ONCE = gp.agents.RetryPolicy(attempts=1)
RING = [Vertex(k, [], [(k + 1) % 4]) for k in range(4)]


def ring(ctx: Any) -> None:
    ctx.value = [*ctx.value, [ctx.superstep, ctx.messages, ctx.random.random(), ctx.aggregated("total")]]
    ctx.aggregate("total", ctx.superstep)
    if ctx.superstep < 6:
        ctx.send_to_neighbors([ctx.vertex_id, ctx.superstep])
    if ctx.superstep == 2 and ctx.vertex_id == 1:
        ctx.add_vertex("new", [], [0])
        ctx.add_edge(1, "new", 2.5)
    ctx.vote_to_halt()


def content(result: Any) -> list[Any]:
    return [
        (one.id, one.value, [tuple(edge) for edge in one.edges], one.halted)
        for one in sorted(result.vertices.values(), key=lambda one: str(one.id))
    ]


TOTAL = {"total": gp.agents.Aggregator("sum", persistent=True)}


@pytest.mark.parametrize("workers", [0, 2])
def test_checkpoint_data_continue_a_run(workers: int) -> None:
    whole = gp.agents.run(RING, ring, aggregators=TOTAL, run_id="one")
    data: Any = RING
    for _ in range(20):
        with gp.agents.start(data, ring, aggregators=TOTAL, run_id="one", workers=workers) as agents:
            agents.step()
            agents.step()
            data, status, result = agents.checkpoint_data(), agents.status, agents.result()
        if status != "running":
            break
    assert status == "completed"
    assert content(result) == content(whole)
    assert result.aggregates == whole.aggregates
    assert result.superstep == whole.superstep == 7


def fail_and_ask(ctx: Any) -> None:
    with open(ctx.value, "a") as log:
        log.write(f"{ctx.vertex_id}\n")
    if ctx.superstep == 0:
        if ctx.vertex_id == "fails" and not os.path.exists(ctx.value + ".mended"):
            raise ValueError("broken")
        if ctx.vertex_id == "asks":
            ctx.aggregate("answers", ctx.interrupt("which?") + ctx.interrupt("really?"))
        if ctx.vertex_id == "good":
            ctx.send("asks", "from good")
    elif ctx.messages:
        ctx.aggregate("answers", ctx.messages[0])
    ctx.vote_to_halt()


@pytest.mark.parametrize("workers", [0, 2])
def test_checkpoint_data_of_a_held_superstep_compute_only_the_rest(workers: int, tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    options: Any = {"aggregators": {"answers": "list"}, "retry": ONCE, "workers": workers}

    def seen() -> dict[str, int]:
        return Counter(Path(log).read_text().split())

    with gp.agents.start([Vertex(name, log) for name in ("asks", "fails", "good")], fail_and_ask, **options) as agents:
        assert not agents.step()
        assert agents.status == "failed"
        first = agents.checkpoint_data()
    with gp.agents.start(first, fail_and_ask, **options) as agents:
        held = agents.result()
        assert held.failed["fails"].text == "broken"
        assert held.interrupts == {"asks": "which?"}
        assert not agents.step()
        assert agents.status == "failed"
        assert seen() == {"asks": 1, "fails": 1, "good": 1}
        Path(log + ".mended").touch()
        agents.retry()
        agents.answer("asks", "this ")
        assert not agents.step()
        assert agents.result().interrupts == {"asks": "really?"}
        second = agents.checkpoint_data()
    with gp.agents.start(second, fail_and_ask, **options) as agents:
        agents.answer("asks", "yes")
        assert agents.step()
        assert agents.result().aggregates == {"answers": ["this yes"]}
        assert not agents.step()
        assert agents.result().aggregates == {"answers": ["from good"]}
    assert agents.status == "completed"
    assert seen() == {"asks": 4, "fails": 2, "good": 1}


def test_attempts_before_a_checkpoint_count(tmp_path: Path) -> None:
    made: list[int] = []

    def compute(ctx: Any) -> None:
        made.append(ctx.attempt)
        if len(made) == 2:
            raise KeyboardInterrupt
        raise ValueError

    retry = gp.agents.RetryPolicy(attempts=3, wait=0)
    with gp.agents.start([Vertex("a")], compute, retry=retry) as agents:
        with pytest.raises(KeyboardInterrupt):
            agents.step()
        data = agents.checkpoint_data()
    with gp.agents.start(data, compute, retry=retry) as agents:
        agents.step()
        assert agents.status == "failed"
    assert made == [1, 2, 2, 3]


@pytest.mark.parametrize(
    "data, message",
    [(b"nonsense", "version"), (b"", "version"), (gp.agents.start(RING, ring).checkpoint_data()[:-3], "truncated")],
)
def test_invalid_checkpoint_data_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(CodecError, match=message):
        gp.agents.start(data, ring)


def test_a_checkpoint_needs_its_compute_function() -> None:
    data = gp.agents.start([Vertex(1)], functions={"first": ring}).checkpoint_data()
    with pytest.raises(ArgumentError, match="'first', which was not passed; available: 'compute'"):
        gp.agents.start(data, ring)


def echo(ctx: Any) -> None:
    ctx.value = [*(ctx.value or []), *ctx.messages]
    if ctx.messages and ctx.vertex_id == "a":
        ctx.send("b", f"re {ctx.messages[-1]}")
    ctx.vote_to_halt()


@pytest.mark.parametrize("workers", [0, 2])
def test_messages_from_outside_come_last_and_continue_a_completed_run(workers: int) -> None:
    with gp.agents.start([Vertex("a"), Vertex("b")], echo, workers=workers) as agents:
        agents.send("a", "early")
        while agents.step():
            pass
        assert agents.status == "completed"
        agents.send("a", "late")
        agents.send("b", "last")
        assert agents.status == "running"
        while agents.step():
            pass
        assert agents.status == "completed"
        assert agents.result().values == {"a": ["early", "late"], "b": ["re early", "last", "re late"]}
        with pytest.raises(ArgumentError, match="no vertex 'c'"):
            agents.send("c", 1)


def test_messages_from_outside_during_a_hold_arrive_in_the_next_superstep() -> None:
    def compute(ctx: Any) -> None:
        if ctx.superstep == 0 and ctx.vertex_id == "a":
            ctx.interrupt()
        if ctx.superstep == 0:
            ctx.send("a", f"from {ctx.vertex_id}")
        ctx.value = ctx.messages
        ctx.vote_to_halt()

    with gp.agents.start([Vertex("a"), Vertex("b")], compute) as agents:
        agents.step()
        agents.send("a", "from outside")
        data = agents.checkpoint_data()
    with gp.agents.start(data, compute) as agents:
        agents.answer("a", None)
        while agents.step():
            pass
        assert agents.result().values["a"] == ["from a", "from b", "from outside"]


def test_a_stopped_run_refuses_messages() -> None:
    with gp.agents.start([Vertex("a")], echo) as agents:
        agents.stop()
        with pytest.raises(ArgumentError, match="ended \\(stopped\\)"):
            agents.send("a", 1)
        assert not agents.step()


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


@pytest.mark.parametrize("workers", [0, 2])
def test_an_exception_of_an_observer_loses_nothing(workers: int) -> None:
    raised: set[str] = set()

    def observe(event: Any) -> None:
        if event.kind not in raised:
            raised.add(event.kind)
            raise OSError(event.kind)

    with gp.agents.start(RING, ring, aggregators=TOTAL, run_id="one", workers=workers, observer=observe) as agents:
        for _ in range(20):
            try:
                if not agents.step():
                    break
            except OSError:
                pass
        assert raised == {"superstep", "attempt", "commit", "end"}
        assert agents.status == "completed"
        assert content(agents.result()) == content(gp.agents.run(RING, ring, aggregators=TOTAL, run_id="one"))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_run_cannot_continue_after_its_with_block(workers: int) -> None:
    def compute(ctx: Any) -> None:
        ctx.value += 1

    with gp.agents.start([Vertex(k, 0) for k in range(3)], compute, workers=workers) as agents:
        assert agents.step()
    for _ in range(2):
        with pytest.raises(AgentError, match="the run has ended: its workers are gone"):
            agents.step()
    assert agents.result().values == {0: 1, 1: 1, 2: 1}
    agents.stop()
    assert not agents.step()


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


@pytest.mark.parametrize("workers", [0, 2])
def test_the_first_interrupt_stops_at_the_next_commit(workers: int, tmp_path: Path) -> None:
    done = run_with_interrupts(tmp_path, 1.0, workers, 1)
    assert done.stdout.split(None, 2) == ["stopped", "2", "{0: 2, 1: 2, 2: 2}\n"]
    assert done.returncode == 0


@pytest.mark.parametrize("workers", [0, 2])
def test_the_second_interrupt_stops_immediately(workers: int, tmp_path: Path) -> None:
    begin = time.monotonic()
    done = run_with_interrupts(tmp_path, 600.0, workers, 2)
    assert time.monotonic() - begin < 300
    assert done.stderr.rstrip().endswith("KeyboardInterrupt")
    assert done.stdout == ""


@pytest.mark.parametrize("workers", [0, 2])
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


@pytest.mark.parametrize("asynchronous", [False, True])
def test_records_in_process_are_stored_while_others_are_computed(asynchronous: bool, tmp_path: Path) -> None:
    path = tmp_path / "runs.db"

    def on_record() -> int:
        with gp.SQLiteStore(path, read_only=True) as other:
            return sum(len(Segment.unpack(data).records) for data in other.load("run").held())

    def compute(ctx: Any) -> None:
        if ctx.vertex_id == 2:
            for _ in range(1000):
                if on_record() == 2:
                    break
                time.sleep(0.01)
            ctx.value = on_record()
        elif ctx.vertex_id == 1:
            time.sleep(0.05)
        ctx.vote_to_halt()

    async def compute_async(ctx: Any) -> None:
        if ctx.vertex_id == 2:
            for _ in range(1000):
                await asyncio.sleep(0.01)
                if on_record() == 2:
                    break
            ctx.value = on_record()
        ctx.vote_to_halt()

    with gp.SQLiteStore(path) as store:
        chosen: Any = compute_async if asynchronous else compute
        result = gp.agents.run([Vertex(k) for k in range(3)], chosen, store=store, run_id="run")
    assert result.values[2] == 2


@pytest.mark.parametrize("workers", [0, 2])
def test_records_are_stored_when_the_with_block_is_left(workers: int, tmp_path: Path) -> None:
    marks = tmp_path / "marks"

    def compute(ctx: Any) -> None:
        with open(marks, "a") as file:
            file.write(f"{ctx.vertex_id}\n")
        ctx.value = "computed"
        ctx.vote_to_halt()

    def observe(event: Any) -> None:
        if event.kind == "attempt":
            raise KeyboardInterrupt

    with gp.MemoryStore() as store:
        keeping: dict[str, Any] = {"store": store, "run_id": "run", "workers": workers}
        with pytest.raises(KeyboardInterrupt):
            gp.agents.run([Vertex(0)], compute, observer=observe, **keeping)
        assert store.run("run").status == "stopped"
        result = gp.agents.resume(store, "run", compute, workers=workers)
        assert (result.status, result.values) == ("completed", {0: "computed"})
        assert store.run("run").status == "completed"
    assert marks.read_text() == "0\n"


def test_a_repeated_answer_and_a_retry_are_durable_immediately() -> None:
    begun: list[Any] = []

    def compute(ctx: Any) -> None:
        begun.append(ctx.vertex_id)
        if ctx.vertex_id == "fails" and begun.count("fails") == 1:
            raise ValueError
        ctx.value = ctx.vertex_id if ctx.vertex_id == "fails" else ctx.interrupt()
        ctx.vote_to_halt()

    with gp.MemoryStore() as store:
        options: dict[str, Any] = {"retry": ONCE}
        with gp.agents.start(
            [Vertex("asks"), Vertex("fails")], compute, store=store, run_id="run", **options
        ) as agents:
            agents.step()
            agents.answer("asks", 1)
            agents.retry()
        result = gp.agents.resume(store, "run", compute, answers={"asks": 1}, **options)
        assert (result.status, result.values) == ("completed", {"asks": 1, "fails": "fails"})
        with gp.agents.start([Vertex("asks")], compute, store=store, run_id="other") as agents:
            agents.step()
            agents.answer("asks", 1)
            with pytest.raises(ArgumentError, match="does not wait for an answer"):
                agents.answer("asks", 2)


def test_an_interrupt_between_the_commit_and_its_return_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def compute(ctx: Any) -> None:
        ctx.value += 1

    with gp.MemoryStore() as store:
        commit = store.commit

        def cut_off(claim: Any, step: int, *arguments: Any, **options: Any) -> None:
            commit(claim, step, *arguments, **options)
            if step == 1:
                raise KeyboardInterrupt

        monkeypatch.setattr(store, "commit", cut_off)
        with gp.agents.start([Vertex(0, 0)], compute, store=store, run_id="run", max_supersteps=4) as agents:
            agents.step()
            with pytest.raises(KeyboardInterrupt):
                agents.step()
            while agents.step():
                pass
            assert (agents.status, agents.result().values) == ("max_supersteps", {0: 4})
        assert [row.step for row in store.history("run")] == [0, 1, 2, 3]


def test_a_failure_of_an_unregistered_type_is_reported() -> None:
    unknown = encode("x")[:1] + b"\xc8\x00"
    with gp.agents.start([Vertex("a")], echo, retry=ONCE) as agents:
        agents._master.receive(EarlyMessage(encode("a"), unknown))
        agents.step()
        assert agents.status == "failed"
        assert agents.result().failed["a"].messages == [unknown]
