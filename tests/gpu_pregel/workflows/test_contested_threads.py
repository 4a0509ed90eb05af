"""Calls of one thread by several programs: what one has read, another may change before the first claims the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, NodesFailedError
from gpu_pregel.host.stores.store import Store
from gpu_pregel.workflows import END, START, CompiledGraph, StateGraph, append, increment, interrupt
from gpu_pregel.workflows.stored_threads import StoredThread
from tests.gpu_pregel.workflows.small_graphs import asked, thread

Other = Callable[[CompiledGraph], object]


class Counted(TypedDict):
    x: Annotated[int, increment]
    log: Annotated[list[Any], append]


def counting(store: Store, last: Callable[[Any], Any] = lambda state: {"log": "b"}, **options: Any) -> CompiledGraph:
    """Return a graph that adds 1 in its first node, and does what its caller wants in the second."""
    graph = StateGraph(Counted).add_node("a", lambda state: {"x": 1}).add_node("b", last)
    app: CompiledGraph = graph.add_edge(START, "a").add_edge("a", "b").compile(store=store, **options)
    return app


def ask(state: Any) -> dict[str, Any]:
    return {"log": interrupt("?")}


def fail(state: Any) -> None:
    raise ValueError("no b")


def interfere(monkeypatch: pytest.MonkeyPatch, other: Callable[[], object]) -> None:
    """Let another call take place after the next one has looked up the current run of its thread."""
    look_up = StoredThread.current
    is_done: list[bool] = []

    def current(self: StoredThread) -> Any:
        row = look_up(self)
        if not is_done:
            is_done.append(True)
            other()
        return row

    monkeypatch.setattr(StoredThread, "current", current)


def call_thrice(app: CompiledGraph) -> None:
    for _ in range(3):
        app.invoke({"x": 0}, thread())


def call_and_ask(app: CompiledGraph) -> None:
    counting(app.options.store, ask).invoke({"x": 0}, thread())  # type: ignore[arg-type]


def call_and_fail(app: CompiledGraph) -> None:
    with pytest.raises(NodesFailedError):
        counting(app.options.store, fail).invoke({"x": 0}, thread())  # type: ignore[arg-type]


def call_from_the_past(app: CompiledGraph) -> None:
    *_, first = app.get_state_history(thread())
    app.invoke({"x": 10}, first.config)


def update(app: CompiledGraph) -> None:
    app.update_state(thread(), {"x": 100}, as_node="b")


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (call_thrice, (5, ["b"] * 5)),  # the limit of 4 supersteps counts from where the call takes up the thread
        (call_and_ask, (3, ["b"] * 2)),  # the open question is dropped, as by any later input
        (call_and_fail, (3, ["b"] * 2)),
        (call_from_the_past, (12, ["b"] * 2)),
        (update, (102, ["b"] * 2)),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_a_call_continues_what_another_one_has_done_meanwhile(
    store: Store, monkeypatch: pytest.MonkeyPatch, other: Other, expected: tuple[int, list[str]]
) -> None:
    app = counting(store)
    app.invoke({"x": 0}, thread())
    interfere(monkeypatch, lambda: other(app))
    output = app.invoke({"x": 0}, {**thread(), "recursion_limit": 4})
    assert (output["x"], output["log"]) == expected
    assert app.get_state(thread()).values == output


@pytest.mark.parametrize("held", [ask, fail])
def test_an_input_drops_no_work_that_another_call_has_finished(
    store: Store, monkeypatch: pytest.MonkeyPatch, held: Callable[[Any], Any]
) -> None:
    try:
        counting(store, held).invoke({"x": 0}, thread())
    except NodesFailedError:
        assert held is fail
    app = counting(store)
    interfere(monkeypatch, lambda: app.invoke({"x": 10}, thread()))
    assert app.invoke({"x": 0}, thread())["x"] == 13


def test_update_state_continues_what_another_call_has_done_meanwhile(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = counting(store)
    interfere(monkeypatch, lambda: app.invoke({"x": 0}, thread()))
    app.update_state(thread(), {"x": 10}, as_node="b")  # had found no thread
    assert app.get_state(thread()).values == {"x": 11, "log": ["b"]}
    monkeypatch.undo()
    interfere(monkeypatch, lambda: app.invoke({"x": 0}, thread()))
    app.update_state(thread(), {"x": 10}, as_node="b")
    assert app.get_state(thread()).values == {"x": 22, "log": ["b", "b"]}


def test_a_call_from_the_past_is_refused_if_another_one_has_continued_its_fork(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = counting(store)
    app.invoke({"x": 0}, thread())
    *_, first = app.get_state_history(thread())
    fork = StoredThread.fork_from

    def fork_and_continue(self: StoredThread, *given: Any) -> Any:
        row = fork(self, *given)
        app.invoke({"x": 10}, thread())
        return row

    monkeypatch.setattr(StoredThread, "fork_from", fork_and_continue)
    with pytest.raises(ArgumentError, match="another program has continued thread 't' meanwhile: call again"):
        app.invoke({"x": 0}, first.config)
    assert app.get_state(thread()).values["x"] == 11


def test_the_second_input_of_a_thread_with_messages_is_refused_however_late(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = StateGraph(Counted).add_node("a", lambda state: {"x": 1}).add_edge(START, "a").add_edge("a", END)
    app = graph.compile(store=gp.MemoryStore(), carry="messages")
    interfere(monkeypatch, lambda: app.invoke({"x": 0}, thread()))
    with pytest.raises(ArgumentError, match="thread 't' has its input"):
        app.invoke({"x": 5}, thread())


def test_a_thread_whose_program_was_killed_is_continued(store: Store) -> None:
    app = counting(store, ask)
    assert asked(app.invoke({"x": 0}, thread())) == ["?"]
    store.claim("t", owner="a program that has ended", lease_seconds=1e-9, durability="process", takeover=False)
    assert counting(store).invoke({"x": 0}, thread())["x"] == 2
