"""Attempts that run at the same time, and exits, cancellations and timeouts of one of them."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import gpu_pregel.agents as agents
from gpu_pregel.agents import Vertex
from gpu_pregel.host.agents.workers import event_loops
from tests.agents import ONCE, ONE_WORKER, PROCESSES, WORKERS, one_per_partition, values


@WORKERS
def test_async_vertices_run_concurrently(workers: int, tmp_path: Path) -> None:
    """Each waits for all others, so a sequential run would block."""
    folder = str(tmp_path)

    async def compute(ctx: Any) -> None:
        import asyncio
        import os

        os.close(os.open(f"{folder}/{ctx.vertex_id}", os.O_CREAT))
        async with asyncio.timeout(200):
            while len(os.listdir(folder)) < ctx.num_vertices:
                await asyncio.sleep(0.001)
        ctx.value = "met"
        ctx.vote_to_halt()

    vertices = [Vertex(k) for k in range(60)]
    result = agents.run(vertices, compute, workers=workers, retry=ONCE, max_concurrency=60)
    values(result, dict.fromkeys(range(60), "met"))


@PROCESSES
def test_ordinary_functions_run_concurrently_in_their_workers(workers: int, tmp_path: Path) -> None:
    folder = str(tmp_path)

    def compute(ctx: Any) -> None:
        import os

        os.close(os.open(f"{folder}/{ctx.vertex_id}", os.O_CREAT))
        until = time.monotonic() + 200
        while len(os.listdir(folder)) < ctx.num_vertices:
            assert time.monotonic() < until, "no other vertex is running"
            time.sleep(0.001)
        ctx.value = "met"
        ctx.vote_to_halt()

    chosen = one_per_partition(workers)
    result = agents.run([Vertex(k) for k in chosen], compute, workers=workers, retry=ONCE)
    values(result, dict.fromkeys(chosen, "met"))


@ONE_WORKER
def test_an_exit_in_a_task_of_an_async_function_fails_only_its_vertex(workers: int) -> None:
    async def compute(ctx: Any) -> None:
        import asyncio
        import sys

        async def leave() -> None:
            await asyncio.sleep(0.001)
            if ctx.vertex_id == "interrupts":
                raise KeyboardInterrupt
            sys.exit(5)

        async def stay() -> None:
            await asyncio.sleep(0.02)

        ctx.value = "spoilt"
        if ctx.vertex_id == "of a group":
            async with asyncio.TaskGroup() as group:
                group.create_task(leave())
                group.create_task(stay())
        elif ctx.vertex_id in ("exits", "interrupts"):
            await asyncio.gather(leave(), stay())
        await asyncio.sleep(0.05)
        ctx.value = "done"
        ctx.vote_to_halt()

    names = ["exits", "of a group", "fine", "fine too"]
    kinds = {"exits": "SystemExit", "of a group": "SystemExit"}
    if workers:  # in process, it is raised to the user
        names, kinds = [*names, "interrupts"], {**kinds, "interrupts": "KeyboardInterrupt"}
    result = agents.run([Vertex(name) for name in names], compute, workers=workers, retry=ONCE, on_failure="continue")
    assert {vertex: (one.kind, one.type) for vertex, one in result.failed.items()} == {
        name: ("exception", kind) for name, kind in kinds.items()
    }
    values(result, {name: None if name in kinds else "done" for name in names})


@ONE_WORKER
def test_an_attempt_that_ignores_cancellation_is_abandoned_after_a_second(workers: int) -> None:
    async def compute(ctx: Any) -> None:
        import asyncio

        if ctx.vertex_id == "ends in time":
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                await asyncio.sleep(0.05)
                raise
        while ctx.vertex_id == "refuses":
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                ctx.value = "spoilt"
        ctx.value = "done"
        ctx.vote_to_halt()

    names = ["ends in time", "refuses", "fine"]
    result = agents.run(
        [Vertex(name) for name in names],
        compute,
        workers=workers,
        timeout=1.5,
        retry=ONCE,
        on_failure="continue",
    )
    assert {vertex: (one.kind, one.type) for vertex, one in result.failed.items()} == dict.fromkeys(
        names[:2], ("timeout", "TimeoutError")
    )
    assert "took more than 1.5 s" in result.failed["refuses"].text
    values(result, {"ends in time": None, "refuses": None, "fine": "done"})


def test_a_thread_that_survives_a_timeout_does_not_block_the_run() -> None:
    async def compute(ctx: Any) -> None:
        import asyncio

        await asyncio.to_thread(release.wait, 3600)

    release = threading.Event()
    try:
        result = agents.run([Vertex("a")], compute, timeout=0.1, retry=ONCE, on_failure="continue")
    finally:
        release.set()
    assert result.failed["a"].kind == "timeout"


@pytest.mark.parametrize("end", ["exits", "never ends"])
def test_a_generator_that_was_left_open_does_not_end_or_block_a_run(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def generate() -> Any:
        try:
            yield 1
        finally:
            ended.append(end)
            if end == "exits":
                raise SystemExit(3)
            while True:
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(3600)

    async def compute(ctx: Any) -> None:
        generators.append(generate())
        ctx.value = await anext(generators[-1])
        ctx.vote_to_halt()

    generators: list[Any] = []
    ended: list[str] = []
    monkeypatch.setattr(event_loops, "GRACE", 0.05)
    values(agents.run([Vertex("a"), Vertex("b")], compute, retry=ONCE), {"a": 1, "b": 1})
    assert ended == [end] * 2
