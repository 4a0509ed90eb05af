"""What the signatures of nodes and routers say: their names, parameters, the class of their state, where they lead."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, get_args, get_origin

from gpu_pregel.errors import ArgumentTypeError
from gpu_pregel.workflows.commands import Command
from gpu_pregel.workflows.node_context import NodeContext
from gpu_pregel.workflows.type_hints import resolved_hints

_LANGGRAPHS = {
    "config": '; context.config has the caller\'s config["configurable"]',
    "runtime": "; the context has what LangGraph's Runtime has",
    "store": "; refer to the store in the function",
    "writer": "; call context.write",
}
"""Parameters for which LangGraph has arguments, and what to use instead."""


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations of a function or callable object; none if they cannot be resolved."""
    while isinstance(function, partial):
        function = function.func
    try:
        return resolved_hints(function if inspect.isroutine(function) else type(function).__call__)
    except (AttributeError, NameError, TypeError):
        return {}


def first_annotation(function: Callable[..., Any]) -> Any:
    """Return the annotation of the first parameter, or None."""
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return None
    return hints_of(function).get(names[0]) if names else None


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


def name_of(function: Any) -> str:
    """Return the name of a function or callable object."""
    while isinstance(function, partial):
        function = function.func
    return str(getattr(function, "__name__", None) or getattr(function, "name", None) or type(function).__name__)


def takes_two(function: Callable[..., Any]) -> bool:
    """Whether a function can be called with two arguments."""
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        return False
    except ValueError:  # a builtin that does not say
        return True
    return True


def langgraph_hint(given: Any) -> str:
    """Return what to use in place of an object of LangGraph or LangChain, as the end of an error; empty for others."""
    cls = type(given)
    if cls.__module__.partition(".")[0] not in ("langgraph", "langchain_core"):
        return ""
    if hasattr(given, "add_node") and not hasattr(given, "invoke"):
        return "; take it over by from_langgraph(builder).compile()"
    if hasattr(given, "invoke"):
        return "; pass its method invoke, or take a graph of LangGraph over by from_langgraph(builder)"
    return "; it is LangGraph's: use that of gpu_pregel.workflows" if cls.__name__ in ("Command", "Send") else ""


def takes_context(function: Callable[..., Any], role: str) -> bool:
    """Whether a function has a second parameter without default."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    required = [one for one in positional if one.default is one.empty]
    several = any(one.kind is one.VAR_POSITIONAL for one in parameters)
    if len(required) > 2 or (not positional and not several):
        raise ArgumentTypeError(f"{role} must be a function of (state) or (state, context), not of {len(required)}")
    keywords = [one for one in parameters if one.kind is one.KEYWORD_ONLY and one.default is one.empty]
    for one in [*required[1:], *keywords]:
        if one in keywords or (one.name in _LANGGRAPHS and hints_of(function).get(one.name) is not NodeContext):
            raise ArgumentTypeError(
                f"{role} must be a function of (state) or (state, context), where context is a NodeContext: it cannot "
                f"be given {one.name!r}{_LANGGRAPHS.get(one.name, '')}"
            )
    return len(required) == 2
