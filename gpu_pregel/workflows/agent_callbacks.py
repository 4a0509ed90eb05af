"""Callbacks of the ready agent: functions that the state names, called with what the agent does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from gpu_pregel.errors import ArgumentError, ArgumentTypeError
from gpu_pregel.workflows.function_threads import wait_for_function
from gpu_pregel.workflows.node_runner import noted
from gpu_pregel.workflows.tools import is_async

EVENTS = ("model", "tool", "step", "error")


class Callbacks:
    """The callback functions of an agent, by name.

    Parameters
    ----------
    functions : mapping from str to callable
    """

    def __init__(self, functions: Mapping[str, Callable[[dict[str, Any]], Any]] | None) -> None:
        if functions is not None and not isinstance(functions, Mapping):
            raise ArgumentTypeError(f"callbacks must be a mapping from names to functions, not {functions!r:.80}")
        self._functions = dict(functions or {})
        for name, function in self._functions.items():
            if not isinstance(name, str) or not callable(function):
                raise ArgumentTypeError(
                    f"callbacks: {name!r:.80} must be a name of a function, not of {function!r:.80}"
                )
        self.usual = {event: event for event in EVENTS if event in self._functions}
        """Those that are called unless the state names others: functions with the name of an event."""

    def chosen(self, state: Mapping[str, Any]) -> dict[str, str]:
        """Return the names of functions by event, or raise if one is unknown."""
        named = state.get("callbacks") or {}
        for event, name in named.items():
            if event not in EVENTS:
                raise ArgumentError(
                    f'the state\'s "callbacks" has the unknown event {event!r:.80}; events: {", ".join(EVENTS)}'
                )
            if not isinstance(name, str) or (name not in self._functions and name != event):
                known = ", ".join(map(repr, self._functions)) or "none"
                raise ArgumentError(
                    f'the state\'s "callbacks" names {name!r:.80}; functions of create_agent(callbacks=...): {known}'
                )
        return {**self.usual, **named}

    async def call(self, event: str, state: Mapping[str, Any], **facts: Any) -> None:
        """Call the function of an event, if it has one."""
        name = self.chosen(state).get(event)
        function = None if name is None else self._functions.get(name)
        if function is None:
            return
        about = {"event": event, "context": state.get("context") or {}, "meta": state.get("callback_meta") or {}}
        try:
            if is_async(function):
                await function({**about, **facts})
            else:
                await wait_for_function(partial(function, {**about, **facts}))
        except Exception as error:
            raise noted(error, f"raised by the callback {name!r} of the event {event!r}") from None
