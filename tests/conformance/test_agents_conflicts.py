"""Conflicting requests, and messages to missing vertices: which vertices fail, and what remains of the superstep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

import gpu_pregel.agents as agents
from gpu_pregel.agents import Event, RetryPolicy, Vertex
from gpu_pregel.errors import AgentsFailedError
from tests.agents import ONCE, WITHOUT_WAIT, values

TWICE = RetryPolicy(attempts=2, wait=0)

CONFLICTS: list[Any] = [
    pytest.param(
        {"a": [("add_vertex", "n", 1)], "b": [("add_vertex", "n", 2)]},
        "vertex 'n' is added 2 times",
        "ab",
        "",
        id="twice",
    ),
    pytest.param({"a": [("add_vertex", "b", 1)]}, "vertex 'b' is added, but already exists", "a", "", id="there"),
    pytest.param({"b": [("add_edge", "n", "a")]}, "vertex 'n' does not exist", "b", "", id="edge of missing"),
    pytest.param(
        {"a": [("remove_vertex", "c")], "b": [("add_edge", "c", "a")]},
        "vertex 'c' does not exist",
        "b",
        "c",
        id="edge of removed",
    ),
    pytest.param({"a": [("send", "n", 1)]}, "sent a message to 'n', which does", "a", "", id="message to missing"),
    pytest.param(
        {"a": [("send", "b", 1)], "b": [("remove_vertex", "b")]},
        "sent a message to 'b', which does not exist",
        "a",
        "b",
        id="message to removed",
    ),
]
"""Requests, and the vertices that fail and that are removed."""


def conflicting(script: Any) -> Any:
    """The first two attempts of superstep 1 make the requests of a script; the value is the sum of attempts."""

    def compute(ctx: Any) -> None:
        ctx.value += ctx.attempt
        ctx.aggregate("count", 1)
        if ctx.superstep == 1 and ctx.attempt < 3:
            for name, *arguments in script.get(ctx.vertex_id, ()):
                getattr(ctx, name)(*arguments)

    return compute


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(("script", "error", "refused", "removed"), CONFLICTS)
def test_a_conflict_fails_the_vertices_that_asked(
    script: Any, error: str, refused: str, removed: str, workers: int
) -> None:
    vertices = [Vertex(name, 0, halted=name == "c") for name in "abc"]
    options: dict[str, Any] = {"workers": workers, "aggregators": {"count": "sum"}, "max_supersteps": 2}
    with agents.start(vertices, conflicting(script), **options, retry=TWICE) as run:
        assert run.step()
        for _ in range(2):
            assert not run.step()
            held = run.result()
            assert (held.status, held.superstep, "".join(held.failed)) == ("failed", 1, refused)
            assert all(one[:3] == (1, "request", "AgentError") for one in held.failed.values())
            assert all(one.text.startswith(error) for one in held.failed.values())
            values(held, {"a": 1, "b": 1, "c": 0})
            run.retry()
    kept = {"a": 2, "b": 2, "c": 0}
    for name in removed:
        del kept[name]
    options |= {"on_failure": "continue", "on_limit": "return"}
    partial = agents.run(vertices, conflicting(script), **options, retry=TWICE)
    values(partial, kept | dict.fromkeys(refused, 1))  # without what the refused attempts have computed
    assert "".join(partial.failed) == refused
    assert [name for name, vertex in partial.vertices.items() if vertex.halted and name != "c"] == list(refused)
    assert partial.aggregates == {"count": 2 - len(refused)}
    whole = agents.run(vertices, conflicting(script), **options, retry=WITHOUT_WAIT)
    values(whole, kept | dict.fromkeys(refused, 4))
    assert (whole.failed, whole.aggregates, whole.trace[1]["retries"]) == ({}, {"count": 2}, 2 * len(refused))


CAUSES: list[Any] = [
    pytest.param(
        {
            "adds": [("add_vertex", "new", 1)],
            "adds too": [("add_vertex", "new", 2)],
            "links": [("add_edge", "new", "links")],
            "sends": [("send", "new", 1)],
        },
        ["adds", "adds too"],
        ["adds", "links", "sends", "adds too"],
        id="added",
    ),
    pytest.param(
        {
            "removes": [("remove_vertex", "other"), ("add_vertex", "links")],
            "links": [("add_edge", "other", "links")],
            "sends": [("send", "other", 1)],
        },
        ["removes"],
        ["removes"],
        id="removed",
    ),
    pytest.param(
        {
            "adds": [("add_vertex", "new", 1), ("aggregate", "total", "no number")],
            "adds too": [("add_vertex", "new", 2)],
            "links": [("add_edge", "other", "links")],
            "sends": [("send", "new", 1), ("aggregate", "total", 1)],
        },
        ["adds"],
        ["adds"],
        id="contributed",
    ),
    pytest.param(
        {
            "links": [("add_edge", "nowhere", "links"), ("remove_vertex", "other")],
            "sends": [("send", "other", 1)],
        },
        ["links"],
        ["links"],
        id="linked",
    ),
    pytest.param(
        {
            "adds": [("send", "nowhere", 1), ("remove_vertex", "other")],
            "removes": [("remove_vertex", "links"), ("send", "links", 1)],
            "sends": [("send", "other", 1)],
        },
        ["adds", "removes"],
        ["adds", "removes"],
        id="sent",
    ),
]
"""Requests, the vertices that fail because of them, and all that fail once those have failed for good."""


@pytest.mark.parametrize(("script", "causes", "failed"), CAUSES)
def test_only_the_causes_of_a_conflict_fail(script: Any, causes: list[str], failed: list[str]) -> None:
    """What others do because of the request of a failed vertex is judged once that vertex has finally failed."""

    def compute(ctx: Any) -> None:
        ctx.value = "computed"
        for name, *arguments in script.get(ctx.vertex_id, ()):
            getattr(ctx, name)(*arguments)
        if ctx.superstep == 0:
            ctx.aggregate("total", 1)
            ctx.vote_to_halt()

    vertices = [Vertex(name) for name in ("adds", "links", "other", "sends", "removes", "adds too")]
    options: dict[str, Any] = {"retry": ONCE, "aggregators": {"total": "sum"}, "max_supersteps": 1}
    with pytest.raises(AgentsFailedError) as caught:
        agents.run(vertices, compute, **options)
    assert list(caught.value.result.failed) == causes
    result = agents.run(vertices, compute, **options, on_failure="continue", on_limit="return")
    assert list(result.failed) == failed
    values(result, {one: None if one in failed else 2 if one == "new" else "computed" for one in result.values})


@pytest.mark.parametrize("on_missing", ["error", "drop"])
def test_a_message_from_outside_to_a_vertex_that_is_removed_meanwhile_is_dropped(on_missing: str) -> None:
    """No vertex is charged for it, and observers see it."""

    def compute(ctx: Any) -> None:
        if ctx.superstep == 0 and ctx.vertex_id == "a":
            ctx.interrupt()
            ctx.remove_vertex("b")
        ctx.value = ctx.messages
        ctx.vote_to_halt()

    events: list[Event] = []
    options: dict[str, Any] = {"retry": ONCE, "on_missing": on_missing, "observer": events.append}
    with agents.start([Vertex("a"), Vertex("b")], compute, **options) as run:
        assert not run.step()
        for target in "ab":
            run.send(target, "from outside")
        run.answer("a", None)
        while run.step():
            pass
        assert run.status == "completed"
        values(run.result(), {"a": ["from outside"]})
    assert [(one.superstep, one.vertex) for one in events if one.kind == "undeliverable"] == [(0, "b")]


@pytest.mark.parametrize("what", ["aggregate", "decode", "resolve"])
def test_code_that_exits_while_the_master_folds_fails_the_vertices_that_asked(what: str) -> None:
    def exit_(*_: Any) -> Any:
        raise SystemExit(3)

    @agents.register
    @dataclass(frozen=True)
    class Contribution:
        number: int

        def __hash__(self) -> int:
            return int(exit_()) if what == "decode" and folding else hash(self.number)

    def add(total: int, one: dict[Contribution, int]) -> int:
        return int(exit_()) if what == "aggregate" and 1 in one.values() else total + max(one.values())

    def compute(ctx: Any) -> None:
        number = "abc".index(ctx.vertex_id)
        if what == "resolve":
            ctx.add_vertex("new", number)
        elif number < 2 or what == "aggregate":
            ctx.aggregate("total", {Contribution(number): number})
        ctx.value = "computed"
        ctx.vote_to_halt()
        if ctx.vertex_id == "c":
            folding.append(True)

    folding: list[bool] = []
    result = agents.run(
        [Vertex(name) for name in "abc"],
        compute,
        aggregators={"total": agents.Aggregator(add, initial=0)},
        resolve=exit_,
        retry=ONCE,
        on_failure="continue",
    )
    refused = {"aggregate": "b", "decode": "ab", "resolve": "abc"}[what]
    assert {name: one.kind for name, one in result.failed.items()} == dict.fromkeys(refused, "request")
    assert all("SystemExit: 3" in one.text for one in result.failed.values())
    values(result, {name: None if name in refused else "computed" for name in "abc"})
    assert result.aggregates == {"total": 2 if what == "aggregate" else 0}
