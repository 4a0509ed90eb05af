"""Vertices and edges as users see them, and their conversion to and from the encoded form of ``records``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpu_pregel.errors import ArgumentTypeError, CodecError
from gpu_pregel.host.agents.codec import decode, encode, id_key
from gpu_pregel.host.agents.records import Id, VertexData
from gpu_pregel.host.arguments import check_flag

IMMUTABLE_TYPES = frozenset({type(None), bool, int, float, str, bytes})
"""Types of edge weights that need no copy."""


class Edge:
    """An out-edge: ``target`` and ``weight``."""

    __slots__ = ("target", "weight")

    def __init__(self, target: Any, weight: Any) -> None:
        self.target, self.weight = target, weight

    def __iter__(self) -> Iterator[Any]:
        return iter((self.target, self.weight))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Edge):
            return NotImplemented
        return bool(self.target == other.target and self.weight == other.weight)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Edge({self.target!r}, {self.weight!r})"


@dataclass(frozen=True)
class Vertex:
    """A vertex: an input of a run, or the final state of one in its result.

    Parameters
    ----------
    id : str, int, bytes or tuple of such
    value : data
    edges : iterable
        Out-edges: targets, or :class:`Edge` objects, which have a weight. The default weight is 1. In a result this is
        a list of :class:`Edge` objects.
    halted : bool
        Whether the vertex is inactive until it receives a message.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> gp.agents.Vertex("a", 1, ["b", "c"]).id
    'a'
    """

    id: Any
    value: Any = None
    edges: Sequence[Any] = ()
    halted: bool = False


def encode_vertex(vertex: object, shared: dict[Id, Id] | None = None) -> tuple[Id, VertexData]:
    """Check and encode a vertex that a user has passed; equal ids in ``shared`` are used instead of new ones."""
    if not isinstance(vertex, Vertex):
        raise ArgumentTypeError(f"vertices must be gp.agents.Vertex objects, not {vertex!r}")
    vertex_id = _encode_id(vertex.id, "a vertex's id")
    try:
        value = encode(vertex.value)
        share = ({} if shared is None else shared).setdefault
        vertex_id = share(vertex_id, vertex_id)
        edges: list[Any] = []
        for target, weight in edge_pairs(vertex.edges):
            key = _encode_id(target, "edge to")
            is_number = type(weight) is int or type(weight) is float
            edges.append(share(key, key))
            edges.append(weight if is_number else copy_weight(weight, f"weight of the edge to {target!r}"))
        return vertex_id, VertexData(value, tuple(edges), check_flag("halted", vertex.halted))
    except ArgumentTypeError as error:
        raise ArgumentTypeError(f"vertex {vertex.id!r}: {error}") from None
    except CodecError as error:
        raise CodecError(f"vertex {vertex.id!r}: {error}") from None


def decode_vertex(vertex_id: Any, vertex: VertexData) -> Vertex:
    """Return a vertex with copies of its value and weights; ``vertex_id`` is decoded."""
    edges = [Edge(decode(target), copy_weight(weight)) for target, weight in vertex.edge_pairs]
    return Vertex(vertex_id, decode(bytes(vertex.value)), edges, vertex.halted)


def edge_pairs(edges: Any) -> list[tuple[Any, Any]]:
    """Return (target, weight) of the edges that a user has passed: ``Edge`` objects, or targets with the weight 1."""
    if type(edges) is not list and type(edges) is not tuple:
        _check_edges(edges)
    return [(edge.target, edge.weight) if isinstance(edge, Edge) else (edge, 1) for edge in edges]


def _check_edges(edges: Any) -> None:
    """Refuse what is no sequence of targets or edges."""
    if isinstance(edges, (str, bytes)):
        raise ArgumentTypeError(
            f"edges must be a sequence of targets, not {edges!r}: for a single target, pass [{edges!r}]"
        )
    if isinstance(edges, Mapping):
        raise ArgumentTypeError(
            "edges must be targets or Edge objects, not a mapping: pass [Edge(target, weight), ...]"
        )
    if not isinstance(edges, Iterable):
        raise ArgumentTypeError(f"edges must be a sequence of targets or Edge objects, not {edges!r}")


def copy_weight(weight: Any, name: str = "weight") -> Any:
    """Return a weight that no other code can modify."""
    if type(weight) is str:
        encode(weight, name=name)  # refuses surrogates
    return weight if type(weight) in IMMUTABLE_TYPES else decode(encode(weight, name=name))


def _encode_id(vertex_id: Any, name: str) -> Id:
    try:
        return id_key(vertex_id)
    except CodecError as error:
        raise ArgumentTypeError(f"{name}: {error}") from None
