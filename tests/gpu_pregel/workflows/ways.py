"""The ways of asking a ``ChatModel``, and a stream that is the same for all of them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gpu_pregel.host.agents.retry import RetryPolicy
from gpu_pregel.workflows import ChatModel
from tests.gpu_pregel.workflows.chat_server import DONE, ChatServer, chunk

KEY = "sk-secret-123"
AT_ONCE = RetryPolicy(attempts=3, wait=0)


def model(server: ChatServer, **options: Any) -> ChatModel:
    return ChatModel("test", base_url=server.url, **{"api_key": KEY, "retry": AT_ONCE, "timeout": 20, **options})


def call(model: ChatModel, *given: Any) -> Any:
    try:
        return model(*given)
    finally:
        model.close()


def acall(model: ChatModel, *given: Any) -> Any:
    return asyncio.run(model.acall(*given))


def stream(model: ChatModel, *given: Any) -> Any:
    try:
        *texts, message = model.stream(*given)
    finally:
        model.close()
    assert "".join(map(str, texts)) == message["content"]  # type: ignore[index]
    return message


def astream(model: ChatModel, *given: Any) -> Any:
    async def collect() -> list[Any]:
        return [piece async for piece in model.astream(*given)]

    *texts, message = asyncio.run(collect())
    assert "".join(texts) == message["content"]
    return message


WAYS = pytest.mark.parametrize("way", [call, acall, stream, astream])
STREAMS = pytest.mark.parametrize("way", [stream, astream])


def fragment(index: int, arguments: str | None = None, **more: Any) -> bytes:
    function = {key: value for key, value in (("name", more.pop("name", None)), ("arguments", arguments)) if value}
    return chunk({"tool_calls": [{"index": index, "function": function, **more}]})


ANSWER = [
    chunk({"role": "assistant", "content": ""}),
    chunk({"content": "Größe: "}),
    chunk({"content": "5\u2028m 🙂"}),
    fragment(0, "", id="a", name="add"),
    fragment(0, '{"x"'),
    fragment(1, '{"y": "ü"}', id="b", name="sub"),
    fragment(0, ": 1}"),
    chunk({}, "tool_calls"),
    chunk(usage={"total_tokens": 7}),
    DONE,
]
WHOLE = {
    "role": "assistant",
    "content": "Größe: 5\u2028m 🙂",
    "id": "chat-1",
    "tool_calls": [
        {"id": "a", "name": "add", "arguments": {"x": 1}},
        {"id": "b", "name": "sub", "arguments": {"y": "ü"}},
    ],
    "finish_reason": "tool_calls",
    "usage": {"total_tokens": 7},
}
