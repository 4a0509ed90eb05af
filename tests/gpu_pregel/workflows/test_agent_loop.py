"""The ready agent loop: models, tools, failures, limits, threads, processes, bad arguments."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import AgentsFailedError, ArgumentError, ArgumentTypeError
from gpu_pregel.host.agents.retry import RetryPolicy
from gpu_pregel.workflows import ChatModel, Command, ToolContext, create_agent, interrupt, messages, tool
from tests.gpu_pregel.workflows.agent_programs import (
    GOOD,
    SCHEMA,
    THREAD,
    Weather,
    add,
    calls,
    contents,
    die,
    fail,
    pid,
    plain,
    script,
)
from tests.gpu_pregel.workflows.chat_server import body, chat_server, completion
from tests.packages import needs

needs("httpx", "models")


def test_loop() -> None:
    seen: list[Any] = []

    def answer(transcript: list[Any], tools: list[Any]) -> str:
        seen.append((transcript, tools))
        return f"It is {transcript[-1]['content']}."

    agent = create_agent(
        script(calls(("add", {"a": 1, "b": 2})), answer), [add], system_prompt="Use tools.", max_iterations=2
    )
    result = agent.invoke({"messages": "1 + 2?"})
    expected = [
        {"role": "user", "content": "1 + 2?"},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "0", "name": "add", "arguments": {"a": 1, "b": 2}}]},
        {"role": "tool", "content": "3", "tool_call_id": "0", "name": "add"},
        {"role": "assistant", "content": "It is 3."},
    ]
    assert (result["messages"], result["full_messages"], result["status"]) == (expected, expected, "completed")
    assert seen == [([messages.system("Use tools."), *expected[:3]], [add.description_for_models])]
    assert asyncio.run(agent.ainvoke({"messages": "1 + 2?"})) == result


def test_system_prompt_of_the_state() -> None:
    agent = create_agent(
        script(lambda transcript, _: transcript[0]["content"]),
        system_prompt=lambda state: f"{len(state['messages'])} messages so far",
    )
    assert contents(agent.invoke({"messages": ["a", "b"]}))[-1] == "2 messages so far"


async def asynchronous(transcript: list[Any], tools: list[Any]) -> dict[str, Any]:
    await asyncio.sleep(0)
    return messages.assistant(plain(transcript, tools))


def generator(transcript: list[Any], tools: list[Any]) -> Iterator[Any]:
    yield f"{transcript[-1]['content']} "
    yield str(len(tools))


async def async_generator(transcript: list[Any], tools: list[Any]) -> AsyncIterator[Any]:
    yield f"{transcript[-1]['content']} "
    yield str(len(tools))
    yield messages.assistant(plain(transcript, tools), id="m")


class Callable_:  # noqa: N801
    async def __call__(self, transcript: list[Any], tools: list[Any]) -> str:
        return plain(transcript, tools)


@pytest.mark.parametrize("model", [plain, asynchronous, generator, async_generator, Callable_()])
def test_any_callable_is_a_model(model: Any) -> None:
    assert contents(create_agent(model, [add]).invoke({"messages": "Hi!"})) == ["Hi!", "Hi! 1"]


@pytest.mark.parametrize(
    "answer, text",
    [
        (7, "the model's answer must be a dictionary .*; a model returns a text or a message"),
        ({"role": "assistant"}, ".* has no content"),
        (messages.user("Hi!"), "the model's answer has the role 'user', not 'assistant'"),
    ],
)
def test_models_that_return_something_else(answer: Any, text: str) -> None:
    with pytest.raises(AgentsFailedError, match=f"node 'llm_call': ModelError: {text}"):
        create_agent(lambda transcript, tools: answer).invoke({"messages": "Hi!"})


def test_tools_run_side_by_side_and_answer_in_order() -> None:
    met = threading.Barrier(4)

    @tool
    def ordinary(k: int) -> int:
        met.wait(60)
        return k

    @tool
    async def asynchronous(k: int) -> int:
        await asyncio.to_thread(met.wait, 60)
        return k

    asked = calls(
        ("ordinary", {"k": 0}), ("asynchronous", {"k": 1}), ("ordinary", {"k": 2}), ("asynchronous", {"k": 3})
    )
    agent = create_agent(script(asked, "Done."), [ordinary, asynchronous])
    assert contents(agent.invoke({"messages": "Go."})) == ["Go.", "", "0", "1", "2", "3", "Done."]


def test_what_goes_wrong_is_told_to_the_model() -> None:
    invalid = {"id": "3", "name": "add", "arguments": {}, "invalid_arguments": "{"}
    asked = calls(("fail", {}), ("add", {"a": "x"}), ("nothing", {}))
    asked["tool_calls"].append(invalid)
    result = create_agent(script(asked, "Sorry."), [add, fail]).invoke({"messages": "Go."})
    assert contents(result)[2:] == [
        "The tool fail failed: ValueError: boom",
        "The tool add failed: a: Input should be a valid integer, unable to parse string as an integer, not 'x'",
        "There is no tool 'nothing'. Available tools: add, fail.",
        "The tool add failed: the arguments are not a JSON object: {",
        "Sorry.",
    ]
    assert [message.get("status") for message in result["messages"][2:6]] == ["error"] * 4


def test_tools_have_their_own_timeout_and_retry() -> None:
    attempts: list[int] = []

    @tool(timeout=0.05)
    async def slow() -> None:
        await asyncio.sleep(60)

    @tool(retry=RetryPolicy(attempts=3, wait=0))
    def flaky(context: ToolContext) -> str:
        attempts.append(context.attempt)
        if context.attempt < 3:
            raise ConnectionError("lost")
        return "ok"

    agent = create_agent(script(calls(("slow", {}), ("flaky", {})), "Done."), [slow, flaky])
    found = contents(agent.invoke({"messages": "Go."}))
    assert found[2:4] == ["The tool slow failed: no result after 0.05 s", "ok"]
    assert attempts == [1, 2, 3]


def test_iterations_are_limited_for_each_message_of_the_user() -> None:
    more = calls(("add", {"a": 1}))
    agent = create_agent(script(more, more, more, "Three.", "Four."), [add], max_iterations=3, store=gp.MemoryStore())
    limit = "This was not run, as the agent has reached its limit of 3 iterations."
    result = agent.invoke({"messages": "Go."}, THREAD)
    assert (result["status"], contents(result)) == ("max_iterations", ["Go.", "", "1", "", "1", "", limit])
    assert messages.unanswered_calls(result["messages"]) == []
    result = agent.invoke({"messages": "And?"}, THREAD)
    assert (result["status"], contents(result)[-2:]) == ("completed", ["And?", "Three."])


@pytest.mark.parametrize("limit", [1, 2, 20])
def test_limits_need_no_more_supersteps_than_there_are(limit: int) -> None:
    more = calls(("add", {"a": 1}))
    result = create_agent(script(*[more] * limit), [add], max_iterations=limit).invoke({"messages": "Go."})
    assert result["status"] == "max_iterations"
    assert contents(result).count("1") == limit - 1


def test_tools_see_the_configuration_of_the_call() -> None:
    @tool
    def greet(context: ToolContext) -> str:
        return f"Hello, {context.config['user']}"

    agent = create_agent(script(calls(("greet", {})), "Done."), [greet])
    assert contents(agent.invoke({"messages": "Go."}, {"configurable": {"user": "Ada"}}))[2] == "Hello, Ada"


def test_tools_may_ask_questions_of_their_own() -> None:
    attempts: list[str] = []

    @tool
    def greet(context: ToolContext) -> str:
        attempts.append(context.key)
        return f"{interrupt('Which greeting?')}, Ada"

    agent = create_agent(script(calls(("greet", {})), "Done."), [greet], store=gp.MemoryStore())
    assert agent.invoke({"messages": "Go."}, THREAD)["__interrupt__"][0].value == "Which greeting?"
    assert contents(agent.invoke(Command(resume="Good day"), THREAD))[2] == "Good day, Ada"
    assert len(attempts) == 2
    assert len(set(attempts)) == 1


def test_threads_are_remembered() -> None:
    agent = create_agent(script("Hi, Ada.", lambda transcript, _: transcript[0]["content"]), store=gp.MemoryStore())
    agent.invoke({"messages": "I am Ada."}, THREAD)
    assert contents(agent.invoke({"messages": "Who am I?"}, THREAD))[-1] == "I am Ada."
    other = {"configurable": {"thread_id": "2"}}
    assert contents(agent.invoke({"messages": "Hello."}, other)) == ["Hello.", "Hi, Ada."]


def test_servers_that_repeat_an_id_do_not_replace_messages() -> None:
    agent = create_agent(
        script(messages.assistant("One.", id="x"), messages.assistant("Two.", id="x")), store=gp.MemoryStore()
    )
    agent.invoke({"messages": "a"}, THREAD)
    assert contents(agent.invoke({"messages": "b"}, THREAD)) == ["a", "One.", "b", "Two."]


def asking(*made: tuple[str, dict[str, Any]]) -> Any:
    """Return a server's answer that calls tools."""
    calls = [{"id": name, "function": {"name": name, "arguments": json.dumps(given)}} for name, given in made]
    return body(completion(None, tool_calls=calls))


def test_workers() -> None:
    first = asking(("pid", {}), ("add", {"a": 1}), ("fail", {}), ("die", {}))
    with chat_server(first, asking(("respond", {**GOOD, "degrees": 3}))) as server:
        model = ChatModel("test", base_url=server.url, api_key="k")
        agent = create_agent(model, [pid, add, fail, die], response_format=Weather, workers=1)
        result = agent.invoke({"messages": "Go."})
    found = contents(result)
    assert int(found[2]) != os.getpid()
    assert found[3:6] == [
        "1",
        "The tool fail failed: ValueError: boom",
        "The tool die failed: the process in which it ran has ended; it may have begun its work",
    ]
    assert result["structured_response"] == Weather("Bergen", 3.0)


@dataclass
class Unstorable:
    lock: threading.Lock


def respond() -> None: ...


@pytest.mark.parametrize(
    "arguments, error, text",
    [
        ({"model": "gpt"}, ArgumentTypeError, r"model must be a function model\(messages, tools\)"),
        ({"tools": add}, ArgumentTypeError, "tools must be a list of tools or functions"),
        ({"tools": [add, add]}, ArgumentError, "two tools have the name 'add'"),
        ({"system_prompt": 1}, ArgumentTypeError, "system_prompt must be a string or a function of the state"),
        ({"max_iterations": 0}, ArgumentError, "max_iterations must be"),
        ({"streams": 1}, ArgumentTypeError, "streams must be True or False"),
        ({"response_format": {"type": "array"}}, ArgumentError, "response_format must describe an object"),
        ({"response_format": {"type": "object", "if": {}}}, ArgumentError, "the keyword 'if' is not supported"),
        ({"response_format": list[int]}, ArgumentError, "response_format must describe an object"),
        ({"response_format": Unstorable}, ArgumentError, "response_format .* is no type of data"),
        ({"response_format": SCHEMA, "tools": [tool(respond)]}, ArgumentError, "no tool may have the name 'respond'"),
        ({"tools": [tool(respond, needs_consent=True)]}, ArgumentError, "'respond' needs consent, .* pass store="),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        create_agent(**{"model": plain, **arguments})


@pytest.mark.parametrize(
    "given, text",
    [
        ({"messages": []}, 'the agent has no message to answer: pass {"messages": "..."}'),
        ({"messages": [{"role": "robot", "content": ""}]}, 'the state\'s "messages"[0]: role must be'),
    ],
)
def test_bad_input(given: Any, text: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        create_agent(plain).invoke(given)
    assert text in str(caught.value)
