"""Tokens of LangChain's models in nodes of LangGraph's graphs: the chunks that LangGraph itself yields."""

from __future__ import annotations

import asyncio
from itertools import cycle
from typing import Any

import pytest

from gpu_pregel.workflows import from_langgraph
from tests.packages import needs

needs("langgraph", "langgraph")

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel  # noqa: E402
from langchain_core.messages import AIMessage  # noqa: E402
from langgraph.graph import START, MessagesState, StateGraph  # noqa: E402

GIVEN: dict[str, Any] = {"messages": [("user", "Hi!")]}


class Model(GenericFakeChatModel):
    """Answers, and counts how often its answer was streamed."""

    streamed: list[int]

    def _stream(self, *arguments: Any, **options: Any) -> Any:
        self.streamed.append(1)
        return super()._stream(*arguments, **options)


def builder(*, is_async: bool = False, tags: tuple[str, ...] = ()) -> tuple[Any, Model]:
    """Return a graph whose node asks a model, which answers with two words."""
    model = Model(messages=cycle([AIMessage("Good morning")]), streamed=[])
    asked = model.with_config(tags=list(tags))

    def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [asked.invoke(state["messages"])]}

    async def ask_async(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await asked.ainvoke(state["messages"])]}

    node: Any = ask_async if is_async else ask
    return StateGraph(MessagesState).add_node("ask", node).add_edge(START, "ask"), model


@pytest.mark.parametrize("is_async", [False, True])
def test_tokens_are_the_chunks_that_langgraph_yields(is_async: bool) -> None:
    graph, _ = builder(is_async=is_async)

    async def contents(app: Any) -> list[Any]:
        items = app.astream(GIVEN, stream_mode="messages")
        return [(type(chunk).__name__, chunk.content) async for chunk, _ in items]

    theirs = asyncio.run(contents(graph.compile()))
    assert theirs == [("AIMessageChunk", text) for text in ("Good", " ", "morning")]
    app = from_langgraph(graph).compile()
    assert asyncio.run(contents(app)) == theirs
    found = list(app.stream(GIVEN, stream_mode=["messages", "values"]))
    assert [(mode, item[0].content, item[1]["node"]) for mode, item in found if mode == "messages"] == [
        ("messages", text, "ask") for text in ("Good", " ", "morning")
    ]
    assert found[-1][1]["messages"][-1].content == "Good morning"


def test_tokens_of_a_graph_within_a_graph() -> None:
    inner, _ = builder()
    graph = StateGraph(MessagesState).add_node("inner", inner.compile()).add_edge(START, "inner")
    items = from_langgraph(graph).compile().stream(GIVEN, stream_mode="messages")
    assert [chunk.content for chunk, _ in items] == ["Good", " ", "morning"]


def test_models_with_the_tag_are_left_out() -> None:
    graph, model = builder(tags=("nostream",))
    assert list(from_langgraph(graph).compile().stream(GIVEN, stream_mode="messages")) == []
    assert model.streamed == [1]


@pytest.mark.parametrize("mode", ["values", "custom"])
def test_models_do_not_stream_unless_tokens_are_asked_for(mode: str) -> None:
    graph, model = builder()
    list(from_langgraph(graph).compile().stream(GIVEN, stream_mode=mode))
    assert model.streamed == []
