"""Calls a model, which may be any function: ordinary or ``async``, with or without a stream of tokens."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from contextlib import aclosing, closing
from functools import partial
from typing import Any

from gpu_pregel.errors import ArgumentTypeError, ModelError
from gpu_pregel.workflows.function_threads import wait_for_function
from gpu_pregel.workflows.messages import Message, check_message
from gpu_pregel.workflows.tools import is_async
from gpu_pregel.workflows.well_formed_text import well_formed

Emit = Callable[[str], object]


def check_model(model: Any) -> Any:
    """Return ``model``, or raise unless it can be called."""
    if not callable(model):
        raise ArgumentTypeError(
            f"model must be a function model(messages, tools), such as ChatModel('…'), not {model!r:.80}"
        )
    return model


def is_async_model(model: Any) -> bool:
    """Whether a model can be called on an event loop without blocking it."""
    if getattr(model, "acall", None) is not None or getattr(model, "astream", None) is not None:
        return True
    call = model if inspect.isroutine(model) else type(model).__call__
    return is_async(model) or inspect.isasyncgenfunction(call)


def call_model(model: Any, messages: list[Message], tools: list[dict[str, Any]], emit: Emit | None = None) -> Message:
    """Ask a model, and return its message.

    Parameters
    ----------
    model : callable
        ``model(messages, tools)`` returns a text or a message, or is a generator of pieces of text that ends with the
        message. If it has a method ``stream``, that is used where tokens are wanted.
    messages, tools : list of dict
    emit : callable, optional
        Called with each piece of text as it arrives.

    Raises
    ------
    ModelError
        If the model returns something else.
    """
    stream = getattr(model, "stream", None)
    result = stream(messages, tools) if emit is not None and stream is not None else model(messages, tools)
    if inspect.iscoroutine(result):
        return _check_answer(asyncio.run(_await(result)))
    if not inspect.isgenerator(result):
        return _check_answer(result)
    collected = _Collected(emit)
    with closing(result) as pieces:
        for piece in pieces:
            collected.add(piece)
    return collected.message()


async def acall_model(
    model: Any, messages: list[Message], tools: list[dict[str, Any]], emit: Emit | None = None
) -> Message:
    """Do what :func:`call_model` does on the running event loop; an ordinary model is called on a thread."""
    if not is_async_model(model):
        message: Message = await wait_for_function(partial(call_model, model, messages, tools, emit))
        return message
    stream, call = getattr(model, "astream", None), getattr(model, "acall", None) or model
    result = stream(messages, tools) if emit is not None and stream is not None else call(messages, tools)
    if not inspect.isasyncgen(result):
        return _check_answer(await result)
    collected = _Collected(emit)
    async with aclosing(result) as pieces:
        async for piece in pieces:
            collected.add(piece)
    return collected.message()


async def _await(result: Any) -> Any:
    return await result


class _Collected:
    """The pieces of a stream: texts, and a message that ends it."""

    def __init__(self, emit: Emit | None) -> None:
        self._emit = emit
        self._texts: list[str] = []
        self._message: Any = None

    def add(self, piece: Any) -> None:
        if not isinstance(piece, str):
            self._message = piece
        elif piece:
            self._texts.append(piece)
            if self._emit is not None:
                self._emit(well_formed(piece))

    def message(self) -> Message:
        return _check_answer("".join(self._texts) if self._message is None else self._message)


def _check_answer(answer: Any) -> Message:
    answer = well_formed(answer)
    if isinstance(answer, str):
        return {"role": "assistant", "content": answer}
    try:
        message = check_message(answer, "the model's answer")
    except (TypeError, ValueError) as error:
        raise ModelError(
            f"{error}; a model returns a text or a message of the role 'assistant'", retryable=False
        ) from None
    if message["role"] != "assistant":
        raise ModelError(f"the model's answer has the role {message['role']!r}, not 'assistant'", retryable=False)
    return message
