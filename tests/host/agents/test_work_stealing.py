"""Idle workers compute vertices that wait in busy ones, which changes no result."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.agents import Vertex
from gpu_pregel.host.agents import agent_run, work_stealing
from gpu_pregel.host.agents.codec import id_key, place_of_key, places_of_keys
from gpu_pregel.host.agents.options import RunOptions
from gpu_pregel.host.agents.partition_options import PartitionOptions
from gpu_pregel.host.agents.records import Batch, Change, Id, TaskFields, VertexData
from gpu_pregel.host.agents.workers import pipes
from gpu_pregel.host.agents.workers.executor import Executor
from gpu_pregel.host.agents.workers.transport import Arrival, OutcomeBatch, ReturnedTasks, WorkerDeath
from tests.adversary.programs import random_program, result_of, simulate, summary
from tests.agents import ONCE, WITHOUT_WAIT, values

WORKERS = 4
OF_ONE_WORKER = [vertex for vertex in range(99) if place_of_key(id_key(vertex), WORKERS) == 0][:WORKERS]


def meet(folder: str) -> Callable[[Any, int], None]:
    """Return a function that blocks until ``count`` vertices compute at the same time."""

    def wait(ctx: Any, count: int) -> None:
        import os
        import time

        os.close(os.open(f"{folder}/{ctx.vertex_id}", os.O_CREAT))
        until = time.monotonic() + 200
        while len(os.listdir(folder)) < count:
            assert time.monotonic() < until, "the other vertices wait for this worker"
            time.sleep(0.001)

    return wait


@pytest.mark.parametrize("asynchronous", [False, True])
def test_vertices_of_one_worker_are_computed_by_all(asynchronous: bool, tmp_path: Path) -> None:
    """Each waits for all others in superstep 0; the values of others come back to the worker that has them."""
    together = meet(str(tmp_path))

    def compute(ctx: Any) -> None:
        if ctx.superstep == 0:
            together(ctx, WORKERS)
            ctx.value["met"] = ctx.random.random()
            ctx.send_to_neighbors(ctx.vertex_id)
        else:
            ctx.value["messages"] = ctx.messages
        ctx.vote_to_halt()

    async def compute_on_loop(ctx: Any) -> None:
        compute(ctx)

    given = [Vertex(one, {"weight": one / 3}, OF_ONE_WORKER) for one in OF_ONE_WORKER]
    options: dict[str, Any] = {"run_id": "one", "retry": ONCE, "max_concurrency": 1 if asynchronous else None}
    function = compute_on_loop if asynchronous else compute
    result = gp.agents.run(given, function, workers=WORKERS, **options)
    values(result, gp.agents.run(given, function, **options).values)


@pytest.mark.parametrize("dies", OF_ONE_WORKER[:2])
def test_the_death_of_either_worker_charges_one_vertex(dies: int, tmp_path: Path) -> None:
    """Two vertices of one worker meet; then the worker of one of them dies, and the other vertex is not disturbed."""
    (folder := tmp_path / "met").mkdir()
    log, together, gone = str(tmp_path / "log"), meet(str(folder)), str(tmp_path / "gone")

    def compute(ctx: Any) -> None:
        import os
        import time

        with open(log, "a") as file:
            file.write(f"{ctx.vertex_id} {ctx.attempt}\n")
        together(ctx, 2)
        if ctx.vertex_id == dies and ctx.attempt == 1:
            os.close(os.open(gone, os.O_CREAT))
            os._exit(1)
        while not os.path.exists(gone):
            time.sleep(0.001)
        time.sleep(0.05)
        ctx.value += 1
        ctx.vote_to_halt()

    chosen = OF_ONE_WORKER[:2]
    result = gp.agents.run([Vertex(one, 0) for one in chosen], compute, workers=2 * WORKERS, retry=WITHOUT_WAIT)
    values(result, dict.fromkeys(chosen, 1))
    other = sum(chosen) - dies
    assert Counter(Path(log).read_text().splitlines()) == Counter([f"{dies} 1", f"{dies} 2", f"{other} 1"])


class LendingTransport:
    """Partitions in this process that compute in random order, return tasks whenever asked, and lose workers."""

    is_local = is_concurrent = blocks = False

    def __init__(self, options: PartitionOptions, partitions: int, seed: int) -> None:
        self.partitions, self.options = partitions, options
        self.executors = [Executor(options) for _ in range(partitions)]
        self.tasks: list[deque[tuple[Batch, TaskFields]]] = [deque() for _ in range(partitions)]
        self.generations = [0] * partitions
        self.arrivals: list[Arrival] = []
        self.random = random.Random(seed)
        self.step, self.returned = 0, 0

    def place(self, vertices: Collection[Id]) -> Sequence[int]:
        return places_of_keys(vertices, self.partitions)

    def start(
        self, vertices: list[dict[Id, VertexData]], states: Callable[[int], dict[Id, VertexData]], emit: Any
    ) -> None:
        self.states = states
        for partition in range(self.partitions):
            self.load(partition, 0)

    def load(self, partition: int, step: int) -> None:
        (frame,) = pipes.pack_load(0, step, self.states(partition))
        self.executors[partition].load(pipes.unpack_load(frame)[3], step)

    def submit(self, partition: int, batch: Batch) -> None:
        self.step = batch.step
        self.tasks[partition] += [(batch, task) for task in batch.tasks]

    def recall(self, partition: int, step: int, count: int) -> None:
        assert step == self.step
        tasks = self.tasks[partition]
        taken = [tasks.pop()[1][0] for _ in range(min(count, max(0, len(tasks) - 1)))]
        self.returned += len(taken)
        self.arrivals.append(ReturnedTasks(partition, taken))

    def wait(self, until: float | None) -> None:
        busy = [partition for partition, tasks in enumerate(self.tasks) if tasks]
        if self.arrivals or not busy:
            return
        partition = self.random.choice(busy)
        if self.random.random() < 0.2:
            self.tasks[partition].clear()
            self.load(partition, self.step)
            self.arrivals.append(WorkerDeath(partition, self.generations[partition], [], "died idle"))
            self.generations[partition] += 1
            return
        batch, task = self.tasks[partition].popleft()
        _, sent = pipes.unpack_batch(pipes.pack_batch(0, batch))
        sent.tasks = [task]
        found: list[Any] = []
        self.executors[partition].execute(sent, found.append)
        self.arrivals.append(OutcomeBatch(partition, self.generations[partition], found))

    def take(self) -> list[Arrival]:
        arrivals, self.arrivals = self.arrivals, []
        return arrivals

    def commit(self, partition: int, step: int, change: Change) -> None:
        self.executors[partition].commit(*pipes.unpack_change(pipes.pack_change(step, change)))
        self.step = step + 1

    async def ready(self, until: float | None) -> None: ...

    async def cancel(self) -> None: ...

    def close(self) -> None: ...


def test_large_values_of_moved_vertices_are_kept_only_where_they_belong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers keep large values decoded; a vertex that is computed in turn by several must not see an old one."""
    made: list[LendingTransport] = []

    def make(options: RunOptions, partition_options: PartitionOptions, *, in_slices: bool) -> Any:
        made.append(LendingTransport(partition_options, options.workers, 3))
        return made[-1]

    def compute(ctx: Any) -> None:
        ctx.value["log"].append(ctx.superstep)
        if len(ctx.value["log"]) == 30:
            ctx.vote_to_halt()

    monkeypatch.setattr(agent_run, "_transport", make)
    monkeypatch.setattr(work_stealing, "_PATIENCE", 0.0)
    given = [Vertex(one, {"text": "x" * 20_000, "log": []}) for one in range(12)]
    values(
        gp.agents.run(given, compute, workers=3),
        {one: {"text": "x" * 20_000, "log": [*range(30)]} for one in range(12)},
    )
    assert made[0].returned > 30
    assert not any(executor._kept_values.staged for executor in made[0].executors)


moves: Counter[str] = Counter()


@settings(max_examples=100)
@given(chance=st.randoms(use_true_random=False), seed=st.integers(0, 999))
def _check_random_program(chance: random.Random, seed: int) -> None:
    program = replace(random_program(chance), is_async=False)
    made: list[LendingTransport] = []

    def make(options: RunOptions, partition_options: PartitionOptions, *, in_slices: bool) -> Any:
        made.append(LendingTransport(partition_options, options.workers, seed))
        return made[-1]

    with patch.object(agent_run, "_transport", make):
        assert summary(result_of(program, workers=3)) == simulate(program)
    moves["returned"] += made[0].returned


def test_moved_vertices_change_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_stealing, "_PATIENCE", 0.0)
    moves.clear()
    _check_random_program()
    assert moves["returned"] > 100
