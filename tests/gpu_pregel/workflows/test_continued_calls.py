"""Calls that continue a thread: configuration, streams and recorded events; messages of graphs that are nodes."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

import gpu_pregel as gp
from gpu_pregel.workflows import START, Command, NodeContext, StateGraph, add_messages, interrupt


class State(TypedDict):
    answer: Any
    messages: Annotated[list[Any], add_messages]


def ask(state: State, context: NodeContext) -> dict[str, Any]:
    answer = interrupt("?")
    context.emit("token")
    return {"answer": [answer, context.config["user"]]}


CONFIG = {"configurable": {"thread_id": "a", "user": "ann"}}


def test_a_continued_node_sees_the_configuration_and_streams() -> None:
    app = StateGraph(State).add_node(ask).add_edge(START, "ask").compile(store=gp.MemoryStore())
    app.invoke({}, CONFIG)
    items = list(app.stream(Command(resume=4), CONFIG, stream_mode=["messages", "updates"]))
    assert [mode for mode, _ in items] == ["messages", "updates"]
    assert items[0][1][0] == "token"
    assert items[1][1] == {"ask": {"answer": [4, "ann"]}}


def test_all_calls_of_a_thread_are_recorded() -> None:
    store = gp.MemoryStore()
    app = StateGraph(State).add_node(ask).add_edge(START, "ask").compile(store=store, record=True)
    app.invoke({}, CONFIG)
    app.invoke(Command(resume=4), CONFIG)
    events = gp.agents.Timeline(store).read("a")
    statuses = [event.facts["status"] for event in events if event.kind == "attempt"]
    assert statuses == ["interrupted", "completed"]
    assert [event.facts["text"] for event in events if event.kind == "emit"] == ["token"]


def test_messages_of_a_graph_that_is_a_node_are_added_once() -> None:
    reply = {"role": "assistant", "content": "hello"}
    inner = StateGraph(State).add_node("reply", lambda state: {"messages": reply}).add_edge(START, "reply").compile()
    app = StateGraph(State).add_node("inner", inner).add_edge(START, "inner").compile()
    asked = {"role": "user", "content": "hi"}
    assert app.invoke({"messages": asked})["messages"] == [asked, reply]
