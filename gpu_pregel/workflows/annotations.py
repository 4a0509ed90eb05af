"""What the annotations of nodes and routers say: the class of the state that they take, and where they lead."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, get_args, get_origin, get_type_hints

from gpu_pregel.workflows.commands import Command


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations of a function or callable object; none if they cannot be resolved."""
    while isinstance(function, partial):
        function = function.func
    target = function if inspect.isroutine(function) else type(function).__call__
    try:
        return get_type_hints(target)
    except (AttributeError, NameError, TypeError):
        return {}


def router_targets(router: Callable[..., Any]) -> tuple[str, ...] | None:
    """Return the names in ``-> Literal["a", "b"]``, also in a list or a union; None if others may be returned."""
    return _names(hints_of(router).get("return"))


def command_targets(node: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names in ``-> Command[Literal["a", "b"]]``, also in a list or a union."""
    found: list[str] = []
    hints = [hints_of(node).get("return")]
    while hints:
        hint = hints.pop()
        if get_origin(hint) is Command:
            found += _names(get_args(hint)[0]) or ()
        else:
            hints += get_args(hint)[::-1]
    return tuple(dict.fromkeys(found))


def _names(hint: Any) -> tuple[str, ...] | None:
    """Return the names that a type allows, or None if it is not made of literals only."""
    if hint is type(None):
        return ()
    arguments = get_args(hint)
    if not arguments:
        return None
    if get_origin(hint) is Literal:
        return tuple(map(str, arguments)) if all(isinstance(one, str) for one in arguments) else None
    found: list[str] = []
    for one in arguments:
        names = () if one is Ellipsis else _names(one)
        if names is None:
            return None
        found += names
    return tuple(dict.fromkeys(found))
