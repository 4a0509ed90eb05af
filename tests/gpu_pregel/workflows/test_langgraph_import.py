"""``from_langgraph``: what it takes from a builder of LangGraph, and what it refuses."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import AgentsFailedError, ArgumentError, ArgumentTypeError
from gpu_pregel.workflows import Command, from_langgraph
from tests.packages import needs

needs("langgraph", "langgraph")

import langgraph.types as lg  # noqa: E402
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage  # noqa: E402
from langchain_core.runnables import RunnableConfig, RunnableLambda  # noqa: E402
from langgraph.cache.memory import InMemoryCache  # noqa: E402
from langgraph.channels import EphemeralValue, Topic  # noqa: E402
from langgraph.checkpoint.memory import InMemorySaver  # noqa: E402
from langgraph.config import get_stream_writer  # noqa: E402
from langgraph.graph import END, START, MessagesState, StateGraph  # noqa: E402
from langgraph.managed.base import ManagedValue  # noqa: E402
from langgraph.runtime import Runtime  # noqa: E402
from langgraph.store.base import BaseStore  # noqa: E402
from langgraph.store.memory import InMemoryStore  # noqa: E402
from langgraph.types import StreamWriter  # noqa: E402
from pydantic import BaseModel  # noqa: E402

THREAD: dict[str, Any] = {"configurable": {"thread_id": "1"}}


class State(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]
    x: int


class Private(TypedDict, total=False):
    secret: int


def chain(*functions: Any, state: Any = State, **options: Any) -> Any:
    """Return a builder whose nodes run one after the other."""
    return StateGraph(state, **options).add_sequence(functions).set_entry_point(functions[0].__name__)


# What nodes get


class Context(BaseModel):
    name: str


def test_nodes_get_what_they_ask_for() -> None:
    def configured(state: State, config: RunnableConfig) -> Any:
        return {"log": [config["configurable"]["user"], config["metadata"]["langgraph_node"]]}

    def run(state: State, runtime: Runtime[Context]) -> Any:
        return {"log": [runtime.context.name]}

    def remember(state: State, *, store: BaseStore) -> Any:
        return {"log": [store.get(("a",), "key").value]}

    store = InMemoryStore()
    store.put(("a",), "key", {"kept": 1})
    app = from_langgraph(chain(configured, run, remember, context_schema=Context), store=store).compile()
    values = app.invoke({"log": []}, {"configurable": {"user": "Ada", "context": {"name": "Eve"}}})
    assert values == {"log": ["Ada", "configured", "Eve", {"kept": 1}]}


def test_nodes_write_to_the_stream() -> None:
    def passed(state: State, writer: StreamWriter) -> None:
        writer("from the parameter")

    async def asked(state: State) -> None:
        get_stream_writer()({"from": "the context"})

    app = from_langgraph(chain(passed, asked)).compile()
    assert list(app.stream({"x": 1}, stream_mode="custom")) == ["from the parameter", {"from": "the context"}]


def test_a_runnable_is_a_node() -> None:
    add: Any = RunnableLambda(lambda state: {"x": state["x"] + 1})
    builder = StateGraph(State).add_node("add", add | RunnableLambda(lambda update: {**update, "log": ["added"]}))
    app = from_langgraph(builder.set_entry_point("add")).compile()
    assert app.invoke({"x": 1}) == {"x": 2, "log": ["added"]}


# What nodes return


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ({"log": ["a"]}, ["a"]),
        (None, []),
        (lg.Command(update={"log": ["a"]}, goto="b"), ["a", "b"]),
        (lg.Command(update=[("log", ["a"]), ("log", ["c"])], goto=["b"]), ["a", "c", "b"]),
        (lg.Command(goto=[lg.Send("c", {"n": 2}), "b", lg.Send("c", {"n": 1})]), ["b", "c2", "c1"]),
        (lg.Send("c", {"n": 3}), ["c3"]),
        ([lg.Command(update={"log": ["a"]}), {"log": ["d"]}, lg.Command(goto=END)], ["a", "d"]),
    ],
)
def test_what_nodes_return_means_what_it_means_in_langgraph(output: Any, expected: list[str]) -> None:
    builder = StateGraph(State).add_node("a", lambda state: output).add_node("b", lambda state: {"log": ["b"]})
    builder.add_node("c", lambda state: {"log": [f"c{state['n']}"]}).add_edge(START, "a")
    theirs = builder.compile().invoke({"log": []})
    assert theirs["log"] == expected
    assert from_langgraph(builder).compile().invoke({"log": []}) == theirs


def test_a_node_may_have_the_name_of_a_key() -> None:
    builder = StateGraph(State).add_node("x", lambda state: {"x": 3}).add_edge(START, "x")
    theirs = builder.compile().invoke({"log": []})
    assert from_langgraph(builder).compile().invoke({"log": []}) == theirs == {"log": [], "x": 3}


def test_a_router_reads_its_own_state_and_sends() -> None:
    def first(state: State) -> Any:
        return {"secret": 7, "x": 1}

    def route(state: Private) -> Any:
        return [lg.Send("show", state)]

    builder = StateGraph(State).add_node(first).add_node("show", lambda state: {"log": [state]}, input_schema=Private)
    builder.add_edge(START, "first").add_conditional_edges("first", route)
    theirs = builder.compile().invoke({"log": []})
    assert theirs["log"] == [{"secret": 7}]
    assert from_langgraph(builder).compile().invoke({"log": []}) == theirs


def test_routes_by_annotation() -> None:
    def route(state: State) -> Literal["b", "__end__"]:
        return "b" if state["x"] else END

    builder = StateGraph(State).add_node("a", lambda state: None).add_node("b", lambda state: {"log": ["b"]})
    app = from_langgraph(builder.add_edge(START, "a").add_conditional_edges("a", route)).compile()
    assert app.invoke({"x": 1})["log"] == ["b"]
    assert app.invoke({"x": 0})["log"] == []


# Questions


def ask_twice(state: State) -> Any:
    return {"log": [lg.interrupt("first?"), lg.interrupt({"second": "?"})]}


async def ask_twice_on_loop(state: State) -> Any:
    return ask_twice(state)


@pytest.mark.parametrize("ask", [ask_twice, ask_twice_on_loop])
def test_questions_are_answered_in_order(ask: Any) -> None:
    app = from_langgraph(chain(ask)).compile(store=gp.MemoryStore())
    assert app.invoke({"log": []}, THREAD)["__interrupt__"][0].value == "first?"
    assert app.invoke(Command(resume=None), THREAD)["__interrupt__"][0].value == {"second": "?"}
    assert app.invoke(Command(resume="yes"), THREAD) == {"log": [None, "yes"]}


def test_nodes_run_in_worker_processes() -> None:
    def reply(state: MessagesState) -> Any:
        return lg.Command(update={"messages": AIMessage(state["messages"][-1].content.upper())})

    app = from_langgraph(chain(reply, state=MessagesState)).compile(workers=1)
    assert [one.content for one in app.invoke({"messages": [HumanMessage("hi")]})["messages"]] == ["hi", "HI"]


# Messages


def test_messages_of_langchain_are_merged_and_stored() -> None:
    def reply(state: MessagesState) -> Any:
        return {"messages": AIMessage("hello", additional_kwargs={"kept": [1]})}

    def forget(state: MessagesState) -> Any:
        return {"messages": [RemoveMessage(id="1"), AIMessage("bye", id="2")]}

    app = from_langgraph(chain(reply, forget, state=MessagesState)).compile(store=gp.MemoryStore())
    messages = app.invoke({"messages": [HumanMessage("hi", id="1"), AIMessage("?", id="2")]}, THREAD)["messages"]
    assert [(type(one), one.content) for one in messages] == [(AIMessage, "bye"), (AIMessage, "hello")]
    assert messages[1].additional_kwargs == {"kept": [1]}
    assert app.get_state(THREAD).values["messages"] == messages


def test_ids_of_messages_are_the_same_in_every_attempt() -> None:
    seen = []

    def reply(state: MessagesState) -> Any:
        message = AIMessage("hello")
        return {"messages": [message]}

    def read(state: MessagesState) -> Any:
        seen.append(state["messages"][-1].id)
        if len(seen) == 1:
            raise OSError("not yet")

    store = gp.MemoryStore()
    app = from_langgraph(chain(reply, read, state=MessagesState)).compile(store=store)
    with pytest.raises(AgentsFailedError, match="not yet"):
        app.invoke({"messages": []}, THREAD)
    assert app.invoke(None, THREAD)["messages"][0].id == seen[0] == seen[1]
    assert len(seen[0]) == 36


# Policies, defer, subgraphs


def test_policies_are_taken_over() -> None:
    calls: list[str] = []

    def fails(state: State) -> Any:
        calls.append("fails")
        if len(calls) < 3:
            raise ConnectionError("not yet")
        return {"log": ["done"]}

    retry = lg.RetryPolicy(max_attempts=3, initial_interval=0.001, jitter=False)
    builder = StateGraph(State).add_node("fails", fails, retry_policy=retry, cache_policy=lg.CachePolicy(ttl=60))
    app = from_langgraph(builder.set_entry_point("fails")).compile()
    assert app.invoke({"x": 1}) == app.invoke({"x": 1}) == {"x": 1, "log": ["done"]}
    assert len(calls) == 3
    assert builder.compile(cache=InMemoryCache()).invoke({"x": 1})["log"] == ["done"]


@pytest.mark.parametrize(
    ("retry_on", "attempts"),
    [(KeyError, 1), ((KeyError, ValueError), 2), (lambda error: "bad" in str(error), 2), (lg.default_retry_on, 1)],
)
def test_what_is_retried(retry_on: Any, attempts: int) -> None:
    calls = []

    def fails(state: State) -> None:
        calls.append(1)
        raise ValueError("bad")

    retry = lg.RetryPolicy(max_attempts=2, initial_interval=0, retry_on=retry_on)
    app = from_langgraph(StateGraph(State).add_node(fails, retry_policy=retry).set_entry_point("fails")).compile()
    with pytest.raises(AgentsFailedError, match="bad"):
        app.invoke({"x": 1})
    assert len(calls) == attempts


def test_a_compiled_graph_is_a_node() -> None:
    def inner(state: State) -> Any:
        return {"log": [lg.interrupt("inside?")], "x": state["x"] + 1}

    def up(state: State) -> Any:
        return lg.Command(graph=lg.Command.PARENT, update={"log": ["up"]}, goto="after")

    nested = chain(inner, up).compile()
    builder = StateGraph(State).add_node("nested", nested).add_node("after", lambda state: {"log": ["after"]})
    builder.add_edge(START, "nested")
    app = from_langgraph(builder).compile(store=gp.MemoryStore())
    assert app.invoke({"x": 1, "log": []}, THREAD)["__interrupt__"][0].value == "inside?"
    ours = app.invoke(Command(resume="yes"), THREAD)
    theirs = builder.compile(checkpointer=InMemorySaver())
    theirs.invoke({"x": 1, "log": []}, THREAD)
    assert ours == theirs.invoke(lg.Command(resume="yes"), THREAD)


@dataclass
class Data:
    log: Annotated[list[str], operator.add]
    x: int = 3


class Model(BaseModel):
    log: Annotated[list[str], operator.add] = []
    x: int = 3


@pytest.mark.parametrize("state", [Data, Model])
def test_states_are_objects_of_their_classes(state: Any) -> None:
    def show(given: Any) -> Any:
        return {"log": [type(given).__name__], "x": given.x + 1}

    builder = chain(show, state=state)
    assert from_langgraph(builder).compile().invoke({"log": []}) == builder.compile().invoke({"log": []})


# What is refused


class OtherManaged(ManagedValue[int]):
    @staticmethod
    def get(scratchpad: Any) -> int:
        return 3


def test_everything_that_is_not_supported_is_named_at_once() -> None:
    class Odd(TypedDict):
        left: Annotated[int, OtherManaged]
        once: Annotated[int, EphemeralValue]
        topic: Annotated[list[int], Topic]
        x: int

    def stored(state: Odd, store: BaseStore) -> None: ...
    def former(state: Odd, previous: Any) -> None: ...
    async def slow(state: Odd) -> None: ...

    builder = StateGraph(Odd).add_node(stored).add_node(former)
    builder.add_node("handled", lambda state: None, error_handler=lambda state: None)
    builder.add_node("tried", lambda state: None, retry_policy=[lg.RetryPolicy(), lg.RetryPolicy()])
    builder.add_node(slow, timeout=lg.TimeoutPolicy(idle_timeout=3))
    builder.add_node("nested", chain(lambda state: None).compile(checkpointer=InMemorySaver()))
    builder.add_edge(START, "stored")
    with pytest.raises(ArgumentError, match="this graph of LangGraph has what is not supported:") as caught:
        from_langgraph(builder)
    assert [line.partition(":")[0] for line in str(caught.value).splitlines()[1:]] == [
        "- key 'left'",
        "- key 'once'",
        "- key 'topic'",
        "- node 'stored'",
        "- node 'former'",
        "- node 'handled'",
        "- node 'tried'",
        "- node 'slow'",
        "- node 'nested'",
    ]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (chain(ask_twice).compile(), "pass graph.builder"),
        ({"nodes": {}}, "takes a StateGraph of LangGraph, not {'nodes': {}}"),
    ],
)
def test_other_objects_are_refused(given: Any, problem: str) -> None:
    with pytest.raises(ArgumentTypeError, match=problem):
        from_langgraph(given)


def test_a_state_without_keys_is_refused() -> None:
    builder = StateGraph(Annotated[list, operator.add]).add_node("a", lambda state: ["a"]).add_edge(START, "a")
    with pytest.raises(ArgumentError, match="the state: a state must be a TypedDict"):
        from_langgraph(builder)


@pytest.mark.parametrize(
    ("output", "problem"),
    [
        ({"log": lg.Overwrite(["a"])}, "node 'a' returned an Overwrite of 'log', which is not supported"),
        (lg.Send("a", {}, timeout=3), r"returned a Send with a timeout: pass timeout= to add_node\('a', ...\)"),
        ({"unknown": 1}, "node 'a' writes 'unknown', which is no key of the state: log, x"),
    ],
)
def test_what_nodes_may_not_return_is_named_when_they_do(output: Any, problem: str) -> None:
    app = from_langgraph(StateGraph(State).add_node("a", lambda state: output).add_edge(START, "a")).compile()
    with pytest.raises(AgentsFailedError, match=problem):
        app.invoke({"x": 1})
