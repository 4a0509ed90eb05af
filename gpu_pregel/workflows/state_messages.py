"""States that travel in messages: their fields, how those that reach a node are merged, and the input of the start.

A message is ``{"state": state}``. From the first node on that sends its state to several others, it also has the state
at this fork, ``"base"``, and the updates since, ``"updates"``, so that states which meet again are merged without
losing or repeating any.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import Annotated, Any, TypedDict

from gpu_pregel.errors import ArgumentError, ArgumentTypeError
from gpu_pregel.host.agents.codec import decode, encode
from gpu_pregel.host.agents.vertices import Vertex
from gpu_pregel.workflows.commands import START
from gpu_pregel.workflows.key_folds import KeyFold, conflict
from gpu_pregel.workflows.reducers import add_messages, append, increment, merge
from gpu_pregel.workflows.schemas import Schema, Writes, writes_of

STATE, BASE, UPDATES, SOURCE = "state", "base", "updates", "source"
"""The items of a message; the last one is the source of a join."""
ACTIVATED, INITIAL_STATE = "activated", "initial_state"
"""The items that only the start's value has."""
Message = dict[str, Any]


class GraphState(TypedDict, total=False):
    """A state with the fields of an agent that talks to a model.

    Attributes
    ----------
    messages : list
        The conversation that the model gets; reducer ``add_messages``.
    full_messages : list
        The whole conversation, where ``messages`` has been shortened; reducer ``add_messages``.
    system_prompt : str
    tools : list
        What the model is told of its tools.
    max_iterations : int
    iteration : int
        From 0; a node that returns ``{"iteration": 1}`` adds one.
    scratchpad : list
        Notes of steps in between; reducer ``append``.
    context : dict
        Data of the user; reducer ``merge``.
    callbacks : dict of str to str
        Names of functions by event, which nodes look up, as functions are no data; reducer ``merge``.
    callback_meta : dict
        Data for these functions; reducer ``merge``.
    """

    messages: Annotated[list[Any], add_messages]
    full_messages: Annotated[list[Any], add_messages]
    system_prompt: str
    tools: list[Any]
    max_iterations: int
    iteration: Annotated[int, increment]
    scratchpad: Annotated[list[Any], append]
    context: Annotated[dict[str, Any], merge]
    callbacks: Annotated[dict[str, str], merge]
    callback_meta: Annotated[dict[str, Any], merge]


# Merging.


def aggregate_state_messages(messages: Sequence[Any], state: Any = GraphState) -> dict[str, Any] | None:
    """Merge the states in messages; other messages are ignored.

    Messages of nodes say which updates made their states since the run first forked: each of them is applied once, in
    the order of (superstep, name of the node). A key without a reducer gets the update of the latest superstep; two in
    the same one are an error that names both nodes.

    Messages that do not say it are merged in their order, which is that of their senders: a value that differs is
    folded by the reducer of its key or, without one, replaces the value before it.

    Parameters
    ----------
    messages : sequence
    state : type
        The class with the reducers.

    Returns
    -------
    dict or None
        None if no message has a state.

    Examples
    --------
    >>> from gpu_pregel.workflows import GraphState, aggregate_state_messages
    >>> messages = [{"state": {"scratchpad": ["a"], "iteration": 1}}, {"state": {"scratchpad": ["b"], "iteration": 1}}]
    >>> aggregate_state_messages(messages, GraphState)
    {'scratchpad': ['a', 'b'], 'iteration': 1}
    >>> aggregate_state_messages([])
    """
    folds = {name: KeyFold(key) for name, key in Schema(state).keys.items()}
    found = merge_messages(messages, folds)
    return None if found is None else found[STATE]


def merge_messages(messages: Iterable[Any], folds: Mapping[str, KeyFold]) -> Message | None:
    """Return one message in place of several, or None if none has a state."""
    found = [one for one in messages if isinstance(one, dict) and STATE in one]
    if not found:
        return None
    if len(found) == 1:
        return {name: item for name, item in found[0].items() if name != SOURCE}
    if all(BASE in one for one in found):
        updates = {(superstep, node): writes for one in found for superstep, node, writes in one[UPDATES]}
        log = [(*key, updates[key]) for key in sorted(updates)]
        return {STATE: _replay(found[0][BASE], log, folds), BASE: found[0][BASE], UPDATES: log}
    state = decode(encode(found[0][STATE]))
    for one in found[1:]:
        for name, value in one[STATE].items():
            if name not in state or encode(state[name]) != encode(value):
                before = (state[name],) if name in state else ()
                state[name] = folds[name].take(before, value)[0] if name in folds else value
    return {STATE: state}


def _replay(base: dict[str, Any], log: list[tuple[int, str, Writes]], folds: Mapping[str, KeyFold]) -> dict[str, Any]:
    """Return the state after the updates since the fork."""
    state: dict[str, Any]
    state, log = decode(encode((base, log)))  # reducers may modify what they are given
    for _, group in groupby(log, itemgetter(0)):
        written: dict[str, list[tuple[str, Any]]] = {}
        for _, node, writes in group:
            for name, update in writes:
                written.setdefault(name, []).append((node, update))
        for name, updates in written.items():
            apply_updates(state, name, updates, folds)
    return state


def apply_updates(
    state: dict[str, Any], name: str, updates: Sequence[tuple[str, Any]], folds: Mapping[str, KeyFold]
) -> None:
    """Apply the updates of a key in a superstep, each with the node that made it, to a state."""
    fold = folds.get(name)
    if fold is None:
        raise ArgumentError(f"a state has the key {name!r}, which the graph does not have: {', '.join(folds)}")
    if fold.key.reducer is None and len(updates) > 1:
        raise conflict(name, [node for node, _ in updates])
    value: tuple[Any, ...] = (state[name],) if name in state else ()
    for _, update in updates:
        value = fold.take(value, update)
    state[name] = value[0]


def changed_message(
    message: Message, superstep: int, node: str, writes: Writes, folds: Mapping[str, KeyFold]
) -> Message:
    """Return the message with the updates of a node."""
    writes, copies = decode(encode(writes)), decode(encode(writes))
    written: dict[str, list[tuple[str, Any]]] = {}
    for name, update in copies:
        written.setdefault(name, []).append((node, update))
    state = dict(message[STATE])
    for name, updates in written.items():
        apply_updates(state, name, updates, folds)
    if BASE not in message:
        return {**message, STATE: state}
    return {**message, STATE: state, UPDATES: [*message[UPDATES], (superstep, node, writes)]}


def forked_message(message: Message) -> Message:
    """Return the message to several nodes."""
    return message if BASE in message else {**message, BASE: message[STATE], UPDATES: []}


# The start.


def inject_initial_state(vertices: Iterable[Vertex], state: Any, schema: Any = None) -> list[Vertex]:
    """Activate the start of a graph, and give it the state that it sends on in superstep 0.

    Parameters
    ----------
    vertices : iterable of Vertex
        As :meth:`MessagePassingGraph.vertices` returns them.
    state : mapping or state
    schema : type, optional
        The class of the state, whose keys are checked. Default: as it is.

    Returns
    -------
    list of Vertex

    Examples
    --------
    >>> from gpu_pregel.workflows import END, START, GraphState, StateGraph
    >>> from gpu_pregel.workflows import activated, initial_state, inject_initial_state
    >>> graph = StateGraph(GraphState).add_node("think", lambda state: {"scratchpad": "a thought"})
    >>> app = graph.add_edge(START, "think").add_edge("think", END).compile(carry="messages")
    >>> activated(app.vertices())
    False
    >>> vertices = inject_initial_state(app.vertices(), {"iteration": 0})
    >>> activated(vertices), initial_state(vertices)
    (True, {'iteration': 0})
    """
    if schema is not None:
        state = dict(writes_of(state, Schema(schema).keys, "the initial state"))
    if not isinstance(state, Mapping):
        raise ArgumentTypeError(f"the initial state must be a dict, not {state!r:.200}")
    encode(dict(state), name="the initial state")
    found = list(vertices)
    place = found.index(_start_of(found))
    value = {**found[place].value, ACTIVATED: True, INITIAL_STATE: dict(state)}
    found[place] = replace(found[place], value=value, halted=False)
    return found


def activated(vertices: Iterable[Vertex]) -> bool:
    """Whether the start of a graph runs in superstep 0."""
    return bool(_start_of(vertices).value.get(ACTIVATED, False))


def initial_state(vertices: Iterable[Vertex]) -> dict[str, Any] | None:
    """Return the state that the start of a graph sends on, or None if there is none yet."""
    state = _start_of(vertices).value.get(INITIAL_STATE)
    return None if state is None else dict(state)


def _start_of(vertices: Iterable[Vertex]) -> Vertex:
    for vertex in vertices:
        if vertex.id == START:
            if not isinstance(vertex.value, dict):
                break
            return vertex
    raise ArgumentError(
        f"there is no vertex {START!r} of a graph: take the vertices of a graph compiled with carry='messages'"
    )
