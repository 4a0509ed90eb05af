"""The result of a run of agents: vertices, status, failures, trace."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gpu_pregel.errors import CodecError
from gpu_pregel.host.agents.codec import decode, id_key
from gpu_pregel.host.agents.records import FailedVertex, Id, VertexData
from gpu_pregel.host.agents.vertices import Vertex, decode_vertex
from gpu_pregel.host.superstep.trace import Trace

_FRAME = re.compile(r'^(?=  File ")', re.MULTILINE)
_OWN_FRAME = f'  File "{__file__.rsplit("/", 3)[0]}/'
"""Where the description of a frame begins, and how one of this package does."""


class VertexFailure(NamedTuple):
    """The reason why a vertex failed, and its input.

    Attributes
    ----------
    superstep : int
    kind : str
        "exception", "data" (a value that cannot be encoded), "request" (a message, contribution or request that cannot
        be carried out), "timeout", "death" (of its worker), "limit" or "unreadable" (its value or input needs a type
        that is not registered, or has other fields).
    type, text, traceback : str
    messages : list
        The input. Messages of types that are not registered in this process are bytes.
    attempts : int or None
        Number of attempts in that superstep.
    value : data
        The value before them; bytes if it is of such a type. Both are None if an earlier release has stored the run.
    """

    superstep: int
    kind: str
    type: str
    text: str
    traceback: str
    messages: list[Any]
    attempts: int | None = None
    value: Any = None

    @property
    def users_traceback(self) -> str:
        """The traceback from the first frame outside of this package on; empty if there is none."""
        heading, *frames = _FRAME.split(self.traceback)
        while frames and frames[0].startswith(_OWN_FRAME):
            del frames[0]
        return "".join([heading, *frames]) if frames else ""


def decode_failure(failed: FailedVertex) -> VertexFailure:
    """Return a failure with its decoded input."""
    superstep, failure, messages, attempts, value = failed
    given = None if value is None else decode_or_keep(bytes(value))
    return VertexFailure(superstep, *failure[:4], list(map(decode_or_keep, messages)), attempts, given)


def decode_failures(failed: Mapping[Id, FailedVertex]) -> dict[Any, VertexFailure]:
    """Return failures by decoded id."""
    return {decode(vertex): decode_failure(one) for vertex, one in failed.items()}


def decode_aggregates(aggregates: Mapping[str, bytes]) -> dict[str, Any]:
    """Return decoded aggregates."""
    return {name: decode_or_keep(value) for name, value in aggregates.items()}


def decode_interrupts(interrupts: Mapping[Id, bytes]) -> dict[Any, Any]:
    """Return the payloads of interrupts by decoded id."""
    return {decode(vertex): decode_or_keep(payload) for vertex, payload in interrupts.items()}


def decode_or_keep(data: bytes) -> Any:
    """Decode bytes; return them as they are if their type is not registered."""
    try:
        return decode(data)
    except CodecError:
        return data


class VertexMapping(Mapping[Any, Vertex]):
    """A mapping from id to Vertex, decoded on access, in the order in which vertices were passed or added."""

    def __init__(self, vertices: dict[Id, VertexData]) -> None:
        self._vertices = vertices

    def __getitem__(self, vertex_id: Any) -> Vertex:
        key = id_key(vertex_id)
        vertex = self._vertices.get(key)
        if vertex is None:
            raise KeyError(vertex_id)
        return decode_vertex(decode(key), vertex)

    def __iter__(self) -> Iterator[Any]:
        return map(decode, self._vertices)

    def __len__(self) -> int:
        return len(self._vertices)

    def __repr__(self) -> str:
        return f"<{len(self):,} vertices>"


@dataclass(frozen=True, repr=False)
class AgentResult:
    """The result of a run of agents, complete or so far.

    Attributes
    ----------
    vertices : mapping from id to Vertex
    status : str
        "completed" (no vertex is active), "halted" (by the master), "partial" (completed, but some vertices failed),
        "failed" or "interrupted" (a superstep is held), "max_supersteps", "stopped", "cancelled" or
        "waiting" (for a timer).
    failed : dict from id to VertexFailure
    superstep : int
        Number of committed supersteps.
    aggregates : dict
        Aggregates of the last superstep. Those of types that are not registered in this process are bytes.
    interrupts : dict from id to payload
        Vertices that wait for an answer. Payloads of types that are not registered in this process are bytes.
    trace : Trace
        One row per superstep.
    timers : dict from id to float
        When vertices that have called ``ctx.wake_at`` are to be computed, in seconds since 1970.
    cancelled : list of ids
        Vertices of the held superstep whose attempts were cancelled, or had not begun, when ``on_failure="abort"``
        ended it. They are computed when the run continues.
    arrays : dict from str to array
        In the state of a run of :func:`gpu_pregel.run` with agents: the values of its numeric vertices by field,
        "value" or the field's name.
    """

    vertices: VertexMapping
    status: str
    failed: dict[Any, VertexFailure]
    superstep: int
    aggregates: dict[str, Any]
    interrupts: dict[Any, Any]
    trace: Trace
    timers: dict[Any, float] = field(default_factory=dict)
    cancelled: list[Any] = field(default_factory=list)
    arrays: dict[str, Any] = field(default_factory=dict)

    @property
    def values(self) -> dict[Any, Any]:
        """Values of all vertices, by id."""
        return {vertex_id: vertex.value for vertex_id, vertex in self.vertices.items()}

    def __repr__(self) -> str:
        failed = f", {len(self.failed):,} failed" if self.failed else ""
        return f"<AgentResult: {len(self.vertices):,} vertices, {self.superstep} supersteps, {self.status}{failed}>"
