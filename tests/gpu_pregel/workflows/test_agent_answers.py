"""What humans and models answer: consent to calls of tools, and answers in a format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.workflows import Command, ToolContext, create_agent, messages, tool
from tests.gpu_pregel.workflows.agent_programs import (
    GOOD,
    SCHEMA,
    THREAD,
    Weather,
    add,
    calls,
    contents,
    script,
)
from tests.packages import needs

needs("pydantic", "test")

import pydantic  # noqa: E402

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


class Model(pydantic.BaseModel):
    city: str
    weather: Weather | None = None


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
