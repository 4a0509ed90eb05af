"""What a run does, and what its thread shows, compared with LangGraph."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest

import gpu_pregel as gp
from gpu_pregel import workflows
from gpu_pregel.workflows import START
from tests.packages import needs

needs("langgraph", "langgraph")

import langgraph.graph  # noqa: E402
import langgraph.types  # noqa: E402
from langgraph.checkpoint.memory import InMemorySaver  # noqa: E402


class Notes(TypedDict, total=False):
    x: int
    log: Annotated[list[Any], operator.add]


Build = Callable[[Any, Any], Any]
"""Adds nodes and edges to a builder, given the module that has ``Send``, ``Command`` and ``interrupt``."""


def compiled(build: Build) -> tuple[Any, Any, Any]:
    """Return a graph in LangGraph, imported from there, and built here."""
    builder = langgraph.graph.StateGraph(Notes)
    build(builder, langgraph.types)
    own = workflows.StateGraph(Notes)
    build(own, workflows)
    return (
        builder.compile(checkpointer=InMemorySaver()),
        workflows.from_langgraph(builder).compile(store=gp.MemoryStore()),
        own.compile(store=gp.MemoryStore()),
    )


def noted(name: str) -> Callable[[Any], Any]:
    """Return a node that writes its name and how much it has seen."""
    return lambda state: {"log": [(name, len(state.get("log", ())))]}


# Deferred nodes.


def beside_what_was_sent(graph: Any, library: Any) -> None:
    for name, defer in (("a", False), ("late", True), ("part", False), ("after", False)):
        graph.add_node(name, noted(name), defer=defer)
    graph.add_edge(START, "a")
    graph.add_edge("a", "late")
    graph.add_edge("part", "after")
    graph.add_conditional_edges("a", lambda state: [library.Send("part", {}), library.Send("part", {})], ["part"])


def beside_a_join_that_waits(graph: Any, library: Any) -> None:
    beside_what_was_sent(graph, library)
    graph.add_node("joined", noted("joined"))
    graph.add_edge(["a", "after"], "joined")


def sent_to_a_deferred_node(graph: Any, library: Any) -> None:
    for name, defer in (("a", False), ("late", True), ("b", False)):
        graph.add_node(name, noted(name), defer=defer)
    graph.add_edge(START, "a")
    graph.add_edge("a", "b")
    graph.add_conditional_edges("a", lambda state: library.Send("late", {}), ["late"])


def behind_a_complete_join(graph: Any, library: Any) -> None:
    for name, defer in (("a", False), ("b", False), ("late", True), ("joined", False)):
        graph.add_node(name, noted(name), defer=defer)
    for name in "ab":
        graph.add_edge(START, name)
        graph.add_edge(name, "late")
    graph.add_edge(["a", "b"], "joined")


@pytest.mark.parametrize(
    "build", [beside_what_was_sent, beside_a_join_that_waits, sent_to_a_deferred_node, behind_a_complete_join]
)
def test_when_deferred_nodes_run(build: Build) -> None:
    config: Any = {"configurable": {"thread_id": "t"}}
    theirs, *ours = [app.invoke({"log": ["in"]}, config)["log"] for app in compiled(build)]
    assert ours == [theirs, theirs]
