"""Vertex programs shared by several tests, so that each is compiled once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import gpu_pregel as gp
from gpu_pregel.host.devices import get_device
from gpu_pregel.host.graphs.partitions import pack_bits
from gpu_pregel.host.programs.cuda_state import CudaState
from gpu_pregel.host.programs.factory import compile_for_device, make_state
from gpu_pregel.host.programs.state import Activity

FAR = 2**31 - 1
"""The number of hops to vertices that cannot be reached."""

LABELS = gp.VertexProgram(
    value=np.uint32,
    init=lambda ctx: ctx.vertex,
    message=lambda value, ctx: value,
    combine="min",
    apply=lambda value, incoming, ctx: min(value, incoming),
)
HOPS = gp.VertexProgram(
    value=np.int32,
    init=lambda ctx: 0 if ctx.vertex == 0 else 2**31 - 1,
    initially_active=lambda ctx: ctx.vertex == 0,
    message=lambda value, ctx: value + 1,
    combine="min",
    apply=lambda value, incoming, ctx: min(value, incoming),
)
DISTANCES = gp.VertexProgram(
    value=np.float64,
    init=lambda ctx: 0.0 if ctx.vertex == 0 else np.inf,
    initially_active=lambda ctx: ctx.vertex == 0,
    message=lambda value, weight, ctx: value + weight,
    combine="min",
    apply=lambda value, incoming, ctx: min(value, incoming),
)
RANKS = gp.VertexProgram(
    value=np.float64,
    init=lambda ctx: 1 / ctx.num_vertices,
    message=lambda value, ctx: value / ctx.out_degree,
    combine="sum",
    apply=lambda value, incoming, ctx: 0.15 / ctx.num_vertices + 0.85 * incoming,
    active="always",
    aggregators={"change": gp.Aggregator("sum", lambda old, new, ctx: abs(new - old))},
    halt=lambda aggregated: aggregated.change < 1e-4,
)
# Senders and receivers use aggregates; the senders see those of the superstep before.
PAIRS = gp.VertexProgram(
    value=(np.int64, np.float32),
    init=lambda ctx: (ctx.vertex % 13, 0.5),
    message=lambda value, ctx: (value[0] + ctx.aggregated.total % 7, value[1] + ctx.superstep),
    combine="min",
    # Without a message, ``incoming[0]`` is the largest integer.
    apply=lambda value, incoming, ctx: (incoming[0] % 1_009 + ctx.aggregated.top % 5, max(value[1], incoming[1])),
    active="always",
    aggregators={
        "total": gp.Aggregator("sum", lambda old, new, ctx: new[0]),
        "top": gp.Aggregator("max", lambda old, new, ctx: new[0] + ctx.vertex),
    },
)
# Adds the numbers of the in-neighbours, counted from 1, so that a missing or repeated edge changes the result.
SUMS = gp.VertexProgram(
    value=np.int64,
    init=lambda ctx: ctx.vertex + 1,
    message=lambda value, ctx: value,
    combine="sum",
    apply=lambda value, incoming, ctx: incoming,
    active=lambda old, new, ctx: False,
)


def describe(ctx: Any) -> int:
    """A number that depends on every integer of ``ctx``."""
    number = ctx.vertex * 3 + ctx.num_vertices * 5_000 + ctx.out_degree * 70 + ctx.in_degree * 1_100
    return number + ctx.superstep * 13  # type: ignore[no-any-return]


# In superstep 0 all vertices but one are active, and later about two of three.
CONTEXTS = gp.VertexProgram(
    value=np.int64,
    init=lambda ctx: describe(ctx),
    initially_active=lambda ctx: ctx.vertex != 6,
    message=lambda value, ctx: value % 1_000 + describe(ctx),
    combine="sum",
    apply=lambda value, incoming, ctx: (value + incoming * 7 + describe(ctx)) % 1_000_003,
    active=lambda old, new, ctx: describe(ctx) % 3 != 0,
    aggregators={"total": gp.Aggregator("sum", lambda old, new, ctx: new + describe(ctx))},
)
CONTEXTS_PER_EDGE = replace(
    CONTEXTS,
    message=lambda value, weight, ctx: value % 1_000 + np.int64(weight) * describe(ctx),
)
# Hops that each vertex takes once.
SEARCH = gp.VertexProgram(
    value=np.int32,
    init=lambda ctx: 0 if ctx.vertex == 0 else -1,
    initially_active=lambda ctx: ctx.vertex == 0,
    message=lambda value, ctx: value + 1,
    combine="any",
    receives=lambda value, ctx: value < 0,
    apply=lambda value, incoming, ctx: incoming,
)
# Sums, so that a message that is taken twice, or taken by a vertex that does not receive, changes the result.
GATED = gp.VertexProgram(
    value=np.int64,
    init=lambda ctx: ctx.vertex % 5,
    message=lambda value, ctx: value + ctx.vertex,
    combine="sum",
    receives=lambda value, ctx: (
        (value + ctx.superstep + ctx.vertex + ctx.in_degree + 2 * ctx.out_degree + ctx.aggregated.total) % 3 == 0
    ),
    apply=lambda value, incoming, ctx: (value + incoming + 1) % 1000,
    active=lambda old, new, ctx: new % 4 != 0,
    aggregators={"total": gp.Aggregator("sum", lambda old, new, ctx: new)},
)


class Supersteps:
    """Single supersteps of a program on one state, from given values and a given frontier.

    Without ``chains``, small frontiers on CUDA are pushed by the kernels for large ones, which take a third of the time
    to compile.
    """

    def __init__(self, graph: gp.Graph, program: gp.VertexProgram, device: str, *, chains: bool = True) -> None:
        self._graph, target = graph, get_device(device)
        compiled = compile_for_device(target, graph, program)
        self._state = make_state(target, graph, compiled, always=program.active == "always")
        if isinstance(self._state, CudaState) and not chains:
            self._state._can_chain = False
        self._download = target.download

    def run(self, values: Any, flags: Any, direction: str, superstep: int = 0) -> tuple[list[Any], Any]:
        """Return the fields of the values after a superstep, and whether each vertex has become active."""
        state = self._state
        state.attach([field.copy() for field in values], pack_bits(flags))
        activity = Activity(int(flags.sum()), int(self._graph.out_degrees[flags].sum()))
        (step,) = state.execute(direction, superstep + 1, activity, (), 1)
        words = self._download(state.frontier).view(np.uint64)
        active = np.unpackbits(words.view(np.uint8), bitorder="little")[: len(flags)].astype(bool)
        assert step.activity.active_vertices == active.sum()
        return [self._download(field).copy() for field in state.values], active
