"""Tools of agents: Python functions that a model may call, with validated arguments, timeouts and retries.

What goes wrong in a call is told to the model in the tool's answer, and not raised.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import re
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, overload

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, ToolError
from gpu_pregel.host.agents.retry import RetryPolicy
from gpu_pregel.host.arguments import check_flag, check_seconds
from gpu_pregel.workflows.docstrings import read_docstring
from gpu_pregel.workflows.function_arguments import Validate, arguments_of, parameters_of_type
from gpu_pregel.workflows.function_threads import FunctionThread
from gpu_pregel.workflows.json_schemas import Schema
from gpu_pregel.workflows.limited_waits import TooLateError, is_being_cancelled, wait_at_most
from gpu_pregel.workflows.messages import Message, ToolCall, tool_answer
from gpu_pregel.workflows.tool_results import text_of_result
from gpu_pregel.workflows.well_formed_text import well_formed

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MAX_ERROR = 2_000
"""Characters of an exception that the model is told."""


def _ignore(_: Any) -> None:
    pass


@dataclass(frozen=True)
class ToolContext:
    """What a tool may know about its call: the value of a parameter that is annotated with this class.

    The model neither sees nor fills in that parameter.

    Attributes
    ----------
    call_id : str
        The id that the model has given the call.
    key : str
        The same in every attempt, restart and resume of a run, and different for each call: an idempotency key, with
        which a service recognises a repeated request.
    attempt : int
        Number of this attempt at the call, from 1.
    emit : callable
        ``emit(payload)`` sends data to whoever watches the run, in the stream mode "custom".
    config : mapping
        What the caller of the run has passed as ``config["configurable"]``, such as the id of a user.
    context : mapping
        The state's ``context``: data of the caller, which is stored with the run.

    Examples
    --------
    >>> from gpu_pregel.workflows import ToolContext, tool
    >>> @tool
    ... def order(item: str, context: ToolContext) -> str:
    ...     '''Order an item.'''
    ...     return f"ordered {item} under the key {context.key}"
    >>> order.parameters["properties"]
    {'item': {'type': 'string'}}
    """

    call_id: str
    key: str
    attempt: int = 1
    emit: Callable[[Any], object] = _ignore
    config: Mapping[str, Any] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)


class Tool:
    """A function that a model may call. The object itself is called as the function.

    Parameters
    ----------
    function : callable
        An ordinary or ``async`` function. Its result is told to the model as text: a string as it is, and other data as
        JSON.
    name : str, optional
        Default: the function's.
    description : str, optional
        What the model reads about it. Default: the docstring without its sections.
    parameters : dict, optional
        JSON schema of the arguments, which are then passed as the model states them. Default: from the annotations and
        the docstring, and arguments are converted to the annotated types.
    timeout : float, optional
        Seconds of an attempt. An ``async`` function is cancelled. An ordinary one goes on in its thread, and its result
        is dropped.
    retry : RetryPolicy, optional
        Attempts at a call. Default: one.
    needs_consent : bool or callable
        Whether a human is asked before the call, or a function of the arguments that decides it.

    Raises
    ------
    ArgumentError, ArgumentTypeError
    """

    __name__: str

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        retry: RetryPolicy | None = None,
        needs_consent: bool | Callable[[dict[str, Any]], bool] = False,
    ) -> None:
        if not callable(function):
            raise ArgumentTypeError(f"a tool is made from a function, not from {function!r:.80}")
        self.function = function
        self.name = _check_name(name if name is not None else getattr(function, "__name__", None))
        self.description = description if description is not None else read_docstring(function)[0]
        if not isinstance(self.description, str):
            raise ArgumentTypeError(f"tool {self.name!r}: description must be a string, not {description!r:.80}")
        self.timeout = None if timeout is None else check_seconds(f"tool {self.name!r}: timeout", timeout)
        if not isinstance(retry, RetryPolicy | None):
            raise ArgumentTypeError(f"tool {self.name!r}: retry must be a RetryPolicy or None, not {retry!r:.80}")
        self.retry = retry or RetryPolicy(attempts=1)
        self.needs_consent = needs_consent
        if not callable(needs_consent):
            check_flag(f"tool {self.name!r}: needs_consent", needs_consent)
        self.is_async = is_async(function)
        self.parameters: Schema
        self._validate: Validate
        self._contexts: list[str] = []
        if parameters is None:
            self._contexts = parameters_of_type(function, self.name, ToolContext)
            self.parameters, self._validate = arguments_of(function, self.name, dict.fromkeys(self._contexts))
        else:
            if not isinstance(parameters, Mapping) or parameters.get("type", "object") != "object":
                raise ArgumentError(f"tool {self.name!r}: parameters must be a JSON schema of type object")
            self.parameters, self._validate = dict(parameters), dict
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"Tool({self.name!r})"

    def __reduce__(self) -> Any:
        """Pickle a decorated function of a module by its name, and any other with its function."""
        found: Any = sys.modules.get(self.__module__) if self.__module__ != "__main__" else None
        qualified = getattr(self, "__qualname__", "")
        for part in qualified.split("."):
            found = getattr(found, part, None)
        if found is self:
            return qualified
        parameters = None if self._validate is not dict else self.parameters
        given = (self.name, self.description, parameters, self.timeout, self.retry, self.needs_consent)
        return _restore, (self.function, *given)

    @property
    def description_for_models(self) -> dict[str, Any]:
        """Name, description and JSON schema of the arguments, as models are given them."""
        return {"name": self.name, "description": self.description, "parameters": self.parameters}

    def asks_for_consent(self, arguments: dict[str, Any]) -> bool:
        """Whether a human must be asked before a call with these arguments."""
        return bool(self.needs_consent(arguments) if callable(self.needs_consent) else self.needs_consent)

    def check(self, call: ToolCall) -> str | None:
        """Return what is wrong with the arguments of a call, for the model to read, or None."""
        if call.get("invalid_arguments") is not None:
            return f"the arguments are not a JSON object: {call['invalid_arguments']:.500}"
        try:
            self._validate(call["arguments"])
        except ToolError as error:
            return str(error)
        return None

    def run(self, call: ToolCall, context: ToolContext | None = None) -> Message:
        """Answer a call.

        Parameters
        ----------
        call : dict
            As :func:`~gpu_pregel.workflows.messages.tool_call` returns it.
        context : ToolContext, optional

        Returns
        -------
        dict
            A message of the role "tool", with ``"status": "error"`` if the call failed.
        """
        attempt = 1
        while True:
            try:
                result = self._call(self._arguments(call, context, attempt))
                return tool_answer(well_formed(text_of_result(result)), call)
            except (Exception, SystemExit) as error:
                wait = self._wait_after(error, attempt)
                if wait is None:
                    return self.failure(call, error)
            time.sleep(wait)
            attempt += 1

    async def arun(self, call: ToolCall, context: ToolContext | None = None) -> Message:
        """Answer a call on the running event loop; an ordinary function is called on a thread."""
        attempt = 1
        while True:
            try:
                result = await self._acall(self._arguments(call, context, attempt))
                return tool_answer(well_formed(text_of_result(result)), call)
            except (Exception, SystemExit, asyncio.CancelledError) as error:
                if isinstance(error, asyncio.CancelledError) and is_being_cancelled():
                    raise
                wait = self._wait_after(error, attempt)
                if wait is None:
                    return self.failure(call, error)
            await asyncio.sleep(wait)
            attempt += 1

    def failure(self, call: ToolCall, error: BaseException) -> Message:
        """Return the answer that tells the model why a call failed."""
        text = str(error)
        if not isinstance(error, ToolError):
            text = f"{type(error).__name__}: {text}" if text else type(error).__name__
        text = text if len(text) <= _MAX_ERROR else f"{text[:_MAX_ERROR]}…"
        return tool_answer(well_formed(f"The tool {self.name} failed: {text}"), call, failed=True)

    def _arguments(self, call: ToolCall, context: ToolContext | None, attempt: int) -> dict[str, Any]:
        if call.get("invalid_arguments") is not None:
            raise ToolError(self.check(call) or "", retryable=False)
        arguments = dict(self._validate(call["arguments"]))
        for name in self._contexts:
            known = context or ToolContext(call["id"], call["id"])
            arguments[name] = replace(known, attempt=attempt)
        return arguments

    def _call(self, arguments: dict[str, Any]) -> Any:
        if self.is_async:
            return asyncio.run(self._acall(arguments))
        if self.timeout is None:
            return _awaited(self.function(**arguments))
        outcome = FunctionThread(functools.partial(self.function, **arguments))
        if not outcome.ended.wait(self.timeout):
            raise self._expired(is_running=True)
        return _awaited(outcome.take())

    async def _acall(self, arguments: dict[str, Any]) -> Any:
        if self.is_async:
            pending: Awaitable[Any] = self.function(**arguments)
        else:
            outcome = FunctionThread(functools.partial(self.function, **arguments), asyncio.get_running_loop())
            pending = outcome.wait()
        if self.timeout is None:
            return await _awaited_twice(pending)
        try:
            return await wait_at_most(_awaited_twice(pending), self.timeout)
        except TooLateError as late:
            raise self._expired(is_running=late.is_running or not self.is_async) from None

    def _expired(self, is_running: bool) -> ToolError:
        # A second attempt beside the first one, which goes on, would do twice what the tool does.
        more = "; it may still be running" if is_running else ""
        return ToolError(f"no result after {self.timeout:g} s{more}", retryable=not is_running)

    def _wait_after(self, error: BaseException, attempt: int) -> float | None:
        """Return the seconds until the next attempt, or None if there is none."""
        if attempt >= self.retry.attempts or not getattr(error, "retryable", True) or not self.retry.matches(error):
            return None
        after = getattr(error, "retry_after", None)
        return self.retry.seconds_before(attempt + 1) if after is None else min(after, self.retry.max_wait)


def _awaited(result: Any) -> Any:
    """Return a result, or that of the coroutine that an ordinary function has returned."""

    async def wait() -> Any:
        return await result

    return asyncio.run(wait()) if inspect.iscoroutine(result) else result


async def _awaited_twice(pending: Awaitable[Any]) -> Any:
    """Return a result, or that of the coroutine that a function has returned."""
    result = await pending
    return await result if inspect.iscoroutine(result) else result


ToolLike: TypeAlias = Tool | Callable[..., Any] | dict[str, Any]
"""A tool, a function of which one is made, or, for models alone, a description."""


def _restore(function: Any, name: str, description: str, parameters: Any, *options: Any) -> Tool:
    timeout, retry, needs_consent = options
    return Tool(
        function,
        name=name,
        description=description,
        parameters=parameters,
        timeout=timeout,
        retry=retry,
        needs_consent=needs_consent,
    )


@overload
def tool(function: Callable[..., Any], **options: Any) -> Tool: ...
@overload
def tool(function: None = None, **options: Any) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Make a :class:`Tool` of a function; also a decorator, with or without options.

    Parameters
    ----------
    function : callable
    **options
        Those of :class:`Tool`.

    Examples
    --------
    >>> from gpu_pregel.workflows import messages, tool
    >>> @tool(timeout=5)
    ... def add(a: int, b: int = 1) -> int:
    ...     '''Add two numbers.'''
    ...     return a + b
    >>> add(2, 3)
    5
    >>> add.description_for_models["parameters"]["required"]
    ['a']
    >>> add.run(messages.tool_call("add", {"a": "three"}))["content"]
    "The tool add failed: a: Input should be a valid integer, unable to parse string as an integer, not 'three'"
    """
    if function is None:
        return functools.partial(tool, **options)
    return Tool(function, **options)


def is_async(function: Any) -> bool:
    """Whether a function, or an object with ``__call__``, is ``async``."""
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def as_tools(tools: Iterable[Tool | Callable[..., Any]]) -> dict[str, Tool]:
    """Return tools by name, made of functions where necessary.

    Raises
    ------
    ArgumentError
        If two have the same name.
    """
    if isinstance(tools, (str, bytes, Mapping)) or not isinstance(tools, Iterable):
        raise ArgumentTypeError(f"tools must be a list of tools or functions, not {tools!r:.80}")
    found: dict[str, Tool] = {}
    for one in tools:
        made = one if isinstance(one, Tool) else Tool(one)
        if made.name in found:
            raise ArgumentError(f"two tools have the name {made.name!r}: pass name= to one of them")
        found[made.name] = made
    return found


def describe(tool: ToolLike) -> dict[str, Any]:
    """Return name, description and JSON schema of the arguments of a tool."""
    if not isinstance(tool, dict):
        return (tool if isinstance(tool, Tool) else Tool(tool)).description_for_models
    if not isinstance(tool.get("name"), str) or not isinstance(tool.get("parameters", {}), dict):
        raise ArgumentError(f"a tool's description needs a name and parameters, a JSON schema, not {tool!r:.80}")
    return tool


def _check_name(name: object) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ArgumentError(
            f"a tool's name must have from 1 to 64 letters, digits, _ and -, not {name!r:.80}: pass name="
        )
    return name
