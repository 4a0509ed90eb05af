"""Graphs of LangGraph over LangGraphSaver, with the states, histories and resumes of LangGraph's SqliteSaver."""

from __future__ import annotations

import asyncio
import itertools
import operator
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any, TypedDict

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import CodecError
from gpu_pregel.host.stores.store import Store
from tests.packages import needs
from tests.stores import Open

needs("langgraph.checkpoint.conformance", "test")

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage  # noqa: E402
from langgraph.channels.delta import DeltaChannel  # noqa: E402
from langgraph.checkpoint.sqlite import SqliteSaver  # noqa: E402
from langgraph.func import entrypoint, task  # noqa: E402
from langgraph.graph import END, START, StateGraph  # noqa: E402
from langgraph.graph.message import add_messages  # noqa: E402
from langgraph.types import Command, Send, interrupt  # noqa: E402

from gpu_pregel.workflows import LangGraphSaver  # noqa: E402

# By default LangGraph saves in the background, and then a checkpoint may contain what a join has received after it.
SYNC: Any = {"durability": "sync"}
THREAD: Any = {"configurable": {"thread_id": "thread"}, "recursion_limit": 100}


class State(TypedDict, total=False):
    messages: Annotated[list[Any], add_messages]
    log: Annotated[list[Any], operator.add]
    tags: set[Any]
    answer: Any


def node(name: str) -> Callable[[Any], Any]:
    return lambda state: {"log": [(name, len(state.get("log", [])))]}


def asking(*names: str) -> Callable[[Any], Any]:
    """A node that interrupts once for each name."""

    def ask(state: State) -> State:
        return {"log": [{name: interrupt({"question": name, "seen": (1, {2})}) for name in names}]}

    return ask


def chat(saver: Any) -> Any:
    """A loop of a model and a tool."""

    def model(state: State) -> State:
        count = len(state["messages"])
        call = [{"name": "look", "args": {"at": (count,)}, "id": f"call {count}"}]
        message = AIMessage(f"step {count}", id=f"m{count}", tool_calls=call if count % 5 else [])
        return {"messages": [message], "tags": {count, "seen"}}

    def tool(state: State) -> State:
        last = state["messages"][-1]
        when = datetime(2026, 1, 1, tzinfo=UTC)
        return {
            "messages": [ToolMessage("found", id=last.id + "t", tool_call_id=last.tool_calls[0]["id"], artifact=when)]
        }

    builder = StateGraph(State).add_node("model", model).add_node("tool", tool).add_edge(START, "model")
    builder.add_conditional_edges("model", lambda state: "tool" if state["messages"][-1].tool_calls else END)
    return builder.add_edge("tool", "model").compile(checkpointer=saver)


def fan_out(saver: Any) -> Any:
    builder = StateGraph(State).add_node("split", node("split")).add_node("work", node("work"))
    builder.add_node("join", node("join")).add_node("side", node("side"))
    builder.add_edge(START, "split").add_edge(START, "side").add_edge(["work", "side"], "join")
    builder.add_conditional_edges("split", lambda state: [Send("work", {"log": [k]}) for k in range(3)])
    return builder.compile(checkpointer=saver)


def questions(saver: Any) -> Any:
    builder = StateGraph(State).add_node("one", asking("a", "b")).add_node("two", asking("c"))
    builder.add_node("plain", node("plain")).add_node("after", node("after")).add_edge(START, "plain")
    builder.add_edge(START, "one").add_edge(START, "two").add_edge(["one", "two", "plain"], "after")
    return builder.compile(checkpointer=saver)


def nested(saver: Any) -> Any:
    inner = StateGraph(State).add_node("first", node("first")).add_node("ask", asking("inner"))
    inner.add_edge(START, "first").add_edge("first", "ask")
    builder = StateGraph(State).add_node("before", node("before")).add_node("sub", inner.compile())
    builder.add_edge(START, "before").add_edge("before", "sub").add_node("after", node("after"))
    return builder.add_edge("sub", "after").compile(checkpointer=saver)


def concatenate(state: list[Any], writes: list[list[Any]]) -> list[Any]:
    return list(itertools.chain(state, *writes))


class DeltaState(TypedDict):
    items: Annotated[list[Any], DeltaChannel(concatenate, snapshot_frequency=4)]


def deltas(saver: Any) -> Any:
    builder = StateGraph(DeltaState)
    builder.add_node("add", lambda state: {"items": [len(state["items"])]}).add_edge(START, "add")
    builder.add_conditional_edges("add", lambda state: END if len(state["items"]) > 10 else "add")
    return builder.compile(checkpointer=saver)


def seen(graph: Any) -> list[Any]:
    """Return the history of a thread, with the parents by their places in it instead of by random ids."""
    history = list(graph.get_state_history(THREAD))
    numbers = {state.config["configurable"]["checkpoint_id"]: number for number, state in enumerate(history)}
    assert graph.get_state(THREAD).config == history[0].config
    return [
        (
            state.values,
            state.next,
            {key: state.metadata[key] for key in ("source", "step", "parents")},
            [(task.name, task.error, [one.value for one in task.interrupts], task.result) for task in state.tasks],
            state.parent_config and numbers[state.parent_config["configurable"]["checkpoint_id"]],
            [one.value for one in state.interrupts],
        )
        for state in history
    ]


def listed(x: Any) -> Any:
    """Return data as SqliteSaver returns them, where tuples become lists."""
    if isinstance(x, (list, tuple)):
        return [listed(item) for item in x]
    if isinstance(x, dict):
        return {key: listed(value) for key, value in x.items()}
    return x.model_copy(update={"tool_calls": listed(x.tool_calls)}) if isinstance(x, AIMessage) else x


def resume_all(graph: Any) -> None:
    """Answer interrupts until there are none."""
    for number in range(9):
        waiting = graph.get_state(THREAD).interrupts
        if not waiting:
            return
        graph.invoke(Command(resume={one.id: (number, one.value["question"]) for one in waiting}), THREAD, **SYNC)
    pytest.fail("the graph keeps asking")


def run_chat(graph: Any) -> None:
    for number in range(4):
        graph.invoke({"messages": [HumanMessage(f"turn {number}", id=f"h{number}", extra=number)]}, THREAD, **SYNC)


def run_and_answer(graph: Any) -> None:
    graph.invoke({"log": ["input"]}, THREAD, **SYNC)
    resume_all(graph)


def run_and_fork(graph: Any) -> None:
    """Change the state in the middle, fork an old state, and go on from it."""
    graph.invoke({"log": ["input"]}, THREAD, interrupt_before=["join"], **SYNC)
    graph.update_state(THREAD, {"log": ["changed"], "answer": (1, 2)}, as_node="side")
    graph.invoke(None, THREAD, **SYNC)
    old = [state for state in graph.get_state_history(THREAD) if state.next == ("join",)][-1]
    forked = graph.update_state(old.config, {"log": ["forked"]}, as_node="side")
    graph.invoke(None, forked, **SYNC)
    graph.invoke(None, old.config, **SYNC)


def run_deltas(graph: Any) -> None:
    graph.invoke({"items": ["input"]}, THREAD)
    graph.invoke({"items": ["more"]}, THREAD)


SCENARIOS: list[tuple[Callable[[Any], Any], Callable[[Any], None]]] = [
    (chat, run_chat),
    (fan_out, run_and_answer),
    (questions, run_and_answer),
    (nested, run_and_answer),
    (fan_out, run_and_fork),
    (deltas, run_deltas),
]


@pytest.fixture
def peer() -> Iterator[Any]:
    with closing(sqlite3.connect(":memory:", check_same_thread=False)) as connection:
        yield SqliteSaver(connection)


@pytest.fixture
def saver(store: Store) -> Any:
    return LangGraphSaver(store, durability="process")


@pytest.mark.parametrize("build, run", SCENARIOS, ids=[f"{build.__name__}-{run.__name__}" for build, run in SCENARIOS])
def test_graphs_are_as_with_the_saver_of_langgraph(saver: Any, peer: Any, build: Any, run: Any) -> None:
    expected, ours = build(peer), build(saver)
    run(expected)
    run(ours)
    assert listed(seen(ours)) == listed(seen(expected))
    assert len(seen(ours)) > 3


def test_pruned_and_copied_threads_go_on(saver: Any) -> None:
    graph = deltas(saver)
    run_deltas(graph)
    before = graph.get_state(THREAD).values
    saver.copy_thread("thread", "copy")
    saver.prune(["thread"])
    assert len(list(saver.list(THREAD))) < 8
    for thread in ("thread", "copy"):
        config = {"configurable": {"thread_id": thread}}
        assert graph.get_state(config).values == before
        assert graph.invoke({"items": ["again"]}, config)["items"][:-1] == [*before["items"], "again"]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_asynchronous_graphs(saver: Any, peer: Any, durability: Any) -> None:
    async def run(graph: Any) -> list[Any]:
        await graph.ainvoke({"log": ["input"]}, THREAD, durability=durability)
        waiting = (await graph.aget_state(THREAD)).interrupts
        answers = {one.id: "yes" for one in waiting}
        result = await graph.ainvoke(Command(resume=answers), THREAD, durability=durability)
        history = [state.values async for state in graph.aget_state_history(THREAD)]
        assert history[0] == graph.get_state(THREAD).values
        return [len(waiting), result, len(history)]

    found = asyncio.run(run(nested(saver)))
    nested(peer).invoke({"log": ["input"]}, THREAD)
    assert found[0] == 1
    assert listed(found[1]) == listed(nested(peer).invoke(Command(resume="yes"), THREAD))
    assert ("before", 1) in found[1]["log"]
    assert found[2] == (2 if durability == "exit" else len(list(nested(peer).get_state_history(THREAD))))


class NotRegistered:
    pass


def test_value_that_cannot_be_stored_stops_the_graph(saver: Any) -> None:
    values: list[Any] = [NotRegistered(), "fine"]
    builder = StateGraph(State).add_node("before", node("before")).add_edge(START, "before")
    builder.add_node("bad", lambda state: {"answer": {"found": values[0]}}).add_edge("before", "bad")
    graph = builder.compile(checkpointer=saver)
    with pytest.raises(CodecError, match=r"'answer'\]?\['found'\] is of type .*\.NotRegistered, which"):
        graph.invoke({"log": []}, THREAD, **SYNC)
    assert graph.get_state(THREAD).next == ("bad",)
    del values[0]
    assert graph.invoke(None, THREAD) == {"messages": [], "log": [("before", 0)], "answer": {"found": "fine"}}


def test_failed_task_is_shown_and_run_again(saver: Any) -> None:
    attempts: list[str] = []

    def fails(state: State) -> State:
        attempts.append("fails")
        while (found := saver.get_tuple(THREAD)) is None or not found.pending_writes:
            time.sleep(0.001)  # until what the other one has written is on record
        if attempts.count("fails") < 3:
            raise ValueError("no")
        return {"answer": 1}

    def works(state: State) -> State:
        attempts.append("works")
        return {"log": ["works"]}

    builder = StateGraph(State).add_node("fails", fails).add_node("works", works)
    graph = builder.add_edge(START, "fails").add_edge(START, "works").compile(checkpointer=saver)
    with pytest.raises(ValueError, match="no"):
        graph.invoke({"log": []}, THREAD)
    found = {task.name: task.error for task in graph.get_state(THREAD).tasks}
    assert found == {"fails": "ValueError('no')", "works": None}
    with pytest.raises(ValueError, match="no"):
        graph.invoke(None, THREAD)
    graph.invoke(None, THREAD)
    assert graph.get_state(THREAD).values["answer"] == 1
    assert sorted(attempts) == ["fails", "fails", "fails", "works"]


def test_state_survives_another_opening(opened: Open) -> None:
    graph = questions(LangGraphSaver(opened()))
    graph.invoke({"log": ["input"]}, THREAD)
    again = questions(LangGraphSaver(opened()))
    assert seen(again) == seen(graph)
    resume_all(again)
    assert graph.get_state(THREAD).values == again.get_state(THREAD).values
    assert again.get_state(THREAD).next == ()


@gp.agents.register(name="langgraph graphs Shape")
@dataclass
class Shape:
    side: int = 0
    log: Annotated[list[Any], operator.add] = field(default_factory=list)


def test_state_of_a_registered_type_and_functions_as_graphs(saver: Any) -> None:
    builder = StateGraph(Shape).add_node("one", lambda state: {"log": [state.side]})
    builder.add_node("two", lambda state: {"log": [state]}).add_edge(START, "one")
    builder.add_conditional_edges("one", lambda state: [Send("two", state)])
    graph = builder.compile(checkpointer=saver)
    graph.invoke(Shape(2), THREAD, interrupt_before=["two"])
    assert graph.invoke(None, THREAD)["log"] == [2, Shape(2, [2])]

    def pair(number: int) -> Any:
        return number, {number}

    def flow(count: int, *, previous: Any = None) -> Any:
        found = [one.result() for one in [task(pair)(number) for number in range(count)]]
        return entrypoint.final(value=(found, interrupt("question"), previous), save=(count,))

    graph = entrypoint(checkpointer=saver)(flow)
    for count, previous in ((2, None), (3, (2,))):
        config: Any = {"configurable": {"thread_id": "functions"}}
        graph.invoke(count, config)
        found = graph.invoke(Command(resume={"an": "answer"}), config)
        assert found == ([(number, {number}) for number in range(count)], {"an": "answer"}, previous)
