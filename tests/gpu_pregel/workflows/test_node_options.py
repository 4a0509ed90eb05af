"""Options of nodes, contexts, joins, and the calls of a state graph."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any, NotRequired, TypedDict

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import (
    ArgumentError,
    SuperstepLimitError,
)
from gpu_pregel.workflows import END, START, Command, NodeContext, StateGraph, append


class State(TypedDict):
    log: Annotated[list[str], append]
    x: NotRequired[int]


def idle(state: State) -> None:
    """Do nothing."""


def log(name: str, **more: Any) -> Any:
    return lambda state: {"log": name, **more}


def graph(*nodes: str) -> StateGraph:
    found = StateGraph(State)
    for name in nodes:
        found.add_node(name, log(name))
    return found


def chain(*nodes: str) -> StateGraph:
    found = graph(*nodes).add_edge(START, nodes[0]).add_edge(nodes[-1], END)
    for source, target in pairwise(nodes):
        found.add_edge(source, target)
    return found


# Options of nodes.


def test_the_context_of_a_node() -> None:
    seen: list[Any] = []

    def node(state: State, context: NodeContext) -> None:
        seen.append((context.node, context.superstep, context.attempt, context.config))
        assert isinstance(context.key, str)
        assert 0 <= context.random.random() < 1

    app = chain("a").add_node("b", node).add_edge("a", "b").compile()
    app.invoke({}, {"configurable": {"user": "Ada"}})
    app.invoke({})
    assert [one[0] for one in seen] == ["b", "b"]
    assert [one[2:] for one in seen] == [(1, {"user": "Ada"}), (1, {})]


def test_the_context_of_a_router() -> None:
    found = chain("a").add_node("b", log("b")).add_node("c", log("c"))
    found.add_conditional_edges("a", lambda state, context: context.config["next"], ["b", "c"])
    app = found.compile()
    assert app.invoke({}, {"configurable": {"next": "c"}}) == {"log": ["a", "c"]}


def test_an_error_handler_gets_the_state_and_the_last_error() -> None:
    tried: list[int] = []

    def fails(state: State, context: NodeContext) -> None:
        tried.append(context.attempt)
        raise ConnectionError("gone")

    def handle(state: State, error: Exception) -> Command:
        return Command(update={"log": f"{state['log']} {type(error).__name__}"}, goto="b")

    found = graph("b").add_node(
        "a", fails, error_handler=handle, destinations=["b"], retry=gp.agents.RetryPolicy(attempts=1)
    )
    assert found.add_edge(START, "a").compile().invoke({"log": ["in"]}) == {
        "log": ["in", "['in'] ConnectionError", "b"]
    }
    assert tried == [1]


def test_an_error_that_is_not_tried_again_goes_to_the_handler() -> None:
    tried: list[int] = []

    def fails(state: State, context: NodeContext) -> None:
        tried.append(context.attempt)
        raise gp.errors.AttemptError("the account is closed", retryable=False)

    found = StateGraph(State).add_node("a", fails, error_handler=lambda state, error: {"log": str(error)})
    app = found.add_edge(START, "a").compile(retry=gp.agents.RetryPolicy(attempts=3, wait=0))
    assert app.invoke({}) == {"log": ["the account is closed"]}
    assert tried == [1]


def test_deferred_nodes_run_when_all_others_have_ended() -> None:
    found = graph("a", "b", "c", "d").add_node(
        "last", lambda state: {"log": f"last of {len(state['log'])}"}, defer=True
    )
    found.add_edge(START, "a").add_edge(START, "b").add_edge("b", "c").add_edge("c", "d")
    found.add_edge("a", "last").add_edge("d", "last").add_edge("last", END)
    assert found.compile().invoke({}) == {"log": ["a", "b", "c", "d", "last of 4"]}


def test_joins_wait_for_all_sources_each_time() -> None:
    found = graph("a", "b", "b2").add_node("j", lambda state: {"log": "j"})
    found.add_edge(START, "a").add_edge(START, "b").add_edge("b", "b2").add_edge(["a", "b2"], "j")
    found.add_conditional_edges("j", lambda state: ["a", "b"] if state["log"].count("j") < 2 else END, ["a", "b", END])
    assert found.compile().invoke({}) == {"log": ["a", "b", "b2", "j", "a", "b", "b2", "j"]}


# Calls.


def test_batch() -> None:
    app = chain("a").compile()
    assert app.batch([{"log": [str(number)]} for number in range(5)]) == [{"log": [str(one), "a"]} for one in range(5)]
    assert app.batch([]) == []
    named = (
        StateGraph(State)
        .add_node("a", lambda state, context: {"x": context.config["x"]})
        .add_edge(START, "a")
        .compile()
    )
    configs = [{"configurable": {"x": number}} for number in range(3)]
    assert [one["x"] for one in named.batch([{}] * 3, configs)] == [0, 1, 2]
    assert [one["x"] for one in named.batch([{}] * 2, configs[2])] == [2, 2]
    with pytest.raises(ArgumentError, match="batch got 2 inputs and 3 configs: pass one for each, or one"):
        named.batch([{}] * 2, configs)
    with pytest.raises(ArgumentError, match="max_concurrency"):
        named.batch([{}], max_concurrency=0)


@pytest.mark.parametrize(
    "config, supersteps", [(None, 6), ({"recursion_limit": 3}, 3), ({"recursion_limit": 1}, 1), ({}, 6)]
)
def test_the_limit_of_supersteps(config: Any, supersteps: int) -> None:
    seen: list[int] = []
    found = StateGraph(State).add_node("a", lambda state: seen.append(1)).add_edge(START, "a").add_edge("a", "a")
    with pytest.raises(SuperstepLimitError, match=f"'a' .*max_supersteps={supersteps}.*recursion_limit"):
        found.compile(max_supersteps=6).invoke({}, config)
    assert len(seen) == supersteps


@pytest.mark.parametrize("length, limit", [(1, 1), (3, 3)])
def test_a_limit_that_is_just_reached_is_no_error(length: int, limit: int) -> None:
    nodes = [f"n{number}" for number in range(length)]
    assert chain(*nodes).compile().invoke({}, {"recursion_limit": limit}) == {"log": nodes}


def test_a_command_starts_at_other_nodes() -> None:
    app = chain("a", "b", "c").compile()
    assert app.invoke(Command(update={"log": "in"}, goto="b")) == {"log": ["in", "b", "c"]}


def test_a_graph_that_changes_later_does_not_change_what_was_compiled() -> None:
    found = chain("a")
    app = found.compile()
    found.add_node("b", log("b")).add_edge("a", "b")
    assert app.invoke({}) == {"log": ["a"]}
    assert found.compile().invoke({}) == {"log": ["a", "b"]}
    assert repr(app) == "<CompiledGraph 'graph': 1 nodes>"
    assert app({}) == {"log": ["a"]}
