"""Stored values of types that have changed: runs are held until they can be read, and lose no vertex."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import make_dataclass
from pathlib import Path
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import AgentsFailedError, CodecError

Vertex = gp.agents.Vertex


def register(fields: list[Any], migrate: Callable[[dict[str, Any]], dict[str, Any]] | None = None) -> Any:
    return gp.agents.register(make_dataclass("Stored", fields, namespace={"__module__": __name__}), migrate=migrate)


@pytest.fixture
def former() -> Any:
    return register(["text", ("count", int)])


INCOMPATIBLE: list[Any] = ["text", "total"]


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("on_failure", ["continue", lambda failures: "continue"])
def test_a_run_is_held_until_its_values_can_be_read(former: Any, on_failure: Any, workers: int, tmp_path: Path) -> None:
    def compute(ctx: gp.agents.Context) -> None:
        if ctx.vertex_id != "plain":
            with suppress(CodecError):
                ctx.value.text += "!"

    values = {"a": former("a", 1), "b": former("b", 2), "plain": 0}
    vertices = [Vertex(name, value) for name, value in values.items()]
    options: dict[str, Any] = {"on_failure": on_failure, "on_limit": "return", "workers": workers}
    with gp.SQLiteStore(tmp_path / "runs.db") as store:
        gp.agents.run(vertices, compute, store=store, run_id="long", max_supersteps=2, **options)
        register(INCOMPATIBLE)
        for _ in range(2):
            with pytest.raises(AgentsFailedError, match=r"2 vertices .* the value cannot be read") as caught:
                gp.agents.resume(store, "long", compute, max_supersteps=4, **options)
            failed = caught.value.result.failed
            assert {name: (one.kind, one.superstep) for name, one in failed.items()} == {
                "a": ("unreadable", 2),
                "b": ("unreadable", 2),
            }
            assert "no field 'total'" not in failed["a"].text
            assert "has a field 'count'" in failed["a"].text
            assert store.run("long").status == "failed"
        current = register(
            [*INCOMPATIBLE, ("seen", bool, True)], lambda old: {"text": old["text"], "total": old["count"]}
        )
        result = gp.agents.resume(store, "long", compute, max_supersteps=4, **options)
        assert not result.failed
        assert result.values == {"a": current("a!!!!", 1), "b": current("b!!!!", 2), "plain": 0}
        assert not result.failed
        assert gp.agents.state_at(store, "long", 1).values["a"] == current("a!!", 1)


@pytest.mark.parametrize("read", ["messages", "aggregated", "interrupt"])
def test_unreadable_input_holds_the_run(former: Any, read: str) -> None:
    computed: list[Any] = []

    def compute(ctx: gp.agents.Context) -> None:
        computed.append((ctx.superstep, ctx.vertex_id))
        if ctx.superstep == 0:
            ctx.send("b", former("sent", 1))
            ctx.aggregate("last", former("aggregated", 1))
        elif ctx.vertex_id == "a":
            ctx.value = 1
        elif read == "messages":
            ctx.value = [one.text for one in ctx.messages]
        elif read == "aggregated":
            ctx.value = ctx.aggregated("last").text
        else:
            ctx.value = ctx.interrupt().text
        ctx.vote_to_halt()
        if ctx.superstep == 0:
            ctx.send("a", None)

    store = gp.MemoryStore()
    options: dict[str, Any] = {
        "aggregators": {"last": gp.Aggregator(lambda total, one: one, initial=None)},
        "on_failure": "continue",
    }
    vertices = [Vertex("a"), Vertex("b")]
    with gp.agents.start(vertices, compute, store=store, run_id="input", **options) as agents:
        agents.step()
        if read == "interrupt":
            agents.step()
            agents.answer("b", former("answered", 1))
    computed.clear()
    register(INCOMPATIBLE)
    with pytest.raises(AgentsFailedError, match="cannot be read"):
        gp.agents.resume(store, "input", compute, **options)
    register(["text", ("count", int), ("more", int, 0)])
    values = gp.agents.resume(store, "input", compute, **options).values
    assert values["b"] == {"messages": ["sent", "sent"], "aggregated": "aggregated", "interrupt": "answered"}[read]
    assert computed.count((1, "a")) == (0 if read == "interrupt" else 1)


def test_checkpoint_data_of_a_held_run_is_tried_again(former: Any) -> None:
    def compute(ctx: gp.agents.Context) -> None:
        ctx.value.text += "!"
        ctx.vote_to_halt()

    with gp.agents.start([Vertex("a", former("a", 1))], compute) as agents:
        register(INCOMPATIBLE)
        agents.step()
        assert agents.status == "failed"
        data = agents.checkpoint_data()
        current = register(["text"], lambda old: {"text": old["text"]})
        agents.retry()
        agents.step()
        assert agents.result().values == {"a": current("a!")}
    assert gp.agents.run(data, compute).values == {"a": current("a!")}
