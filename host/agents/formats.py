"""The formats of what is kept of a run: its state, a segment of what happened in a superstep, and a commit.

All are codec bytes, in columns: that takes least time for many small vertices and records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from gpu_pregel.errors import CodecError
from gpu_pregel.host.agents.codec import decode, encode
from gpu_pregel.host.agents.fold import Next
from gpu_pregel.host.agents.ledger import Ledger
from gpu_pregel.host.agents.records import Failure, Id, Record, Vertex
from gpu_pregel.host.agents.state import Inbox, Records, State, route

_CHECKPOINT = "gpu-pregel agents 1"
FAILED, INTERRUPTED, RETRIED, SENT, RECEIVED = range(5)
_EVENTS: dict[int, tuple[type, ...]] = {
    FAILED: (bytes, int, tuple, bool),
    INTERRUPTED: (bytes, int, bytes, int),
    RETRIED: (bytes,),
    SENT: (bytes, bytes),
    RECEIVED: (bytes, bytes),
}
"""What ``Segment.others`` have behind their kind."""


@dataclass
class Segment:
    """What happened in a superstep, in part or as a whole.

    Attributes
    ----------
    records : list of (Id, Record)
        Of attempts that completed.
    others : list of tuple
        In order: (``FAILED``, id, attempts, fields of the failure, whether it is tried again), (``INTERRUPTED``, id,
        attempts, payload, number of the question), (``RETRIED``, id), (``SENT``, target, message) for the superstep
        after, and (``RECEIVED``, target, message) for this one.
    """

    records: list[tuple[Id, Record]] = field(default_factory=list)
    others: list[tuple[Any, ...]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.records) + len(self.others)

    @property
    def halves(self) -> tuple[Segment, Segment]:
        """Two that happen one after the other as this does."""
        if self.records and self.others:
            return Segment([], self.others), Segment(self.records)
        records, others = len(self.records) // 2, len(self.others) // 2
        first, second = (self.records[:records], self.others[:others]), (self.records[records:], self.others[others:])
        return Segment(*first), Segment(*second)

    def pack(self) -> bytes:
        """As bytes."""
        return encode(self.columns())

    def columns(self) -> tuple[Any, ...]:
        """As data."""
        ids, records = [vertex for vertex, _ in self.records], [record for _, record in self.records]
        sent = [one for record in records for one in record.outbox]
        return (
            ids,
            [record.value for record in records],
            bytes([record.halted for record in records]),
            [len(record.outbox) for record in records],
            [target for target, _ in sent],
            [message for _, message in sent],
            [(k, tuple(record.aggregates)) for k, record in enumerate(records) if record.aggregates],
            [(k, tuple(record.mutations)) for k, record in enumerate(records) if record.mutations],
            self.others,
        )

    @classmethod
    def unpack(cls, data: bytes) -> Segment:
        """From bytes."""
        return cls.of_columns(_columns(data, 9, "a segment"))

    @classmethod
    def of_columns(cls, columns: tuple[Any, ...]) -> Segment:
        """From data."""
        ids, values, halted, counts, targets, messages, aggregates, mutations, others = columns
        for kind, *rest in others:
            if tuple(map(type, rest)) != _EVENTS[kind] or (kind == FAILED and len(rest[2]) != len(Failure._fields)):
                raise CodecError("tells of what cannot have happened", "a segment")
        contributions, requests = dict(aggregates), dict(mutations)
        sent = list(zip(targets, messages, strict=True))
        records = [
            (vertex, Record(value, bool(flag), outbox, contributions.get(k, ()), requests.get(k, ())))
            for k, (vertex, value, flag, outbox) in enumerate(zip(ids, values, halted, _cut(sent, counts), strict=True))
        ]
        return cls(records, others)

    @classmethod
    def of(cls, ledger: Ledger) -> Segment:
        """All that a ledger has; what was received is in its input."""
        others: list[tuple[Any, ...]] = []
        for vertex in ledger.vertices:
            entry = ledger.known(vertex)
            if entry is None or entry.status == "completed":
                continue
            if entry.failure is not None:
                made = entry.attempts - (entry.status == "in_progress")
                others.append((FAILED, vertex, made, tuple(entry.failure), entry.status != "failed"))
            elif entry.status == "interrupted":
                others.append((INTERRUPTED, vertex, entry.attempts, entry.payload, entry.asked))
        others += [(SENT, target, message) for target, messages in ledger.sent.items() for message in messages]
        return cls(ledger.completed(), others)

    @property
    def is_begun(self) -> bool:
        """Whether there is more than messages that came before anything was computed."""
        return bool(self.records) or any(kind != RECEIVED for kind, *_ in self.others)

    def receive(self, inbox: Inbox) -> None:
        """Add messages from outside to the superstep's input."""
        for kind, target, *rest in self.others:
            if kind == RECEIVED:
                inbox.setdefault(target, []).append(rest[0])

    def replay(self, ledger: Ledger) -> None:
        """Let it have happened to a ledger."""
        for kind, vertex, *rest in self.others:
            if kind == FAILED:
                ledger.set_failed(vertex, rest[0], Failure(*rest[1]), again=rest[2])
            elif kind == INTERRUPTED:
                ledger.set_interrupted(vertex, *rest)
            elif kind == RETRIED:
                ledger.retry([vertex])
            elif kind == SENT:
                ledger.sent.setdefault(vertex, []).append(rest[0])
        ledger.set_completed(self.records)


@dataclass
class Checkpoint:
    """A run in one piece: its state, and what there is of the superstep under way."""

    run_id: str
    superstep: int
    state: State
    segment: Segment | None
    answers: list[tuple[Id, bytes]]

    @classmethod
    def of(cls, run_id: str, superstep: int, state: State, ledger: Ledger | None) -> Checkpoint:
        """Of a run as it is."""
        if ledger is None:
            return cls(run_id, superstep, state, None, [])
        return cls(run_id, superstep, state, Segment.of(ledger), ledger.answers())

    def pack(self) -> bytes:
        """As bytes."""
        segment = None if self.segment is None else self.segment.pack()
        return encode((_CHECKPOINT, self.run_id, self.superstep, pack_state(self.state), segment, self.answers))

    @classmethod
    def unpack(cls, data: bytes) -> Checkpoint:
        """From bytes."""
        name, run_id, superstep, state, segment, answers = _columns(data, 6, "a checkpoint of a run of agents")
        if name != _CHECKPOINT:
            raise CodecError(f"is no checkpoint of a run of agents, or of another version: it says {name!r}", "data")
        unpacked = None if segment is None else Segment.unpack(segment)
        return cls(run_id, superstep, unpack_state(state), unpacked, answers)


def pack_state(state: State) -> bytes:
    """A state as bytes."""
    vertices = list(state.vertices.values())
    edges = [edge for vertex in vertices for edge in vertex.edges]
    content = (
        list(state.vertices),
        [vertex.value for vertex in vertices],
        bytes([vertex.halted for vertex in vertices]),
        [len(vertex.edges) for vertex in vertices],
        [target for target, _ in edges],
        [weight for _, weight in edges],
        list(state.inbox),
        [len(messages) for messages in state.inbox.values()],
        [message for messages in state.inbox.values() for message in messages],
        state.aggregates,
        state.function,
        [(vertex, step, tuple(failure), messages) for vertex, (step, failure, messages) in state.failed.items()],
    )
    return encode(content)


def unpack_state(data: bytes) -> State:
    """A state from bytes."""
    ids, values, halted, counts, targets, weights, receivers, lengths, messages, *rest = _columns(data, 12, "a state")
    aggregates, function, failed = rest
    edges = list(zip(targets, weights, strict=True))
    vertices = {
        vertex: Vertex(value, out, bool(flag))
        for vertex, value, flag, out in zip(ids, values, halted, _cut(edges, counts), strict=True)
    }
    inbox = dict(zip(receivers, _cut(messages, lengths), strict=True))
    failures = {vertex: (step, Failure(*failure), given) for vertex, step, failure, given in failed}
    return State(vertices, inbox, aggregates, function, failures)


def pack_commit(after: Next, row: dict[str, Any], last: Segment | None) -> bytes:
    """What a commit needs beside its segments, as bytes; the last of these may be in it."""
    mutated = [(vertex, one.value, one.edges, one.halted) for vertex, one in after.mutated.set.items()]
    columns = None if last is None else last.columns()
    return encode((after.aggregates, after.function, list(after.failed), mutated, after.mutated.remove, row, columns))


@dataclass
class Commit:
    """A committed superstep, with its segments in order."""

    step: int
    segments: list[Segment]
    aggregates: dict[str, bytes]
    function: str
    failed: list[Id]
    mutated: list[tuple[Any, ...]]
    removed: list[Id]
    row: dict[str, Any]
    """Of the trace."""

    @classmethod
    def unpack(cls, step: int, segments: Iterable[bytes], commit: bytes) -> Commit:
        """From bytes."""
        *rest, last = _columns(commit, 7, "a commit")
        unpacked = [Segment.unpack(data) for data in segments]
        if last is not None:
            unpacked.append(Segment.of_columns(last))
        return cls(step, unpacked, *rest)

    def advance(self, state: State) -> None:
        """Let it have happened to a state."""
        ledger = Ledger(self.step, [], state.inbox)
        for segment in self.segments:
            segment.receive(state.inbox)
            segment.replay(ledger)
        records: Records = sorted(ledger.records.items())
        state.failed.update(ledger.failures())
        changed = state.computed(records, self.failed)
        inbox = route(records, ledger.sent)
        state.vertices.update(changed)
        for vertex in self.removed:
            state.vertices.pop(vertex, None)
        state.vertices.update({vertex: Vertex(*rest) for vertex, *rest in self.mutated})
        state.inbox = {target: messages for target, messages in inbox.items() if target in state.vertices}
        state.aggregates, state.function = self.aggregates, self.function


def _columns(data: bytes, count: int, what: str) -> tuple[Any, ...]:
    content = decode(data, name=what)
    if not isinstance(content, tuple) or len(content) != count:
        raise CodecError(f"holds something else: {what} has {count} parts", what)
    return content


def _cut(items: Sequence[Any], counts: Sequence[int]) -> Iterable[Any]:
    """Consecutive pieces of so many items."""
    return [items[end - count : end] for count, end in zip(counts, accumulate(counts), strict=True)]
