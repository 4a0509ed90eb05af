"""Workers that die repeatedly at any place, and large loads: equal results, and the right vertex is charged."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path
from typing import Any

import pytest

import gpu_pregel.agents as agents
from gpu_pregel.agents import Event, RetryPolicy, Vertex
from tests.agents import ONCE, WITHOUT_WAIT, leave_mark, marks, values
from tests.devices import LONG
from tests.host.agents.workers.worker_programs import counting, final_bytes, is_alive, running
from tests.worker_faults import arm, disarm

PLACES = {"loading": 1, "idle": 70, "computing": 1400, "marked": 70, "torn": 120, "committing": 70}
"""Maximum number of times that a worker reaches a place before it dies; it computes 20 vertices in a superstep."""


@pytest.mark.parametrize(
    "place", [pytest.param(place, marks=() if place in ("computing", "torn") else LONG) for place in PLACES]
)
def test_workers_die_repeatedly_at_a_place_during_200_supersteps(
    place: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    draw = random.Random(place)
    program: dict[str, Any] = {
        "vertices": [Vertex(k) for k in range(40)],
        "compute": counting(200),
        "max_supersteps": 300,
    }
    expected = final_bytes(agents.run(**program))
    deaths = 0

    def rearm() -> None:
        """Kill the first of the following workers that reaches the place often enough."""
        count = draw.randint((PLACES[place] + 1) // 2, PLACES[place])
        arm(monkeypatch, place, count, tmp_path / str(deaths))

    def watch(event: Event) -> None:
        nonlocal deaths
        if event.kind == "death":
            deaths += 1
            if place != "loading" or deaths % 2:
                rearm()
            else:
                disarm(monkeypatch)
        elif place == "loading" and event.kind == "commit" and event.superstep % 60 == 1:
            os.kill(draw.choice(running(run)), signal.SIGKILL)  # its replacement dies while loading

    if place != "loading":
        rearm()
    patient = RetryPolicy(attempts=50, wait=0)
    with agents.start(**program, workers=2, retry=patient, observer=watch) as run:
        while run.step():
            pass
        assert final_bytes(run.result()) == expected
    assert len(list(tmp_path.iterdir())) >= 3


@pytest.mark.parametrize("workers", [1, 2])
def test_only_the_async_vertex_that_kills_its_worker_fails(workers: int, tmp_path: Path) -> None:
    """No other vertex is charged, although one attempt is allowed; completed siblings are not computed again."""
    (folder := tmp_path / "started").mkdir()
    leave, sent = leave_mark(str(folder)), str(tmp_path / "sent")

    async def compute(ctx: Any) -> None:
        import asyncio
        import os
        import signal

        if ctx.vertex_id == "bad" or ctx.vertex_id >= "w":
            while not os.path.exists(sent):
                await asyncio.sleep(0.001)
        if ctx.vertex_id == "bad":
            os.kill(os.getpid(), signal.SIGKILL)
        if ctx.vertex_id >= "w":
            await asyncio.sleep(0.05)
        leave(ctx.vertex_id)
        ctx.value = ctx.attempt
        ctx.vote_to_halt()

    quick = [f"q{k}" for k in range(10)]
    names = [*quick, *(f"w{k}" for k in range(10))]
    ended: set[str] = set()

    def observe(event: Event) -> None:
        if event.kind == "attempt":
            ended.add(event.vertex)
            if ended >= set(quick):
                Path(sent).touch()

    vertices = [Vertex(name) for name in ["bad", *names]]
    result = agents.run(vertices, compute, workers=workers, retry=ONCE, on_failure="continue", observer=observe)
    assert {vertex: (one.kind, one.text) for vertex, one in result.failed.items()} == {
        "bad": ("death", "ended by SIGKILL")
    }
    values(result, {"bad": None, **dict.fromkeys(names, 1)})
    assert marks(folder) == names


def test_every_way_to_end_a_worker_fails_its_vertex() -> None:
    def compute(ctx: Any) -> None:
        import ctypes
        import os
        import resource
        import signal

        if ctx.vertex_id == "exits":
            os._exit(3)
        if ctx.vertex_id == "is killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if ctx.vertex_id == "is terminated":
            os.kill(os.getpid(), signal.SIGTERM)
        if ctx.vertex_id == "crashes":
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            ctypes.string_at(0)
        if ctx.vertex_id == "aborts":
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            os.abort()
        ctx.value = "done"
        ctx.vote_to_halt()

    ways = {
        "exits": "exited with code 3",
        "is killed": "ended by SIGKILL",
        "is terminated": "ended by SIGTERM",
        "crashes": "ended by SIGSEGV",
        "aborts": "ended by SIGABRT",
    }
    vertices = [Vertex(name) for name in [*ways, *"abcdefgh"]]
    result = agents.run(vertices, compute, workers=2, retry=ONCE, on_failure="continue")
    assert {vertex: (one.kind, one.type, one.text) for vertex, one in result.failed.items()} == {
        vertex: ("death", "WorkerDied", text) for vertex, text in ways.items()
    }
    values(result, {**dict.fromkeys(ways), **dict.fromkeys("abcdefgh", "done")})


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_timeout_kills_a_worker_that_stops_during_a_batch(asynchronous: bool, tmp_path: Path) -> None:
    folder = str(tmp_path)

    def stop_once(ctx: Any) -> None:
        import os
        import signal

        if ctx.vertex_id == 3 and ctx.superstep == 1 and not os.path.exists(f"{folder}/stopped"):
            os.close(os.open(f"{folder}/stopped", os.O_CREAT))
            os.kill(os.getpid(), signal.SIGSTOP)
        ctx.value = [*ctx.value, ctx.superstep, *ctx.messages]
        if ctx.superstep == 2:
            ctx.vote_to_halt()
        else:
            ctx.send((ctx.vertex_id + 1) % 8, ctx.vertex_id)

    async def stop_once_later(ctx: Any) -> None:
        import asyncio

        await asyncio.sleep(0)
        stop_once(ctx)

    deaths: list[str] = []

    def observer(event: Event) -> None:
        if event.kind == "death":
            deaths.append(event.facts["reason"])

    compute = stop_once_later if asynchronous else stop_once
    with agents.start(
        [Vertex(k, []) for k in range(8)], compute, workers=2, timeout=1.5, retry=WITHOUT_WAIT, observer=observer
    ) as run:
        before = running(run)
        while run.step():
            pass
        assert [reason.split(" more ")[0] for reason in deaths] == ["an attempt took"]
        assert len(set(running(run)) & set(before)) == 1
        assert sum(map(is_alive, before)) == 1
        values(run.result(), {k: [0, 1, (k - 1) % 8, 2, (k - 1) % 8] for k in range(8)})


def test_a_message_of_100_million_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    def compute(ctx: Any) -> None:
        if ctx.superstep == 0 and ctx.vertex_id == 0:
            ctx.send_to_neighbors(b"ab" * 50_000_000)
        elif ctx.messages:
            [message] = ctx.messages
            ctx.value = (len(message), message[:2], message[-2:], message.count(b"ab"))
        ctx.vote_to_halt()

    vertices = [Vertex(0, None, [1]), Vertex(1)]
    result = agents.run(vertices, compute, workers=2)
    values(result, {0: None, 1: (100_000_000, b"ab", b"ab", 50_000_000)})


@pytest.mark.parametrize("workers", [0, 2])
def test_an_outbox_of_100_000_messages(workers: int) -> None:
    def compute(ctx: Any) -> None:
        if ctx.superstep == 0 and ctx.vertex_id == 0:
            for number in range(100_000):
                ctx.send(1 + number % 3, number)
        elif ctx.messages:
            ctx.value = (len(ctx.messages), sum(ctx.messages), ctx.messages == sorted(ctx.messages))
        ctx.vote_to_halt()

    result = agents.run([Vertex(k) for k in range(4)], compute, workers=workers)
    # 0, 3, … 99,999 are 33,334 numbers; the others are 33,333 each, which are 1 and 2 more than 0, 3, … 99,996.
    values(
        result,
        {0: None, 1: (33_334, 1_666_683_333, True), 2: (33_333, 1_666_616_667, True), 3: (33_333, 1_666_650_000, True)},
    )


@pytest.mark.parametrize("workers", [0, 2])
def test_errors_of_limits_name_the_limit(workers: int) -> None:
    def compute(ctx: Any) -> None:
        if ctx.vertex_id == "message":
            ctx.send("fine", b"x" * 200)
        elif ctx.vertex_id == "outbox":
            for _ in range(10):
                ctx.send("fine", b"x" * 60)
        elif ctx.vertex_id == "record":
            ctx.value = b"x" * 2000
        else:
            ctx.value = len(ctx.messages)
        ctx.vote_to_halt()

    result = agents.run(
        [Vertex(name) for name in ("message", "outbox", "record", "fine")],
        compute,
        workers=workers,
        retry=WITHOUT_WAIT,
        on_failure="continue",
        max_message=100,
        max_outbox=500,
        max_record=1000,
    )
    assert {vertex: one.kind for vertex, one in result.failed.items()} == {
        "message": "data", "outbox": "data", "record": "limit",
    }  # fmt: skip
    assert "a message" in result.failed["message"].text
    assert "more than 500 bytes: send less, or raise max_outbox" in result.failed["outbox"].text
    assert "max_record is 1,000" in result.failed["record"].text
    values(result, {"message": None, "outbox": None, "record": None, "fine": 0})


def test_kills_do_not_change_random_numbers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def compute(ctx: Any) -> None:
        ctx.value = [*ctx.value, ctx.random.random(), ctx.key]
        if ctx.superstep == 3:
            ctx.vote_to_halt()

    vertices = [Vertex(k, []) for k in range(10)]
    expected = final_bytes(agents.run(vertices, compute, run_id="one"))
    arm(monkeypatch, "computing", 13, tmp_path / "mark")
    assert final_bytes(agents.run(vertices, compute, workers=2, retry=WITHOUT_WAIT, run_id="one")) == expected
    assert (tmp_path / "mark").exists()
