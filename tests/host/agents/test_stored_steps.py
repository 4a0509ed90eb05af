"""What a run has stored at certain moments: while vertices are computed, when ``answer`` and ``retry`` return, when
the ``with`` block is left, and after an interrupted commit.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.agents import Vertex
from gpu_pregel.errors import ArgumentError
from gpu_pregel.host.agents.formats import Segment
from tests.agents import FEW, ONCE

pytestmark = pytest.mark.usefixtures("interrupts")


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


@FEW
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
            with pytest.raises(ArgumentError, match="is not waiting for an answer"):
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


@pytest.mark.parametrize("size", [650, 850, 1500])
def test_a_commit_takes_space_in_proportion_to_its_records(size: int, tmp_path: Path) -> None:
    def compute(ctx: Any) -> None:
        ctx.value = f"{ctx.superstep:{size}}"

    with gp.SQLiteStore(tmp_path / "runs.db") as store:
        options: dict[str, Any] = {"store": store, "run_id": "run", "durability": "process", "on_limit": "return"}
        gp.agents.run([Vertex("a")], compute, max_supersteps=200, **options)
    assert (tmp_path / "runs.db").stat().st_size < 200 * (1.5 * size + 800)
