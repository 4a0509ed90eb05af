"""What runs of a state graph refuse: outputs of nodes, results of routers, exceptions, calls."""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from typing import Annotated, Any, NotRequired, TypedDict

import pytest

from gpu_pregel.errors import (
    AgentsFailedError,
    ArgumentError,
    ArgumentTypeError,
    CodecError,
    GpuPregelError,
)
from gpu_pregel.workflows import END, START, Command, Send, StateGraph, append


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


@dataclasses.dataclass
class Point:
    north: int


REFUSED_OUTPUTS: dict[str, tuple[Any, str]] = {
    "number": (
        3,
        "ArgumentTypeError: node 'a' must give a dict of updates, a state, a Command or None, not 3 of type int",
    ),
    "unknown key": ({"y": 1}, "ArgumentError: node 'a' writes 'y', which is no key of the state: log, x"),
    "unknown key of a command": (Command(update={"y": 1}), "ArgumentError: node 'a' writes 'y', which is no key"),
    "unknown node": (Command(goto="z"), "ArgumentError: node 'a' goes to 'z', which is no node of the graph: 'b', 'a'"),
    "unknown node of Send": (Command(goto=Send("z", 1)), "ArgumentError: node 'a' goes to 'z', which is no node"),
    "the start": (Command(goto=START), "ArgumentError: node 'a' goes to '__start__', which is no node"),
    "no node": (Command(goto=[3]), "ArgumentTypeError: node 'a' goes to 3: goto takes names"),  # type: ignore[list-item]
    "Send": ([Send("b", 1)], r"ArgumentTypeError: node 'a' returned a Send: return Command\(goto="),
    "Send alone": (Send("b", 1), r"ArgumentTypeError: node 'a' returned a Send: return Command\(goto="),
    "no data": ({"x": object()}, "CodecError: .*object"),
    "set of lists": ({"log": [lambda: 1]}, "CodecError: .*function"),
    "another object": (Point(1), "ArgumentError: node 'a' gave a Point, which has no key of the state: log, x"),
    "parent": (Command(graph=Command.PARENT), "ArgumentError: node 'a' returned a command to the parent graph, but"),
}


@pytest.mark.parametrize("name", REFUSED_OUTPUTS)
def test_refused_outputs_of_nodes(name: str) -> None:
    output, message = REFUSED_OUTPUTS[name]
    found = graph("b").add_node("a", lambda state: output, destinations=["b"]).add_edge(START, "a")
    with pytest.raises(AgentsFailedError, match=f"vertex 'a': {message}"):
        found.compile().invoke({})


def fail(state: State) -> str:
    raise LookupError("which?")


REFUSED_ROUTES: dict[str, tuple[Any, Any, str]] = {
    "unknown key": (
        lambda state: "c",
        {"b": "b"},
        "ArgumentError: the router '<lambda>' of node 'a' returned 'c', which",
    ),
    "unknown node": (lambda state: "c", None, "ArgumentError: node 'a' goes to 'c', which is no node of the graph"),
    "none": (
        lambda state: None,
        None,
        "ArgumentTypeError: the router '<lambda>' of node 'a' returned None: return names",
    ),
    "number": (
        lambda state: [3],
        None,
        "ArgumentTypeError: the router '<lambda>' of node 'a' returned 3: return names",
    ),
    "unhashable": (
        lambda state: {},
        {"b": "b"},
        r"ArgumentError: the router '<lambda>' of node 'a' returned {}, which",
    ),
    "error": (fail, ["b"], "LookupError: which\\?"),
}


@pytest.mark.parametrize("name", REFUSED_ROUTES)
def test_refused_results_of_routers(name: str) -> None:
    router, routes, message = REFUSED_ROUTES[name]
    found = chain("a").add_node("b", idle).add_conditional_edges("a", router, routes)
    with pytest.raises(AgentsFailedError, match=f"vertex 'a': {message}") as info:
        found.compile().invoke({})
    if name == "error":
        assert "raised by the router 'fail' of node 'a'" in info.value.result.failed["a"].traceback


@pytest.mark.parametrize("kind", [StopIteration, StopAsyncIteration, KeyError, AssertionError, TimeoutError])
def test_exceptions_of_nodes_are_failures(kind: type[Exception]) -> None:
    def fails(state: State) -> None:
        raise kind("why")

    with pytest.raises(AgentsFailedError, match=f"vertex 'a': {kind.__name__}: '?why"):
        StateGraph(State).add_node("a", fails).add_edge(START, "a").compile().invoke({})


def test_exceptions_of_nodes_with_routers_are_failures() -> None:
    found = StateGraph(State).add_node("a", lambda state: next(iter(()))).add_edge(START, "a")
    found.add_conditional_edges("a", lambda state: END, [END])
    with pytest.raises(AgentsFailedError, match="StopIteration"):
        found.compile().invoke({})


def test_exceptions_of_ordinary_nodes_beside_coroutine_functions_are_failures() -> None:
    async def later(state: State) -> None:
        """Do nothing."""

    found = StateGraph(State).add_node("a", lambda state: next(iter(()))).add_node("b", later)
    with pytest.raises(AgentsFailedError, match=r"vertex 'a': RuntimeError: .*StopIteration"):
        found.add_edge(START, "a").add_edge(START, "b").compile().invoke({})


def test_two_nodes_that_write_a_key_without_reducer_are_named() -> None:
    found = graph("c").add_node("a", log("a", x=1)).add_node("b", log("b", x=2))
    found.add_edge(START, "a").add_edge(START, "b").add_edge(START, "c")
    with pytest.raises(
        AgentsFailedError, match="'a' and 'b' wrote key 'x' in the same superstep, and it has no reducer"
    ):
        found.compile().invoke({})


REFUSED_CALLS: dict[str, tuple[Any, Any, type[GpuPregelError], str]] = {
    "no input": (None, None, ArgumentError, "there is no run to continue: pass the input"),
    "number": (3, None, ArgumentTypeError, "the input must give a dict of updates"),
    "unknown key": ({"y": 1}, None, ArgumentError, "the input writes 'y', which is no key of the state: log, x"),
    "no data": ({"x": object()}, None, CodecError, "the input: .*object"),
    "resume": (Command(resume=1), None, ArgumentError, "there is no run to continue"),
    "resume and goto": (Command(resume=1, goto="a"), None, ArgumentError, "answers a question"),
    "parent": (Command(graph=Command.PARENT, goto="a"), None, ArgumentError, "can only be returned by a node"),
    "goto": (Command(goto="z"), None, ArgumentError, "goto names 'z', which is no node: 'a'"),
    "goto of Send": (Command(goto=[Send("z", 1)]), None, ArgumentError, "goto names 'z', which is no node: 'a'"),
    "config": ({}, "thread", ArgumentTypeError, "config must be a dict"),
    "configurable": ({}, {"configurable": 3}, ArgumentTypeError, r'config\["configurable"\] must be a dict, not 3'),
    "recursion_limit": ({}, {"recursion_limit": 0}, ArgumentError, "recursion_limit"),
    "recursion_limit text": ({}, {"recursion_limit": "3"}, ArgumentTypeError, "recursion_limit"),
}


@pytest.mark.parametrize("name", REFUSED_CALLS)
def test_refused_calls(name: str) -> None:
    given, config, kind, message = REFUSED_CALLS[name]
    ran: list[Any] = []
    found = StateGraph(State).add_node("a", ran.append).add_edge(START, "a")
    with pytest.raises(kind, match=message):
        found.compile().invoke(given, config)
    assert ran == []
