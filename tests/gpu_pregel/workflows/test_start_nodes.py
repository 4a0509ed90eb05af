"""The node of the start, which superstep 0 executes, as the origin's document 000 has it."""

from __future__ import annotations

from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError
from gpu_pregel.workflows import END, START, StateGraph
from tests.gpu_pregel.workflows.test_origin import S0, Trail, after, outcomes, stepped


def started(start: Any, **options: Any) -> StateGraph:
    """A graph whose start has a node."""
    graph = StateGraph(Trail).add_node(START, start, **options).add_node("llm_call", stepped("llm_call"))
    return graph.add_edge(START, "llm_call").add_edge("llm_call", END)


def test_000_the_start_executes_its_node_in_superstep_0_and_sends_the_new_state() -> None:
    app = started(stepped("start")).compile(carry="messages")
    result = after(1, app.vertices(S0), app.compute)
    assert outcomes(result) == {START: ("ok", {"trail": ["asked", "start"]}), "llm_call": None, END: None}
    assert app.invoke(S0) == {"trail": ["asked", "start", "llm_call"]}
    assert app.run(S0).nodes[START].state == {"trail": ["asked", "start"]}


def test_000_a_start_whose_node_fails_stores_the_error_and_sends_nothing() -> None:
    app = started(lambda state: 1 / 0).compile(carry="messages")
    found = app.run(S0)
    assert (found.status, found.nodes[START].error) == ("partial", "ZeroDivisionError: division by zero")
    assert found.nodes["llm_call"].status == "idle"


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("carry", ["messages", "shared"])
def test_000_a_node_of_the_start_sees_the_input_and_replaces_keys_of_it(carry: Any, workers: int) -> None:
    def start(state: Trail) -> dict[str, Any]:
        return {"trail": f"got {state['answer']}", "answer": state["answer"].upper()}

    app = started(start).compile(carry=carry, workers=workers)
    given = {"trail": ["asked"], "answer": "none"}
    assert app.invoke(given) == {"trail": ["asked", "got none", "llm_call"], "answer": "NONE"}


def test_000_a_node_of_the_start_may_be_async_tried_again_and_handled() -> None:
    tried: list[int] = []

    async def start(state: Trail, context: Any) -> dict[str, Any]:
        tried.append(context.attempt)
        raise TimeoutError("later")

    def handle(state: Trail, error: Exception) -> dict[str, Any]:
        return {"trail": str(error)}

    retry = gp.agents.RetryPolicy(attempts=2, wait=0)
    for carry in ("messages", "shared"):
        tried.clear()
        options: Any = {"carry": carry}
        app = started(start, retry=retry, error_handler=handle).compile(**options)
        assert app.invoke(S0) == {"trail": ["asked", "later", "llm_call"]}
        assert tried == [1, 2]


def test_000_every_input_of_a_thread_passes_the_node_of_the_start() -> None:
    app = started(stepped("start")).compile(store=gp.MemoryStore())
    config = {"configurable": {"thread_id": "1"}}
    app.invoke({"trail": ["one"]}, config)
    assert app.invoke({"trail": ["two"]}, config)["trail"] == ["one", "start", "llm_call", "two", "start", "llm_call"]


@pytest.mark.parametrize("carry", ["messages", "shared"])
def test_000_streams_show_the_update_of_the_node_of_the_start(carry: Any) -> None:
    def start(state: Trail) -> dict[str, Any]:
        return {"trail": "started", "answer": "new"}

    given = {"trail": ["asked"], "answer": "old"}
    updates = [{START: {"trail": "started", "answer": "new"}}, {"llm_call": {"trail": "llm_call"}}]
    assert [*started(start).compile(carry=carry).stream(given)] == updates
    silent = started(lambda state: None).compile(carry=carry)
    assert [*silent.stream(given)] == [{START: None}, updates[1]]


def test_000_what_the_start_cannot_have() -> None:
    with pytest.raises(ArgumentError, match="'__start__' already"):
        started(stepped("start")).add_node(START, stepped("again"))
    with pytest.raises(ArgumentError, match="the start's node is a function that superstep 0 computes"):
        started(stepped("start"), defer=True)
    with pytest.raises(ArgumentError, match="'__end__' cannot be the name of a node"):
        StateGraph(Trail).add_node(END, stepped("end"))
