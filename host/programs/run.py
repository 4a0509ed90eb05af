"""Runs a vertex program on a graph: the public function ``run`` and its result."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import numpy as np
from numba.core.errors import NumbaError

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, GpuPregelError, SuperstepLimitError
from gpu_pregel.host.arguments import check_choice, check_flag, check_integer
from gpu_pregel.host.devices import DeviceName, get_device
from gpu_pregel.host.devices.cpu import CpuDevice
from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.graphs.edge_arrays import to_host
from gpu_pregel.host.graphs.graph import Graph, GraphLike, as_graph
from gpu_pregel.host.graphs.results import VertexResult
from gpu_pregel.host.programs.checkpoints import Checkpoint, CheckpointedRun, Identity, ResumePoint, as_checkpoint
from gpu_pregel.host.programs.compiler import CompiledProgram, depends_on_order, fingerprint_program
from gpu_pregel.host.programs.direction_costs import direction_costs
from gpu_pregel.host.programs.directions import DirectionRule, make_direction_rule
from gpu_pregel.host.programs.factory import compile_for_device, make_state
from gpu_pregel.host.programs.initial_values import initial_values
from gpu_pregel.host.programs.master_compute import master_compute
from gpu_pregel.host.programs.parameters import parameter_values
from gpu_pregel.host.programs.policy import NumericPolicy
from gpu_pregel.host.programs.program import VertexProgram
from gpu_pregel.host.programs.state import ProgramState
from gpu_pregel.host.superstep.failures import explaining_failures
from gpu_pregel.host.superstep.journal import Journal
from gpu_pregel.host.superstep.master import Master
from gpu_pregel.host.superstep.progress import SuperstepProgress, announce_compilation
from gpu_pregel.host.superstep.trace import Trace, stats_of
from gpu_pregel.host.traverse.directions import MODES, Mode
from gpu_pregel.host.traverse.frontier import GPU_FROM, frontier_words
from gpu_pregel.kernels.library.compile_clock import compile_seconds
from gpu_pregel.kernels.traverse.fields import named_type

if TYPE_CHECKING:
    from gpu_pregel.host.stores.store import Store

Array = np.ndarray[Any, Any]
Result = TypeVar("Result", bound="ProgramResult")


@dataclass(frozen=True, eq=False, repr=False)
class ProgramResult(VertexResult):
    """The values of a vertex program's run.

    Attributes
    ----------
    values : array[n] or tuple of arrays
        The final values by vertex number, in device memory. A tuple of arrays if the program's value is a tuple; a
        named tuple, as in ``values.hub``, if its fields have names.
    supersteps : int
        Number of supersteps, including superstep 0.
    status : str
        "completed" (no vertex is active), "halted" (by ``halt`` or ``master``) or "max_supersteps".
    aggregated : named tuple of scalars
        The aggregates of the last superstep, by the names of the program's ``aggregators``.
    trace : Trace
        One row per superstep.
    """

    trace: Trace
    values: Any
    status: str
    aggregated: Any

    value_name = "value"

    if TYPE_CHECKING:

        @property
        def agents(self) -> Any:
            """Only a ``MixedResult`` has them, which ``run`` returns with ``gp.Agents(compute)``."""

    @property
    def supersteps(self) -> int:
        """Number of supersteps, including superstep 0."""
        return len(self.trace)

    @cached_property
    def _parts(self) -> dict[str, Array]:
        """The fields of a tuple value by name, in host memory."""
        names = getattr(self.values, "_fields", [f"value{k}" for k in range(len(self.values))])
        return {name: to_host(part) for name, part in zip(names, self.values, strict=True)}

    @property
    def _device_values(self) -> Any:
        return self._values if isinstance(self.values, tuple) else self.values

    @cached_property
    def _values(self) -> Array:
        if not isinstance(self.values, tuple):
            return to_host(self.values)
        dtypes = [(name, part.dtype) for name, part in self._parts.items()]
        table: Array = np.empty(self.graph.num_vertices, dtypes)
        for name, part in self._parts.items():
            table[name] = part
        return table

    def __getitem__(self, id: Any) -> Any:
        """Return the value of the vertex with this id, a named tuple if its fields have names; see ``VertexResult``."""
        found = super().__getitem__(id)
        return self.values._make(found) if isinstance(found, tuple) and hasattr(self.values, "_make") else found

    def to_dict(self) -> dict[Any, Any]:
        """Return a dict from the user's ids to values, which are named tuples if their fields have names."""
        found = super().to_dict()
        make = getattr(self.values, "_make", None)
        return found if make is None else {one: make(value) for one, value in found.items()}

    def _columns(self) -> dict[str, Array]:
        if not isinstance(self.values, tuple):
            return super()._columns()
        return {"vertex": self._vertex_ids(), **self._parts}

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__}: {self.graph.num_vertices:,} values, {self.supersteps} supersteps, {self.status}>"
        )


def run(
    graph: GraphLike,
    program: VertexProgram,
    *,
    parameters: Mapping[str, Any] | None = None,
    initial: Any = None,
    frontier: Any = None,
    seed: int = 0,
    device: DeviceName = "auto",
    mode: Mode = "auto",
    partitions: int = 1,
    threads: int | None = None,
    max_supersteps: int | None = None,
    on_limit: Literal["raise", "return"] = "raise",
    deterministic: bool = True,
    progress: bool = False,
    checkpoint: Checkpoint | Store | str | os.PathLike[str] | None = None,
    resume: bool = False,
    check: bool = False,
) -> ProgramResult:
    """Run a vertex program on a device: :func:`gpu_pregel.run` for programs of numbers, without agents."""
    graph = as_graph(graph)
    check_options(program, mode, check, on_limit, partitions, max_supersteps)
    given = given_of(graph, program, parameters, initial, frontier, seed)
    device, reason = graph._choose_device("a vertex program", GPU_FROM, device, threads)
    target = get_device(device, threads=threads)
    compiled_before = compile_seconds()
    opened = _open_checkpoint(checkpoint, resume, max_supersteps, lambda: identify(graph, program, given, partitions))
    master = None
    with (
        announce_compilation(shown=progress),
        opened as checkpoints,
        explaining_failures(lambda: _explain_failure(master, checkpoints)),
    ):
        ready = prepare(graph, program, given, target, mode, partitions, deterministic=deterministic, check=check)
        state = ready.state
        journal, resumed = (None, None) if checkpoints is None else checkpoints.begin(state)
        compute = master_compute(program, graph.num_vertices)
        policy = NumericPolicy(state, program, ready.directions, given.parameters, compute)
        if resumed is not None:
            policy.resume(resumed.supersteps - 1, resumed.plan, resumed.totals, resumed.decision)
        with SuperstepProgress(shown=progress) as bar:
            master = _make_master(policy, journal, resumed, max_supersteps, bar.observe)
            try:
                status = master.run()
            except (GpuPregelError, NumbaError, MemoryError):
                raise
            except Exception as error:
                if not isinstance(target, CpuDevice) or check:
                    raise
                if resumed is not None:
                    error.add_note(
                        f"in superstep {master.superstep}: run again with check=True, which names the vertex"
                    )
                    raise
                options = (mode, partitions, max_supersteps)
                _name_vertex(graph, program, given, target, options, deterministic=deterministic)
                raise
        result = ProgramResult(
            graph=graph,
            stats=stats_of(target, reason, master.trace, compile_seconds() - compiled_before, partitions=partitions),
            trace=Trace(master.trace),
            values=ready.compiled.value.pack(state.values),
            status=status,
            aggregated=named_type("Aggregated", tuple(program.aggregators))(*policy.totals),
        )
    return within_limit(result, program, on_limit, max_supersteps)


def _name_vertex(
    graph: Graph,
    program: VertexProgram,
    given: Given,
    target: Device,
    options: tuple[Mode, int, int | None],
    *,
    deterministic: bool,
) -> None:
    """Repeat a run in which a function has raised on the CPU, its last superstep in Python, which names the vertex."""
    mode, partitions, max_supersteps = options
    ready = prepare(
        graph, program, given, target, mode, partitions, deterministic=deterministic, check=False, repeats=True
    )
    compute = master_compute(program, graph.num_vertices)
    policy = NumericPolicy(ready.state, program, ready.directions, given.parameters, compute)
    _make_master(policy, None, None, max_supersteps, lambda *_, **__: None).run()


def within_limit(result: Result, program: VertexProgram, on_limit: str, max_supersteps: int | None) -> Result:
    """Return a result, or raise the error that has it if the run should have ended before its limit."""
    if result.status == "max_supersteps" and on_limit == "raise" and program.active != "always":
        raise SuperstepLimitError(max_supersteps, result)
    return result


class ReadyProgram(NamedTuple):
    """A program that is ready to run on a device: compiled, with its state and the rule of its directions."""

    compiled: CompiledProgram
    directions: DirectionRule
    state: ProgramState


def prepare(
    graph: Graph,
    program: VertexProgram,
    given: Given,
    target: Device,
    mode: Mode,
    partitions: int,
    *,
    deterministic: bool,
    check: bool,
    repeats: bool = False,
) -> ReadyProgram:
    """Compile a program for a device and make its state, which starts from what is given.

    With ``repeats``, as with ``check``, a superstep that fails on the CPU is repeated in Python.
    """
    compiled = compile_for_device(target, graph, program, check=check)
    costs = direction_costs(target.gpu, compiled, graph)
    directions = make_direction_rule(
        *(program, compiled, graph.num_stored_edges),
        vertices=graph.num_vertices,
        mode=mode,
        deterministic=deterministic,
        costs=costs,
    )
    state = make_state(
        *(target, graph, compiled),
        always=program.active == "always",
        partitions=partitions,
        with_pull=mode != "push",
        push_limit=directions.push_limit,
        checked=program if check or repeats else None,
    )
    state.set_parameters(given.parameters, given.seed)
    state.start_from(given.values, given.frontier)
    return ReadyProgram(compiled, directions, state)


class Given(NamedTuple):
    """What a run starts from, checked: parameters, values and frontier (a bitmap) if they were given, and the seed."""

    parameters: tuple[Any, ...]
    values: tuple[Array, ...] | None
    frontier: Array | None
    seed: int = 0


def given_of(
    graph: Graph, program: VertexProgram, parameters: Mapping[str, Any] | None, initial: Any, frontier: Any, seed: int
) -> Given:
    """Check these arguments of a run."""
    return Given(
        parameter_values(program.declared_parameters, parameters),
        None if initial is None else initial_values(graph, program, initial),
        None if frontier is None else frontier_words(graph, frontier),
        check_integer("seed", seed, 0, (1 << 63) - 1),
    )


def check_options(
    program: object, mode: object, check: object, on_limit: object, partitions: object, max_supersteps: object
) -> None:
    """Raise unless these arguments of :func:`run` are valid."""
    if not isinstance(program, VertexProgram):
        raise ArgumentTypeError(f"program must be a gp.VertexProgram, not {type(program).__name__}")
    check_choice("mode", mode, MODES)
    check_flag("check", check)
    check_choice("on_limit", on_limit, ("raise", "return"))
    check_integer("partitions", partitions, 1, 1 << 16)
    if max_supersteps is not None:
        check_integer("max_supersteps", max_supersteps, 1, 1 << 62)


def _make_master(
    policy: NumericPolicy,
    journal: Journal | None,
    resumed: ResumePoint | None,
    max_supersteps: int | None,
    observe: Callable[..., None],
) -> Master[Any, Any, Any]:
    """Return the master of the run, which continues from the checkpoint if there is one."""
    return Master(
        policy,
        max_supersteps=max_supersteps,
        observe=observe,
        journal=journal,
        superstep=0 if resumed is None else resumed.supersteps,
        trace=() if resumed is None else resumed.rows,
    )


def _open_checkpoint(
    checkpoint: Checkpoint | Store | str | os.PathLike[str] | None,
    resume: bool,
    max_supersteps: int | None,
    identify: Callable[[], Identity],
) -> AbstractContextManager[CheckpointedRun | None]:
    """Return a context in which the run is claimed in its store, or an empty context without a store."""
    if checkpoint is not None:
        saving = as_checkpoint(checkpoint)
        return CheckpointedRun(saving, identify(), resume=bool(resume), max_supersteps=max_supersteps)
    if resume:
        raise ArgumentError("resume=True needs checkpoint=, the store to resume from")
    return nullcontext()


def _explain_failure(master: Master[Any, Any, Any] | None, checkpoints: CheckpointedRun | None) -> str:
    """Return how far a run has come, what is saved, and how to continue.

    ``master`` is None until the run begins, ``checkpoints`` if it has none.
    """
    if master is None and checkpoints is None:
        return "The run had not begun."
    finished = "begun" if master is None else f"finished {master.superstep:,} superstep{'s' * (master.superstep != 1)}"
    return f"The run had {'not ' * (master is None)}{finished}; {_what_is_saved(checkpoints)}"


def _what_is_saved(checkpoints: CheckpointedRun | None) -> str:
    if checkpoints is None:
        return "nothing is saved: run again; a run of gp.run with checkpoint= can be resumed."
    if checkpoints.head < 0:
        return "the first checkpoint had not been saved: run again with the same arguments and resume=True."
    return (
        f"the newest checkpoint holds supersteps 0 to {checkpoints.head:,}: run again with the same arguments and "
        f"resume=True, on this device or another."
    )


def identify(graph: Graph, program: VertexProgram, given: Given, partitions: int | None = None) -> Identity:
    """Return the identity that a checkpoint must have to be resumed with this graph, program and start.

    ``partitions`` is None for agents, which have none.
    """
    weights = graph.weights
    weight = None if weights is None else weights.dtype
    fingerprint = fingerprint_program(program, has_weights=weights is not None)
    if not fingerprint.is_complete:
        raise ArgumentError(
            f"checkpoint= is not possible: the program's functions use a {fingerprint.unknown[0]}, which cannot be "
            f"compared between processes; use only numbers, strings, arrays, tuples and Python functions"
        )
    if partitions is not None and not depends_on_order(program, weight):
        partitions = None
    return Identity(
        vertices=graph.num_vertices,
        edges=graph.num_stored_edges,
        directed=graph.is_directed,
        weights=None if weight is None else str(weight),
        content=f"{graph.content_hash:016x}",
        program=fingerprint.hexdigest() + (" with master" if program.master is not None else ""),
        parameters={
            parameter.name: repr(value.item())
            for parameter, value in zip(program.declared_parameters, given.parameters, strict=True)
        },
        initial=None if given.values is None else _digest(given.values),
        frontier=None if given.frontier is None else _digest((given.frontier,)),
        seed=given.seed,
        partitions=partitions,
    )


def _digest(arrays: tuple[Array, ...]) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
