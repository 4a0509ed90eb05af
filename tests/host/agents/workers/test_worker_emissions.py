"""Emissions of worker processes: kills, signals, timeouts and slow observers."""

from __future__ import annotations

import asyncio
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
from gpu_pregel.host.agents.codec import encode
from gpu_pregel.host.agents.emissions import Emission, Emitter
from gpu_pregel.host.agents.records import Batch, Outcome, VertexData
from gpu_pregel.host.agents.workers.executor import Executor
from tests.agents import ONCE
from tests.devices import LONG
from tests.host.agents.workers.worker_programs import partition_options

TWICE = RetryPolicy(attempts=2, wait=0)
MEGABYTE = 1 << 20


def story(events: list[Event], *kinds: str) -> list[tuple[Any, ...]]:
    """Return what happened, in order: kind, attempt, and the number of an emission."""
    return [
        (event.kind, event.attempt, event.facts["sequence"]) if event.kind == "emit" else (event.kind, event.attempt)
        for event in events
        if event.kind in ("emit", *kinds)
    ]


@pytest.mark.parametrize("written", [1, 9, 1000, 5_000_000])
def test_a_worker_killed_in_the_middle_of_an_emission_loses_only_that_one(written: int) -> None:
    large = bytes(range(256)) * 40_000

    def compute(ctx: Any) -> None:
        write = os.writev

        def torn(fd: int, parts: Any) -> None:
            rest = b"".join(parts)[:written]
            while rest:
                rest = rest[os.write(fd, rest) :]
            os.kill(os.getpid(), signal.SIGKILL)

        ctx.emit("first")
        os.writev = torn if ctx.attempt == 1 else write  # type: ignore[assignment]
        ctx.emit(large)
        ctx.emit("last")
        ctx.value = ctx.attempt
        ctx.vote_to_halt()

    events: list[Event] = []
    result = agents.run([Vertex("a")], compute, workers=1, retry=TWICE, observer=events.append)
    assert result.values == {"a": 2}
    assert story(events, "death", "attempt") == [
        ("emit", 1, 0),
        ("death", None),
        ("emit", 2, 0),
        ("emit", 2, 1),
        ("emit", 2, 2),
        ("attempt", 2),
    ]
    payloads = [event.facts["payload"] for event in events if event.kind == "emit"]
    assert payloads == ["first", "first", large, "last"]


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=LONG) for seed in range(1, 8))])
@pytest.mark.parametrize("kind", ["ordinary", "async"])
def test_workers_killed_at_random_leave_whole_emissions_in_order(kind: str, seed: int) -> None:
    def payload(superstep: int, vertex: int, number: int) -> bytes:
        draw = random.Random(f"{superstep} {vertex} {number}")
        return draw.randbytes(draw.choice([0, 5, 1000, 100_000, 400_000]))

    def ordinary(ctx: Any) -> None:
        for number in range(8):
            ctx.emit(payload(ctx.superstep, ctx.vertex_id, number))
        if ctx.superstep == 2:
            ctx.vote_to_halt()

    async def on_loop(ctx: Any) -> None:
        for number in range(8):
            ctx.emit(payload(ctx.superstep, ctx.vertex_id, number))
            await asyncio.sleep(0)
        if ctx.superstep == 2:
            ctx.vote_to_halt()

    draw, kills = random.Random(seed), 5
    seen: dict[tuple[int, int], int] = {}
    completed: list[tuple[int, int]] = []
    deaths = 0

    def observe(event: Event) -> None:
        nonlocal kills, deaths
        place = event.superstep, event.vertex
        deaths += event.kind == "death"
        if event.kind == "emit":
            number = event.facts["sequence"]
            assert number in (0, seen.get(place, 0))  # 0 again after a death
            assert event.facts["payload"] == payload(*place, number)
            seen[place] = number + 1
            processes = run._policy._transport._processes  # type: ignore[attr-defined]
            busy = [one for one in processes if not one.is_finished and one.running()]
            if kills and busy and draw.random() < 0.05:
                kills -= 1
                draw.choice(busy).end_group()
        elif event.kind == "attempt" and event.facts["status"] == "completed":
            assert seen[place] == 8
            completed.append(place)

    compute = ordinary if kind == "ordinary" else on_loop
    patient = RetryPolicy(attempts=20, wait=0)
    with agents.start([Vertex(k) for k in range(12)], compute, workers=2, retry=patient, observer=observe) as run:
        while run.step():
            pass
    assert sorted(completed) == [(superstep, vertex) for superstep in range(3) for vertex in range(12)]
    assert deaths


def test_a_signal_handler_that_raises_tears_no_emission() -> None:
    """An alarm may interrupt the writing of a frame at any time, such as in a library that limits the time of calls."""

    def compute(ctx: Any) -> None:
        is_armed, raised = False, 0

        def expire(*_: Any) -> None:
            if is_armed:
                raise TimeoutError

        signal.signal(signal.SIGALRM, expire)
        for number in range(100_000):
            try:
                try:
                    is_armed = True
                    signal.setitimer(signal.ITIMER_REAL, 0.0002 + 0.00001 * (number % 100))
                    ctx.emit(bytes([number % 256]) * 300_000)
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
                    is_armed = False
            except TimeoutError:
                raised += 1
            if raised == 30:
                break
        ctx.value = raised
        ctx.vote_to_halt()

    events: list[Event] = []

    def observe(event: Event) -> None:
        if event.kind == "emit":
            payload = event.facts["payload"]
            assert payload == payload[:1] * 300_000
            event.facts["payload"] = payload[:1]
            time.sleep(0.001)
        events.append(event)

    result = agents.run([Vertex("a")], compute, workers=1, retry=ONCE, observer=observe)
    assert result.values == {"a": 30}
    sequence = [event.facts["sequence"] for event in events if event.kind == "emit"]
    assert sequence == sorted(set(sequence))
    assert not [event for event in events if event.kind in ("death", "failure")]


@pytest.mark.parametrize("kind", ["ordinary", "async"])
def test_emissions_come_before_the_timeout_of_their_attempt(kind: str) -> None:
    def ordinary(ctx: Any) -> None:
        import time

        for number in range(3):
            ctx.emit(number)
        time.sleep(60)

    async def on_loop(ctx: Any) -> None:
        for number in range(3):
            ctx.emit(number)
        await asyncio.sleep(60)

    events: list[Event] = []
    options: Any = {"workers": 1, "timeout": 0.3, "retry": TWICE, "on_failure": "continue", "observer": events.append}
    result = agents.run([Vertex("a")], ordinary if kind == "ordinary" else on_loop, **options)
    assert result.failed["a"].kind == "timeout"
    emitted = [[("emit", attempt, number) for number in range(3)] for attempt in (1, 2)]
    assert story(events, "attempt") == [*emitted[0], ("attempt", 1), *emitted[1], ("attempt", 2)]


@pytest.mark.parametrize("kind", ["ordinary", "async"])
def test_no_attempt_is_charged_for_a_slow_observer(kind: str) -> None:
    """The worker has to wait for the master, which waits for the observer for longer than the timeout."""

    def ordinary(ctx: Any) -> None:
        for _ in range(4):
            ctx.emit(b"x" * MEGABYTE)
        ctx.vote_to_halt()

    async def on_loop(ctx: Any) -> None:
        for _ in range(4 if ctx.vertex_id == 0 else 1):
            ctx.emit(b"x" * MEGABYTE)
            await asyncio.sleep(0)
        await asyncio.sleep(0.1)
        ctx.vote_to_halt()

    events: list[Event] = []

    def observe(event: Event) -> None:
        events.append(event)
        if [one.kind for one in events].count("emit") == 1 and event.kind == "emit":
            time.sleep(2)

    compute: Any = ordinary if kind == "ordinary" else on_loop
    result = agents.run([Vertex(0), Vertex(1)], compute, workers=1, timeout=1, retry=ONCE, observer=observe)
    assert result.status == "completed"
    assert len(story(events)) == (8 if kind == "ordinary" else 5)


def test_the_mark_of_an_attempt_does_not_count_the_time_of_its_emissions() -> None:
    def compute(ctx: Any) -> None:
        import sys

        frame: Any = sys._getframe()
        while frame.f_code.co_name != "_compute_in_order":
            frame = frame.f_back
        marks = frame.f_locals["begun"]
        first, begun = marks[0], time.monotonic()
        for _ in range(4):
            ctx.emit(b"x" * MEGABYTE)
        ctx.value = marks[0] - first, time.monotonic() - begun
        ctx.vote_to_halt()

    result = agents.run([Vertex("a")], compute, workers=1, observer=lambda event: None)
    left_out, elapsed = result.values["a"]
    assert 0 < left_out <= elapsed


def execute(compute: Any, emitter: Emitter, on_outcome: Any) -> None:
    """Compute a vertex once."""
    executor = Executor(partition_options(compute))
    executor.emit_by(emitter)
    executor.load({encode("a"): VertexData(encode(None), ())})
    executor.execute(Batch(0, 1, "compute", {}, [(encode("a"), 1, (), ())]), on_outcome)


@pytest.mark.parametrize("end", ["completed", "failed"])
def test_an_attempt_ends_after_the_emission_that_has_to_be_sent(end: str) -> None:
    sending = threading.Event()
    log: list[Any] = []

    def send(emission: Emission) -> None:
        sending.set()
        time.sleep(0.1)
        log.append(emission.sequence)

    def compute(ctx: Any) -> None:
        threading.Thread(target=ctx.emit, args=("last",)).start()
        sending.wait()
        if end == "failed":
            raise ValueError

    execute(compute, Emitter(send), lambda outcome: log.append(outcome.status))
    assert log == [0, end]


def test_an_emission_that_waits_when_its_attempt_ends_is_refused() -> None:
    waits, room = threading.Event(), threading.Event()
    sent: list[Emission] = []
    refused: list[str] = []

    def wait() -> None:
        waits.set()
        room.wait()

    def tell(ctx: Any) -> None:
        try:
            ctx.emit("late")
        except RuntimeError as error:
            refused.append(str(error))

    def compute(ctx: Any) -> None:
        threads.append(threading.Thread(target=tell, args=(ctx,)))
        threads[-1].start()
        waits.wait()

    threads: list[threading.Thread] = []
    outcomes: list[Outcome] = []
    execute(compute, Emitter(sent.append, wait), outcomes.append)
    room.set()
    threads[0].join()
    assert [outcome.status for outcome in outcomes] == ["completed"]
    assert sent == []
    assert "the attempt has ended" in refused[0]


def test_a_worker_is_never_far_ahead_of_a_slow_observer(tmp_path: Path) -> None:
    """What it has emitted and no observer has seen is in the buffer of the socket, and one more in the master."""
    count = str(tmp_path / "count")

    def compute(ctx: Any) -> None:
        with open(count, "wb", 0) as file:
            for _ in range(20):
                ctx.emit(b"x" * MEGABYTE)
                file.write(b".")
        ctx.vote_to_halt()

    ahead: list[int] = []

    def observe(event: Event) -> None:
        if event.kind == "emit":
            time.sleep(0.01)
            ahead.append(os.path.getsize(count) - event.facts["sequence"])

    agents.run([Vertex("a")], compute, workers=1, observer=observe)
    assert len(ahead) == 20
    assert max(ahead) <= 3
