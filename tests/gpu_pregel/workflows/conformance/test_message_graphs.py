"""Graphs whose state travels in messages, in every store: crashes, questions, history and results."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from gpu_pregel.host.stores.store import Store
from gpu_pregel.workflows import END, START, Command, StateGraph, append, increment, interrupt
from gpu_pregel.workflows.calls import open_run

CONFIG = {"configurable": {"thread_id": "1"}}


class State(TypedDict, total=False):
    log: Annotated[list[str], append]
    total: Annotated[int, increment]


def diamond(last: Any) -> StateGraph:
    """Return a graph of two nodes side by side and a last one."""
    graph = StateGraph(State)
    graph.add_node("a", lambda state: {"log": "a", "total": 1}).add_node("b", lambda state: {"log": "b", "total": 2})
    graph.add_node("c", last).add_edge(START, "a").add_edge(START, "b").add_edge("a", "c").add_edge("b", "c")
    return graph.add_edge("c", END)


def test_a_thread_goes_on_after_a_failure_of_the_process(store: Store) -> None:
    ran: list[str] = []

    def once(state: State) -> dict[str, Any]:
        ran.append("c")
        return {"log": "c"}

    app = diamond(once).compile(carry="messages", store=store)
    with open_run(app._runs, {"log": ["in"]}, CONFIG) as agents:  # a process that ends early
        assert agents.step()
        assert agents.step()
    assert ran == []
    assert app.invoke(None, CONFIG) == {"log": ["in", "a", "b", "c"], "total": 3}
    assert ran == ["c"]
    history = list(app.get_state_history(CONFIG))
    assert [sorted(one.next) for one in history] == [[], [], ["c"], ["a", "b"], [START]]
    assert [one.values for one in history] == [{"log": ["in", "a", "b", "c"], "total": 3}, {}, {}, {}, {}]


def test_a_question_keeps_what_others_have_done(store: Store) -> None:
    app = diamond(lambda state: {"log": interrupt(state["log"])}).compile(carry="messages", store=store)
    asked = app.invoke({}, CONFIG)["__interrupt__"]
    assert [one.value for one in asked] == [["a", "b"]]
    held = app.get_result(CONFIG)
    assert (held.status, held.state, held.interrupts) == ("interrupted", None, tuple(asked))
    assert held.nodes["a"].state == {"log": ["a"], "total": 1}
    assert app.invoke(Command(resume="yes"), CONFIG) == {"log": ["a", "b", "yes"], "total": 3}
    assert app.get_result(CONFIG).status == "completed"


def test_a_failed_node_stays_failed(store: Store) -> None:
    app = diamond(lambda state: 1 / 0).compile(carry="messages", store=store)
    assert app.run({}, CONFIG).status == "partial"
    kept = app.get_result(CONFIG)
    assert (kept.status, kept.state) == ("partial", None)
    assert kept.nodes["c"].error == "ZeroDivisionError: division by zero"


def test_a_thread_can_go_on_from_a_former_state(store: Store) -> None:
    answers = iter(["first", "second"])
    app = diamond(lambda state: {"log": next(answers)}).compile(carry="messages", store=store)
    assert app.invoke({}, CONFIG)["log"] == ["a", "b", "first"]
    before = next(one for one in app.get_state_history(CONFIG) if one.next == ("c",))
    assert app.invoke(None, before.config)["log"] == ["a", "b", "second"]
    assert app.get_state(CONFIG).values["log"] == ["a", "b", "second"]
