"""``ctx.emit``: emissions are whole, in order and before the end of their attempt, wherever it runs."""

from __future__ import annotations

import asyncio
import itertools
import os
import threading
import time
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import gpu_pregel.agents as agents
from gpu_pregel.agents import AgentResult, Event, Vertex
from gpu_pregel.errors import AgentsFailedError
from gpu_pregel.host.agents.workers import emission_buffer
from tests.agents import FEW, ONCE, ONE_WORKER, WITHOUT_WAIT

DRIVERS = pytest.mark.parametrize("driver", ["run", "arun"])
KINDS = pytest.mark.parametrize("kind", ["ordinary", "async"])


def drive(driver: str, vertices: Any, compute: Any, **options: Any) -> AgentResult:
    """Run to the end."""
    given = [Vertex(vertex) for vertex in vertices]
    if driver == "run":
        return agents.run(given, compute, **options)
    return asyncio.run(agents.arun(given, compute, **options))


def of_kind(compute: Any, kind: str) -> Any:
    """Return a compute function that does the same as an ordinary one, and yields to others when that yields."""
    if kind == "ordinary":

        def ordinary(ctx: Any) -> None:
            for _ in compute(ctx):
                pass

        return ordinary

    async def on_loop(ctx: Any) -> None:
        for _ in compute(ctx):
            await asyncio.sleep(0)

    return on_loop


def by_attempt(events: list[Event]) -> dict[tuple[Any, ...], list[Any]]:
    """Return the payloads of each attempt, whose sequence is checked, and ``None`` where it ends."""
    found: dict[tuple[Any, ...], list[Any]] = {}
    for event in events:
        if event.kind in ("emit", "attempt"):
            seen = found.setdefault((event.superstep, event.vertex, event.attempt), [])
            if event.kind == "emit":
                assert event.facts["sequence"] == len(seen)
            seen.append(event.facts.get("payload"))
    return found


@FEW
@DRIVERS
@KINDS
def test_emissions_are_whole_and_in_order_and_before_the_end(workers: int, driver: str, kind: str) -> None:
    sizes = [0, 10, 70_000, 3, 900_000, 1]

    def compute(ctx: Any) -> Any:
        for number, size in enumerate(sizes):
            ctx.emit((ctx.superstep, ctx.vertex_id, bytes([65 + number, ctx.vertex_id]) * size))
            yield
        if ctx.superstep == 1:
            ctx.vote_to_halt()

    events: list[Event] = []
    result = drive(driver, range(5), of_kind(compute, kind), workers=workers, observer=events.append)
    assert result.status == "completed"
    sent = {
        (step, vertex, 1): [(step, vertex, bytes([65 + k, vertex]) * size) for k, size in enumerate(sizes)] + [None]
        for step in range(2)
        for vertex in range(5)
    }
    assert by_attempt(events) == sent


@FEW
@DRIVERS
@KINDS
def test_an_emission_arrives_while_its_attempt_runs(workers: int, driver: str, kind: str, tmp_path: Path) -> None:
    mark = str(tmp_path / "seen")

    def compute(ctx: Any) -> Any:
        ctx.emit({"day": date(2026, 11, 23), "parts": (1, {2.5})})
        for _ in range(3000):
            if os.path.exists(mark):
                break
            time.sleep(0.01)
            yield
        else:
            raise TimeoutError("no observer has seen the emission")
        ctx.vote_to_halt()

    def observe(event: Event) -> None:
        if event.kind == "emit":
            assert event.facts == {"sequence": 0, "payload": {"day": date(2026, 11, 23), "parts": (1, {2.5})}}
            Path(mark).touch()

    compute = of_kind(compute, kind)
    assert drive(driver, ["a"], compute, workers=workers, observer=observe, retry=ONCE).status == "completed"


@FEW
@DRIVERS
@KINDS
def test_emissions_of_threads_are_numbered_in_their_order(workers: int, driver: str, kind: str) -> None:
    def compute(ctx: Any) -> Any:
        def tell(name: int) -> None:
            for number in range(25):
                ctx.emit((name, number, b"x" * 2000))

        threads = [threading.Thread(target=tell, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            threads[-1].join(0.001)
            yield
        ctx.vote_to_halt()

    events: list[Event] = []
    drive(driver, "ab", of_kind(compute, kind), workers=workers, observer=events.append)
    found = by_attempt(events)
    assert set(found) == {(0, "a", 1), (0, "b", 1)}
    for payloads in found.values():
        assert payloads.pop() is None
        for name in range(4):
            assert [number for one, number, _ in payloads if one == name] == [*range(25)]
        assert len(payloads) == 100


@ONE_WORKER
@KINDS
def test_emissions_after_the_attempt_are_refused(workers: int, kind: str) -> None:
    """Also those of an attempt that failed or waits for an answer, and those without observers."""
    kept: list[Any] = []  # a worker has its own

    def compute(ctx: Any) -> Any:
        for before in kept:
            text = "not refused"
            try:
                before.emit("late")
            except RuntimeError as error:
                text = str(error)
            assert "the attempt has ended" in text
        kept[:] = [ctx]
        ctx.emit(ctx.superstep)
        yield
        if ctx.superstep == 0 and ctx.attempt == 1:
            raise ValueError
        if ctx.superstep == 1:
            ctx.interrupt()
        if ctx.superstep == 2:
            ctx.vote_to_halt()

    events: list[Event] = []
    for observer in (events.append, ()):
        options: Any = {"workers": workers, "retry": WITHOUT_WAIT, "observer": observer}
        with agents.start([Vertex("a")], of_kind(compute, kind), **options) as run:
            while run.step() or run.status == "interrupted":
                if run.status == "interrupted":
                    run.answer("a", None)
            assert run.status == "completed"
    found = [(event.superstep, event.attempt, event.facts.get("payload")) for event in events
             if event.kind in ("emit", "attempt")]  # fmt: skip
    failed, again, asked, answered = ((0, 1), (0, 2), (1, 1), (1, 1))
    assert found == [(*one, what) for one in (failed, again, asked, answered, (2, 1)) for what in (one[0], None)]
    assert all(event.facts["sequence"] == 0 for event in events if event.kind == "emit")


@FEW
def test_a_payload_that_is_no_data_fails_its_attempt(workers: int) -> None:
    def compute(ctx: Any) -> None:
        ctx.emit({"parts": [1, max]})

    for observer in ((), lambda event: None):
        with pytest.raises(AgentsFailedError) as caught:
            agents.run([Vertex("a")], compute, workers=workers, observer=observer)
        failure = caught.value.result.failed["a"]
        assert failure.kind == "data"
        assert failure.text.startswith("payload['parts'][1] is of type builtin_function_or_method")


@FEW
@KINDS
def test_what_an_observer_raises_ends_the_step_and_not_the_attempt(workers: int, kind: str) -> None:
    def compute(ctx: Any) -> Any:
        for number in range(3):
            ctx.emit(number)
            yield
        ctx.value = ctx.attempt
        ctx.vote_to_halt()

    seen: list[Any] = []

    def observe(event: Event) -> None:
        if event.kind == "emit":
            seen.append(event.facts["payload"])
            if seen == [0]:
                raise ZeroDivisionError("an error of the observer")

    with agents.start([Vertex("a")], of_kind(compute, kind), workers=workers, observer=observe) as run:
        with pytest.raises(ZeroDivisionError, match="an error of the observer"):
            run.step()
        while run.step():
            pass
        assert run.result().values == {"a": 1}
    assert seen == [0, 1, 2]


@FEW
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_cannot_emit(workers: int) -> None:
    def compute(ctx: Any) -> None:
        ctx.emit("parent")
        child = os.fork()
        if child == 0:
            try:
                ctx.emit("child")
            except RuntimeError:
                os._exit(7)
            os._exit(0)
        ctx.emit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        ctx.vote_to_halt()

    events: list[Event] = []
    agents.run([Vertex("a")], compute, workers=workers, observer=events.append)
    assert by_attempt(events) == {(0, "a", 1): ["parent", 7, None]}


@DRIVERS
def test_a_function_on_an_event_loop_does_not_wait_for_observers(driver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It fails if too much is pending; from a thread it waits until observers have seen enough."""
    monkeypatch.setattr(emission_buffer, "_MAX_PENDING", 10_000)
    made: list[emission_buffer.EmissionBuffer] = []
    make = emission_buffer.EmissionBuffer.__init__

    def keep(buffer: emission_buffer.EmissionBuffer, loop: Any) -> None:
        make(buffer, loop)
        made.append(buffer)

    monkeypatch.setattr(emission_buffer.EmissionBuffer, "__init__", keep)
    pending: list[int] = []

    def observe(event: Event) -> None:
        if event.kind == "emit":
            time.sleep(0 if pending else 0.2)
            pending.append(len(made[0].pending))

    async def waits(ctx: Any) -> None:
        for number in range(200):
            await asyncio.to_thread(ctx.emit, (number, b"x" * 500))
        ctx.vote_to_halt()

    async def floods(ctx: Any) -> None:
        for number in itertools.count():
            ctx.emit((number, b"x" * 500))

    assert drive(driver, "a", waits, observer=observe).status == "completed"
    assert len(pending) == 200
    assert max(pending) < 30
    with pytest.raises(AgentsFailedError) as caught:
        drive(driver, "a", floods, observer=observe, retry=ONCE)
    assert "asyncio.to_thread(ctx.emit, payload)" in caught.value.result.failed["a"].text


def test_an_observer_may_run_an_event_loop() -> None:
    """It is called while no attempt's loop runs on its thread."""

    async def compute(ctx: Any) -> None:
        ctx.emit("one")
        await asyncio.sleep(0)
        ctx.emit("two")
        ctx.vote_to_halt()

    seen: list[Any] = []

    async def tell(event: Event) -> None:
        seen.append(event.facts["payload"])

    def observe(event: Event) -> None:
        if event.kind == "emit":
            asyncio.run(tell(event))

    for driver in ("run", "arun"):
        drive(driver, "a", compute, observer=observe)
    assert seen == ["one", "two"] * 2


def test_timeouts_do_not_count_the_time_of_observers() -> None:
    async def compute(ctx: Any) -> None:
        for number in range(4):
            ctx.emit(number)
            await asyncio.sleep(0.01)
        ctx.vote_to_halt()

    def observe(event: Event) -> None:
        if event.kind == "emit":
            time.sleep(0.4)

    assert drive("run", "ab", compute, observer=observe, timeout=1, retry=ONCE).status == "completed"


def test_emissions_before_an_interruption_are_not_lost() -> None:
    """Ctrl-C, for example; the vertex that had ended is not computed again."""

    async def compute(ctx: Any) -> None:
        ctx.emit(ctx.vertex_id)
        ctx.vote_to_halt()
        if ctx.vertex_id == "b" and not stopped:
            stopped.append(True)
            raise KeyboardInterrupt

    stopped: list[bool] = []
    events: list[Event] = []
    with agents.start([Vertex("a"), Vertex("b")], compute, observer=events.append) as run:
        with pytest.raises(KeyboardInterrupt):
            run.step()
        while run.step():
            pass
    emitted = [event.vertex for event in events if event.kind == "emit"]
    assert emitted == ["a", "b", "b"]
    ended = [event.kind for event in events if event.vertex == "a"]
    assert ended == ["emit", "attempt"]
