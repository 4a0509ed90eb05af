"""The argument of a compute function: its vertex, its messages, and what it sends and requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from gpu_pregel.errors import CodecError
from gpu_pregel.host.agents.attempt_end import CLOSED, AttemptInterrupt, emission_refused
from gpu_pregel.host.agents.codec import decode, encode, id_key
from gpu_pregel.host.agents.codec.differences import LARGE, EncodedValue
from gpu_pregel.host.agents.kept_values import KeptValue, KeptValues
from gpu_pregel.host.agents.partition_options import PartitionOptions
from gpu_pregel.host.agents.records import WAKE_AT, Batch, Id, Record, Task, VertexData, flat_edges, new_record
from gpu_pregel.host.agents.timers import check_time
from gpu_pregel.host.agents.vertices import IMMUTABLE_TYPES, Edge, copy_weight, edge_pairs

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence
    from datetime import datetime


class Context:
    """A vertex in a superstep, as seen by its compute function.

    Attributes
    ----------
    vertex_id : str, int, bytes or tuple of such
    value : data
        Can be set or modified in place; its state when the function returns is the new value.
    messages : list
        In order of (sender, sequence). Senders are ordered by the type of their id (int, str, bytes, tuple); of the
        same type, integers by value, others by length, then by content. Messages from outside come last.
    superstep, num_vertices : int
        ``num_vertices`` is the count at the start of the superstep.
    key : str
        Identifies the vertex and superstep, and is the same in every attempt: use it for idempotent requests.
    attempt : int
        From 1.
    random : random.Random
        Seeded by ``key``.
    """

    __slots__ = (
        "_aggregates",
        "_asked",
        "_batch",
        "_beat",
        "_decoded",
        "_halted",
        "_interrupts",
        "_kept",
        "_kept_values",
        "_messages",
        "_mutations",
        "_options",
        "_outbox",
        "_random",
        "_size",
        "_task",
        "_unreadable",
        "_value",
        "_vertex",
        "_vertex_id",
    )

    def __init__(
        self, vertex: VertexData, task: Task, batch: Batch, options: PartitionOptions, kept_values: KeptValues
    ) -> None:
        self._vertex, self._task, self._batch, self._options = vertex, task, batch, options
        self._kept_values: KeptValues | None = kept_values
        self._kept: KeptValue | None = None
        self._unreadable: CodecError | None = None
        self._decoded = self._halted = False
        self._vertex_id: Any = None
        self._asked: bytes | None = None
        self._beat: Callable[[], object] | None = None
        self._messages: list[Any] | None = None
        self._outbox: list[tuple[Id, bytes]] = []
        self._aggregates: list[tuple[str, bytes]] = []
        self._mutations: list[tuple[Any, ...]] = []
        self._size = self._interrupts = 0
        self._random: random.Random | None = None

    # Properties decode on first use.

    @property
    def vertex_id(self) -> Any:
        """The id."""
        if self._vertex_id is None:
            self._vertex_id = decode(self._task.id)
        return self._vertex_id

    @property
    def value(self) -> Any:
        """The value, a copy for this attempt."""
        if not self._decoded:
            encoded = self._vertex.value
            try:
                if type(encoded) is bytes and len(encoded) < LARGE:
                    self._value = decode(encoded)
                else:
                    self._value = self._read_large_value(encoded)
            except CodecError as error:
                self._raise_unreadable("the value", error)
            self._decoded = True
        return self._value

    @value.setter
    def value(self, value: Any) -> None:
        self._value = value
        self._decoded = True

    def _read_large_value(self, encoded: EncodedValue) -> Any:
        if self._kept_values is not None:
            self._kept = self._kept_values.take(self._task.id, encoded)
            if self._kept is not None:
                return self._kept.holder.pop()
        return decode(bytes(encoded))

    @property
    def messages(self) -> list[Any]:
        """The messages in order, or a list of the single message that the combiner returns."""
        if self._messages is None:
            try:
                self._messages = [decode(message) for message in self._task.messages]
            except CodecError as error:
                self._raise_unreadable("a message", error)
            if self._options.combiner is not None and self._messages:
                self._messages = self._options.combiner.fold(self._messages)
        return self._messages

    @property
    def encoded_messages(self) -> Sequence[bytes]:
        """The messages as they were sent."""
        return self._task.messages

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
        """Copies of the out-edges, in the order in which they were added."""
        return [
            Edge(decode(target), weight if type(weight) in IMMUTABLE_TYPES else copy_weight(weight))
            for target, weight in self._vertex.edge_pairs
        ]

    @property
    def neighbors(self) -> list[Any]:
        """The targets of the out-edges."""
        return [decode(target) for target in self._vertex.targets]

    @property
    def key(self) -> str:
        """SHA-256 over run, branch, superstep and vertex, in hexadecimal digits."""
        return self._options.key(self._batch.step, self._task.id).hex()

    @property
    def random(self) -> random.Random:
        """A random number generator that returns the same numbers in every attempt."""
        if self._random is None:
            from random import Random

            self._random = Random(self._options.key(self._batch.step, self._task.id))
        return self._random

    def send(self, target: Any, message: Any) -> None:
        """Send a message, which ``target`` receives in the next superstep."""
        key, options = id_key(target), self._options
        try:
            data = encode(message, options.max_message)
        except CodecError as error:
            raise CodecError(f"a message: {error}") from None
        if options.max_outbox is not None:
            self._count(len(data))
        self._outbox.append((key, data))

    def send_to_neighbors(self, message: Any) -> None:
        """Send a message along every out-edge."""
        data = self._encode(message, "a message", self._options.max_message)
        for target in self._vertex.targets:
            if self._options.max_outbox is not None:
                self._count(len(data))
            self._outbox.append((target, data))

    def _count(self, size: int) -> None:
        """Count the bytes of a message against ``max_outbox``."""
        self._size += size
        limit = self._options.max_outbox
        if limit is not None and self._size > limit:
            raise CodecError(f"the outbox has more than {limit:,} bytes: send less, or raise max_outbox")

    def vote_to_halt(self) -> None:
        """Make this vertex inactive until it receives a message."""
        self._halted = True

    def aggregate(self, name: str, value: Any) -> None:
        """Contribute to an aggregate, which all vertices can read in the next superstep."""
        if name not in self._batch.aggregates:
            self._raise_unknown(name)
        self.contribute(name, value)

    def contribute(self, name: str, value: Any) -> None:
        """Add data to the record under a name, which need not be that of an aggregate."""
        if type(name) is not str:
            name = str.__str__(name)  # a member of a str enumeration, for example
        self._aggregates.append((name, self._encode(value, f"a contribution to {name!r}", None)))

    def aggregated(self, name: str) -> Any:
        """Return the aggregate of the previous superstep; its initial value in superstep 0."""
        if name not in self._batch.aggregates:
            self._raise_unknown(name)
        try:
            return decode(self._batch.aggregates[name])
        except CodecError as error:
            self._raise_unreadable(f"the aggregate {name!r}", error)

    def _raise_unknown(self, name: str) -> NoReturn:
        declared = ", ".join(map(repr, self._batch.aggregates)) or "none"
        raise KeyError(f"no aggregator {name!r}; declared aggregators: {declared}")

    def add_vertex(self, vertex_id: Any, value: Any = None, edges: Any = ()) -> None:
        """Request a new vertex, which exists from the next superstep on."""
        pairs = [(id_key(target), weight) for target, weight in edge_pairs(edges)]
        for _, weight in pairs:
            self._encode(weight, "an edge's weight", None)
        vertex = VertexData(self._encode(value, "a vertex's value", None), flat_edges(pairs))
        self._mutations.append(("add_vertex", id_key(vertex_id), vertex.pack()))

    def remove_vertex(self, vertex_id: Any) -> None:
        """Request the removal of a vertex and its out-edges."""
        self._mutations.append(("remove_vertex", id_key(vertex_id)))

    def add_edge(self, source: Any, target: Any, weight: Any = 1) -> None:
        """Request a new edge."""
        self._encode(weight, "an edge's weight", None)
        self._mutations.append(("add_edge", id_key(source), id_key(target), weight))

    def remove_edge(self, source: Any, target: Any) -> None:
        """Request the removal of all edges from ``source`` to ``target``."""
        self._mutations.append(("remove_edge", id_key(source), id_key(target)))

    def heartbeat(self) -> None:
        """Report that a long attempt makes progress: its ``timeout`` counts from the last call.

        Any thread may call this.
        """
        if self._outbox is CLOSED:
            raise RuntimeError("the attempt has ended: its timeout may have passed between two heartbeats")
        if self._beat is not None:
            self._beat()

    def on_heartbeat(self, beat: Callable[[], object]) -> None:
        """Let each heartbeat call a function as well, before those that are set already."""
        before = self._beat
        self._beat = beat if before is None else lambda: (beat(), before())

    def emit(self, payload: Any) -> None:
        """Send data to the run's observers while this attempt runs, as an :class:`Event` of kind "emit".

        Observers receive the emissions of an attempt whole, in order and before its end. Emissions are not stored: an
        attempt that is repeated emits again, and ``facts["sequence"]`` starts again from 0.

        Any thread of the attempt may call this. It waits while observers are slow, which does not count towards the
        timeout. An ``async`` function in this process must not wait so: it receives an error once 64 MiB are pending,
        and ``await asyncio.to_thread(ctx.emit, payload)`` waits.

        Examples
        --------
        >>> import gpu_pregel as gp
        >>> def count(ctx):
        ...     ctx.emit("one")
        ...     ctx.emit("two")
        ...     ctx.vote_to_halt()
        >>> def show(event):
        ...     if event.kind == "emit":
        ...         print(event.vertex, event.facts)
        >>> result = gp.agents.run([gp.agents.Vertex("a")], count, observer=show)
        a {'sequence': 0, 'payload': 'one'}
        a {'sequence': 1, 'payload': 'two'}
        """
        encode(payload, name="payload")  # without observers it is checked all the same
        if self._outbox is CLOSED:
            raise emission_refused()

    def wake_at(self, when: float | datetime) -> None:
        """Compute this vertex in the first superstep after a time, even if it votes to halt and receives no message.

        The timer is stored with the superstep. A vertex has at most one: another call replaces it, and it is removed
        with the vertex. While only timers are left, the run waits; see ``on_waiting`` of :func:`run`.

        Parameters
        ----------
        when : float or datetime
            Seconds since 1970, or a date and time with a time zone.

        Examples
        --------
        >>> import time
        >>> import gpu_pregel as gp
        >>> def remind(ctx):
        ...     if ctx.superstep == 0:
        ...         ctx.wake_at(time.time() + 0.01)
        ...     else:
        ...         ctx.value = "awake"
        ...     ctx.vote_to_halt()
        >>> gp.agents.run([gp.agents.Vertex("a")], remind).values
        {'a': 'awake'}
        """
        self._mutations.append((WAKE_AT, check_time("when", when)))

    def interrupt(self, payload: Any = None) -> Any:
        """Return the next recorded answer; if none is left, end this attempt until there is one."""
        number = self._interrupts
        self._interrupts += 1
        if number < len(self._task.answers):
            try:
                return decode(self._task.answers[number])
            except CodecError as error:
                self._raise_unreadable("an answer", error)
        asked = self._encode(payload, "an interrupt's payload", None)
        if self._asked is None:
            self._asked = asked
        raise AttemptInterrupt(asked)

    @property
    def asked(self) -> bytes | None:
        """The payload of the interrupt that ended this attempt, even if its exception was caught."""
        return self._asked

    def _raise_unreadable(self, name: str, error: CodecError) -> NoReturn:
        """Fail this attempt because of what it has been given, even if the function catches the exception."""
        self._unreadable = CodecError(f"{name} cannot be read: {error}")
        raise self._unreadable from error

    @property
    def unreadable(self) -> CodecError | None:
        """Why the value or input could not be decoded, if so."""
        return self._unreadable

    @staticmethod
    def _encode(value: Any, name: str, limit: int | None) -> bytes:
        try:
            return encode(value, limit)
        except CodecError as error:
            raise CodecError(f"{name}: {error}") from None

    def close(self) -> None:
        """Refuse further messages, requests and emissions."""
        self._outbox = self._aggregates = self._mutations = CLOSED

    def record(self) -> Record:
        """Close the context and return the record of the attempt."""
        outbox, aggregates, mutations = self._outbox, self._aggregates, self._mutations
        self._outbox = self._aggregates = self._mutations = CLOSED
        if self._unreadable is not None:
            raise self._unreadable
        changed = None
        if self._decoded and len(self._vertex.value) < LARGE:
            try:
                value = encode(self._value)
            except CodecError as error:
                raise CodecError(f"the value: {error}") from None
            changed = None if value == self._vertex.value else value
        elif self._decoded:
            changed = self._encode_large_value()
        combiner = self._options.combiner
        if combiner is not None and combiner.is_exact and len(outbox) > 1:
            outbox = combiner.fold_outbox(outbox)
        return new_record((changed, self._halted, outbox, aggregates, mutations))

    def _encode_large_value(self) -> bytes | None:
        """Return the change of a value that may be kept for the next attempt."""
        values, kept, holder = self._kept_values, self._kept, [self._value]
        assert values is not None
        self._value = self._messages = self._kept = self._kept_values = None  # which would refer to its parts
        try:
            changed, encoded = values.encode(self._task.id, self._vertex.value, kept, holder)
        except CodecError as error:
            raise CodecError(f"the value: {error}") from None
        if encoded is None:
            self._value = holder[0]
        else:  # from now on this context decodes a copy
            self._vertex = VertexData(encoded, self._vertex.edges, self._vertex.halted)
            self._decoded = False
        return changed
