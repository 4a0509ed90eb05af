"""Reducers for ``Annotated[type, reducer]``: how a key of the state takes an update."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpu_pregel.errors import ArgumentTypeError

REMOVE_ALL = "__remove_all__"
"""The id of a removal that removes all messages."""


def append(old: list[Any] | None, new: Any) -> list[Any]:
    """Add the items of a list, or a single item that is no list, at the end of a list.

    Examples
    --------
    >>> from gpu_pregel.workflows import append
    >>> append([1], [2, 3]), append([1], 2)
    ([1, 2, 3], [1, 2])
    """
    return [*(old or []), *(new if isinstance(new, list) else [new])]


def merge(old: Mapping[Any, Any] | None, new: Mapping[Any, Any]) -> dict[Any, Any]:
    """Add the items of a dict to a dict; later ones replace those with the same key.

    Examples
    --------
    >>> from gpu_pregel.workflows import merge
    >>> merge({"a": 1, "b": 1}, {"b": 2})
    {'a': 1, 'b': 2}
    """
    for one in (old or {}, new):
        if not isinstance(one, Mapping):
            raise ArgumentTypeError(f"merge takes dicts, not {one!r:.200}")
    return {**(old or {}), **new}


def last(old: Any, new: Any) -> Any:  # noqa: ARG001
    """Keep the last update, where several nodes may write in one superstep; writers are ordered by name.

    Examples
    --------
    >>> from gpu_pregel.workflows import last
    >>> last(1, 2)
    2
    """
    return new


def increment(old: Any, new: Any) -> Any:
    """Add a number.

    Examples
    --------
    >>> from gpu_pregel.workflows import increment
    >>> increment(2, 3)
    5
    """
    return new if old is None else old + new


def add_messages(old: Any, new: Any) -> list[Any]:
    """Add messages to a list of them: one with the id of an earlier message replaces it, others are appended.

    Messages are dicts, or objects, with an optional ``id``. ``{"role": "remove", "id": id}`` removes a message, and
    with the id ``"__remove_all__"`` all earlier ones. Messages without an id get none.

    Examples
    --------
    >>> from gpu_pregel.workflows import add_messages
    >>> add_messages([{"role": "user", "content": "hi", "id": "1"}], {"role": "user", "content": "hello", "id": "1"})
    [{'role': 'user', 'content': 'hello', 'id': '1'}]
    """
    messages = list(_as_messages(old))
    places = {_id(one): place for place, one in enumerate(messages) if _id(one) is not None}
    removed: set[int] = set()
    for message in _as_messages(new):
        name = _id(message)
        if _is_removal(message):
            if name == REMOVE_ALL:
                messages, places, removed = [], {}, set()
            elif name in places:
                removed.add(places[name])
            else:
                raise ArgumentTypeError(f"there is no message {name!r} to remove")
        elif name is not None and name in places:
            messages[places[name]] = message
            removed.discard(places[name])
        else:
            if name is not None:
                places[name] = len(messages)
            messages.append(message)
    return [message for place, message in enumerate(messages) if place not in removed]


def _as_messages(given: Any) -> list[Any]:
    """Return a list of messages, given one or several; a string is one of the user."""
    if given is None:
        return []
    return [_as_message(one) for one in (given if isinstance(given, (list, tuple)) else [given])]


def _as_message(given: Any) -> Any:
    if isinstance(given, str):
        return {"role": "user", "content": given}
    if isinstance(given, Mapping) or hasattr(given, "content"):
        return given
    raise ArgumentTypeError(f"a message must be a dict with role and content, or a string, not {given!r:.200}")


def _id(message: Any) -> Any:
    return message.get("id") if isinstance(message, Mapping) else getattr(message, "id", None)


def _is_removal(message: Any) -> bool:
    role = message.get("role") if isinstance(message, Mapping) else getattr(message, "type", None)
    return bool(role == "remove")
