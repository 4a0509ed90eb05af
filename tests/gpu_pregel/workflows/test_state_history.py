"""The history of long threads: equal to what each of its states is by itself, and read in few pieces."""

from __future__ import annotations

from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.host.agents import state_history
from gpu_pregel.host.stores.store import Store
from gpu_pregel.workflows import END, START, CompiledGraph, Send, StateGraph
from tests.gpu_pregel.workflows.small_graphs import Notes, thread

ROUNDS = 120


def looping(store: Store) -> CompiledGraph:
    """Return a loop whose log grows, with tasks that come and go."""
    graph = StateGraph(Notes).add_node("count", lambda state: {"x": state.get("x", 0) + 1, "log": "a" * 50})
    graph.add_node("part", lambda state: {"log": state}).add_edge(START, "count")

    def route(state: Any) -> Any:
        if state["x"] >= ROUNDS:
            return END
        return ["count", *[Send("part", number) for number in range(2)]] if state["x"] % 10 == 0 else "count"

    app: CompiledGraph = graph.add_conditional_edges("count", route, ["count", "part", END]).compile(
        store=store, max_supersteps=1000, durability="process"
    )
    return app


@pytest.mark.parametrize("most_bytes", [20_000, 1 << 24])
def test_the_states_of_a_long_thread(monkeypatch: pytest.MonkeyPatch, most_bytes: int) -> None:
    store = gp.MemoryStore()
    app = looping(store)
    app.invoke({"x": 0}, thread())
    app.update_state(thread(), {"log": "updated"}, as_node="count")
    *_, first = app.get_state_history(thread(), limit=40)
    app.invoke({"x": ROUNDS - 3, "log": "again"}, first.config)  # a fork, whose history goes on in its parent
    monkeypatch.setattr(state_history, "_MOST_BYTES", most_bytes)
    history = list(app.get_state_history(thread()))
    assert len(history) > 80
    assert history[::9] == [app.get_state(one.config) for one in history[::9]]
    assert [one.config for one in history[1:]] == [one.parent_config for one in history[:-1]]


def test_many_states_are_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    store = gp.MemoryStore()
    app, loads = looping(store), []
    app.invoke({"x": 0}, thread())
    load = store.load

    def counted(*given: Any) -> Any:
        loads.append(given)
        return load(*given)

    monkeypatch.setattr(store, "load", counted)
    assert len(list(app.get_state_history(thread()))) == ROUNDS + 2
    assert len(loads) < ROUNDS / 5
