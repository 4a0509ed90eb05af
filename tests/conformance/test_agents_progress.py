"""The state of a superstep while it runs, in this process, on threads, on an event loop and in worker processes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.agents import AgentRun, Context, RetryPolicy, Vertex

WAYS = [
    pytest.param({}, 1, id="0 workers"),
    pytest.param({"threads": 2}, 2, id="threads"),
    pytest.param({"workers": 1}, 1, id="1 worker"),
    pytest.param({"workers": 2}, 2, id="2 workers"),
    pytest.param({"max_concurrency": 2}, 2, id="async, 0 workers"),
    pytest.param({"max_concurrency": 2, "workers": 1}, 2, id="async, 1 worker"),
]
"""Options, and how many of six vertices are computed at the same time."""
STAGES = ["pending", "in_progress", "completed"]


def gated(folder: Path) -> Callable[[Context], None]:
    """A function whose attempts begin a file each, and end once there is another one."""

    def compute(ctx: Context) -> None:
        import time

        (folder / f"begun {ctx.vertex_id}").touch()
        while not (folder / f"go {ctx.vertex_id}").exists():
            time.sleep(0.002)
        ctx.send(ctx.vertex_id, "done")
        ctx.vote_to_halt()

    return compute


def gated_on_loop(folder: Path) -> Callable[[Context], Any]:
    async def compute(ctx: Context) -> None:
        import asyncio

        (folder / f"begun {ctx.vertex_id}").touch()
        while not (folder / f"go {ctx.vertex_id}").exists():
            await asyncio.sleep(0.002)
        ctx.send(ctx.vertex_id, "done")
        ctx.vote_to_halt()

    return compute


@contextmanager
def stepping(agents: AgentRun) -> Any:
    """Run one superstep on another thread."""
    thread = threading.Thread(target=agents.step)
    thread.start()
    try:
        yield
    finally:
        thread.join()


class Watch:
    """The stages of the vertices as another thread sees them, which only ever advance."""

    def __init__(self, agents: AgentRun) -> None:
        self._agents = agents
        self.seen: dict[int, list[str]] = {}

    def look(self) -> dict[int, str]:
        state = self._agents.superstep_state
        if state is None:
            return {}
        stages = {one: progress.status for one, progress in state.items()}
        for one, stage in stages.items():
            before = self.seen.setdefault(one, [])
            if not before or before[-1] != stage:
                assert not before or STAGES.index(before[-1]) < STAGES.index(stage), (one, before, stage)
                before.append(stage)
            assert state[one].attempts == (0 if stage == "pending" else 1)
            assert (state[one].computed is not None) == (stage == "completed")
        return stages

    def wait(self, **counts: int) -> dict[int, str]:
        """Wait until so many vertices are in each stage."""
        end = time.monotonic() + 20
        while True:
            stages = self.look()
            if {stage: list(stages.values()).count(stage) for stage in counts} == counts:
                return stages
            assert time.monotonic() < end, (counts, stages)
            time.sleep(0.001)


@pytest.mark.parametrize("options, width", WAYS)
def test_vertices_wait_run_and_end(options: dict[str, Any], width: int, tmp_path: Path) -> None:
    compute = (gated_on_loop if "max_concurrency" in options else gated)(tmp_path)
    with gp.agents.start([Vertex(k, k) for k in range(6)], compute, **options) as agents:
        watch = Watch(agents)
        with stepping(agents):
            try:
                for done in range(6):
                    running = min(width, 6 - done)
                    if width == 1 or "workers" not in options or "max_concurrency" in options:
                        counts = {"pending": 6 - done - running, "in_progress": running, "completed": done}
                    else:  # the workers' shares may end one after the other
                        counts = {"completed": done}
                    stages = watch.wait(**counts)
                    while not (begun := [k for k, one in watch.look().items() if one == "in_progress"]):
                        time.sleep(0.001)
                    for k in [k for k, stage in stages.items() if stage != "pending"]:
                        while not (tmp_path / f"begun {k}").exists():  # it is about to begin
                            time.sleep(0.001)
                    (tmp_path / f"go {begun[0]}").touch()
            finally:
                for k in range(6):
                    (tmp_path / f"go {k}").touch()
        assert agents.superstep_state is None
    assert all(stages[:2] == STAGES[:2] or stages[0] == "in_progress" for stages in watch.seen.values())


@pytest.mark.parametrize("options, width", WAYS)
def test_a_failed_attempt_that_is_tried_again(options: dict[str, Any], width: int, tmp_path: Path) -> None:
    """It is failed and can be tried again until the next attempt begins, and afterwards in progress."""
    folder = tmp_path

    def fail(ctx: Context) -> None:
        import time

        if ctx.attempt == 1:
            raise TimeoutError("LLM call timeout")
        (folder / "again").touch()
        while not (folder / "go").exists():
            time.sleep(0.002)
        ctx.vote_to_halt()

    async def fail_on_loop(ctx: Context) -> None:
        import asyncio

        if ctx.attempt == 1:
            raise TimeoutError("LLM call timeout")
        (folder / "again").touch()
        while not (folder / "go").exists():
            await asyncio.sleep(0.002)
        ctx.vote_to_halt()

    function: Any = fail_on_loop if "max_concurrency" in options else fail
    retry = RetryPolicy(attempts=2, wait=0.5, jitter=0)
    with gp.agents.start([Vertex("a")], function, retry=retry, **options) as agents, stepping(agents):
        seen: list[tuple[str, int, list[str], list[str]]] = []
        end = time.monotonic() + 20
        while not seen or seen[-1][:2] != ("in_progress", 2):
            assert time.monotonic() < end, seen
            state = agents.superstep_state
            if state is not None:
                one = state["a"]
                found = one.status, one.attempts, state.failed_vertices(), state.retryable_vertices(2)
                assert state.retryable == found[3]
                assert (one.failure is not None) == (one.status == "failed" or one.attempts == 2)
                if not seen or seen[-1] != found:
                    seen.append(found)
            time.sleep(0.0005)
        (folder / "go").touch()
    assert ("failed", 1, ["a"], ["a"]) in seen
    assert seen[-1] == ("in_progress", 2, [], [])
    assert {found[:2] for found in seen} <= {("pending", 0), ("in_progress", 1), ("failed", 1), ("in_progress", 2)}


def test_a_function_in_this_process_sees_its_superstep() -> None:
    seen: list[list[str]] = []

    def compute(ctx: Context) -> None:
        state = agents.superstep_state
        assert state is not None
        seen.append([one.status for one in state.values()])
        ctx.value = ctx.vertex_id
        ctx.vote_to_halt()
        if ctx.vertex_id == 2:
            vertices, _ = state.completed_results()
            assert {name: vertex.value for name, vertex in vertices.items()} == {0: 0, 1: 1}

    with gp.agents.start([Vertex(k) for k in range(3)], compute) as agents:
        agents.step()
    assert seen == [
        ["in_progress", "pending", "pending"],
        ["completed", "in_progress", "pending"],
        ["completed", "completed", "in_progress"],
    ]
