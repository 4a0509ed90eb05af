"""The semantics of a superstep: clock, halting, messages, aggregates, mutations, master compute, combiners."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from inspect import signature
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import AgentsFailedError, ArgumentError, ArgumentTypeError, CodecError

Vertex = gp.agents.Vertex


def chain(n: int) -> list[Any]:
    """Vertices 0 to n - 1, each with an edge to the next."""
    return [Vertex(k, 0, [k + 1] if k + 1 < n else []) for k in range(n)]


def pass_on(ctx: Any) -> None:
    """Pass a token from vertex 0 along the chain; each vertex stores the superstep in which it arrived."""
    if ctx.superstep == 0 and ctx.vertex_id == 0:
        ctx.send_to_neighbors("token")
    elif ctx.messages:
        ctx.value = ctx.superstep
        ctx.send_to_neighbors("token")
    ctx.vote_to_halt()


def test_messages_arrive_one_superstep_later() -> None:
    result = gp.agents.run(chain(5), pass_on)
    assert result.values == {0: 0, 1: 1, 2: 2, 3: 3, 4: 4}
    assert result.status == "completed"
    assert result.superstep == 5
    assert [row["computed"] for row in result.trace] == [5, 1, 1, 1, 1]
    assert [row["messages"] for row in result.trace] == [1, 1, 1, 1, 0]


def test_a_vertex_runs_until_it_votes_to_halt() -> None:
    def count(ctx: Any) -> None:
        ctx.value += 1
        if ctx.value == ctx.vertex_id:
            ctx.vote_to_halt()

    result = gp.agents.run([Vertex(k, 0) for k in (1, 2, 3)], count)
    assert result.values == {1: 1, 2: 2, 3: 3}
    assert result.superstep == 3


def test_a_message_activates_a_halted_vertex_until_it_votes_again() -> None:
    seen: list[tuple[int, Any]] = []

    def compute(ctx: Any) -> None:
        seen.append((ctx.superstep, ctx.vertex_id))
        if ctx.vertex_id == "a" and ctx.superstep == 1:
            ctx.send("b", None)
        if ctx.vertex_id == "a" and ctx.superstep < 1:
            return
        ctx.vote_to_halt()

    gp.agents.run([Vertex("a"), Vertex("b", halted=True)], compute)
    assert seen == [(0, "a"), (1, "a"), (2, "b")]


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_max_supersteps_3_runs_supersteps_0_1_and_2(limit: int) -> None:
    result = gp.agents.run(chain(9), pass_on, max_supersteps=limit, on_limit="return")
    assert result.status == "max_supersteps"
    assert result.superstep == limit
    assert [row["superstep"] for row in result.trace] == list(range(limit))


def test_messages_are_ordered_by_sender_and_sequence() -> None:
    def compute(ctx: Any) -> None:
        if ctx.superstep == 0:
            if ctx.vertex_id != "sink":
                for number in range(3):
                    ctx.send("sink", (ctx.vertex_id, number))
        else:
            ctx.value = ctx.messages
        ctx.vote_to_halt()

    senders: list[Any] = ["b", 10, ("x", 1), 9, b"raw", "a"]
    vertices = [Vertex("sink"), *(Vertex(one) for one in senders)]
    first = gp.agents.run(vertices, compute).values["sink"]
    second = gp.agents.run(vertices[::-1], compute).values["sink"]
    assert first == second
    assert len(first) == 18
    assert [number for _, number in first] == [0, 1, 2] * 6


def test_each_recipient_gets_a_copy_of_a_message() -> None:
    def compute(ctx: Any) -> None:
        if ctx.superstep == 0 and ctx.vertex_id == 0:
            ctx.send_to_neighbors([1])
        elif ctx.messages:
            ctx.messages[0].append(ctx.vertex_id)
            ctx.value = ctx.messages[0]
        ctx.vote_to_halt()

    result = gp.agents.run([Vertex(0, None, [1, 2]), Vertex(1), Vertex(2)], compute)
    assert result.values == {0: None, 1: [1, 1], 2: [1, 2]}


def test_a_value_changed_in_place_is_kept() -> None:
    def compute(ctx: Any) -> None:
        ctx.value["count"] += 1
        ctx.vote_to_halt()

    assert gp.agents.run([Vertex("a", {"count": 1})], compute).values == {"a": {"count": 2}}


@pytest.mark.parametrize(
    ("combiner", "expected"),
    [
        ("sum", 6),
        ("min", 1),
        ("max", 3),
        ("count", 3),
        ("first", 1),
        ("last", 3),
        ("list", [1, 2, 3]),
        ("and", True),
        ("or", True),
        (gp.agents.TopK(2), [3, 2]),
        pytest.param(lambda a, b: a * 10 + b, 123, id="function"),
    ],
)
def test_combiners(combiner: Any, expected: Any) -> None:
    def compute(ctx: Any) -> None:
        if ctx.superstep == 0 and ctx.vertex_id:
            ctx.send(0, ctx.vertex_id)
        elif ctx.messages:
            (ctx.value,) = ctx.messages
        ctx.vote_to_halt()

    result = gp.agents.run([Vertex(k) for k in range(4)], compute, combiner=combiner)
    assert result.values[0] == expected


@pytest.mark.parametrize(
    ("combine", "expected"),
    [("sum", [0, 6, 6]), ("min", [None, 0, 0]), ("count", [0, 4, 4]), ("list", [[], [0, 1, 2, 3], [0, 1, 2, 3]])],
)
def test_aggregates_are_visible_one_superstep_later(combine: Any, expected: list[Any]) -> None:
    def compute(ctx: Any) -> None:
        ctx.value = [*ctx.value, ctx.aggregated("figure")]
        ctx.aggregate("figure", ctx.vertex_id)
        if ctx.superstep == 2:
            ctx.vote_to_halt()

    result = gp.agents.run([Vertex(k, []) for k in range(4)], compute, aggregators={"figure": combine})
    assert result.values == dict.fromkeys(range(4), expected)
    assert result.aggregates == {"figure": expected[-1]}


@pytest.mark.parametrize(("combine", "expected"), [("sum", 18), ("max", 3), ("count", 12), (gp.agents.TopK(2), [3, 3])])
def test_persistent_aggregates_carry_over(combine: Any, expected: Any) -> None:
    def compute(ctx: Any) -> None:
        ctx.aggregate("figure", ctx.vertex_id)
        if ctx.superstep == 2:
            ctx.vote_to_halt()

    aggregators = {"figure": gp.agents.Aggregator(combine, persistent=True)}
    result = gp.agents.run([Vertex(k) for k in range(4)], compute, aggregators=aggregators)
    assert result.aggregates == {"figure": expected}


def test_the_master_reads_aggregates_halts_and_switches_functions() -> None:
    seen = []

    def grow(ctx: Any) -> None:
        ctx.value += 1
        ctx.aggregate("total", ctx.value)

    def shrink(ctx: Any) -> None:
        ctx.value -= 10
        ctx.aggregate("total", ctx.value)

    def master(m: Any) -> None:
        seen.append((m.superstep, m.aggregated("total"), m.num_vertices))
        if m.superstep == 1:
            m.use("shrink")
        if m.superstep == 2:
            m.halt()

    result = gp.agents.run(
        [Vertex(0, 0), Vertex(1, 5)],
        functions={"grow": grow, "shrink": shrink},
        master=master,
        aggregators={"total": "sum"},
    )
    assert seen == [(0, 7, 2), (1, 9, 2), (2, -11, 2)]
    assert result.values == {0: -8, 1: -3}
    assert result.status == "halted"


def test_mutations_take_effect_in_the_next_superstep() -> None:
    def compute(ctx: Any) -> None:
        if ctx.superstep == 0 and ctx.vertex_id == "a":
            ctx.add_vertex("new", 5, ["a"])
            ctx.add_edge("a", "new", 2.5)
            ctx.remove_edge("a", "b")
            ctx.remove_vertex("b")
            assert ctx.neighbors == ["b"]
            return
        ctx.value = (ctx.superstep, ctx.num_vertices, ctx.neighbors, [edge.weight for edge in ctx.edges])
        ctx.vote_to_halt()

    result = gp.agents.run([Vertex("a", None, ["b"]), Vertex("b")], compute)
    assert result.values == {"a": (1, 2, ["new"], [2.5]), "new": (1, 2, ["a"], [1])}


def test_a_vertex_removed_and_added_in_one_superstep_is_new() -> None:
    def compute(ctx: Any) -> None:
        if ctx.superstep == 0 and ctx.vertex_id == 0:
            ctx.add_vertex(1, "new")
            ctx.remove_vertex(1)
        ctx.vote_to_halt()

    assert gp.agents.run([Vertex(0), Vertex(1, "old", [0])], compute).values == {0: None, 1: "new"}


def test_conflicting_additions_are_an_error_unless_resolved() -> None:
    def compute(ctx: Any) -> None:
        if ctx.superstep == 0:
            ctx.add_vertex("new", ctx.vertex_id)
        ctx.vote_to_halt()

    vertices = [Vertex(0), Vertex(1)]
    with pytest.raises(AgentsFailedError, match=r"(?s)2 vertices failed in .*vertex 'new' is added 2 times"):
        gp.agents.run(vertices, compute, retry=gp.agents.RetryPolicy(attempts=1))
    result = gp.agents.run(vertices, compute, resolve=lambda _id, _existing, requested, _messages: requested[-1])
    assert result.values == {0: None, 1: None, "new": 1}


@pytest.mark.parametrize("missing", ["error", "create", "drop"])
def test_a_message_to_a_missing_vertex(missing: str) -> None:
    def compute(ctx: Any) -> None:
        if ctx.superstep == 0:
            ctx.send("nowhere", 1)
        else:
            ctx.value = ctx.messages
        ctx.vote_to_halt()

    if missing == "error":
        with pytest.raises(AgentsFailedError, match=r"'a': .* sent a message to 'nowhere'.*on_missing"):
            gp.agents.run([Vertex("a")], compute, retry=gp.agents.RetryPolicy(attempts=1))
        return
    result = gp.agents.run([Vertex("a")], compute, on_missing=missing)
    assert result.values == ({"a": None, "nowhere": [1]} if missing == "create" else {"a": None})


def test_keys_and_random_numbers_are_the_same_in_every_attempt() -> None:
    seen: list[Any] = []

    def compute(ctx: Any) -> None:
        seen.append((ctx.superstep, ctx.vertex_id, ctx.key, ctx.random.random()))
        if ctx.attempt == 1:
            raise ValueError
        if ctx.superstep == 1:
            ctx.vote_to_halt()

    gp.agents.run([Vertex(0), Vertex(1)], compute, retry=gp.agents.RetryPolicy(wait=0))
    assert len(seen) == 8
    assert len({row[2] for row in seen}) == len({row[:2] for row in seen}) == 4
    assert len(set(seen)) == 4


def test_async_functions_run_concurrently() -> None:
    import asyncio

    under_way = most = 0

    async def compute(ctx: Any) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        ctx.value = ctx.vertex_id
        ctx.vote_to_halt()

    assert gp.agents.run([Vertex(k) for k in range(20)], compute, max_concurrency=5).values[7] == 7
    assert most == 5


def test_context_variables_end_with_their_attempt() -> None:
    """Attempts beyond ``max_concurrency`` start when others end."""

    async def compute(ctx: Any) -> None:
        seen = variable.get()
        variable.set(ctx.vertex_id)
        await asyncio.sleep(0)
        ctx.value = seen, variable.get()
        ctx.vote_to_halt()

    variable: ContextVar[Any] = ContextVar("variable", default=None)
    result = gp.agents.run([Vertex(k) for k in range(5)], compute, max_concurrency=2)
    assert result.values == {k: (None, k) for k in range(5)}


def test_run_inside_a_running_event_loop() -> None:
    import asyncio

    async def compute(ctx: Any) -> None:
        await asyncio.sleep(0)
        ctx.value = 1
        ctx.vote_to_halt()

    async def main() -> tuple[Any, Any]:
        return gp.agents.run([Vertex("a")], compute).values, (await gp.agents.arun([Vertex("a")], compute)).values

    assert asyncio.run(main()) == ({"a": 1}, {"a": 1})


def test_bad_input_is_refused_before_work() -> None:
    def never(ctx: Any) -> None:
        raise AssertionError

    run = gp.agents.run
    with pytest.raises(ArgumentError, match=r"duplicate vertex 'a'"):
        run([Vertex("a"), Vertex("a")], never)
    with pytest.raises(ArgumentError, match=r"vertex 'a' has an edge to 'b', which does not exist"):
        run([Vertex("a", None, ["b"])], never)
    with pytest.raises(CodecError, match=r"vertex 'a'"):
        run([Vertex("a", object())], never)
    with pytest.raises(ArgumentTypeError, match="id"):
        run([Vertex(1.5)], never)
    with pytest.raises(ArgumentTypeError, match=r"gp\.agents\.Vertex"):
        run(["a"], never)  # type: ignore[list-item]
    with pytest.raises(ArgumentError, match=r"timeout=1 cannot be enforced with workers=0"):
        run([Vertex("a")], never, timeout=1)
    with pytest.raises(ArgumentError, match="no compute function"):
        run([Vertex("a")])
    with pytest.raises(ArgumentError, match="combiner must be one of"):
        run([Vertex("a")], never, combiner="median")
    with pytest.raises(ArgumentError, match="on_failure"):
        run([Vertex("a")], never, on_failure="ignore")


def test_an_unknown_option_is_refused_by_the_function_that_was_called() -> None:
    store = gp.MemoryStore()
    calls: dict[str, Callable[..., Any]] = {
        "run": partial(gp.agents.run, []),
        "arun": lambda *args, **options: asyncio.run(gp.agents.arun([], *args, **options)),
        "start": partial(gp.agents.start, []),
        "resume": partial(gp.agents.resume, store, "run"),
        "aresume": lambda *args, **options: asyncio.run(gp.agents.aresume(store, "run", *args, **options)),
        "reopen": partial(gp.agents.reopen, store, "run"),
    }
    for name, call in calls.items():
        with pytest.raises(ArgumentTypeError, match=f"^{name} has no parameter spam$"):
            call(lambda ctx: None, spam=1)


def test_signatures_show_all_options() -> None:
    shown = {name: parameter.default for name, parameter in signature(gp.agents.run).parameters.items()}
    assert list(shown)[:4] == ["vertices", "compute", "workers", "threads"]
    assert (len(shown), shown["max_supersteps"], shown["on_failure"]) == (28, 100, "raise")
    assert signature(gp.agents.start).parameters.keys() == signature(gp.agents.arun).parameters.keys() == shown.keys()
    resumed = signature(gp.agents.resume).parameters.keys()
    assert resumed == (shown.keys() - {"vertices"}) | {"answers", "retry_failed", "takeover"}
    assert signature(gp.agents.reopen).parameters.keys() == resumed - {"answers", "retry_failed"}


def test_no_vertices() -> None:
    result = gp.agents.run([], lambda ctx: None)
    assert (result.status, result.superstep, result.values) == ("completed", 0, {})
