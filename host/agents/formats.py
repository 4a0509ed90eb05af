"""The formats in which a run of agents is stored: the segments of a superstep, and its commits; see ``state_format``.

Each is encoded column by column, which is fastest for many small vertices and records.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import TYPE_CHECKING, Any

from gpu_pregel.errors import AgentError, CodecError
from gpu_pregel.host.agents.aggregate_changes import ChangedAggregates, aggregate_changes, changed_aggregates
from gpu_pregel.host.agents.codec import decode, encode
from gpu_pregel.host.agents.fold import AgentChange, route, state_after
from gpu_pregel.host.agents.ledger import Ledger
from gpu_pregel.host.agents.parts import (
    ChangedOptions,
    EarlyMessage,
    FailedAttempts,
    LaterMessage,
    Part,
    Question,
    Retry,
    WakeUp,
)
from gpu_pregel.host.agents.records import UNREADABLE, Failure, Id, Outcome, Record, VertexData, flat_edges, new_record
from gpu_pregel.host.agents.state import Inbox, Records, State
from gpu_pregel.host.agents.state_format import begin_packing, cut, failure_fields, pack_state, read_columns
from gpu_pregel.host.agents.stored_shapes import FAILURE, check_ids, check_options
from gpu_pregel.host.agents.timers import timers_after
from gpu_pregel.host.stores.blobs import MAX_BLOB
from gpu_pregel.host.superstep.base_writer import Packing
from gpu_pregel.host.superstep.journal import FoldedSuperstep, PackedCommit

if TYPE_CHECKING:
    from gpu_pregel.host.superstep.stored_arrays import BlockChange

SCHEMA = 5
"""The version of these formats; since version 3, records may have the difference between two values, since version 4,
failures may have the time of the next attempt, states have timers, and are encoded in slices, and since version 5,
failures in states have the number of attempts and the input value, ``retry`` may be a function, and commits have the
aggregates that have changed."""
READABLE_SCHEMAS = (2, 3, 4, 5)
_MAX_SEGMENT = 1 << 28
_MOST_INSIDE, _LARGEST_INSIDE = 16, 880
"""A commit contains its last segment, which saves a row, if the segment has at most this many events and the commit
then takes at most this many bytes: in SQLite, a longer row of that table takes a page of 4 kB of its own."""
_KINDS: tuple[type[Any], ...] = (FailedAttempts, Question, Retry, LaterMessage, EarlyMessage, ChangedOptions, WakeUp)
_CODES = {kind: code for code, kind in enumerate(_KINDS)}
_FIELDS: dict[int, tuple[type, ...]] = dict(
    enumerate(
        (
            (bytes, int, tuple, bool),
            (bytes, int, bytes, int),
            (bytes,),
            (bytes, bytes),
            (bytes, bytes),
            (bytes,),
            (bytes,),
        )
    )
)
"""The stored types of each kind's fields."""


@dataclass
class Segment:
    """The events of a superstep, or of a part of it.

    Attributes
    ----------
    records : list of (Id, Record)
        The records of completed attempts.
    others : list of Part
        All other events, in order.
    """

    records: list[tuple[Id, Record]] = field(default_factory=list)
    others: list[Part] = field(default_factory=list)

    @classmethod
    def of_parts(cls, parts: Iterable[Outcome | Part]) -> Segment:
        """Return a segment of completed outcomes and other parts, as they are in the journal."""
        records: list[tuple[Id, Record]] = []
        others: list[Part] = []
        for part in parts:
            if type(part) is Outcome:
                records.append((part.id, part.result))
            else:
                others.append(part)  # type: ignore[arg-type]
        return cls(records, others)

    def __len__(self) -> int:
        return len(self.records) + len(self.others)

    @property
    def halves(self) -> tuple[Segment, Segment]:
        """Two segments that together, in this order, have the effect of this one."""
        if self.records and self.others:
            return Segment([], self.others), Segment(self.records)
        records, others = len(self.records) // 2, len(self.others) // 2
        first, second = (self.records[:records], self.others[:others]), (self.records[records:], self.others[others:])
        return Segment(*first), Segment(*second)

    def pack(self) -> list[bytes]:
        """Encode the segment, divided if it is too large for one row of a store."""
        if not len(self):
            return []
        data = encode(self.columns())
        if len(data) <= _MAX_SEGMENT:
            return [data]
        if len(self) > 1:
            return [piece for half in self.halves for piece in half.pack()]
        if len(data) > MAX_BLOB:
            vertex = self.records[0][0] if self.records else self.others[0][0]
            raise AgentError(
                f"the record or message of vertex {decode(vertex)!r} takes {len(data):,} bytes, and a store holds "
                f"{MAX_BLOB:,} in one piece: make it smaller; with max_record= such a vertex fails alone"
            )
        return [data]

    def columns(self) -> tuple[Any, ...]:
        """Return the columns that are encoded."""
        ids, records = [vertex for vertex, _ in self.records], [record for _, record in self.records]
        sent = [one for record in records for one in record.outbox]
        return (
            ids,
            [record.value for record in records],
            bytes([record.halted for record in records]),
            [len(record.outbox) for record in records],
            [target for target, _ in sent],
            [message for _, message in sent],
            _sparse([record.aggregates for record in records]),
            _sparse([record.mutations for record in records]),
            [(_CODES[type(part)], *_plain(part)) for part in self.others],
        )

    @classmethod
    def unpack(cls, data: bytes) -> Segment:
        """Decode a segment."""
        return cls.of_columns(read_columns(data, (9,), "a segment"))

    @classmethod
    def of_columns(cls, columns: tuple[Any, ...]) -> Segment:
        """Restore a segment from its columns."""
        ids, values, halted, counts, targets, messages, aggregates, mutations, others = columns
        outboxes = cut(list(zip(targets, messages, strict=True)), counts)
        fields = values, map(bool, halted), outboxes, _dense(aggregates, len(ids)), _dense(mutations, len(ids))
        records = map(new_record, zip(*fields, strict=True))
        return cls(list(zip(ids, records, strict=True)), [_part(*other) for other in others])

    @classmethod
    def of(cls, ledger: Ledger) -> Segment:
        """Return all events in a ledger; messages that arrived before the superstep are part of its input."""
        others: list[Part] = []
        for vertex in ledger.vertices:
            entry = ledger.find_entry(vertex)
            if entry is None or entry.status == "completed":
                continue
            if entry.failure is not None and entry.failure.kind != UNREADABLE:
                made = entry.attempts - (entry.status == "in_progress")
                others.append(FailedAttempts(vertex, made, entry.failure, entry.status != "failed"))
            elif entry.status == "interrupted":
                others.append(Question(vertex, entry.attempts, entry.payload or b"", entry.asked))
        others += [LaterMessage(target, message) for target, messages in ledger.sent.items() for message in messages]
        return cls(ledger.completed_records(), others)

    @property
    def is_begun(self) -> bool:
        """Whether the superstep has begun: there are events besides those that precede it."""
        return bool(self.records) or any(
            not isinstance(part, EarlyMessage | ChangedOptions | WakeUp) for part in self.others
        )

    def receive(self, state: State) -> None:
        """Apply what happened before the superstep: messages from outside, timers, and changes of options."""
        for part in self.others:
            if isinstance(part, EarlyMessage):
                state.inbox.setdefault(part.target, []).append(part.message)
            elif isinstance(part, ChangedOptions):
                state.options = check_options(decode(part.options))
            elif isinstance(part, WakeUp):
                state.wake(part.vertex)

    def replay(self, ledger: Ledger) -> None:
        """Apply the events to a ledger."""
        for part in self.others:
            if isinstance(part, FailedAttempts):
                ledger.set_failed(part.vertex, part.attempts, part.failure, again=part.again)
            elif isinstance(part, Question):
                ledger.set_interrupted(*part)
            elif isinstance(part, Retry):
                ledger.retry([part.vertex])
            elif isinstance(part, LaterMessage):
                ledger.sent.setdefault(part.target, []).append(part.message)
        ledger.set_completed(self.records)


@dataclass
class BegunSuperstep:
    """The recorded part of an uncommitted superstep: its segments, and answers to its interrupts, in order."""

    segments: list[Segment] = field(default_factory=list)
    answers: list[tuple[Id, bytes]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.segments or self.answers)

    def check_vertices(self, vertices: Container[Id]) -> None:
        """Raise ``CodecError`` if it names a vertex that does not exist."""
        named = [vertex for vertex, _ in self.answers]
        for segment in self.segments:
            named += [vertex for vertex, _ in segment.records]
            named += [part[0] for part in segment.others if not isinstance(part, ChangedOptions)]
        for vertex in named:
            if vertex not in vertices:
                raise CodecError(f"is damaged: vertex {decode(vertex)!r:.80} does not exist", "a segment")

    def replay(self, ledger: Ledger) -> None:
        """Apply the segments to a ledger."""
        for segment in self.segments:
            segment.replay(ledger)

    def give_answers(self, ledger: Ledger) -> None:
        """Apply the answers to a ledger."""
        for vertex, answer in self.answers:
            ledger.answer(vertex, answer)


class AgentFormat:
    """The format in which the journal writes a run of agents, whose state is ``state``."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.beside: dict[str, BlockChange] = {}
        """Changes of arrays beside the agents, which the next commit stores."""

    def pack(self, parts: Sequence[Outcome | Part]) -> list[bytes]:
        """Encode parts as segments."""
        return Segment.of_parts(parts).pack()

    def begin_base(self, folded: FoldedSuperstep[AgentChange]) -> Packing:
        """Begin to encode the state after a superstep, as a copy."""
        state = state_after(self._state, folded.change)
        state.inbox, state.timers = dict(state.inbox), dict(state.timers)
        return begin_packing(state)

    def pack_commit(
        self, supersteps: Sequence[FoldedSuperstep[AgentChange]], parts: Sequence[Outcome | Part], *, with_base: bool
    ) -> PackedCommit:
        """Encode a superstep; its last segment is stored inside the commit if it is small."""
        (folded,) = supersteps
        change = folded.change
        base = pack_state(state_after(self._state, change)) if with_base else None
        segment = Segment.of_parts(parts)
        if _is_small(segment):
            data = self._pack_commit(change, folded.row, segment)
            if len(data) <= _LARGEST_INSIDE:
                return PackedCommit(data, [], base)
        return PackedCommit(self._pack_commit(change, folded.row, None), segment.pack(), base)

    def pack_open(self, begun: int, row: dict[str, Any], parts: Sequence[Outcome | Part]) -> PackedCommit:
        """Encode a commit after which the agents of superstep ``begun`` are still being computed."""
        state = self._state
        unchanged = aggregate_changes(state.aggregates, state.aggregates)
        columns: tuple[Any, ...] = (unchanged, state.function, [], [], [], row, None, self.beside, begun)
        return PackedCommit(encode(columns), Segment.of_parts(parts).pack())

    def _pack_commit(self, change: AgentChange, row: dict[str, Any], last: Segment | None) -> bytes:
        """Encode the contents of a commit besides its segments, and the last segment if one is given."""
        mutated = [
            (vertex, bytes(one.value), list(one.edge_pairs), one.halted) for vertex, one in change.mutated.set.items()
        ]
        aggregates = aggregate_changes(self._state.aggregates, change.aggregates)
        columns = None if last is None else last.columns()
        parts = (aggregates, change.function, list(change.failed), mutated, change.mutated.remove, row, columns)
        return encode((*parts, self.beside) if self.beside else parts)


def _is_small(segment: Segment) -> bool:
    """Whether a segment may fit inside its commit."""
    if not 0 < len(segment) <= _MOST_INSIDE:
        return False
    return sum([len(record.value or b"") + len(record.outbox) for _, record in segment.records]) <= _LARGEST_INSIDE


@dataclass
class SavedSuperstep:
    """A committed superstep, with its segments in order."""

    step: int
    segments: list[Segment]
    aggregates: ChangedAggregates
    function: str
    failed: list[Id]
    mutated: list[tuple[Any, ...]]
    removed: list[Id]
    row: dict[str, Any]
    """The row of the trace."""
    beside: dict[str, BlockChange] = field(default_factory=dict)
    """Changes of arrays beside the agents."""
    begun: int | None = None
    """The superstep whose agents were still being computed: then the segments belong to a later commit."""
    sent: tuple[Records, Inbox] = field(default_factory=lambda: ([], {}), init=False)
    """The records, and the messages from outside, once they have been applied."""

    @classmethod
    def unpack(cls, step: int, segments: Iterable[bytes], commit: bytes) -> SavedSuperstep:
        """Decode a superstep."""
        columns = read_columns(commit, (7, 8, 9), "a commit")
        last, *beside = columns[6:]
        unpacked = [Segment.unpack(data) for data in segments]
        if last is not None:
            unpacked.append(Segment.of_columns(last))
        return cls(step, unpacked, *columns[:6], *beside)

    @property
    def needs_inbox(self) -> bool:
        """Whether ``apply`` reads the inbox, or adds to it."""
        return bool(self.failed) or any(segment.others for segment in self.segments)

    def apply(self, state: State) -> None:
        """Apply the superstep to a state, except for its messages."""
        ledger = Ledger(self.step, [], state.inbox)
        for segment in self.segments:
            segment.receive(state)
            segment.replay(ledger)
        records: Records = sorted(ledger.records.items())
        state.failed.update(ledger.failures(state.vertices, self.failed))
        changed = state.computed(records, self.failed)
        state.timers = timers_after(state.timers, records, self.removed)
        state.vertices.update(changed)
        for vertex in self.removed:
            state.vertices.pop(vertex, None)
        for vertex, _, edges, _ in self.mutated:
            check_ids([vertex, *(target for target, _ in edges)], "a commit")
        for vertex, value, edges, flag in self.mutated:
            state.vertices[vertex] = VertexData(value, flat_edges(edges), flag)
        state.aggregates = changed_aggregates(state.aggregates, self.aggregates)
        state.function = self.function
        self.sent = records, ledger.sent

    def deliver(self, state: State) -> None:
        """Deliver its messages, which replace the inbox; without this the inbox is not that after the superstep."""
        inbox = route(*self.sent)
        if not inbox.keys() <= state.vertices.keys():
            inbox = {target: messages for target, messages in inbox.items() if target in state.vertices}
        state.inbox = inbox


def _sparse(columns: list[Sequence[Any]]) -> list[tuple[int, tuple[Any, ...]]]:
    """Return the entries that are not empty, each with its position."""
    return [(k, tuple(entry)) for k, entry in enumerate(columns) if entry]


def _dense(entries: Sequence[tuple[int, tuple[Any, ...]]], count: int) -> Iterable[tuple[Any, ...]]:
    """Return a column from the entries that are not empty."""
    if not entries:
        return repeat((), count)
    found = dict(entries)
    return [found.get(k, ()) for k in range(count)]


def _plain(part: Part) -> tuple[Any, ...]:
    """Return the fields of a part as plain data."""
    if isinstance(part, FailedAttempts):
        return part._replace(failure=failure_fields(part.failure))  # type: ignore[arg-type]
    return part


def _part(code: int, *fields: Any) -> Part:
    """Restore a part from its code and fields, after a check."""
    is_known = tuple(map(type, fields)) == _FIELDS[code]
    if not is_known or (code == _CODES[FailedAttempts] and not FAILURE(fields[2])):
        raise CodecError("contains an impossible event", "a segment")
    if code == _CODES[FailedAttempts]:
        return FailedAttempts(fields[0], fields[1], Failure(*fields[2]), fields[3])
    part: Part = _KINDS[code](*fields)
    return part
