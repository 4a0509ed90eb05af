"""Messages between the master and its partitions: vertices, batches, records of completed attempts, failures.

User data are encoded by ``codec``: the master stores and routes them as bytes. An ``Id`` is the encoded id of a vertex.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from gpu_pregel.host.agents.codec import decode, encode
from gpu_pregel.host.agents.codec.differences import EncodedValue

Id = bytes
Edges = tuple[Any, ...]
"""Targets and weights in turn."""


class VertexData(NamedTuple):
    """The encoded state of a vertex between two supersteps.

    Attributes
    ----------
    value : bytes or PiecedValue
    edges : tuple
        Target and weight of each out-edge in turn, in the order in which they were added: one object for all of them.
    halted : bool
    """

    value: EncodedValue
    edges: Edges
    halted: bool = False

    @property
    def targets(self) -> tuple[Id, ...]:
        """The targets of the out-edges."""
        return self.edges[::2]

    @property
    def edge_pairs(self) -> Iterable[tuple[Id, Any]]:
        """Target and weight of each out-edge."""
        return zip(self.edges[::2], self.edges[1::2], strict=True)

    def pack(self) -> bytes:
        """Return the encoded form."""
        return encode((bytes(self.value), list(self.edge_pairs), self.halted))

    @classmethod
    def unpack(cls, data: bytes) -> VertexData:
        """Restore from the encoded form."""
        value, pairs, halted = decode(data)
        return cls(value, flat_edges(pairs), halted)


new_vertex = partial(tuple.__new__, VertexData)
"""Makes a vertex from a tuple of all its fields, in a third of the time."""


def flat_edges(pairs: Iterable[tuple[Id, Any]]) -> Edges:
    """Return the edges of ``VertexData`` from pairs of a target and a weight."""
    return tuple(chain.from_iterable(pairs))


class Record(NamedTuple):
    """The output of a completed attempt.

    Attributes
    ----------
    value : bytes or None
        The new value, or the difference from the old one; None if it has not changed.
    halted : bool
    outbox : sequence of (Id, bytes)
        Messages in the order in which they were sent.
    aggregates : sequence of (str, bytes)
    mutations : sequence of tuple
    """

    value: bytes | None
    halted: bool
    outbox: Sequence[tuple[Id, bytes]]
    aggregates: Sequence[tuple[str, bytes]]
    mutations: Sequence[tuple[Any, ...]]


new_record = partial(tuple.__new__, Record)
"""Makes a record from a tuple of all its fields, in a third of the time."""

WAKE_AT = "wake_at"
"""The kind of request by which a vertex sets its timer."""
UNREADABLE = "unreadable"
"""The kind of failures that hold the superstep in any case, and are not recorded: the program, not the vertex, has to
change, and a resumed run tries again."""


class Failure(NamedTuple):
    """The reason why an attempt failed, as plain data, because exceptions may not be picklable.

    Attributes
    ----------
    kind : str
        "exception", "data", "request", "timeout", "death", "limit" or "unreadable".
    type, text, traceback : str
    retryable : bool
        Whether the retry policy or the exception allows another attempt.
    not_before : float or None
        When that attempt may begin, in seconds since 1970, if the exception says so.
    """

    kind: str
    type: str
    text: str
    traceback: str
    retryable: bool
    not_before: float | None = None

    def seconds_left(self) -> float | None:
        """Return the seconds until the next attempt may begin, if the exception says when."""
        return None if self.not_before is None else max(0.0, self.not_before - time.time())


class FailedVertex(NamedTuple):
    """A vertex that finally failed: why, and what the attempts were given.

    Attributes
    ----------
    superstep : int
    failure : Failure
    messages : list of bytes
    attempts : int or None
        Number of attempts in that superstep.
    value : bytes or PiecedValue or None
        These two are None for runs of releases that did not store them.
    """

    superstep: int
    failure: Failure
    messages: list[bytes]
    attempts: int | None = None
    value: EncodedValue | None = None


class Task(NamedTuple):
    """An attempt to compute a vertex: its messages in order, and the answers to its interrupts so far."""

    id: Id
    attempt: int
    messages: Sequence[bytes]
    answers: Sequence[bytes]


TaskFields = tuple[Id, int, Sequence[bytes], Sequence[bytes]]


@dataclass(slots=True)
class Batch:
    """The work of a partition in a superstep; each of ``tasks`` has the fields of a ``Task``.

    ``guests`` has the state of vertices that belong to other partitions.
    """

    step: int
    num_vertices: int
    function: str
    aggregates: dict[str, bytes]
    tasks: list[TaskFields]
    guests: dict[Id, VertexData] = field(default_factory=dict)


class Outcome(NamedTuple):
    """The end of an attempt.

    ``status`` is "completed", "failed" or "interrupted"; ``result`` is accordingly a ``Record``, a ``Failure`` or the
    payload of the interrupt.
    """

    id: Id
    attempt: int
    status: str
    result: Any


@dataclass(slots=True)
class Change:
    """The changes of a commit to a partition, in addition to the records of its own attempts.

    Attributes
    ----------
    set : dict
        Vertices to replace or add: new ones, those with changed edges, and those whose record came from another
        worker.
    halt : list
        Failed vertices, which keep their value.
    remove : list
    """

    set: dict[Id, VertexData] = field(default_factory=dict)
    halt: list[Id] = field(default_factory=list)
    remove: list[Id] = field(default_factory=list)


NO_CHANGE = Change()
"""The empty change of most supersteps; must not be modified."""
