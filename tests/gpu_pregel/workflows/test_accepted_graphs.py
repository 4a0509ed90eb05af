"""What the builder of state graphs accepts."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import pytest

from gpu_pregel.errors import (
    AgentsFailedError,
)
from gpu_pregel.workflows import END, START, Command, NodeContext, Send, StateGraph
from tests.gpu_pregel.workflows.logged_graphs import State, chain, graph, idle, log

# What is accepted.


def test_each_way_to_add_nodes_and_edges() -> None:
    class Callable:
        def __call__(self, state: State) -> dict[str, Any]:
            return {"log": "object"}

    def named(state: State) -> dict[str, Any]:
        return {"log": "named"}

    def with_name(name: str, state: State) -> dict[str, Any]:
        return {"log": name}

    class Owner:
        def method(self, state: State, context: NodeContext) -> dict[str, Any]:
            return {"log": context.node}

    found = StateGraph(State).add_sequence([named, ("other", partial(with_name, "partial"))])
    found.add_node(Callable()).add_node(Owner().method).add_node("builtin", dict)
    found.set_entry_point("named").add_edge("other", "Callable").add_edge("Callable", "method")
    found.add_edge("method", "builtin").set_finish_point("builtin")
    assert list(found.nodes) == ["named", "other", "Callable", "method", "builtin"]


def test_functions_of_all_kinds_run() -> None:
    async def later(state: State) -> dict[str, Any]:
        return {"log": "async"}

    found = StateGraph(State).add_node("a", partial(lambda name, state: {"log": name}, "partial"))
    found.add_node("b", lambda *both: {"log": str(len(both))}).add_node("c", lambda state, context=None: {"log": "c"})
    found.add_node("d", lambda state, context: {"log": context.node})
    for source, target in [(START, "a"), ("a", "b"), ("b", "c"), ("c", "d"), ("d", END)]:
        found.add_edge(source, target)
    assert found.compile().invoke({}) == {"log": ["partial", "1", "c", "d"]}
    found.add_node("e", later).add_edge("c", "e")
    assert found.compile().invoke({}) == {"log": ["partial", "1", "c", "d", "async"]}


@pytest.mark.parametrize(
    "output, expected",
    [
        (None, []),
        ({}, []),
        ({"log": "one"}, ["one"]),
        ({"log": ["one", "two"]}, ["one", "two"]),
        (Command(), []),
        (Command(update={"log": "one"}), ["one"]),
        ([Command(update={"log": "one"}), Command(update={"log": "two"})], ["one", "two"]),
        ([{"log": "one"}, Command(update={"log": "two"})], ["one", "two"]),
        (Command(update={"log": "one"}, goto="b"), ["one", "b"]),
        (Command(goto=["b", END]), ["b"]),
        (Command(goto=[Send("c", "two"), Send("c", "one")]), ["two", "one"]),
        (Command(goto=["b", Send("c", "one")]), ["b", "one"]),
        ([Command(goto="b"), Command(goto=Send("c", "one"))], ["b", "one"]),
    ],
)
def test_outputs_of_nodes(output: Any, expected: list[str]) -> None:
    found = (
        graph("b")
        .add_node("a", lambda state: output, destinations=["b", "c"])
        .add_node("c", lambda given: {"log": given})
    )
    assert found.add_edge(START, "a").compile().invoke({}) == {"log": expected}


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
    with pytest.raises(AgentsFailedError, match=f"node 'a': {message}"):
        found.compile().invoke({})


def fail(state: State) -> str:
    raise LookupError("which?")


REFUSED_ROUTES: dict[str, tuple[Any, Any, str]] = {
    "unknown key": (
        lambda state: "c",
        {"b": "b"},
        "ArgumentError: the router '<lambda>' of node 'a' returned 'c', which",
    ),
    "unknown node": (
        lambda state: "c",
        None,
        "ArgumentError: the router '<lambda>' of node 'a' returned 'c', which is no node of the graph",
    ),
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
    with pytest.raises(AgentsFailedError, match=f"node 'a': {message}") as info:
        found.compile().invoke({})
    if name == "error":
        assert "raised by the router 'fail' of node 'a'" in info.value.result.failed["a"].traceback


@pytest.mark.parametrize("kind", [StopIteration, StopAsyncIteration, KeyError, AssertionError, TimeoutError])
def test_exceptions_of_nodes_are_failures(kind: type[Exception]) -> None:
    def fails(state: State) -> None:
        raise kind("why")

    with pytest.raises(AgentsFailedError, match=f"node 'a': {kind.__name__}: '?why"):
        StateGraph(State).add_node("a", fails).add_edge(START, "a").compile().invoke({})


def test_exceptions_of_ordinary_nodes_beside_coroutine_functions_are_failures() -> None:
    async def later(state: State) -> None:
        """Do nothing."""

    found = StateGraph(State).add_node("a", lambda state: next(iter(()))).add_node("b", later)
    with pytest.raises(AgentsFailedError, match=r"node 'a': RuntimeError: .*StopIteration"):
        found.add_edge(START, "a").add_edge(START, "b").compile().invoke({})


def test_exceptions_of_nodes_with_routers_are_failures() -> None:
    found = StateGraph(State).add_node("a", lambda state: next(iter(()))).add_edge(START, "a")
    found.add_conditional_edges("a", lambda state: END, [END])
    with pytest.raises(AgentsFailedError, match="StopIteration"):
        found.compile().invoke({})


def test_two_nodes_that_write_a_key_without_reducer_are_named() -> None:
    found = graph("c").add_node("a", log("a", x=1)).add_node("b", log("b", x=2))
    found.add_edge(START, "a").add_edge(START, "b").add_edge(START, "c")
    with pytest.raises(
        AgentsFailedError, match="'a' and 'b' wrote key 'x' in the same superstep, and it has no reducer"
    ):
        found.compile().invoke({})
