"""Streams of calls: every mode, their order, subgraphs, early ends, failures and questions."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import AgentsFailedError, ArgumentError, ArgumentTypeError
from gpu_pregel.workflows import START, Command, CompiledGraph, Interrupt, Send, StateGraph, interrupt
from tests.gpu_pregel.workflows.small_graphs import Notes, chain, noted, thread

MODES = ["values", "updates", "messages", "custom", "tasks", "checkpoints", "debug"]


def stream(app: Any, given: Any, config: Any = None, **options: Any) -> list[Any]:
    return list(app.stream(given, config, **options))


def astream(app: Any, given: Any, config: Any = None, **options: Any) -> list[Any]:
    async def collect() -> list[Any]:
        return [item async for item in app.astream(given, config, **options)]

    return asyncio.run(collect())


STREAMS = pytest.mark.parametrize("way", [stream, astream])


def talking(state: Any, context: Any) -> dict[str, Any]:
    context.emit("token")
    context.write({"done": 1})
    return {"x": state.get("x", 0) + 1, "log": "a"}


def two_steps(node: Callable[..., Any] = talking, **options: Any) -> CompiledGraph:
    """Return a graph in which "a" emits beside "b", and "c" follows."""
    graph = StateGraph(Notes).add_node("a", node).add_node("b", lambda state: {"log": "b"}).add_node("c", noted("c"))
    app: CompiledGraph = graph.add_edge(START, "a").add_edge(START, "b").add_edge("a", "c").compile(**options)
    return app


def event(kind: str, node: str, superstep: int, **more: Any) -> dict[str, Any]:
    attempt = {} if kind == "start" else {"attempt": 1, "status": "completed"}
    return {"event": kind, "node": node, "task": node, "superstep": superstep, **attempt, **more}


VALUES = [{"x": 0, "log": []}, {"x": 1, "log": ["a", "b"]}, {"x": 2, "log": ["a", "b", "c"]}]
UPDATES = [{"a": {"x": 1, "log": "a"}}, {"b": {"log": "b"}}, {"c": {"x": 2, "log": "c"}}]
CHECKPOINTS = [
    {"superstep": 0, "values": VALUES[1], "next": ["c"]},
    {"superstep": 1, "values": VALUES[2], "next": []},
]
STARTS = [event("start", "a", 0), event("start", "b", 0), event("start", "c", 1)]
ENDS = [event("attempt", "a", 0), event("attempt", "b", 0), event("attempt", "c", 1)]
ABOUT = {"node": "a", "task": "a", "superstep": 0, "attempt": 1}
ITEMS: dict[str, list[Any]] = {
    "values": VALUES,
    "updates": UPDATES,
    "messages": [("token", ABOUT)],
    "custom": [{"done": 1}],
    "checkpoints": CHECKPOINTS,
}


@STREAMS
@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("mode", ITEMS)
def test_items(way: Callable[..., Any], mode: str, kept: bool) -> None:
    app = two_steps(store=gp.MemoryStore() if kept else None)
    assert way(app, {"x": 0}, thread(), stream_mode=mode) == ITEMS[mode]


@STREAMS
@pytest.mark.parametrize("mode", ["values", "messages"])
def test_items_of_workers(way: Callable[..., Any], mode: str) -> None:
    assert way(two_steps(workers=1), {"x": 0}, stream_mode=mode) == ITEMS[mode]


@STREAMS
def test_tasks_start_before_they_end(way: Callable[..., Any]) -> None:
    found = way(two_steps(), {"x": 0}, stream_mode="tasks")
    assert found[:2] == STARTS[:2]
    assert sorted(found[2:4], key=lambda one: one["node"]) == ENDS[:2]  # which of them ends first is left to chance
    assert found[4:] == [STARTS[2], ENDS[2]]


@STREAMS
def test_debug_has_tasks_and_checkpoints(way: Callable[..., Any]) -> None:
    found = way(two_steps(), {"x": 0}, stream_mode="debug")
    assert [one["payload"] for one in found if one["type"] == "checkpoints"] == CHECKPOINTS
    assert [one["payload"] for one in found if one["type"] == "tasks" and "attempt" not in one["payload"]] == STARTS
    assert [one["type"] for one in found] == [*["tasks"] * 4, "checkpoints", *["tasks"] * 2, "checkpoints"]


@STREAMS
def test_several_modes_in_order(way: Callable[..., Any]) -> None:
    found = way(two_steps(), {"x": 0}, stream_mode=["values", "updates", "custom"])
    assert found == [
        ("values", VALUES[0]),
        ("custom", {"done": 1}),
        ("updates", UPDATES[0]),
        ("updates", UPDATES[1]),
        ("values", VALUES[1]),
        ("updates", UPDATES[2]),
        ("values", VALUES[2]),
    ]


@STREAMS
def test_updates_are_the_default_and_come_from_each_task(way: Callable[..., Any]) -> None:
    assert way(two_steps(), {"x": 0}) == UPDATES
    graph = StateGraph(Notes).add_node("work", lambda number: {"log": number})
    app = graph.add_conditional_edges(START, lambda state: [Send("work", k) for k in range(3)]).compile()
    assert way(app, {}) == [{"work": {"log": k}} for k in range(3)]
    assert way(app, {}, stream_mode="values") == [{"log": []}, {"log": [0, 1, 2]}]


@STREAMS
def test_nodes_without_updates(way: Callable[..., Any]) -> None:
    app = StateGraph(Notes).add_node("a", lambda state: None).add_edge(START, "a").compile()
    assert way(app, {"x": 1}) == [{"a": None}]


BAD_MODES: list[tuple[Any, type[Exception], str]] = [
    ("value", ArgumentError, "stream_mode must be of 'values', .*not 'value'"),
    (["values", "x"], ArgumentError, "not 'x'"),
    ([["values"]], ArgumentError, "not .'values'."),
    ([], ArgumentTypeError, "at least one mode"),
    (5, ArgumentTypeError, "a mode or a sequence of modes, not 5"),
]


@pytest.mark.parametrize(("modes", "error", "text"), BAD_MODES)
def test_bad_modes_are_refused_by_the_call(modes: Any, error: type[Exception], text: str) -> None:
    for method in (chain().stream, chain().astream):
        with pytest.raises(error, match=text):
            method({"x": 1}, stream_mode=modes)


@STREAMS
def test_bad_inputs(way: Callable[..., Any]) -> None:
    with pytest.raises(ArgumentError, match="the input writes 'z'"):
        way(chain(), {"z": 1})


# While a node runs.


@STREAMS
@pytest.mark.parametrize("is_async", [False, True])
def test_tokens_arrive_while_the_node_runs(way: Callable[..., Any], is_async: bool) -> None:
    seen = threading.Event()

    def node(state: Any, context: Any) -> dict[str, Any]:
        context.emit("first")
        return {"log": seen.wait(20)}

    async def async_node(state: Any, context: Any) -> dict[str, Any]:
        context.emit("first")
        for _ in range(2000):
            if seen.is_set():
                break
            await asyncio.sleep(0.01)
        return {"log": seen.is_set()}

    app, found = two_steps(async_node if is_async else node), []

    def look(item: Any) -> None:
        found.append(item)
        if item[0] == "messages":
            seen.set()

    if way is stream:
        for item in app.stream({"x": 0}, stream_mode=["messages", "updates"]):
            look(item)
    else:

        async def follow() -> None:
            async for item in app.astream({"x": 0}, stream_mode=["messages", "updates"]):
                look(item)

        asyncio.run(follow())
    assert found[1] == ("updates", {"a": {"log": True}})


@pytest.mark.parametrize("mode", ["values", "messages"])
def test_a_slow_consumer_gets_everything(mode: str) -> None:
    def node(state: Any, context: Any) -> dict[str, Any]:
        for number in range(20):
            context.emit(number)
        return {"x": 1}

    app, count = two_steps(node), 0
    for _ in app.stream({"x": 0}, stream_mode=mode):
        time.sleep(0.005)
        count += 1
    assert count == (20 if mode == "messages" else 3)


def test_two_streams_at_once() -> None:
    app = two_steps()
    first, second = app.stream({"x": 0}, stream_mode="values"), app.stream({"x": 10}, stream_mode=["custom", "values"])
    assert next(first) == VALUES[0]
    assert [item[0] for item in second] == ["values", "custom", "values", "values"]
    assert list(first) == VALUES[1:]


# Ends.


@pytest.mark.parametrize("mode", MODES)
def test_a_closed_stream_can_be_continued(mode: str) -> None:
    app = two_steps(store=gp.MemoryStore())
    items = app.stream({"x": 0}, thread(), stream_mode=mode)
    next(items)
    items.close()  # type: ignore[attr-defined]
    assert app.invoke(None, thread()) == VALUES[2]
    assert len(app.options.store.runs()) == 1  # type: ignore[union-attr]


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_a_closed_async_stream_can_be_continued(mode: str, is_async: bool) -> None:
    async def async_node(state: Any, context: Any) -> dict[str, Any]:
        await asyncio.sleep(0)
        return talking(state, context)

    app = two_steps(async_node if is_async else talking, store=gp.MemoryStore())

    async def run() -> Any:
        items: Any = app.astream({"x": 0}, thread(), stream_mode=mode)
        await anext(items)
        await items.aclose()
        return await app.ainvoke(None, thread())

    assert asyncio.run(run()) == VALUES[2]


def test_a_call_waits_for_an_async_stream_that_was_left_by_break() -> None:
    app = two_steps(store=gp.MemoryStore())

    async def run() -> Any:
        async for _ in app.astream({"x": 0}, thread(), stream_mode="messages"):
            break
        return await app.ainvoke(None, thread())

    assert asyncio.run(run()) == VALUES[2]


@pytest.mark.parametrize("mode", ["values", "messages"])
def test_an_exception_of_the_consumer_ends_the_run(mode: str) -> None:
    app = two_steps(store=gp.MemoryStore())

    def consume() -> None:
        for _ in app.stream({"x": 0}, thread(), stream_mode=mode):
            raise KeyError("consumer")

    with pytest.raises(KeyError, match="consumer"):
        consume()
    assert app.invoke(None, thread()) == VALUES[2]


@STREAMS
@pytest.mark.parametrize("mode", MODES)
def test_a_failure_comes_after_the_items(way: Callable[..., Any], mode: str) -> None:
    app, found = chain(failing={"b"}, store=gp.MemoryStore()), []

    def follow() -> None:
        for item in app.stream({"x": 0}, thread(), stream_mode=mode):
            found.append(item)

    async def afollow() -> None:
        async for item in app.astream({"x": 0}, thread(), stream_mode=mode):
            found.append(item)

    with pytest.raises(AgentsFailedError, match="'b': ValueError: no b"):
        follow() if way is stream else asyncio.run(afollow())
    counts = {"values": 2, "updates": 1, "messages": 0, "custom": 0, "tasks": 5, "checkpoints": 1, "debug": 6}
    assert len(found) == counts[mode]
    if mode == "tasks":
        assert [one["event"] for one in found] == ["start", "attempt", "start", "attempt", "failure"]


@STREAMS
@pytest.mark.parametrize("mode", MODES)
def test_questions_are_the_last_items(way: Callable[..., Any], mode: str) -> None:
    graph = StateGraph(Notes).add_node("a", talking).add_node("ask", lambda state: {"log": interrupt("?")})
    app = graph.add_edge(START, "a").add_edge("a", "ask").compile(store=gp.MemoryStore())
    found = way(app, {"x": 0}, thread(), stream_mode=mode)
    questions = (Interrupt("?", "1:ask:0", "ask"),)
    if mode == "values":
        assert found[-1] == {"x": 1, "log": ["a"], "__interrupt__": questions}
    elif mode == "updates":
        assert found[-1] == {"__interrupt__": questions}
    elif mode == "tasks":
        assert found[-1]["status"] == "interrupted"
    end = way(app, Command(resume="yes"), thread(), stream_mode=mode)
    assert len(end) == {"values": 2, "updates": 1, "messages": 0, "custom": 0, "tasks": 2, "checkpoints": 1}.get(
        mode, 3
    )
    if mode == "tasks":
        assert [one["event"] for one in end] == ["start", "attempt"]


# Subgraphs.


def with_subgraph(**options: Any) -> CompiledGraph:
    inner = StateGraph(Notes).add_node("inner", talking).add_edge(START, "inner").compile(name="leaf")
    middle = StateGraph(Notes).add_node("leaf", inner).add_edge(START, "leaf").compile()
    graph = StateGraph(Notes).add_node("first", noted("first")).add_node("sub", middle)
    app: CompiledGraph = graph.add_edge(START, "first").add_edge("first", "sub").compile(**options)
    return app


OUTER, MIDDLE, LEAF = (), ("sub|1",), ("sub|1", "leaf|0")
ABOUT_INNER = {"node": "inner", "task": "inner", "superstep": 0, "attempt": 1}
IN_SUBGRAPHS: dict[str, list[Any]] = {
    "updates": [
        (OUTER, {"first": {"x": 1, "log": "first"}}),
        (LEAF, {"inner": {"x": 2, "log": "a"}}),
        (MIDDLE, {"leaf": {"x": 2, "log": ["first", "a"]}}),
        (OUTER, {"sub": {"x": 2, "log": ["first", "first", "a"]}}),
    ],
    "messages": [(LEAF, ("token", ABOUT_INNER))],
    "custom": [(LEAF, {"done": 1})],
}


@STREAMS
@pytest.mark.parametrize(("mode", "workers"), [*((mode, 0) for mode in IN_SUBGRAPHS), ("updates", 1)])
def test_subgraphs(way: Callable[..., Any], mode: str, workers: int) -> None:
    app = with_subgraph(workers=workers)
    assert way(app, {"x": 0}, stream_mode=mode, subgraphs=True) == IN_SUBGRAPHS[mode]
    expected = [item for space, item in IN_SUBGRAPHS[mode] if mode != "updates" or space == OUTER]
    assert way(app, {"x": 0}, stream_mode=mode) == expected


@STREAMS
def test_values_and_checkpoints_of_subgraphs(way: Callable[..., Any]) -> None:
    found = way(with_subgraph(store=gp.MemoryStore()), {"x": 0}, thread(), stream_mode=["values"], subgraphs=True)
    assert [(space, mode, item["x"]) for space, mode, item in found] == [
        (OUTER, "values", 0),
        (OUTER, "values", 1),
        (MIDDLE, "values", 1),
        (LEAF, "values", 1),
        (LEAF, "values", 2),
        (MIDDLE, "values", 2),
        (OUTER, "values", 2),
    ]
    found = way(with_subgraph(), {"x": 0}, stream_mode="debug", subgraphs=True)
    assert [(space, item["type"]) for space, item in found if item["type"] == "checkpoints"] == [
        (OUTER, "checkpoints"),
        (LEAF, "checkpoints"),
        (MIDDLE, "checkpoints"),
        (OUTER, "checkpoints"),
    ]
    starts = [item["payload"]["node"] for _, item in found if item["payload"].get("event") == "start"]
    assert starts == ["first", "sub", "leaf", "inner"]
