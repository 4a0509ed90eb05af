"""A model that follows a script, for tests and examples."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable
from typing import Any, TypeAlias

from gpu_pregel.errors import ArgumentTypeError, ModelError
from gpu_pregel.workflows.messages import Message, as_message, as_messages, text_of

ScriptedAnswer: TypeAlias = str | Message | BaseException | Callable[[list[Message], list[Any]], Any]


class ScriptedModel:
    """A model that gives prepared answers, one after another.

    A transcript in which the model has spoken ``n`` times receives answer ``n``, from 0. The model itself counts
    nothing: repeated attempts, other processes and resumed runs receive the same answers.

    Parameters
    ----------
    answers : iterable
        Each is a text, a message (see :func:`~gpu_pregel.workflows.messages.assistant`), an exception, which is raised,
        or a function ``answer(messages, tools)`` of the transcript, which returns one of these.
    streams : bool
        Whether the text is also passed on word by word while it is "generated".

    Examples
    --------
    >>> from gpu_pregel.workflows import ScriptedModel, messages
    >>> model = ScriptedModel(["Hello.", lambda transcript, tools: f"You said {transcript[-1]['content']}"])
    >>> model("Hi!")
    {'role': 'assistant', 'content': 'Hello.'}
    >>> model([messages.user("Hi!"), messages.assistant("Hello."), messages.user("Bye!")])
    {'role': 'assistant', 'content': 'You said Bye!'}
    """

    def __init__(self, answers: Iterable[ScriptedAnswer], *, streams: bool = True) -> None:
        if isinstance(answers, (str, dict)):
            raise ArgumentTypeError(f"answers must be a list of answers, not {answers!r:.80}: wrap it in [ ]")
        self._answers = list(answers)
        for answer in self._answers:
            if not isinstance(answer, BaseException) and not callable(answer):
                as_message(answer, "assistant")
        if not streams:
            self.stream = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ScriptedModel({len(self._answers)} answers)"

    def __call__(self, messages: str | Iterable[Message | str], tools: Iterable[Any] = ()) -> Message:
        """Return the next answer."""
        transcript = as_messages(messages)
        spoken = sum(message["role"] == "assistant" for message in transcript)
        if spoken >= len(self._answers):
            raise ModelError(
                f"the script has {len(self._answers)} answers, and the model is asked for number {spoken + 1}: "
                "add answers to ScriptedModel([…])",
                retryable=False,
            )
        answer = self._answers[spoken]
        if callable(answer):
            answer = answer(transcript, list(tools))
        if isinstance(answer, BaseException):
            raise answer
        return dict(as_message(answer, "assistant"))

    def stream(self, messages: str | Iterable[Message | str], tools: Iterable[Any] = ()) -> Generator[str | Message]:
        """Yield the next answer word by word, and then whole."""
        message = self(messages, tools)
        yield from re.findall(r"\S+\s*|\s+", text_of(message))
        yield message
