"""Runs of graphs whose state travels in messages: streams, threads, event loops, and what is refused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, SuperstepLimitError
from gpu_pregel.workflows import (
    END,
    START,
    Command,
    StateGraph,
    interrupt,
)
from tests.gpu_pregel.workflows.carried_graphs import State, built, log


def test_streams_show_nodes_that_have_run() -> None:
    edges = [(START, "a"), (START, "b"), ("b", "c"), (["a", "c"], "j"), (START, "bad"), ("bad", "j"), ("j", END)]
    app = built(edges, a=log("a"), b=log("b"), c=log("c"), j=log("j"), bad=lambda state: 1 / 0).compile(
        carry="messages"
    )
    assert list(app.stream({})) == [{one: {"log": one}} for one in "abcj"]


def test_streams_and_recursion_limit() -> None:
    app = built([(START, "a"), ("a", "b"), ("b", END)], a=log("a"), b=log("b")).compile(carry="messages")
    assert list(app.stream({})) == [{"a": {"log": "a"}}, {"b": {"log": "b"}}]
    assert app.invoke({}, {"recursion_limit": 2})["log"] == ["a", "b"]
    with pytest.raises(SuperstepLimitError, match="node '__end__' had still to run after max_supersteps=1"):
        app.invoke({}, {"recursion_limit": 1})


def test_a_thread_asks_and_continues() -> None:
    graph = built([(START, "a"), ("a", "b"), ("b", END)], a=log("a"), b=lambda state: {"x": interrupt("how many?")})
    app = graph.compile(carry="messages", store=gp.MemoryStore())
    config = {"configurable": {"thread_id": "1"}}
    asked = app.invoke({"log": ["in"]}, config)
    assert [one.value for one in asked["__interrupt__"]] == ["how many?"]
    held = app.get_result(config)
    assert (held.status, held.state, held.nodes["a"].status) == ("interrupted", None, "ok")
    assert [one.value for one in held.interrupts] == ["how many?"]
    assert app.get_state(config).next == ("b",)
    assert app.invoke(Command(resume=3), config) == {"log": ["in", "a"], "total": 0, "x": 3}
    assert app.get_state(config).values == {"log": ["in", "a"], "total": 0, "x": 3}
    assert app.get_result(config).nodes["b"].state == {"log": ["in", "a"], "total": 0, "x": 3}
    with pytest.raises(ArgumentError, match="thread '1' has its input, and the start runs in superstep 0 only"):
        app.invoke({}, config)


def test_a_breakpoint_stops_and_none_continues() -> None:
    graph = built([(START, "a"), ("a", "b"), ("b", END)], a=log("a"), b=log("b"))
    app = graph.compile(carry="messages", store=gp.MemoryStore(), interrupt_before=["b"])
    config = {"configurable": {"thread_id": "1"}}
    assert app.invoke({}, config) == {}
    assert app.get_state(config).next == ("b",)
    assert app.invoke(None, config)["log"] == ["a", "b"]


STEPS = [(START, "a"), (START, "b"), ("a", "c"), ("b", "c"), ("c", END)]


def test_calls_on_an_event_loop() -> None:
    app = built(STEPS, a=log("a"), b=log("b"), c=log("c")).compile(carry="messages")

    async def calls() -> tuple[Any, list[Any]]:
        found = await app.arun({})
        assert (found.status, found.state, list(found.failed)) == ("completed", await app.ainvoke({}), [])
        return await app.ainvoke({}), [one async for one in app.astream({})]

    state, updates = asyncio.run(calls())
    assert state == {"log": ["a", "b", "c"], "total": 0}
    assert updates == [{one: {"log": one}} for one in "abc"]
    assert app.batch([{}, {"log": ["in"]}]) == [state, {"log": ["in", "a", "b", "c"], "total": 0}]


def test_a_graph_that_shares_its_state_is_a_node_of_one_that_carries_it() -> None:
    inner = built(
        [(START, "p"), ("p", "q")], p=log("p", total=1), q=lambda state: {"total": 10 * state["total"]}
    ).compile()
    graph = StateGraph(State).add_node("inner", inner).add_edge(START, "inner").add_edge("inner", END)
    assert graph.compile(carry="messages").invoke({"total": 1}) == graph.compile().invoke({"total": 1})
    with pytest.raises(ArgumentError, match="node 'n' is a graph with carry='messages'"):
        StateGraph(State).add_node("n", graph.compile(carry="messages"))


def test_the_timeout_of_a_node_is_its_result() -> None:
    async def slow(state: State) -> None:
        await asyncio.sleep(60)

    graph = built([(START, "b"), ("b", END)], b=log("b")).add_node("a", slow, timeout=0.05).add_edge(START, "a")
    found = graph.add_edge("a", END).compile(carry="messages").run({})
    assert (found.state, found.status) == ({"log": ["b"], "total": 0}, "partial")
    assert "timeout" in str(found.nodes["a"].error).lower()


# Refused.


def test_what_needs_a_shared_state_is_refused() -> None:
    graph = built([(START, "a"), ("a", END)], a=log("a"))
    app = graph.compile(carry="messages", store=gp.MemoryStore())
    config = {"configurable": {"thread_id": "1"}}
    for mode in ("values", "checkpoints", "debug"):
        with pytest.raises(ArgumentError, match=f"stream_mode '{mode}' shows a state that all nodes share"):
            app.stream({}, config, stream_mode=["updates", mode])
    with pytest.raises(ArgumentError, match="update_state needs compile"):
        app.update_state(config, {})
    with pytest.raises(ArgumentError, match="enters at the start"):
        app.invoke(Command(goto="a"), config)
    with pytest.raises(ArgumentError, match="there is no thread '1'"):
        app.get_result(config)
    with pytest.raises(ArgumentError, match="the input writes 'y', which is no key"):
        app.vertices({"y": 1})


def test_graphs_that_need_a_shared_state_are_refused() -> None:
    graph = built([(START, "a"), ("a", "b"), ("b", END)], a=log("a"))
    graph.add_node("b", log("b"), defer=True)
    with pytest.raises(ArgumentError, match="defer=True of 'b' needs compile"):
        graph.compile(carry="messages")
    graph = built([(START, "a"), ("a", "b")], a=log("a"), b=log("b")).add_edge("b", "a")
    with pytest.raises(ArgumentError, match="nothing leads to the end"):
        graph.compile(carry="messages")
    with pytest.raises(ArgumentError, match="carry must be 'shared' or 'messages', not 'both'"):
        graph.compile(carry="both")  # type: ignore[call-overload]
