"""State classes of all kinds, options of nodes, and calls of small graphs."""

from __future__ import annotations

import dataclasses
import operator
from typing import Annotated, Any, Self, TypedDict

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import (
    AgentError,
    AgentsFailedError,
    ArgumentError,
    ArgumentTypeError,
    CodecError,
    GpuPregelError,
    SuperstepLimitError,
)
from gpu_pregel.workflows import END, START, Command, NodeContext, Send, StateGraph, append, increment, last, merge
from tests.gpu_pregel.workflows.logged_graphs import State, chain, graph, log
from tests.packages import needs

needs("pydantic", "test")

from pydantic import BaseModel, Field, model_validator  # noqa: E402

# States of all kinds.


@dataclasses.dataclass
class DataState:
    log: Annotated[list[str], append] = dataclasses.field(default_factory=list)
    x: int = 5


class Hidden:
    """A type that pydantic does not know."""


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


def test_a_model_checks_what_a_node_gets() -> None:
    found = StateGraph(ModelState).add_node("a", lambda state: {"x": "no number"}).add_node("b", lambda state: None)
    with pytest.raises(AgentsFailedError, match="node 'b': ValidationError"):
        found.add_edge(START, "a").add_edge("a", "b").compile().invoke({})


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


@pytest.mark.parametrize("carry", ["shared", "messages"])
def test_a_node_may_have_the_name_of_a_key(carry: Any) -> None:
    found = StateGraph(State).add_node("log", log("a")).add_node("x", lambda state: {"x": 3})
    app = found.add_edge(START, "log").add_edge("log", "x").add_edge("x", END).compile(carry=carry)
    assert app.invoke({}) == {"log": ["a"], "x": 3}


def fail(old: Any, new: Any) -> Any:
    raise ZeroDivisionError("no reducer")


class Failing(TypedDict):
    total: Annotated[int, fail]


@pytest.mark.parametrize("carry", ["shared", "messages"])
def test_a_reducer_that_fails_for_the_input_is_named(carry: Any) -> None:
    app = StateGraph(Failing).add_node("a", lambda state: None).add_edge(START, "a").add_edge("a", END)
    with pytest.raises(AgentError, match=r"the input: the reducer of key 'total' failed: ZeroDivisionError: no red"):
        app.compile(carry=carry).invoke({"total": 1})


class Bounded(BaseModel, frozen=True, arbitrary_types_allowed=True):
    count: int = Field(default=0, ge=0)
    names: Annotated[list[str], append] = []
    other: Hidden = Hidden()
    required: str

    @model_validator(mode="after")
    def check(self) -> Self:
        assert self.required != "never", "a validator of the whole model"
        return self


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"count": "many"}, "the input gives key 'count' 'many': Input should be a valid integer"),
        ({"count": -1, "required": "a"}, "the input gives key 'count' -1: Input should be greater than or equal to 0"),
        ({"other": 3}, "the input gives key 'other' 3: Input should be an instance of Hidden"),
    ],
)
def test_an_input_that_a_model_does_not_take_is_refused_before_any_work(given: Any, problem: str) -> None:
    store = gp.MemoryStore()
    app = StateGraph(Bounded).add_node("a", lambda state: None).add_edge(START, "a").compile(store=store)
    with pytest.raises(ArgumentError, match=problem):
        app.invoke(given, {"configurable": {"thread_id": "t"}})
    assert store.runs() == []


def test_an_input_may_be_of_other_types_that_a_model_converts_or_a_reducer_takes() -> None:
    seen: list[Any] = []
    app = StateGraph(Bounded).add_node("a", seen.append).add_edge(START, "a").compile()
    app.invoke({"count": "7", "names": "Ada", "required": "x"})
    assert (seen[0].count, seen[0].names) == (7, ["Ada"])


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
