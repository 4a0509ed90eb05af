"""The builder of state graphs: what it accepts and refuses, states of all kinds, and the options of nodes and calls."""

from __future__ import annotations

import dataclasses
import operator
from functools import partial
from itertools import pairwise
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import pytest
from pydantic import BaseModel

import gpu_pregel as gp
from gpu_pregel.errors import (
    AgentsFailedError,
    ArgumentError,
    ArgumentTypeError,
    CodecError,
    GpuPregelError,
    SuperstepLimitError,
)
from gpu_pregel.workflows import END, START, Command, NodeContext, Send, StateGraph, append, increment, last, merge


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
    "start": ((START, idle), {}, ArgumentError, "'__start__' cannot be the name of a node"),
    "end": ((END, idle), {}, ArgumentError, "'__end__' cannot be the name of a node"),
    "no name": (("", idle), {}, ArgumentError, "'' cannot be the name of a node"),
    "key": (("log", idle), {}, ArgumentError, "'log' is a key of the state"),
    "colon": (("a:b", idle), {}, ArgumentError, "the name of a node has no colon, unlike 'a:b'"),
    "no function": (("b",), {}, ArgumentTypeError, r"node 'b' must be a function of \(state\), not None"),
    "number": ((5,), {}, ArgumentTypeError, r"node 'int' must be a function of \(state\), not 5"),
    "no parameter": (("b", lambda: None), {}, ArgumentTypeError, "node 'b' must be a function of .* not of 0"),
    "three parameters": (("b", lambda x, y, z: None), {}, ArgumentTypeError, "node 'b' must be a function .* not of 3"),
    "retry": (("b", idle), {"retry": 3}, ArgumentTypeError, "retry of node 'b' must be a RetryPolicy, not 3"),
    "timeout": (("b", idle), {"timeout": -1}, ArgumentError, "timeout of node 'b'"),
    "timeout text": (("b", idle), {"timeout": "1"}, ArgumentTypeError, "timeout of node 'b'"),
    "handler": (("b", idle), {"error_handler": 1}, ArgumentTypeError, "error_handler of node 'b' must be a function"),
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


def test_two_nodes_that_write_a_key_without_reducer_are_named() -> None:
    found = graph("c").add_node("a", log("a", x=1)).add_node("b", log("b", x=2))
    found.add_edge(START, "a").add_edge(START, "b").add_edge(START, "c")
    with pytest.raises(
        AgentsFailedError, match="'a' and 'b' wrote key 'x' in the same superstep, and it has no reducer"
    ):
        found.compile().invoke({})


# States of all kinds.


@dataclasses.dataclass
class DataState:
    log: Annotated[list[str], append] = dataclasses.field(default_factory=list)
    x: int = 5


class ModelState(BaseModel):
    log: Annotated[list[str], append] = []
    x: int = 5


class Wide(TypedDict, total=False):
    log: Annotated[list[str], append]
    numbers: Annotated[int, increment]
    table: Annotated[dict[str, int], merge]
    latest: Annotated[str | None, last]
    plain: tuple[int, ...]
    both: Annotated[set[str], operator.or_]


@pytest.mark.parametrize("cls", [DataState, ModelState])
def test_states_that_are_objects(cls: Any) -> None:
    def first(state: Any) -> Any:
        assert type(state) is cls
        return cls(log=[f"x is {state.x}"], x=6)

    def second(state: Any) -> dict[str, Any]:
        return {"log": [f"x is {state.x}"]}

    found = StateGraph(cls).add_sequence([first, second]).add_edge(START, "first")
    assert found.compile().invoke({}) == {"log": ["x is 5", "x is 6"], "x": 6}
    assert found.compile().invoke(cls(x=7)) == {"log": ["x is 7", "x is 6"], "x": 6}


def test_a_model_checks_its_input() -> None:
    found = StateGraph(ModelState).add_node("a", lambda state: None).add_edge(START, "a")
    with pytest.raises(AgentsFailedError, match="vertex 'a': ValidationError"):
        found.compile().invoke({"x": "no number"})


def test_keys_with_and_without_reducers_and_values() -> None:
    seen: list[dict[str, Any]] = []

    def first(state: Wide) -> dict[str, Any]:
        seen.append(dict(state))
        return {"log": "a", "numbers": 2, "table": {"a": 1}, "latest": "one", "plain": (1, 2), "both": {"x"}}

    def second(state: Wide) -> dict[str, Any]:
        seen.append(dict(state))
        return {"numbers": 3, "table": {"b": 2}, "latest": "two", "both": {"y"}}

    app = StateGraph(Wide).add_sequence([first, second]).add_edge(START, "first").compile()
    assert app.invoke({"log": ["in"]}) == {
        "log": ["in", "a"],
        "numbers": 5,
        "table": {"a": 1, "b": 2},
        "latest": "two",
        "plain": (1, 2),
        "both": {"x", "y"},
    }
    assert seen[0] == {"log": ["in"], "numbers": 0, "table": {}, "both": set()}
    assert seen[1]["plain"] == (1, 2)


def test_a_state_that_is_local_to_a_function() -> None:
    def reduce(old: int, new: int) -> int:
        return 10 * old + new

    class Local(TypedDict):
        number: Annotated[int, reduce]

    class Private(TypedDict):
        secret: str

    def second(state: Private) -> dict[str, Any]:
        return {"number": len(state["secret"])}

    found = StateGraph(Local).add_node("first", lambda state: {"number": 1, "secret": "abc"}).add_node(second)
    assert found.add_edge(START, "first").add_edge("first", "second").compile().invoke({"number": 2}) == {"number": 213}


class Question(TypedDict):
    text: str


class Answer(TypedDict):
    x: int


class Secret(TypedDict):
    secret: str


def test_input_output_and_private_schemas() -> None:
    def think(state: Question) -> dict[str, Any]:
        assert state == {"text": "how many?"}
        return {"secret": "hidden"}

    def answer(state: Secret) -> dict[str, Any]:
        assert state == {"secret": "hidden"}
        return {"x": len(state["secret"])}

    found = StateGraph(State, input=Question, output=Answer).add_node(think).add_node("answer", answer)
    app = found.add_edge(START, "think").add_edge("think", "answer").compile()
    assert app.invoke({"text": "how many?"}) == {"x": 6}
    with pytest.raises(ArgumentError, match="the input writes 'x', which is no key of the state: text"):
        app.invoke({"x": 1})


def test_the_input_schema_of_a_node_can_be_passed() -> None:
    seen: list[Any] = []
    found = StateGraph(State).add_node("a", seen.append, input=DataState).add_edge(START, "a")
    found.compile().invoke({"log": ["in"]})
    assert seen == [DataState(["in"])]


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
