"""The JSON of chat completions, as OpenAI and compatible servers expect and send it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import uuid4

from gpu_pregel.errors import CodecError, ModelError
from gpu_pregel.workflows.messages import Message, ToolCall, check_message

_PART_BYTES = 64
"""What a part of a message takes beside its text."""


def encode_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return messages as a server expects them: with arguments as JSON text, and without ids, usage and status."""
    encoded = []
    for message in messages:
        role = message["role"]
        one = {"role": role, "content": message["content"]}
        if role == "tool":
            one["tool_call_id"] = message["tool_call_id"]
        elif message.get("name"):
            one["name"] = message["name"]
        if message.get("tool_calls"):
            one["content"] = message["content"] or None
            one["tool_calls"] = [_encode_call(call) for call in message["tool_calls"]]
        elif role == "assistant" and not message["content"]:
            one["content"] = message.get("refusal") or ""
        encoded.append(one)
    return encoded


def _encode_call(call: ToolCall) -> dict[str, Any]:
    try:
        # Invalid arguments are sent as {}, since servers parse them; the tool's answer quotes what was wrong.
        text = json.dumps(call["arguments"], ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise CodecError(f"the arguments of the tool call {call['id']!r} are not JSON: {error}") from None
    return {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": text}}


def encode_tools(tools: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return descriptions of tools as a server expects them."""
    return [{"type": "function", "function": tool} for tool in tools]


def decode_completion(body: Any) -> Message:
    """Return the message of a whole answer.

    Raises
    ------
    ModelError
        If the answer has none.
    """
    choice = _first_choice(body)
    found = None if choice is None else choice.get("message")
    if not isinstance(found, dict):
        raise ModelError(f"the model's answer has no choices[0].message: {_excerpt(body)}")
    assembler = MessageAssembler()
    assembler.add_fields(body, choice)
    assembler.add_delta(found)
    assembler.finish_reason = assembler.finish_reason or "stop"
    return assembler.message()


class MessageAssembler:
    """Assembles a message from the pieces of a stream.

    Parameters
    ----------
    limit : int, optional
        Most characters of the message, each part of which counts as 64 more. Default: the answer has been limited as
        a whole.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._size = 0
        self._content: list[str] = []
        self._refusal: list[str] = []
        self._calls: dict[int, dict[str, Any]] = {}
        self._id: str | None = None
        self._usage: dict[str, Any] | None = None
        self.finish_reason: str | None = None
        """Why the model stopped; without it, the stream is incomplete."""

    def add(self, chunk: Any) -> str:
        """Add a piece, and return the text that it adds to the content.

        Raises
        ------
        ModelError
            If the piece says that the server failed, or is not a piece.
        """
        if not isinstance(chunk, dict):
            raise ModelError(f"a piece of the model's stream is not a JSON object: {_excerpt(chunk)}")
        if chunk.get("error"):
            raise ModelError(f"the model failed while it answered: {error_text(chunk)}")
        choice = _first_choice(chunk)
        self.add_fields(chunk, choice or {})
        delta = (choice or {}).get("delta")
        return self.add_delta(delta) if isinstance(delta, dict) else ""

    def add_fields(self, body: dict[str, Any], choice: dict[str, Any] | None) -> None:
        """Take the id, the usage and the finish reason."""
        if isinstance(body.get("id"), str) and body["id"]:
            self._id = body["id"]
        if isinstance(body.get("usage"), dict):
            self._usage = body["usage"]
        reason = (choice or {}).get("finish_reason")
        if isinstance(reason, str) and reason:
            self.finish_reason = reason

    def add_delta(self, delta: dict[str, Any]) -> str:
        """Add parts of the message, and return the text that they add to the content."""
        text = delta.get("content")
        if isinstance(text, list):  # some servers send parts
            text = "".join(part.get("text") or "" for part in text if isinstance(part, dict))
        text = text if isinstance(text, str) else ""
        if text:
            self._count(text)
            self._content.append(text)
        if isinstance(delta.get("refusal"), str):
            self._count(delta["refusal"])
            self._refusal.append(delta["refusal"])
        for position, call in enumerate(delta.get("tool_calls") or ()):
            if isinstance(call, dict):
                self._add_call(position, call)
        return text

    def _count(self, *parts: Any) -> None:
        """Count parts of the message, before they are kept."""
        self._size += sum(_PART_BYTES + (len(part) if isinstance(part, str) else 0) for part in parts)
        if self._limit is not None and self._size > self._limit:
            raise too_long("the model's answer", self._limit)

    def _add_call(self, position: int, call: dict[str, Any]) -> None:
        """Add a fragment of a call: the first one has id and name, the others continue the arguments."""
        index = call.get("index")
        if not isinstance(index, int):
            index = position
        known = self._calls.get(index)
        if known and call.get("id") and known["id"] and call["id"] != known["id"]:
            index, known = max(self._calls) + 1, None  # a server that numbers all its calls 0
        function = call.get("function")
        function = function if isinstance(function, dict) else {}
        if known is None:
            self._count(call.get("id"), function.get("name"))
            known = self._calls[index] = {"id": "", "name": "", "arguments": []}
        known["id"] = known["id"] or call.get("id") or ""
        known["name"] = known["name"] or function.get("name") or ""
        if function.get("arguments"):
            self._count(function["arguments"])
            known["arguments"].append(function["arguments"])

    def message(self) -> Message:
        """Return the message.

        Raises
        ------
        ModelError
            If it is incomplete.
        """
        if self.finish_reason is None:
            raise ModelError("the model's stream ended before the answer was complete")
        message: Message = {"role": "assistant", "content": "".join(self._content)}
        calls = [_decode_call(self._calls[index], index, self.finish_reason) for index in sorted(self._calls)]
        optional = {
            "id": self._id,
            "tool_calls": calls,
            "refusal": "".join(self._refusal),
            "finish_reason": self.finish_reason,
            "usage": self._usage,
        }
        message.update({key: value for key, value in optional.items() if value})
        try:
            return check_message(message, "the model's message")
        except (TypeError, ValueError) as error:
            raise ModelError(str(error)) from None


def _decode_call(call: dict[str, Any], index: int, finish_reason: str) -> ToolCall:
    """Decode the arguments of a call; those that are no JSON object are kept as they are, to be told to the model."""
    parts = call["arguments"]
    decoded: Any = None
    if len(parts) == 1 and isinstance(parts[0], dict):  # some servers send objects
        decoded, text = parts[0], ""
    else:
        text = "".join(part for part in parts if isinstance(part, str))
        try:
            decoded = json.loads(text) if text.strip() else {}
        except (ValueError, RecursionError):
            decoded = None
    found: ToolCall = {"id": call["id"] or f"call_{index}_{uuid4().hex}", "name": call["name"] or "unnamed"}
    if isinstance(decoded, dict):
        return {**found, "arguments": decoded}
    if finish_reason == "length":
        text += " … (cut off, as the answer reached its maximum length)"
    return {**found, "arguments": {}, "invalid_arguments": text}


def _first_choice(body: Any) -> dict[str, Any] | None:
    choices = body.get("choices") if isinstance(body, dict) else None
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return choices[0]
    return None


def too_long(what: str, limit: int) -> ModelError:
    """Return the error of an answer or event beyond the limit."""
    return ModelError(
        f"{what} is longer than {limit:,} bytes: increase max_answer_bytes= of ChatModel", retryable=False
    )


def error_text(body: Any) -> str:
    """Return what an answer says about an error, in the shapes that servers use."""
    error = body
    for key in ("error", "detail", "message"):
        if isinstance(error, dict) and error.get(key):
            error = error[key]
    return _excerpt(error)


def error_code(body: Any) -> str | None:
    """Return the code of an error, such as ``"insufficient_quota"``."""
    error = body.get("error") if isinstance(body, dict) else None
    code = (error.get("code") or error.get("type")) if isinstance(error, dict) else None
    return code if isinstance(code, str) else None


def _excerpt(body: Any) -> str:
    try:
        text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(body)
    return text if len(text) <= 300 else f"{text[:300]}…"
