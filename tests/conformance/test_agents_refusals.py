"""Agent runs in all stores: vertices whose records cannot be folded fail, and are computed again when retried."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.agents import Aggregator, RetryPolicy, Vertex
from gpu_pregel.errors import AgentsFailedError, CodecError
from gpu_pregel.host.agents.codec import id_key, place_of_key
from gpu_pregel.host.agents.codec import types as codec_types
from gpu_pregel.host.stores.store import Store
from tests.agents import FEW, logged, result_bytes, values
from tests.stores import Open

NAMES = ("adds", "contributes", "fine", "links", "sends")
WRONG = {"adds", "contributes", "links", "sends"}


def wrong(log: str) -> Any:
    """In superstep 1 all vertices but one do what cannot be folded, until the log is mended."""

    def compute(ctx: Any) -> None:
        import os

        with open(log, "a") as file:
            file.write(f"{ctx.superstep} {ctx.vertex_id} {ctx.attempt}\n")
        ctx.value = [*(ctx.value or []), ctx.superstep]
        ctx.aggregate("total", 1)
        if ctx.superstep < 2:
            ctx.send("fine", ctx.superstep)
        elif ctx.superstep == 2 and ctx.vertex_id == "fine" and ctx.num_vertices == len(NAMES):
            for name in NAMES:
                ctx.send(name, "wake up")
        if ctx.superstep == 1 and not os.path.exists(log + ".mended"):
            if ctx.vertex_id == "adds":
                ctx.add_vertex("fine")
            elif ctx.vertex_id == "contributes":
                ctx.aggregate("total", "one")
            elif ctx.vertex_id == "links":
                ctx.add_edge("nowhere", "fine")
            elif ctx.vertex_id == "sends":
                ctx.send("nowhere", 1)
        if ctx.superstep > 1:
            ctx.vote_to_halt()

    return compute


def options_of(log: str, attempts: int = 1, **options: Any) -> dict[str, Any]:
    retry = RetryPolicy(attempts=attempts, wait=0)
    return {"compute": wrong(log), "aggregators": {"total": "sum"}, "retry": retry, **options}


@FEW
def test_refused_vertices_are_computed_again(opened: Open, log: str, workers: int) -> None:
    options = options_of(log, workers=workers)
    with pytest.raises(AgentsFailedError, match="4 vertices failed in superstep 1") as caught:
        gp.agents.run(list(map(Vertex, NAMES)), **options, store=opened(), run_id="run")
    assert set(caught.value.result.failed) == WRONG
    found = gp.agents.state_at(opened(), "run")
    assert (found.status, found.superstep, found.failed) == ("failed", 1, caught.value.result.failed)
    Path(log + ".mended").touch()
    with pytest.raises(AgentsFailedError):  # nobody retries them
        gp.agents.resume(opened(), "run", **options)
    result = gp.agents.resume(opened(), "run", **options, retry_failed=True)
    assert (result.status, result.failed) == ("completed", {})
    values(result, {name: [0, 1, 2, 3] for name in NAMES})
    assert {line: count for line, count in logged(log).items() if line.startswith("1 ")} == {
        f"1 {name} 1": 2 if name in WRONG else 1 for name in NAMES
    }
    assert result_bytes(gp.agents.state_at(opened(), "run")) == result_bytes(result)


@FEW
def test_a_run_continues_without_refused_vertices(opened: Open, log: str, workers: int) -> None:
    options = options_of(log, 2, workers=workers, on_failure="continue")
    result = gp.agents.run(list(map(Vertex, NAMES)), **options, store=opened(), run_id="run")
    assert (result.status, set(result.failed)) == ("partial", WRONG)
    values(result, {name: [0, 3] for name in WRONG} | {"fine": [0, 1, 2, 3]})
    assert [row["failed"] for row in result.trace] == [0, 4, 0, 0]
    assert [row["retries"] for row in result.trace] == [0, 4, 0, 0]
    for found in (gp.agents.state_at(opened(), "run"), gp.agents.resume(opened(), "run", **options)):
        assert found.failed == result.failed
        assert result_bytes(found) == result_bytes(result)
    assert {line.split()[1] for line in logged(log) if line.endswith("2")} == WRONG


@pytest.mark.parametrize("kind", ["retry", "failure"])
def test_attempts_at_refused_vertices_count_across_programs(opened: Open, log: str, kind: str) -> None:
    """A program is interrupted after each event; another one resumes the run."""

    def interrupt(event: Any) -> None:
        if event.kind == kind:
            raise KeyboardInterrupt

    options = options_of(log, 3, observer=interrupt)
    run = gp.agents.start([Vertex("fine"), Vertex("sends")], **options, store=opened(), run_id="run")
    while True:
        with run:
            try:
                while run.step():
                    pass
            except KeyboardInterrupt:
                pass
            else:
                break
        run = gp.agents.reopen(opened(), "run", **options)
    assert (run.status, list(run.result().failed)) == ("failed", ["sends"])
    assert {line: count for line, count in logged(log).items() if line.startswith("1 ")} == {
        "1 fine 1": 1,
        "1 sends 1": 1,
        "1 sends 2": 1,
        "1 sends 3": 1,
    }


def test_checkpoint_data_have_the_refusals(log: str) -> None:
    options = options_of(log)
    with gp.agents.start([Vertex("fine"), Vertex("sends")], **options) as run:
        assert run.step()
        assert not run.step()
        data = run.checkpoint_data()
    Path(log + ".mended").touch()
    with gp.agents.start(data, **options) as run:
        assert list(run.result().failed) == ["sends"]
        run.retry()
        while run.step():
            pass
        values(run.result(), {"fine": [0, 1, 2], "sends": [0, 1, 2]})
    assert logged(log)["1 fine 1"] == 1


def test_on_failure_decides_about_refused_vertices(log: str) -> None:
    decisions: list[Any] = []

    def decide(failures: Any) -> Any:
        decisions.append({vertex: one.kind for vertex, one in failures.items()})
        if len(decisions) == 2:
            Path(log + ".mended").touch()
        return list(failures)

    result = gp.agents.run([Vertex("fine"), Vertex("sends")], **options_of(log), on_failure=decide)
    assert decisions == [{"sends": "request"}] * 2
    assert result.status == "completed"


def test_a_refused_vertex_is_computed_in_another_partition() -> None:
    """Its own partition forgets the refused record, although the last attempt changes nothing."""
    slow, moved = [vertex for vertex in range(40) if place_of_key(id_key(vertex), 2) == 0][:2]

    def compute(ctx: Any) -> None:
        import time

        if ctx.superstep == 1:
            ctx.value = [*ctx.value, "seen"]
            ctx.vote_to_halt()
        elif ctx.attempt == 1:
            ctx.value = ["refused"]
            ctx.send("nowhere", 1)
        elif ctx.vertex_id == slow:
            time.sleep(0.3)

    vertices = [Vertex(slow, ["old"]), Vertex(moved, ["old"])]
    result = gp.agents.run(vertices, compute, workers=2, retry=RetryPolicy(attempts=2, wait=0))
    values(result, {slow: ["old", "seen"], moved: ["old", "seen"]})


@dataclass
class Reading:
    value: int


def test_contributions_of_unregistered_types_hold_the_run(opened: Open) -> None:
    """Whatever ``on_failure`` is; a program in which they are registered uses them."""
    asked: list[Any] = []

    def compute(ctx: Any) -> None:
        if ctx.vertex_id == "asks":
            asked.append(ctx.interrupt())
        else:
            asked.append("contributes")
            ctx.aggregate("all", Reading(3))
        ctx.vote_to_halt()

    options: dict[str, Any] = {"compute": compute, "aggregators": {"all": "list"}, "on_failure": "continue"}
    gp.agents.register(Reading, "a reading")
    try:
        gp.agents.run([Vertex("asks"), Vertex("contributes")], **options, store=opened(), run_id="run")
    finally:
        codec_types._remove(codec_types.by_name["a reading"])
    with pytest.raises(AgentsFailedError, match=r"'contributes'.*aggregator 'all' cannot fold .*a reading") as caught:
        gp.agents.resume(opened(), "run", **options, answers={"asks": 1})
    assert caught.value.result.failed["contributes"].kind == "unreadable"
    gp.agents.register(Reading, "a reading")
    try:
        result = gp.agents.resume(opened(), "run", **options)
        assert (result.status, result.aggregates, asked) == ("completed", {"all": [Reading(3)]}, ["contributes", 1])
    finally:
        codec_types._remove(codec_types.by_name["a reading"])


def test_a_persistent_aggregate_of_an_unregistered_type_is_named(store: Store) -> None:
    def compute(ctx: Any) -> None:
        ctx.aggregate("best", Reading(3) if ctx.superstep == 0 else 4)
        ctx.vote_to_halt()
        ctx.value = ctx.superstep

    first = Aggregator("first", persistent=True)
    options: dict[str, Any] = {"compute": compute, "aggregators": {"best": first}, "on_failure": "continue"}
    gp.agents.register(Reading, "a reading")
    gp.agents.run([Vertex("a")], **options, store=store, run_id="run")
    codec_types._remove(codec_types.by_name["a reading"])
    gp.agents.send(store, "run", "a", "wake up")
    with pytest.raises(CodecError, match=r"the aggregate 'best' has the type 'a reading', which is not registered"):
        gp.agents.resume(store, "run", **options)
    gp.agents.register(Reading, "a reading")
    try:
        result = gp.agents.resume(store, "run", **options)
        assert (result.values, result.aggregates) == ({"a": 1}, {"best": Reading(3)})
    finally:
        codec_types._remove(codec_types.by_name["a reading"])


@FEW
def test_a_large_value_is_as_before_a_refused_attempt(workers: int) -> None:
    """The worker keeps large values decoded between supersteps."""

    def compute(ctx: Any) -> None:
        if ctx.vertex_id == "wakes":
            if ctx.superstep == 2:
                ctx.send("large", "wake up")
        else:
            ctx.value.append((ctx.superstep, ctx.attempt))
            if ctx.superstep == 1:
                ctx.value[0]["changed"] = True
                ctx.send("nowhere", 1)
        if ctx.superstep > 1:
            ctx.vote_to_halt()

    large = [{"text": "x" * 100} for _ in range(500)]
    for attempts in (1, 2):
        result = gp.agents.run(
            [Vertex("large", large), Vertex("wakes")],
            compute,
            workers=workers,
            retry=RetryPolicy(attempts=attempts, wait=0),
            on_failure="continue",
        )
        values(result, {"large": [*large, (0, 1), (3, 1)], "wakes": None})
