"""The numeric vertices beside the agents of a run: what they tell agents, and what agents do to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from itertools import pairwise
from typing import Any

import numpy as np

from gpu_pregel.errors import UnknownVertexError
from gpu_pregel.host.agents.codec import decode, encode, id_key
from gpu_pregel.host.agents.mutations import Refusals, refusal
from gpu_pregel.host.agents.records import Id, VertexData
from gpu_pregel.host.agents.state import Inbox, Records
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.mixed.agent_context import SENT, WRITTEN, AgentInput
from gpu_pregel.host.mixed.agent_edges import edges_to
from gpu_pregel.host.mixed.effect import Effect
from gpu_pregel.host.mixed.stored_inputs import Arrived, encode_inputs
from gpu_pregel.host.programs.python_state import InterpretedProgram, named_numbers, user_functions
from gpu_pregel.host.programs.state import Activity, Posted, ProgramState
from gpu_pregel.host.traverse.interpreted import STRICT
from gpu_pregel.kernels.programs.functions import VertexContext, stream_of

Array = np.ndarray[Any, Any]


class NumericSide:
    """The companion of the agents in a run of a vertex program.

    Parameters
    ----------
    graph : Graph
    program : InterpretedProgram
    state : ProgramState
    parameters : tuple of scalars
    agents : int64[k]
        Vertices that are agents from the start, in ascending order.
    neighbors : int
        Most neighbours that an agent is told of.
    combined : bool
        Whether messages along edges to agents are combined.
    """

    def __init__(
        self,
        graph: Graph,
        program: InterpretedProgram,
        state: ProgramState,
        parameters: tuple[Any, ...],
        agents: Array,
        *,
        seed: int,
        neighbors: int,
        combined: bool,
    ) -> None:
        self.woken: Array = np.zeros(0, np.int64)
        """The vertices whose agents the last superstep woke, in ascending order."""
        self._graph, self._program, self._state = graph, program, state
        self._neighbors, self._combined = neighbors, combined
        self._functions = user_functions(program, self._id_of)
        self._parameter_values: tuple[Any, ...] = ()
        self._parameters: Any = None
        self.set_parameters(parameters)
        self._stream = stream_of(seed)
        self._agents = agents
        self._is_agent = np.zeros(graph.num_vertices if len(agents) else 0, bool)
        self._is_agent[agents] = True
        self._edges = edges_to(graph, self._is_agent) if len(agents) else None
        if len(agents):
            state.exclude(agents)
        self._keys: dict[int, Id] = {}
        self._numbers: dict[Id, int] = {}
        self._arrived: Arrived = {}
        self._superstep = -1
        self._totals: tuple[Any, ...] = tuple(dtype.type(start) for _, dtype, start in program.aggregates)
        self._seen = self._totals
        """The aggregates that the program sees in the running superstep: those of the superstep before it."""
        self._effects: list[Effect] = []
        self._sent: Posted | None = None
        """What agents have sent to numeric vertices, combined; with ``_effects``, until it is carried out."""
        self._inputs: dict[Id, bytes] = {}
        self._encoded_inputs: bytes | None = None
        self._begun: dict[Id, bytes] | None = None
        """The inputs of agents that an earlier program has begun to compute."""

    @property
    def posted(self) -> int:
        """Number of vertices to which agents have sent messages for the next superstep."""
        posted = self._state.posted
        return 0 if posted is None else len(posted.vertices)

    def set_parameters(self, values: tuple[Any, ...]) -> None:
        """Set the parameters that the program sees from the next superstep on."""
        if values != self._parameter_values:
            named = {name: one.item() for (name, _), one in zip(self._program.parameters, values, strict=True)}
            self._parameter_values, self._parameters = values, named_numbers("Parameters", named)

    # Ids.

    def _id_of(self, vertex: int) -> Any:
        ids = self._graph.ids
        return vertex if ids is None else ids[vertex : vertex + 1].tolist()[0]

    def key_of(self, vertex: int) -> Id:
        """Return the encoded id of a vertex."""
        key = self._keys.get(vertex)
        if key is None:
            key = self._keys[vertex] = id_key(self._id_of(vertex))
            self._numbers[key] = vertex
        return key

    def _number_of(self, key: Id) -> int:
        number = self._numbers.get(key)
        if number is None:
            number = self._graph.vertex(decode(key))
            self._numbers[key], self._keys[number] = number, key
        return number

    def _find(self, target: Any) -> int | None:
        """Return the vertex that an agent names, or None."""
        if self._graph.ids is None and type(target) is int:
            return target if 0 <= target < self._graph.num_vertices else None
        try:
            return self._graph.vertex(target)
        except (UnknownVertexError, TypeError):
            return None

    # Towards the agents.

    def due(self) -> Set[Id]:
        """Return the agents to compute in the next superstep: those woken, and those with messages along edges."""
        if self._begun is not None:
            return self._begun.keys()
        if not len(self.woken) and not self._arrived:
            return frozenset()
        return {self.key_of(v) for v in (*self.woken.tolist(), *self._arrived)}

    def new_agents(self, known: Set[Id]) -> dict[Id, VertexData]:
        """Return the agents that the superstep creates: those of vertices that wake for the first time."""
        nothing = encode(None)
        keys = [self.key_of(v) for v in self.woken.tolist()]
        return {key: VertexData(nothing, (), True) for key in keys if key not in known}

    def add_inputs(self, vertices: list[Id], inbox: Inbox) -> Inbox:
        """Return the messages of the agents of a superstep, of which the first is an ``AgentInput``."""
        inputs, self._encoded_inputs = self._begun or {}, None
        # Besides agents that have begun: those that something else has woken since then, as a message from outside.
        others = [key for key in vertices if key not in inputs]
        self._inputs = inputs = {**inputs, **self._inputs_of(others)}
        if self._begun is not None:
            self._forget({self._number_of(key) for key in others})
        return {key: [given, *inbox.get(key, ())] for key, given in inputs.items()}

    def _inputs_of(self, vertices: list[Id]) -> dict[Id, bytes]:
        numbers = np.array([self._number_of(key) for key in vertices], np.int64)
        columns = [column.tolist() for column in self._state.gather(numbers)]
        values = list(zip(*columns, strict=True))
        degrees = self._graph.out_degrees[numbers]
        rows = self._neighbors_of(numbers, degrees)
        woken, arrived, pack = set(self.woken.tolist()), self._arrived, AgentInput.pack
        totals = tuple(total.item() for total in self._totals)
        result: dict[Id, bytes] = {}
        for key, v, value, degree, (ids, near) in zip(
            vertices, numbers.tolist(), values, degrees.tolist(), rows, strict=True
        ):
            agents = self._agent_neighbors(v)
            result[key] = pack(AgentInput(v in woken, value, degree, ids, near, arrived.get(v, []), agents, totals))
        return result

    def _neighbors_of(self, numbers: Array, degrees: Array) -> Iterator[tuple[Any, list[bytes]]]:
        """Yield the first out-neighbours of vertices: their ids, and their values as bytes, one item per field."""
        counts = np.minimum(degrees, self._neighbors)
        bounds = np.concatenate([[0], np.cumsum(counts)])
        places = np.repeat(self._graph.indptr[numbers] - bounds[:-1], counts) + np.arange(bounds[-1])
        targets = self._graph.indices[places].astype(np.int64)
        columns = [(column.itemsize, column.tobytes()) for column in self._state.gather(targets)]
        size, ids = 8, targets.tobytes()
        if self._graph.ids is not None:
            size, ids = 1, self._graph.to_ids(targets).tolist()
        for first, last in pairwise(bounds.tolist()):
            yield ids[size * first : size * last], [data[item * first : item * last] for item, data in columns]

    def _agent_neighbors(self, vertex: int) -> list[Any]:
        """Return the ids of the out-neighbours that are agents from the start."""
        if not len(self._agents):
            return []
        row = self._row(vertex)
        return [self._id_of(v) for v in row[self._is_agent[row]].tolist()]

    def _row(self, vertex: int) -> Array:
        first, last = self._graph.indptr[vertex : vertex + 2]
        row: Array = self._graph.indices[first:last].astype(np.int64)
        return row

    # From the agents.

    def find_refusals(self, records: Records) -> Refusals:
        """Decode what agents do to numeric vertices, and combine messages; return why some of it cannot be done."""
        effects, refused = [], {}
        for key, record in records:
            if not record.aggregates:
                continue
            written, messages = None, []
            for name, data in record.aggregates:
                if name == WRITTEN:
                    written = decode(data)
                elif name == SENT:
                    messages = decode(data)
            if written is not None or messages:
                effect = Effect(self._number_of(key), written, messages)
                refused.update(self._find_targets(key, effect) if messages else {})
                effects.append(effect)
        self._effects = effects
        return refused or self._combine(effects)

    def _find_targets(self, key: Id, effect: Effect) -> Refusals:
        """Replace the ids of an agent's targets by numbers; return why it cannot be done."""
        for k, (target, fields) in enumerate(effect.messages):
            if target is not None:
                number = self._find(target)
                if number is None:
                    return {key: refusal(f"sent a message to {target!r}, which is not in the graph: send to its ids")}
                effect.messages[k] = number, fields
        return {}

    def conclude(self, superstep: int, activity: Activity, totals: tuple[Any, ...]) -> Activity:
        """Carry out the effects of a superstep's agents, once the kernels have ended; return the new activity.

        ``totals`` are the aggregates of the superstep.
        """
        self._superstep, self._seen, self._totals = superstep, self._totals, totals
        if superstep == 0 and len(self._agents):
            activity = self._activate(self._agents, np.zeros(len(self._agents), bool), activity)
        effects, self._effects = self._effects, []
        written = [effect for effect in effects if effect.written is not None]
        if written:
            activity = self._write(superstep, written, activity)
        if self._sent is not None:
            self._state.posted, self._sent = self._sent, None
        return activity

    def _forget(self, vertices: set[int]) -> None:
        """Forget that some agents are due."""
        self.woken = np.array([v for v in self.woken.tolist() if v not in vertices], np.int64)
        self._arrived = {v: sent for v, sent in self._arrived.items() if v not in vertices}

    def clear_due(self) -> None:
        """Forget which agents are due: a superstep computes them."""
        self.woken, self._arrived = np.zeros(0, np.int64), {}

    def find_woken(self) -> int:
        """Add the vertices that a superstep has woken, and return how many; none of them is an agent from the start."""
        woken = self._state.woken()
        self.woken = np.union1d(self.woken, woken) if len(self.woken) else woken
        return len(woken)

    @property
    def arrived(self) -> bytes:
        """The messages along edges that wait for agents from the start, encoded."""
        return encode(list(self._arrived.items()))

    def inputs(self) -> bytes:
        """Return the inputs of the agents that are being computed, encoded."""
        if self._encoded_inputs is None:
            self._encoded_inputs = encode_inputs(self._inputs)
        return self._encoded_inputs

    def resume(self, superstep: int, totals: tuple[Any, ...], woken: Array, arrived: Arrived) -> None:
        """Continue after a superstep whose state has been restored."""
        self._superstep, self._totals, self.woken, self._arrived = superstep, totals, woken, arrived

    def resume_inputs(self, inputs: dict[Id, bytes] | None) -> None:
        """Give agents these inputs, which they began with; None: those of the state from now on."""
        self._begun = inputs

    def _activate(self, vertices: Array, flags: Array, activity: Activity) -> Activity:
        """Set which of some vertices are active; return the new activity."""
        before = self._state.is_active(vertices)
        self._state.activate(vertices, flags)
        change = flags.astype(np.int64) - before
        vertices_active = activity.active_vertices + int(change.sum())
        edges = int((change * self._graph.out_degrees[vertices]).sum())
        return Activity(vertices_active, activity.active_edges + edges)

    def _write(self, superstep: int, effects: list[Effect], activity: Activity) -> Activity:
        """Write what agents have returned; vertices are active as if the program had changed them so."""
        numbers = np.array([effect.vertex for effect in effects], np.int64)
        order = np.argsort(numbers)
        numbers, effects = numbers[order], [effects[k] for k in order.tolist()]
        old = self._state.gather(numbers)
        new = [column.copy() for column in old]
        for k, effect in enumerate(effects):
            written: Any = effect.written
            for place, number in written.items() if isinstance(written, dict) else enumerate(written):
                new[place][k] = number
        self._state.scatter(numbers, new)
        return self._activate(numbers, self._flags(superstep, numbers, old, new), activity)

    def _flags(self, superstep: int, numbers: Array, old: tuple[Array, ...], new: list[Array]) -> Array:
        """Return which written vertices are active."""
        declared = self._program.declaration
        if declared.active == "always":
            return np.ones(len(numbers), bool)
        if not callable(declared.active):
            flags = self._state.is_active(numbers)
            for before, after in zip(old, new, strict=True):
                bits = f"u{before.dtype.itemsize}"
                flags |= before.view(bits) != after.view(bits)
            return flags
        pack, found = self._program.value.pack, []
        columns = [[column.tolist() for column in part] for part in (old, new)]
        rows = zip(numbers.tolist(), *(zip(*part, strict=True) for part in columns), strict=True)
        with np.errstate(**STRICT):
            for v, before, after in rows:
                ctx = self._context(v, superstep)
                found.append(bool(self._functions["active"](v, superstep, pack(before), pack(after), ctx)))
        return np.array(found, bool) | self._state.is_active(numbers)

    def _context(self, vertex: int, superstep: int) -> VertexContext:
        names = [name for name, *_ in self._program.aggregates]
        aggregated = named_numbers(
            "Aggregated", {name: one.item() for name, one in zip(names, self._seen, strict=True)}
        )
        graph, parameters = self._graph, self._parameters
        degrees = int(graph.out_degrees[vertex]), int(graph.in_degrees[vertex])
        return VertexContext(
            vertex, superstep, graph.num_vertices, *degrees, aggregated, parameters, stream=self._stream
        )

    def _combine(self, effects: Iterable[Effect]) -> Refusals:
        """Combine the messages to each vertex in the order of (sender, sequence); return why it cannot be done."""
        fields, function, superstep = self._program.message, self._functions["combine"], self._superstep + 2
        found: dict[int, Any] = {}
        with np.errstate(**STRICT):
            for effect in effects:
                try:
                    for target, parts in effect.messages:
                        message = fields.pack(parts)
                        for v in self._targets(effect.vertex) if target is None else (target,):
                            found[v] = function(v, superstep, found[v], message) if v in found else message
                except Exception as error:  # of the program's function
                    problem = f"sent a message that cannot be combined with those to the same vertex: {error}"
                    return {self.key_of(effect.vertex): refusal(problem, error)}
        self._sent = self._posted_of(found) if found else None
        return {}

    def _posted_of(self, messages: dict[int, Any]) -> Posted:
        """Return messages by vertex as arrays."""
        fields, vertices = self._program.message, sorted(messages)
        rows = [messages[v] if fields.is_tuple else (messages[v],) for v in vertices]
        columns = zip(*rows, strict=True)
        arrays = tuple(np.array(column, dtype) for column, dtype in zip(columns, fields.dtypes, strict=True))
        return Posted(np.array(vertices, np.int64), arrays)

    def _targets(self, vertex: int) -> list[int]:
        """Return the out-neighbours of a vertex that are no agents from the start."""
        row = self._row(vertex)
        numbers: list[int] = (row[~self._is_agent[row]] if len(self._agents) else row).tolist()
        return numbers

    # Along edges to agents from the start.

    def find_arrivals(self) -> None:
        """Add the messages that agents from the start receive in the next superstep from numeric vertices."""
        if self._edges is None:
            return
        sources, targets, weights = self._edges
        active = np.flatnonzero(self._state.is_active(sources))
        if not len(active):
            return
        per_edge, fields = self._program.per_edge, self._program.message
        columns = [column.tolist() for column in self._state.gather(sources[active])]
        ends = sources[active].tolist(), targets[active].tolist()
        with np.errstate(**STRICT):
            for k, u, v, *parts in zip(active.tolist(), *ends, *columns, strict=True):
                ctx = self._context(u, self._superstep)
                given = (self._program.value.pack(parts), weights[k], ctx.towards(v) if per_edge else ctx)
                message = self._functions["message"](u, self._superstep, *(given if per_edge else given[::2]))
                sent = self._id_of(u), tuple(message) if fields.is_tuple else (message,)
                self._arrived.setdefault(v, []).append(sent)
            if self._combined:
                self._arrived = {v: [(None, self._folded(v, sent))] for v, sent in self._arrived.items()}

    def _folded(self, vertex: int, sent: list[tuple[Any, tuple[Any, ...]]]) -> tuple[Any, ...]:
        """Return messages combined into one."""
        fields, combine = self._program.message, self._functions["combine"]
        (_, first), *others = sent
        total = fields.pack(first)
        for _, parts in others:
            total = combine(vertex, self._superstep + 1, total, fields.pack(parts))
        return tuple(total) if fields.is_tuple else (total,)
