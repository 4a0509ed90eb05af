"""Questions of nodes: several at once, in any order, in loops, sent tasks and subgraphs; breakpoints."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import AgentError, ArgumentError, CodecError
from gpu_pregel.host.stores.store import Store
from gpu_pregel.workflows import END, START, Command, CompiledGraph, Send, StateGraph, interrupt
from tests.gpu_pregel.workflows.small_graphs import WAYS, Notes, acall, asked, call, chain, single, thread


def several(count: Counter[str], **options: Any) -> CompiledGraph:
    """Return a graph in which "a" asks once and "b" twice, beside "c", which asks nothing, and "z" joins them."""

    def node(name: str, questions: int) -> Callable[..., Any]:
        def run(state: Any, context: Any) -> dict[str, Any]:
            count[name] += 1
            count[context.key] += 1
            return {"log": [(name, *(interrupt(f"{name}{k}") for k in range(questions)))]}

        return run

    graph = StateGraph(Notes)
    for name, questions in (("a", 1), ("b", 2), ("c", 0)):
        graph.add_node(name, node(name, questions)).add_edge(START, name)
    graph.add_node("z", lambda state: {"log": "z"}).add_edge(["a", "b", "c"], "z")
    app: CompiledGraph = graph.compile(**options)
    return app


END_OF_SEVERAL = [("a", "A0"), ("b", "B0", "B1"), ("c",), "z"]


@WAYS
def test_answers_together_and_finished_siblings_do_not_run_again(way: Callable[..., Any], store: Store) -> None:
    count: Counter[str] = Counter()
    app, found, rounds = several(count, store=store), way(several(count, store=store), {}, thread()), 0
    assert asked(found) == ["a0", "b0"]
    while questions := found.get("__interrupt__"):
        found, rounds = way(app, Command(resume={one.id: one.value.upper() for one in questions}), thread()), rounds + 1
    assert found["log"] == END_OF_SEVERAL
    assert (rounds, count["a"], count["b"], count["c"]) == (2, 2, 3, 1)
    assert len(count) == 3 + 3  # a key for each task, the same in every attempt


@pytest.mark.parametrize("order", ["a0 b0 b1", "b0 a0 b1", "b0 b1 a0"])
def test_answers_one_by_one_in_any_order(order: str) -> None:
    count: Counter[str] = Counter()
    app = several(count, store=gp.MemoryStore())
    found = app.invoke({}, thread())
    for payload in order.split():
        name = next(one.id for one in found["__interrupt__"] if one.value == payload)
        found = app.invoke(Command(resume={name: payload.upper()}), thread())
    assert found["log"] == END_OF_SEVERAL
    assert (count["a"], count["b"], count["c"]) == (2, 3, 1)


def test_questions_in_workers() -> None:
    app = several(Counter(), store=gp.MemoryStore(), workers=2)
    found = app.invoke({}, thread())
    while questions := found.get("__interrupt__"):
        found = app.invoke(Command(resume={one.id: one.value.upper() for one in questions}), thread())
    assert found["log"] == END_OF_SEVERAL


WRONG_ANSWERS: dict[str, tuple[Any, type[Exception], str]] = {
    "one of several": ("yes", ArgumentError, "several questions are open: .*'0:a:0', '0:b:0'"),
    "none": ({}, ArgumentError, "several questions are open"),
    "nothing": (None, ArgumentError, "several questions are open"),
    "unknown name": ({"z": 1}, ArgumentError, "several questions are open"),
    "one unknown name": ({"0:a:0": 1, "z": 1}, ArgumentError, "several questions are open"),
    "later question": ({"0:b:1": 1}, ArgumentError, "no question '0:b:1' is open; open questions: '0:a:0', '0:b:0'"),
    "unstorable": ({"0:a:0": object()}, CodecError, "the answer is of type object"),
}


@WAYS
@pytest.mark.parametrize("case", WRONG_ANSWERS)
def test_wrong_answers_change_nothing(way: Callable[..., Any], case: str) -> None:
    answer, error, text = WRONG_ANSWERS[case]
    app = several(Counter(), store=gp.MemoryStore())
    before = app.invoke({}, thread())
    with pytest.raises(error, match=text):
        way(app, Command(resume=answer), thread())
    assert way(app, None, thread()) == before


def test_a_question_cannot_be_answered_twice() -> None:
    graph = StateGraph(Notes).add_node("ask", lambda state: {"x": state["x"] + 1, "log": [interrupt("more?")]})
    graph.add_conditional_edges("ask", lambda state: "ask" if state["x"] < 2 else END, ["ask", END])
    app = graph.add_edge(START, "ask").compile(store=gp.MemoryStore())
    (first,) = app.invoke({"x": 0}, thread())["__interrupt__"]
    answer = Command(resume={first.id: "yes"})
    (second,) = app.invoke(answer, thread())["__interrupt__"]
    with pytest.raises(ArgumentError, match=f"no question '{first.id}' is open; open questions: '{second.id}'"):
        app.invoke(answer, thread())
    assert app.invoke(Command(resume="no"), thread())["log"] == ["yes", "no"]
    with pytest.raises(ArgumentError, match="waits for no answer"):
        app.invoke(Command(resume="no"), thread())


@pytest.mark.parametrize("answer", [None, False, 0, "", [], {}, {"yes": True}, {"10:30": "late"}, ("a", 1)])
def test_any_data_is_an_answer(answer: Any) -> None:
    app = single(lambda state: {"log": [interrupt()]}, options={"store": gp.MemoryStore()})
    app.invoke({}, thread())
    assert app.invoke(Command(resume=answer), thread())["log"] == [answer]


@pytest.mark.parametrize("caught", [Exception, BaseException])
def test_a_question_passes_handlers_of_exceptions(caught: type[BaseException]) -> None:
    def node(state: Any) -> dict[str, Any]:
        try:
            return {"log": [interrupt("?")]}
        except caught:
            return {"log": ["caught"]}

    app = single(node, options={"store": gp.MemoryStore()}, error_handler=lambda state, error: {"log": "handled"})
    assert asked(app.invoke({}, thread())) == ["?"]
    assert app.invoke(Command(resume="yes"), thread())["log"] == ["yes"]


def test_sent_tasks_ask_each_for_itself() -> None:
    runs: Counter[int] = Counter()

    def work(number: int) -> dict[str, Any]:
        runs[number] += 1
        return {"log": [(number, interrupt(number))]}

    graph = StateGraph(Notes).add_node("work", work)
    graph.add_conditional_edges(START, lambda state: [Send("work", k) for k in range(4)])
    app = graph.compile(store=gp.MemoryStore())
    found = app.invoke({}, thread())
    assert asked(found) == [0, 1, 2, 3]
    for number in (3, 1, 0, 2):
        name = next(one.id for one in found["__interrupt__"] if one.value == number)
        found = app.invoke(Command(resume={name: number * 10}), thread())
    assert found["log"] == [(0, 0), (1, 10), (2, 20), (3, 30)]
    assert set(runs.values()) == {2}


@WAYS
@pytest.mark.parametrize("workers", [0, 1])
def test_without_a_store_a_question_is_an_error(way: Callable[..., Any], workers: int) -> None:
    app = single(lambda state: {"log": interrupt("?")}, "ask", options={"workers": workers})
    with pytest.raises(ArgumentError, match=r"node 'ask' asks a question, .* pass compile\(store=...\)"):
        way(app, {})


def test_questions_outside_of_nodes() -> None:
    with pytest.raises(AgentError, match="only in a node of a state graph"):
        interrupt("?")


def test_a_new_input_drops_open_questions(store: Store) -> None:
    app = several(Counter(), store=store)
    app.invoke({}, thread())
    assert asked(app.invoke({"log": "in"}, thread())) == ["a0", "b0"]
    state = app.get_state(thread())
    assert (state.next, state.values["log"]) == (("a", "b"), ["in", ("c",)])
    assert [[one.value for one in task.interrupts] for task in state.tasks] == [["a0"], ["b0"], []]


# A former state is answered otherwise.


@WAYS
def test_another_answer_to_a_former_question(way: Callable[..., Any], store: Store) -> None:
    app = chain("a", store=store)
    graph = StateGraph(Notes).add_node("a", lambda state: {"log": "a"}).add_edge(START, "a")
    app = graph.add_node("ask", lambda state: {"log": interrupt("?")}).add_edge("a", "ask").compile(store=store)
    way(app, {}, thread())
    before = app.get_state(thread())
    assert way(app, Command(resume="yes"), thread())["log"] == ["a", "yes"]
    assert way(app, Command(resume="no"), before.config)["log"] == ["a", "no"]
    assert app.get_state(thread()).values["log"] == ["a", "no"]
    assert asked(way(app, None, before.config)) == ["?"]


# Breakpoints.

STOPS: list[tuple[dict[str, Any], list[str]]] = [
    ({"interrupt_before": "*"}, ["", "a", "ab", "abc"]),
    ({"interrupt_after": "*"}, ["a", "ab", "abc"]),
    ({"interrupt_before": "*", "interrupt_after": "*"}, ["", "a", "ab", "abc"]),
    ({"interrupt_before": ["b"], "interrupt_after": ["b"]}, ["a", "ab", "abc"]),
    ({"interrupt_after": ["a", "c"]}, ["a", "abc"]),
    ({}, ["abc"]),
]


@WAYS
@pytest.mark.parametrize(("stops", "logs"), STOPS)
def test_breakpoints(way: Callable[..., Any], stops: dict[str, Any], logs: list[str]) -> None:
    app, given = chain(store=gp.MemoryStore(), **stops), {"x": 0}
    for log in logs:
        assert "".join(way(app, given, thread())["log"]) == log
        assert app.get_state(thread()).next == tuple("abc"[len(log) : len(log) + 1])
        given = None  # type: ignore[assignment]
    assert "".join(way(app, None, thread())["log"]) == "abc"


@WAYS
def test_a_new_input_at_a_breakpoint_begins_anew(way: Callable[..., Any], store: Store) -> None:
    app = chain(store=store, interrupt_before=["b"])
    way(app, {"x": 0}, thread())
    assert way(app, {"x": 10}, thread()) == {"x": 11, "log": ["a", "a"]}
    assert way(app, Command(goto="c"), thread()) == {"x": 12, "log": ["a", "a", "c"]}


@WAYS
def test_breakpoints_need_a_store(way: Callable[..., Any]) -> None:
    with pytest.raises(ArgumentError, match="interrupt_before and interrupt_after need a store"):
        way(chain(interrupt_before="*"), {"x": 0})


# Subgraphs.


def nested(depth: int, leaf: Callable[..., Any], count: Counter[str], **options: Any) -> CompiledGraph:
    """Return a graph whose leaf is so many graphs deep; at each level a node runs before."""
    inner: Any = leaf
    for level in range(depth):

        def before(state: Any, level: int = level) -> None:
            count[f"before {level}"] += 1

        graph = StateGraph(Notes).add_node("before", before).add_node("inner", inner).add_edge("before", "inner")
        inner = graph.add_edge(START, "before").compile(**(options if level == depth - 1 else {}))
    app: CompiledGraph = inner
    return app


@WAYS
@pytest.mark.parametrize("depth", [1, 2])
def test_an_answer_without_id_answers_one_question(way: Callable[..., Any], depth: int) -> None:
    """LangGraph 1.2 keeps it until the superstep is committed: the answer to "one" would also be that to "three"."""

    def leaf(state: Any) -> dict[str, Any]:
        return {"log": [interrupt(payload) for payload in ("one", "two", "three")]}

    app = nested(depth, leaf, Counter(), store=gp.MemoryStore())
    assert asked(way(app, {}, thread())) == ["one"]
    found = way(app, Command(resume=1), thread())
    assert asked(found) == ["two"]
    assert asked(way(app, None, thread())) == ["two"]
    assert asked(way(app, Command(resume={found["__interrupt__"][0].id: 2}), thread())) == ["three"]
    assert way(app, Command(resume=3), thread())["log"] == [1, 2, 3]


@WAYS
@pytest.mark.parametrize("depth", [2, 5])
@pytest.mark.parametrize("is_async", [False, True])
def test_questions_in_subgraphs(way: Callable[..., Any], depth: int, is_async: bool, store: Store) -> None:
    count: Counter[str] = Counter()

    def leaf(state: Any, context: Any) -> dict[str, Any]:
        count[context.key] += 1
        return {"x": interrupt("one") + interrupt("two")}

    async def async_leaf(state: Any, context: Any) -> dict[str, Any]:
        await asyncio.sleep(0)
        return leaf(state, context)

    app = nested(depth, async_leaf if is_async else leaf, count, store=store)
    found = way(app, {"x": 0}, thread())
    assert asked(found) == ["one"]
    assert asked(way(app, Command(resume=1), thread())) == ["two"]
    assert way(app, Command(resume=2), thread())["x"] == 3
    assert sorted(count.values()) == [*[1] * depth, 3]


@pytest.mark.parametrize(("way", "is_async"), [(call, False), (acall, True)])
def test_questions_in_subgraphs_on_workers(way: Callable[..., Any], is_async: bool) -> None:
    """Nothing keeps the run of the subgraph, which is repeated with the answers."""

    def leaf(state: Any) -> dict[str, Any]:
        return {"x": interrupt("one") + interrupt("two")}

    async def async_leaf(state: Any) -> dict[str, Any]:
        return leaf(state)

    app = nested(2, async_leaf if is_async else leaf, Counter(), store=gp.MemoryStore(), workers=1)
    assert asked(way(app, {"x": 0}, thread())) == ["one"]
    assert asked(way(app, Command(resume=1), thread())) == ["two"]
    assert way(app, Command(resume=2), thread())["x"] == 3


@pytest.mark.parametrize("store", ["sqlite", "postgres"], indirect=True)
def test_nodes_of_subgraphs_on_workers_do_not_run_again(store: Store, tmp_path: Path) -> None:
    log = tmp_path / "log"

    def note(name: str) -> None:
        with log.open("a") as file:
            file.write(name)

    def before(state: Any) -> None:
        note("b")

    def ask(state: Any) -> dict[str, Any]:
        note("q")
        return {"log": interrupt("?")}

    def die(state: Any) -> None:
        note("d")
        if log.read_text().count("d") == 1:
            os.kill(os.getpid(), 9)

    inner = StateGraph(Notes).add_sequence([before, ask, die]).add_edge(START, "before").compile()
    retry = gp.agents.RetryPolicy(attempts=2, wait=0)
    graph = StateGraph(Notes).add_node("sub", inner, retry=retry).add_edge(START, "sub")
    app = graph.compile(store=store, workers=1)
    assert asked(app.invoke({}, thread())) == ["?"]
    assert app.invoke(Command(resume="yes"), thread())["log"] == ["yes"]
    assert log.read_text() == "bqqdd"
    assert [row.id for row in store.runs()] == ["t", "t > sub @0"]


def test_a_subgraph_asks_several_questions_at_once() -> None:
    count: Counter[str] = Counter()
    graph = StateGraph(Notes).add_node("sub", several(count)).add_edge(START, "sub")
    app = graph.compile(store=gp.MemoryStore())
    found = app.invoke({}, thread())
    assert asked(found) == ["a0", "b0"]
    found = app.invoke(Command(resume={found["__interrupt__"][1].id: "B0"}), thread())
    assert asked(found) == ["a0", "b1"]
    answers = {one.id: one.value.upper() for one in found["__interrupt__"]}
    assert app.invoke(Command(resume=answers), thread())["log"] == END_OF_SEVERAL
    assert (count["a"], count["b"], count["c"]) == (2, 3, 1)
