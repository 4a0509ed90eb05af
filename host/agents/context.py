"""What a compute function is given: its vertex, its messages, and what it may ask for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from gpu_pregel.errors import ArgumentTypeError, CodecError
from gpu_pregel.host.agents.codec import decode, encode, id_key
from gpu_pregel.host.agents.records import Batch, Id, Record, Task, Vertex

if TYPE_CHECKING:
    import random


class Interrupted(BaseException):
    """Ends an attempt that waits for an answer; no ``Exception``, so that compute functions do not catch it."""

    def __init__(self, payload: bytes) -> None:
        self.payload = payload
        super().__init__("waits for an answer")


class Limits:
    """The most bytes of a message and of an outbox."""

    def __init__(self, message: int | None = None, outbox: int | None = None) -> None:
        self.message, self.outbox = message, outbox


class Setup(NamedTuple):
    """What all contexts of a run share."""

    run: str
    branch: int
    combine: Any
    limits: Limits


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


class _Over(list[Any]):
    """Where an attempt that has ended would leave what it asks for."""

    def append(self, _: Any) -> NoReturn:
        raise RuntimeError(
            "the attempt has ended, and what its context is asked for now would be lost: wait for threads and tasks "
            "before compute returns"
        )


_OVER = _Over()
_new_record = partial(tuple.__new__, Record)  # a third of the time
_UNCHANGING = frozenset({type(None), bool, int, float, str, bytes})


class Context:
    """A vertex in a superstep, as its compute function sees it.

    Attributes
    ----------
    vertex_id : str, int, bytes or tuple of such
    value : data
        Settable; the new value is what it is when the function returns.
    messages : list
        In the order of (sender, sequence). Senders are ordered by the type of their id (int, str, bytes, tuple); of the
        same type, integers by value, others by length, then by content. Messages from outside come last.
    superstep, num_vertices : int
        ``num_vertices`` is that at the start of the superstep.
    key : str
        The same in every attempt at this vertex in this superstep, and in no other: for idempotent requests.
    attempt : int
        From 1.
    random : random.Random
        Seeded by ``key``.
    """

    __slots__ = (
        "_aggregates",
        "_asked",
        "_batch",
        "_decoded",
        "_halted",
        "_interrupts",
        "_messages",
        "_mutations",
        "_outbox",
        "_random",
        "_setup",
        "_size",
        "_task",
        "_value",
        "_vertex",
        "_vertex_id",
    )

    def __init__(self, vertex: Vertex, task: Task, batch: Batch, setup: Setup) -> None:
        self._vertex, self._task, self._batch, self._setup = vertex, task, batch, setup
        self._decoded = self._halted = False
        self._vertex_id: Any = None
        self._asked: bytes | None = None
        self._messages: list[Any] | None = None
        self._outbox: list[tuple[Id, bytes]] = []
        self._aggregates: list[tuple[str, bytes]] = []
        self._mutations: list[tuple[Any, ...]] = []
        self._size = self._interrupts = 0
        self._random: random.Random | None = None

    # What is not asked for is not decoded.

    @property
    def vertex_id(self) -> Any:
        """The id."""
        if self._vertex_id is None:
            self._vertex_id = decode(self._task.id)
        return self._vertex_id

    @property
    def value(self) -> Any:
        """The value, the vertex's own copy."""
        if not self._decoded:
            self._value = decode(self._vertex.value)
            self._decoded = True
        return self._value

    @value.setter
    def value(self, value: Any) -> None:
        self._value = value
        self._decoded = True

    @property
    def messages(self) -> list[Any]:
        """The messages in order, or what the combiner makes of them."""
        if self._messages is None:
            self._messages = [decode(message) for message in self._task.messages]
            if self._setup.combine is not None and self._messages:
                self._messages = self._setup.combine.fold(self._messages)
        return self._messages

    @property
    def superstep(self) -> int:
        """Number of this superstep, from 0."""
        return self._batch.step

    @property
    def num_vertices(self) -> int:
        """Number of vertices at the start of this superstep."""
        return self._batch.num_vertices

    @property
    def attempt(self) -> int:
        """Number of this attempt at the vertex in this superstep, from 1."""
        return self._task.attempt

    @property
    def edges(self) -> list[Edge]:
        """Out-edges, each with ``target`` and ``weight``, in the order in which they were added; copies."""
        return [
            Edge(decode(target), weight if type(weight) in _UNCHANGING else copied(weight))
            for target, weight in self._vertex.edges
        ]

    @property
    def neighbors(self) -> list[Any]:
        """The ids at the ends of the out-edges."""
        return [decode(target) for target, _ in self._vertex.edges]

    @property
    def key(self) -> str:
        """SHA-256 over run, branch, superstep and vertex, in hexadecimal digits."""
        return self._make_key().hex()

    def _make_key(self) -> bytes:
        return make_key(self._setup.run, self._setup.branch, self._batch.step, self._task.id)

    @property
    def random(self) -> random.Random:
        """Random numbers that are the same in every attempt."""
        if self._random is None:
            from random import Random

            self._random = Random(self._make_key())
        return self._random

    def send(self, target: Any, message: Any) -> None:
        """Send a message, which ``target`` sees in the next superstep."""
        self._post(_id_of(target), self._encoded(message, "a message", self._setup.limits.message))

    def send_to_neighbors(self, message: Any) -> None:
        """Send a message along every out-edge."""
        data = self._encoded(message, "a message", self._setup.limits.message)
        for target, _ in self._vertex.edges:
            self._post(target, data)

    def _post(self, target: Id, data: bytes) -> None:
        self._size += len(data)
        if self._setup.limits.outbox is not None and self._size > self._setup.limits.outbox:
            raise CodecError(
                f"the outbox has more than {self._setup.limits.outbox:,} bytes: send less, or raise max_outbox"
            )
        self._outbox.append((target, data))

    def vote_to_halt(self) -> None:
        """Compute this vertex again only when a message comes."""
        self._halted = True

    def aggregate(self, name: str, value: Any) -> None:
        """Contribute to an aggregate, which all vertices see in the next superstep."""
        if name not in self._batch.aggregates:
            self._unknown(name)
        if type(name) is not str:
            name = str.__str__(name)  # an enumeration's member, say
        self._aggregates.append((name, self._encoded(value, f"a contribution to {name!r}", None)))

    def aggregated(self, name: str) -> Any:
        """The aggregate of the superstep before, its identity at first."""
        if name not in self._batch.aggregates:
            self._unknown(name)
        return decode(self._batch.aggregates[name])

    def _unknown(self, name: str) -> NoReturn:
        there = ", ".join(map(repr, self._batch.aggregates)) or "none"
        raise KeyError(f"there is no aggregator {name!r}: declared are {there}")

    def add_vertex(self, vertex_id: Any, value: Any = None, edges: Any = ()) -> None:
        """Ask for a vertex, which is there from the next superstep on."""
        pairs = [(_id_of(target), weight) for target, weight in as_edges(edges)]
        for _, weight in pairs:
            self._encoded(weight, "an edge's weight", None)
        vertex = Vertex(self._encoded(value, "a vertex's value", None), pairs)
        self._mutations.append(("add_vertex", _id_of(vertex_id), vertex.pack()))

    def remove_vertex(self, vertex_id: Any) -> None:
        """Ask that a vertex and its out-edges go."""
        self._mutations.append(("remove_vertex", _id_of(vertex_id)))

    def add_edge(self, source: Any, target: Any, weight: Any = 1) -> None:
        """Ask for an edge."""
        self._encoded(weight, "an edge's weight", None)
        self._mutations.append(("add_edge", _id_of(source), _id_of(target), weight))

    def remove_edge(self, source: Any, target: Any) -> None:
        """Ask that all edges from ``source`` to ``target`` go."""
        self._mutations.append(("remove_edge", _id_of(source), _id_of(target)))

    def interrupt(self, payload: Any = None) -> Any:
        """Return the next recorded answer, or end this attempt until there is one."""
        number = self._interrupts
        self._interrupts += 1
        if number < len(self._task.answers):
            return decode(self._task.answers[number])
        asked = self._encoded(payload, "an interrupt's payload", None)
        if self._asked is None:
            self._asked = asked
        raise Interrupted(asked)

    @property
    def asked(self) -> bytes | None:
        """The payload of the interrupt that ended this attempt, whatever became of its exception."""
        return self._asked

    @staticmethod
    def _encoded(value: Any, what: str, limit: int | None) -> bytes:
        try:
            return encode(value, limit)
        except CodecError as error:
            raise CodecError(f"{what}: {error}") from None

    def close(self) -> None:
        """Refuse what the attempt asks for from here on."""
        self._outbox = self._aggregates = self._mutations = _OVER

    def record(self) -> Record:
        """What the attempt leaves, as it ends now."""
        outbox, aggregates, mutations = self._outbox, self._aggregates, self._mutations
        self.close()
        changed = None
        if self._decoded:
            value = self._encoded(self._value, "the value", None)
            changed = None if value == self._vertex.value else value
        if self._setup.combine is not None and self._setup.combine.is_exact and len(outbox) > 1:
            outbox = self._setup.combine.fold_outbox(outbox)
        return _new_record((changed, self._halted, outbox, aggregates, mutations))


def make_key(run: str, branch: int, step: int, vertex: Id) -> bytes:
    """SHA-256 over what names an attempt's work, and nothing that a restart changes."""
    from hashlib import sha256  # it takes longer to load than all the rest of this module

    return sha256(encode((run, branch, step, vertex))).digest()


def _id_of(vertex_id: Any) -> Id:
    return id_key(vertex_id)


def copied(weight: Any, name: str = "weight") -> Any:
    """A weight that nobody else can change."""
    if type(weight) is str:
        encode(weight, name=name)  # it may hold what is no text
    return weight if type(weight) in _UNCHANGING else decode(encode(weight, name=name))


def as_edges(edges: Any) -> list[tuple[Any, Any]]:
    """What a user gives as the edges of a vertex: targets, or ``Edge`` objects with their weight; others weigh 1."""
    if isinstance(edges, (str, bytes)):
        raise ArgumentTypeError(f"edges must be several targets, not {edges!r}: for one, pass [{edges!r}]")
    if isinstance(edges, Mapping):
        raise ArgumentTypeError(
            "edges must be targets or Edge objects, not a mapping: pass [Edge(target, weight), ...]"
        )
    if not isinstance(edges, Iterable):
        raise ArgumentTypeError(f"edges must be a sequence of targets or Edge objects, not {edges!r}")
    return [as_edge(edge) for edge in edges]


def as_edge(edge: Any) -> tuple[Any, Any]:
    """An edge is a target, or an ``Edge`` with its weight."""
    return (edge.target, edge.weight) if isinstance(edge, Edge) else (edge, 1)
