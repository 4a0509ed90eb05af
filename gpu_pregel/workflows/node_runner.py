"""The compute function of a state graph with a shared state: gives nodes their input and takes their output.

Messages to a node are None (an edge), the name of a source (of a join), ``[input]`` (of ``Send``) or a tuple whose
first item says what the caller asks: ``("input", update, goto)`` at the start, ``("update", values)`` in place of a
node's output, and ``("drop",)``, which drops a task that waits.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import suppress
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from gpu_pregel.errors import AgentError, ArgumentError, ArgumentTypeError, AttemptError, CodecError
from gpu_pregel.host.agents.codec import decode, encode
from gpu_pregel.host.agents.encoded_context import (
    contribute_encoded,
    encoded_aggregates,
    encoded_id,
    send_all_encoded,
    send_encoded,
)
from gpu_pregel.host.agents.partition_options import is_async
from gpu_pregel.host.agents.retry import RetryPolicy
from gpu_pregel.host.agents.vertices import IMMUTABLE_TYPES
from gpu_pregel.workflows.commands import END, START, Command, Send
from gpu_pregel.workflows.graph_spec import BUSY, PARENT, TRIGGER, GraphSpec, NodeSpec
from gpu_pregel.workflows.key_folds import packed_update, reducer_failure
from gpu_pregel.workflows.node_cache import Cache, LatestOutputs, cache_key, find_output, keep_output
from gpu_pregel.workflows.node_context import CURRENT, NodeContext
from gpu_pregel.workflows.schemas import Schema, Writes
from gpu_pregel.workflows.state_reader import StateReader
from gpu_pregel.workflows.task_messages import (
    BY_EDGE,
    BY_JOIN,
    DROP,
    GIVEN,
    IDLE,
    UPDATE,
    UPDATED,
    ParentCommand,
    Target,
    added_messages,
    arrived,
    checked_targets,
    destinations,
    inputs_after,
    is_due,
    is_input,
    is_ready,
    is_triggered,
    read_output,
    without_complete,
)
from gpu_pregel.workflows.tasks import is_sent, node_of, sent_task

if TYPE_CHECKING:
    from gpu_pregel.host.agents.context import Context
    from gpu_pregel.host.stores.store import Store


class Call(NamedTuple):
    """A call of a user's function, which a runner makes for a task."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    is_async: bool


Calls = Generator[Call, Any, None]
"""A task, which yields the calls that it needs and is sent their results."""


class NodeRunner:
    """Computes the tasks of a graph whose functions are all ordinary ones.

    Parameters
    ----------
    graph : GraphSpec
    config : mapping
    retry : RetryPolicy
        Of nodes without their own.
    store : Store, optional
        That of nodes that are graphs.
    cache : Cache, optional

    Attributes
    ----------
    state : StateReader
    """

    def __init__(
        self,
        graph: GraphSpec,
        config: Mapping[str, Any],
        retry: RetryPolicy,
        store: Store | None = None,
        cache: Cache | None = None,
    ) -> None:
        self._graph, self._config, self._retry, self._store = graph, config, retry, store
        self._cache = LatestOutputs() if cache is None else cache
        self._modes: frozenset[str] = frozenset()
        self.state = StateReader()

    def with_config(self, config: Mapping[str, Any], modes: frozenset[str]) -> Self:
        """Return a runner with another configuration, and the modes of a stream in which subgraphs are shown."""
        other = copy(self)
        other._config, other._modes = config, modes
        return other

    def __call__(self, context: Context) -> None:
        """Compute a task."""
        token = CURRENT.set(NodeContext(context, self._config, self._store, self._modes))
        try:
            simple = self._simple(context)
            if simple is not None:  # the usual case, in half the time
                node, given = simple
                context.vote_to_halt()
                output = node.function(given, CURRENT.get()) if node.takes_context else node.function(given)
                self._end(context, node.name, *read_output(node.name, output, self._graph))
            else:
                make_calls(self._calls(context))
        except ParentCommand as left:
            self._leave(context, left.command)
        finally:
            CURRENT.reset(token)

    def _simple(self, context: Context) -> tuple[NodeSpec, Any] | None:
        """Return the node and its input if nothing but the node has to be called."""
        graph = self._graph
        node = graph.simple.get(encoded_id(context))
        if node is not None:
            if is_triggered(context):
                state, schema = self._read(context, node.schema.keys), node.schema
                return node, state if schema.is_dict else schema.make(state)
        elif len(context.encoded_messages) == 1:
            vertex: str = context.vertex_id
            node = graph.simple.get(graph.ids.get(node_of(vertex), b""))
            if node is not None and is_sent(vertex) and type(message := context.messages[0]) is list:
                return node, message[0]
        return None

    def _calls(self, context: Context) -> Calls:
        """Compute a task, as far as it is not the user's functions that do it."""
        task = yield from self._begin(context)
        if task is None:
            return
        node, given = task
        kept = None if node.cache is None else cache_key(node.name, node.cache, given)
        if kept is not None and (known := find_output(self._cache, kept)) is not None:
            yield from self._follow(context, node.name, *known)
            return
        output = yield from self._compute(context, node, given)
        writes, targets = read_output(node.name, output, self._graph)
        if kept is not None and node.cache is not None:
            keep_output(self._cache, kept, node.cache, writes, targets)
        yield from self._follow(context, node.name, writes, targets)

    def _compute(self, context: Context, node: NodeSpec, given: Any) -> Generator[Call, Any, Any]:
        """Return the output of a node or, if its last attempt raises, of its error handler."""
        arguments = (given, CURRENT.get()) if node.takes_context else (given,)
        try:
            self._check_attempt(node, context)
            output = yield Call(node.function, arguments, node.is_async)
            if node.error_handler is not None and not node.is_graph:
                with suppress(ParentCommand):
                    read_output(node.name, output, self._graph)  # the handler takes the place of a wrong one, too
        except Exception as error:
            if node.error_handler is None or not self._is_last(node, context, error):
                raise
            output = yield Call(node.error_handler, (given, error), is_async(node.error_handler))
        if node.is_graph and type(output) is dict:
            if (as_update := node.function.graph.as_update) is not None:  # type: ignore[attr-defined]
                output = as_update(output)
            output = {
                name: added_messages(self._graph.keys[name], given, value)
                for name, value in output.items()
                if name in self._graph.keys
            }
        return output

    def _check_attempt(self, node: NodeSpec, context: Context) -> None:
        """Raise in the attempt that is left for an error handler, as the last one did not end by an exception."""
        if node.error_handler is not None and context.attempt > (node.retry or self._retry).attempts:
            raise TimeoutError(
                "the last attempt exceeded its timeout, its worker died, or what it did after the node was refused"
            )

    def _is_last(self, node: NodeSpec | None, context: Context, error: Exception) -> bool:
        """Whether the node is not tried again after this error."""
        retry = self._retry if node is None or node.retry is None else node.retry
        if context.attempt >= retry.attempts or isinstance(error, CodecError):
            return True
        return not (error.retryable if isinstance(error, AttemptError) else retry.matches(error))

    # Before the node.

    def _begin(self, context: Context) -> Generator[Call, Any, tuple[NodeSpec, Any] | None]:
        """Return the node to run and its input, or None if the task has nothing to run now."""
        context.vote_to_halt()
        node = self._graph.triggered.get(encoded_id(context))
        if node is not None and is_triggered(context):
            return node, node.schema.make(self._read(context, node.schema.keys))
        vertex, messages = context.vertex_id, context.messages
        if any(type(message) is tuple and message[0] in (UPDATE, DROP) for message in messages):
            yield from self._obey(context, vertex, messages)
            return None
        if vertex == START:
            yield from self._enter(context)
            return None
        node = self._graph.nodes.get(node_of(vertex))
        if node is None:
            raise AgentError(
                f"the run has a task of node {node_of(vertex)!r}, which the graph does not have: add the node again"
            )
        sent = is_sent(vertex)
        if not sent and node.name in self._graph.joins and not self._is_due(context, node.name):
            self._note_idle(context)
            return None
        if sent:
            return node, messages[0][0]
        if node.defer and context.aggregated(BUSY)[0]:
            if not is_ready(messages):
                self._send_again(context, vertex, [None])
                return None
            for message in self._still_waiting(context, vertex, messages):
                context.send(vertex, message)
        else:
            self._clear_joins(context, node.name)
        return node, node.schema.make(self._read(context, node.schema.keys))

    def _enter(self, context: Context) -> Calls:
        """Apply the caller's input, and compute the node of the start, if it has one."""
        given, count = list(context.messages), len(context.messages)
        if is_input(context.value):
            given.insert(0, context.value)
        context.value = inputs_after(context.value, count)
        for _, update, goto in given:
            targets = [one if isinstance(one, str) else Send(*one) for one in goto]
            writes: Writes = list(update.items())
            if targets:
                self._end(context, START, writes, targets, follow=False)
                continue
            if (node := self._graph.start) is not None:
                given = self._fresh(context, START, writes, node.schema)
                output = yield from self._compute(context, node, given)
                more, targets = read_output(START, output, self._graph)
                replaced = {key for key, _ in more if self._graph.keys[key].reducer is None}
                writes = [write for write in writes if write[0] not in replaced]
                context.contribute(GIVEN, len(writes))
                writes += more
            yield from self._follow(context, START, writes, targets)

    def _obey(self, context: Context, vertex: Any, messages: list[Any]) -> Calls:
        """Do what the caller asks of a task instead of running its node.

        Which sources of joins have ended is noted all the same. Complete joins and deferred nodes still wait, unless
        the caller takes the place of their node.
        """
        others = [message for message in messages if type(message) is not tuple]
        has_joins = vertex in self._graph.joins
        if has_joins:
            context.value = arrived(self._graph, vertex, context.value, others)
        elif vertex == START:
            context.value = inputs_after(context.value, 0)
        for message in messages:
            if type(message) is tuple and message[0] == UPDATE:
                context.contribute(UPDATED, None)
                if has_joins:
                    self._clear_joins(context, vertex)
                yield from self._follow(context, node_of(vertex), list(message[1].items()), [])
                return
        node = self._graph.nodes.get(vertex)
        again: list[Any] = self._complete_joins(context, vertex)
        if node is not None and node.defer:
            waits, has_trigger = context.aggregated(BUSY)[0], None in others
            if again and (not waits or BY_JOIN in messages):
                again.append(BY_JOIN)
            if has_trigger or BY_EDGE in messages:
                again.append(None if waits and has_trigger else BY_EDGE)
        self._send_again(context, vertex, again)

    def _send_again(self, context: Context, vertex: Any, messages: list[Any]) -> None:
        """Let a task wait for the next superstep."""
        for message in messages:
            context.send(vertex, message)
        self._note_idle(context)

    def _note_idle(self, context: Context) -> None:
        """Note that the task has not run its node."""
        context.contribute(IDLE, None)
        if self._graph.has_deferred:
            context.contribute(BUSY, (None, False))

    def _is_due(self, context: Context, name: str) -> bool:
        """Note which sources of joins have ended; return whether the node runs now."""
        context.value, messages = arrived(self._graph, name, context.value, context.messages), context.messages
        return is_due(self._graph, name, context.value, messages)

    def _complete_joins(self, context: Context, vertex: Any) -> list[str]:
        """Return a source of each join of a node that is complete."""
        ended = zip(context.value or (), self._graph.joins.get(vertex, ()), strict=False)
        return [min(sources) for one, sources in ended if set(one) == sources]

    def _still_waiting(self, context: Context, vertex: Any, messages: list[Any]) -> list[Any]:
        """Return for what a deferred node goes on to wait although it runs, as it was about to before an update."""
        again: list[Any] = [None] if None in messages else []
        if BY_JOIN not in messages:
            return again + self._complete_joins(context, vertex)
        self._clear_joins(context, vertex)
        return again

    def _clear_joins(self, context: Context, name: str) -> None:
        """Let complete joins wait for all their sources again."""
        joins = self._graph.joins.get(name)
        if joins is not None:
            context.value = without_complete(self._graph, name, context.value)

    def _read(self, context: Context, keys: Iterable[str]) -> dict[str, Any]:
        """Return the state, as the last superstep left it."""
        return self.state.read(encoded_aggregates(context), keys)

    # After the node.

    def _follow(self, context: Context, name: str, writes: Writes, targets: list[Target]) -> Calls:
        """Ask the routers of a node, then end its task."""
        if name in self._graph.branches:
            targets = targets + (yield from self._route(context, name, writes))
        self._end(context, name, writes, targets)

    def _end(self, context: Context, name: str, writes: Writes, targets: list[Target], follow: bool = True) -> None:
        """Write the updates of a task and start the tasks that follow."""
        graph = self._graph
        for key, update in writes:
            try:
                contribute_encoded(context, key, packed_update(update))
            except CodecError:  # names the update instead of the contribution
                encode(update, name=f"the update of key {key!r} by node {name!r}")
                raise
        if targets:
            self._start(context, name, targets)
        if follow:
            send_all_encoded(context, graph.followers.get(name, ()))
        if graph.has_deferred:
            leads = any(isinstance(one, str) and one != END and not graph.nodes[one].defer for one in targets)
            context.contribute(BUSY, (name if follow else None, leads or (follow and name in graph.busy_sources)))

    def _route(self, context: Context, name: str, writes: Writes) -> Generator[Call, Any, list[Target]]:
        """Return where the conditional edges of a node lead."""
        found: list[Target] = []
        for router in self._graph.branches[name]:
            state = self._fresh(context, name, writes, router.schema or self._graph.schema)
            arguments = (state, CURRENT.get()) if router.takes_context else (state,)
            try:
                result = yield Call(router.function, arguments, router.is_async)
            except Exception as error:
                raise noted(error, f"raised by the router {router.name!r} of node {name!r}") from None
            found += destinations(self._graph, name, router, result)
        return found

    def _fresh(self, context: Context, name: str, writes: Writes, schema: Schema) -> Any:
        """Return the state with copies of the updates of the task itself, for one of its routers."""
        graph = self._graph
        values = {key: context.aggregated(key) for key in schema.keys}
        for key, update in writes:
            if key in values:
                if type(update) not in IMMUTABLE_TYPES:  # a router or a reducer may change it
                    update = decode(encode(update, name=f"the update of key {key!r} by node {name!r}"))
                try:
                    values[key] = graph.folds[key].take(values[key], update)
                except Exception as error:
                    raise reducer_failure(key, error) from error
        return schema.make({key: value[0] for key, value in values.items() if value})

    def _start(self, context: Context, name: str, targets: list[Target]) -> None:
        """Start the tasks that a router or a command has chosen."""
        graph, sent = self._graph, 0
        for target in targets:
            if target == END:
                continue
            node = target if isinstance(target, str) else target.node
            self._check(name, node)
            if isinstance(target, str):
                send_encoded(context, graph.ids[target], TRIGGER)
            else:
                try:
                    context.send(sent_task(node, context.vertex_id, sent), [target.arg])
                except CodecError:
                    encode(target.arg, name=f"what node {name!r} sends to {node!r}")
                    raise
                sent += 1

    def _leave(self, context: Context, command: Command) -> None:
        """Record a command to the graph of which this one is a node."""
        name = node_of(context.vertex_id)
        if PARENT not in encoded_aggregates(context):
            raise ArgumentError(
                f"node {name!r} returned a command to the parent graph, but its graph is no node of another one"
            )
        update = {} if command.update is None else command.update
        if not isinstance(update, Mapping):
            raise ArgumentTypeError(
                f"the update for the parent graph of node {name!r} must be a dict, not {update!r:.200}"
            )
        goto = [one if isinstance(one, str) else (one.node, one.arg) for one in checked_targets(name, command)]
        context.contribute(PARENT, ((dict(update), goto),))

    def _check(self, name: str, target: str) -> None:
        if target not in self._graph.nodes:
            nodes = ", ".join(map(repr, self._graph.nodes))
            raise ArgumentError(f"node {name!r} goes to {target!r}, which is no node of the graph: {nodes}")


def make_calls(calls: Calls) -> None:
    """Make the calls that a task yields."""
    try:
        function, arguments, _ = next(calls)
        while True:
            try:
                result = function(*arguments)
            except Exception as error:
                function, arguments, _ = calls.throw(error)
            else:
                function, arguments, _ = calls.send(result)
    except StopIteration:
        return


def noted(error: Exception, note: str) -> Exception:
    """Return an exception with a note where it was raised."""
    error.add_note(note)
    return error
