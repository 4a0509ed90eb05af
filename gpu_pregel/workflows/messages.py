"""Chat messages: dictionaries of plain data in the shape of OpenAI's chat messages, functions that make and check them.

The arguments of tool calls are dictionaries here; :mod:`~gpu_pregel.workflows.chat_format` converts them to the JSON
text that servers send and expect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from gpu_pregel.errors import ArgumentError, ArgumentTypeError

Message: TypeAlias = dict[str, Any]
"""A chat message; :func:`check_message` says which keys it may have."""

ToolCall: TypeAlias = dict[str, Any]
"""A model's request to call a tool: ``{"id": …, "name": …, "arguments": {…}}``."""

ROLES = ("system", "developer", "user", "assistant", "tool")

_KEYS = {
    "role": "all",
    "content": "all",
    "id": "all",
    "name": "all",
    "tool_calls": "assistant",
    "refusal": "assistant",
    "finish_reason": "assistant",
    "usage": "assistant",
    "tool_call_id": "tool",
    "status": "tool",
}
"""The keys of messages, and the role of the messages that may have them."""

_CALL_KEYS = ("id", "name", "arguments", "invalid_arguments")


def system(content: str) -> Message:
    """Return a system message.

    Examples
    --------
    >>> from gpu_pregel.workflows import messages
    >>> messages.system("Answer briefly.")
    {'role': 'system', 'content': 'Answer briefly.'}
    """
    return check_message({"role": "system", "content": content})


def user(content: str | list[dict[str, Any]], *, name: str | None = None) -> Message:
    """Return a user's message.

    Parameters
    ----------
    content : str or list of dict
        Text, or parts such as ``{"type": "image_url", "image_url": {"url": …}}``.
    name : str, optional
        Tells users, or agents, apart.

    Examples
    --------
    >>> from gpu_pregel.workflows import messages
    >>> messages.user("Hello!", name="Ada")
    {'role': 'user', 'content': 'Hello!', 'name': 'Ada'}
    """
    return check_message({"role": "user", "content": content} | ({} if name is None else {"name": name}))


def assistant(content: str | None = "", tool_calls: Sequence[ToolCall] = (), **more: Any) -> Message:
    """Return a model's message.

    Parameters
    ----------
    content : str, optional
    tool_calls : sequence of dict
        Calls as :func:`tool_call` returns them.
    **more
        Further keys, such as ``id`` and ``usage``.

    Examples
    --------
    >>> from gpu_pregel.workflows import messages
    >>> messages.assistant("Hello.")
    {'role': 'assistant', 'content': 'Hello.'}
    """
    calls: Message = {"tool_calls": list(tool_calls)} if tool_calls else {}
    return check_message({"role": "assistant", "content": content, **calls, **more})


def tool_call(name: str, arguments: Mapping[str, Any] | None = None, *, id: str | None = None) -> ToolCall:
    """Return a model's request to call a tool.

    Parameters
    ----------
    name : str
    arguments : mapping, optional
        Arguments by name.
    id : str, optional
        Names the call in the tool's answer; calls in the same message need different ones. Default: ``"call_NAME"``.

    Examples
    --------
    >>> from gpu_pregel.workflows import messages
    >>> messages.tool_call("add", {"a": 1, "b": 2}, id="7")
    {'id': '7', 'name': 'add', 'arguments': {'a': 1, 'b': 2}}
    """
    call = {"id": f"call_{name}" if id is None else id, "name": name, "arguments": dict(arguments or {})}
    _check_call(call, "the tool call")
    return call


def tool_answer(content: str, call: ToolCall, *, failed: bool = False) -> Message:
    """Return a tool's answer to a call.

    Parameters
    ----------
    content : str
        The result, or what went wrong.
    call : dict
        The call that is answered.
    failed : bool
        Whether the call failed. The message then has ``"status": "error"``.

    Examples
    --------
    >>> from gpu_pregel.workflows import messages
    >>> messages.tool_answer("3", messages.tool_call("add", {"a": 1, "b": 2}, id="7"))
    {'role': 'tool', 'content': '3', 'tool_call_id': '7', 'name': 'add'}
    """
    message = {"role": "tool", "content": content, "tool_call_id": call["id"], "name": call["name"]}
    return check_message({**message, "status": "error"} if failed else message)


def as_message(message: Message | str, role: str = "user") -> Message:
    """Return a message: a string becomes one of ``role``, and a dictionary is checked."""
    return check_message({"role": role, "content": message} if isinstance(message, str) else message)


def as_messages(messages: Message | str | Iterable[Message | str], name: str = "messages") -> list[Message]:
    """Return a list of messages.

    Parameters
    ----------
    messages : str, dict, or iterable of them
        Strings become messages of the user.
    name : str
        What errors call them.

    Examples
    --------
    >>> from gpu_pregel.workflows import messages
    >>> messages.as_messages(["Hello!", {"role": "assistant", "content": "Hello."}])
    [{'role': 'user', 'content': 'Hello!'}, {'role': 'assistant', 'content': 'Hello.'}]
    """
    if isinstance(messages, (str, dict)):
        return [as_message(messages)]
    try:
        listed = list(messages)
    except TypeError:
        problem = f"{name} must be a string, a message or a list of messages, not {messages!r:.80}"
        raise ArgumentTypeError(problem) from None
    return [
        check_message({"role": "user", "content": one} if isinstance(one, str) else one, f"{name}[{number}]")
        for number, one in enumerate(listed)
    ]


def check_message(message: Any, name: str = "the message") -> Message:
    """Return ``message``, or raise unless it is a chat message.

    Parameters
    ----------
    message : dict
        ``role`` and ``content`` (text, a list of parts or None), and optionally ``id`` and ``name``. A message of a
        model may have ``tool_calls``, ``refusal``, ``finish_reason`` and ``usage``; one of a tool has ``tool_call_id``
        and may have ``status``.
    name : str
        What errors call it.

    Raises
    ------
    ArgumentError, ArgumentTypeError

    Examples
    --------
    >>> from gpu_pregel.workflows import messages
    >>> messages.check_message({"role": "robot", "content": "Hello."})
    Traceback (most recent call last):
    gpu_pregel.errors.ArgumentError: the message: role must be 'system', 'developer', 'user', 'assistant' or 'tool', \
not 'robot'
    """
    if not isinstance(message, dict):
        raise ArgumentTypeError(
            f"{name} must be a dictionary such as {{'role': 'user', 'content': 'Hello!'}}, not {message!r:.80}"
        )
    role = message.get("role")
    if role not in ROLES:
        *others, last = map(repr, ROLES)
        raise ArgumentError(f"{name}: role must be {', '.join(others)} or {last}, not {role!r:.80}")
    for key in message:
        whose = _KEYS.get(key)
        if whose is None:
            raise ArgumentError(f"{name} has the unknown key {key!r:.80}; known keys: {', '.join(_KEYS)}")
        if whose not in ("all", role):
            raise ArgumentError(f"{name}: only messages of the role {whose!r} have {key!r}, not one of {role!r}")
    _check_content(message, name)
    for key in ("id", "name", "refusal", "finish_reason"):
        if message.get(key) is not None:
            _check_string(message[key], f"{name}: {key}")
    if role == "tool":
        _check_tool_answer(message, name)
    _check_calls(message.get("tool_calls"), name)
    return message


def _check_content(message: Message, name: str) -> None:
    if "content" not in message:
        raise ArgumentError(f"{name} of the role {message['role']!r} has no content")
    content = message["content"]
    if isinstance(content, str):
        return
    if content is None:
        if message["role"] == "assistant":
            return
        raise ArgumentTypeError(f"{name}: only the content of the role 'assistant' may be None")
    if not isinstance(content, list):
        raise ArgumentTypeError(f"{name}: content must be a string or a list of parts, not {content!r:.80}")
    for number, part in enumerate(content):
        if not isinstance(part, dict) or not isinstance(part.get("type"), str):
            raise ArgumentTypeError(
                f"{name}: content[{number}] must be a dictionary such as {{'type': 'text', 'text': '…'}}, "
                f"not {part!r:.80}"
            )


def _check_tool_answer(message: Message, name: str) -> None:
    if "tool_call_id" not in message:
        raise ArgumentError(f"{name} of the role 'tool' needs tool_call_id, the id of the call that it answers")
    _check_string(message["tool_call_id"], f"{name}: tool_call_id")
    if message.get("status", "ok") not in ("ok", "error"):
        raise ArgumentError(f"{name}: status must be 'ok' or 'error', not {message['status']!r:.80}")


def _check_calls(calls: Any, name: str) -> None:
    if calls is None:
        return
    if not isinstance(calls, list):
        raise ArgumentTypeError(f"{name}: tool_calls must be a list, not {calls!r:.80}")
    ids = set()
    for number, call in enumerate(calls):
        _check_call(call, f"{name}: tool_calls[{number}]")
        if call["id"] in ids:
            raise ArgumentError(
                f"{name}: tool_calls[{number}] has the same id as an earlier call, {call['id']!r:.80}: pass another"
            )
        ids.add(call["id"])


def _check_call(call: Any, name: str) -> None:
    if not isinstance(call, dict):
        raise ArgumentTypeError(f"{name} must be a dictionary with id, name and arguments, not {call!r:.80}")
    for key in ("id", "name"):
        if key not in call:
            raise ArgumentError(f"{name} has no {key}")
        _check_string(call[key], f"{name}: {key}")
    unknown = [key for key in call if key not in _CALL_KEYS]
    if unknown:
        raise ArgumentError(f"{name} has the unknown key {unknown[0]!r:.80}; known keys: {', '.join(_CALL_KEYS)}")
    arguments = call.get("arguments")
    if not isinstance(arguments, dict) or not all(isinstance(key, str) for key in arguments):
        raise ArgumentTypeError(f"{name}: arguments must be a dictionary with names as keys, not {arguments!r:.80}")


def _check_string(value: object, name: str) -> None:
    if not isinstance(value, str):
        raise ArgumentTypeError(f"{name} must be a string, not {value!r:.80}")
    if not value:
        raise ArgumentError(f"{name} must not be empty")


def text_of(message: Message) -> str:
    """Return the text of a message: its content, or the joined text of its parts.

    Examples
    --------
    >>> from gpu_pregel.workflows import messages
    >>> messages.text_of(messages.user([{"type": "text", "text": "Look: "}, {"type": "image_url", "image_url": {}}]))
    'Look: '
    """
    content = message["content"]
    if isinstance(content, list):
        return "".join(part["text"] for part in content if isinstance(part.get("text"), str))
    return content or ""


def unanswered_calls(messages: Sequence[Message]) -> list[ToolCall]:
    """Return the tool calls of the last message of a model that no later message of a tool answers.

    Examples
    --------
    >>> from gpu_pregel.workflows import messages
    >>> calls = [messages.tool_call("add", id="1"), messages.tool_call("add", id="2")]
    >>> asked = messages.assistant(tool_calls=calls)
    >>> [call["id"] for call in messages.unanswered_calls([asked, messages.tool_answer("3", calls[0])])]
    ['2']
    """
    answered = set()
    for message in reversed(messages):
        if message["role"] == "tool":
            answered.add(message["tool_call_id"])
        elif message["role"] == "assistant":
            return [call for call in message.get("tool_calls") or () if call["id"] not in answered]
    return []
