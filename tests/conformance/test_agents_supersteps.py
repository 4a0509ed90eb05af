"""Supersteps of agents with any number of workers: the clock, halting, messages, combiners, keys and random numbers."""

from __future__ import annotations

from typing import Any

import pytest

import gpu_pregel.agents as agents
from gpu_pregel.agents import TopK, Vertex
from tests.agents import FEW, MORE_WORKERS, WITHOUT_WAIT, WORKERS, check, values


@WORKERS
@pytest.mark.parametrize(("limit", "status"), [(1, "max_supersteps"), (2, "max_supersteps"), (3, "completed")])
def test_max_supersteps(limit: int, status: str, workers: int) -> None:
    """The program needs three supersteps."""

    def compute(ctx: Any) -> None:
        ctx.value = [*ctx.value, ctx.superstep]
        if ctx.superstep == 2:
            ctx.vote_to_halt()

    result = agents.run(
        [Vertex("a", []), Vertex("b", [])], compute, workers=workers, max_supersteps=limit, on_limit="return"
    )
    assert (result.status, result.superstep) == (status, limit)
    check(result, *((name, list(range(limit)), [], limit == 3) for name in "ab"))


@WORKERS
def test_pending_messages_at_the_limit_do_not_complete_the_run(workers: int) -> None:
    def compute(ctx: Any) -> None:
        ctx.value += 1
        ctx.send(ctx.vertex_id, None)
        ctx.vote_to_halt()

    result = agents.run([Vertex("a", 0)], compute, workers=workers, max_supersteps=3, on_limit="return")
    assert result.status == "max_supersteps"
    check(result, ("a", 3, [], True))


@WORKERS
def test_active_vertices_are_computed(workers: int) -> None:
    """Each vertex stores the supersteps in which it was computed, and the number of its messages."""

    def compute(ctx: Any) -> None:
        step, name = ctx.superstep, ctx.vertex_id
        ctx.value = [*ctx.value, (step, len(ctx.messages))]
        if name == "restless" and step < 3:
            if step == 1:
                ctx.send("sleeper", "wake")
                ctx.send("voter", "while it votes")
            return
        if name == "voter" and step == 0:
            ctx.send("voter", "to itself")
        if name == "sleeper":
            if step == 2:
                return  # remains active
            ctx.send("restless", "wake")
        ctx.vote_to_halt()

    names = ["restless", "voter", "sleeper", "deaf"]
    vertices = [Vertex(name, [], halted=name in ("sleeper", "deaf")) for name in names]
    result = agents.run(vertices, compute, workers=workers)
    assert (result.status, result.superstep) == ("completed", 5)
    check(
        result,
        ("restless", [(0, 0), (1, 0), (2, 0), (3, 0), (4, 1)], [], True),
        ("voter", [(0, 0), (1, 1), (2, 1)], [], True),
        ("sleeper", [(2, 1), (3, 0)], [], True),
        ("deaf", [], [], True),
    )
    assert [(row["computed"], row["messages"]) for row in result.trace] == [(2, 1), (2, 2), (3, 0), (2, 1), (1, 0)]


@MORE_WORKERS
def test_messages_are_ordered_by_sender_and_sequence(workers: int) -> None:
    def compute(ctx: Any) -> None:
        if ctx.superstep == 0 and ctx.vertex_id != "sink":
            for number in range(3):
                ctx.send("sink", f"{ctx.vertex_id}{number}")
        ctx.value = ctx.messages
        ctx.vote_to_halt()

    vertices = [Vertex("sink"), *(Vertex(name) for name in "dbaec")]
    result = agents.run(vertices, compute, workers=workers)
    expected = [f"{name}{number}" for name in "abcde" for number in range(3)]
    check(result, ("sink", expected, [], True), *((name, [], [], True) for name in "abcde"))


@WORKERS
def test_messages_are_copied(workers: int) -> None:
    """Changes after sending, or by one recipient, are not visible to others."""

    def compute(ctx: Any) -> None:
        if ctx.superstep == 0 and ctx.vertex_id == 0:
            parcel: dict[str, list[Any]] = {"path": [0]}
            ctx.value = parcel
            ctx.send_to_neighbors(parcel)
            ctx.send(0, parcel)
            parcel["path"].append("later")
        elif ctx.messages:
            [parcel] = ctx.messages
            parcel["path"].append(ctx.vertex_id)
            ctx.value = (ctx.value, parcel)
        ctx.vote_to_halt()

    result = agents.run([Vertex(0, None, [1, 2]), Vertex(1), Vertex(2)], compute, workers=workers)
    values(
        result,
        {
            0: ({"path": [0, "later"]}, {"path": [0, 0]}),
            1: (None, {"path": [0, 1]}),
            2: (None, {"path": [0, 2]}),
        },
    )


@WORKERS
def test_weights_of_edges_are_copied(workers: int) -> None:
    def compute(ctx: Any) -> None:
        edges = ctx.edges
        for edge in edges:
            edge.weight.append(ctx.superstep)
        ctx.value = [edge.weight for edge in edges]
        if ctx.superstep == 1:
            ctx.vote_to_halt()

    ours: list[Any] = [7]
    with agents.start([Vertex(0, None, [agents.Edge(1, ours)]), Vertex(1)], compute, workers=workers) as run:
        ours.append("ours")
        assert run.step()
        run.result().vertices[0].edges[0].weight.append("of a result")
        assert not run.step()
        result = run.result()
        result.vertices[0].edges[0].weight.append("of the last result")
        check(result, (0, [[7, 1]], [(1, [7])], True), (1, [], [], True))


COMBINED = [
    # "many" receives 5 and 1 from a, 4 from b, 2 and 3 from c; "one" receives 7 from b.
    ("sum", 15, 7),
    ("min", 1, 7),
    ("max", 5, 7),
    ("count", 5, 1),
    ("first", 5, 7),
    ("last", 3, 7),
    ("list", [5, 1, 4, 2, 3], [7]),
    ("and", True, True),
    ("or", True, True),
    (TopK(2), [5, 4], [7]),
    pytest.param(lambda a, b: a * 10 + b, 51423, 7, id="digits"),
    pytest.param(lambda a, b: a - b, -5, 7, id="minus"),
]


@FEW
@pytest.mark.parametrize(("combiner", "many", "one"), COMBINED)
def test_combiners(combiner: Any, many: Any, one: Any, workers: int) -> None:
    def compute(ctx: Any) -> None:
        if ctx.superstep == 0:
            for target, message in ctx.value or ():
                ctx.send(target, message)
        else:
            ctx.value = ctx.messages
        ctx.vote_to_halt()

    outboxes = {"a": [("many", 5), ("many", 1)], "b": [("many", 4), ("one", 7)], "c": [("many", 2), ("many", 3)]}
    vertices = [Vertex(name, outboxes.get(name)) for name in ["many", "one", "c", "b", "a"]]
    result = agents.run(vertices, compute, workers=workers, combiner=combiner)
    values(result, {**outboxes, "many": [many], "one": [one]})


@pytest.mark.parametrize("workers", [0, 5])
def test_logical_combiners(workers: int) -> None:
    def compute(ctx: Any) -> None:
        if ctx.superstep == 0:
            ctx.send(0, ctx.vertex_id > 0)
            ctx.send(1, False)
            ctx.send(2, ctx.vertex_id < 9)
        else:
            ctx.value = ctx.messages
        ctx.vote_to_halt()

    vertices = [Vertex(k) for k in range(4)]
    every = agents.run(vertices, compute, workers=workers, combiner="and")
    values(every, {0: [False], 1: [False], 2: [True], 3: None})
    some = agents.run(vertices, compute, workers=workers, combiner="or")
    values(some, {0: [True], 1: [False], 2: [True], 3: None})


@MORE_WORKERS
def test_keys_and_random_numbers_depend_on_the_vertex(workers: int) -> None:
    """They are equal in every attempt, and differ between vertices, supersteps and runs."""

    def compute(ctx: Any) -> None:
        drawn = (ctx.key, ctx.random.random(), ctx.random.randrange(1 << 40))
        if ctx.attempt == 1:
            raise ValueError(repr(drawn))
        ctx.value = [*ctx.value, drawn]
        if ctx.superstep == 1:
            ctx.vote_to_halt()

    texts: list[str] = []

    def observer(event: agents.Event) -> None:
        if event.kind == "retry":
            texts.append(event.facts["text"])

    first, second = (
        agents.run([Vertex(k, []) for k in range(3)], compute, workers=workers, retry=WITHOUT_WAIT, observer=observer)
        for _ in range(2)
    )
    drawn = [row for result in (first, second) for value in result.values.values() for row in value]
    assert len(drawn) == 12
    assert sorted(map(repr, drawn)) == sorted(texts)
    for column in range(3):
        assert len({row[column] for row in drawn}) == 12
