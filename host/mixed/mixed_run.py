"""Runs of a vertex program with agents beside its vertices."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gpu_pregel.errors import (
    AgentsFailedError,
    ArgumentError,
    ArgumentTypeError,
    UnknownVertexError,
)
from gpu_pregel.host.agents.agent_run import AgentRun
from gpu_pregel.host.agents.observers.events import ProgressObserver
from gpu_pregel.host.agents.options import RunOptions, make_options
from gpu_pregel.host.agents.policy import AgentPolicy
from gpu_pregel.host.agents.recovery import RecoveredRun, RunKind, begin, begin_from_store
from gpu_pregel.host.agents.results import AgentResult
from gpu_pregel.host.agents.vertices import Vertex
from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.mixed.agent_context import AgentTypes
from gpu_pregel.host.mixed.agent_vertex import make_compute
from gpu_pregel.host.mixed.agents import Agents
from gpu_pregel.host.mixed.format import MixedFormat, Restored
from gpu_pregel.host.mixed.identity import identity_aggregator, is_stored, open_store
from gpu_pregel.host.mixed.numeric_side import NumericSide
from gpu_pregel.host.mixed.policy import MixedPolicy
from gpu_pregel.host.programs.checkpoints import Checkpoint
from gpu_pregel.host.programs.compiler import program_fields
from gpu_pregel.host.programs.master_compute import master_compute
from gpu_pregel.host.programs.policy import NumericPolicy
from gpu_pregel.host.programs.program import VertexProgram
from gpu_pregel.host.programs.python_state import interpret_program
from gpu_pregel.host.programs.run import Given, ProgramResult, ReadyProgram, identify, prepare
from gpu_pregel.host.superstep.failures import explaining_failures
from gpu_pregel.host.superstep.interrupts import stop_on_interrupt
from gpu_pregel.host.superstep.progress import announce_compilation
from gpu_pregel.host.superstep.trace import Trace, stats_of
from gpu_pregel.host.traverse.directions import Mode
from gpu_pregel.kernels.library.compile_clock import compile_seconds
from gpu_pregel.kernels.traverse.fields import named_type

if TYPE_CHECKING:
    pass

Array = np.ndarray[Any, Any]

_AFTER_FAILURE = "Mend the function and pass resume=True: agents that have ended are not computed again."
_NOTHING_SAVED = "Nothing is saved: with checkpoint=, a mended function could go on from here by resume=True."


@dataclass(frozen=True, eq=False, repr=False)
class MixedResult(ProgramResult):
    """The result of a vertex program's run with agents.

    If the status is "failed", "interrupted" or "stopped", a superstep may be held: then ``values`` are what is in the
    store. Without a checkpoint they have what the program has computed in it, and not yet what its agents do.

    Attributes
    ----------
    agents : AgentResult
        The agents, with the state of each as its value, their failures and interrupts.
    status : str
        As of :class:`ProgramResult`, or "partial" (some agents failed), "interrupted" (agents wait for answers),
        "stopped" or "cancelled".
    """

    agents: AgentResult


@dataclass(frozen=True)
class MixedRun:
    """A run with agents whose arguments have been checked.

    Parameters
    ----------
    graph : Graph
    program : VertexProgram
        A ``WakingProgram`` if vertices wake agents.
    given : Given
    agents : Agents
    target : Device
    reason : str
        Why the device was chosen.
    mode : str
    partitions : int
    deterministic, check : bool
    max_supersteps : int or None
    progress : bool
    checkpoint : Checkpoint or None
    resume : bool
    """

    graph: Graph
    program: VertexProgram
    given: Given
    agents: Agents
    target: Device
    reason: str
    mode: Mode
    partitions: int
    deterministic: bool
    check: bool
    max_supersteps: int | None
    progress: bool
    checkpoint: Checkpoint | None
    resume: bool

    def run(self) -> MixedResult:
        """Run to the end."""
        compiled_before = compile_seconds()
        states = _states(self.graph, self.agents.vertices)
        with (
            ExitStack() as stack,
            announce_compilation(shown=self.progress),
            explaining_failures(lambda: "Its last commit is in the store." if self.checkpoint else "Nothing is saved."),
        ):
            ready = prepare(
                *(self.graph, self.program, self.given, self.target, self.mode, self.partitions),
                deterministic=self.deterministic,
                check=self.check,
            )
            numbers = np.array(sorted(states), np.int64)
            side = NumericSide(
                self.graph,
                interpret_program(self.program, {name: dtype for name, dtype, _ in ready.compiled.aggregates}),
                ready.state,
                self.given.parameters,
                numbers,
                seed=self.given.seed,
                neighbors=self.agents.neighbors,
                combined=self.agents.combined,
            )
            compute = master_compute(self.program, self.graph.num_vertices)
            policy = NumericPolicy(ready.state, self.program, ready.directions, self.given.parameters, compute)
            recovered, options, packs = self._recover(states, stack)
            beside = partial(self._beside, ready, side, policy, recovered, packs)
            run = AgentRun(options, recovered, beside)
            with run:
                if self.resume:
                    run.retry()
                with stop_on_interrupt(run.stop):
                    while run.step():
                        pass
                found = run.result()
            values = _committed_values(ready, self.target, policy, found, packs)
            return self._result(values, policy, found, compile_seconds() - compiled_before)

    def _recover(self, states: dict[int, Any], stack: ExitStack) -> tuple[RecoveredRun, RunOptions, MixedFormat | None]:
        """Begin the run, or read it from its store; return its options and the format of its journal, too."""
        types = AgentTypes(
            *program_fields(self.program),
            tuple(self.program.aggregators),
            self.graph.num_vertices,
            frozenset(self.graph.to_ids(np.array(sorted(states), np.int64)).tolist()),
        )
        options: dict[str, Any] = {
            **self.agents.options(self.graph.num_vertices),
            "max_supersteps": self.max_supersteps,
            "on_limit": "return",
            "on_missing": "error",
        }
        if self.progress:
            observer = self.agents.observer
            options["observer"] = [*([observer] if callable(observer) else observer), ProgressObserver()]
        compute = make_compute(self.agents.compute, types)  # type: ignore[arg-type]
        vertices = _vertices(self.graph, states)
        checkpoint = self.checkpoint
        if checkpoint is None:
            checked = make_options("run", compute, options)
            return begin(vertices, checked), checked, None
        identity = identify(self.graph, self.program, self.given, self.partitions)
        chosen = hashlib.sha256(np.array(sorted(states), np.int64).tobytes()).hexdigest() if states else None
        store = open_store(checkpoint, stack)
        options |= {"aggregators": identity_aggregator(identity, chosen), "run_id": checkpoint.run_id, "store": store}
        options |= {"lease_seconds": checkpoint.lease_seconds, "durability": checkpoint.durability}
        checked = make_options("run", compute, options)
        formats: list[MixedFormat] = []

        def make_format(state: Any) -> MixedFormat:
            formats.append(MixedFormat(state))
            return formats[-1]

        kind = RunKind(
            "mixed",
            make_format,
            {"every": checkpoint.every, "keep": checkpoint.keep, "is_due": _is_due, "begin_base": None},
        )
        if is_stored(store, checkpoint.run_id, "mixed", identity, chosen, resume=self.resume):
            checked.override = [name for name in ("retry", "on_failure") if name in options]
            recovered = begin_from_store(store, checkpoint.run_id, checked, takeover=False, kind=kind)
        else:
            recovered = begin(vertices, checked, kind)
        return recovered, checked, formats[-1]

    def _beside(
        self,
        ready: ReadyProgram,
        side: NumericSide,
        numeric: NumericPolicy,
        recovered: RecoveredRun,
        format: MixedFormat | None,
        agents: AgentPolicy,
    ) -> MixedPolicy:
        """Return the policy of both sides, with the numeric side as it was when the run was stored."""
        fields = ready.compiled.value.names or [f"value{k}" for k in range(len(ready.compiled.value.dtypes))]
        if format is not None:
            fields = fields if ready.compiled.value.is_tuple else ["value"]
            format.attach(ready.state, side, fields, recovered.blobs, recovered.base_size)
        begun_at: int | None = None
        if recovered.blobs:
            where = f"run {recovered.run_id!r}, superstep {recovered.superstep - 1}"
            restored = Restored(recovered.blobs, where, recovered.superstep)
            compiled = ready.compiled
            totals = restored.restore(ready.state, compiled.message.dtypes, len(compiled.aggregates))
            numeric.resume(recovered.superstep - 1, restored.activity, totals, restored.decision)
            side.resume(recovered.superstep - 1, totals, restored.woken, restored.arrived)
            side.set_parameters(numeric.parameters)
            side.resume_inputs(restored.inputs)
            begun_at = restored.begun_at
            recovered.rows[:] = restored.rows
        return MixedPolicy(
            *(numeric, agents, side, format),
            has_wake=self.program.wake is not None,
            max_lag=self.agents.max_lag if self.agents.workers_for(self.graph.num_vertices) else 0,
            max_supersteps=self.max_supersteps,
            begun_at=begun_at,
        )

    def _result(self, values: Any, policy: NumericPolicy, found: AgentResult, compiled: float) -> MixedResult:
        """Return the result of a run that has ended or is held, or raise the error that has it."""
        names = tuple(self.program.aggregators)
        result = MixedResult(
            graph=self.graph,
            stats={
                **stats_of(self.target, self.reason, found.trace, compiled, partitions=self.partitions),
                "workers": self.agents.workers_for(self.graph.num_vertices),
            },
            trace=Trace(list(found.trace)),
            values=values,
            status=found.status,
            aggregated=named_type("Aggregated", names)(*policy.totals),
            agents=found,
        )
        if found.status == "failed":
            error = AgentsFailedError(found)
            error.result = result
            error.add_note(_AFTER_FAILURE if self.checkpoint else _NOTHING_SAVED)
            raise error
        return result


def _committed_values(
    ready: ReadyProgram, target: Device, policy: NumericPolicy, found: AgentResult, packs: MixedFormat | None
) -> Any:
    """Return the values after the last committed superstep; the kernels of a held one have changed those of the run."""
    value, stored = ready.compiled.value, None
    if packs is not None and policy.superstep >= len(found.trace):
        stored = packs.stored([f"value{k}" for k in range(len(value.dtypes))])
    if stored is None:
        return value.pack(ready.state.values)
    arrays = [np.frombuffer(data, dtype) for data, dtype in zip(stored.values(), value.dtypes, strict=True)]
    return value.pack([target.upload(array.copy()) for array in arrays])


def _is_due(folded: Any) -> bool:
    """Whether a superstep is committed at once, as agents are computed in it or after it."""
    return bool(folded.change.has_agents)


def _states(graph: Graph, given: Any) -> dict[int, Any]:
    """Return the state of each vertex that is an agent from the start, by number."""
    if given is None:
        return {}
    if callable(given):
        ids = graph.to_ids(np.arange(graph.num_vertices)).tolist()
        chosen = [(v, given(one)) for v, one in enumerate(ids)]
        for v, answer in chosen:
            if not isinstance(answer, (bool, np.bool_)):
                raise ArgumentTypeError(f"vertices({ids[v]!r}) returns {answer!r:.80}, but must return True or False")
        return {v: None for v, answer in chosen if answer}
    found: dict[int, Any] = {}
    for one, state in given.items() if isinstance(given, Mapping) else ((one, None) for one in given):
        if isinstance(state, Vertex):
            raise ArgumentTypeError(f"the state of vertex {one!r} must be data, not a Vertex: pass its value")
        try:
            number = graph.vertex(one)
        except (UnknownVertexError, TypeError):
            raise ArgumentError(f"vertices has {one!r}, which is not in the graph: pass ids of the graph") from None
        found[number] = state
    return found


def _vertices(graph: Graph, states: dict[int, Any]) -> Iterator[Vertex]:
    """Return an agent for each vertex that is one from the start."""
    numbers = np.array(sorted(states), np.int64)
    for v, one in zip(numbers.tolist(), graph.to_ids(numbers).tolist(), strict=True):
        yield Vertex(one, states[v])
