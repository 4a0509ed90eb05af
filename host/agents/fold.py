"""Fold the records of a superstep into one change: values, aggregates, mutations, messages, master compute."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from gpu_pregel.errors import AgentError, CodecError
from gpu_pregel.host.agents.codec import decode, encode
from gpu_pregel.host.agents.ledger import Ledger
from gpu_pregel.host.agents.master_context import MasterContext
from gpu_pregel.host.agents.mutations import ConflictError, resolve_mutations
from gpu_pregel.host.agents.options import RunOptions
from gpu_pregel.host.agents.records import NO_CHANGE, Change, Failure, Id, VertexData
from gpu_pregel.host.agents.state import Inbox, Records, State


@dataclass(slots=True)
class AgentChange:
    """All changes that a superstep of agents makes.

    Attributes
    ----------
    records : list of (Id, Record)
    failed : dict
        Failed vertices that the run continues without, as in ``State``.
    changed : dict of Id to VertexData
        All vertices that differ from before, including mutated ones.
    mutated : Change
        Vertices that mutation requests and ``on_missing`` add, replace and remove.
    inbox, aggregates, function
        As in ``State``.
    halted : bool
        Whether master compute has ended the run.
    awake : set of Id
        Vertices that have not voted to halt.
    active : set of Id
        Vertices that have not voted to halt or have messages.
    """

    records: Records
    failed: dict[Id, tuple[int, Failure, list[bytes]]]
    changed: dict[Id, VertexData]
    mutated: Change
    inbox: Inbox
    aggregates: dict[str, bytes]
    function: str
    halted: bool
    awake: set[Id]
    active: set[Id]


def fold_superstep(state: State, ledger: Ledger, options: RunOptions) -> AgentChange:
    """Fold a superstep whose vertices have all completed or finally failed; ``state`` is not changed."""
    records, failed = ledger.completed_records(), {} if ledger.is_complete() else ledger.failures()
    values = _fold_aggregates(options, state, ledger.step, records)
    changed = state.computed(records, failed)
    inbox = route(records, ledger.sent)

    def find(vertex: Id) -> VertexData | None:
        return changed.get(vertex) or state.vertices.get(vertex)

    try:
        mutated = resolve_mutations(records, find, inbox, options.resolve)
    except ConflictError as error:
        raise AgentError(f"vertex {decode(error.vertex)!r} in superstep {ledger.step} {error.problem}") from None
    mutated = _find_recipients(state, ledger.step, records, inbox, mutated, options.on_missing)
    count = len(state.vertices)
    if mutated is not NO_CHANGE:
        changed.update(mutated.set)
        for vertex in mutated.remove:
            changed.pop(vertex, None)
        count += sum(vertex not in state.vertices for vertex in mutated.set) - len(mutated.remove)
    function, halted = _ask_master(options, ledger.step, count, values, state.function)
    aggregates = {name: _encoded(name, ledger.step, value) for name, value in values.items()} if values else {}
    awake = _find_awake(records, mutated)
    active = awake.union(inbox)
    return AgentChange(records, failed, changed, mutated, inbox, aggregates, function, halted, awake, active)


def route(records: Records, sent: Inbox) -> Inbox:
    """Return each vertex's messages for the next superstep: those from vertices, then those from outside."""
    inbox: defaultdict[Id, list[bytes]] = defaultdict(list)
    for _, record in records:
        for target, message in record.outbox:
            inbox[target].append(message)
    inbox.default_factory = None
    for target, messages in sent.items():
        inbox.setdefault(target, []).extend(messages)
    return inbox


def _find_awake(records: Records, mutated: Change) -> set[Id]:
    """Return the vertices that have not voted to halt; every vertex that was awake has been computed."""
    awake = {vertex for vertex, record in records if not record.halted}
    if mutated is not NO_CHANGE:
        for vertex, one in mutated.set.items():
            (awake.discard if one.halted else awake.add)(vertex)
        awake.difference_update(mutated.remove)
    return awake


def state_after(state: State, after: AgentChange) -> State:
    """Return the state after a superstep; ``state`` itself is not changed."""
    vertices = state.vertices | after.changed
    for vertex in after.mutated.remove:
        vertices.pop(vertex, None)
    return State(vertices, after.inbox, after.aggregates, after.function, state.failed | after.failed)


def _fold_aggregates(options: RunOptions, state: State, step: int, records: Records) -> dict[str, Any]:
    """Fold the contributions of completed attempts, in the order of (vertex, sequence)."""
    if not options.reductions:
        return {}
    contributions: dict[str, list[Any]] = {}
    for _, record in records:
        for name, data in record.aggregates:
            contributions.setdefault(name, []).append(decode(data))
    totals = {}
    for name, aggregator in options.aggregators_by_name.items():
        before = decode(state.aggregates[name]) if aggregator.persistent else aggregator.initial
        try:
            totals[name] = options.reductions[name].extend(before, contributions.get(name, []))
        except Exception as error:
            raise AgentError(
                f"aggregator {name!r} in superstep {step} cannot fold the contributions: "
                f"{type(error).__name__}: {error}"
            ) from error
    return totals


def _encoded(name: str, step: int, value: Any) -> bytes:
    try:
        return encode(value, name="its result")
    except CodecError as error:
        raise AgentError(f"aggregator {name!r} in superstep {step} has a result that is not data: {error}") from None


def _find_recipients(
    state: State, step: int, records: Records, inbox: Inbox, mutated: Change, on_missing: str
) -> Change:
    """Apply ``on_missing`` to messages for vertices that do not exist; return the change with created vertices."""
    missing = _missing_recipients(state, inbox, mutated)
    if not missing:
        return mutated
    if on_missing == "error":
        raise _missing_recipient_error(step, records, missing[0])
    if on_missing == "drop":
        for target in missing:
            del inbox[target]
        return mutated
    created = {target: VertexData(encode(None), []) for target in missing}
    return Change(mutated.set | created, [], [vertex for vertex in mutated.remove if vertex not in created])


def _missing_recipients(state: State, inbox: Inbox, mutated: Change) -> list[Id]:
    """Return the targets of messages that do not exist after the mutations."""
    if not mutated.remove and inbox.keys() <= state.vertices.keys():
        return []
    vertices, added, removed = state.vertices, mutated.set, set(mutated.remove)
    return [target for target in inbox if target not in added and (target not in vertices or target in removed)]


def _missing_recipient_error(step: int, records: Records, target: Id) -> AgentError:
    """Return the error for a message to a vertex that does not exist."""
    sender = next((sender for sender, record in records if target in [to for to, _ in record.outbox]), None)
    who = "the program" if sender is None else f"vertex {decode(sender)!r}"
    return AgentError(
        f"{who} sent a message in superstep {step} to {decode(target)!r}, which does not exist: add that vertex, or "
        f"pass on_missing='create' or 'drop'"
    )


def _ask_master(
    options: RunOptions, step: int, count: int, aggregates: dict[str, Any], function: str
) -> tuple[str, bool]:
    """Return the next superstep's compute function, and whether the run ends."""
    if options.master is None:
        return function, False
    context = MasterContext(step, count, aggregates, options.functions_by_name)
    options.master(context)
    return context.function or function, context.halted
