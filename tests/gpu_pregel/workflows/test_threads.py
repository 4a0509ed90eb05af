"""Threads: how they continue after an end, a failure and a stop; their states, history, updates and forks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import AgentsFailedError, ArgumentError, ArgumentTypeError, CodecError
from gpu_pregel.host.agents.formats import SavedSuperstep
from gpu_pregel.host.agents.run_metadata import function_name
from gpu_pregel.host.stores.store import Store
from gpu_pregel.workflows import END, START, Command, CompiledGraph, StateGraph, interrupt
from gpu_pregel.workflows.async_node_runner import AsyncNodeRunner
from gpu_pregel.workflows.message_runner import AsyncMessageRunner, MessageRunner
from gpu_pregel.workflows.node_runner import NodeRunner
from tests.gpu_pregel.workflows.small_graphs import WAYS, Notes, chain, noted, single, thread


def logs(app: CompiledGraph, config: Any = None, **options: Any) -> list[str]:
    """Return the logs of a thread's history."""
    return ["".join(one.values["log"]) for one in app.get_state_history(config or thread(), **options)]


@pytest.mark.parametrize(
    ("runner", "name"),
    [
        (NodeRunner, "node_runner:NodeRunner"),
        (AsyncNodeRunner, "async_node_runner:AsyncNodeRunner"),
        (MessageRunner, "message_runner:MessageRunner"),
        (AsyncMessageRunner, "message_runner:AsyncMessageRunner"),
    ],
)
def test_names_that_stored_runs_have_stay(runner: type, name: str) -> None:
    # A thread that another release has begun is refused if the name of its compute function differs.
    assert function_name(runner) == f"gpu_pregel.workflows.{name}"


@WAYS
def test_a_failed_run_continues_with_none(way: Callable[..., Any], store: Store) -> None:
    failing = {"b"}
    app = chain(store=store, failing=failing)
    with pytest.raises(AgentsFailedError, match="no b"):
        way(app, {"x": 0}, thread())
    state = app.get_state(thread())
    assert (state.next, state.tasks[0].error) == (("b",), "ValueError: no b")
    assert (state.metadata or {})["status"] == "failed"
    with pytest.raises(AgentsFailedError, match="no b"):
        way(app, None, thread())
    failing.clear()
    assert way(app, None, thread()) == {"x": 3, "log": ["a", "b", "c"]}
    assert way(app, None, thread()) == {"x": 3, "log": ["a", "b", "c"]}
    assert [row.id for row in store.runs()] == ["t"]


def test_only_the_failed_task_runs_again() -> None:
    count, failing = Counter[str](), {"b"}

    def node(name: str) -> Callable[..., Any]:
        def run(state: Any, context: Any) -> dict[str, Any]:
            count[context.key] += 1
            if name in failing:
                raise ValueError(name)
            return {"log": name}

        return run

    graph = StateGraph(Notes)
    for name in "abc":
        graph.add_node(name, node(name)).add_edge(START, name)
    app = graph.compile(store=gp.MemoryStore())
    with pytest.raises(AgentsFailedError):
        app.invoke({}, thread())
    failing.clear()
    assert app.invoke(None, thread())["log"] == ["a", "b", "c"]
    assert sorted(count.values()) == [1, 1, 2]


@WAYS
@pytest.mark.parametrize("place", ["a", "b"])
def test_a_new_input_drops_what_has_failed(way: Callable[..., Any], place: str, store: Store) -> None:
    failing = {place}
    app = chain(store=store, failing=failing)
    with pytest.raises(AgentsFailedError):
        way(app, {"x": 0}, thread())
    failing.clear()
    before = ["a"] if place == "b" else []
    assert way(app, {"x": 10}, thread()) == {"x": 13, "log": [*before, "a", "b", "c"]}
    assert app.get_state(thread()).next == ()


def test_a_new_input_after_a_failed_router_of_the_start() -> None:
    failing = ["yes"]

    def route(state: Any) -> str:
        if failing:
            raise ValueError("no route")
        return "a"

    graph = StateGraph(Notes).add_node("a", noted("a")).add_conditional_edges(START, route, ["a"])
    app = graph.compile(store=gp.MemoryStore())
    with pytest.raises(AgentsFailedError, match="no route"):
        app.invoke({"x": 0}, thread())
    failing.clear()
    assert app.invoke({"x": 10}, thread()) == {"x": 11, "log": ["a"]}


def test_threads_are_apart(store: Store) -> None:
    app = chain(store=store)
    for name in ("one", "one more", "one|a|0"):
        assert app.invoke({"x": 1}, thread(name)) == {"x": 4, "log": ["a", "b", "c"]}


def test_many_forks_of_a_thread() -> None:
    store = gp.MemoryStore()
    app = chain(store=store, interrupt_before=["b"])
    for number in range(20):
        app.invoke({"x": number}, thread())
    assert [row.id for row in store.runs()] == ["t", *(f"t #{k}" for k in range(2, 21))]
    assert app.invoke(None, thread()) == {"x": 22, "log": [*["a"] * 20, "b", "c"]}


# States and history.


def test_states_of_a_thread(store: Store) -> None:
    app = chain(store=store)
    app.invoke({"x": 0}, thread())
    history = list(app.get_state_history(thread()))
    assert [one.next for one in history] == [(), ("c",), ("b",), ("a",), (START,)]
    assert [one.values.get("x") for one in history] == [3, 2, 1, 0, None]
    assert [(one.metadata or {})["superstep"] for one in history] == [2, 1, 0, -1, -1]
    assert [one.parent_config for one in history] == [*(one.config for one in history[1:]), None]
    assert [app.get_state(one.config).values for one in history] == [one.values for one in history]
    assert app.get_state(thread()) == history[0]
    assert all(one.created_at for one in history)


def test_limits_of_a_history(store: Store) -> None:
    app = chain(store=store)
    app.invoke({"x": 0}, thread())
    states = list(app.get_state_history(thread()))
    assert logs(app, limit=0) == []
    assert logs(app, limit=2) == ["abc", "ab"]
    assert logs(app, limit=9) == ["abc", "ab", "a", "", ""]
    assert logs(app, before=states[1].config) == ["a", "", ""]
    assert logs(app, before=states[1].config, limit=1) == ["a"]
    assert logs(app, states[1].config) == ["ab", "a", "", ""]
    assert logs(app, states[1].config, limit=1) == ["ab"]
    with pytest.raises(ArgumentError, match="limit must be from 0"):
        app.get_state_history(thread(), limit=-1)
    with pytest.raises(ArgumentError, match="before must be the config of a state"):
        app.get_state_history(thread(), before=thread())


@WAYS
def test_history_leads_through_forks(way: Callable[..., Any], store: Store) -> None:
    app = chain(store=store)
    way(app, {"x": 0}, thread())
    states = list(app.get_state_history(thread()))
    assert way(app, None, states[2].config) == {"x": 3, "log": ["a", "b", "c"]}
    forked = list(app.get_state_history(thread()))
    assert [one.config for one in forked[2:]] == [one.config for one in states[2:]]
    assert logs(app, before=states[0].config) == ["ab", "a", "", ""]  # of the run that was left
    assert app.get_state(states[0].config).values == states[0].values
    assert way(app, {"x": 100}, states[2].config) == {"x": 103, "log": ["a", "a", "b", "c"]}


@pytest.mark.parametrize("count", [100, 200])
def test_reading_a_state_of_a_history_does_not_take_longer_in_a_long_one(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = StateGraph(Notes).add_node("a", noted("a")).add_edge(START, "a")
    graph.add_conditional_edges("a", lambda state: "a" if state["x"] < count else END, ["a", END])
    app = graph.compile(store=gp.MemoryStore(), max_supersteps=1000)
    app.invoke({"x": 0}, thread())
    unpack, read = SavedSuperstep.unpack, list[int]()

    def counted(*given: Any) -> SavedSuperstep:
        read.append(1)
        return unpack(*given)

    monkeypatch.setattr(SavedSuperstep, "unpack", counted)
    assert len(list(app.get_state_history(thread()))) == count + 2
    assert len(read) < 50 * count


def test_a_growing_list_does_not_grow_the_file_with_its_square(tmp_path: Path) -> None:
    sizes = []
    for count in (100, 400):
        path = tmp_path / f"{count}.db"
        graph = StateGraph(Notes).add_node("a", lambda state: {"x": state["x"] + 1, "log": "." * 200})
        graph.add_edge(START, "a").add_conditional_edges("a", lambda state: "a" if state["x"] < count else END)  # noqa: B023
        with gp.SQLiteStore(path) as store:
            app = graph.compile(store=store, max_supersteps=1000, durability="process")
            assert len(app.invoke({"x": 0}, thread())["log"]) == count
        sizes.append(path.stat().st_size)
    assert sizes[1] < 8 * sizes[0]
    assert sizes[1] < 400 * 400 * 200 / 4


BAD_STATES: list[tuple[Any, str]] = [
    (thread(checkpoint_id="t@99"), "is none of thread 't'"),
    (thread(checkpoint_id="t@-2"), "is none of thread 't'"),
    (thread(checkpoint_id="x"), "checkpoint_id 'x' is none of thread 't'"),
    (thread(checkpoint_id="other@1"), "is none of thread 't'"),
    (thread(checkpoint_id="t #9@1"), "is none of thread 't'"),
    (thread(checkpoint_id="t@1:input"), "no input led to the state 't@1:input'"),
    (None, "thread_id"),
]


@pytest.mark.parametrize(("config", "text"), BAD_STATES)
def test_unknown_threads_and_states(config: Any, text: str) -> None:
    app = chain(store=gp.MemoryStore())
    for name in ("t", "other"):
        app.invoke({"x": 0}, thread(name))
    calls: list[Callable[[], Any]] = [
        lambda: app.get_state(config),
        lambda: list(app.get_state_history(config)),
        lambda: app.invoke({"x": 1}, config),
    ]
    for attempt in calls:
        with pytest.raises(ArgumentError, match=text):
            attempt()
    assert len(app.options.store.runs()) == 2  # type: ignore[union-attr]
    with pytest.raises(ArgumentError, match="compiled without a store"):
        chain().get_state(thread())
    with pytest.raises(ArgumentError, match="thread 'none' has no run to continue"):
        app.invoke(None, thread("none"))


# Updates.


@pytest.mark.parametrize(
    ("as_node", "following", "log"),
    [(None, (), "abc"), ("a", ("b",), "abcbc"), (START, ("a",), "abcabc"), ("c", (), "abc"), ("b", ("c",), "abcc")],
)
def test_updates_of_a_finished_thread(as_node: str | None, following: tuple[str, ...], log: str, store: Store) -> None:
    app = chain(store=store)
    app.invoke({"x": 0}, thread())
    config = app.update_state(thread(), {"x": 50}, as_node=as_node)
    state = app.get_state(thread())
    assert (state.values["x"], state.next, state.config) == (50, following, config)
    assert "".join(app.invoke(None, thread())["log"]) == log


def test_updates_of_a_stopped_thread() -> None:
    app = chain(store=gp.MemoryStore(), interrupt_before=["b"])
    app.invoke({"x": 0}, thread())
    app.update_state(thread(), {"log": "update"})
    assert app.get_state(thread()).next == ("b",)  # "a" ran last
    assert app.invoke(None, thread())["log"] == ["a", "update", "b", "c"]


@pytest.mark.parametrize("as_node", [None, "b"])
def test_updates_of_a_failed_thread(as_node: str | None, store: Store) -> None:
    failing = {"b"}
    app = chain(store=store, failing=failing)
    with pytest.raises(AgentsFailedError):
        app.invoke({"x": 0}, thread())
    app.update_state(thread(), {"log": "update"}, as_node=as_node)
    assert app.get_state(thread()).next == (("b",) if as_node is None else ("c",))
    failing.clear()
    end = ["b", "c"] if as_node is None else ["c"]
    assert app.invoke(None, thread())["log"] == ["a", "update", *end]


def test_an_update_in_place_of_a_node_that_asks(store: Store) -> None:
    graph = StateGraph(Notes).add_node("ask", lambda state: {"log": interrupt("?")}).add_node("z", noted("z"))
    app = graph.add_edge(START, "ask").add_edge("ask", "z").compile(store=store)
    app.invoke({"x": 0}, thread())
    app.update_state(thread(), {"log": "skipped"}, as_node="ask")
    assert app.invoke(None, thread())["log"] == ["skipped", "z"]
    with pytest.raises(ArgumentError, match="waits for no answer"):
        app.invoke(Command(resume=1), thread())


def test_an_update_of_a_former_state_forks_the_thread(store: Store) -> None:
    app = chain(store=store)
    app.invoke({"x": 0}, thread())
    before = list(app.get_state_history(thread()))[1]
    config = app.update_state(before.config, {"x": 100})
    assert app.get_state(thread()).config == config
    assert app.get_state(before.config).values["x"] == 2
    assert app.invoke(None, thread()) == {"x": 101, "log": ["a", "b", "c"]}
    assert [one.values.get("x") for one in app.get_state_history(thread())] == [101, 100, 2, 1, 0, None]


@pytest.mark.parametrize(("as_node", "log"), [(None, "abc"), (START, "abc"), ("b", "c")])
def test_an_update_begins_a_thread(as_node: str | None, log: str, store: Store) -> None:
    app = chain(store=store)
    app.update_state(thread(), {"x": 10}, as_node=as_node)
    assert app.get_state(thread()).values == {"x": 10, "log": []}
    found = app.invoke(None, thread())
    assert ("".join(found["log"]), found["x"]) == (log, 10 + len(log))


def test_an_update_follows_the_routers_of_its_node() -> None:
    graph = StateGraph(Notes).add_node("a", noted("a")).add_node("high", noted("high")).add_node("low", noted("low"))
    graph.add_edge(START, "a").add_conditional_edges("a", lambda state: "high" if state["x"] > 9 else "low")
    app = graph.compile(store=gp.MemoryStore())
    assert app.invoke({"x": 0}, thread())["log"] == ["a", "low"]
    app.update_state(thread(), {"x": 10}, as_node="a")
    assert app.invoke(None, thread())["log"] == ["a", "low", "high"]


BAD_UPDATES: list[tuple[Any, str | None, type[Exception], str]] = [
    ({"z": 1}, None, ArgumentError, "the update writes 'z'"),
    (5, None, ArgumentTypeError, "the update must give a dict"),
    ({"x": object()}, None, CodecError, "the update of 'x' is of type object"),
    ({"x": 1}, "z", ArgumentError, "as_node is 'z', which is no node: 'a', 'b', 'c'"),
    ({"x": 1}, END, ArgumentError, "as_node is '__end__'"),
]


@pytest.mark.parametrize(("values", "as_node", "error", "text"), BAD_UPDATES)
def test_bad_updates_change_nothing(values: Any, as_node: str | None, error: type[Exception], text: str) -> None:
    app = chain(store=gp.MemoryStore())
    app.invoke({"x": 0}, thread())
    before = app.get_state(thread())
    with pytest.raises(error, match=text):
        app.update_state(thread(), values, as_node=as_node)
    assert app.get_state(thread()) == before


def test_an_update_after_several_nodes_needs_one_of_them() -> None:
    graph = StateGraph(Notes).add_node("a", lambda state: {"log": "a"}).add_node("b", lambda state: {"log": "b"})
    app = graph.add_edge(START, "a").add_edge(START, "b").compile(store=gp.MemoryStore())
    app.invoke({}, thread())
    with pytest.raises(ArgumentError, match="pass as_node=: 'a', 'b' ran in superstep 0"):
        app.update_state(thread(), {"x": 1})


def test_the_context_of_a_node_in_attempts_and_supersteps() -> None:
    seen: list[tuple[Any, ...]] = []

    def node(state: Any, context: Any) -> None:
        seen.append((context.node, context.superstep, context.attempt, context.key, context.random.random()))
        if context.attempt < 3:
            raise OSError("again")

    retry = gp.agents.RetryPolicy(attempts=3, wait=0)
    app = single(node, options={"store": gp.MemoryStore()}, retry=retry)
    app.invoke({}, thread())
    app.invoke({}, thread())
    assert [one[:3] for one in seen] == [("a", step, attempt) for step in (0, 2) for attempt in (1, 2, 3)]
    assert len({one[3:] for one in seen[:3]}) == len({one[3:] for one in seen[3:]}) == 1
    assert seen[0][3:] != seen[3][3:]
