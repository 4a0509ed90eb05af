"""Vertices and edges as users see them, and their conversion to and from the encoded form of ``records``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, CodecError
from gpu_pregel.host.agents.codec import decode, encode, id_key
from gpu_pregel.host.agents.records import Edges, Id, VertexData, new_vertex
from gpu_pregel.host.arguments import check_flag

IMMUTABLE_TYPES = frozenset({type(None), bool, int, float, str, bytes})
"""Types of edge weights that need no copy."""
_PLAIN_IDS = frozenset({int, str, bytes})
"""Types of ids that equal no value of another type, apart from numbers that are no ids."""


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


def encode_vertex(vertex: object) -> tuple[Id, VertexData]:
    """Check and encode a vertex that a user has passed."""
    (encoded,) = encode_vertices([vertex], {}).items()
    return encoded


def encode_vertices(vertices: Iterable[object], known: dict[Any, Id]) -> dict[Id, VertexData]:
    """Check and encode vertices that a user has passed, which must have different ids.

    ``known`` has the ids of vertices and targets that are already encoded; new ones are added.
    """
    encoded: dict[Id, VertexData] = {}
    last, data = None, encode(None)
    for count, vertex in enumerate(vertices, 1):
        if not isinstance(vertex, Vertex):
            raise ArgumentTypeError(f"vertices must be gp.agents.Vertex objects, not {vertex!r}")
        vertex_id, value, halted = vertex.id, vertex.value, vertex.halted
        key = known.get(vertex_id) if type(vertex_id) in _PLAIN_IDS else None
        key = key or _encode_id(vertex_id, "a vertex's id", known)
        try:
            if value is not last or type(value) not in IMMUTABLE_TYPES:
                latest, last = encode(value), value
                data = data if latest == data else latest  # equal values in succession become one object
            edges = _encode_edges(vertex.edges, known)
            if halted is not False:
                halted = check_flag("halted", halted)
        except ArgumentTypeError as error:
            raise ArgumentTypeError(f"vertex {vertex_id!r}: {error}") from None
        except CodecError as error:
            raise CodecError(f"vertex {vertex_id!r}: {error}") from None
        encoded[key] = new_vertex((data, edges, halted))
        if len(encoded) < count:
            raise ArgumentError(f"duplicate vertex {vertex_id!r}: ids of vertices must be unique")
    return encoded


def _encode_edges(edges: Any, known: dict[Any, Id]) -> Edges:
    """Check and encode the edges of a vertex."""
    if type(edges) is not list and type(edges) is not tuple:
        _check_edges(edges)
    encoded: list[Any] = []
    add = encoded.append
    for edge in edges:
        if type(edge) in _PLAIN_IDS:
            add(known.get(edge) or _encode_id(edge, "edge to", known))
            add(1)
        else:
            target, weight = (edge.target, edge.weight) if isinstance(edge, Edge) else (edge, 1)
            key = known.get(target) if type(target) in _PLAIN_IDS else None
            add(key or _encode_id(target, "edge to", known))
            is_number = type(weight) is int or type(weight) is float
            add(weight if is_number else copy_weight(weight, f"weight of the edge to {target!r}"))
    return tuple(encoded)


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


def _encode_id(vertex_id: Any, name: str, known: dict[Any, Id]) -> Id:
    """Encode an id, or return the known one."""
    try:
        key = id_key(vertex_id)
    except CodecError as error:
        raise ArgumentTypeError(f"{name}: {error}") from None
    return known.setdefault(vertex_id, key)
