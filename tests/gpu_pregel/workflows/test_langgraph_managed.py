"""Managed values of LangGraph's graphs: the supersteps that are left, as LangGraph counts them."""

from __future__ import annotations

import asyncio
import operator
import warnings
from typing import Annotated, Any, TypedDict

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError
from gpu_pregel.workflows import from_langgraph
from tests.packages import needs

needs("langgraph", "langgraph")

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel  # noqa: E402
from langchain_core.messages import AIMessage  # noqa: E402
from langgraph.checkpoint.memory import InMemorySaver  # noqa: E402
from langgraph.graph import END, START, StateGraph  # noqa: E402
from langgraph.managed import IsLastStep, RemainingSteps  # noqa: E402
from langgraph.prebuilt import create_react_agent  # noqa: E402
from pydantic import BaseModel  # noqa: E402

THREAD: dict[str, Any] = {"configurable": {"thread_id": "1"}}


class Counted(TypedDict):
    log: Annotated[list[str], operator.add]
    left: RemainingSteps
    last: IsLastStep


class Left(TypedDict):
    left: RemainingSteps


@pytest.mark.parametrize("limit", [4, 7, 25])
def test_the_remaining_supersteps_are_those_of_langgraph(limit: int) -> None:
    def count(state: Counted) -> dict[str, Any]:
        return {"log": [f"{state['left']} {state['last']}"]}

    async def count_async(state: Left) -> dict[str, Any]:
        return {"log": [f"{sorted(state.items())}"]}

    def route(state: Counted) -> str:
        return END if state["left"] <= 2 else "count"

    builder = StateGraph(Counted).add_node(count).add_node(count_async).add_edge(START, "count")
    builder.add_edge("count", "count_async").add_conditional_edges("count_async", route)
    config: Any = {"recursion_limit": limit, **THREAD}
    theirs = builder.compile(checkpointer=InMemorySaver())
    app = from_langgraph(builder).compile(store=gp.MemoryStore())
    for _ in range(2):
        expected = asyncio.run(theirs.ainvoke({"log": []}, config))
        assert len(expected["log"]) >= limit - 2
        assert app.invoke({"log": []}, config) == expected
    assert app.get_state(THREAD).values.keys() == {"log"}


def test_a_managed_value_of_a_model_is_refused() -> None:
    class Model(BaseModel):
        left: RemainingSteps
        x: int = 0

    builder = StateGraph(Model).add_node("a", lambda state: None).add_edge(START, "a")
    with pytest.raises(ArgumentError, match="key 'left': a managed value in Model: make that a TypedDict"):
        from_langgraph(builder)


class Model(GenericFakeChatModel):
    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def make_agent() -> Any:
    asked = AIMessage("", tool_calls=[{"name": "add", "args": {"a": 2, "b": 3}, "id": "1"}])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it has moved to the package langchain
        return create_react_agent(Model(messages=iter([asked, AIMessage("It is 5.")])), [add])


@pytest.mark.parametrize(
    ("limit", "expected"), [(25, ["2 + 3?", "", "5", "It is 5."]), (2, ["2 + 3?", "Sorry, need more steps"])]
)
def test_the_ready_agent_of_langgraph_is_taken_over(limit: int, expected: list[str]) -> None:
    given: Any = {"messages": [("user", "2 + 3?")]}
    config: Any = {"recursion_limit": limit}
    theirs = [message.content for message in make_agent().invoke(given, config)["messages"]]
    assert [text[:22] for text in theirs] == expected
    app = from_langgraph(make_agent().builder).compile()
    assert [message.content for message in app.invoke(given, config)["messages"]] == theirs
