"""Fold the records of a superstep into one change: values, aggregates, mutations, messages, master compute."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from gpu_pregel.errors import AgentError, CodecError
from gpu_pregel.host.agents.codec import decode, encode
from gpu_pregel.host.agents.combiners import ContributionsError, Reduction
from gpu_pregel.host.agents.companion import Companion
from gpu_pregel.host.agents.ledger import Ledger
from gpu_pregel.host.agents.master_context import MasterContext
from gpu_pregel.host.agents.mutations import Refusals, refusal, resolve_mutations
from gpu_pregel.host.agents.options import RunOptions
from gpu_pregel.host.agents.records import NO_CHANGE, Change, FailedVertex, Id, VertexData
from gpu_pregel.host.agents.state import Inbox, Records, State
from gpu_pregel.host.agents.timers import Timers, timers_after
from gpu_pregel.host.agents.workers.error_texts import text_of
from gpu_pregel.host.superstep.trace import aggregate_columns

_LARGEST_TRACED = 4096
"""Larger aggregates are not decoded for the trace, in bytes."""


class RefusedError(Exception):
    """Contributions, requests or messages of vertices cannot be folded; ``reasons`` has all these vertices."""

    def __init__(self, reasons: Refusals) -> None:
        self.reasons = dict(sorted(reasons.items()))
        super().__init__("; ".join(map(str, self.reasons.values())))


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
    timers : Timers
        As in ``State``.
    """

    records: Records
    failed: dict[Id, FailedVertex]
    changed: dict[Id, VertexData]
    mutated: Change
    inbox: Inbox
    aggregates: dict[str, bytes]
    function: str
    halted: bool
    awake: set[Id]
    active: set[Id]
    timers: Timers


def fold_superstep(
    state: State, ledger: Ledger, options: RunOptions, companion: Companion | None = None
) -> AgentChange:
    """Fold a superstep whose vertices have all completed or finally failed; ``state`` is not changed.

    Raises ``RefusedError`` if records of vertices cannot be folded.
    """
    records = ledger.completed_records()
    failed = {} if len(records) == len(ledger.vertices) else ledger.failures(state.vertices)
    changed = state.computed(records, failed)
    inbox = route(records, ledger.sent)
    awake, requesting = _find_awake(records)
    refused: Refusals = {} if companion is None else companion.find_refusals(records)
    values, aggregates = _fold_aggregates(options, state, records, refused) if state.aggregates else ({}, {})
    mutated = NO_CHANGE
    if requesting:
        mutated = _resolve(requesting, state, changed, inbox, options, refused)
    if inbox and (mutated is not NO_CHANGE or not inbox.keys() <= state.vertices.keys()):
        mutated = _find_recipients(state, records, inbox, mutated, options.on_missing, refused)
    if refused:
        raise RefusedError(refused)
    count = len(state.vertices)
    if companion is not None and (created := companion.new_agents(state.vertices.keys())):
        mutated = Change(mutated.set | created, mutated.halt, mutated.remove)
    if mutated is not NO_CHANGE:
        _apply(mutated, changed, awake)
        count += sum(vertex not in state.vertices for vertex in mutated.set) - len(mutated.remove)
    function, halted = state.function, False
    if options.master is not None:
        unchanged = {name: aggregates[name] for name in options.reductions if name not in values}
        function, halted = _ask_master(options.master, options, ledger.step, count, values, unchanged, function)
        # The master may have modified the values that it has read.
        aggregates |= {name: _encoded(name, ledger.step, value) for name, value in values.items()}
    active = awake if inbox.keys() <= awake else awake.union(inbox)
    timers = state.timers
    if timers or requesting:
        timers = timers_after(timers, requesting, mutated.remove)
    return AgentChange(records, failed, changed, mutated, inbox, aggregates, function, halted, awake, active, timers)


def route(records: Records, sent: Inbox) -> Inbox:
    """Return each vertex's messages for the next superstep: those from vertices, then those from outside."""
    inbox: Inbox = {}
    for _, record in records:
        for target, message in record.outbox:
            messages = inbox.get(target)
            if messages is None:
                inbox[target] = [message]
            else:
                messages.append(message)
    if sent:
        for target, several in sent.items():
            inbox.setdefault(target, []).extend(several)
    return inbox


def _resolve(
    requesting: Records,
    state: State,
    changed: dict[Id, VertexData],
    inbox: Inbox,
    options: RunOptions,
    refused: Refusals,
) -> Change:
    """Return the effect of the requests; ``changed`` has the vertices that records and failures change."""

    def find(vertex: Id) -> VertexData | None:
        return changed.get(vertex) or state.vertices.get(vertex)

    return resolve_mutations(requesting, find, inbox, options.resolve, options.on_missing, refused)


def _apply(mutated: Change, changed: dict[Id, VertexData], awake: set[Id]) -> None:
    """Add the effect of the requests to the changed vertices and to those that are awake."""
    changed.update(mutated.set)
    for vertex, one in mutated.set.items():
        (awake.discard if one.halted else awake.add)(vertex)
    for vertex in mutated.remove:
        changed.pop(vertex, None)
        awake.discard(vertex)


def _find_awake(records: Records) -> tuple[set[Id], Records]:
    """Return the vertices that have not voted to halt, and the records with requests.

    Every vertex that was awake has been computed.
    """
    awake, requesting = set(), []
    for vertex, record in records:
        _, halted, _, _, mutations = record
        if not halted:
            awake.add(vertex)
        if mutations:
            requesting.append((vertex, record))
    return awake, requesting


def change_of_partitions(state: State, ledger: Ledger, after: AgentChange, has_record: Callable[[Id], bool]) -> Change:
    """Return the change that partitions need in addition to the records of their own attempts."""
    change = Change(dict(after.mutated.set), list(after.failed), after.mutated.remove)
    for vertex, _ in after.records:
        if vertex in after.changed and not has_record(vertex):  # of a former worker, or that of another partition
            change.set[vertex] = after.changed[vertex]
    for vertex in ledger.refused.difference(change.remove):  # their partitions may have the refused records
        change.set.setdefault(vertex, after.changed.get(vertex) or state.vertices[vertex])
    return change


def state_after(state: State, after: AgentChange) -> State:
    """Return the state after a superstep; ``state`` itself is not changed."""
    vertices = state.vertices | after.changed
    for vertex in after.mutated.remove:
        vertices.pop(vertex, None)
    failed = state.failed | after.failed
    return State(vertices, after.inbox, after.aggregates, after.function, failed, state.options, after.timers)


_REMEDY = "which does not exist: add that vertex, or pass on_missing='create' or 'drop'"
Contributions = list[tuple[Id, bytes]]
"""Contributions to an aggregate with the vertices that made them, in the order of (vertex, sequence)."""


def _fold_aggregates(
    options: RunOptions, state: State, records: Records, refused: Refusals
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the aggregates of the contributions of completed attempts, as values and encoded."""
    contributions: dict[str, Contributions] = {}
    for vertex, record in records:
        for name, data in record.aggregates:
            contributions.setdefault(name, []).append((vertex, data))
    values: dict[str, Any] = {}
    encoded = state.aggregates.copy()
    for name, fold in options.folds.items():
        if name in contributions:
            try:
                encoded[name] = fold.fold(encoded[name], contributions[name])
            except ContributionsError as error:
                for vertex, reason in error.reasons.items():
                    refused.setdefault(vertex, refusal(str(reason), reason))
    for name, reduction in options.reductions.items():
        aggregator, made = options.aggregators_by_name[name], contributions.get(name, [])
        before = aggregator.initial
        if aggregator.persistent:
            if not made:
                continue
            before = decode(encoded[name], name=f"the aggregate {name!r}")
        try:
            values[name], encoded[name] = _extend(reduction, before, made)
        except (Exception, SystemExit) as error:
            if not made:
                raise
            for vertex, reason in _blame(name, reduction, before, made, error).items():
                refused.setdefault(vertex, reason)
    return values, encoded


def _extend(reduction: Reduction, before: Any, contributions: Contributions) -> tuple[Any, bytes]:
    """Return the aggregate ``before`` extended by contributions, and its encoding."""
    total = reduction.extend(before, [decode(data) for _, data in contributions])
    return total, encode(total, name="its result")


def _blame(
    name: str, reduction: Reduction, before: Any, contributions: Contributions, error: BaseException
) -> Refusals:
    """Return the vertices whose contributions cannot be read or, if there are none, cannot be folded."""
    refused: Refusals = {}
    for vertex, data in contributions:
        try:
            decode(data, name="a contribution")
        except CodecError as unreadable:
            refused[vertex] = refusal(f"aggregator {name!r} cannot fold {unreadable}", unreadable)
        except (Exception, SystemExit):
            continue  # of a method of the user's types, as below
    if refused:
        return refused
    _, culprits = _find_culprits(reduction, before, contributions)
    for vertex, why in culprits or [(vertex, error) for vertex, _ in contributions]:
        problem = f"aggregator {name!r} cannot fold the contribution: {type(why).__name__}: {text_of(why)}"
        refused.setdefault(vertex, refusal(problem, None if isinstance(why, CodecError) else why))
    return refused


def _find_culprits(
    reduction: Reduction, before: Any, contributions: Contributions
) -> tuple[Any, list[tuple[Id, BaseException]]]:
    """Return the aggregate of the contributions that can be folded, and the vertices of the others."""
    try:
        return _extend(reduction, before, contributions)[0], []
    except (Exception, SystemExit) as error:
        if len(contributions) < 2:
            return before, [(vertex, error) for vertex, _ in contributions]
    middle = len(contributions) // 2
    total, first = _find_culprits(reduction, before, contributions[:middle])
    total, second = _find_culprits(reduction, total, contributions[middle:])
    return total, first + second


def _find_recipients(
    state: State, records: Records, inbox: Inbox, mutated: Change, on_missing: str, refused: Refusals
) -> Change:
    """Apply ``on_missing`` to messages for vertices that do not exist; return the change with created vertices."""
    missing = _missing_recipients(state, inbox, mutated)
    if not missing:
        return mutated
    if on_missing == "error":
        _refuse_senders(records, inbox, missing, refused)
        return mutated
    if on_missing == "drop":
        for target in missing:
            del inbox[target]
        return mutated
    created = {target: VertexData(encode(None), ()) for target in missing}
    return Change(mutated.set | created, [], [vertex for vertex in mutated.remove if vertex not in created])


def _missing_recipients(state: State, inbox: Inbox, mutated: Change) -> list[Id]:
    """Return the targets of messages that do not exist after the mutations."""
    if not mutated.remove and inbox.keys() <= state.vertices.keys():
        return []
    vertices, added, removed = state.vertices, mutated.set, set(mutated.remove)
    return [target for target in inbox if target not in added and (target not in vertices or target in removed)]


def _refuse_senders(records: Records, inbox: Inbox, missing: list[Id], refused: Refusals) -> None:
    """Refuse the vertices that sent messages to missing ones, and drop messages from outside, which nobody can mend.

    Messages to a vertex that a refused one removed are judged again without that request.
    """
    senders: dict[Id, list[Id]] = {target: [] for target in missing}
    removers: dict[Id, list[Id]] = {target: [] for target in missing}
    for vertex, record in records:
        for target, _ in record.outbox:
            if target in senders:
                senders[target].append(vertex)
        for kind, target, *_ in record.mutations:
            if target in removers and kind in ("remove_vertex", "add_vertex"):  # which may remove it by resolve=
                removers[target].append(vertex)
    for target in sorted(missing, key=lambda target: (bool(removers[target]), target)):
        if refused.keys() & removers[target]:
            continue
        if not senders[target]:
            del inbox[target]
        for vertex in senders[target]:
            refused.setdefault(vertex, AgentError(f"sent a message to {decode(target)!r}, {_REMEDY}"))


def _ask_master(
    master: Callable[[MasterContext], Any],
    options: RunOptions,
    step: int,
    count: int,
    aggregates: dict[str, Any],
    unchanged: dict[str, bytes],
    function: str,
) -> tuple[str, bool]:
    """Return the next superstep's compute function, and whether the run ends."""
    context = MasterContext(step, count, aggregates, unchanged, options.functions_by_name)
    master(context)
    return context.function or function, context.halted


def _encoded(name: str, step: int, value: Any) -> bytes:
    try:
        return encode(value, name="its result")
    except CodecError as error:
        raise AgentError(f"aggregator {name!r} in superstep {step} has a result that is not data: {error}") from None


def row_of(ledger: Ledger, after: AgentChange, traced: Iterable[str], seconds: float) -> dict[str, Any]:
    """Return the row of a folded superstep in the trace, with the aggregates that it shows."""
    return {
        "superstep": ledger.step,
        "computed": len(ledger.vertices),
        "active_vertices": len(after.active),
        "messages": sum(map(len, after.inbox.values())) if after.inbox else 0,
        "failed": len(after.failed),
        "retries": ledger.retries(),
        "seconds": seconds,
        **aggregate_columns(traced, [_readable(after.aggregates[name]) for name in traced]),
    }


def _readable(aggregate: bytes) -> Any:
    """Return an aggregate, or its size if it is large or its type cannot be read here."""
    if len(aggregate) <= _LARGEST_TRACED:
        try:
            return decode(aggregate)
        except (Exception, SystemExit):
            pass  # of a method of the user's types, or a type that is not registered
    return f"{len(aggregate):,} bytes"
