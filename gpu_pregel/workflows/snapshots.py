"""The states of threads: the last one, the one of a checkpoint, and the history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from gpu_pregel.errors import ArgumentError
from gpu_pregel.host.agents.codec import id_key
from gpu_pregel.host.agents.recovery import RecoveredRun, read_run
from gpu_pregel.host.agents.state_history import read_states
from gpu_pregel.host.arguments import check_integer
from gpu_pregel.workflows.calls import thread_of
from gpu_pregel.workflows.commands import Interrupt
from gpu_pregel.workflows.graph_runs import GraphRuns, configurable_of
from gpu_pregel.workflows.questions import open_questions
from gpu_pregel.workflows.stored_threads import StoredThread, checkpoint_id
from gpu_pregel.workflows.task_messages import active_vertices
from gpu_pregel.workflows.tasks import node_of

if TYPE_CHECKING:
    from gpu_pregel.host.stores.rows import CommitRow, RunRow


@dataclass(frozen=True)
class TaskSnapshot:
    """A task of the next superstep.

    Attributes
    ----------
    name : str
        The node.
    id : str
        The node, and the place of a task that was sent.
    error : str or None
        Why its last attempt failed.
    interrupts : tuple of Interrupt
        The question that it waits for.
    """

    name: str
    id: str
    error: str | None = None
    interrupts: tuple[Interrupt, ...] = ()


@dataclass(frozen=True)
class StateSnapshot:
    """The state of a thread after a superstep.

    Attributes
    ----------
    values : dict
    next : tuple of str
        The nodes of the next superstep.
    config : dict
        Names this state.
    metadata : dict
        "superstep", "status" and "run".
    created_at : str or None
    parent_config : dict or None
        The state before.
    tasks : tuple of TaskSnapshot
        Of the next superstep.
    interrupts : tuple of Interrupt
        The open questions of these tasks.
    """

    values: dict[str, Any]
    next: tuple[str, ...]
    config: dict[str, Any]
    metadata: dict[str, Any]
    created_at: str | None
    parent_config: dict[str, Any] | None
    tasks: tuple[TaskSnapshot, ...]
    interrupts: tuple[Interrupt, ...] = field(default=())


def get_state(runs: GraphRuns, config: Mapping[str, Any]) -> StateSnapshot:
    """Return the last state of a thread, or the one that the config names."""
    thread = thread_of(runs, config)
    row = _current(thread)
    wanted = configurable_of(config).get("checkpoint_id")
    run, superstep = (row.id, row.head) if wanted is None else thread.find(str(wanted))
    commits = {one.step: one for one in thread.store.history(run)}
    is_last = (run, superstep) == (row.id, row.head)
    return _snapshot(runs, thread, run, superstep, commits, read_run(thread.store, run, None if is_last else superstep))


def get_history(
    runs: GraphRuns, config: Mapping[str, Any], limit: int | None, before: Mapping[str, Any] | None
) -> Iterator[StateSnapshot]:
    """Yield the states of a thread, the latest first."""
    thread = thread_of(runs, config)
    if limit is not None:
        check_integer("limit", limit, 0, 1 << 62)
    row = _current(thread)
    start = configurable_of(config if before is None else before).get("checkpoint_id")
    if before is not None and start is None:
        raise ArgumentError("before must be the config of a state of the thread, with a checkpoint_id")
    run, superstep = (row.id, row.head) if start is None else thread.find(str(start))
    places = _places(thread, run, superstep)
    reader = _StateReader(thread)
    states = (_snapshot(runs, thread, *place, reader.read(*place[:2], (row.id, row.head))) for place in places)
    first = int(before is not None)
    return islice(states, first, None if limit is None else first + limit)


def _current(thread: StoredThread) -> RunRow:
    row = thread.current()
    if row is None:
        raise ArgumentError(f"there is no thread {thread.name!r} in {thread.store.name}")
    return row


def _places(thread: StoredThread, run: str, superstep: int) -> Iterator[tuple[str, int, dict[int, CommitRow]]]:
    """Yield run, superstep and commits of the run of each state that leads to one, the latest first."""
    while True:
        parent = thread.store.run(run).parent
        commits = {one.step: one for one in thread.store.history(run)}
        steps = {one for one in commits if one <= superstep}
        if parent is None or not steps:  # otherwise a fork begins with the state that it was forked from
            steps.add(-1 if parent is None else parent[1])
        for step in sorted(steps, reverse=True):
            yield run, step, commits
        if parent is None:
            return
        run, superstep = parent


class _StateReader:
    """Reads states of a thread, the latest first: many at once, as one is made of those before it."""

    def __init__(self, thread: StoredThread) -> None:
        self._store, self._run = thread.store, ""
        self._states: dict[int, RecoveredRun] = {}

    def read(self, run: str, superstep: int, last: tuple[str, int]) -> RecoveredRun:
        """Return the state after a superstep; that of the ``last`` one with what has begun since."""
        if (run, superstep) == last:
            return read_run(self._store, run)
        if run != self._run or superstep not in self._states:
            self._run = run
            self._states = {one.superstep - 1: one for one in read_states(self._store, run, superstep)}
        return self._states[superstep]


def _snapshot(
    runs: GraphRuns,
    thread: StoredThread,
    run: str,
    superstep: int,
    commits: Mapping[int, CommitRow],
    found: RecoveredRun,
) -> StateSnapshot:
    tasks, commit, forked = _tasks(runs, found), commits.get(superstep), thread.store.run(run).parent
    steps = [step for step in (*commits, *([-1] if forked is None else [])) if step < superstep]
    parent = (run, max(steps)) if steps else forked
    return StateSnapshot(
        values=runs.values(found.state.aggregates, runs.graph.output),
        next=tuple(dict.fromkeys(task.name for task in tasks)),
        config=_config(thread, run, superstep),
        metadata={"superstep": superstep, "status": found.status, "run": run},
        created_at=None if commit is None else datetime.fromtimestamp(commit.time, UTC).isoformat(),
        parent_config=None if parent is None else _config(thread, *parent),
        tasks=tasks,
        interrupts=tuple(question for task in tasks for question in task.interrupts),
    )


def _config(thread: StoredThread, run: str, superstep: int) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread.name, "checkpoint_id": checkpoint_id(run, superstep)}}


def _tasks(runs: GraphRuns, found: RecoveredRun) -> tuple[TaskSnapshot, ...]:
    """Return the tasks of the next superstep, in order."""
    state, ledger = found.state, found.ledger()
    questions = open_questions(ledger)
    tasks = []
    for vertex in runs.due(state, active_vertices(state)):
        encoded, error = id_key(vertex), None
        if encoded in ledger.records:
            continue
        entry = ledger.find_entry(encoded)
        if entry is not None and entry.status == "failed" and entry.failure is not None:
            error = f"{entry.failure.type}: {entry.failure.text}"
        asked = tuple(one.interrupt for one in questions if one.vertex == vertex)
        tasks.append(TaskSnapshot(node_of(vertex), vertex, error, asked))
    return tuple(tasks)
