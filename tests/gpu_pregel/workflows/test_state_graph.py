"""The builder of state graphs: what it accepts and refuses, states of all kinds, and the options of nodes and calls."""

from __future__ import annotations

import operator
from typing import Annotated, Any, Literal, TypedDict

import pytest

from gpu_pregel.errors import (
    ArgumentError,
    ArgumentTypeError,
    GpuPregelError,
)
from gpu_pregel.workflows import END, START, Command, StateGraph
from tests.gpu_pregel.workflows.logged_graphs import State, chain, graph, idle

# What is refused.


class Empty(TypedDict):
    pass


class Other(TypedDict):
    log: Annotated[list[str], operator.add]


class Unary(TypedDict):
    x: Annotated[int, lambda old: old]


class Unresolved(TypedDict):
    x: "Missing"  # type: ignore[name-defined]  # noqa: F821, UP037


REFUSED_STATES: dict[str, tuple[Any, type[GpuPregelError], str]] = {
    "no class": (lambda: StateGraph(3), ArgumentTypeError, "a state must be a TypedDict, a dataclass or a pydantic"),  # type: ignore[arg-type]
    "dict": (lambda: StateGraph(dict), ArgumentTypeError, "a state must be a TypedDict"),
    "no fields": (lambda: StateGraph(Empty), ArgumentError, "Empty has no fields: annotate"),
    "reducer of one argument": (
        lambda: StateGraph(Unary),
        ArgumentTypeError,
        r"reducer of Unary.x must be a function of",
    ),
    "unknown type": (lambda: StateGraph(Unresolved), ArgumentError, "annotations of Unresolved cannot be resolved"),
    "two reducers": (
        lambda: StateGraph(State, input=Other),
        ArgumentError,
        "'log' has two reducers, one of them in Other",
    ),
    "input": (lambda: StateGraph(State, input=int), ArgumentTypeError, "a state must be a TypedDict"),
}


@pytest.mark.parametrize("name", REFUSED_STATES)
def test_refused_states(name: str) -> None:
    build, kind, message = REFUSED_STATES[name]
    with pytest.raises(kind, match=message):
        build()


REFUSED_NODES: dict[str, tuple[tuple[Any, ...], dict[str, Any], type[GpuPregelError], str]] = {
    "same name": (("a", idle), {}, ArgumentError, "there is a node 'a' already"),
    "end": ((END, idle), {}, ArgumentError, "'__end__' cannot be the name of a node"),
    "no name": (("", idle), {}, ArgumentError, "'' cannot be the name of a node"),
    "colon": (("a:b", idle), {}, ArgumentError, "the name of a node has no colon, unlike 'a:b'"),
    "no function": (("b",), {}, ArgumentTypeError, r"node 'b' must be a function of \(state\), not None"),
    "number": ((5,), {}, ArgumentTypeError, r"node 'int' must be a function of \(state\), not 5"),
    "no parameter": (("b", lambda: None), {}, ArgumentTypeError, "node 'b' must be a function of .* not of 0"),
    "three parameters": (("b", lambda x, y, z: None), {}, ArgumentTypeError, "node 'b' must be a function .* not of 3"),
    "retry": (("b", idle), {"retry": 3}, ArgumentTypeError, "retry of node 'b' must be a RetryPolicy, not 3"),
    "timeout": (("b", idle), {"timeout": -1}, ArgumentError, "timeout of node 'b'"),
    "timeout text": (("b", idle), {"timeout": "1"}, ArgumentTypeError, "timeout of node 'b'"),
    "handler": (("b", idle), {"error_handler": 1}, ArgumentTypeError, "error_handler of node 'b' must be a function"),
    "handler of one argument": (
        ("b", idle),
        {"error_handler": lambda state: None},
        ArgumentTypeError,
        r"error_handler of node 'b' must be a function of \(state, error\)",
    ),
    "graph that is not compiled": (("b", graph("c")), {}, ArgumentTypeError, "must be a function .*; compile it$"),
    "LangGraph's config": (
        ("b", lambda state, config: None),
        {},
        ArgumentTypeError,
        r"node 'b' .* cannot be given 'config'; context.config has the caller's config\[\"configurable\"\]",
    ),
    "LangGraph's runtime": (("b", lambda state, runtime: None), {}, ArgumentTypeError, "cannot be given 'runtime'"),
    "keyword": (("b", lambda state, *, key: None), {}, ArgumentTypeError, "node 'b' .* cannot be given 'key'$"),
    "defer": (("b", idle), {"defer": 1}, ArgumentTypeError, "defer must be True or False, not 1"),
    "destinations": (("b", idle), {"destinations": "a"}, ArgumentTypeError, "destinations of node 'b' .* not a string"),
    "input": (("b", idle), {"input": int}, ArgumentTypeError, "a state must be a TypedDict"),
    "metadata": (("b", idle), {"metadata": 3}, ArgumentTypeError, "metadata of node 'b' must be a mapping, not 3"),
}


@pytest.mark.parametrize("name", REFUSED_NODES)
def test_refused_nodes(name: str) -> None:
    arguments, options, kind, message = REFUSED_NODES[name]
    found = graph("a")
    with pytest.raises(kind, match=message):
        found.add_node(*arguments, **options)
    assert list(found.nodes) == ["a"]


REFUSED_EDGES: dict[str, tuple[Any, type[GpuPregelError], str]] = {
    "target of another type": (lambda g: g.add_edge("a", 3), ArgumentTypeError, "target of an edge must be the name"),
    "targets": (lambda g: g.add_edge("a", ["b"]), ArgumentTypeError, "target of an edge must be the name of a node"),
    "source of another type": (lambda g: g.add_edge(3, "b"), ArgumentTypeError, "source of an edge must be the name"),
    "to the start": (lambda g: g.add_edge("a", START), ArgumentError, "there can be no edge to the start"),
    "from the end": (lambda g: g.add_edge(END, "a"), ArgumentError, "there can be no edge from the end"),
    "empty join": (lambda g: g.add_edge([], "a"), ArgumentError, "a join needs the names of the nodes to wait for"),
    "join of the start": (lambda g: g.add_edge(["a", START], "b"), ArgumentError, "a join needs the names"),
    "join of numbers": (lambda g: g.add_edge([1], "b"), ArgumentError, "a join needs the names"),
    "router": (lambda g: g.add_conditional_edges("a", "b"), ArgumentTypeError, "router of node 'a' must be a function"),
    "router of nothing": (
        lambda g: g.add_conditional_edges("a", lambda: "b"),
        ArgumentTypeError,
        "router '<lambda>' must be a function of .* not of 0",
    ),
    "same router": (
        lambda g: g.add_conditional_edges("a", idle).add_conditional_edges("a", idle),
        ArgumentError,
        "node 'a' has a router 'idle' already",
    ),
    "routes of another type": (
        lambda g: g.add_conditional_edges("a", idle, "ab"),
        ArgumentTypeError,
        "routes of node 'a' must be a mapping to names, or a sequence of names, not 'ab'",
    ),
    "route to no name": (
        lambda g: g.add_conditional_edges("a", idle, {"x": ["a"]}),
        ArgumentTypeError,
        r"routes of node 'a' must lead to names of nodes, not to \['a'\]",
    ),
    "empty sequence": (lambda g: g.add_sequence([]), ArgumentError, "a sequence needs at least one node"),
}


@pytest.mark.parametrize("name", REFUSED_EDGES)
def test_refused_edges(name: str) -> None:
    build, kind, message = REFUSED_EDGES[name]
    with pytest.raises(kind, match=message):
        build(graph("a", "b"))


def literal(state: State) -> Literal["a", "nowhere"]:
    return "a"


def commanding(state: State) -> Command[Literal["nowhere"]]:
    return Command(goto="nowhere")


REFUSED_GRAPHS: dict[str, tuple[Any, str]] = {
    "no entry": (lambda: graph("a"), "the graph has no entry: add an edge from START"),
    "no nodes": (lambda: graph(), "the graph has no entry"),
    "unknown target": (
        lambda: chain("a").add_edge("a", "nowhere"),
        "an edge leads from 'a' to 'nowhere', which is no node: 'a'",
    ),
    "unknown source": (lambda: chain("a").add_edge("b", "a"), "an edge leads from 'b', which is no node: 'a'"),
    "unknown source of a join": (lambda: chain("a", "b").add_edge(["a", "c"], "b"), "leads from 'c', which is no node"),
    "unknown target of a join": (lambda: chain("a").add_edge(["a"], "c"), "leads from 'a' to 'c', which is no node"),
    "unknown entry": (lambda: graph("a").set_entry_point("b"), "leads from '__start__' to 'b', which is no node"),
    "unknown source of routes": (
        lambda: chain("a").add_conditional_edges("b", lambda state: "a"),
        "conditional edges lead from 'b', which is no node: 'a'",
    ),
    "routes from the end": (
        lambda: chain("a").add_conditional_edges(END, lambda state: "a"),
        "conditional edges lead from '__end__', which is no node",
    ),
    "unknown route": (
        lambda: chain("a").add_conditional_edges("a", idle, {1: "b"}),
        "router 'idle' of node 'a' leads for 1 to 'b', which is no node: 'a'",
    ),
    "route to the start": (
        lambda: chain("a").add_conditional_edges("a", idle, {1: START}),
        "leads for 1 to '__start__', which is no node",
    ),
    "unknown route in a list": (
        lambda: chain("a").add_conditional_edges("a", idle, ["b"]),
        "leads for 'b' to 'b', which is no node",
    ),
    "unknown route in an annotation": (
        lambda: chain("a").add_conditional_edges("a", literal),
        "router 'literal' of node 'a' leads for 'nowhere' to 'nowhere', which is no node",
    ),
    "unknown destination": (
        lambda: graph().add_node("a", idle, destinations=["b"]).add_edge(START, "a"),
        "node 'a' has the destination 'b', which is no node: 'a'",
    ),
    "unknown destination in an annotation": (
        lambda: graph().add_node("a", commanding).add_edge(START, "a"),
        "node 'a' has the destination 'nowhere', which is no node",
    ),
    "unreachable": (lambda: chain("a").add_node("b", idle), "nothing leads to 'b': add an edge, a route"),
    "unreachable loop": (
        lambda: chain("a").add_node("b", idle).add_node("c", idle).add_edge("b", "c").add_edge("c", "b"),
        "nothing leads to 'b', 'c'",
    ),
    "unreachable for routes": (
        lambda: chain("a").add_node("b", idle).add_conditional_edges("a", lambda state: "x", {"x": END}),
        "nothing leads to 'b'",
    ),
    "unreachable for annotations": (
        lambda: chain("a").add_node("b", idle).add_conditional_edges("a", lambda_to_a),
        "nothing leads to 'b'",
    ),
}


def lambda_to_a(state: State) -> Literal["a"] | list[Literal["a", "__end__"]]:
    return "a"


@pytest.mark.parametrize("name", REFUSED_GRAPHS)
def test_refused_graphs(name: str) -> None:
    build, message = REFUSED_GRAPHS[name]
    with pytest.raises(ArgumentError, match=message):
        build().compile()


REFUSED_OPTIONS: dict[str, tuple[dict[str, Any], type[GpuPregelError], str]] = {
    "store": ({"store": "runs.db"}, ArgumentTypeError, "store must be a gp.SQLiteStore or another store"),
    "workers": ({"workers": -1}, ArgumentError, "workers"),
    "max_supersteps": ({"max_supersteps": 0}, ArgumentError, "max_supersteps"),
    "retry": ({"retry": 3}, ArgumentTypeError, "retry must be a RetryPolicy, not 3"),
    "durability": ({"durability": "none"}, ArgumentError, "durability must be 'machine' or 'process'|durability"),
    "name of a breakpoint": (
        {"interrupt_before": ["b"]},
        ArgumentError,
        "interrupt_before names 'b', which is no node: 'a'",
    ),
    "text as breakpoints": (
        {"interrupt_after": "a"},
        ArgumentTypeError,
        r"interrupt_after must be a sequence of names or '\*'",
    ),
    "unknown": ({"checkpointer": 1}, TypeError, "checkpointer"),  # type: ignore[dict-item]
}


@pytest.mark.parametrize("name", REFUSED_OPTIONS)
def test_refused_options(name: str) -> None:
    options, kind, message = REFUSED_OPTIONS[name]
    with pytest.raises(kind, match=message):
        chain("a").compile(**options)
