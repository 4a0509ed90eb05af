"""``run``: a vertex program on a graph, from the call to the result."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, SuperstepLimitError
from gpu_pregel.host.arguments import check_choice, check_integer
from gpu_pregel.host.devices import get_device
from gpu_pregel.host.graphs.graph import Graph, check_graph
from gpu_pregel.host.graphs.results import VertexResult, to_host
from gpu_pregel.host.programs.checkpoints import Checkpoint, CheckpointedRun, Identity, as_checkpoint
from gpu_pregel.host.programs.compiler import fingerprint_program
from gpu_pregel.host.programs.directions import MODES, make_direction_rule
from gpu_pregel.host.programs.factory import compile_for_device, make_state
from gpu_pregel.host.programs.policy import NumericPolicy
from gpu_pregel.host.programs.program import VertexProgram
from gpu_pregel.host.superstep.master import Master
from gpu_pregel.host.superstep.progress import SuperstepProgress, announce_compilation
from gpu_pregel.host.superstep.trace import Trace
from gpu_pregel.kernels.programs.fields import aggregated_type

if TYPE_CHECKING:
    from gpu_pregel.host.stores.store import Store

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, repr=False)
class ProgramResult(VertexResult):
    """What a vertex program left at the vertices.

    Attributes
    ----------
    values : array[n] or tuple of arrays
        The final values by vertex number, in the memory of the device; a tuple if the program's value is one.
    supersteps : int
        Rows of the trace, superstep 0 included.
    status : str
        "completed", "halted" (by ``halt``) or "max_supersteps".
    trace : Trace
        A row per superstep.
    """

    trace: Trace
    values: Any
    status: str

    value_name = "value"

    @property
    def supersteps(self) -> int:
        """Number of supersteps, 0 included."""
        return len(self.trace)

    @cached_property
    def _fields(self) -> tuple[Array, ...]:
        parts = self.values if isinstance(self.values, tuple) else (self.values,)
        return tuple(to_host(part) for part in parts)

    @property
    def _values(self) -> Array:
        if not isinstance(self.values, tuple):
            return self._fields[0]
        names = [(f"value{k}", part.dtype) for k, part in enumerate(self._fields)]
        table: Array = np.empty(len(self._fields[0]), names)
        for (name, _), part in zip(names, self._fields, strict=True):
            table[name] = part
        return table

    def _columns(self) -> dict[str, Array]:
        if not isinstance(self.values, tuple):
            return super()._columns()
        parts = {f"value{k}": part for k, part in enumerate(self._fields)}
        return {"vertex": self._vertex_ids(), **parts}

    def __repr__(self) -> str:
        return f"<ProgramResult: {self.graph.num_vertices:,} values, {self.supersteps} supersteps, {self.status}>"


def run(
    graph: Graph,
    program: VertexProgram,
    *,
    device: str = "auto",
    mode: str = "auto",
    partitions: int = 1,
    threads: int | None = None,
    max_supersteps: int | None = None,
    on_limit: str = "raise",
    deterministic: bool = True,
    progress: bool = False,
    checkpoint: Checkpoint | Store | str | os.PathLike[str] | None = None,
    resume: bool = False,
) -> ProgramResult:
    """Run a vertex program until no vertex is active.

    Parameters
    ----------
    graph : Graph
    program : VertexProgram
    device : {"auto", "cpu", "cuda", "cuda:N", "emulated", "emulated:SEED"}
    mode : {"auto", "push", "pull"}
        "auto" pushes while active edges are below 1/20 of the stored ones, and pulls otherwise.
    partitions : int, default 1
        Vertex ranges that the edges are cut into.
    threads : int, optional
        Default: the processors that this process may use.
    max_supersteps : int, optional
        3 runs the supersteps 0, 1 and 2. Reaching it is an error unless the program is ``active="always"``.
    on_limit : {"raise", "return"}
        "return" gives the partial result instead of the error.
    deterministic : bool, default True
        False lets floating-point sums push, in an order that differs from run to run.
    progress : bool, default False
        Show the superstep on stderr, and say so when kernels have to be compiled.
    checkpoint : Checkpoint, store or path, optional
        Save the run's state after every so many supersteps; a path, the SQLite file there, means ``Checkpoint(path)``.
    resume : bool, default False
        Go on from the newest checkpoint of the run, or begin anew if it has none. Without it, a run that is in the
        store already is refused. ``halt``, limits, ``mode``, ``partitions`` and ``threads`` may be others than before;
        ``halt`` is asked again about the checkpoint itself, so that a run that had ended returns at once.

    Returns
    -------
    ProgramResult
        With ``values``, ``supersteps``, ``status`` and ``trace``.

    Raises
    ------
    ProgramError
        A function of the program cannot be compiled, or returns what its declared dtype cannot hold.
    SuperstepLimitError
        ``max_supersteps`` was reached; ``error.result`` is the partial result.
    ArgumentError
        ``mode="push"`` is forced on a program that cannot push, say.
    CheckpointError
        The newest checkpoint is of another graph or program than these.
    ClaimedError
        Another program has the run.
    StoreError
        The store cannot be read or written, or is damaged; the checkpoints before are whole.

    Examples
    --------
    >>> import gpu_pregel as gp, numpy as np
    >>> hops = gp.VertexProgram(
    ...     value=np.int64,
    ...     init=lambda ctx: 0 if ctx.vertex == 0 else -1,
    ...     initially_active=lambda ctx: ctx.vertex == 0,
    ...     message=lambda value, ctx: value + 1,
    ...     combine="min",
    ...     apply=lambda value, incoming, ctx: incoming if value < 0 else value,
    ... )
    >>> gp.run(gp.Graph.from_edgelist([0, 1, 2], [1, 2, 3]), hops).values.tolist()
    [0, 1, 2, 3]
    """
    check_graph(graph)
    if not isinstance(program, VertexProgram):
        raise ArgumentTypeError(f"program must be a gp.VertexProgram, not {type(program).__name__}")
    check_choice("mode", mode, MODES)
    check_choice("on_limit", on_limit, ("raise", "return"))
    check_integer("partitions", partitions, 1, 1 << 16)
    if max_supersteps is not None:
        check_integer("max_supersteps", max_supersteps, 1, 1 << 62)
    target = get_device(device, threads=threads)
    if checkpoint is None and resume:
        raise ArgumentError("resume=True needs checkpoint=, the store to resume from")
    opened: AbstractContextManager[CheckpointedRun | None] = nullcontext()
    if checkpoint is not None:
        saving, identity = as_checkpoint(checkpoint), _identify(graph, program)
        opened = CheckpointedRun(saving, identity, resume=bool(resume), max_supersteps=max_supersteps)
    with announce_compilation(shown=progress), opened as checkpoints, SuperstepProgress(shown=progress) as bar:
        compiled = compile_for_device(target, graph, program)
        directions = make_direction_rule(
            program, compiled, mode=mode, deterministic=deterministic, stored_edges=graph.num_edges
        )
        state = make_state(
            *(target, graph, compiled),
            always=program.active == "always",
            partitions=partitions,
            with_pull=mode != "push",
            push_limit=directions.push_limit,
        )
        journal, start = (None, None) if checkpoints is None else checkpoints.begin(state)
        policy = NumericPolicy(
            state,
            directions,
            always=program.active == "always",
            halt=_halt_function(program),
            start=None if start is None else (start.plan, start.totals),
        )
        master = Master(
            policy,
            max_supersteps=max_supersteps,
            observe=bar.observe,
            journal=journal,
            superstep=0 if start is None else start.supersteps,
            trace=() if start is None else start.rows,
        )
        status = master.run()
    seconds = sum(row["seconds"] for row in master.trace)
    stats = {"device": target.name, "threads": target.threads, "partitions": partitions, "seconds": seconds}
    values = state.values if compiled.value.is_tuple else state.values[0]
    result = ProgramResult(graph=graph, stats=stats, trace=Trace(master.trace), values=values, status=status)
    if status == "max_supersteps" and on_limit == "raise":
        raise SuperstepLimitError(max_supersteps, result)
    return result


def _halt_function(program: VertexProgram) -> Callable[[tuple[Any, ...]], Any] | None:
    """Return the program's ``halt`` as a function of a plain tuple of aggregates."""
    halt, aggregated = program.halt, aggregated_type(tuple(program.aggregators))
    return None if halt is None else lambda totals: halt(aggregated(*totals))


def _identify(graph: Graph, program: VertexProgram) -> Identity:
    """What a checkpoint must be of, to go on from it with this graph and program."""
    weights = graph.weights
    fingerprint = fingerprint_program(program, has_weights=weights is not None)
    if not fingerprint.is_complete:
        raise ArgumentError(
            f"checkpoint= cannot be: the program's functions use a {fingerprint.unknown[0]}, which another process "
            f"cannot compare with its own; use numbers, strings, arrays, tuples and Python functions only"
        )
    return Identity(
        vertices=graph.num_vertices,
        edges=graph.num_edges,
        directed=graph.is_directed,
        weights=None if weights is None else str(weights.dtype),
        content=f"{graph.content_hash:016x}",
        program=fingerprint.hexdigest(),
    )
