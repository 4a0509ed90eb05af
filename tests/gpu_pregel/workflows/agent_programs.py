"""Tools and models of agents that run in worker processes too."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from gpu_pregel.workflows import ScriptedModel, messages, tool

GOOD = {"city": "Bergen"}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
THREAD = {"configurable": {"thread_id": "1"}}


@dataclass
class Weather:
    city: str
    degrees: float = 0.0


@tool
def add(a: int, b: int = 0) -> int:
    """Add two numbers."""
    return a + b


@tool
def fail() -> None:
    """Fail."""
    raise ValueError("boom")


@tool
def pid() -> int:
    """Return the id of the process."""
    return os.getpid()


def calls(*made: tuple[str, dict[str, Any]], text: str = "") -> dict[str, Any]:
    """Return a message of a model that calls tools."""
    return messages.assistant(
        text, [messages.tool_call(name, arguments, id=f"{k}") for k, (name, arguments) in enumerate(made)]
    )


def script(*answers: Any) -> ScriptedModel:
    return ScriptedModel(answers)


@tool
def die() -> None:
    """End the process."""
    os._exit(3)


def plain(transcript: list[Any], tools: list[Any]) -> str:
    """Answer with the last message and the number of tools."""
    return f"{transcript[-1]['content']} {len(tools)}"


def contents(result: dict[str, Any]) -> list[Any]:
    """Return the contents of the messages of a state."""
    return [message["content"] for message in result["messages"]]
