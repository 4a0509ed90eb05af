"""What a run does, and what its thread shows, compared with LangGraph."""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import pairwise
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


CONFIG: Any = {"configurable": {"thread_id": "t"}}
Build = Callable[[Any, Any], Any]
"""Adds nodes and edges to a builder, given the module that has ``Send``, ``Command`` and ``interrupt``."""


def compiled(build: Build, **options: Any) -> tuple[Any, Any, Any]:
    """Return a graph in LangGraph, imported from there, and built here."""
    builder = langgraph.graph.StateGraph(Notes)
    build(builder, langgraph.types)
    own = workflows.StateGraph(Notes)
    build(own, workflows)
    return (
        builder.compile(checkpointer=InMemorySaver(), **options),
        workflows.from_langgraph(builder).compile(store=gp.MemoryStore(), **options),
        own.compile(store=gp.MemoryStore(), **options),
    )


def noted(name: str) -> Callable[[Any], Any]:
    """Return a node that writes its name and how much it has seen."""
    return lambda state: {"log": [f"{name} {len(state.get('log', ()))}"]}


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
    theirs, *ours = [app.invoke({"log": ["in"]}, CONFIG)["log"] for app in compiled(build)]
    assert ours == [theirs, theirs]


def deferred_and_routed(graph: Any, library: Any) -> None:
    for name, defer in (("a", False), ("late", True), ("b", False), ("c", False)):
        graph.add_node(name, noted(name), defer=defer)
    graph.add_edge(START, "a")
    for target in ("late", "b"):
        graph.add_edge("a", target)
    graph.add_edge("b", "c")
    graph.add_edge(["a", "b"], "late")


@pytest.mark.parametrize("as_node", ["a", "b", "c"])
@pytest.mark.parametrize("stop", ["b", "c", "late"])
def test_deferred_nodes_after_an_update(stop: str, as_node: str) -> None:
    found = []
    for app in compiled(deferred_and_routed, interrupt_before=[stop]):
        app.invoke({"log": ["in"]}, CONFIG)
        app.update_state(CONFIG, {"log": ["update"]}, as_node=as_node)
        states = [app.get_state(CONFIG).next]
        app.update_state(CONFIG, {"log": ["again"]}, as_node="b")
        states.append(app.get_state(CONFIG).next)
        while app.get_state(CONFIG).next:
            app.invoke(None, CONFIG)
        found.append((states, app.get_state(CONFIG).values))
    assert found[1:] == [found[0]] * 2


# States and histories.


def payloads(questions: Any) -> list[Any]:
    return [one.value for one in questions]


def shown(state: Any) -> dict[str, Any]:
    """Return what a snapshot has in both libraries; dicts have an order in neither."""
    tasks = [(one.name, one.error, payloads(one.interrupts), one.result) for one in state.tasks]
    metadata = state.metadata and [state.metadata[name] for name in ("source", "step", "parents")]
    found = {"values": state.values, "next": state.next, "metadata": metadata, "tasks": tasks}
    return found | {
        "interrupts": payloads(state.interrupts),
        "has_parent": state.parent_config is not None,
        "has_time": state.created_at is not None,
    }


def histories(app: Any) -> list[dict[str, Any]]:
    """Return the states of a thread, the latest first, each of which is the parent of the one before it."""
    states = list(app.get_state_history(CONFIG))
    for state, before in pairwise(states):
        assert state.parent_config["configurable"]["checkpoint_id"] == before.config["configurable"]["checkpoint_id"]
    assert [shown(app.get_state(one.config)) for one in states] == [shown(one) for one in states]
    return list(map(shown, states))


def a_chain(graph: Any, library: Any) -> None:
    for name in "ab":
        graph.add_node(name, noted(name))
    graph.add_edge(START, "a")
    graph.add_edge("a", "b")


def a_routed_chain(graph: Any, library: Any) -> None:
    a_chain(graph, library)
    graph.add_conditional_edges(START, lambda state: "b" if len(state["log"]) > 1 else "a", ["a", "b"])


def test_an_unknown_thread_is_empty() -> None:
    theirs, *ours = compiled(a_chain)
    config = {"configurable": {"thread_id": "nobody", "else": 3}}
    for app in ours:
        assert vars(app.get_state(config)) == theirs.get_state(config)._asdict()
        assert list(app.get_state_history(config)) == list(theirs.get_state_history(config)) == []


@pytest.mark.parametrize("build", [a_chain, a_routed_chain])
def test_inputs_are_in_the_history(build: Build) -> None:
    theirs, *ours = compiled(build)
    for given in ({"log": ["in"], "x": 1}, {"log": ["again"]}):
        for app in (theirs, *ours):
            app.invoke(given, CONFIG)
        assert [histories(app) for app in ours] == [histories(theirs)] * 2
    assert histories(ours[0])[-1]["next"] == (START,)
    assert histories(ours[0])[-1]["metadata"] == ["input", -1, {}]


@pytest.mark.parametrize("place", [-1, 3])
@pytest.mark.parametrize("build", [a_chain, a_routed_chain])
def test_a_thread_goes_on_from_before_an_input(build: Build, place: int) -> None:
    found = []
    for app in compiled(build):
        app.invoke({"log": ["in"]}, CONFIG)
        app.invoke({"log": ["again"]}, CONFIG)
        before = [one for one in app.get_state_history(CONFIG) if one.metadata["step"] == place]
        outputs = [app.invoke(given, before[0].config)["log"] for given in (None, {"log": ["other"]})]
        app.update_state(before[0].config, {"log": ["update"]}, as_node="a")
        found.append([*outputs, app.get_state(CONFIG).values, app.invoke(None, CONFIG)["log"]])
    assert found[1:] == [found[0]] * 2


@pytest.mark.parametrize("as_node", [START, "a", "b"])
def test_a_thread_that_begins_with_an_update(as_node: str) -> None:
    theirs, *ours = compiled(a_chain)
    for app in (theirs, *ours):
        app.update_state(CONFIG, {"log": ["update"]}, as_node=as_node)
    assert [histories(app) for app in ours] == [histories(theirs)] * 2
    for app in (theirs, *ours):
        app.invoke(None, CONFIG)
        app.invoke({"log": ["in"]}, CONFIG)
    assert [histories(app) for app in ours] == [histories(theirs)] * 2


class Output(TypedDict, total=False):
    x: int


def test_states_have_keys_that_the_output_has_not() -> None:
    builder = langgraph.graph.StateGraph(Notes, output_schema=Output)
    a_chain(builder, langgraph.types)
    found = []
    for app in (
        builder.compile(checkpointer=InMemorySaver()),
        workflows.from_langgraph(builder).compile(store=gp.MemoryStore()),
    ):
        found.append((app.invoke({"x": 1}, CONFIG), app.get_state(CONFIG).values, histories(app)))
    assert found[0][:2] == ({"x": 1}, {"x": 1, "log": ["a 0", "b 1"]})
    assert found[1] == found[0]


# A question, beside which others have finished.


def asking(graph: Any, library: Any) -> None:
    graph.add_node("a", lambda state: {"log": ["a"], "x": 1})
    graph.add_node("none", lambda state: None)
    graph.add_node("q", lambda state: {"log": [library.interrupt("q?")]})
    graph.add_node("r", lambda state: {"log": [library.interrupt("r?"), library.interrupt("r2?")]})
    graph.add_node("z", noted("z"))
    for name in ("a", "none", "q", "r"):
        graph.add_edge(START, name)
    graph.add_edge(["a", "q", "r"], "z")


def answer(app: Any, library: Any, payload: str) -> Any:
    """Return a command that answers one question."""
    ids = [one.id for one in app.get_state(CONFIG).interrupts if one.value == payload]
    return library.Command(resume={ids[0]: f"answer to {payload}"})


def items(app: Any, given: Any) -> list[str]:
    """Return what a call streams; siblings finish in any order."""
    found = []
    for mode, item in app.stream(given, CONFIG, stream_mode=["updates", "values"]):
        found.append(repr((mode, {**item, "__interrupt__": payloads(item.get("__interrupt__", ()))})))
    return sorted(found)


def test_what_siblings_of_a_question_have_done_is_shown() -> None:
    theirs, *ours = compiled(asking)
    assert [items(app, {"log": ["in"]}) for app in ours] == [items(theirs, {"log": ["in"]})] * 2
    for payload in ("q?", "r?", "r2?"):
        expected = shown(theirs.get_state(CONFIG))
        assert [shown(app.get_state(CONFIG)) for app in ours] == [expected] * 2
        assert [histories(app) for app in ours] == [histories(theirs)] * 2
        streamed = [items(app, answer(app, workflows, payload)) for app in ours]
        assert streamed == [items(theirs, answer(theirs, langgraph.types, payload))] * 2
    assert [histories(app) for app in ours] == [histories(theirs)] * 2


def test_a_call_that_asks_returns_what_siblings_have_done() -> None:
    outputs = []
    for app in compiled(asking):
        output = app.invoke({"log": ["in"]}, CONFIG)
        outputs.append({**output, "__interrupt__": sorted(payloads(output["__interrupt__"]))})
    assert outputs[0] == {"log": ["in", "a"], "x": 1, "__interrupt__": ["q?", "r?"]}
    assert outputs[1:] == [outputs[0]] * 2


@pytest.mark.parametrize("name", ["q", "r"])
def test_an_update_in_place_of_a_node_that_asks(name: str) -> None:
    theirs, *ours = compiled(asking)
    for app in (theirs, *ours):
        app.invoke({"log": ["in"]}, CONFIG)
        app.update_state(CONFIG, {"log": ["update"]}, as_node=name)
    assert [histories(app)[:2] for app in ours] == [histories(theirs)[:2]] * 2


def test_streams_tell_of_breakpoints() -> None:
    builder = langgraph.graph.StateGraph(Notes)
    a_chain(builder, langgraph.types)
    theirs = builder.compile(checkpointer=InMemorySaver(), interrupt_before=["b"], interrupt_after=["b"])
    ours = workflows.from_langgraph(builder).compile(
        store=gp.MemoryStore(), interrupt_before=["b"], interrupt_after=["b"]
    )
    for given in ({"log": ["in"]}, None):
        assert items(ours, given) == items(theirs, given)


# Updates without a node.


def two_nodes(graph: Any, library: Any) -> None:
    graph.add_node("a", noted("a")).add_node("b", noted("b")).add_edge(START, "a").add_edge("a", "b")


def test_updates_after_an_input_are_those_of_the_start() -> None:
    """In the first call, in the second one, and twice, before any node has run."""
    found = []
    for app in compiled(two_nodes, interrupt_before=["a"]):
        states = []
        for _ in range(2):
            app.invoke({"x": 1, "log": ["input"]}, CONFIG)
            for x in (2, 3):
                app.update_state(CONFIG, {"x": x})
                states.append(app.get_state(CONFIG))
            app.invoke(None, CONFIG)
            states.append(app.get_state(CONFIG))
        found.append([(state.values, state.next, state.metadata["source"], state.metadata["step"]) for state in states])
    assert found[0][0][:2] == ({"x": 2, "log": ["input"]}, ("a",))
    assert found[1] == found[2] == found[0]
