"""Chat messages: what is accepted, and the error for what is not."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_pregel.errors import ArgumentError, ArgumentTypeError
from gpu_pregel.host.agents.codec import decode, encode
from gpu_pregel.workflows import messages

CALL = {"id": "1", "name": "f", "arguments": {"a": 1}}
ALL = [
    messages.system("Be brief."),
    messages.user("Hello!"),
    messages.user([{"type": "text", "text": "Look:"}, {"type": "image_url", "image_url": {"url": "u"}}], name="Ada"),
    messages.assistant(None, [messages.tool_call("f", {"a": 1}, id="1")], id="m", usage={"total_tokens": 1}),
    messages.tool_answer("2", messages.tool_call("f", id="1")),
    messages.tool_answer("boom", messages.tool_call("f", id="1"), failed=True),
    {"role": "developer", "content": "Be brief.", "id": None},
    {"role": "assistant", "content": "", "refusal": "no", "finish_reason": "stop"},
]


@pytest.mark.parametrize("message", ALL, ids=range(len(ALL)))
def test_messages_are_plain_data(message: dict[str, Any]) -> None:
    assert messages.check_message(message) is message
    assert decode(encode(message)) == message


@pytest.mark.parametrize(
    "message, error, text",
    [
        ("Hello!", ArgumentTypeError, "the message must be a dictionary such as"),
        ({"content": ""}, ArgumentError, "the message: role must be 'system'"),
        ({"role": "user"}, ArgumentError, "the message of the role 'user' has no content"),
        ({"role": "user", "content": None}, ArgumentTypeError, "only the content of the role 'assistant' may be None"),
        ({"role": "user", "content": 1}, ArgumentTypeError, "content must be a string or a list of parts, not 1"),
        ({"role": "user", "content": ["a"]}, ArgumentTypeError, r"content\[0\] must be a dictionary"),
        ({"role": "user", "content": "", "text": ""}, ArgumentError, "has the unknown key 'text'; known keys: role"),
        ({"role": "user", "content": "", "usage": {}}, ArgumentError, "only messages of the role 'assistant' have"),
        ({"role": "user", "content": "", "name": ""}, ArgumentError, "name must not be empty"),
        ({"role": "user", "content": "", "id": 1}, ArgumentTypeError, "id must be a string, not 1"),
        ({"role": "tool", "content": ""}, ArgumentError, "needs tool_call_id"),
        ({"role": "tool", "content": "", "tool_call_id": 1}, ArgumentTypeError, "tool_call_id must be a string"),
        ({"role": "tool", "content": "", "tool_call_id": "1", "status": "bad"}, ArgumentError, "status must be"),
        ({"role": "assistant", "content": "", "tool_calls": {}}, ArgumentTypeError, "tool_calls must be a list"),
        ({"role": "assistant", "content": "", "tool_calls": ["f"]}, ArgumentTypeError, r"tool_calls\[0\] must be a"),
        (
            {"role": "assistant", "content": "", "tool_calls": [CALL, CALL]},
            ArgumentError,
            r"tool_calls\[1\] has the same",
        ),
    ],
)
def test_bad_messages(message: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        messages.check_message(message)


@pytest.mark.parametrize(
    "change, text",
    [
        ({"id": None}, "id must be a string"),
        ({"name": ""}, "name must not be empty"),
        ({"arguments": "{}"}, "arguments must be a dictionary with names as keys"),
        ({"arguments": {1: 2}}, "arguments must be a dictionary with names as keys"),
        ({"type": "function"}, "has the unknown key 'type'"),
    ],
)
def test_bad_calls(change: dict[str, Any], text: str) -> None:
    with pytest.raises((ArgumentError, ArgumentTypeError), match=rf"tool_calls\[0\].* {text}"):
        messages.check_message({"role": "assistant", "content": "", "tool_calls": [{**CALL, **change}]})
    for key in ("id", "name"):
        with pytest.raises(ArgumentError, match=f"has no {key}"):
            messages.assistant("", [{one: value for one, value in CALL.items() if one != key}])


@pytest.mark.parametrize(
    "given, expected",
    [
        ("Hi!", [messages.user("Hi!")]),
        (messages.user("Hi!"), [messages.user("Hi!")]),
        (["Hi!", messages.assistant("Hello.")], [messages.user("Hi!"), messages.assistant("Hello.")]),
        ([], []),
    ],
)
def test_as_messages(given: Any, expected: list[Any]) -> None:
    assert messages.as_messages(given) == expected


def test_bad_lists_name_the_place() -> None:
    with pytest.raises(ArgumentError, match=r"input\[1\]: role must be"):
        messages.as_messages(["Hi!", {"role": "x", "content": ""}], "input")
    with pytest.raises(ArgumentTypeError, match="input must be a string, a message or a list of messages, not 7"):
        messages.as_messages(7, "input")  # type: ignore[arg-type]


def test_calls_with_the_same_id_say_what_to_do() -> None:
    with pytest.raises(ArgumentError, match=r"tool_calls\[1\] has the same id as an .* 'call_f': pass another$"):
        messages.assistant("", [messages.tool_call("f"), messages.tool_call("f")])


def test_unanswered_calls() -> None:
    calls = [messages.tool_call("f", id=str(k)) for k in range(3)]
    asked = messages.assistant("", calls)
    answers = [messages.tool_answer("", call) for call in calls]
    assert messages.unanswered_calls([asked]) == calls
    assert messages.unanswered_calls([asked, answers[1], messages.user("And?")]) == [calls[0], calls[2]]
    assert messages.unanswered_calls([asked, *answers]) == []
    assert messages.unanswered_calls([asked, messages.assistant("Done.")]) == []
    assert messages.unanswered_calls([messages.user("Hi!")]) == []
