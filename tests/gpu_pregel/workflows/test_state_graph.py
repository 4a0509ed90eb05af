"""The builder of state graphs: ways to add nodes and edges, states of all kinds, what nodes may return."""

from __future__ import annotations

import dataclasses
import operator
from functools import partial
from itertools import pairwise
from typing import Annotated, Any, NotRequired, TypedDict

import pytest
from pydantic import BaseModel

from gpu_pregel.errors import (
    AgentsFailedError,
    ArgumentError,
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
