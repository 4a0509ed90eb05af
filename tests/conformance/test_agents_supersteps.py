"""Supersteps of agents with any number of workers: clock, halting, messages, combiners, aggregates, master compute."""

from __future__ import annotations

import enum
from typing import Any

import pytest

import gpu_pregel.agents as agents
from gpu_pregel.agents import Aggregator, TopK, Vertex
from tests.agents import WITHOUT_WAIT, WORKERS, check, values


@WORKERS
@pytest.mark.parametrize(("limit", "status"), [(1, "max_supersteps"), (2, "max_supersteps"), (3, "completed")])
def test_max_supersteps(limit: int, status: str, workers: int) -> None:
    """The program needs three supersteps."""

    def compute(ctx: Any) -> None:
        ctx.value = [*ctx.value, ctx.superstep]
        if ctx.superstep == 2:
            ctx.vote_to_halt()

    result = agents.run([Vertex("a", []), Vertex("b", [])], compute, workers=workers, max_supersteps=limit)
    assert (result.status, result.superstep) == (status, limit)
    check(result, *((name, list(range(limit)), [], limit == 3) for name in "ab"))


@WORKERS
def test_pending_messages_at_the_limit_do_not_complete_the_run(workers: int) -> None:
    def compute(ctx: Any) -> None:
        ctx.value += 1
        ctx.send(ctx.vertex_id, None)
        ctx.vote_to_halt()

    result = agents.run([Vertex("a", 0)], compute, workers=workers, max_supersteps=3)
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


@WORKERS
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


@pytest.mark.parametrize("workers", [0, 2])
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


AGGREGATED: dict[str, tuple[Any, list[Any], list[Any]]] = {
    # Vertices 1 to 3 contribute 10 k and 10 k + 1 in superstep 0, nothing in 1, and k in 2. Per aggregator: the value
    # before and after each superstep, if it is not persistent, and if it is.
    "sum": ("sum", [0, 123, 0, 6], [0, 123, 123, 129]),
    "min": ("min", [None, 10, None, 1], [None, 10, 10, 1]),
    "max": ("max", [None, 31, None, 3], [None, 31, 31, 31]),
    "count": ("count", [0, 6, 0, 3], [0, 6, 6, 9]),
    "first": ("first", [None, 10, None, 1], [None, 10, 10, 10]),
    "last": ("last", [None, 31, None, 3], [None, 31, 31, 3]),
    "list": (
        "list",
        [[], [10, 11, 20, 21, 30, 31], [], [1, 2, 3]],
        [[], [10, 11, 20, 21, 30, 31], [10, 11, 20, 21, 30, 31], [10, 11, 20, 21, 30, 31, 1, 2, 3]],
    ),
    "and": ("and", [True, True, True, True], [True, True, True, True]),
    "or": ("or", [False, True, False, True], [False, True, True, True]),
    "top": (TopK(3), [[], [31, 30, 21], [], [3, 2, 1]], [[], [31, 30, 21], [31, 30, 21], [31, 30, 21]]),
    "minus": (lambda a, b: b - a, [None, 3, None, 2], [None, 3, 3, -1]),
}


@WORKERS
def test_aggregates_of_all_kinds(workers: int) -> None:
    """Each vertex stores what it reads; the master reads the same one superstep earlier."""
    seen: list[dict[str, Any]] = []

    def compute(ctx: Any) -> None:
        ctx.value = [*ctx.value, {name: ctx.aggregated(name) for name in names}]
        for name in names:
            if ctx.superstep == 0:
                ctx.aggregate(name, 10 * ctx.vertex_id)
                ctx.aggregate(name, 10 * ctx.vertex_id + 1)
            elif ctx.superstep == 2:
                ctx.aggregate(name, ctx.vertex_id)
        if ctx.superstep == 3:
            ctx.vote_to_halt()

    def master(m: Any) -> None:
        seen.append({name: m.aggregated(name) for name in names})

    aggregators: dict[str, Any] = {name: how for name, (how, _, _) in AGGREGATED.items()}
    aggregators |= {f"{name} of all": Aggregator(how, persistent=True) for name, (how, _, _) in AGGREGATED.items()}
    names = list(aggregators)
    result = agents.run(
        [Vertex(k, []) for k in (1, 2, 3)], compute, workers=workers, aggregators=aggregators, master=master
    )
    expected = [
        {
            **{name: fresh[step] for name, (_, fresh, _) in AGGREGATED.items()},
            **{f"{name} of all": carried[step] for name, (_, _, carried) in AGGREGATED.items()},
        }
        for step in range(4)
    ]
    values(result, dict.fromkeys((1, 2, 3), expected))
    assert seen[:3] == expected[1:]
    assert result.aggregates == seen[3]


@WORKERS
def test_an_aggregate_starts_from_its_initial_value(workers: int) -> None:
    def compute(ctx: Any) -> None:
        ctx.value = [*ctx.value, ctx.aggregated("found")]
        ctx.aggregate("found", {ctx.vertex_id: ctx.superstep})
        if ctx.superstep == 2:
            ctx.vote_to_halt()

    def merge(a: dict[int, int], b: dict[int, int]) -> dict[int, int]:
        a.update(b)
        return a

    def master(m: Any) -> None:
        m.aggregated("found")["of the master"] = 1
        m.aggregated("listed").append(1)

    initial = {7: 7}
    for _ in range(2):
        result = agents.run(
            [Vertex(k, []) for k in range(2)],
            compute,
            workers=workers,
            aggregators={"found": Aggregator(merge, initial=initial), "listed": "list"},
            master=master,
        )
        seen = [{7: 7}, {7: 7, 0: 0, 1: 0, "of the master": 1}, {7: 7, 0: 1, 1: 1, "of the master": 1}]
        values(result, {0: seen, 1: seen})
        assert initial == {7: 7}
        assert result.aggregates["listed"] == [1]


@WORKERS
def test_failed_attempts_contribute_nothing(workers: int) -> None:
    def compute(ctx: Any) -> None:
        ctx.aggregate("sum", 1)
        ctx.send(0, ctx.attempt)
        if ctx.superstep == 0:
            if ctx.attempt < ctx.vertex_id + 1:
                raise ValueError("not yet")
        else:
            ctx.value = (ctx.aggregated("sum"), ctx.messages)
            ctx.vote_to_halt()

    result = agents.run(
        [Vertex(k) for k in range(3)], compute, workers=workers, aggregators={"sum": "sum"}, retry=WITHOUT_WAIT,
        max_supersteps=2,
    )  # fmt: skip
    values(result, {0: (3, [1, 2, 3]), 1: (3, []), 2: (3, [])})
    assert [row["retries"] for row in result.trace] == [3, 0]


@WORKERS
def test_the_master_halts_and_switches_functions(workers: int) -> None:
    seen: list[tuple[int, int, Any]] = []

    def grow(ctx: Any) -> None:
        ctx.value += 1
        if ctx.superstep == 0:
            ctx.add_vertex(ctx.vertex_id + 10, 100)
        ctx.aggregate("total", ctx.value)

    def shrink(ctx: Any) -> None:
        ctx.value -= 10
        ctx.send(0, "never seen")
        ctx.aggregate("total", ctx.value)

    def master(m: Any) -> None:
        seen.append((m.superstep, m.num_vertices, m.aggregated("total")))
        if m.superstep == 1:
            m.use("shrink")
        elif m.superstep == 2:
            m.use("grow")
        elif m.superstep == 3:
            m.halt()

    result = agents.run(
        [Vertex(0, 0), Vertex(1, 5)],
        functions={"grow": grow, "shrink": shrink},
        master=master,
        aggregators={"total": "sum"},
        workers=workers,
    )
    assert seen == [(0, 4, 7), (1, 4, 211), (2, 4, 171), (3, 4, 175)]
    assert (result.status, result.superstep) == ("halted", 4)
    check(result, (0, -7, [], False), (1, -2, [], False), (10, 92, [], False), (11, 92, [], False))


@WORKERS
def test_votes_to_halt_count_when_the_master_halts(workers: int) -> None:
    def compute(ctx: Any) -> None:
        ctx.vote_to_halt()
        ctx.send(0, 1)

    result = agents.run([Vertex(0), Vertex(1)], compute, workers=workers, master=lambda m: m.halt())
    assert (result.status, result.superstep) == ("halted", 1)
    check(result, (0, None, [], True), (1, None, [], True))


@WORKERS
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


@pytest.mark.parametrize("workers", [0, 2])
def test_names_may_be_members_of_enumerations(workers: int) -> None:
    class Name(enum.StrEnum):
        TOTAL = "total"
        SECOND = "second"

    def compute(ctx: Any) -> None:
        ctx.aggregate(Name.TOTAL, 1)

    def second(ctx: Any) -> None:
        ctx.value = ctx.aggregated(Name.TOTAL)
        ctx.vote_to_halt()

    with agents.start(
        [Vertex(0), Vertex(1)],
        compute,
        workers=workers,
        aggregators={Name.TOTAL: "sum"},
        functions={Name.SECOND: second},
        master=lambda m: m.use(Name.SECOND),
    ) as run:
        assert run.step()
        assert run.checkpoint_data()
        assert not run.step()
        values(run.result(), {0: 2, 1: 2})
        assert [type(name) for name in run.result().aggregates] == [str]
