"""Streams of tokens, failures of a model's server, and agents as tools of agents."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import AgentsFailedError, ArgumentError, ArgumentTypeError, ModelError
from gpu_pregel.host.agents.retry import RetryPolicy
from gpu_pregel.workflows import ChatModel, Command, ToolContext, agent_tool, create_agent, messages, tool
from tests.gpu_pregel.workflows.agent_programs import (
    GOOD,
    THREAD,
    Weather,
    add,
    calls,
    contents,
    plain,
    script,
)
from tests.gpu_pregel.workflows.chat_server import DONE, body, chat_server, chunk, completion, events, wait_for_client
from tests.packages import needs

needs("httpx", "models")


def test_stream_of_tokens_and_updates() -> None:
    @tool
    def work(context: ToolContext) -> str:
        context.emit({"progress": 0.5})
        return "done"

    agent = create_agent(script(calls(("work", {}), text="Let me see. "), "It is done."), [work])
    items = list(agent.stream({"messages": "Go."}, stream_mode=["messages", "custom", "updates"]))
    tokens = [(data[0], data[1]["node"]) for mode, data in items if mode == "messages"]
    words = ["Let ", "me ", "see. ", "It ", "is ", "done."]
    assert tokens == [(word, "llm_call") for word in words]
    assert [data for mode, data in items if mode == "custom"] == [{"progress": 0.5}]
    assert [next(iter(data)) for mode, data in items if mode == "updates"] == ["llm_call", "execute_tools", "llm_call"]
    silent = create_agent(script("It is done."), streams=False)
    assert list(silent.stream({"messages": "Go."}, stream_mode="messages")) == []


def test_chat_model_streams_through_the_agent() -> None:
    first = events(
        chunk({"content": "Let me "}),
        chunk({"content": "add."}),
        chunk({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "add", "arguments": '{"a": 1,'}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": ' "b": 2}'}}]}, "tool_calls"),
        DONE,
    )
    with chat_server(first, events(chunk({"content": "3."}, "stop"), DONE)) as server:
        agent = create_agent(ChatModel("test", base_url=server.url, api_key="k"), [add])
        items = list(agent.stream({"messages": "1 + 2?"}, stream_mode=["messages", "values"]))
    assert [data[0] for mode, data in items if mode == "messages"] == ["Let me ", "add.", "3."]
    assert contents(items[-1][1]) == ["1 + 2?", "Let me add.", "3", "3."]
    assert server.requests[1]["messages"][2] == {"role": "tool", "content": "3", "tool_call_id": "c"}


def test_broken_stream_is_repeated_by_the_run() -> None:
    broken = events(chunk({"content": "Hi,"}), is_complete=False)
    with chat_server(broken, events(chunk({"content": "Hello."}, "stop"), DONE)) as server:
        model = ChatModel("test", base_url=server.url, api_key="k")
        agent = create_agent(model, retry=RetryPolicy(attempts=2, wait=0))
        items = list(agent.stream({"messages": "Hi!"}, stream_mode="messages"))
    assert [(token, about["attempt"]) for token, about in items] == [("Hi,", 1), ("Hello.", 2)]


def test_refusal_of_a_server_ends_the_run_which_can_be_continued() -> None:
    refusal = body({"error": {"message": "no such model"}}, 400)
    with chat_server(refusal, body(completion("Hello."))) as server:
        model = ChatModel("test", base_url=server.url, api_key="k")
        agent = create_agent(model, streams=False, store=gp.MemoryStore())
        with pytest.raises(AgentsFailedError, match=r"llm_call.*ModelError: .* status 400: no such model"):
            agent.invoke({"messages": "Hi!"}, THREAD)
        assert contents(agent.invoke(None, THREAD)) == ["Hi!", "Hello."]
    assert len(server.requests) == 2


def test_cancellation_of_a_run_closes_the_connection_of_its_model() -> None:
    async def main() -> None:
        agent = create_agent(ChatModel("test", base_url=server.url, api_key="k"))
        task = asyncio.create_task(agent.ainvoke({"messages": "Hi!"}))
        while not server.requests:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.disconnected.wait, 20)

    with chat_server(wait_for_client) as server:
        asyncio.run(main())


def test_failed_model_is_asked_again() -> None:
    attempts: list[int] = []

    def model(transcript: list[Any], tools: list[Any]) -> str:
        attempts.append(1)
        raise ConnectionError("lost") if len(attempts) < 3 else ModelError("refused", retryable=False)

    with pytest.raises(AgentsFailedError, match="refused"):
        create_agent(model, retry=RetryPolicy(attempts=5, wait=0)).invoke({"messages": "Hi!"})
    assert len(attempts) == 3


def test_slow_model_is_cancelled_and_asked_again() -> None:
    attempts: list[int] = []

    async def model(transcript: list[Any], tools: list[Any]) -> str:
        attempts.append(1)
        await asyncio.sleep(0 if len(attempts) > 1 else 60)
        return "Hello."

    retry = RetryPolicy(attempts=2, wait=0)
    assert contents(create_agent(model, retry=retry, timeout=0.1).invoke({"messages": "Hi!"})) == ["Hi!", "Hello."]
    attempts.clear()
    with pytest.raises(AgentsFailedError, match="llm_call"):
        create_agent(model, retry=None, timeout=0.1).invoke({"messages": "Hi!"})


def delegate(name: str, task: str) -> dict[str, Any]:
    return calls((name, {"task": task}))


def test_agents_as_tools() -> None:
    writer = create_agent(script(lambda transcript, _: f"On {transcript[0]['content']}"), name="writer")
    counter = create_agent(script(calls(("add", {"a": 2})), "Two."), [add], response_format=None, name="counter")
    asked = calls(("writer", {"task": "rain"}), ("counter", {"task": "Count."}))
    tools = [agent_tool(writer, "Writes."), agent_tool(counter, "Counts.")]
    result = create_agent(script(asked, "Done."), tools).invoke({"messages": "Go."})
    assert contents(result) == ["Go.", "", "On rain", "Two.", "Done."]
    assert tools[0].description_for_models["parameters"]["required"] == ["task"]
    assert tools[0].run(messages.tool_call("writer", {"task": "sun"}))["content"] == "On sun"  # outside of a run


def test_answers_and_failures_of_agents_as_tools() -> None:
    forms = create_agent(script(calls(("respond", GOOD))), response_format=Weather, name="forms")
    endless = create_agent(script(calls(("add", {"a": 1}))), [add], max_iterations=1, name="endless")
    broken = create_agent(script(ModelError("no", retryable=False)), name="broken")
    asked = calls(*[(name, {"task": "?"}) for name in ("forms", "endless", "broken")])
    tools = [agent_tool(one, "An agent.") for one in (forms, endless, broken)]
    found = contents(create_agent(script(asked, "Done."), tools).invoke({"messages": "Go."}))
    assert found[2] == '{"city": "Bergen", "degrees": 0.0}'
    assert found[3].startswith(
        "The tool endless failed: the agent has ended with the status 'max_iterations': This was"
    )
    assert found[4].startswith("The tool broken failed: NodesFailedError: 1 node failed")


def test_questions_of_agents_as_tools(tmp_path: Path) -> None:
    orders: list[Any] = []
    asked: list[str] = []

    def first(transcript: list[Any], tools: list[Any]) -> Any:
        asked.append("buyer")
        return calls(("order", {"item": "umbrella"}))

    @tool(needs_consent=True)
    def order(item: str) -> str:
        orders.append(item)
        return f"ordered {item}"

    def agent() -> Any:
        buyer = create_agent(script(first, "I have it."), [order], nested=True, name="buyer")
        store = gp.SQLiteStore(tmp_path / "runs.db")
        return create_agent(
            script(delegate("buyer", "an umbrella"), "Done."), [agent_tool(buyer, "Buys.")], store=store
        )

    (question,) = agent().invoke({"messages": "It rains."}, THREAD)["__interrupt__"]
    assert question.value == {"tool": "order", "arguments": {"item": "umbrella"}, "call_id": "0"}
    result = agent().invoke(Command(resume=True), THREAD)
    assert contents(result) == ["It rains.", "", "I have it.", "Done."]
    assert (orders, asked) == (["umbrella"], ["buyer"])  # the buyer's model was not asked again


def test_agents_as_tools_stream_their_tokens() -> None:
    writer = create_agent(script("Some text."), name="writer")
    agent = create_agent(script(delegate("writer", "?"), "Done."), [agent_tool(writer, "Writes.")])
    items = list(agent.stream({"messages": "Go."}, stream_mode="messages", subgraphs=True))
    assert [(token, bool(namespace)) for namespace, (token, _) in items] == [
        ("Some ", True),
        ("text.", True),
        ("Done.", False),
    ]


def test_bad_agents_as_tools() -> None:
    with pytest.raises(ArgumentTypeError, match="agent_tool takes an agent that create_agent has made, not"):
        agent_tool(plain, "?")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="is a graph with a store: compile it without"):
        agent_tool(create_agent(plain, store=gp.MemoryStore()), "?")
