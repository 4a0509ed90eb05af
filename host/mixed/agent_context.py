"""The argument of the compute function of agents in a graph: a vertex with its value, neighbours and messages."""

from __future__ import annotations

import marshal
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpu_pregel.errors import AgentError
from gpu_pregel.host.agents.codec import decode
from gpu_pregel.host.agents.context import Context
from gpu_pregel.host.traverse.interpreted import MisfitError, fit
from gpu_pregel.kernels.traverse.fields import Fields, named_type

if TYPE_CHECKING:
    import random

WRITTEN, SENT = "written to its vertex", "sent to vertices"
"""The parts of an agent's record that are for numeric vertices; with spaces they are no names of aggregators."""
FROM_AGENT = "\0from agent"
"""Marks messages of agents, which have a sender, from messages of other programs."""
ALONG_EDGE = "\0along an edge"
"""Marks those of them that are messages of the program."""


class Neighbor(NamedTuple):
    """A vertex at the end of an out-edge: its id and its value, which may have named fields."""

    id: Any
    value: Any


class Message(NamedTuple):
    """A message to an agent.

    Attributes
    ----------
    sender : id or None
        The vertex that sent it; None for combined messages, and for those of other programs.
    content : data
        The program's message if a numeric vertex sent it.
    """

    sender: Any
    content: Any


class AgentInput(NamedTuple):
    """What the numeric side tells an agent in a superstep; values are those before it.

    Attributes
    ----------
    is_woken : bool
        Whether ``wake`` was true for the vertex.
    value : tuple
        One number per field.
    degree : int
        Number of out-edges.
    neighbors : bytes or list
        Numbers of out-neighbours as int64, or their ids.
    neighbor_values : list of bytes
        Their values: one array per field.
    arrived : list of (sender, fields)
        Messages along the edges from numeric vertices.
    agents : list of ids
        The out-neighbours that are agents from the start.
    aggregated : tuple
        The program's aggregates of the last superstep.
    """

    is_woken: bool
    value: tuple[Any, ...]
    degree: int
    neighbors: bytes | list[Any]
    neighbor_values: list[bytes]
    arrived: list[tuple[Any, tuple[Any, ...]]]
    agents: list[Any]
    aggregated: tuple[Any, ...]

    def pack(self) -> bytes:
        """Return bytes for a process of the same run."""
        return marshal.dumps(tuple(self))


class AgentTypes(NamedTuple):
    """What agents know of the program: the fields of values and messages, aggregates, size, and ids of agents."""

    value: Fields
    message: Fields
    aggregates: tuple[str, ...]
    num_vertices: int
    agents: Collection[Any]


class AgentContext:
    """A vertex in a superstep, as seen by the compute function of ``gp.Agents``.

    Its value, and those of its neighbours, are those that the last superstep left. What the function returns becomes
    the value of the vertex when the superstep is committed, whatever ``apply`` has made of it in between: all of it, or
    a dict with some of its named fields; None leaves it as it is. The vertex is then active, and sends the program's
    messages along its edges, if the value has changed, or if the program's ``active`` says so; a vertex that ``apply``
    has made active in the same superstep stays active.

    Examples
    --------
    >>> import gpu_pregel as gp, numpy as np
    >>> def halve(ctx):
    ...     return ctx.value / 2
    >>> doubling = gp.VertexProgram(
    ...     value=np.float64,
    ...     init=lambda ctx: 1.0,
    ...     message=lambda value, ctx: value,
    ...     combine="sum",
    ...     apply=lambda value, incoming, ctx: value + incoming,
    ... )
    >>> graph = gp.Graph.from_edgelist([0], [1])
    >>> result = gp.run(
    ...     graph,
    ...     doubling,
    ...     agents=gp.Agents(halve),
    ...     wake=lambda old, new, ctx: ctx.vertex == 0 and new > 3,
    ...     max_supersteps=4,
    ...     on_limit="return",
    ... )
    >>> result.values.tolist(), result.trace[2]["woken"], result.trace[3]["computed"]
    ([2.0, 8.0], 1, 1)
    """

    __slots__ = ("_agent", "_effects", "_input", "_is_awake", "_messages", "_types")

    def __init__(self, agent: Context, types: AgentTypes) -> None:
        self._agent, self._types = agent, types
        given, *others = agent.encoded_messages
        self._input = AgentInput(*marshal.loads(given))
        self._messages: list[Message] | None = None
        self._effects: list[tuple[Any, Any]] = []
        self._is_awake = False
        if others:
            self._messages = [self._received(decode(one, name="a message")) for one in others]

    def _received(self, content: Any) -> Message:
        if type(content) is not tuple or content[:1] not in ((FROM_AGENT,), (ALONG_EDGE,)):
            return Message(None, content)
        kind, sender, message = content
        return Message(sender, self._types.message.pack(message) if kind == ALONG_EDGE else message)

    @property
    def vertex_id(self) -> Any:
        """The id of the vertex."""
        return self._agent.vertex_id

    @property
    def superstep(self) -> int:
        """The number of this superstep, from 0."""
        return self._agent.superstep

    @property
    def num_vertices(self) -> int:
        """Number of vertices of the graph."""
        return self._types.num_vertices

    @property
    def value(self) -> Any:
        """The value of the vertex: a number, or a tuple, which may have named fields."""
        return self._types.value.pack(self._input.value)

    @property
    def state(self) -> Any:
        """Data that the agent keeps from one superstep to the next; None at first. Can be set or modified in place.

        As in messages to agents, tuples with named fields are no data: keep ``tuple(ctx.value)``.
        """
        return self._agent.value

    @state.setter
    def state(self, state: Any) -> None:
        self._agent.value = state

    @property
    def is_woken(self) -> bool:
        """Whether the program's ``wake`` was true for this vertex in the last superstep."""
        return self._input.is_woken

    @property
    def out_degree(self) -> int:
        """Number of out-edges."""
        return self._input.degree

    @property
    def neighbors(self) -> list[Neighbor]:
        """The vertices at the ends of the out-edges, at most as many as ``neighbors`` of ``gp.Agents`` says."""
        given, value = self._input.neighbors, self._types.value
        ids: list[Any] = np.frombuffer(given, np.int64).tolist() if isinstance(given, bytes) else given
        columns = [
            np.frombuffer(data, dtype).tolist()
            for data, dtype in zip(self._input.neighbor_values, value.dtypes, strict=True)
        ]
        return [Neighbor(one, value.pack(parts)) for one, *parts in zip(ids, *columns, strict=True)]

    @property
    def messages(self) -> list[Message]:
        """The messages along edges from numeric vertices, then those of agents in order of (sender, sequence).

        Messages from other programs come last.
        """
        pack = self._types.message.pack
        return [Message(sender, pack(parts)) for sender, parts in self._input.arrived] + (self._messages or [])

    @property
    def aggregated(self) -> Any:
        """The program's aggregates of the last superstep, by name; None if it has no aggregators."""
        names = self._types.aggregates
        return named_type("Aggregated", names)(*self._input.aggregated) if names else None

    @property
    def key(self) -> str:
        """Identifies vertex and superstep, and is the same in every attempt: use it for idempotent requests."""
        return self._agent.key

    @property
    def attempt(self) -> int:
        """Number of this attempt at the vertex in this superstep, from 1."""
        return self._agent.attempt

    @property
    def random(self) -> random.Random:
        """A random number generator that returns the same numbers in every attempt."""
        return self._agent.random

    def send(self, target: Any, message: Any) -> None:
        """Send a message to any vertex, which takes it in the next superstep.

        If ``target`` is an agent from the start, it receives any data. If not, the message must be one of the program:
        it is combined with those that arrive along edges, and applied.
        """
        if target is None:
            raise AgentError(f"vertex {self.vertex_id!r} sends to None, which is no id: send to the ids of the graph")
        if self._is_agent(target):
            self._agent.send(target, (FROM_AGENT, self.vertex_id, message))
        else:
            self._effects.append((target, self._message(message)))

    def send_to_neighbors(self, message: Any) -> None:
        """Send a message of the program along every out-edge."""
        parts = self._message(message)
        for target in self._input.agents:
            self._agent.send(target, (ALONG_EDGE, self.vertex_id, parts))
        self._effects.append((None, parts))

    def _is_agent(self, target: Any) -> bool:
        try:
            return target in self._types.agents
        except TypeError:  # it is not hashable, so it is no id
            return False

    def _message(self, message: Any) -> tuple[Any, ...]:
        fields = self._types.message
        parts = fit_value(message, fields, f"vertex {self.vertex_id!r} sends")
        return tuple(parts) if fields.is_tuple else (parts,)

    def stay_awake(self) -> None:
        """Compute this agent in the next superstep, too, whether something wakes it or not."""
        self._is_awake = True

    def interrupt(self, payload: Any = None) -> Any:
        """Return the next recorded answer; if none is left, end this attempt until there is one.

        The run then ends with the status "interrupted", and ``result.agents.interrupts`` has the payload. With
        ``checkpoint=``, record an answer by ``gp.agents.answer(store, run_id, vertex_id, answer)``, and call
        :func:`gpu_pregel.run` with ``resume=True``: the function is called again from its start.
        """
        return self._agent.interrupt(payload)

    def heartbeat(self) -> None:
        """Report that a long attempt makes progress: its ``timeout`` counts from the last call."""
        self._agent.heartbeat()

    def emit(self, payload: Any) -> None:
        """Send data to the observers while this attempt runs, as an event of kind "emit"."""
        self._agent.emit(payload)

    def conclude(self, returned: Any) -> None:
        """Add the effects of the attempt to its record, given what the function has returned."""
        written = None if returned is None else self._written(returned)
        if written is not None:
            self._agent.contribute(WRITTEN, written)
        if self._effects:
            self._agent.contribute(SENT, self._effects)
        if not self._is_awake:
            self._agent.vote_to_halt()

    def _written(self, returned: Any) -> Any:
        """Return what is written to the vertex: a tuple of all fields, or a dict from numbers of fields."""
        fields, subject = self._types.value, f"vertex {self.vertex_id!r} returns"
        if not isinstance(returned, dict):
            parts = fit_value(returned, fields, subject)
            return tuple(parts) if fields.is_tuple else (parts,)
        names = fields.names or ()
        written = {}
        for name, number in returned.items():
            if name not in names:
                known = f"the fields {', '.join(names)}" if names else "no named fields: return the value itself"
                raise AgentError(f"{subject} a field {name!r}, but the value has {known}")
            place = names.index(name)
            single = Fields((fields.dtypes[place],), False)
            written[place] = fit_value(number, single, f"{subject} in field {name!r}")
        return written


def fit_value(value: Any, fields: Fields, subject: str) -> Any:
    """Return a value or message as numbers that fit the declared type; ``subject`` begins the error."""
    try:
        return fit(value, fields)
    except MisfitError as error:
        raise AgentError(f"{subject} {error}") from None
