"""State in messages: how states are merged, edges of all kinds, threads in a store, and what is refused."""

from __future__ import annotations

import asyncio
import os
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.workflows import (
    END,
    START,
    Command,
    Send,
    StateGraph,
    aggregate_state_messages,
)
from gpu_pregel.workflows.state_messages import BASE, UPDATES
from tests.gpu_pregel.workflows.carried_graphs import DIAMOND, Extended, State, built, log

# Merging.

MERGED: dict[str, tuple[list[tuple[Any, str]], dict[str, Any], dict[str, Any]]] = {
    "each update counts once": (
        DIAMOND,
        {"s": log("s", total=1), "a": log("a", total=10), "b": log("b", x=5), "j": log("j", total=100)},
        {"log": ["in", "s", "a", "b", "j"], "total": 111, "x": 5},
    ),
    "what one path has not written does not undo what the other has": (
        DIAMOND,
        {"s": log("s", x=1), "a": log("a", x=2), "b": log("b"), "j": log("j")},
        {"log": ["in", "s", "a", "b", "j"], "total": 0, "x": 2},
    ),
    "the later superstep wins": (
        [(START, "a"), (START, "b"), ("b", "c"), (["a", "c"], "j"), ("j", END)],
        {"a": log("a", x=1), "b": log("b"), "c": log("c", x=2), "j": log("j")},
        {"log": ["in", "a", "b", "c", "j"], "total": 0, "x": 2},
    ),
    "the end merges what reaches it in different supersteps": (
        [(START, "a"), ("a", END), (START, "b"), ("b", "c"), ("c", END)],
        {"a": log("a", x=1), "b": log("b", total=2), "c": log("c")},
        {"log": ["in", "a", "b", "c"], "total": 2, "x": 1},
    ),
    "a fork of an edge and a join": (
        [(START, "a"), ("a", "b"), (["a", "b"], "j"), ("j", END)],
        {name: log(name, total=1) for name in "abj"},
        {"log": ["in", "a", "b", "j"], "total": 3},
    ),
    "a fork of two joins": (
        [(START, "a"), (["a"], "b"), (["a"], "c"), ("b", "j"), ("c", "j"), ("j", END)],
        {name: log(name, total=1) for name in "abcj"},
        {"log": ["in", "a", "b", "c", "j"], "total": 4},
    ),
    "a join of one source, and a join of it and another": (
        [(START, "a"), (["a"], "c"), ("c", "j"), ("c", "b"), (["a", "b"], "j"), ("j", END)],
        {name: log(name) for name in "abcj"},
        {"log": ["in", "a", "c", "b", "j", "j"], "total": 0},
    ),
    "nested forks": (
        [
            (START, "a"),
            (START, "b"),
            ("a", "c"),
            ("a", "d"),
            ("c", "j"),
            ("d", "j"),
            ("b", "e"),
            ("e", "j"),
            ("j", END),
        ],
        {name: log(name, total=1) for name in "abcdej"},
        {"log": ["in", "a", "b", "c", "d", "e", "j"], "total": 6},
    ),
}


@pytest.mark.parametrize("name", MERGED)
def test_states_that_meet_are_merged(name: str) -> None:
    edges, nodes, expected = MERGED[name]
    graph = built(edges, **nodes)
    assert graph.compile(carry="messages").invoke({"log": ["in"]}) == expected
    assert graph.compile().invoke({"log": ["in"]}) == expected


def test_two_updates_of_a_key_without_reducer_fail_the_node_that_merges_them() -> None:
    graph = built(DIAMOND, s=log("s"), a=log("a", x=1), b=log("b", x=2), j=log("j"))
    found = graph.compile(carry="messages").run({})
    assert found.nodes["j"].error == (
        "ArgumentError: nodes 'a' and 'b' wrote key 'x' in the same superstep, and it has no reducer: declare one, as "
        "in "
        "Annotated[list, append], or write it once"
    )
    assert found.state is None


@pytest.mark.parametrize(
    "messages, expected",
    [
        ([], None),
        (["hello", {"other": 1}, 3], None),
        ([{"state": {"x": 1}}], {"x": 1}),
        ([{"state": {"x": 1}}, "hello"], {"x": 1}),
        ([{"state": {"x": 1}}, {"state": {"x": 2}}], {"x": 2}),
        ([{"state": {"x": 1, "total": 1}}, {"state": {"total": 2}}], {"x": 1, "total": 3}),
        ([{"state": {"total": 2}}, {"state": {"total": 2}}], {"total": 2}),
        ([{"state": {"log": ["a"]}}, {"state": {"log": ["b"]}}, {"state": {}}], {"log": ["a", "b"]}),
        ([{"state": {"unknown": 1}}, {"state": {"unknown": 2}}], {"unknown": 2}),
        (
            [
                {"state": {"total": 3}, "base": {"total": 1}, "updates": [(1, "a", [("total", 2)])]},
                {"state": {"total": 5}, "base": {"total": 1}, "updates": [(1, "b", [("total", 4)])]},
            ],
            {"total": 7},
        ),
    ],
)
def test_aggregate_state_messages(messages: list[Any], expected: Any) -> None:
    before = repr(messages)
    assert aggregate_state_messages(messages, State) == expected
    assert repr(messages) == before


def test_reducers_that_modify_what_they_are_given_do_not_change_what_is_merged_later() -> None:
    graph = StateGraph(Extended)
    for name in "abyzde":
        graph.add_node(name, lambda state, name=name: {"log": [name]})
    for edge in ["ad", "bd", "yz", "de", "ze"]:
        graph.add_edge(edge[0], edge[1])
    app = (
        graph.add_edge(START, "a")
        .add_edge(START, "b")
        .add_edge(START, "y")
        .add_edge("e", END)
        .compile(carry="messages")
    )
    assert app.invoke({"log": ["in"]}) == {"log": ["in", "a", "b", "y", "d", "z", "e"]}


def test_a_state_that_has_not_forked_travels_alone() -> None:
    seen: list[Any] = []

    def spy(context: Any) -> None:
        seen.extend((context.vertex_id, sorted(one)) for one in context.messages)
        app.compute(context)

    graph = built([(START, "s"), ("s", "a"), ("s", "b"), (["a", "b"], END)], a=log("a"), b=log("b"))
    graph.add_node("s", lambda state: Command(goto=["a", "b"]), destinations=["a", "b"]).add_node("r", log("r"))
    graph.edges[START] = {"r": None}
    graph.add_edge("r", "s").add_conditional_edges("r", lambda state: ["s", "s"], ["s"])  # once all the same
    app = graph.compile(carry="messages")
    gp.agents.run(app.vertices({}), spy)
    forked = sorted(["state", BASE, UPDATES])
    assert seen == [("r", ["state"]), ("s", ["state"]), ("a", forked), ("b", forked), (END, forked), (END, forked)]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_random_graphs_end_in_the_state_that_a_shared_one_has(data: Any) -> None:
    count = data.draw(st.integers(1, 7))
    names = [f"n{number}" for number in range(count)]
    graph = StateGraph(State)
    for name in names:
        graph.add_node(name, log(name, total=1))
    for number, name in enumerate(names):
        graph.add_edge(data.draw(st.sampled_from([START, *names[:number]])), name)
        for source in data.draw(st.sets(st.sampled_from([START, *names[:number]]), max_size=2)):
            graph.add_edge(source, name)
        if number > 1 and data.draw(st.booleans()):
            sources = data.draw(st.sets(st.sampled_from(names[:number]), min_size=1, max_size=3))
            graph.add_edge(sorted(sources), name)
        graph.add_edge(name, END)
    expected = graph.compile().invoke({"log": ["in"]})
    assert graph.compile(carry="messages").invoke({"log": ["in"]}) == expected


# Edges of all kinds.


def test_joins_wait_for_sources_of_different_supersteps() -> None:
    edges = [(START, "a"), (START, "b"), ("b", "c"), ("c", "d"), (["a", "d"], "j"), ("j", END)]
    app = built(edges, **{name: log(name) for name in "abcdj"}).compile(carry="messages")
    assert app.invoke({}) == {"log": ["a", "b", "c", "d", "j"], "total": 0}


def test_a_join_and_an_edge_to_the_same_node() -> None:
    edges = [(START, "a"), (START, "b"), ("b", "c"), (["a", "c"], "j"), ("b", "j"), ("j", END)]
    graph = built(edges, **{name: log(name) for name in "abcj"})
    assert graph.compile(carry="messages").invoke({}) == graph.compile().invoke({})


@pytest.mark.parametrize("workers", [0, 1])
def test_a_loop_with_a_router_and_a_command(workers: int) -> None:
    def back(state: State) -> str:
        return "more" if state["total"] < 3 else "enough"

    graph = built([(START, "work"), ("work", "check")], work=log("w", total=1), check=lambda state: None)
    graph.add_conditional_edges("check", back, {"more": "work", "enough": "last"})
    graph.add_node("last", lambda state: Command(update={"x": state["total"]}, goto=END))
    assert graph.compile(carry="messages", workers=workers).invoke({}) == {"log": ["w"] * 3, "total": 3, "x": 3}


def test_a_router_at_the_start_may_fork() -> None:
    graph = built([("a", END), ("b", END)], a=log("a"), b=log("b"), c=log("c"))
    graph.add_conditional_edges(START, lambda state: ["a", "b"], ["a", "b", "c"]).add_edge("c", END)
    assert graph.compile(carry="messages").invoke({"x": 1}) == {"log": ["a", "b"], "total": 0, "x": 1}


def test_coroutine_functions_and_ordinary_ones() -> None:
    async def later(state: State) -> dict[str, Any]:
        await asyncio.sleep(0)
        return {"log": "later"}

    async def fail(state: State) -> None:
        raise KeyError("no")

    app = built([(START, "a"), (START, "b"), ("b", END), ("a", "c"), ("c", END)], a=later, b=fail, c=log("c"))
    found = app.compile(carry="messages").run({})
    assert (found.state, found.nodes["b"].error) == ({"log": ["later", "c"], "total": 0}, "KeyError: 'no'")


def test_an_error_handler_takes_the_last_error() -> None:
    graph = StateGraph(State)
    graph.add_node("a", lambda state: 1 / 0, error_handler=lambda state, error: {"log": type(error).__name__})
    app = graph.add_edge(START, "a").add_edge("a", END).compile(carry="messages")
    assert app.invoke({})["log"] == ["ZeroDivisionError"]


def test_what_nodes_modify_in_place_does_not_travel() -> None:
    def modify(state: State) -> dict[str, Any]:
        state["log"].append("modified")
        state["x"] = 9
        return {"total": 1}

    def route(state: State) -> str:
        state["log"].append("routed")
        return END

    graph = built([(START, "a")], a=modify).add_conditional_edges("a", route, [END])
    assert graph.compile(carry="messages").invoke({"log": ["in"]}) == {"log": ["in"], "total": 1}


NODE_ERRORS = {
    "unknown target": (
        lambda state: Command(goto="nowhere"),
        "ArgumentError: node 'a' goes to 'nowhere', which is no node",
    ),
    "Send": (
        lambda state: Command(goto=Send("a", 1)),
        r"ArgumentTypeError: node 'a' goes to Send\(.*use Send with compile",
    ),
    "unknown key": (lambda state: {"y": 1}, "ArgumentError: node 'a' writes 'y', which is no key of the state"),
    "no update": (lambda state: 3, "ArgumentTypeError: node 'a' must give a dict of updates"),
    "no data": (lambda state: {"x": object()}, "CodecError"),
}


@pytest.mark.parametrize("name", NODE_ERRORS)
def test_errors_of_nodes_are_their_results(name: str) -> None:
    function, message = NODE_ERRORS[name]
    app = built([(START, "a"), (START, "b"), ("a", END), ("b", END)], a=function, b=log("b")).compile(carry="messages")
    found = app.run({})
    assert (found.status, found.state) == ("partial", {"log": ["b"], "total": 0})
    assert re.match(message, str(found.nodes["a"].error))
    assert found.nodes["a"].state is None


def test_errors_of_routers_name_router_and_node() -> None:
    def route(state: State) -> str:
        raise LookupError("which?")

    graph = built([(START, "a")], a=log("a")).add_conditional_edges("a", route, [END])
    found = graph.compile(carry="messages").run({})
    assert found.nodes["a"].error == "LookupError: which?"
    assert "raised by the router 'route' of node 'a'" in str(found.nodes["a"].traceback)


def test_the_death_of_a_worker_is_the_result_of_its_node() -> None:
    graph = built([(START, "a"), (START, "b"), ("a", END), ("b", END)], a=lambda state: os._exit(3), b=log("b"))
    found = graph.compile(carry="messages", workers=1).run({})
    assert (found.status, found.nodes["a"].status, found.state) == ("partial", "error", {"log": ["b"], "total": 0})
