"""The state of a superstep while it runs or is held, as a user reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from gpu_pregel.host.agents.codec import decode, id_key
from gpu_pregel.host.agents.ledger import Entry, Ledger
from gpu_pregel.host.agents.records import FailedVertex, Id, Outcome, Record, VertexData
from gpu_pregel.host.agents.results import VertexFailure, decode_failure, decode_failures, decode_or_keep
from gpu_pregel.host.agents.retry import RetryPolicy
from gpu_pregel.host.agents.state import State
from gpu_pregel.host.agents.vertices import Vertex, decode_vertex
from gpu_pregel.host.agents.workers.transport import Arrival, OutcomeBatch, Progress
from gpu_pregel.host.arguments import check_integer


@dataclass(frozen=True)
class VertexProgress:
    """What a superstep has given a vertex, and what has become of it so far.

    Attributes
    ----------
    status : str
        "pending" (it waits to be computed), "in_progress" (an attempt is running, or has ended in a worker process that
        has not handed over its outcome), "completed", "failed" (its last attempt failed; it may wait for another one)
        or "interrupted".
    attempts : int
        Number of attempts so far, a running one among them, without interrupted ones.
    vertex : Vertex
        The input: the vertex before the superstep.
    messages : list
        The input messages, in order. Those of types that are not registered in this process are bytes.
    outbox : list of (id, message)
        Of a completed vertex, what it sends, as far as a combiner has not folded it; otherwise empty.
    failure : VertexFailure or None
        Of a failed vertex, and of one that is being tried again.
    payload : data
        Of an interrupted vertex, what it asks.
    computed : Vertex or None
        A completed vertex with its new value and its vote, before its requests are carried out.
    """

    status: str
    attempts: int
    vertex: Vertex
    messages: list[Any]
    outbox: list[tuple[Any, Any]]
    failure: VertexFailure | None = None
    payload: Any = None
    computed: Vertex | None = None


class _Row(NamedTuple):
    """The encoded progress of a vertex."""

    before: VertexData
    entry: Entry
    record: Record | None


class SuperstepState(Mapping[Any, VertexProgress]):
    """The progress of each vertex of a superstep when this was read, by id, decoded on access.

    Attributes
    ----------
    superstep : int
    failures : dict from id to VertexFailure
        Why each failed vertex has failed.
    retryable : list of ids
        The failed vertices that are tried again: they have attempts left, and their failures allow it.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> def compute(ctx):
    ...     ctx.send("b", ctx.value / (ctx.value - 1))
    >>> once = gp.agents.RetryPolicy(attempts=1)
    >>> vertices = [gp.agents.Vertex("a", 3), gp.agents.Vertex("b", 1)]
    >>> with gp.agents.start(vertices, compute, retry=once) as agents:
    ...     _ = agents.step()
    ...     held = agents.superstep_state
    >>> [(one, progress.status, progress.outbox) for one, progress in held.items()]
    [('a', 'completed', [('b', 1.5)]), ('b', 'failed', [])]
    >>> held["b"].vertex.value, held["b"].failure.text
    (1, 'division by zero')
    >>> held.failed_vertices(), held.retryable, held.retryable_vertices(3)
    (['b'], [], ['b'])
    >>> computed, outbox = held.completed_results()
    >>> list(computed), outbox
    (['a'], [('b', 1.5)])
    """

    def __init__(
        self,
        ledger: Ledger,
        vertices: Mapping[Id, VertexData],
        progress: Progress,
        arrivals: Iterable[Arrival],
        retry_of: Callable[[Id], RetryPolicy],
    ) -> None:
        """``progress`` and ``arrivals`` are what the ledger does not know yet."""
        self.superstep, self._retry_of = ledger.step, retry_of
        self._rows: dict[Id, _Row] = {}
        outcomes = [
            *progress.ended,
            *(one for batch in arrivals if isinstance(batch, OutcomeBatch) for one in batch.outcomes),
        ]
        ended = {(outcome.id, outcome.attempt): outcome for outcome in outcomes}
        for vertex in ledger.vertices:
            entry = ledger.find_entry(vertex)
            entry = ledger.peek(vertex) if entry is None else copy(entry)
            record = ledger.records.get(vertex)
            if entry.status == "in_progress":
                attempt = vertex, entry.attempts
                if (outcome := ended.get(attempt)) is not None:
                    record = _end(entry, outcome)
                elif attempt not in progress.begun:
                    entry.status, entry.attempts = "pending", entry.attempts - 1
            if entry.status == "pending" and entry.failure is not None:
                entry.status = "failed"
            self._rows[vertex] = _Row(vertices[vertex], entry, record)

    def __getitem__(self, vertex_id: Any) -> VertexProgress:
        key = id_key(vertex_id)
        row = self._rows.get(key)
        if row is None:
            raise KeyError(vertex_id)
        before, entry, record = row
        failed = None if entry.failure is None else entry.failed(self.superstep, before)
        return VertexProgress(
            entry.status,
            entry.attempts,
            decode_vertex(decode(key), before),
            list(map(decode_or_keep, entry.messages)),
            [] if record is None else _outbox(record),
            None if failed is None else decode_failure(failed),
            None if entry.payload is None else decode_or_keep(entry.payload),
            None if record is None else _computed(key, before, record),
        )

    def __iter__(self) -> Iterator[Any]:
        return map(decode, self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<superstep {self.superstep}: {len(self):,} vertices, {len(self._failed):,} failed>"

    @cached_property
    def _failed(self) -> dict[Id, FailedVertex]:
        rows = [(vertex, entry, before) for vertex, (before, entry, _) in self._rows.items()]
        return {vertex: one.failed(self.superstep, before) for vertex, one, before in rows if one.status == "failed"}

    @cached_property
    def failures(self) -> dict[Any, VertexFailure]:
        """Why each failed vertex has failed."""
        return decode_failures(self._failed)

    @property
    def retryable(self) -> list[Any]:
        """The failed vertices that are tried again."""
        return self._with_attempts_left(lambda vertex: self._retry_of(vertex).attempts)

    def failed_vertices(self) -> list[Any]:
        """Return the ids of the failed vertices, in order."""
        return list(map(decode, self._failed))

    def retryable_vertices(self, max_retries: int) -> list[Any]:
        """Return the ids of the failed vertices that could be tried again, in order.

        Parameters
        ----------
        max_retries : int
            Maximum number of attempts, the first one included, as in :class:`RetryPolicy`, whatever the retry policy of
            the run is. Vertices whose failures must not be retried are left out.
        """
        check_integer("max_retries", max_retries, 0)
        return self._with_attempts_left(lambda _: max_retries)

    def completed_results(self) -> tuple[dict[Any, Vertex], list[tuple[Any, Any]]]:
        """Return what the completed vertices have computed.

        Returns
        -------
        vertices : dict from id to Vertex
            Each completed vertex with its new value and its vote.
        outbox : list of (id, message)
            What they send, in the order of the vertices.
        """
        rows = [(vertex, before, record) for vertex, (before, _, record) in self._rows.items() if record is not None]
        vertices = {decode(vertex): _computed(vertex, before, record) for vertex, before, record in rows}
        return vertices, [message for _, _, record in rows for message in _outbox(record)]

    def _with_attempts_left(self, most: Callable[[Id], int]) -> list[Any]:
        failed = self._failed.items()
        left = [vertex for vertex, one in failed if one.failure.retryable and (one.attempts or 0) < most(vertex)]
        return list(map(decode, left))


def _end(entry: Entry, outcome: Outcome) -> Record | None:
    """Note an outcome that the ledger does not have yet; return the record of a completed attempt."""
    entry.status = outcome.status
    if outcome.status == "completed":
        entry.failure, record = None, outcome.result
        assert isinstance(record, Record)
        return record
    if outcome.status == "failed":
        entry.failure = outcome.result
    else:
        entry.payload, entry.attempts = outcome.result, entry.attempts - 1
    return None


def _outbox(record: Record) -> list[tuple[Any, Any]]:
    return [(decode(target), decode_or_keep(message)) for target, message in record.outbox]


def _computed(key: Id, before: VertexData, record: Record) -> Vertex:
    """Return a vertex after its computation."""
    changed = State({key: before}, {}, {}, "").computed([(key, record)], ())
    return decode_vertex(decode(key), changed.get(key, before))
