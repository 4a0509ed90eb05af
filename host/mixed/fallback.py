"""Vertex programs that no device can compute: each vertex is an agent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from gpu_pregel.host.agents.codec import decode, encode
from gpu_pregel.host.agents.master_context import MasterContext
from gpu_pregel.host.agents.observers.events import ProgressObserver
from gpu_pregel.host.agents.results import AgentResult
from gpu_pregel.host.agents.run import finish, start
from gpu_pregel.host.agents.stored_runs import reopen
from gpu_pregel.host.agents.vertices import Edge, Vertex
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.mixed.agents import Agents
from gpu_pregel.host.mixed.identity import identity_aggregator, is_stored, open_store
from gpu_pregel.host.mixed.program_vertex import EARLIER_FIGURES, FIGURES, PARAMETERS, ProgramVertex, add_figures
from gpu_pregel.host.programs.checkpoints import Checkpoint, Identity
from gpu_pregel.host.programs.master_compute import MasterCompute, master_compute
from gpu_pregel.host.programs.program import VertexProgram
from gpu_pregel.host.programs.python_state import InterpretedProgram, interpret_program
from gpu_pregel.host.programs.run import Given, ProgramResult, identify
from gpu_pregel.host.superstep.aggregators import Aggregator, InternalAggregator, MasterAggregator
from gpu_pregel.host.superstep.trace import Trace, aggregate_columns, traced_value, without_extremes
from gpu_pregel.kernels.traverse.fields import Fields, named_type

Array = np.ndarray[Any, Any]
_BLOCK_ROWS = 32
"""Rows of the trace that are moved at once to those that later supersteps do not read."""


def run_as_agents(
    graph: Graph,
    program: VertexProgram,
    given: Given,
    agents: Agents,
    *,
    max_supersteps: int | None,
    progress: bool,
    checkpoint: Checkpoint | None,
    resume: bool,
) -> ProgramResult:
    """Run a vertex program whose vertices agents compute; the caller has checked the arguments."""
    interpreted, begin = interpret_program(program), perf_counter()
    identity = None if checkpoint is None else identify(graph, program, given)
    options: dict[str, Any] = {
        **agents.options(graph.num_vertices),
        "aggregators": _aggregators(interpreted, given.parameters, identity),
        "master": partial(_decide, master_compute(program, graph.num_vertices), interpreted, given.parameters),
        "max_supersteps": max_supersteps,
        "on_limit": "return",
    }
    if progress:
        observer = agents.observer
        options["observer"] = [*([observer] if callable(observer) else observer), ProgressObserver()]
    compute = ProgramVertex(interpreted, graph, given.parameters, given.seed)
    vertices = _vertices(graph, given, interpreted.value)
    with ExitStack() as stack:
        if checkpoint is None or identity is None:
            found = finish(start(vertices, compute, **options))
        else:
            store = open_store(checkpoint, stack)
            options |= {"lease_seconds": checkpoint.lease_seconds, "durability": checkpoint.durability}
            options |= {"base_every": checkpoint.every}
            if is_stored(store, checkpoint.run_id, "agents", identity, resume=resume):
                run = reopen(store, checkpoint.run_id, compute, **options)
                run.retry()
                found = finish(run)
            else:
                found = finish(start(vertices, compute, store=store, run_id=checkpoint.run_id, **options))
    return _result(graph, interpreted, found, agents, perf_counter() - begin)


def _vertices(graph: Graph, given: Given, value: Fields) -> Iterator[Vertex]:
    """Return an agent for each vertex, with its edges and where it starts."""
    n, bounds = graph.num_vertices, graph.indptr.tolist()
    active: list[bool | None] = [None] * n
    if given.frontier is not None:
        bits: Array = np.unpackbits(given.frontier.astype("<u8").view(np.uint8), bitorder="little")
        active = bits[:n].astype(bool).tolist()
    columns = [] if given.values is None else [part.tolist() for part in given.values]
    for v in range(n):
        row = slice(bounds[v], bounds[v + 1])
        weights = [1.0] * (row.stop - row.start) if graph.weights is None else graph.weights[row].tolist()
        edges = list(map(Edge, graph.indices[row].tolist(), weights))
        parts = tuple(column[v] for column in columns)
        start_value = None if not parts else parts if value.is_tuple else parts[0]
        yield Vertex(v, [bool(parts), start_value, active[v]], edges)


def _aggregators(
    program: InterpretedProgram, parameters: tuple[Any, ...], identity: Identity | None
) -> dict[str, Aggregator]:
    """Return the aggregators of the agents: the program's, figures, changing parameters, the identity of the run."""
    result: dict[str, Aggregator] = {
        FIGURES: InternalAggregator(add_figures, initial=[], persistent=True),
        EARLIER_FIGURES: MasterAggregator("last", initial=[], persistent=True),
    }
    if program.declaration.master is not None:
        result[PARAMETERS] = InternalAggregator("last", initial=[one.item() for one in parameters], persistent=True)
    if identity is not None:
        result |= identity_aggregator(identity)
    for (name, _, initial), fold in zip(program.aggregates, program.aggregate_folds, strict=True):
        result[name] = Aggregator(fold, initial=initial.item() if isinstance(initial, np.generic) else initial)
    return result


def _decide(
    compute: MasterCompute | None, program: InterpretedProgram, parameters: tuple[Any, ...], master: MasterContext
) -> None:
    """Note the aggregates of a superstep, and do what the program decides: end the run, or change its parameters."""
    figures = master.aggregated(FIGURES)
    if not figures or figures[-1][0] != master.superstep:  # no vertex has applied
        figures.append((master.superstep, 0, 0, 0))
    active = figures[-1][1]
    totals = tuple(master.aggregated(name) for name, *_ in program.aggregates)
    figures[-1] = (*figures[-1], *_traced(program, totals, applied=figures[-1][3]))
    if len(figures) >= _BLOCK_ROWS:  # so that a superstep does not decode and encode the rows of all before it
        master.aggregated(EARLIER_FIGURES).append(encode(figures))
        figures.clear()
    if compute is None:
        return
    has_master = program.declaration.master is not None
    seen = master.aggregated(PARAMETERS) if has_master else []
    if has_master:
        parameters = tuple(dtype.type(one) for (_, dtype), one in zip(program.parameters, seen, strict=True))
    decision = compute.decide(master.superstep, active, totals, parameters)
    seen[:] = [one.item() for one in decision.parameters]
    if decision.halted:
        master.halt()


def _result(
    graph: Graph, program: InterpretedProgram, found: AgentResult, agents: Agents, seconds: float
) -> ProgramResult:
    """Return what a run on a device would return."""
    column: list[Any] = [vertex.value for _, vertex in sorted(found.vertices.items())]
    if found.superstep == 0:  # no vertices
        column = []
    parts = zip(*column, strict=True) if program.value.is_tuple and column else [column] * len(program.value.dtypes)
    arrays = [_array(part, dtype) for part, dtype in zip(parts, program.value.dtypes, strict=True)]
    names = tuple(name for name, *_ in program.aggregates)
    totals = _totals(program, [found.aggregates[name] for name in names])
    stats = {
        "device": "agents",
        "workers": agents.workers_for(graph.num_vertices),
        "seconds": seconds,
        "compile_seconds": 0.0,
    }
    return ProgramResult(
        graph=graph,
        stats=stats,
        trace=Trace(_rows(program, found)),
        values=program.value.pack(arrays),
        status=found.status,
        aggregated=named_type("Aggregated", names)(*totals),
    )


def _array(column: Any, dtype: np.dtype[Any]) -> Array:
    """Return the values of a field as an array; sequences among data are not made dimensions."""
    if dtype.kind != "O":
        return np.array(list(column), dtype)
    result = np.empty(len(column), object)
    for k, value in enumerate(column):
        result[k] = value
    return result


def _totals(program: InterpretedProgram, aggregates: Iterable[Any]) -> list[Any]:
    """Return aggregates of their dtypes."""
    pairs = zip(program.aggregates, aggregates, strict=True)
    return [one if dtype.kind == "O" else dtype.type(one) for (_, dtype, _), one in pairs]


def _traced(program: InterpretedProgram, aggregates: Iterable[Any], *, applied: int) -> list[Any]:
    """Return aggregates as the trace has them."""
    totals = _totals(program, aggregates)
    if not applied:
        combines = [one.combine for one in program.declaration.aggregators.values()]
        totals = without_extremes(combines, totals, [initial for *_, initial in program.aggregates])
    return list(map(traced_value, totals))


def _rows(program: InterpretedProgram, found: AgentResult) -> list[dict[str, Any]]:
    """Return the trace of the program from the figures of its supersteps and the times of those of this process."""
    seconds = {row["superstep"]: row["seconds"] for row in found.trace}
    blocks = [*map(decode, found.aggregates[EARLIER_FIGURES]), found.aggregates[FIGURES]]
    figures = {step: counts for block in blocks for step, *counts in block}
    names = [name for name, *_ in program.aggregates]
    start = _traced(program, [initial for *_, initial in program.aggregates], applied=0)
    rows: list[dict[str, Any]] = []
    sent = 0
    for step in range(max(found.superstep, 1)):
        active, edges, applied, *totals = figures.get(step, (0, 0, 0, *start))
        row = {
            "superstep": step,
            "direction": "push" if step else "init",
            "rule": "only",
            "active_vertices": active,
            "active_edges": edges,
            "messages": sent,
            "applied": applied,
            "seconds": seconds.get(step, 0.0),
            "compile_seconds": 0.0,
            "bytes": 0,
            # Supersteps that an older version has stored have none.
            **(aggregate_columns(names, totals) if totals else {}),
        }
        rows.append(row)
        sent = edges
    return rows
