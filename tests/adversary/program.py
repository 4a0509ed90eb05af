"""The program that is killed: what its vertices do, and the lines by which they log it.

Its result does not depend on when other programs send messages, answer, cancel or kill. Each attempt appends a line
with its key to a log and forces it to disk, which is the effect that must not be repeated once its record is durable,
and another line when it is about to return.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gpu_pregel as gp
from gpu_pregel.errors import StoreError

RUN = "run"
STEPS = 6
"""The usual number of supersteps; messages and timers may add some."""
STEP, HELD = 2, 3
"""The superstep in which a vertex fails first, and the one in which another asks."""
MESSAGES = 4
"""Number of messages that another program sends."""
RING = ["a", "b", "c", "d", "e", "f", "asks", "beats", "fails", "grows"]
TIMED = ["sleeps", "till"]
"""Vertices that are computed when a timer or a message comes, in superstep 0, and not otherwise."""
VERTICES = [
    *(gp.agents.Vertex(name, [], [RING[(k + 1) % len(RING)]]) for k, name in enumerate(RING)),
    gp.agents.Vertex("sleeps", 0),
    gp.agents.Vertex("till", []),
]


@dataclass(frozen=True)
class Settings:
    """How the program runs.

    Attributes
    ----------
    log : str
    incarnation : str
        Names the process that runs it, in the log.
    workers : int
    is_async : bool
    steps : int
    pause : float
        Maximum seconds of an attempt.
    """

    log: str
    incarnation: str
    workers: int = 0
    is_async: bool = False
    steps: int = STEPS
    pause: float = 0.02


def program(settings: Settings) -> dict[str, Any]:
    """Return the arguments of a run."""
    log, incarnation, steps, pause = settings.log, settings.incarnation, settings.steps, settings.pause

    def note(kind: str, ctx: Any, *, forced: bool) -> None:
        import os
        import time

        words = kind, incarnation, ctx.superstep, ctx.vertex_id, os.getpid(), ctx.key, f"{time.monotonic():.6f}"
        file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(file, (" ".join(map(str, words)) + "\n").encode())
            if forced:
                os.fsync(file)
        finally:
            os.close(file)

    def act(ctx: Any) -> Iterator[float]:
        """Compute a vertex; yields how long to sleep."""
        draw, answer, step, vertex = ctx.random.random(), None, ctx.superstep, ctx.vertex_id
        if (step, vertex) == (STEP, "fails") and ctx.attempt == 1:
            raise OSError("not yet")
        if (step, vertex) == (HELD, "asks"):
            answer = ctx.interrupt("which?")
        yield draw * pause / 2
        note("effect", ctx, forced=True)
        yield draw * pause / 2
        if vertex == "sleeps":
            sleep(ctx)
        elif vertex == "till":
            ctx.value = sorted([*ctx.value, *ctx.messages])
            ctx.vote_to_halt()
        else:
            for _ in range(0 if vertex != "beats" else 30 if step == STEP else 3):
                ctx.heartbeat()
                yield pause  # the records of others must be durable meanwhile
            turn(ctx, draw, answer)
        note("finish", ctx, forced=False)

    def sleep(ctx: Any) -> None:
        import time

        if ctx.superstep == 0:
            ctx.wake_at(time.time() + 3 * pause)
        else:
            ctx.value += 1
        ctx.vote_to_halt()

    def turn(ctx: Any, draw: float, answer: Any) -> None:
        step, vertex = ctx.superstep, ctx.vertex_id
        if vertex == "grows":
            ctx.value = [*ctx.value, *([f"{step} {draw} {k}" * 10 for k in range(200 if step == 0 else 5)])]
        else:
            ctx.value = [*ctx.value, (step, ctx.messages, draw, ctx.aggregated("total"), answer, ctx.num_vertices)]
        ctx.aggregate("total", step + len(ctx.messages))
        if step == 1 and vertex == "a":
            ctx.add_vertex("new", [], ["a"])
            ctx.add_edge("b", "new", 2.5)
        if step == 3 and vertex == "c":
            ctx.remove_edge("a", "b")
        if step == 4 and vertex == "f":
            ctx.remove_vertex("new")
        if step < steps - 1:
            ctx.send_to_neighbors([vertex, step])
        else:
            ctx.vote_to_halt()

    def compute(ctx: Any) -> None:
        import time

        for seconds in act(ctx):
            time.sleep(seconds)

    async def compute_on_loop(ctx: Any) -> None:
        import asyncio

        for seconds in act(ctx):
            await asyncio.sleep(seconds)

    async def late_on_loop(ctx: Any) -> None:
        await compute_on_loop(ctx)
        ctx.aggregate("most", len(ctx.value) if ctx.vertex_id in RING else 0)

    def late(ctx: Any) -> None:
        compute(ctx)
        ctx.aggregate("most", len(ctx.value) if ctx.vertex_id in RING else 0)

    def direct(m: Any) -> None:
        if m.superstep == 3:
            m.use("late")

    return {
        "compute": compute_on_loop if settings.is_async else compute,
        "functions": {"late": late_on_loop if settings.is_async else late},
        "master": direct,
        "aggregators": {"total": gp.agents.Aggregator("sum", initial=0, persistent=True), "most": "max"},
        "retry": gp.agents.RetryPolicy(attempts=1000, wait=0.005, max_wait=0.01),
        "on_missing": "drop",
        "workers": settings.workers,
        "timeout": 60 if settings.workers or settings.is_async else None,
        "base_every": 2,
    }


def open_store(where: str) -> Any:
    """The store at a path, or at ``dsn|schema``; opening one fails at once while the server is restarted."""
    import time

    dsn, _, schema = where.partition("|")
    if not schema:
        return gp.SQLiteStore(where, patience=60)
    deadline = time.monotonic() + 60
    while True:
        try:
            return gp.PostgresStore(dsn, schema=schema, patience=60)
        except StoreError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
