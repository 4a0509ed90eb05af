"""The compute function of a graph whose state travels in messages: the origin's ``compute_fn``.

The value of a vertex is a dict with ``"node"``, its name, and ``"result"``: None, ``("ok", state)`` or ``("error",
failure)``. That of the start also has ``"activated"`` and ``"initial_state"``; that of the end ``"merged"``, the
message that all states that have reached it make; that of a node with joins ``"waiting"``, the messages that wait for
those of other sources.
"""

from __future__ import annotations

import traceback
from collections.abc import Generator, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gpu_pregel.errors import AgentError, ArgumentError, ArgumentTypeError
from gpu_pregel.host.agents.codec import decode, encode, id_key
from gpu_pregel.host.agents.encoded_context import send_encoded
from gpu_pregel.workflows.async_node_runner import AsyncNodeRunner
from gpu_pregel.workflows.commands import END, START
from gpu_pregel.workflows.node_context import CURRENT, NodeContext
from gpu_pregel.workflows.node_runner import Call, Calls, NodeRunner, make_calls, noted
from gpu_pregel.workflows.schemas import Writes
from gpu_pregel.workflows.state_messages import (
    ACTIVATED,
    INITIAL_STATE,
    SOURCE,
    STATE,
    Message,
    changed_message,
    forked_message,
    merge_messages,
)
from gpu_pregel.workflows.task_messages import GIVEN, IDLE, ParentCommand, destinations, read_output

if TYPE_CHECKING:
    from gpu_pregel.host.agents.context import Context

OK, ERROR = "ok", "error"
NODE, RESULT, MERGED, WAITING = "node", "result", "merged", "waiting"
END_ID = id_key(END)


class MessageRunner(NodeRunner):
    """Computes the vertices of a graph whose functions are all ordinary ones.

    Parameters
    ----------
    graph : GraphSpec
    config : mapping
    retry : RetryPolicy
        Of nodes without their own.
    """

    @cached_property
    def _joined(self) -> dict[str, list[str]]:
        """The targets of the joins that each node belongs to."""
        joined: dict[str, list[str]] = {}
        for target, joins in self._graph.joins.items():
            for source in frozenset().union(*joins):
                joined.setdefault(source, []).append(target)
        return joined

    def __call__(self, context: Context) -> None:
        """Compute a vertex."""
        token = CURRENT.set(NodeContext(context, self._config, self._store, self._modes))
        try:
            make_calls(self._calls(context))
        finally:
            CURRENT.reset(token)

    def _calls(self, context: Context) -> Calls:
        """Compute a vertex; it votes to halt in any case."""
        context.vote_to_halt()
        name = context.vertex_id
        try:
            message = _read_start(context) if name == START else self._read_messages(context, name)
            if message is None:
                context.contribute(IDLE, None)
            elif name == END:
                self._keep(context, message)
            else:
                writes: Writes = []
                targets: list[Any] = []
                if name != START or self._graph.start is not None:
                    writes, targets = yield from self._run_node(context, name, message)
                    if name == START:
                        context.contribute(GIVEN, 0)
                yield from self._pass_on(context, name, message, writes, targets)
        except Exception as error:
            if not self._is_last(self._graph.computed.get(name), context, error):
                raise
            _fail(context, error)

    # What has arrived.

    def _read_messages(self, context: Context, name: str) -> Message | None:
        """Merge the states that have reached a vertex, or return None if it does not run now."""
        joins = self._graph.joins.get(name)
        if joins is None:
            return merge_messages(context.messages, self._graph.folds)
        now, waiting = sort_messages(joins, context.value, context.messages)
        context.value = {**context.value, WAITING: waiting}
        return merge_messages(now, self._graph.folds)

    # The node.

    def _run_node(
        self, context: Context, name: str, message: Message
    ) -> Generator[Call, Any, tuple[Writes, list[Any]]]:
        """Return the updates of a node, and where it goes by commands."""
        node = self._graph.computed.get(name)
        if node is None:
            raise AgentError(f"a state has reached {name!r}, which is no node of the graph: add the node again")
        state = decode(encode(message[STATE]))  # the node may modify it
        given = node.schema.make({key: state[key] for key in node.schema.keys if key in state})
        output = yield from self._compute(context, node, given)
        try:
            return read_output(name, output, self._graph)
        except ParentCommand:
            raise ArgumentError(
                f"node {name!r} returned a command to the parent graph, but its graph is no node of another one"
            ) from None

    # What follows.

    def _pass_on(self, context: Context, name: str, message: Message, writes: Writes, targets: list[Any]) -> Calls:
        """Store the new state as the result, and send it along the edges."""
        graph = self._graph
        message = changed_message(message, context.superstep, name, writes, graph.folds)
        state = message[STATE]
        context.value = {**context.value, RESULT: (OK, state)}
        targets = [*targets, *graph.edges.get(name, ()), *([END] if name in graph.ends else [])]
        targets += yield from self._routed(name, state)
        targets = [self._checked(name, one) for one in dict.fromkeys(targets)]
        joined = self._joined.get(name, ())
        if len(targets) + len(joined) > 1:
            message = forked_message(message)
        data = encode(message, name=f"the state after node {name!r}")
        for key, update in writes:
            context.contribute(key, (update,))
        for target in targets:
            send_encoded(context, END_ID if target == END else graph.ids[target], data)
        for target in joined:
            context.send(target, {**message, SOURCE: name})

    def _routed(self, name: str, state: dict[str, Any]) -> Generator[Call, Any, list[Any]]:
        """Return where the routers of a node lead."""
        graph, found = self._graph, []
        for router in graph.branches.get(name, ()):
            schema, copied = router.schema or graph.schema, decode(encode(state))  # routers may modify it
            given = schema.make({key: copied[key] for key in schema.keys if key in copied})
            arguments = (given, CURRENT.get()) if router.takes_context else (given,)
            try:
                result = yield Call(router.function, arguments, router.is_async)
            except Exception as error:
                raise noted(error, f"raised by the router {router.name!r} of node {name!r}") from None
            found += destinations(graph, name, router, result)
        return found

    def _checked(self, name: str, target: Any) -> str:
        if not isinstance(target, str):
            raise ArgumentTypeError(
                f"node {name!r} goes to {target!r}, but a state that travels in messages reaches a node once: use Send "
                f"with compile(carry='shared')"
            )
        if target != END and target not in self._graph.nodes:
            nodes = ", ".join(map(repr, self._graph.nodes))
            raise ArgumentError(f"node {name!r} goes to {target!r}, which is no node of the graph: {nodes}")
        return target

    def _keep(self, context: Context, message: Message) -> None:
        """Merge what reaches the end with what has reached it before, and keep it as the result."""
        before = context.value.get(MERGED)
        message = merge_messages([*([] if before is None else [before]), message], self._graph.folds) or message
        context.value = {**context.value, RESULT: (OK, message[STATE]), MERGED: message}
        for name, value in message[STATE].items():
            context.contribute(name, (value,))
        context.contribute(IDLE, None)


class AsyncMessageRunner(MessageRunner, AsyncNodeRunner):
    """Computes the vertices of a graph some of whose functions are coroutine functions; the others run on threads."""

    __call__ = AsyncNodeRunner.__call__  # type: ignore[assignment]


def sort_messages(
    joins: Iterable[frozenset[str]], value: Mapping[str, Any], messages: Iterable[Any]
) -> tuple[list[Message], list[Message]]:
    """Return the messages that a node with joins takes now, none if it does not run, and those that wait for others."""
    states = [one for one in messages if isinstance(one, dict) and STATE in one]
    waiting = [*value.get(WAITING, ()), *(one for one in states if SOURCE in one)]
    now, sources = [one for one in states if SOURCE not in one], {one[SOURCE] for one in waiting}
    complete = [one for one in joins if one <= sources]
    if not complete and not now:
        return [], waiting
    later = frozenset().union(*(one for one in joins if one not in complete))
    return [*waiting, *now], [one for one in waiting if one[SOURCE] in later]


def _read_start(context: Context) -> Message | None:
    """Return the initial state, in superstep 0 and if the start is activated."""
    value = context.value
    if context.superstep != 0 or not value.get(ACTIVATED):
        return None
    return {STATE: value[INITIAL_STATE]}


def _fail(context: Context, error: Exception) -> None:
    """Store why a vertex failed; nothing is sent."""
    text, trace = str(error), "".join(traceback.format_exception(error))
    failure = {"type": type(error).__qualname__, "text": text, "traceback": trace}
    context.value = {**context.value, RESULT: (ERROR, failure)}
    context.contribute(IDLE, None)
