"""What the functions of a vertex program get as ``ctx``, and those functions, compiled, with what kernels call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numba
import numpy as np

from gpu_pregel.kernels.library.draws import MOST_DRAWS, NOBODY, draw_of
from gpu_pregel.kernels.traverse.fields import Fields, Jit, generated, named_type


class VertexContext(NamedTuple):
    """What the functions of a vertex program receive as ``ctx``: a vertex, and what all vertices share.

    Attributes
    ----------
    vertex : int
        The number of the vertex.
    superstep : int
        The current superstep, from 0.
    num_vertices : int
        Number of vertices of the graph.
    out_degree, in_degree : int
        Numbers of edges of the vertex.
    aggregated : named tuple or None
        The aggregates of the previous superstep, by the names of the program's ``aggregators``.
    parameters : named tuple or None
        The values of the program's ``parameters`` in this run, by name.
    captured : tuple of arrays or None
        In compiled code, the arrays that functions use by name.
    stream : tuple or None
        What ``random`` draws from.
    """

    vertex: int
    superstep: int
    num_vertices: int
    out_degree: int
    in_degree: int
    aggregated: Any
    parameters: Any
    captured: Any = None
    stream: Any = None

    @staticmethod
    def _offered() -> tuple[str, ...]:
        """What functions may use, for errors."""
        names = ("vertex", "superstep", "num_vertices", "out_degree", "in_degree", "aggregated", "parameters")
        return (*names, "random")

    def random(self, draw: int) -> float:
        """Return a random number from 0 to 1, without 1: draw number ``draw``, from 0 to 2^24 - 1, of this call.

        Another ``draw`` is an error on the device "python"; compiled code takes its lowest 24 bits.

        It depends on nothing but the seed of the run, the vertex, the superstep, the function that draws and ``draw``,
        and in a ``message`` per edge on the neighbour; so it is the same on every device, with every number of
        partitions and threads, and after a resume. Two numbers of one call need two draws: ``ctx.random(0)`` and
        ``ctx.random(1)``. Parallel edges have equal numbers.
        """
        if not isinstance(draw, (int, np.integer)) or not 0 <= draw < MOST_DRAWS:
            raise ValueError(f"draw must be an integer from 0 to {MOST_DRAWS - 1}, not {draw!r:.80}")
        return float(draw_of(self.vertex, self.superstep, self.stream, draw))

    def towards(self, target: int) -> VertexContext:
        """Return the ``ctx`` of the edge to a vertex."""
        seed, stage, _ = self.stream
        return self._replace(stream=(seed, stage, target))

    def at_stage(self, stage: int) -> VertexContext:
        """Return the ``ctx`` of the function with a number."""
        seed, _, target = self.stream
        return self._replace(stream=(seed, stage, target))


def stream_of(seed: int) -> tuple[int, int, int]:
    """Return the stream of a run with a seed, before a function or an edge is chosen."""
    return seed, 0, int(NOBODY)


class RecordingContext(NamedTuple):
    """A :class:`VertexContext` in kernels that record what the program's functions raise, in ``failures``."""

    vertex: int
    superstep: int
    num_vertices: int
    out_degree: int
    in_degree: int
    aggregated: Any
    parameters: Any
    captured: Any
    stream: Any
    failures: Any


SEED = "seed of ctx.random"
"""The name of the parameter that has the seed in programs that draw; with spaces it is no name that users may use."""


Parameters = tuple[tuple[str, np.dtype[Any]], ...]
"""The name and dtype of each parameter of a program."""


@dataclass(frozen=True)
class ContextFields:
    """The parts of ``ctx`` that differ from program to program: names of aggregates, names and dtypes of parameters."""

    aggregates: tuple[str, ...]
    parameters: Parameters
    captured: int = 0
    """How many arrays the functions have captured, which come after those of the parameters."""
    records: bool = False
    """Whether failures are recorded, in an array after those."""

    @property
    def draws(self) -> bool:
        """Whether the program draws random numbers."""
        return any(name == SEED for name, _ in self.parameters)


@dataclass(frozen=True)
class Functions:
    """A program's functions, compiled as device functions, and the properties that determine its kernels."""

    value: Fields
    message: Fields
    identity: Any
    init: Callable[..., Any]
    initially_active: Callable[..., Any] | None
    send: Callable[..., Any]
    per_edge: bool
    combine: Callable[..., Any]
    absorbing: Any
    """The message that no other message changes, such as 0 for the minimum of unsigned integers, or None."""
    built_in: str | None
    """The name of a built-in combiner, for which an atomic instruction may exist; otherwise None."""
    apply: Callable[..., Any]
    receives: Callable[..., Any] | None
    """``receives(value, ctx)``, or None if every vertex takes messages."""
    is_active: Callable[..., Any] | None
    wake: Callable[..., Any] | None
    """``wake(old, new, ctx)``: whether a vertex that has applied wakes an agent; None in runs without agents."""
    aggregators: tuple[tuple[str, Callable[..., Any], Callable[..., Any], np.dtype[Any], Any], ...]
    """The name, function of (old, new, ctx), combiner, dtype and identity of each aggregator."""
    parameters: Parameters
    captured: tuple[np.dtype[Any], ...] = ()
    """The dtypes of the arrays that the functions have captured."""
    ascending: bool = False
    """Whether the messages to a vertex do not decrease with the number of their source."""
    always: bool = False
    """Whether every vertex applies in every superstep, so that no kernel need tell which of them received messages."""
    records: bool = False
    """Whether what the functions raise is recorded."""

    def wrapped(self, wrap: Callable[[Any, str, str, int], Any]) -> Functions:
        """Return these functions with ``wrap(function, role, arguments, number)`` in place of each but the combiners.

        ``arguments`` are the names of its parameters, in a text; ``number`` is that of an aggregator.
        """

        def one(function: Any, role: str, arguments: str, number: int = 0) -> Any:
            return None if function is None else wrap(function, role, arguments, number)

        return replace(
            self,
            init=one(self.init, "init", "ctx"),
            initially_active=one(self.initially_active, "initially_active", "ctx"),
            send=one(self.send, "message", "value, weight, ctx" if self.per_edge else "value, ctx"),
            apply=one(self.apply, "apply", "old, message, ctx"),
            receives=one(self.receives, "receives", "value, ctx"),
            is_active=one(self.is_active, "active", "old, new, ctx"),
            wake=one(self.wake, "wake", "old, new, ctx"),
            aggregators=tuple(
                (name, one(function, "aggregator", "old, new, ctx", k), *rest)
                for k, (name, function, *rest) in enumerate(self.aggregators)
            ),
        )

    @property
    def is_selective(self) -> bool:
        """Whether a pull need not read every row to its end: some vertices take no messages, or the first will do."""
        return self.receives is not None or self.takes_first

    @property
    def pulls_along_edges(self) -> bool:
        """Whether a pull computes messages edge by edge: if they differ, or only some edges are read."""
        return self.per_edge or self.is_selective

    @property
    def may_cancel(self) -> bool:
        """Whether messages that differ from the identity may combine to it, as +1 and -1 in a sum."""
        return self.built_in in (None, "sum")

    @property
    def draws_per_edge(self) -> bool:
        """Whether messages may differ by the random numbers of their edges."""
        return self.per_edge and self.context.draws

    @property
    def takes_any(self) -> bool:
        """Whether all messages to a vertex are equal."""
        return self.built_in == "any"

    @property
    def takes_first(self) -> bool:
        """Whether the first message in a row is the combined one."""
        return self.takes_any or self.ascending

    @property
    def context(self) -> ContextFields:
        """The names in ``ctx.aggregated`` and ``ctx.parameters``."""
        names = tuple(name for name, *_ in self.aggregators)
        return ContextFields(names, self.parameters, len(self.captured), self.records)


def parameter_dtypes(parameters: Parameters) -> tuple[np.dtype[Any], ...]:
    """Return the dtypes of the arrays that pass parameters to kernels: one of integers, one of floats, if not empty."""
    kinds = {dtype.kind == "f" for _, dtype in parameters}
    return tuple(np.dtype(np.float64 if is_float else np.int64) for is_float in sorted(kinds))


def parameter_arrays(parameters: Parameters, values: tuple[Any, ...]) -> tuple[np.ndarray[Any, Any], ...]:
    """Return the values of parameters, which have the declared dtypes, as arrays for kernels."""
    pairs = list(zip(parameters, values, strict=True))
    return tuple(
        np.array([value.astype(kind) for (_, dtype), value in pairs if (dtype.kind == "f") == (kind.kind == "f")])
        for kind in parameter_dtypes(parameters)
    )


@functools.cache
def make_context(jit: Jit, fields: ContextFields) -> Any:
    """``context(v, superstep, n, out_degree, in_degree, arrays)``: the ``ctx`` of a program's functions.

    ``arrays`` are those of the aggregates, of length 1, followed by those of the parameters, the captured ones and the
    record of failures.
    """
    aggregated, parameters, captured, stream = "None", "None", "None", "None"
    failures = ", arrays[-1]" if fields.records else ""
    namespace: dict[str, Any] = {}
    count = len(fields.aggregates)
    if count:
        aggregated = f"Aggregated({', '.join(f'arrays[{k}][0]' for k in range(count))})"
        namespace["Aggregated"] = named_type("Aggregated", fields.aggregates)
    if fields.parameters:
        kinds, places, parts = parameter_dtypes(fields.parameters), [0, 0], []
        for k, (_, dtype) in enumerate(fields.parameters):
            is_float = dtype.kind == "f"
            array = count + (is_float and len(kinds) > 1)
            parts.append(f"type{k}(arrays[{array}][{places[is_float]}])")
            places[is_float] += 1
            namespace[f"type{k}"] = numba.from_dtype(dtype)
        names = tuple(name for name, _ in fields.parameters if name != SEED)
        if fields.draws:
            stream, namespace["NOBODY"] = f"({parts.pop()}, int64(0), NOBODY)", NOBODY
        if names:
            parameters, namespace["Parameters"] = f"Parameters({', '.join(parts)})", named_type("Parameters", names)
    if fields.captured:
        first = count + len(parameter_dtypes(fields.parameters))
        captured = f"({', '.join(f'arrays[{first + k}]' for k in range(fields.captured))},)"
    source = (
        "def context(v, superstep, n, out_degree, in_degree, arrays):\n"
        "    v, n, out_degree, in_degree = int64(v), int64(n), int64(out_degree), int64(in_degree)\n"
        f"    return Context(v, superstep, n, out_degree, in_degree, {aggregated}, {parameters}, {captured}, {stream}"
        f"{failures})\n"
    )
    context = RecordingContext if fields.records else VertexContext
    return generated(jit, "context", source, Context=context, int64=numba.int64, **namespace)


def make_send_along(jit: Jit, functions: Functions) -> Any:
    """``send_along(value, weight, target, ctx)``: the message along an edge, whether or not it depends on the edge."""
    send, towards = functions.send, _make_towards(jit, functions)

    def per_source(value, weight, target, ctx):
        return send(value, ctx)

    def per_edge(value, weight, target, ctx):
        return send(value, weight, ctx)

    def drawing(value, weight, target, ctx):
        return send(value, weight, towards(ctx, target))

    return jit(drawing if functions.draws_per_edge else per_edge if functions.per_edge else per_source)


def _make_towards(jit: Jit, functions: Functions) -> Any:
    """``towards(ctx, target)``: a ``ctx`` of the kernels whose random numbers are those of the edge to a vertex."""
    source = "def towards(ctx, target):\n" + rebuilt(
        "Context", "(ctx.stream[0], ctx.stream[1], int64(target))", ", ctx.failures" if functions.records else ""
    )
    context = RecordingContext if functions.records else VertexContext
    return generated(jit, "towards", source, Context=context, int64=numba.int64)


def rebuilt(name: str, stream: str, rest: str = "") -> str:
    """Return the source of a statement that returns a ``ctx`` with another stream, of the class with that name."""
    parts = ", ".join(f"ctx.{field}" for field in VertexContext._fields[:-1])
    return f"    return {name}({parts}, {stream}{rest})\n"
