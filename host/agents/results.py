"""What a run of agents left: vertices, status, failures, trace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from gpu_pregel.errors import CodecError
from gpu_pregel.host.agents.codec import check_id, decode, encode
from gpu_pregel.host.agents.context import Edge, copied
from gpu_pregel.host.agents.records import Failure, Id, Vertex
from gpu_pregel.host.superstep.trace import Trace


@dataclass(frozen=True)
class FinalVertex:
    """A vertex as a run left it.

    Attributes
    ----------
    id, value : data
    edges : list of Edge
    halted : bool
    """

    id: Any
    value: Any
    edges: list[Edge]
    halted: bool


class Failed(NamedTuple):
    """Why a vertex failed, and with what input.

    Attributes
    ----------
    superstep : int
    kind : str
        "exception", "data" (a value that is none), "timeout", "death" (of its worker) or "limit".
    type, text, traceback : str
    messages : list
        Its input; as bytes what is of a type that is not registered here.
    """

    superstep: int
    kind: str
    type: str
    text: str
    traceback: str
    messages: list[Any]


def tell_failures(failed: Mapping[Id, tuple[int, Failure, Iterable[bytes]]]) -> dict[Any, Failed]:
    """Superstep, failure and input of vertices, by id, as users see them."""
    return {
        decode(vertex): Failed(step, *failure[:4], list(map(_decode_or_keep, messages)))
        for vertex, (step, failure, messages) in failed.items()
    }


def tell_interrupts(interrupts: Mapping[Id, bytes]) -> dict[Any, Any]:
    """What vertices ask, by id, as users see it."""
    return {decode(vertex): _decode_or_keep(payload) for vertex, payload in interrupts.items()}


def _decode_or_keep(data: bytes) -> Any:
    """What bytes are of, or the bytes if that is not known here."""
    try:
        return decode(data)
    except CodecError:
        return data


class Vertices(Mapping[Any, FinalVertex]):
    """Vertices by id, each decoded when it is asked for; in the order of ids as they were given, then added."""

    def __init__(self, vertices: dict[Id, Vertex]) -> None:
        self._vertices = vertices

    def __getitem__(self, vertex_id: Any) -> FinalVertex:
        check_id(vertex_id)
        vertex = self._vertices.get(encode(vertex_id))
        if vertex is None:
            raise KeyError(vertex_id)
        edges = [Edge(decode(target), copied(weight)) for target, weight in vertex.edges]
        return FinalVertex(vertex_id, decode(vertex.value), edges, vertex.halted)

    def __iter__(self) -> Iterator[Any]:
        return map(decode, self._vertices)

    def __len__(self) -> int:
        return len(self._vertices)

    def __repr__(self) -> str:
        return f"<{len(self):,} vertices>"


@dataclass(frozen=True, repr=False)
class AgentResult:
    """What a run of agents left.

    Attributes
    ----------
    vertices : mapping from id to FinalVertex
    status : str
        "completed", "halted" (by the master), "partial" (ended, but some vertices failed), "failed" or "interrupted" (a
        superstep is held), "max_supersteps" or "stopped".
    failed : dict from id to Failed
    superstep : int
        Supersteps committed.
    aggregates : dict
        The last superstep's.
    interrupts : dict from id to payload
        Who waits for an answer; as bytes what is of a type that is not registered here.
    trace : Trace
        A row per superstep.
    """

    vertices: Vertices
    status: str
    failed: dict[Any, Failed]
    superstep: int
    aggregates: dict[str, Any]
    interrupts: dict[Any, Any]
    trace: Trace

    @property
    def values(self) -> dict[Any, Any]:
        """The value of each vertex, by id."""
        return {vertex_id: vertex.value for vertex_id, vertex in self.vertices.items()}

    def __repr__(self) -> str:
        failed = f", {len(self.failed):,} failed" if self.failed else ""
        return f"<AgentResult: {len(self.vertices):,} vertices, {self.superstep} supersteps, {self.status}{failed}>"
