"""Tasks that wait: what breakpoints, updates of the state, new input and failures make of them, with known answers."""

from __future__ import annotations

from operator import add
from typing import Annotated, Any, TypedDict

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import NodesFailedError, StoreError
from gpu_pregel.workflows import END, START, Command, Send, StateGraph, interrupt

THREAD: dict[str, Any] = {"configurable": {"thread_id": "1"}}


class State(TypedDict, total=False):
    log: Annotated[list[str], add]


def log(name: str, **more: Any) -> Any:
    return lambda state: {"log": [name], **more}


def asks(state: State) -> Any:
    return {"log": [interrupt("which?")]}


def graph(*edges: str, deferred: str = "", **nodes: Any) -> StateGraph:
    """Return a graph with edges such as "ab" and joins such as "abc", which begins with node a."""
    found = StateGraph(State)
    for name in sorted({letter for edge in edges for letter in edge} | {"a"}):
        found.add_node(name, nodes.get(name, log(name)), defer=name in deferred)
    for edge in edges:
        found.add_edge(edge[0] if len(edge) == 2 else list(edge[:-1]), edge[-1])
    return found.add_edge(START, "a")


def test_a_new_run_stops_before_its_first_node() -> None:
    app = graph("ab").compile(store=gp.MemoryStore(), interrupt_before=["a"])
    assert app.invoke({"log": ["input"]}, THREAD) == {"log": ["input"]}
    assert app.get_state(THREAD).next == ("a",)
    assert app.invoke(None, THREAD) == {"log": ["input", "a", "b"]}


def test_a_continued_run_passes_its_breakpoint_although_only_joins_are_noted_first() -> None:
    # After a, the arrival at the join of c takes a superstep in which the deferred node d still waits.
    app = graph("ad", "abc", "bc", deferred="d", b=asks).add_edge("a", END)
    compiled = app.compile(store=gp.MemoryStore(), interrupt_before=["d"])
    assert compiled.invoke({"log": []}, THREAD) == {"log": ["a"]}
    assert compiled.get_state(THREAD).next == ("d",)
    assert compiled.invoke(None, THREAD) == {"log": ["a", "d"]}


def test_deferred_nodes_are_next_when_no_other_is() -> None:
    app = graph("ab", "ad", "bc", deferred="d").compile(store=gp.MemoryStore(), interrupt_before="*")
    seen = []
    app.invoke({"log": []}, THREAD)
    while following := app.get_state(THREAD).next:
        seen.append(following)
        app.invoke(None, THREAD)
    assert seen == [("a",), ("b",), ("c",), ("d",)]


def test_deferred_nodes_run_beside_what_was_sent() -> None:
    def split(state: State) -> Any:
        return Command(update={"log": ["a"]}, goto=[Send("b", {}), Send("b", {})])

    found = graph("ad", "bc", deferred="d", a=split)
    assert found.compile().invoke({"log": []})["log"] == ["a", "d", "b", "b", "c"]


def test_an_update_drops_the_tasks_that_wait() -> None:
    app = graph("ab", "ac", "bd", "ce", b=asks).compile(store=gp.MemoryStore())
    app.invoke({"log": []}, THREAD)
    assert app.get_state(THREAD).next == ("b",)  # c has run, and is not committed
    app.update_state(THREAD, {"log": ["instead of c"]}, as_node="c")
    assert app.get_state(THREAD).next == ("e",)
    assert app.invoke(None, THREAD)["log"] == ["a", "instead of c", "e"]


@pytest.mark.parametrize("drops", ["update", "input"])
def test_what_has_arrived_at_a_join_outlives_dropped_tasks(drops: str) -> None:
    # c joins a and b. The tasks that wait when the state is updated, or given new input, are the question of b and
    # the arrival of a at the join.
    app = graph("ab", "abc", b=asks).compile(store=gp.MemoryStore())
    app.invoke({"log": []}, THREAD)
    if drops == "update":
        app.update_state(THREAD, {"log": ["instead of b"]}, as_node="b")
        assert app.invoke(None, THREAD)["log"] == ["a", "instead of b", "c"]
    else:
        app.invoke({"log": ["again"]}, THREAD)
        assert app.invoke(Command(resume="b"), THREAD)["log"] == ["a", "again", "a", "b", "c"]


def test_a_limit_counts_the_supersteps_of_nodes() -> None:
    routed = StateGraph(State).add_node("a", log("a")).add_node("b", log("b")).add_edge("a", "b")
    routed.add_conditional_edges(START, lambda state: "a")
    for app in (graph("ab"), routed):
        compiled = app.compile(store=gp.MemoryStore(), max_supersteps=2)
        assert compiled.invoke({"log": []}, THREAD)["log"] == ["a", "b"]
        assert compiled.invoke({"log": []}, THREAD)["log"] == ["a", "b"] * 2


def test_a_node_that_fails_in_a_graph_that_is_a_node_is_tried_again() -> None:
    runs: list[str] = []

    def fails(state: State) -> Any:
        runs.append("fails")
        if len(runs) < 4:
            raise ValueError("boom")
        return {"log": ["mended"]}

    def before(state: State) -> Any:
        runs.append("before")
        return {"log": ["before"]}

    nested = graph("ab", a=before, b=fails).compile()
    app = graph(a=nested).compile(store=gp.MemoryStore())
    inputs: list[Any] = [{"log": []}, None]
    for given in inputs:
        with pytest.raises(NodesFailedError, match=r"node 'a': NodesFailedError: .* node 'b': ValueError: boom"):
            app.invoke(given, THREAD)
    assert app.invoke(None, THREAD)["log"] == ["before", "mended"]
    assert runs == ["before", "fails", "fails", "fails"]


@pytest.mark.parametrize(
    ("carry", "superstep"), [*(("shared", one) for one in range(3)), *(("messages", one) for one in range(5))]
)
def test_a_superstep_that_could_not_end_is_not_the_end(
    carry: Any, superstep: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a process is killed between the last of its tasks and the end of the superstep."""
    store = gp.MemoryStore()
    app = graph("ab", "bc").add_edge("c", END).compile(store=store, carry=carry)
    names = ("a", "b", "c") if carry == "shared" else (START, "a", "b", "c", END)
    commit, steps = store.commit, iter(range(9))

    def refuse_one(*arguments: Any, **options: Any) -> Any:
        if next(steps) == superstep:
            raise StoreError(store.name, "is full")
        return commit(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(store, "commit", refuse_one)
        with pytest.raises(StoreError):
            app.invoke({"log": ["input"]}, THREAD)
    assert app.get_state(THREAD).next == (names[superstep],)
    assert app.invoke(None, THREAD) == {"log": ["input", "a", "b", "c"]}
    assert app.get_state(THREAD).next == ()
