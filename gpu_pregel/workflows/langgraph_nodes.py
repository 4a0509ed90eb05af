"""LangGraph's nodes and routers as functions of (state, context), and the conversion of what they return.

This module imports LangGraph; it is imported by ``from_langgraph``, and by workers that load such functions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from itertools import count
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from langchain_core.messages import BaseMessage
from langchain_core.runnables.config import set_config_context
from langgraph import types
from langgraph._internal import _constants as keys
from langgraph._internal._cache import default_cache_key
from langgraph._internal._retry import default_retry_on
from langgraph.errors import GraphInterrupt
from langgraph.runtime import Runtime

from gpu_pregel.errors import ArgumentTypeError
from gpu_pregel.host.agents.encoded_context import recorded_answers
from gpu_pregel.host.agents.retry import RetryPolicy
from gpu_pregel.workflows.cache_policy import CachePolicy
from gpu_pregel.workflows.commands import Command, Send
from gpu_pregel.workflows.graph_spec import LIMIT
from gpu_pregel.workflows.langgraph_types import adapt_langgraph_types
from gpu_pregel.workflows.node_context import MESSAGES, NodeContext

adapt_langgraph_types()  # in workers, too


@dataclass(frozen=True)
class Environment:
    """What LangGraph passes to functions beside the state.

    Attributes
    ----------
    store : BaseStore or None
    context_schema : type or None
        The class of ``Runtime.context``.
    message_keys : frozenset of str
        Keys whose reducer is LangGraph's ``add_messages``.
    """

    store: Any
    context_schema: Any
    message_keys: frozenset[str]


class Scratchpad:
    """The part of LangGraph's task state that ``langgraph.types.interrupt`` and managed values read.

    Parameters
    ----------
    answers : list
        The answers so far.
    step, stop : int
        Number of the superstep, from 1, and of the last one before the limit.
    """

    def __init__(self, answers: list[Any], step: int, stop: int) -> None:
        self.resume, self.step, self.stop = answers, step, stop
        self.interrupt_counter = count().__next__
        self.call_counter = count().__next__
        self.subgraph_counter = count().__next__

    def get_null_resume(self, consume: bool = False) -> None:
        """Return the answer that is for no task in particular; there is none."""


class LangGraphFunction:
    """Calls a Runnable of a LangGraph builder.

    Parameters
    ----------
    name : str
    runnable : Runnable
    environment : Environment
    metadata : mapping
    managed : mapping of str to type
        The managed values that its state has.
    """

    def __init__(
        self,
        name: str,
        runnable: Any,
        environment: Environment,
        metadata: Mapping[str, Any],
        managed: Mapping[str, Any],
    ) -> None:
        self.name, self.runnable, self.environment, self.metadata = name, runnable, environment, metadata
        self.managed, self.needs_limit = managed, bool(managed)

    def __call__(self, state: Any, context: NodeContext) -> Any:
        """Call the Runnable."""
        config = self._config(context)
        state = self._with_managed(state, config)
        try:
            with set_config_context(config) as variables:
                output = variables.run(self.runnable.invoke, state, config)
        except GraphInterrupt as error:
            output = _ask(context, error)
        return self.convert(output, context)

    def convert(self, output: Any, context: NodeContext) -> Any:
        """Return what the Runnable has returned as gpu_pregel's objects."""
        raise NotImplementedError

    def _config(self, context: NodeContext) -> dict[str, Any]:
        """Return the ``RunnableConfig`` of a call."""
        given = dict(context.config)
        scratchpad = Scratchpad(recorded_answers(context._context), context.superstep + 1, given.pop(LIMIT, 0))
        configurable = {
            **given,
            keys.CONFIG_KEY_SCRATCHPAD: scratchpad,
            keys.CONFIG_KEY_SEND: lambda _writes: None,
            keys.CONFIG_KEY_TASK_ID: context.key,
            keys.CONFIG_KEY_CHECKPOINT_NS: f"{context.node}:{context.key}",
            keys.CONFIG_KEY_RUNTIME: self._runtime(context),
        }
        metadata = {**self.metadata, "langgraph_node": context.node, "langgraph_step": context.superstep}
        config = {"configurable": configurable, "metadata": metadata, "tags": [], "run_name": self.name}
        if MESSAGES in context._modes:
            from gpu_pregel.workflows.langgraph_tokens import TokenHandler

            config["callbacks"] = [TokenHandler(context.emit)]
        return config

    def _with_managed(self, state: Any, config: Mapping[str, Any]) -> Any:
        """Return a state with its managed values."""
        if not self.managed:
            return state
        scratchpad = config["configurable"][keys.CONFIG_KEY_SCRATCHPAD]
        return {**state, **{name: cls.get(scratchpad) for name, cls in self.managed.items()}}

    def _runtime(self, context: NodeContext) -> Any:
        given = context.config.get("context")
        schema = self.environment.context_schema
        if isinstance(given, Mapping) and schema is not None and not issubclass(schema, dict):
            given = schema(**given)
        offered = {
            "context": given,
            "store": self.environment.store,
            "stream_writer": context.write,
            "heartbeat": context.heartbeat,  # releases before 1.2 have none
        }
        return Runtime(**{field.name: offered[field.name] for field in fields(Runtime) if field.name in offered})


class LangGraphNode(LangGraphFunction):
    """A node of a LangGraph builder."""

    def convert(self, output: Any, context: NodeContext) -> Any:
        """Return updates, a Command or a list of these."""
        return _converted(f"node {self.name!r}", output, MessageIds(context, self.environment.message_keys))


class LangGraphRouter(LangGraphFunction):
    """The router of a branch of a LangGraph builder."""

    def convert(self, output: Any, context: NodeContext) -> Any:  # noqa: ARG002
        """Return destinations."""
        if isinstance(output, (list, tuple)):
            return [_target(f"router {self.name!r}", one) for one in output]
        return _target(f"router {self.name!r}", output)


class _AsyncCall(LangGraphFunction):
    """Calls a Runnable that has only coroutine functions."""

    async def __call__(self, state: Any, context: NodeContext) -> Any:
        """Call the Runnable on the running event loop."""
        config = self._config(context)
        state = self._with_managed(state, config)
        try:
            with set_config_context(config) as variables:
                coroutine = self.runnable.ainvoke(state, config)
                output = await asyncio.get_running_loop().create_task(coroutine, context=variables)
        except GraphInterrupt as error:
            output = _ask(context, error)
        return self.convert(output, context)


class AsyncLangGraphNode(_AsyncCall, LangGraphNode):
    """A node that is a coroutine function."""


class AsyncLangGraphRouter(_AsyncCall, LangGraphRouter):
    """A router that is a coroutine function."""


def _ask(context: NodeContext, error: GraphInterrupt) -> Any:
    """Ask the question that ended the function: the one after those that have an answer."""
    questions = error.args[0]
    return context.interrupt(questions[0].value if questions else None)


class MessageIds:
    """Gives ids to LangChain's messages without one; the same in every attempt, unlike those of ``add_messages``."""

    def __init__(self, context: NodeContext, names: frozenset[str]) -> None:
        self._context, self._names, self._counter = context, names, count()

    def give(self, name: str, update: Any) -> Any:
        """Return an update of a key whose messages have ids."""
        if name in self._names:
            for one in update if isinstance(update, list) else [update]:
                if isinstance(one, BaseMessage) and one.id is None:
                    one.id = str(uuid5(NAMESPACE_OID, f"{self._context.key}:{next(self._counter)}"))
        return update


def _converted(source: str, output: Any, ids: MessageIds) -> Any:
    if isinstance(output, types.Send):
        return Command(goto=[_target(source, output)])
    if isinstance(output, types.Command):
        return _command(source, output, ids)
    if isinstance(output, (list, tuple)) and any(isinstance(one, types.Command) for one in output):
        return [one for part in output for one in _flat(_converted(source, part, ids))]
    if isinstance(output, Mapping):
        return _update(source, output.items(), ids)
    return output


def _flat(converted: Any) -> list[Any]:
    return converted if isinstance(converted, list) else [converted]


def _update(source: str, items: Iterable[tuple[str, Any]], ids: MessageIds) -> dict[str, Any]:
    update = {}
    for name, value in items:
        if isinstance(value, types.Overwrite):
            raise ArgumentTypeError(
                f"{source} returned an Overwrite of {name!r}, which is not supported: let the reducer of {name!r} "
                f"recognize a value that replaces the old one"
            )
        update[name] = ids.give(name, value)
    return update


def _command(source: str, command: Any, ids: MessageIds) -> Any:
    """Return a command, or several if its update is a list in which a key occurs again."""
    given = command.goto
    targets = [given] if isinstance(given, (str, types.Send)) else list(given)
    goto = [_target(source, one) for one in targets]
    update = command.update
    if isinstance(update, (list, tuple)):
        updates = [_update(source, [item], ids) for item in update]
        return [*[Command(update=one) for one in updates], Command(goto=goto, graph=command.graph)]
    if isinstance(update, Mapping):
        update = _update(source, update.items(), ids)
    return Command(update=update, goto=goto, graph=command.graph)


def _target(source: str, one: Any) -> Any:
    if not isinstance(one, types.Send):
        return one
    if getattr(one, "timeout", None) is not None:
        raise ArgumentTypeError(
            f"{source} returned a Send with a timeout: pass timeout= to add_node({one.node!r}, ...)"
        )
    return Send(one.node, one.arg)


@dataclass(frozen=True)
class LangGraphRetry(RetryPolicy):
    """A retry policy whose exceptions are those for which a function returns True."""

    retry_on: Callable[[Exception], bool] = default_retry_on

    def matches(self, error: BaseException) -> bool:
        """Whether an exception is retried."""
        return isinstance(error, Exception) and bool(self.retry_on(error))


def retry_policy(given: Any) -> RetryPolicy:
    """Return LangGraph's retry policy as gpu_pregel's."""
    options = {
        "attempts": given.max_attempts,
        "wait": given.initial_interval,
        "factor": given.backoff_factor,
        "max_wait": given.max_interval,
        "jitter": 0.5 if given.jitter else 0.0,
    }
    chosen = given.retry_on
    if isinstance(chosen, type):
        return RetryPolicy(**options, exceptions=(chosen,))
    if callable(chosen):
        return LangGraphRetry(**options, retry_on=chosen)
    return RetryPolicy(**options, exceptions=tuple(chosen))


def cache_policy(given: Any) -> CachePolicy:
    """Return LangGraph's cache policy as gpu_pregel's."""
    return CachePolicy(given.ttl, None if given.key_func is default_cache_key else given.key_func)
