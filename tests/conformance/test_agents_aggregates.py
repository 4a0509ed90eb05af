"""Aggregates and master compute of agents with any number of workers."""

from __future__ import annotations

import enum
from typing import Any

import gpu_pregel.agents as agents
from gpu_pregel.agents import Aggregator, TopK, Vertex
from tests.agents import FEW, MORE_WORKERS, WITHOUT_WAIT, WORKERS, check, values

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


@MORE_WORKERS
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
    columns = [{name: row[f"aggregated.{name}"] for name in names} for row in result.trace]
    texts = [{name: str(value) if isinstance(value, list) else value for name, value in row.items()} for row in seen]
    assert [short(row) for row in columns] == [short(row) for row in texts]


def short(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of which only the beginnings of texts are compared."""
    return {name: value[:22].rstrip(".]") if isinstance(value, str) else value for name, value in row.items()}


def test_the_trace_has_aggregates_without_a_master() -> None:
    """Also those that nobody has contributed to, that are large, or that cannot be hashed."""

    def compute(ctx: Any) -> None:
        if ctx.superstep == 0:
            for name, value in contributions.items():
                ctx.aggregate(name, value)
        else:
            ctx.vote_to_halt()

    contributions = {"number": 1.5, "text": "abc", "long text": "x" * 100, "data": {"a": [1]}, "large": "y" * 5000}
    kept = {name: Aggregator("last", persistent=True) for name in contributions}
    result = agents.run([Vertex(0)], compute, workers=0, aggregators=kept)
    expected = {
        "number": 1.5,
        "text": "abc",
        "long text": "x" * 59 + "…",
        "data": "{'a': [1]}",
        "large": "5,011 bytes",
    }
    rows = [{name: row[f"aggregated.{name}"] for name in contributions} for row in result.trace]
    assert rows == [expected, expected]
    assert result.trace.to_pandas()["aggregated.number"].tolist() == [1.5, 1.5]
    assert result.trace.to_text().splitlines()[0].split("  ")[-1].strip() == "large"
    assert isinstance(hash(result.trace), int)


@MORE_WORKERS
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
        on_limit="return",
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


@FEW
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
