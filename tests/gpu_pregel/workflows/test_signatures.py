"""Parameters of nodes and routers, and objects of LangGraph that are passed where they cannot be used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gpu_pregel.errors import GpuPregelError
from gpu_pregel.workflows import START, NodeContext, StateGraph
from gpu_pregel.workflows.signatures import langgraph_hint, takes_two
from tests.gpu_pregel.workflows.small_graphs import Notes, chain, noted, single
from tests.packages import needs

needs("langgraph", "langgraph")

import langgraph.graph as lg  # noqa: E402
from langchain_core.messages import AIMessage  # noqa: E402
from langchain_core.runnables import RunnableLambda  # noqa: E402
from langgraph.types import Command, Send  # noqa: E402


def named_config(state: Notes, config: NodeContext) -> dict[str, Any]:
    return {"log": config.node}


def test_a_context_may_have_any_name_if_it_is_annotated() -> None:
    assert single(named_config).invoke({})["log"] == ["a"]


def test_parameters_with_defaults_are_left_alone() -> None:
    assert single(lambda state, config=3, *, writer=4: {"x": config + writer}).invoke({})["x"] == 7


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda a, b: None, True),
        (lambda a, b=1, *, c=2: None, True),
        (lambda *all: None, True),
        (max, True),
        (lambda a: None, False),
        (lambda a, b, c: None, False),
        (lambda a, b, *, c: None, False),
    ],
)
def test_functions_of_two(function: Callable[..., Any], expected: bool) -> None:
    assert takes_two(function) is expected


def route(answer: Any) -> Any:
    return StateGraph(Notes).add_node("a", noted("a")).add_conditional_edges(START, lambda state: answer).compile()


FROM_LANGGRAPH: dict[str, tuple[Callable[[], Any], str]] = {
    "builder": (lambda: StateGraph(Notes).add_node("a", lg.StateGraph(Notes)), "take it over by from_langgraph"),
    "Runnable": (
        lambda: StateGraph(Notes).add_node("a", RunnableLambda(noted("a"))),
        "pass its method invoke, or take a graph",
    ),
    "input": (
        lambda: chain().invoke(Command(resume=1)),
        "the input gave a Command, .*; it is LangGraph's: use that of",
    ),
    "output": (lambda: single(lambda state: Command(goto="a")).invoke({}), "node 'a' gave a Command, .*; it is LangGr"),
    "route": (lambda: route(Send("a", {})).invoke({}), "Send objects, or pass routes; it is LangGraph's: use that of"),
}


@pytest.mark.parametrize("case", FROM_LANGGRAPH)
def test_what_to_use_in_place_of_an_object_of_langgraph(case: str) -> None:
    call, message = FROM_LANGGRAPH[case]
    with pytest.raises(GpuPregelError, match=message):
        call()


def test_the_method_of_a_runnable_is_a_node() -> None:
    assert single(RunnableLambda(lambda state: {"x": 4}).invoke).invoke({})["x"] == 4


@pytest.mark.parametrize("given", [3, "a", AIMessage("a"), Notes(x=1, log=[])])
def test_there_is_no_hint_for_other_objects(given: Any) -> None:
    assert langgraph_hint(given) == ""
