"""Exceptions in the functions that the master calls, such as observers, aggregators and combiners."""

from __future__ import annotations

import re
from typing import Any

import pytest

import gpu_pregel.agents as agents
from gpu_pregel.agents import TopK, Vertex
from tests.agents import FEW, ONCE, values
from tests.host.agents.workers.worker_programs import children


class OurError(Exception):
    pass


def wrong(*_: Any) -> Any:
    raise OurError("raised by the user's function")


@FEW
@pytest.mark.parametrize("what", ["observer", "master", "resolve", "on_failure", "aggregator"])
def test_exceptions_of_functions_in_the_master(what: str, workers: int) -> None:
    """The run ends with their exception, and no process is left."""

    def compute(ctx: Any) -> None:
        ctx.aggregate("figure", 1)
        if ctx.superstep == 0:
            ctx.add_vertex("new", ctx.vertex_id)
        if what == "on_failure":
            raise ValueError
        ctx.vote_to_halt()

    options: dict[str, Any] = {what: wrong}
    aggregators = {"figure": options.pop("aggregator", "sum")}
    options.setdefault("resolve", lambda vertex, existing, requested, messages: requested[0])
    before = children()
    with pytest.raises(Exception, match="raised by the user's function"):
        agents.run([Vertex(0), Vertex(1)], compute, workers=workers, aggregators=aggregators, retry=ONCE, **options)
    assert children() == before


def no_data(a: Any, b: Any) -> Any:
    return object() if "one" in (a, b) else a + b


@FEW
@pytest.mark.parametrize(
    ("combine", "error"),
    [
        ("min", "cannot fold the contribution: TypeError: '<' not supported"),
        ("sum", "cannot fold the contribution: TypeError"),
        (TopK(1), "cannot fold the contribution: TypeError"),
        (lambda a, b: a + b, "cannot fold the contribution: TypeError"),
        (no_data, "cannot fold the contribution: CodecError: its result is of type object"),
    ],
    ids=["min", "sum", "top", "function", "no data"],
)
def test_contributions_that_cannot_be_folded_fail_their_vertices(combine: Any, error: str, workers: int) -> None:
    def compute(ctx: Any) -> None:
        ctx.value = ctx.superstep
        ctx.aggregate("fine", 1)
        if ctx.superstep == 1:
            ctx.aggregate("wrong", "one" if ctx.vertex_id in (2, 4, 5) else 1)
            ctx.vote_to_halt()

    options: dict[str, Any] = {"workers": workers, "aggregators": {"fine": "sum", "wrong": combine}, "retry": ONCE}
    vertices = [Vertex(k) for k in range(7)]
    with agents.start(vertices, compute, **options) as run:
        assert run.step()
        assert not run.step()
        held = run.result()
        assert (held.status, held.superstep, list(held.failed)) == ("failed", 1, [2, 4, 5])
        assert all(one.text.startswith(f"aggregator 'wrong' {error}") for one in held.failed.values())
        assert all(bool(one.traceback) is ("CodecError" not in error) for one in held.failed.values())
        assert held.aggregates["fine"] == 7
    result = agents.run(vertices, compute, **options, on_failure="continue")
    assert list(result.failed) == [2, 4, 5]
    assert result.aggregates == {"fine": 4, "wrong": {TopK(1): [1], "min": 1}.get(combine, 4)}
    values(result, {k: 0 if k in (2, 4, 5) else 1 for k in range(7)})


@FEW
def test_combiners_that_raise_fail_the_recipient(workers: int) -> None:
    """The error names the combiner; senders do not fail, even if messages are folded at the sender."""

    def compute(ctx: Any) -> None:
        if ctx.superstep == 0:
            ctx.send(0, ctx.vertex_id)
            ctx.send(1, 1 if ctx.vertex_id else "one")
            if ctx.vertex_id == 2:
                ctx.send(1, "one too")
        else:
            ctx.value = ctx.messages
        ctx.vote_to_halt()

    def divide(a: Any, b: Any) -> Any:
        return a // b

    vertices = [Vertex(k) for k in range(3)]
    for combiner, name, value in (("max", "'max'", 2), (divide, ".*divide", 0), (TopK(1), r"TopK\(k=1\)", [2])):
        result = agents.run(vertices, compute, workers=workers, combiner=combiner, retry=ONCE, on_failure="continue")
        failed = result.failed.pop(1)
        assert not result.failed
        assert (failed.superstep, failed.kind, failed.type) == (1, "exception", "CombinerError")
        assert re.match(f"combiner {name} cannot fold the messages: TypeError: ", failed.text)
        assert failed.messages == ["one", 1, 1, "one too"]
        values(result, {0: [value], 1: None, 2: None})
