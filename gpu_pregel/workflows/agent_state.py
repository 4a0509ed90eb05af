"""The state of the ready agent: its fields, what is new in its messages, how they are trimmed and prompts filled in."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, get_type_hints

from gpu_pregel.errors import ArgumentError, ArgumentTypeError
from gpu_pregel.host.arguments import check_integer
from gpu_pregel.workflows import messages as chat
from gpu_pregel.workflows.messages import Message
from gpu_pregel.workflows.reducers import REMOVE_ALL
from gpu_pregel.workflows.state_messages import GraphState

if TYPE_CHECKING:
    from gpu_pregel.workflows.agent_callbacks import Callbacks

FORMAT_ADVISER = "response_format"
"""Name of the "user" that tells a model what is wrong with its answer."""
NO_MESSAGE = 'the agent has no message to answer: pass {"messages": "..."}'
_DICTS: Final = {
    "context": '{"user": "Ada"}',
    "callbacks": '{"tool": "name of a function in create_agent(callbacks=...)"}',
    "callback_meta": '{"request": 1}',
}
"""The fields that are dicts, each with an example."""
_PLACE = re.compile(r"\{(\w+)\}")
Trim = int | Callable[[list[Message]], Iterable[Message]] | None
DEFAULTS: Final = ("system_prompt", "max_iterations", "tools")
"""The fields that have the values of ``create_agent`` unless the caller of the agent passes others."""


class AgentState(GraphState, total=False):
    """The state of an agent: the fields of :class:`GraphState`, and how it has ended.

    Attributes
    ----------
    messages : list of dict
        The transcript that the model gets, without the system prompt; shortened by ``trim``.
    full_messages : list of dict
        The whole transcript.
    system_prompt : str
        The text before it. A caller may pass another one than ``create_agent`` has; ``{name}`` stands for the item
        "name" of the context.
    tools : list of dict
        Descriptions of the tools that the model may call. A caller may pass fewer, or their names.
    max_iterations : int
        Maximum number of calls of the model for one message of the user. A caller may pass another one.
    iteration : int
        Number of calls of the model since that message.
    scratchpad : list of dict
        The steps so far: ``{"step": "model", "iteration": …, "tool_calls": [names]}``, ``{"step": "tool", "iteration":
        …, "name": …, "call_id": …, "status": "ok" or "error"}`` and ``{"step": "trim", "iteration": …, "removed": …}``.
    context : dict
        Data of the caller, for tools (:class:`ToolContext` has it) and prompts.
    callbacks : dict of str to str
        Names of functions that ``create_agent`` was given, by event: "model", "tool", "step" or "error".
    callback_meta : dict
        Data that each of them gets.
    status : str
        Why the agent has ended: "completed", "max_iterations", or "invalid_response" if even the second answer was not
        in the requested format; "running" before.
    structured_response : data
        The answer in the requested format, or None.
    """

    status: str
    structured_response: Any


class AgentMemory(AgentState, total=False):
    """What an agent also remembers.

    Attributes
    ----------
    trimmed : int
        How many messages ``full_messages`` has more than ``messages``.
    rewritten : int
        How many messages at the beginning of ``messages`` a function has chosen or written.
    defaults : dict
        The values of ``DEFAULTS`` that are not the caller's.
    """

    trimmed: int
    rewritten: int
    defaults: dict[str, Any]


OWN: Final = frozenset(get_type_hints(GraphState)) - {"messages", "context", "callbacks", "callback_meta"}
"""The fields that an agent which is a node does not share with the graph: those of two agents would be mixed up."""


def as_update(output: dict[str, Any]) -> dict[str, Any]:
    """Return the output of an agent that is a node of a graph: its messages, however many it has trimmed."""
    shared = {name: value for name, value in output.items() if name not in get_type_hints(GraphState)}
    return {"messages": output.get("full_messages", output.get("messages", [])), **shared}


def check_fields(given: Mapping[str, Any], begins: bool, tools: Collection[str], callbacks: Callbacks) -> None:
    """Refuse an update by a caller whose fields an agent cannot use.

    Parameters
    ----------
    given : mapping
    begins : bool
        Whether the run begins with it, so that it must have a message.
    tools : collection of str
        The names of the agent's tools.
    callbacks : Callbacks
    """
    for name in ("messages", "full_messages"):
        _check_messages(name, given.get(name, ()))
    if begins and not given.get("messages"):
        raise ArgumentError(NO_MESSAGE)
    if "system_prompt" in given:
        check_system_prompt(given["system_prompt"])
    if "tools" in given:
        names_of_tools(given["tools"], tools)
    if "max_iterations" in given:
        check_integer('the state\'s "max_iterations"', given["max_iterations"], 1, 1 << 31)
    if "iteration" in given:
        check_integer('the state\'s "iteration" (calls of the model so far)', given["iteration"], 0, 1 << 31)
    steps = given.get("scratchpad", ())
    if not isinstance(steps, (list, tuple)) or not all(isinstance(one, dict) and "step" in one for one in steps):
        raise ArgumentTypeError(
            f'the state\'s "scratchpad" must be a list of steps such as {{"step": "note", "text": "..."}}, not '
            f"{steps!r:.80}"
        )
    for name, example in _DICTS.items():
        if not isinstance(given.get(name, {}), Mapping):
            raise ArgumentTypeError(f'the state\'s "{name}" must be a dict such as {example}, not {given[name]!r:.80}')
    callbacks.chosen(given)


def _check_messages(name: str, given: Any) -> None:
    """Refuse what are neither chat messages nor removals of them."""
    listed = given if isinstance(given, (list, tuple)) else [given]
    kept = [one for one in listed if not (isinstance(one, Mapping) and one.get("role") == "remove" and "id" in one)]
    chat.as_messages(kept, f'the state\'s "{name}"')


def check_system_prompt(given: Any) -> None:
    """Refuse a system prompt that is no text."""
    if not isinstance(given, str):
        raise ArgumentTypeError(f'the state\'s "system_prompt" must be a string, not {given!r:.80}')


def check_trim(trim: Trim) -> Trim:
    """Return ``trim``, or raise unless it is a number of messages or a function."""
    if trim is not None and not callable(trim):
        check_integer("trim", trim, 1, 1 << 31)
    return trim


def trimmed(transcript: list[Message], trim: Trim) -> list[Message]:
    """Return the messages that the model gets."""
    if trim is None:
        return transcript
    if callable(trim):
        return chat.as_messages(trim([*transcript]), "what trim returned")
    count = len(transcript)
    if count <= trim:
        return transcript
    turn = count - len(turn_of(transcript))
    users = (number for number in range(count - trim, count) if _begins_turn(transcript[number]))
    # A transcript begins with a message of the user: tool answers without their calls are refused by servers.
    return transcript[min(next(users, count), max(0, turn - 1)) :]


def _begins_turn(message: Message) -> bool:
    return message["role"] not in ("assistant", "tool") and message.get("name") != FORMAT_ADVISER


def turn_of(transcript: list[Message]) -> list[Message]:
    """Return what has come since the user's last message."""
    for number in range(len(transcript), 0, -1):
        if _begins_turn(transcript[number - 1]):
            return transcript[number:]
    return transcript


def replacement(transcript: Sequence[Message]) -> list[dict[str, Any]]:
    """Return the update that leaves only these messages."""
    return [{"role": "remove", "id": REMOVE_ALL}, *transcript]


def new_messages(transcript: list[Message], full: list[Message], removed: int, rewritten: int = 0) -> list[Message]:
    """Return the messages that the whole transcript, without the first ``removed``, lacks, or has in another form.

    The first ``rewritten`` messages are not those of the whole transcript.
    """
    rest = [*transcript[:rewritten], *full[removed + rewritten :]]
    known = {message["id"]: message for message in full if "id" in message}
    edited = [one for one in transcript if one.get("id") in known and known[one["id"]] != one]
    count = len(rest)
    if len(transcript) < count or not all(map(_is_same, transcript, rest)):
        # The caller has removed or edited messages: find what is still the end of the transcript, or its beginning.
        ends = (k for k in range(min(len(transcript), count), 0, -1) if all(map(_is_same, transcript[:k], rest[-k:])))
        pairs = list(zip(transcript, rest, strict=False))
        begins = next((k for k, pair in enumerate(pairs) if not _is_same(*pair)), len(pairs))
        count = max(next(ends, 0), begins)
    return [*edited, *(one for one in transcript[count:] if one not in edited)]


def _is_same(one: Message, other: Message) -> bool:
    return one == other or (one.get("id") is not None and one.get("id") == other.get("id"))


def filled_in(text: str, context: Mapping[str, Any]) -> str:
    """Return a text with the items of the context in the places of their names."""
    return _PLACE.sub(lambda place: str(context[place[1]]) if place[1] in context else place[0], text)


def names_of_tools(given: Any, known: Collection[str]) -> list[str]:
    """Return the names of the tools in the state, which has descriptions or names, or raise if one is unknown."""
    if not isinstance(given, (list, tuple)):
        raise ArgumentTypeError(f'the state\'s "tools" must be a list of names or descriptions, not {given!r:.80}')
    names: list[Any] = [one.get("name") if isinstance(one, dict) else one for one in given]
    for name in names:
        if not isinstance(name, str) or name not in known:
            raise ArgumentError(
                f'the state\'s "tools" has {name!r:.80}, but the agent has the tools {list(known)}: pass some of '
                "these, or create_agent(tools=...) with it"
            )
    return names
