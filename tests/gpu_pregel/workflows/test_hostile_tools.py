"""Tools and models that go on when they are cancelled, cancel themselves, or return text that cannot be stored."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

from gpu_pregel.errors import ToolError
from gpu_pregel.workflows import ScriptedModel, create_agent, limited_waits, mcp_tools, messages, tool
from tests.packages import needs


def answers(*tools: Any, **options: Any) -> list[str]:
    """Return what a model that calls each tool once is told, and its own answer."""
    calls = [messages.tool_call(one.name, {}) for one in tools]
    agent = create_agent(ScriptedModel([messages.assistant("", calls), "end"]), tools, **options)
    return [one["content"] for one in agent.invoke({"messages": "Hello!"})["messages"][2:]]


def test_an_async_tool_that_goes_on_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limited_waits, "GRACE", 0.01)
    cancellations: list[int] = []

    async def stubborn() -> None:
        while len(cancellations) < 2:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                cancellations.append(1)

    told = answers(tool(stubborn, timeout=0.02))
    assert told == ["The tool stubborn failed: no result after 0.02 s; it may still be running", "end"]
    assert cancellations


async def cancelled() -> None:
    raise asyncio.CancelledError


async def cancels_itself() -> None:
    asyncio.current_task().cancel()  # type: ignore[union-attr]
    await asyncio.sleep(60)


def cancelled_on_a_thread() -> None:
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    "made",
    [tool(cancelled), tool(cancelled, timeout=60), tool(cancels_itself, timeout=60), tool(cancelled_on_a_thread)],
)
def test_a_tool_that_is_cancelled_from_within_has_failed(made: Any) -> None:
    assert answers(made) == [f"The tool {made.name} failed: CancelledError", "end"]


@pytest.mark.parametrize("timeout", [None, 60.0])
def test_a_cancelled_call_cancels_its_tools(timeout: float | None) -> None:
    seen = []

    async def main() -> None:
        has_begun = asyncio.Event()

        async def wait() -> None:
            has_begun.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                seen.append("cancelled")
                raise

        model = ScriptedModel([messages.assistant("", [messages.tool_call("wait", {})]), "end"])
        agent = create_agent(model, [tool(wait, timeout=timeout)])
        call = asyncio.create_task(agent.ainvoke({"messages": "Hello!"}))
        await has_begun.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(main())
    assert seen == ["cancelled"]


def test_text_that_cannot_be_stored() -> None:
    def names() -> list[str]:
        return ["caf\udce9", "\ud83d\ude00"]

    def fail() -> None:
        raise FileNotFoundError("caf\udce9")

    assert answers(tool(names), tool(fail)) == [
        '["caf\N{REPLACEMENT CHARACTER}", "\N{GRINNING FACE}"]',
        "The tool fail failed: FileNotFoundError: caf\N{REPLACEMENT CHARACTER}",
        "end",
    ]


@pytest.mark.parametrize("streams", [False, True])
def test_an_answer_that_cannot_be_stored(streams: bool) -> None:
    def model(given: Any, tools: Any) -> Any:
        if len(given) == 1:
            return messages.assistant("\ud83d", [messages.tool_call("say", {"text": "\ud83d\ude00"})])
        return stream() if streams else "\ud83d\ude00"

    def stream() -> Any:
        yield "\ud83d"
        yield "\ude00"

    agent = create_agent(model, [tool(lambda text: text, name="say")])
    tokens = [token for token, _ in agent.stream({"messages": "Hello!"}, stream_mode="messages")]
    assert tokens == (["\N{REPLACEMENT CHARACTER}"] * 2 if streams else [])
    told = [one["content"] for one in agent.invoke({"messages": "Hello!"})["messages"]]
    assert told == ["Hello!", "\N{REPLACEMENT CHARACTER}", "\N{GRINNING FACE}", "\N{GRINNING FACE}"]


def test_an_mcp_server_that_refuses_at_length() -> None:
    needs("mcp", "mcp")
    program = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        error = {"code": -32000, "message": "no way " * 10000}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": error}), flush=True)
"""
    with pytest.raises(ToolError, match=r"cannot be started: .*: no way no way") as caught:
        mcp_tools(sys.executable, ["-c", program])
    assert len(str(caught.value)) < 3000
