"""Random programs on random graphs have equal results with 0, 1, 2 and 5 workers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gpu_pregel as gp
import gpu_pregel.agents as agents
from gpu_pregel.agents import Aggregator, Edge, TopK, Vertex
from gpu_pregel.errors import AgentError
from gpu_pregel.host.agents.codec import encode
from tests.agents import WITHOUT_WAIT, rows

IDS: list[Any] = [0, 1, 2, 7, "a", "bc", (1, "a"), b"x"]
AGGREGATORS = {
    "sum": "sum",  # of floats, so that the order matters
    "list": Aggregator("list", persistent=True),
    "top": TopK(3),
    "function": Aggregator(lambda a, b: b - 2 * a, initial=1.5, persistent=True),
}
COMBINERS = [None, "min", "list", "last", TopK(2), lambda a, b: f"({a}{b})"]

ids = st.sampled_from(IDS)
texts = st.sampled_from(["", "x", "yy", "é"])
figures = st.sampled_from([0.1, -0.1, 1e16, -1e16, 3.0, 1 / 3, "no figure"])
weights = st.sampled_from([1, 0.5, "w", [1, [2]], {"k": 1.5}])
requests = st.one_of(
    st.tuples(st.just("send"), ids, texts),
    st.tuples(st.just("send"), ids, texts),
    st.tuples(st.just("send_to_neighbors"), texts),
    st.tuples(st.just("vote_to_halt")),
    st.tuples(st.just("vote_to_halt")),
    st.tuples(st.just("aggregate"), st.sampled_from(list(AGGREGATORS)), figures),
    st.tuples(st.just("add_edge"), ids, ids, weights),
    st.tuples(st.just("remove_edge"), ids, ids),
    st.tuples(st.just("remove_vertex"), ids),
    st.tuples(st.just("add_vertex"), ids, st.just({"script": [[("draw",)]], "log": []}), st.lists(ids, max_size=2)),
    # The interpreter of the scripts.
    st.tuples(st.just("keep"), texts),
    st.tuples(st.just("look")),
    st.tuples(st.just("draw")),
    st.tuples(st.just("fail"), st.sampled_from([2, 2, 3, 9])),
)
scripts = st.lists(st.lists(requests, max_size=5), min_size=2, max_size=4)
graphs = st.dictionaries(
    ids,
    st.tuples(scripts, st.lists(ids, max_size=3), weights, st.sampled_from([False, False, True])),
    min_size=2,
    max_size=6,
)


def interpreter(asynchronous: bool) -> Any:
    """Return a compute function that executes the script in the value of its vertex."""

    def interpret(ctx: Any) -> None:
        value = ctx.value or {"script": [], "log": ["by a message"]}
        log, script = value["log"], value["script"]
        log.append((ctx.superstep, ctx.num_vertices, ctx.messages))
        if ctx.superstep >= len(script):
            ctx.vote_to_halt()
        for name, *arguments in script[ctx.superstep] if ctx.superstep < len(script) else ():
            if name == "keep":
                log.extend(arguments)
            elif name == "look":
                log.append([ctx.aggregated(one) for one in ("sum", "list", "top", "function")])
                log.append([(edge.target, edge.weight) for edge in ctx.edges])
            elif name == "draw":
                log.append((ctx.key, ctx.random.random()))
                if ctx.neighbors:
                    ctx.send(ctx.random.choice(ctx.neighbors), "drawn")
            elif name == "fail":
                if ctx.attempt < arguments[0]:
                    raise ValueError(f"attempt {ctx.attempt}")
            else:
                getattr(ctx, name)(*arguments)
        ctx.value = value

    async def interpret_later(ctx: Any) -> None:
        import asyncio

        for _ in range(len(repr(ctx.vertex_id)) % 3):
            await asyncio.sleep(0)
        interpret(ctx)

    return interpret_later if asynchronous else interpret


def vertices_of(graph: dict[Any, Any]) -> list[Vertex]:
    return [
        Vertex(one, {"script": script, "log": []}, [Edge(target, weight) for target in targets], halted)
        for one, (script, targets, weight, halted) in graph.items()
    ]


def options_of(asynchronous: bool, **options: Any) -> dict[str, Any]:
    return {
        "compute": interpreter(asynchronous),
        "aggregators": AGGREGATORS,
        "retry": WITHOUT_WAIT,
        "on_failure": "continue",
        "max_supersteps": 6,
        "on_limit": "return",
        "run_id": "one",
        **options,
    }


def resolve(vertex: Any, existing: Any, requested: list[Any], messages: list[Any]) -> Any:
    return [None, existing, *requested][len(messages) % 3]


def encoded_result(result: agents.AgentResult, error: str | None) -> bytes:
    """Return the encoded result of a run, without its trace."""
    failed = [(vertex, one.superstep, one.kind, one.text, one.messages) for vertex, one in result.failed.items()]
    content = (rows(result), error, result.status, result.superstep, result.aggregates, sorted(failed, key=repr))
    return encode((content, list(result.vertices)))


def outcome(workers: int, graph: dict[Any, Any], asynchronous: bool, **options: Any) -> tuple[bytes, list[Any]]:
    """Return the encoded result of a run and the counts of its trace."""
    run = agents.start(vertices_of(graph), workers=workers, **options_of(asynchronous, **options))
    with run:
        error = None
        try:
            while run.step():
                pass
        except AgentError as raised:
            error = str(raised)
        result = run.result()
    return encoded_result(result, error), [
        (row["computed"], row["messages"], row["failed"], row["retries"]) for row in result.trace
    ]


def check_targets(graph: dict[Any, Any], on_missing: str) -> dict[Any, Any]:
    """Return the graph, without edges to missing vertices if these are an error."""
    if on_missing != "error":
        return graph
    return {one: (script, [to for to in targets if to in graph], weight, halted)
            for one, (script, targets, weight, halted) in graph.items()}  # fmt: skip


@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(
    graph=graphs,
    asynchronous=st.booleans(),
    on_missing=st.sampled_from(["create", "drop", "create", "error"]),
    combiner=st.sampled_from(COMBINERS),
    resolve=st.sampled_from([resolve, None]),
)
def test_random_programs(graph: dict[Any, Any], asynchronous: bool, **options: Any) -> None:
    graph = check_targets(graph, options["on_missing"])
    expected = outcome(0, graph, asynchronous, **options)
    for workers in (1, 2, 5):
        assert outcome(workers, graph, asynchronous, **options) == expected


@settings(max_examples=40)
@given(
    graph=graphs,
    asynchronous=st.booleans(),
    on_missing=st.sampled_from(["create", "drop", "create", "error"]),
    base_every=st.sampled_from([1, 2, 3, 50]),
    resolve=st.sampled_from([resolve, None]),
    leaves=st.booleans(),
)
def test_random_programs_in_a_store(
    graph: dict[Any, Any], asynchronous: bool, on_missing: str, base_every: int, resolve: Any, leaves: bool
) -> None:
    """A store does not change results, even if each superstep runs in another program; state_at returns them."""
    graph = check_targets(graph, on_missing)
    chosen: dict[str, Any] = {"on_missing": on_missing, "resolve": resolve}
    expected, _ = outcome(0, graph, asynchronous, **chosen)
    with gp.MemoryStore() as store:
        options = options_of(asynchronous, **chosen, store=store, base_every=base_every)
        run = agents.start(vertices_of(graph), **options)
        seen = {-1: run.result()}
        error, goes_on = None, True
        while goes_on:
            if leaves:
                run.__exit__()
                run = agents.reopen(**options)
            try:
                goes_on = run.step()
            except AgentError as raised:
                error, goes_on = str(raised), False
            else:
                seen[run.result().superstep - 1] = run.result()
        run.__exit__()
        assert encoded_result(run.result(), error) == expected
        for step, result in seen.items():
            found = agents.state_at(store, "one", step)
            assert encoded_result(replace(found, status=""), None) == encoded_result(replace(result, status=""), None)
