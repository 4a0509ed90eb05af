"""Graphs as nodes of graphs: their states, commands to the parent, failures, names in the store, workers."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import AgentsFailedError, ArgumentError, ClaimedError
from gpu_pregel.host.stores.store import Store
from gpu_pregel.workflows import START, Command, CompiledGraph, Send, StateGraph, increment
from gpu_pregel.workflows.stored_threads import nested_id
from tests.devices import LONG
from tests.gpu_pregel.workflows.small_graphs import WAYS, Notes, chain, noted, single, thread
from tests.packages import needs

needs("pydantic", "test")

import pydantic  # noqa: E402


@dataclasses.dataclass
class Point:
    x: int = 0
    own: int = 5


class Model(pydantic.BaseModel):
    x: int
    text: str = "abc"


class Counted(TypedDict):
    x: Annotated[int, increment]


class Apart(TypedDict):
    y: int


def parent(sub: CompiledGraph, name: str = "sub", **options: Any) -> CompiledGraph:
    """Return a graph with a subgraph, and a node "after" to which its commands may lead."""
    graph = StateGraph(Notes).add_node(name, sub, destinations=("after",)).add_edge(START, name)
    app: CompiledGraph = graph.add_node("after", lambda state: {"log": "after"}).compile(**options)
    return app


def one_node(state: type, function: Callable[..., Any]) -> CompiledGraph:
    return StateGraph(state).add_node("inner", function).add_edge(START, "inner").compile()


STATES: dict[str, tuple[CompiledGraph, int]] = {
    "dataclass": (one_node(Point, lambda point: {"x": point.x + point.own}), 6),
    "model": (one_node(Model, lambda model: {"x": model.x + len(model.text)}), 4),
    "another reducer": (one_node(Counted, lambda state: {"x": 10}), 11),
    "no common keys": (one_node(Apart, lambda state: {"y": 3}), 1),
    "two levels": (parent(one_node(Point, lambda point: {"x": point.x + point.own})), 6),
}


@WAYS
@pytest.mark.parametrize("workers", [0, pytest.param(1, marks=LONG)])
@pytest.mark.parametrize("case", STATES)
def test_states(way: Callable[..., Any], case: str, workers: int) -> None:
    sub, x = STATES[case]
    assert way(parent(sub, workers=workers), {"x": 1}) == {"x": x, "log": []}


@WAYS
def test_states_in_workers(way: Callable[..., Any]) -> None:
    sub, x = STATES["two levels"]
    assert way(parent(sub, workers=2), {"x": 1}) == {"x": x, "log": []}


def test_an_invalid_input_of_a_model_names_node_and_field() -> None:
    sub, _ = STATES["model"]
    with pytest.raises(AgentsFailedError, match=r"(?s)'sub'.*'inner'.*validation error for Model.*x"):
        parent(sub).invoke({"log": "no x"})


TO_PARENT: list[tuple[Any, Any]] = [
    (Command(graph=Command.PARENT, update={"x": 9}, goto="after"), {"x": 9, "log": ["after"]}),
    (Command(graph=Command.PARENT, goto="after"), {"x": 1, "log": ["after"]}),
    (Command(graph=Command.PARENT, update={"log": "up"}), {"x": 1, "log": ["up"]}),
    (Command(graph=Command.PARENT, goto=[Send("after", 1), Send("after", 2)]), {"x": 1, "log": ["after"] * 2}),
    (Command(graph=Command.PARENT, goto="other"), "node 'sub' goes to 'other', which is no node"),
    (Command(graph=Command.PARENT, update={"z": 1}), "node 'sub' writes 'z', which is no key"),
    (Command(graph=Command.PARENT, update=3), "the update for the parent graph of node 'inner' must be a dict"),
]


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize(("command", "end"), TO_PARENT)
def test_commands_to_the_parent(command: Command, end: Any, kept: bool) -> None:
    later = StateGraph(Notes).add_node("inner", lambda state: command).add_node("never", noted("never"))
    sub = later.add_edge(START, "inner").add_edge("inner", "never").compile()
    app = parent(sub, store=gp.MemoryStore() if kept else None)
    if isinstance(end, str):
        with pytest.raises(AgentsFailedError, match=end):
            app.invoke({"x": 1}, thread())
    else:
        assert app.invoke({"x": 1}, thread()) == end


def test_a_command_to_the_parent_from_a_worker() -> None:
    command, end = TO_PARENT[0]
    assert parent(one_node(Notes, lambda state: command), workers=1).invoke({"x": 1}) == end


@WAYS
@pytest.mark.parametrize("is_async", [False, True])
def test_a_failure_inside_continues_inside(way: Callable[..., Any], is_async: bool, store: Store) -> None:
    count, failing = Counter[str](), {"c"}

    def node(name: str) -> Callable[..., Any]:
        def run(state: Any) -> dict[str, Any]:
            count[name] += 1
            if name in failing:
                raise ValueError(f"no {name}")
            return {"log": name}

        async def run_async(state: Any) -> dict[str, Any]:
            return run(state)

        return run_async if is_async else run

    inner = StateGraph(Notes).add_sequence([(name, node(name)) for name in "bcd"]).add_edge(START, "b").compile()
    graph = StateGraph(Notes).add_node("a", node("a")).add_node("sub", parent(inner)).add_edge("a", "sub")
    app = graph.add_edge(START, "a").compile(store=store)
    with pytest.raises(AgentsFailedError, match=r"(?s)'sub'.*'sub'.*'c': ValueError: no c"):
        way(app, {}, thread())
    with pytest.raises(AgentsFailedError, match="no c"):
        way(app, None, thread())
    failing.clear()
    assert way(app, None, thread())["log"] == [*"aaabcd"]  # each graph returns its whole log, as in LangGraph
    assert count == {"a": 1, "b": 1, "c": 3, "d": 1}
    assert {row.id for row in store.runs()} == {"t", "t > sub @1", "t > sub @1 > sub @0"}


def test_a_failure_inside_on_workers(tmp_path: Path) -> None:
    flag = tmp_path / "fixed"

    def inner(state: Any) -> dict[str, Any]:
        if not flag.exists():
            raise ValueError("not fixed")
        return {"log": "inner"}

    app = parent(one_node(Notes, inner), store=gp.MemoryStore(), workers=2)
    with pytest.raises(AgentsFailedError, match="not fixed"):
        app.invoke({}, thread())
    flag.touch()
    assert app.invoke(None, thread())["log"] == ["inner"]


def test_sent_tasks_have_a_run_each() -> None:
    class Output(TypedDict):
        log: list[int]

    inner = StateGraph(Notes, output=Output).add_node("square", lambda state: {"log": [state["x"] ** 2]})
    graph, store = StateGraph(Notes).add_node("sub", inner.add_edge(START, "square").compile()), gp.MemoryStore()
    graph.add_conditional_edges(START, lambda state: [Send("sub", {"x": k}) for k in range(4)])
    assert graph.compile(store=store).invoke({}, thread())["log"] == [0, 1, 4, 9]
    assert len(store.runs()) == 5


def test_one_graph_in_graphs_with_and_without_workers() -> None:
    sub = one_node(Notes, noted("leaf"))
    for options in ({"store": gp.MemoryStore()}, {"workers": 1}, {}):
        assert parent(sub, **options).invoke({"x": 0}, thread()) == {"x": 1, "log": ["leaf"]}


def test_a_deep_graph() -> None:
    app = one_node(Notes, noted("leaf"))
    for _ in range(12):
        app = parent(app)
    store = gp.MemoryStore()
    graph = StateGraph(Notes).add_node("sub", app).add_edge(START, "sub")
    assert graph.compile(store=store).invoke({"x": 0}, thread()) == {"x": 1, "log": ["leaf"]}
    assert len(store.runs()) == 14


# Names in the store.


@pytest.mark.parametrize("name", ["n" * 190, "a\nb", "a > b", "a @1", "a #2", "\u2028"])
def test_names_of_nodes(name: str) -> None:
    app = parent(one_node(Notes, noted("leaf")), name, store=gp.MemoryStore())
    for long in ("t", "y" * 180):
        assert app.invoke({"x": 0}, thread(long)) == {"x": 1, "log": ["leaf"]}


def test_ids_of_runs_of_subgraphs_are_distinct_and_fit() -> None:
    runs, tasks = ["t", "t #2", "r" * 200, "t > a @1"], ["a", "b", "a\n", "b\n", "n" * 300, "n" * 301, "a:b:0", "a > b"]
    ids = [nested_id(run, task, step) for run in runs for task in tasks for step in (0, 12)]
    assert len(set(ids)) == len(ids)
    assert all(len(one) <= 200 and one.isprintable() for one in ids)


def test_another_thread_does_not_get_into_the_run_of_a_subgraph() -> None:
    app = parent(one_node(Notes, noted("leaf")), store=gp.MemoryStore())
    for name in ("t|sub|0", "t > sub", "t > sub #2x"):
        assert app.invoke({"x": 100}, thread(name))["x"] == 101
    assert app.invoke({"x": 0}, thread()) == {"x": 1, "log": ["leaf"]}
    with pytest.raises(ArgumentError, match="ends like the name of a fork or a subgraph"):
        app.invoke({"x": 100}, thread("t > sub @0"))


def test_a_fork_has_subgraphs_of_its_own() -> None:
    count: Counter[str] = Counter()

    def leaf(state: Any, context: Any) -> dict[str, Any]:
        count[context.key] += 1
        return {"x": state["x"] + 1}

    app = parent(one_node(Notes, leaf), store=gp.MemoryStore())
    app.invoke({"x": 0}, thread())
    first = list(app.get_state_history(thread()))[-1]
    app.update_state(first.config, {"x": 10}, as_node=START)
    assert app.invoke(None, thread())["x"] == 11
    assert list(count.values()) == [1, 1]


# What cannot be a node.


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"store": gp.MemoryStore()}, "node 'sub' is a graph with a store"),
        ({"interrupt_before": ["a"]}, "node 'sub' is a graph with interrupt_before or interrupt_after"),
        ({"interrupt_after": "*"}, "node 'sub' is a graph with interrupt_before or interrupt_after"),
    ],
)
def test_graphs_that_are_no_nodes(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        StateGraph(Notes).add_node("sub", chain(**options))


def test_a_limit_of_a_subgraph_can_be_raised_and_the_run_continued() -> None:
    store = gp.MemoryStore()

    def app(limit: int) -> CompiledGraph:
        return parent(chain("abcd", max_supersteps=limit), store=store)

    with pytest.raises(AgentsFailedError, match=r"(?s)'sub'.*SuperstepLimitError.*'d'"):
        app(3).invoke({"x": 0}, thread())
    assert app(9).invoke(None, thread()) == {"x": 4, "log": ["a", "b", "c", "d"]}


def test_two_calls_of_one_thread_do_not_share_a_subgraph() -> None:
    app: CompiledGraph = single(noted("a"), options={"store": gp.MemoryStore()})

    def inner(state: Any) -> None:
        app.invoke({}, thread())
        with pytest.raises(ClaimedError):
            outer.invoke({}, thread("outer"))

    outer = parent(one_node(Notes, inner), store=gp.MemoryStore())
    assert outer.invoke({"x": 1}, thread("outer")) == {"x": 1, "log": []}
