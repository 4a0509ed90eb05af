"""The ready agent loop: tools, failures, limits, consent, formats, threads, streams."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pydantic
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import AgentsFailedError, ArgumentError, ArgumentTypeError, ModelError
from gpu_pregel.host.agents.retry import RetryPolicy
from gpu_pregel.workflows import ChatModel, Command, ToolContext, agent_tool, create_agent, messages, tool
from tests.gpu_pregel.workflows.agent_programs import Weather, add, calls, die, fail, pid, script
from tests.gpu_pregel.workflows.chat_server import DONE, body, chat_server, chunk, completion, events

THREAD = {"configurable": {"thread_id": "1"}}


def contents(result: dict[str, Any]) -> list[Any]:
    return [message["content"] for message in result["messages"]]


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
    assert result == {"messages": expected, "status": "completed"}
    assert seen == [([messages.system("Use tools."), *expected[:3]], [add.description_for_models])]
    assert asyncio.run(agent.ainvoke({"messages": "1 + 2?"})) == result


def test_system_prompt_of_the_state() -> None:
    agent = create_agent(
        script(lambda transcript, _: transcript[0]["content"]),
        system_prompt=lambda state: f"{len(state['messages'])} messages so far",
    )
    assert contents(agent.invoke({"messages": ["a", "b"]}))[-1] == "2 messages so far"


def plain(transcript: list[Any], tools: list[Any]) -> str:
    return f"{transcript[-1]['content']} {len(tools)}"


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
    with pytest.raises(AgentsFailedError, match=f"vertex 'llm_call': ModelError: {text}"):
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
        "There is no tool 'nothing'. The tools are: add, fail.",
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


# Consent.

CHANGED = {"arguments": {"item": "hat", "count": 2}}


def shop(orders: list[Any], **options: Any) -> Any:
    @tool(needs_consent=lambda arguments: arguments["item"] != "pen")
    def order(item: str, count: int = 1, context: ToolContext | None = None) -> str:
        assert context is not None
        orders.append((item, count, context.key))
        return f"ordered {count} {item}"

    return create_agent(script(calls(("order", {"item": "umbrella"})), "Done."), [order], **options)


@pytest.mark.parametrize(
    "answer, told, ordered",
    [
        (True, "ordered 1 umbrella", [("umbrella", 1)]),
        (False, "A human has refused this call.", []),
        ("Take a coat.", "A human has answered instead of the tool: Take a coat.", []),
        (CHANGED, "ordered 2 hat", [("hat", 2)]),
    ],
)
def test_consent(answer: Any, told: str, ordered: list[Any]) -> None:
    orders: list[Any] = []
    agent = shop(orders, store=gp.MemoryStore())
    result = agent.invoke({"messages": "Buy one."}, THREAD)
    (question,) = result["__interrupt__"]
    assert question.value == {"tool": "order", "arguments": {"item": "umbrella"}, "call_id": "0"}
    assert (orders, result["status"]) == ([], "running")
    result = agent.invoke(Command(resume=answer), THREAD)
    assert contents(result)[2:] == [told, "Done."]
    assert [order[:2] for order in orders] == ordered


@pytest.mark.parametrize(
    "answer, problem",
    [
        (None, 'answer True, False, {"arguments": {…}} or a text'),
        (1, 'answer True, False, {"arguments": {…}} or a text'),
        ({"args": {}}, 'answer True, False, {"arguments": {…}} or a text'),
        ({"arguments": {"item": 1}}, "the arguments are wrong: item: Input should be a valid string, not 1"),
    ],
)
def test_answers_that_cannot_be_used_are_asked_for_again(answer: Any, problem: str) -> None:
    orders: list[Any] = []
    agent = shop(orders, store=gp.MemoryStore())
    (question,) = agent.invoke({"messages": "Buy one."}, THREAD)["__interrupt__"]
    (again,) = agent.invoke(Command(resume={question.id: answer}), THREAD)["__interrupt__"]
    assert again.value == {**question.value, "problem": problem}
    assert contents(agent.invoke(Command(resume=True), THREAD))[-1] == "Done."
    assert len(orders) == 1


def test_consent_is_asked_for_each_call_and_siblings_run_once(tmp_path: Path) -> None:
    counted: list[str] = []

    @tool(needs_consent=True)
    def delete(name: str) -> str:
        counted.append(f"delete {name}")
        return f"deleted {name}"

    @tool
    def read(name: str) -> str:
        counted.append(f"read {name}")
        return f"text of {name}"

    asked = calls(("delete", {"name": "a"}), ("read", {"name": "b"}), ("delete", {"name": "c"}), ("delete", {}))

    def agent() -> Any:
        store = gp.SQLiteStore(tmp_path / "runs.db")
        return create_agent(script(asked, "Done."), [delete, read], store=store)

    questions = agent().invoke({"messages": "Go."}, THREAD)["__interrupt__"]
    assert [one.value["arguments"] for one in questions] == [{"name": "a"}, {"name": "c"}]  # wrong ones are not asked
    (rest,) = agent().invoke(Command(resume={questions[1].id: False}), THREAD)["__interrupt__"]
    assert (rest, counted) == (questions[0], ["read b"])
    result = agent().invoke(Command(resume=True), THREAD)
    assert contents(result)[2:5] == ["deleted a", "text of b", "A human has refused this call."]
    assert counted == ["read b", "delete a"]


def test_keys_of_calls_differ_and_survive_a_failure() -> None:
    keys: list[str] = []

    @tool
    def note(context: ToolContext) -> str:
        keys.append(context.key)
        return context.call_id

    twice = calls(("note", {}), ("note", {}))
    agent = create_agent(script(twice, twice, "Done."), [note])
    agent.invoke({"messages": "Go."})
    assert len(set(keys)) == len(keys) == 4


# Formats.

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


class Model(pydantic.BaseModel):
    city: str
    weather: Weather | None = None


GOOD = {"city": "Bergen"}
FORMATS = [
    (SCHEMA, GOOD),
    (Weather, Weather("Bergen")),
    (Model, Model(city="Bergen")),
]


@pytest.mark.parametrize("form, expected", FORMATS, ids=["schema", "dataclass", "model"])
def test_answer_in_a_format(form: Any, expected: Any) -> None:
    seen: list[Any] = []

    def answer(transcript: list[Any], tools: list[Any]) -> Any:
        seen.append([one["name"] for one in tools])
        return calls(("add", {"a": 1}), ("respond", GOOD))

    agent = create_agent(script(calls(("add", {"a": 1})), answer), [add], response_format=form, store=gp.MemoryStore())
    result = agent.invoke({"messages": "Where?"}, THREAD)
    assert (result["structured_response"], result["status"]) == (expected, "completed")
    assert contents(result)[-2:] == ["This was not run, as the answer was given.", "Accepted."]
    assert seen == [["add", "respond"]]
    assert agent.get_state(THREAD).values["structured_response"] == expected


@pytest.mark.parametrize(
    "text", ['{"city": "Bergen"}', '```json\n{"city": "Bergen"}\n```', '```\n{"city": "Bergen"}```']
)
def test_answer_as_text(text: str) -> None:
    result = create_agent(script(text), response_format=Weather).invoke({"messages": "Where?"})
    assert (result["structured_response"], contents(result)[-1]) == (Weather("Bergen"), text)


TOOL_HINT = "Call the tool respond with the answer."


@pytest.mark.parametrize(
    "mistake, told",
    [
        ("In Bergen.", "the answer is not JSON"),
        ("[]", "the value must be of type object, not []"),
        (calls(("respond", {"city": 1})), "city must be of type string, not 1"),
        (calls(("respond", {})), "city is missing"),
    ],
)
def test_model_is_asked_again_once(mistake: Any, told: str) -> None:
    told = f"The answer is not in the requested format: {told}. {TOOL_HINT}"
    result = create_agent(script(mistake, calls(("respond", GOOD))), response_format=SCHEMA).invoke({"messages": "?"})
    assert (result["status"], result["structured_response"], contents(result)[2]) == ("completed", GOOD, told)
    result = create_agent(script(mistake, mistake), response_format=SCHEMA).invoke({"messages": "?"})
    assert (result["status"], result["structured_response"]) == ("invalid_response", None)
    assert messages.unanswered_calls(result["messages"]) == []
    result = create_agent(script(mistake), response_format=SCHEMA, max_iterations=1).invoke({"messages": "?"})
    assert (result["status"], result["structured_response"]) == ("invalid_response", None)


def test_mistakes_are_counted_for_each_message_of_the_user() -> None:
    good = calls(("respond", GOOD))
    agent = create_agent(
        script("no", good, "no", good, "no", "no"), response_format=SCHEMA, store=gp.MemoryStore(), max_iterations=2
    )
    found = [agent.invoke({"messages": "?"}, THREAD) for _ in range(3)]
    assert [one["status"] for one in found] == ["completed", "completed", "invalid_response"]
    assert [one["structured_response"] for one in found] == [GOOD, GOOD, None]


# Streams.


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
    broken = events(chunk({"content": "Hel"}), is_complete=False)
    with chat_server(broken, events(chunk({"content": "Hello."}, "stop"), DONE)) as server:
        model = ChatModel("test", base_url=server.url, api_key="k")
        agent = create_agent(model, retry=RetryPolicy(attempts=2, wait=0))
        items = list(agent.stream({"messages": "Hi!"}, stream_mode="messages"))
    assert [(token, about["attempt"]) for token, about in items] == [("Hel", 1), ("Hello.", 2)]


def test_refusal_of_a_server_ends_the_run_which_can_be_continued() -> None:
    refusal = body({"error": {"message": "no such model"}}, 400)
    with chat_server(refusal, body(completion("Hello."))) as server:
        model = ChatModel("test", base_url=server.url, api_key="k")
        agent = create_agent(model, streams=False, store=gp.MemoryStore())
        with pytest.raises(AgentsFailedError, match=r"llm_call.*ModelError: .* status 400: no such model"):
            agent.invoke({"messages": "Hi!"}, THREAD)
        assert contents(agent.invoke(None, THREAD)) == ["Hi!", "Hello."]
    assert len(server.requests) == 2


def test_failed_model_is_asked_again() -> None:
    attempts: list[int] = []

    def model(transcript: list[Any], tools: list[Any]) -> str:
        attempts.append(1)
        raise ConnectionError("lost") if len(attempts) < 3 else ModelError("refused", retryable=False)

    with pytest.raises(AgentsFailedError, match="refused"):
        create_agent(model, retry=RetryPolicy(attempts=5, wait=0)).invoke({"messages": "Hi!"})
    assert len(attempts) == 3


# Processes.


def test_workers() -> None:
    agent = create_agent(
        script(
            calls(("pid", {}), ("add", {"a": 1}), ("fail", {}), ("die", {})), calls(("respond", {**GOOD, "degrees": 3}))
        ),
        [pid, add, fail, die],
        response_format=Weather,
        workers=1,
    )
    result = agent.invoke({"messages": "Go."})
    found = contents(result)
    assert int(found[2]) != os.getpid()
    assert found[3:6] == [
        "1",
        "The tool fail failed: ValueError: boom",
        "The tool die failed: the process in which it ran has ended; it may have begun its work",
    ]
    assert result["structured_response"] == Weather("Bergen", 3.0)


# Bad arguments.


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
    with pytest.raises(AgentsFailedError) as caught:
        create_agent(plain).invoke(given)
    assert text in str(caught.value)


# Agents as tools.


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
    assert found[4].startswith("The tool broken failed: AgentsFailedError: 1 vertex failed")


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
