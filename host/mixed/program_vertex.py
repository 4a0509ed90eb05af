"""The compute function of agents that carry out a vertex program: one vertex in one superstep."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from gpu_pregel.host.agents.codec import decode, encode
from gpu_pregel.host.agents.context import Context
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.programs.interpreter import UserFunction
from gpu_pregel.host.programs.python_state import InterpretedProgram, named_numbers, user_functions
from gpu_pregel.host.traverse.interpreted import STRICT
from gpu_pregel.kernels.programs.functions import VertexContext, stream_of

FIGURES = "figures of supersteps"
"""The aggregator of the latest rows of the trace; with spaces it is no name that a program may use."""
EARLIER_FIGURES = "figures of earlier supersteps"
"""The aggregator of the rows before them, encoded in blocks."""
PARAMETERS = "parameters of supersteps"
"""The aggregator of the parameters that a program's ``master`` changes."""


class ProgramVertex:
    """Computes a vertex in a superstep of a vertex program, as device "python" does; called with its context.

    Superstep 0 finds a start in the value of the agent: ``[has value, value, is active or None]``.

    Parameters
    ----------
    program : InterpretedProgram
    graph : Graph
    parameters : tuple of scalars
        Of the declared dtypes.
    seed : int
        Of the random numbers.
    """

    def __init__(self, program: InterpretedProgram, graph: Graph, parameters: tuple[Any, ...], seed: int = 0) -> None:
        declared = program.declaration
        self._program = program
        self._ids = graph.ids
        self._in_degrees, self._out_degrees = graph.in_degrees, graph.out_degrees
        self._always, self._is_data = declared.active == "always", not declared.is_numeric
        self._parameters = self._named_parameters([one.item() for one in parameters])
        self._stream = stream_of(seed)
        self._identity = program.plain_identity

    @cached_property
    def _functions(self) -> dict[str, UserFunction]:
        return user_functions(self._program, self._id_of)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_functions"}

    def _named_parameters(self, values: list[Any]) -> Any:
        names = (name for name, _ in self._program.parameters)
        return named_numbers("Parameters", dict(zip(names, values, strict=True)))

    def _id_of(self, vertex: int) -> Any:
        return vertex if self._ids is None else self._ids[vertex : vertex + 1].tolist()[0]

    def __call__(self, agent: Context) -> None:
        """Compute the vertex of ``agent`` in its superstep."""
        with np.errstate(**STRICT):
            if agent.superstep == 0:
                self._start(agent, self._context(agent))
            else:
                self._continue(agent, self._context(agent))

    def _context(self, agent: Context) -> VertexContext:
        v = agent.vertex_id
        aggregated = named_numbers(
            "Aggregated", {name: agent.aggregated(name) for name, *_ in self._program.aggregates}
        )
        degrees = int(self._out_degrees[v]), int(self._in_degrees[v])
        parameters = self._parameters
        if self._program.declaration.master is not None:
            parameters = self._named_parameters(agent.aggregated(PARAMETERS))
        return VertexContext(
            v, agent.superstep, len(self._out_degrees), *degrees, aggregated, parameters, stream=self._stream
        )

    def _call(self, role: str, ctx: VertexContext, *arguments: Any) -> Any:
        return self._functions[role](ctx.vertex, ctx.superstep, *arguments)

    def _start(self, agent: Context, ctx: VertexContext) -> None:
        """Run superstep 0."""
        has_value, value, is_active = agent.value
        value = self._packed(value) if has_value else self._call("init", ctx, ctx)
        if is_active is None:
            is_active = "initially_active" not in self._functions or self._call("initially_active", ctx, ctx)
        agent.value = value
        self._conclude(agent, ctx, value, is_active=bool(is_active), applied=0)

    def _continue(self, agent: Context, ctx: VertexContext) -> None:
        """Apply the messages, if there are any or all vertices apply."""
        old = self._packed(agent.value)
        receives = bool(agent.messages) and (
            "receives" not in self._functions or bool(self._call("receives", ctx, old, ctx))
        )
        if not (receives or self._always):
            agent.vote_to_halt()
            return
        incoming = self._combine(agent, ctx) if receives else self._identity
        before = encode(_plain(old))
        new = self._call("apply", ctx, old, incoming, ctx)
        if self._is_data:  # the function may have modified it
            old = decode(before)
        if "active" in self._functions:
            is_active = bool(self._call("active", ctx, old, new, ctx))
        else:
            is_active = self._always or encode(_plain(new)) != before
        for name, *_ in self._program.aggregates:
            agent.aggregate(name, self._call(f"aggregator {name!r}", ctx, old, new, ctx))
        self._conclude(agent, ctx, new, is_active=is_active, applied=1)

    def _combine(self, agent: Context, ctx: VertexContext) -> Any:
        """Return the combined message."""
        result = self._identity
        for message in agent.messages:
            result = self._call("combine", ctx, result, self._packed_message(message))
        return result

    def _conclude(self, agent: Context, ctx: VertexContext, value: Any, *, is_active: bool, applied: int) -> None:
        """Keep the value; send if the vertex is active, and keep it awake for the next superstep."""
        if is_active:
            self._send(agent, ctx, value)
        else:
            agent.vote_to_halt()
        agent.value = _plain(value)
        agent.aggregate(FIGURES, [(ctx.superstep, int(is_active), ctx.out_degree if is_active else 0, applied)])

    def _send(self, agent: Context, ctx: VertexContext, value: Any) -> None:
        if not self._program.per_edge:
            if ctx.out_degree:
                agent.send_to_neighbors(_plain(self._call("message", ctx, value, ctx)))
            return
        for target, weight in agent.edges:
            agent.send(target, _plain(self._call("message", ctx, value, weight, ctx.towards(target))))

    def _packed(self, value: Any) -> Any:
        """Return a value as the program's functions take it; the codec keeps no names of fields."""
        fields = self._program.value
        return fields.pack(value) if fields.is_tuple else value

    def _packed_message(self, message: Any) -> Any:
        fields = self._program.message
        return fields.pack(message) if fields.is_tuple else message


def _plain(value: Any) -> Any:
    """Return a named tuple as a tuple, which the codec takes."""
    return tuple(value) if isinstance(value, tuple) and hasattr(value, "_fields") else value


def add_figures(before: list[Any], term: list[Any]) -> list[Any]:
    """Add the figures of a vertex to those of its superstep."""
    if before and before[-1][0] == term[0][0]:
        last = tuple(map(sum, zip(before[-1][1:], term[0][1:], strict=True)))
        return [*before[:-1], (term[0][0], *last)]
    return [*before, *term]
