"""Values that stay decoded between attempts: what a compute function sees and what is stored do not depend on it."""

from __future__ import annotations

import asyncio
import os
import random
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import AgentsFailedError
from gpu_pregel.host.agents import context, kept_values, recovery
from gpu_pregel.host.agents.codec import decode, encode
from gpu_pregel.host.agents.codec.differences import LARGE
from gpu_pregel.host.agents.records import VertexData
from gpu_pregel.host.agents.workers.transport import InProcessTransport

LONG = "x" * 300
STEPS = 12


def history(count: int = 60) -> dict[str, Any]:
    return {"turns": [{"role": "user", "text": f"{n} {LONG}", "tags": [n]} for n in range(count)], "n": 0}


def run(compute: Callable[[Any], Any], values: Mapping[Any, Any], **options: Any) -> dict[Any, Any]:
    """Run a number of supersteps and return the values."""
    vertices = [gp.agents.Vertex(name, value) for name, value in values.items()]
    given = {"max_supersteps": STEPS, "on_limit": "return", **options}
    return gp.agents.run(vertices, compute, **given).values


def edit(x: dict[str, Any], chance: random.Random) -> None:
    """Change a value in place: mostly appended turns, and now and then anything else."""
    turns = x["turns"]
    turns.append({"role": "agent", "text": f"{chance.random()} {LONG}", "tags": []})
    x["n"] += 1
    kind = chance.randrange(8)
    if kind == 0:
        turns[chance.randrange(len(turns))]["tags"].append(chance.random())
    elif kind == 1:
        del turns[: chance.randrange(5)]
    elif kind == 2:
        x["turns"] = [dict(turn) for turn in turns]
    elif kind == 3:
        turns[chance.randrange(len(turns))] = turns[0]
    elif kind == 4:
        x[f"note {x['n']}"] = [LONG] * chance.randrange(30)
    elif kind == 5:
        turns[3]["role"] = None
    elif kind == 6 and len(x) > 2:
        x.pop(list(x)[-1])


@pytest.mark.parametrize("workers", [0, 2])
def test_values_and_past_states_equal_those_of_a_simulation(workers: int, tmp_path: Path) -> None:
    def compute(ctx: gp.agents.Context) -> None:
        if ctx.superstep % 3 == ctx.vertex_id % 3:
            return
        edit(ctx.value, random.Random(100 * ctx.superstep + ctx.vertex_id))

    expected = {vertex: history() for vertex in range(3)}
    with gp.SQLiteStore(tmp_path / "runs.db") as store:
        values = run(compute, expected, workers=workers, store=store, run_id="chat", base_every=5)
        for step in range(STEPS):
            for vertex, value in expected.items():
                if step % 3 != vertex % 3:
                    edit(value, random.Random(100 * step + vertex))
            past = gp.agents.state_at(store, "chat", step).values
            assert {vertex: encode(value) for vertex, value in past.items()} == {
                vertex: encode(value) for vertex, value in expected.items()
            }
        fork = gp.agents.fork(store, "chat", STEPS - 4)
        forked = gp.agents.resume(store, fork, compute, max_supersteps=STEPS, on_limit="return").values
    assert encode(list(values.values())) == encode(list(expected.values())) == encode(list(forked.values()))


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_value_is_decoded_once(asynchronous: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[int] = []

    def count(data: bytes) -> Any:
        decoded.append(len(data))
        return decode(data)

    monkeypatch.setattr(context, "decode", count)

    def compute(ctx: gp.agents.Context) -> None:
        ctx.value["turns"] += [{"role": "user", "text": message} for message in ctx.messages]
        ctx.send(ctx.vertex_id, LONG)

    async def compute_later(ctx: gp.agents.Context) -> None:
        turns = ctx.value["turns"]
        await asyncio.sleep(0)
        turns.append(ctx.messages)
        ctx.send(ctx.vertex_id, [LONG])

    values = run(compute_later if asynchronous else compute, {"a": history()})
    assert len(values["a"]["turns"]) == 60 + (STEPS if asynchronous else STEPS - 1)
    assert sum(size > LARGE for size in decoded) == 1


def test_failed_and_interrupted_attempts_leave_no_trace() -> None:
    def compute(ctx: gp.agents.Context) -> None:
        if ctx.attempt == 1:
            ctx.value["turns"][5]["tags"].append("lost")
            ctx.value["turns"].append("lost")
            if ctx.superstep == 4:
                ctx.interrupt("why?")
            elif ctx.superstep % 2:
                raise ValueError
            del ctx.value["turns"][-1], ctx.value["turns"][5]["tags"][-1]
        ctx.value["turns"].append(ctx.superstep)

    retry = gp.agents.RetryPolicy(attempts=2, wait=0)
    vertices = [gp.agents.Vertex("a", history())]
    with gp.agents.start(vertices, compute, max_supersteps=STEPS, on_limit="return", retry=retry) as agents:
        while agents.step() or agents.status == "interrupted":
            if agents.status == "interrupted":
                agents.answer("a", "because")
        values = agents.result().values
    assert values["a"] == {**history(), "turns": [*history()["turns"], *range(STEPS)]}


def test_references_that_outlive_an_attempt_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_values, "_ATTEMPTS_WITHOUT", 0)
    held: list[Any] = []
    holds: list[Callable[[Any], Any]] = [
        lambda ctx: ctx.value,
        lambda ctx: ctx.value["turns"],
        lambda ctx: ctx.value["turns"][7],
        lambda ctx: ctx.value["turns"][7]["tags"],
        lambda ctx: ctx.value["turns"].append(["new"]) or ctx.value["turns"][-1],
        lambda ctx: ctx.messages[0],
        lambda ctx: ctx,
    ]

    def damage() -> None:
        for one in held:
            x = one.value["turns"] if isinstance(one, gp.agents.Context) else one
            x.clear()

    def compute(ctx: gp.agents.Context) -> None:
        damage()
        assert ctx.value["turns"][7] == history()["turns"][7]
        ctx.value["turns"] += [ctx.superstep, *ctx.messages]
        if ctx.superstep % 2:
            held.append(holds[ctx.superstep // 2](ctx))
        ctx.send("a", [ctx.superstep])

    steps = 2 * len(holds) + 1
    values = run(compute, {"a": history()}, max_supersteps=steps)
    damage()
    expected: list[Any] = [0]
    for step in range(1, steps):
        expected += [step, [step - 1], ["new"]] if step == 9 else [step, [step - 1]]
    assert values["a"]["turns"][60:] == expected


def test_a_value_shared_by_vertices_is_copied() -> None:
    shared = history()["turns"]

    def compute(ctx: gp.agents.Context) -> None:
        if ctx.superstep == 0:
            ctx.value = {"turns": shared}
        ctx.value["turns"].append(ctx.vertex_id)

    values = run(compute, {"a": None, "b": None})
    assert values["a"]["turns"][60:] == ["a"] * STEPS
    assert values["b"]["turns"][60:] == ["a", *["b"] * STEPS]


def test_a_thread_that_outlives_its_attempt_changes_nothing() -> None:
    threads: list[threading.Thread] = []
    go = threading.Event()

    def compute(ctx: gp.agents.Context) -> None:
        def damage(turns: list[Any]) -> None:
            go.wait()
            turns.clear()

        if ctx.superstep == 3:
            threads.append(threading.Thread(target=damage, args=(ctx.value["turns"],)))
            threads[0].start()
        elif ctx.superstep == 4:
            assert len(ctx.value["turns"]) == 64
            go.set()
            threads[0].join()
        ctx.value["turns"].append(ctx.superstep)

    assert run(compute, {"a": history()})["a"]["turns"][60:] == list(range(STEPS))


def test_a_worker_that_dies_leaves_no_trace(tmp_path: Path) -> None:
    def compute(ctx: gp.agents.Context) -> None:
        ctx.value["turns"].append(ctx.superstep)
        if ctx.superstep == 5 and ctx.attempt == 1 and ctx.vertex_id == "a":
            os._exit(1)

    expected = {**history(), "turns": [*history()["turns"], *range(STEPS)]}
    with gp.SQLiteStore(tmp_path / "runs.db") as store:
        values = run(compute, {"a": history(), "b": history()}, workers=1, store=store)
    assert values == {"a": expected, "b": expected}


def test_a_held_superstep_is_resumed_with_its_differences(tmp_path: Path) -> None:
    def compute(ctx: gp.agents.Context) -> None:
        ctx.value["turns"].append(ctx.superstep)
        if ctx.superstep == 5 and ctx.vertex_id == "b" and not mended:
            raise ValueError

    mended: list[bool] = []
    vertices = [gp.agents.Vertex(name, history()) for name in "ab"]
    options: dict[str, Any] = {"max_supersteps": STEPS, "on_limit": "return"}
    expected = [*history()["turns"], *range(STEPS)]
    with gp.SQLiteStore(tmp_path / "runs.db") as store:
        with gp.agents.start(vertices, compute, store=store, run_id="held", **options) as agents:
            while agents.step():
                pass
            assert agents.status == "failed"
            data = agents.checkpoint_data()
        mended.append(True)
        resumed = gp.agents.resume(store, "held", compute, retry_failed=True, **options).values
    with gp.agents.start(data, compute, **options) as agents:
        agents.retry()
        while agents.step():
            pass
        continued = agents.result().values
    for values in (resumed, continued):
        assert [values[name]["turns"] for name in "ab"] == [expected, expected]


def test_max_record_counts_the_whole_value() -> None:
    def compute(ctx: gp.agents.Context) -> None:
        ctx.value["turns"].append(LONG)

    size = len(encode(history()))
    with pytest.raises(AgentsFailedError) as raised:
        run(compute, {"a": history()}, max_record=size + 1000)
    assert raised.value.result.superstep == 3


def test_the_value_of_a_dropped_record_is_not_kept() -> None:
    def compute(ctx: gp.agents.Context) -> None:
        if ctx.superstep == 1:
            assert ctx.value == history()
        elif ctx.attempt == 1:
            ctx.value["turns"] += [LONG] * 10

    size = len(encode(history()))
    retry = gp.agents.RetryPolicy(attempts=2, wait=0)
    values = run(compute, {"a": history()}, max_record=size + 1000, retry=retry, max_supersteps=2)
    assert values == {"a": history()}


def test_a_value_is_kept_only_for_its_vertex() -> None:
    values, data = kept_values.KeptValues(), encode(history())
    holder = [history()]
    values.encode(b"a", data, None, holder)
    values.commit({b"a": VertexData(data, ())})
    assert values.take(b"b", data) is None
    assert values.take(b"a", bytes(bytearray(data))) is None
    assert values.take(b"a", data) is None


def test_an_interrupted_commit_is_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    def compute(ctx: gp.agents.Context) -> None:
        ctx.value["turns"].append(ctx.superstep)

    commits, commit = [], InProcessTransport.commit

    def interrupted(transport: InProcessTransport, partition: int, step: int, change: Any) -> None:
        commits.append(step)
        if commits.count(2) == 1 and step == 2:
            raise KeyboardInterrupt
        commit(transport, partition, step, change)

    monkeypatch.setattr(InProcessTransport, "commit", interrupted)
    with gp.agents.start([gp.agents.Vertex("a", history())], compute, max_supersteps=5) as agents:
        _ = agents.step(), agents.step()
        with pytest.raises(KeyboardInterrupt):
            agents.step()
        assert agents.result().superstep == 2
        while agents.step():
            pass
        assert agents.result().values["a"]["turns"] == [*history()["turns"], *range(5)]
    assert commits == [0, 1, 2, 2, 3, 4]


def test_a_store_grows_with_the_changes(tmp_path: Path) -> None:
    def compute(ctx: gp.agents.Context) -> None:
        ctx.value.append({"role": "user", "text": LONG})

    with gp.SQLiteStore(tmp_path / "runs.db") as store:
        run(compute, {"a": history()["turns"]}, store=store, run_id="long", max_supersteps=400, durability="process")
        rows = store.history("long")
        bases = [row.step for row in rows if row.base]
        assert bases[:3] == [49, 99, 149]
        assert len(bases) <= 6
        assert sum(row.size for row in rows) < 2 * 400 * 330
        assert len(gp.agents.state_at(store, "long", 390).values["a"]) == 60 + 391


def test_stores_of_the_former_version_are_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def compute(ctx: gp.agents.Context) -> None:
        ctx.value["turns"].append(ctx.superstep)

    with gp.SQLiteStore(tmp_path / "runs.db") as store:
        with monkeypatch.context() as former:
            former.setattr(recovery, "SCHEMA", 2)
            former.setattr(context, "LARGE", 1 << 30)
            run(compute, {"a": history()}, store=store, run_id="old", max_supersteps=3)
        assert store.run("old").schema == 2
        values = gp.agents.resume(store, "old", compute, max_supersteps=6, on_limit="return").values
        assert gp.agents.state_at(store, "old", 1).values["a"]["turns"][60:] == [0, 1]
    assert values["a"]["turns"][60:] == list(range(6))


def test_a_value_may_shrink_and_grow() -> None:
    def compute(ctx: gp.agents.Context) -> None:
        assert len(ctx.value["turns"]) == (0 if ctx.superstep % 4 == 2 else 60)
        ctx.value["turns"] = {0: ctx.value["turns"], 1: [], 2: history()["turns"], 3: ctx.value["turns"]}[
            ctx.superstep % 4
        ]

    assert run(compute, {"a": history()}) == {"a": history()}
