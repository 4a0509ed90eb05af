"""Vertex programs on the device "python": the meaning of a superstep, in plain Python and without compilation.

It is the oracle of the tests of all other devices. One partition has the whole graph, and a push and a pull are the
same: messages are combined in ascending order of their senders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from gpu_pregel.errors import ProgramError
from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.devices.python import PythonDevice
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.graphs.partitions import full_bitmap, pack_bits
from gpu_pregel.host.programs.compiler import CompiledProgram, program_fields
from gpu_pregel.host.programs.interpreter import UserFunction
from gpu_pregel.host.programs.program import VertexProgram
from gpu_pregel.host.programs.state import Activity, Beginning, ProgramState, SuperstepFigures
from gpu_pregel.host.traverse.combiners import resolve_combiner
from gpu_pregel.host.traverse.exchange import PartitionState, VertexArrays
from gpu_pregel.host.traverse.interpreted import BOOL, STRICT
from gpu_pregel.kernels.programs.functions import VertexContext, stream_of
from gpu_pregel.kernels.traverse.fields import Fields, named_type

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class InterpretedProgram(CompiledProgram):
    """A program that is not compiled: its kernels are the functions of the declaration."""

    @property
    def plain_identity(self) -> Any:
        """The identity of the combiner as its functions take it: Python numbers, or data."""
        if self.message.is_data:
            return self.identity
        parts = self.identity if self.message.is_tuple else (self.identity,)
        return self.message.pack([part.item() for part in parts])


def interpret_program(program: VertexProgram, dtypes: Mapping[str, np.dtype[Any]] | None = None) -> InterpretedProgram:
    """Return what a run needs to know of a program, without compiling it; ``dtypes`` are those of its aggregates."""
    value, message = program_fields(program)
    _, identity = resolve_combiner(program.combine, message)
    aggregates, folds = [], []
    for name, aggregator in program.aggregators.items():
        dtype: np.dtype[Any] = dtypes[name] if dtypes is not None else _dtype_of(program, name, value)
        fold, start = resolve_combiner(aggregator.combine, _one(dtype))
        aggregates.append((name, dtype, start))
        folds.append(fold)
    per_edge = program.sends_per_edge
    is_selective = program.receives is not None or program.takes_first
    return InterpretedProgram(
        value=value,
        message=message,
        identity=identity,
        per_edge=per_edge,
        receives=program.receives is not None,
        is_selective=is_selective,
        uses_in_degree=True,
        aggregates=tuple(aggregates),
        aggregate_folds=tuple(folds),
        parameters=tuple((parameter.name, parameter.dtype) for parameter in program.declared_parameters),
        init=program.init,
        captured=(),
        signal=None if per_edge or is_selective else program.message,
        pull=program.message,
        slot=None,
        records=False,
        push=None if message.is_tuple else program.message,
        apply=program.apply,
        chain=None,
        declaration=program,
    )


def twins(
    beginning: Beginning, declaration: VertexProgram, compiled: CompiledProgram, graph: Graph, *, always: bool
) -> Iterator[PythonState]:
    """Yield states with which a superstep that has failed in compiled code is repeated, which says for which vertex.

    The second one calls ``receives`` for vertices without messages, too, as a pull of compiled code does.
    """
    program = interpret_program(declaration, {name: dtype for name, dtype, _ in compiled.aggregates})
    for asks_everyone in (False, True):
        twin = PythonState(program, graph, PythonDevice(), always=always)
        twin.begin_from(beginning)
        twin.asks_everyone = asks_everyone
        yield twin


def _one(dtype: np.dtype[Any]) -> Fields:
    """Return the type of an aggregate."""
    return Fields((dtype,), False, data=object if dtype.kind == "O" else None)


def _dtype_of(program: VertexProgram, name: str, value: Fields) -> np.dtype[Any]:
    """Return the dtype of an aggregate; if none is declared, call its function once, for values of 1 and 2."""
    aggregator = program.aggregators[name]
    declared: np.dtype[Any] | None = None if aggregator.dtype is None else np.dtype(aggregator.dtype)
    if declared is not None or value.is_data:
        return declared or np.dtype(object)
    old, new = (value.pack([dtype.type(number).item() for dtype in value.dtypes]) for number in (1, 2))
    parameters = named_numbers(
        "Parameters", {one.name: one.dtype.type(1).item() for one in program.declared_parameters}
    )
    try:
        with np.errstate(**STRICT):
            found = aggregator.function(old, new, VertexContext(0, 1, 2, 1, 1, None, parameters, stream=stream_of(0)))
    except Exception as error:
        raise ProgramError(
            f"aggregator {name!r} needs dtype= on device 'python': a call with the values {old} and {new}, which finds "
            f"out what it returns, raises {type(error).__name__}: {error}"
        ) from error
    if isinstance(found, (bool, np.bool_)):
        return np.dtype(np.int64 if aggregator.combine == "sum" else np.bool_)
    return np.dtype(np.float64 if isinstance(found, (float, np.floating)) else np.int64)


def named_numbers(name: str, numbers: dict[str, Any]) -> Any:
    """Return numbers as a named tuple, as in ``ctx``; None if there are none."""
    return named_type(name, tuple(numbers))(*numbers.values()) if numbers else None


def user_functions(program: InterpretedProgram, id_of: Callable[[int], Any]) -> dict[str, UserFunction]:
    """Return the functions of a program by role; ``id_of`` returns the user's id of a vertex."""
    declared = program.declaration
    combine, _ = resolve_combiner(declared.combine, program.message)
    roles: dict[str, tuple[Any, Fields]] = {
        "init": (declared.init, program.value),
        "initially_active": (declared.initially_active, BOOL),
        "receives": (declared.receives, BOOL),
        "message": (declared.message, program.message),
        "combine": (combine, program.message),
        "apply": (declared.apply, program.value),
        "active": (declared.active if callable(declared.active) else None, BOOL),
        "wake": (declared.wake, BOOL),
    }
    numbers = {f"aggregator {name!r}": number for number, (name, *_) in enumerate(program.aggregates)}
    for (name, dtype, _), fold in zip(program.aggregates, program.aggregate_folds, strict=True):
        roles[f"aggregator {name!r}"] = declared.aggregators[name].function, _one(dtype)
        roles[f"combine of aggregator {name!r}"] = fold, _one(dtype)
    has_master = declared.master is not None
    return {
        role: UserFunction(role, function, fields, id_of, numbers.get(role, 0), copies_arrays=has_master)
        for role, (function, fields) in roles.items()
        if function is not None
    }


class PythonState(ProgramState):
    """Values and frontier of a run, and a superstep vertex by vertex.

    Parameters
    ----------
    program : InterpretedProgram
    graph : Graph
    device : Device
    always : bool
        Whether every vertex applies in every superstep.
    """

    _program: InterpretedProgram

    def __init__(self, program: InterpretedProgram, graph: Graph, device: Device, *, always: bool) -> None:
        n = graph.num_vertices
        parts = graph._partitions(1, with_pull=False, threads=1)
        super().__init__(program, device, parts, num_vertices=n, offset_size=8, word=np.uint64, always=always)
        self.partitions = []
        self._graph, self._edges = graph, parts[0].out_edges
        self._functions = user_functions(program, self._id_of)
        self._identity = program.plain_identity
        self._parameters: Any = None
        self._stream = stream_of(0)
        self._woken: list[int] = []
        self.asks_everyone = False
        """Whether ``receives`` is called for vertices without messages, too, as a pull of compiled code does."""
        self.context_arrays = tuple(np.array([start], dtype) for _, dtype, start in program.aggregates)
        values = tuple(np.zeros(n, dtype) for dtype in program.value.dtypes)
        self._use(
            VertexArrays(graph.out_degrees, graph.in_degrees, values, np.zeros_like(full_bitmap(n)), (), None, None)
        )

    def _id_of(self, vertex: int) -> Any:
        return self._graph.to_ids(np.array([vertex])).tolist()[0]

    def _call(self, role: str, ctx: VertexContext, *arguments: Any) -> Any:
        return self._functions[role](ctx.vertex, ctx.superstep, *arguments)

    def _context(
        self, vertex: int, superstep: int, aggregates: tuple[Any, ...], parameters: Any = None
    ) -> VertexContext:
        """Return the context of a vertex; with ``parameters`` instead of those that senders see."""
        own, names = self.vertices, [name for name, *_ in self._program.aggregates]
        aggregated = named_numbers(
            "Aggregated", {name: part.item() for name, part in zip(names, aggregates, strict=True)}
        )
        degrees = own.out_degrees[vertex].item(), own.in_degrees[vertex].item()
        parameters = self._parameters if parameters is None else parameters
        return VertexContext(vertex, superstep, self._n, *degrees, aggregated, parameters, stream=self._stream)

    def _value(self, vertex: int) -> Any:
        return self._program.value.pack([array[vertex].item() for array in self.values])

    def _store(self, vertex: int, value: Any) -> bool:
        """Set the value of a vertex; return whether any bit of it changes."""
        before = [array[vertex].tobytes() for array in self.values]
        for array, part in zip(self.values, value if self._program.value.is_tuple else (value,), strict=True):
            array[vertex] = part
        return before != [array[vertex].tobytes() for array in self.values]

    def set_parameters(self, values: tuple[Any, ...], seed: int = 0) -> None:
        """Set the values of the program's parameters, which are scalars of the declared dtypes, and the seed."""
        self._sent_with, self._next_parameters, self._seed = values, None, seed
        self._stream = stream_of(seed)
        self._parameters = self._named_parameters(values)

    def _named_parameters(self, values: tuple[Any, ...]) -> Any:
        """Return parameters as in ``ctx``."""
        names = [name for name, _ in self._program.parameters]
        return named_numbers("Parameters", {name: one.item() for name, one in zip(names, values, strict=True)})

    def initialise(self) -> Activity:
        """Run superstep 0: ``init`` and the first frontier, unless :meth:`start_from` gave them."""
        has_values, has_frontier = self._given
        active = self._active() if has_frontier else []
        with np.errstate(**STRICT):
            for v in range(self._n):
                ctx = self._context(v, 0, self.aggregates)
                if not has_values:
                    self._store(v, self._call("init", ctx, ctx))
                if has_frontier:
                    continue
                if "initially_active" not in self._functions or self._call("initially_active", ctx, ctx):
                    active.append(v)
        return self._activate(active)

    def _active(self) -> list[int]:
        """Return the vertices of the frontier, in ascending order."""
        bits: Array = np.unpackbits(self.frontier.astype("<u8").view(np.uint8), bitorder="little")
        return np.flatnonzero(bits[: self._n]).tolist()

    def execute(
        self,
        direction: str,  # noqa: ARG002
        superstep: int,
        activity: Activity,  # noqa: ARG002
        totals: tuple[Any, ...],
        limit: int,  # noqa: ARG002
    ) -> list[SuperstepFigures]:
        """Run a superstep in which the active vertices send; ``totals`` are the aggregates that ``apply`` sees."""
        with np.errstate(**STRICT):
            inbox = self._send(superstep - 1, totals)
            if self._next_parameters is not None:
                self.set_parameters(self._next_parameters, self._seed)
            figures = self._apply(superstep, inbox, totals)
        for array, total in zip(self.aggregates, totals, strict=True):
            array[0] = total
        return [figures]

    def _send(self, superstep: int, totals: tuple[Any, ...]) -> dict[int, Any]:
        """Send along the out-edges of the active vertices; return the combined message of each receiver."""
        edges, per_edge = self._edges, self._program.per_edge
        changed = None if self._next_parameters is None else self._named_parameters(self._next_parameters)

        @cache
        def accepts(v: int) -> bool:
            if "receives" not in self._functions:
                return True
            ctx = self._context(v, superstep + 1, totals, changed)
            return bool(self._call("receives", ctx, self._value(v), ctx))

        for v in range(self._n) if self.asks_everyone else ():
            accepts(v)
        inbox: dict[int, Any] = {}
        combine = self._functions["combine"]
        for u in self._active():
            row = range(edges.begins[u], edges.ends[u])
            if not row:
                continue
            ctx, value = self._context(u, superstep, self.aggregates), self._value(u)
            message = None if per_edge else self._call("message", ctx, value, ctx)
            for e in row:
                v = int(edges.indices[e])
                if not accepts(v):
                    continue
                if per_edge:
                    weight = 1.0 if edges.weights is None else edges.weights[e].item()
                    message = self._call("message", ctx, value, weight, ctx.towards(v))
                inbox[v] = combine(v, superstep + 1, inbox.get(v, self._identity), message)
        posted = self.take_posted()
        if posted is not None:
            for v, *parts in zip(posted.vertices.tolist(), *(one.tolist() for one in posted.messages), strict=True):
                if accepts(v):
                    message = self._program.message.pack(parts)
                    inbox[v] = combine(v, superstep + 1, inbox.get(v, self._identity), message)
        return inbox

    def _apply(self, superstep: int, inbox: dict[int, Any], seen: tuple[Any, ...]) -> SuperstepFigures:
        """Deliver: vertices with messages apply them and decide whether they are active."""
        sums, active, applied = [start.item() for _, _, start in self._program.aggregates], [], 0
        self._woken = []
        excluded = set() if self.excluded is None else set(self.excluded.tolist())
        for v in range(self._n) if self._always else sorted(inbox):
            if v in excluded:
                continue
            incoming = inbox.get(v, self._identity)
            applied += 1
            ctx, old = self._context(v, superstep, seen), self._value(v)
            new = self._call("apply", ctx, old, incoming, ctx)
            is_active = self._store(v, new) or self._always
            if "active" in self._functions:
                is_active = self._call("active", ctx, old, new, ctx)
            if is_active:
                active.append(v)
            if "wake" in self._functions and self._call("wake", ctx, old, new, ctx):
                self._woken.append(v)
            for k, (name, *_) in enumerate(self._program.aggregates):
                term = self._call(f"aggregator {name!r}", ctx, old, new, ctx)
                sums[k] = self._call(f"combine of aggregator {name!r}", ctx, sums[k], term)
        totals = tuple(dtype.type(total) for total, (_, dtype, _) in zip(sums, self._program.aggregates, strict=True))
        return SuperstepFigures(self._activate(active), applied, totals)

    def woken(self) -> Array:
        """Return the vertices that woke agents in the last superstep, in ascending order."""
        return np.array(self._woken, np.int64)

    def repeat(self, role: str, v: int, superstep: int, seen: tuple[Any, ...], message: tuple[Any, ...]) -> None:
        """Call the functions of a vertex in a superstep from the first to that of a role, as one of them raised.

        ``seen`` are the aggregates that it sees, ``message`` the fields of the message that it applies.
        """
        ctx, old = self._context(v, superstep, seen), self._value(v)
        with np.errstate(**STRICT):
            if role in ("init", "initially_active"):
                self._call(role, ctx, ctx)
            elif role == "receives":
                self._call(role, ctx, old, ctx)
            elif role == "message":
                self._send_from(v, old, self._context(v, superstep - 1, seen))
            elif role != "combine":  # nobody knows which messages were combined
                new = self._call("apply", ctx, old, self._program.message.pack(message), ctx)
                for name in ("active", "wake", *(f"aggregator {name!r}" for name, *_ in self._program.aggregates)):
                    if name in self._functions:
                        self._call(name, ctx, old, new, ctx)

    def _send_from(self, u: int, value: Any, ctx: VertexContext) -> None:
        """Compute the messages of a vertex along all its edges."""
        edges = self._edges
        for e in range(edges.begins[u], edges.ends[u]):
            if self._program.per_edge:
                weight = 1.0 if edges.weights is None else edges.weights[e].item()
                self._call("message", ctx, value, weight, ctx.towards(int(edges.indices[e])))
            else:
                self._call("message", ctx, value, ctx)

    def _activate(self, active: list[int]) -> Activity:
        """Make these vertices the frontier."""
        flags = np.zeros(self._n, bool)
        flags[active] = True
        self.frontier[:] = pack_bits(flags)
        return Activity(len(active), int(self.vertices.out_degrees[flags].sum()))

    def deliver(self, rows: Array, mirrors: tuple[Any, ...], owner: PartitionState | None = None) -> None:
        """Refuse: one partition has the whole graph, so nothing is delivered from others."""
        raise NotImplementedError
