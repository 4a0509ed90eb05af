"""What messages and records of tasks mean: which tasks run their nodes, and what nodes and routers have returned."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from gpu_pregel.errors import ArgumentError, ArgumentTypeError
from gpu_pregel.host.agents.codec import decode, encode, id_key
from gpu_pregel.host.agents.records import Id
from gpu_pregel.host.agents.state import Records, State
from gpu_pregel.host.agents.vertices import IMMUTABLE_TYPES
from gpu_pregel.workflows.commands import END, START, Command, Send
from gpu_pregel.workflows.graph_spec import BUSY, TRIGGER, GraphSpec, Router
from gpu_pregel.workflows.reducers import add_messages
from gpu_pregel.workflows.schemas import Key, Writes, writes_of
from gpu_pregel.workflows.signatures import langgraph_hint

if TYPE_CHECKING:
    from gpu_pregel.host.agents.context import Context

INPUT, UPDATE, DROP = "input", "update", "drop"
"""The first item of messages that are tuples: input of the start, output of a node, the end of a task that waits."""
BY_EDGE, BY_JOIN = ("ready", "edge"), ("ready", "join")
"""Messages to a deferred node that was about to run when an update dropped the tasks that waited: by what it was."""
IDLE = "__idle__"
"""The contribution of a task whose node has not run, because it waits for others."""
UPDATED = "__updated__"
"""The contribution of a caller that has taken the place of a node."""
GIVEN = "__given__"
"""The contribution of the start before those of its node: how many updates of the input there are between them."""
Target = str | Send
_SHORT = 16


class ParentCommand(Exception):  # noqa: N818 - no error
    """A node has returned a command to the parent graph."""

    def __init__(self, command: Command) -> None:
        self.command = command


def is_triggered(context: Context) -> bool:
    """Whether all messages to a task came along edges."""
    messages = context.encoded_messages
    return messages.count(TRIGGER) == len(messages)


def is_flat(value: Any) -> bool:
    """Whether a value is a short list or dict of immutable values, so that a copy of it is quicker than decoding it."""
    if type(value) is list:
        return len(value) <= _SHORT and all(type(one) in IMMUTABLE_TYPES for one in value)
    return type(value) is dict and len(value) <= _SHORT and all(type(one) in IMMUTABLE_TYPES for one in value.values())


def arrived(graph: GraphSpec, name: str, value: Any, messages: list[Any]) -> list[list[str]]:
    """Return which sources of each join of a node have ended, given those so far and the messages to it."""
    came = {message for message in messages if type(message) is str}
    joins = graph.joins[name]
    ended = value or [[] for _ in joins]
    return [sorted({*one, *(came & sources)}) for one, sources in zip(ended, joins, strict=True)]


def is_input(value: Any) -> bool:
    """Whether the value of the start is the message of an input that it has still to take."""
    return value is not None and bool(value[0] == INPUT)


def inputs_after(value: Any, count: int) -> Any:
    """Return the value of the start after ``count`` more inputs.

    It is None or ``(count, changed)``: the number of inputs between the states of the run, which is one more than the
    supersteps say, and those updates by the input with which a run began that its state does not tell.
    """
    if value is None or is_input(value):
        return (count, {}) if count else None
    return (value[0] + count, value[1] if not count else {})


def is_due(graph: GraphSpec, vertex: Any, value: Any, messages: list[Any]) -> bool:
    """Whether a task with these messages runs its node, and does not only note that a source of a join has ended."""
    if vertex not in graph.joins or any(type(message) is not str for message in messages):
        return True
    ended = arrived(graph, vertex, value, messages)
    return any(set(one) == sources for one, sources in zip(ended, graph.joins[vertex], strict=True))


def is_ready(messages: list[Any]) -> bool:
    """Whether a deferred node with these messages does not wait for others, as it was about to run before."""
    return BY_JOIN in messages or (BY_EDGE in messages and None not in messages)


def due_tasks(graph: GraphSpec, state: State, active: Iterable[Id]) -> list[str]:
    """Return the tasks that run a node in the next superstep, among those that are active, in order."""
    due = []
    is_busy = BUSY in state.aggregates and decode(state.aggregates[BUSY])[0]
    for encoded in sorted(active):
        vertex, messages = decode(encoded), list(map(decode, state.inbox.get(encoded, ())))
        if is_busy and vertex in graph.nodes and graph.nodes[vertex].defer and not is_ready(messages):
            continue
        if vertex not in graph.joins or is_due(graph, vertex, decode(bytes(state.vertices[encoded].value)), messages):
            due.append(vertex)
    return due


def active_vertices(state: State) -> set[Id]:
    """Return the vertices that the next superstep computes."""
    return {*state.inbox, *(vertex for vertex, one in state.vertices.items() if not one.halted)}


def drop_tasks(graph: GraphSpec, state: State) -> None:
    """Drop the tasks that run a node in the next superstep.

    Which sources of joins have ended is noted all the same, and deferred nodes that still wait for others go on
    waiting.
    """
    for vertex in due_tasks(graph, state, active_vertices(state)):
        encoded = id_key(vertex)
        messages = list(map(decode, state.inbox.pop(encoded, ())))
        data = state.vertices.get(encoded)
        if data is None:
            continue
        value = decode(bytes(data.value))
        if vertex in graph.joins:
            value = without_complete(graph, vertex, arrived(graph, vertex, value, messages))
        elif vertex == START:
            value = inputs_after(value, 0)
        state.vertices[encoded] = data._replace(value=encode(value), halted=True)
    if BUSY in state.aggregates:
        busy, joins = decode(state.aggregates[BUSY])
        waiting = {target: without_complete(graph, target, one) for target, one in joins.items()}
        state.aggregates[BUSY] = encode((busy, waiting))


def without_complete(graph: GraphSpec, name: str, ended: list[list[str]]) -> list[list[str]]:
    """Return which sources of each join have ended, after the complete joins have started their node."""
    return [[] if set(one) == sources else one for one, sources in zip(ended, graph.joins[name], strict=True)]


def read_output(name: str, output: Any, graph: GraphSpec) -> tuple[Writes, list[Target]]:
    """Return the updates of keys and the destinations in what a node has returned."""
    if type(output) is dict and output.keys() <= graph.keys.keys():  # the usual case
        return list(output.items()), []
    if output is None:
        return [], []
    source = f"node {name!r}"
    if isinstance(output, Command):
        if output.resume is not None:
            raise ArgumentTypeError(f"{source} returned Command(resume=...): only a caller answers questions by it")
        if output.graph is not None:
            raise ParentCommand(output)
        writes = [] if output.update is None else writes_of(output.update, graph.keys, source)
        return writes, checked_targets(name, output)
    if isinstance(output, Send):
        raise ArgumentTypeError(f"{source} returned a Send: return Command(goto=[Send(...), ...])")
    if isinstance(output, (list, tuple)) and any(isinstance(one, (Command, Send)) for one in output):
        writes, targets = [], []
        for one in output:
            if isinstance(one, Send):
                raise ArgumentTypeError(f"{source} returned a Send: return Command(goto=[Send(...), ...])")
            more, goto = read_output(name, one, graph)
            writes += more
            targets += goto
        return writes, targets
    return writes_of(output, graph.keys, source), []


def checked_targets(name: str, command: Command) -> list[Target]:
    """Return where a node goes by a command."""
    targets = command.targets
    for target in targets:
        if not isinstance(target, (str, Send)):
            raise ArgumentTypeError(f"node {name!r} goes to {target!r}: goto takes names of nodes and Send objects")
    return targets


def added_messages(key: Key, given: Any, value: Any) -> Any:
    """Return the update of a key by a graph that is a node: of messages, only those that it has added to its input."""
    before = given.get(key.name) if isinstance(given, dict) else getattr(given, key.name, None)
    if key.reducer is add_messages and isinstance(before, list) and isinstance(value, list):
        return value[len(before) :] if value[: len(before)] == before else value
    return value


def destinations(graph: GraphSpec, name: str, router: Router, result: Any) -> list[Target]:
    """Return the nodes, or inputs for them, that a router has chosen."""
    found: list[Target] = []
    for one in result if isinstance(result, (list, tuple, set, frozenset)) else [result]:
        if isinstance(one, Send):
            found.append(one)
        elif router.routes is not None:
            if not isinstance(one, Hashable) or one not in router.routes:
                known = ", ".join(map(repr, router.routes))
                raise ArgumentError(
                    f"the router {router.name!r} of node {name!r} returned {one!r:.200}, which is no key of its "
                    f"routes: {known}"
                )
            found.append(router.routes[one])
        elif isinstance(one, str):
            if one not in graph.nodes and one != END:
                nodes = ", ".join(map(repr, graph.nodes))
                raise ArgumentError(
                    f"the router {router.name!r} of node {name!r} returned {one!r}, which is no node of the "
                    f"graph: {nodes}"
                )
            found.append(one)
        else:
            raise ArgumentTypeError(
                f"the router {router.name!r} of node {name!r} returned {one!r:.200}: return names of nodes or Send "
                f"objects, or pass routes{langgraph_hint(one)}"
            )
    return found


_MARKS = frozenset({IDLE, UPDATED, GIVEN, BUSY})


def executed(records: Records) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield the tasks of a superstep whose nodes have run, and their updates."""
    for vertex, record in records:
        written, task = record.aggregates, decode(vertex)
        names = [name for name, _ in written]
        if task == START:
            if GIVEN not in names:  # the start has no node
                continue
            last = len(names) - 1 - names[::-1].index(GIVEN)
            written = written[last + 1 + decode(written[last][1]) :]
        if IDLE not in names:
            yield task, updates_of(written)


def updates_of(contributions: Iterable[tuple[str, bytes]]) -> dict[str, Any]:
    """Return the updates of keys among the contributions of a task."""
    return {name: decode(data)[0] for name, data in contributions if name not in _MARKS}
