"""What travels between the master and its partitions: vertices, batches, records of completed attempts, failures.

All are data (``codec``): the master stores and routes their bytes, and looks only into the envelopes defined here. Ids
are the codec's bytes of the user's ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gpu_pregel.host.agents.codec import decode, encode

Id = bytes


@dataclass(slots=True)
class Vertex:
    """A vertex between two supersteps.

    Attributes
    ----------
    value : bytes
    edges : list of (Id, weight)
        Out-edges in the order in which they were added.
    halted : bool
    """

    value: bytes
    edges: list[tuple[Id, Any]]
    halted: bool = False

    def pack(self) -> bytes:
        """As bytes."""
        return encode((self.value, self.edges, self.halted))

    @classmethod
    def unpack(cls, data: bytes) -> Vertex:
        """From bytes."""
        return cls(*decode(data))


class Record(NamedTuple):
    """What a completed attempt leaves.

    Attributes
    ----------
    value : bytes or None
        The new value, None if it is the old one.
    halted : bool
    outbox : sequence of (Id, bytes)
        Messages in the order of sending.
    aggregates : sequence of (str, bytes)
    mutations : sequence of tuple
    """

    value: bytes | None
    halted: bool
    outbox: Sequence[tuple[Id, bytes]]
    aggregates: Sequence[tuple[str, bytes]]
    mutations: Sequence[tuple[Any, ...]]

    def pack(self) -> bytes:
        """As bytes."""
        return encode((self.value, self.halted, tuple(self.outbox), tuple(self.aggregates), tuple(self.mutations)))

    @classmethod
    def unpack(cls, data: bytes) -> Record:
        """From bytes."""
        return cls(*decode(data))


class Failure(NamedTuple):
    """Why an attempt did not complete, as data: an exception need not be picklable.

    Attributes
    ----------
    kind : str
        "exception", "data", "timeout", "death" or "limit".
    type, text, traceback : str
    retryable : bool
        Whether the retry policy tries again after such.
    """

    kind: str
    type: str
    text: str
    traceback: str
    retryable: bool


class Task(NamedTuple):
    """One attempt to compute a vertex: its messages in order, and the answers to its interrupts so far."""

    id: Id
    attempt: int
    messages: Sequence[bytes]
    answers: Sequence[bytes]


TaskFields = tuple[Id, int, Sequence[bytes], Sequence[bytes]]


@dataclass(slots=True)
class Batch:
    """What a partition is to compute in a superstep; ``tasks`` are the fields of a ``Task`` each."""

    step: int
    num_vertices: int
    function: str
    aggregates: dict[str, bytes]
    tasks: list[TaskFields]


class Outcome(NamedTuple):
    """How an attempt ended: ``result`` is a record, a failure, or the payload of an interrupt.

    ``status`` is "completed", "failed" or "interrupted".
    """

    id: Id
    attempt: int
    status: str
    result: Any


@dataclass(slots=True)
class Change:
    """What a commit does to a partition beside making its completed attempts' results the state.

    Attributes
    ----------
    set : dict
        Vertices as they are from now on, whatever the partition holds: added ones, those with changed edges, and those
        whose record came from a worker that is gone.
    halt : list
        Vertices that failed: they keep their value and are halted.
    remove : list
    """

    set: dict[Id, Vertex] = field(default_factory=dict)
    halt: list[Id] = field(default_factory=list)
    remove: list[Id] = field(default_factory=list)


NOTHING = Change()
"""The change of most supersteps; nobody is to write into it."""
