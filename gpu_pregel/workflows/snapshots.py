"""The states of threads: the last one, the one of a checkpoint, and the history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from gpu_pregel.errors import ArgumentError
from gpu_pregel.host.agents.codec import decode, id_key
from gpu_pregel.host.agents.ledger import Ledger
from gpu_pregel.host.agents.recovery import RecoveredRun, read_run
from gpu_pregel.host.agents.state import Records, State
from gpu_pregel.host.agents.state_history import read_states, read_supersteps
from gpu_pregel.host.arguments import check_integer
from gpu_pregel.workflows.calls import thread_of
from gpu_pregel.workflows.commands import END, START, Interrupt
from gpu_pregel.workflows.graph_runs import GraphRuns, configurable_of
from gpu_pregel.workflows.key_folds import unpacked_value
from gpu_pregel.workflows.questions import last_questions
from gpu_pregel.workflows.stored_threads import StoredThread, checkpoint_id
from gpu_pregel.workflows.task_messages import GIVEN, IDLE, UPDATED, active_vertices, is_input, updates_of
from gpu_pregel.workflows.tasks import is_sent, node_of, writer_order

if TYPE_CHECKING:
    from gpu_pregel.host.stores.rows import CommitRow, RunRow

_START = id_key(START)


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
        The question that it waits for; in a former state, the one that it has asked.
    result : dict or None
        Its updates, if it has finished.
    """

    name: str
    id: str
    error: str | None = None
    interrupts: tuple[Interrupt, ...] = ()
    result: dict[str, Any] | None = None


@dataclass(frozen=True)
class StateSnapshot:
    """The state of a thread after a superstep.

    ``get_state`` without a ``checkpoint_id`` returns the present one: with the updates of tasks of the next superstep
    that have finished, although others of them ask or have failed. With one, and in a history, states are as the
    superstep left them.

    Attributes
    ----------
    values : dict
        Of all keys, whatever the output has.
    next : tuple of str
        The nodes of the next superstep, each as often as it has tasks; in the present state, of those that have not
        finished, or of all if a process has ended between the last of them and the end of the superstep: only a thread
        that has ended has none. ``("__start__",)`` in the state before an input, ``("__end__",)`` where only the end
        has not yet taken its messages.
    config : dict
        Names this state.
    metadata : dict or None
        "source" ("input", "loop" or "update"), "step" (number of the state, from -1; unlike in LangGraph, a superstep
        that only notes that sources of joins have ended counts), "parents" (empty), "superstep", "status" and "run".
        None if there is no such thread.
    created_at : str or None
    parent_config : dict or None
        The state before.
    tasks : tuple of TaskSnapshot
        Of the next superstep.
    interrupts : tuple of Interrupt
        The questions of these tasks.
    """

    values: dict[str, Any]
    next: tuple[str, ...]
    config: dict[str, Any]
    metadata: dict[str, Any] | None
    created_at: str | None
    parent_config: dict[str, Any] | None
    tasks: tuple[TaskSnapshot, ...]
    interrupts: tuple[Interrupt, ...] = field(default=())


class Moment(NamedTuple):
    """The state of a run after a superstep.

    Attributes
    ----------
    found : RecoveredRun
        With what is recorded of the next superstep.
    made : list of (Id, Record)
        The records of the superstep that has made the state; none if the run begins with it.
    """

    found: RecoveredRun
    made: Records

    @property
    def inputs(self) -> Any:
        """The value of the start; see :func:`inputs_after`."""
        return decode(bytes(self.found.state.vertices[_START].value))

    @property
    def is_empty(self) -> bool:
        """Whether the run begins with this state, without an input."""
        return self.found.superstep == 0 and self.inputs is None and not active_vertices(self.found.state)

    @property
    def is_idle(self) -> bool:
        """Whether the superstep that has made the state has only noted that sources of joins have ended."""
        return bool(self.made) and all(any(name == IDLE for name, _ in record.aggregates) for _, record in self.made)

    @property
    def is_update(self) -> bool:
        """Whether ``update_state`` has made the state."""
        return any(name == UPDATED for _, record in self.made for name, _ in record.aggregates)

    def given(self, empty: Mapping[str, bytes]) -> dict[str, Any] | None:
        """Return the input of which the state was made; None if it was not, or if the state before has it waiting.

        ``empty`` has the aggregates before the first input.
        """
        inputs, aggregates = self.inputs, {name: self.found.state.aggregates[name] for name in empty}
        if inputs is None or is_input(inputs):
            return None
        if self.found.superstep == 0:
            made = {name: unpacked_value(data) for name, data in aggregates.items() if data != empty[name]}
            changed: dict[str, Any] = inputs[1]
            return made | changed
        record = dict(self.made).get(_START)
        if record is None or self.is_update:
            return None
        names = [name for name, _ in record.aggregates]
        if GIVEN not in names:
            return updates_of(record.aggregates)
        first = names.index(GIVEN) + 1
        return updates_of(record.aggregates[first : first + decode(record.aggregates[first - 1][1])])


def get_state(runs: GraphRuns, config: Mapping[str, Any]) -> StateSnapshot:
    """Return the present state of a thread, or the one that the config names."""
    thread = thread_of(runs, config)
    row = thread.current()
    if row is None:
        return StateSnapshot({}, (), dict(config), None, None, None, ())
    wanted, reader = configurable_of(config).get("checkpoint_id"), _Reader(runs, thread)
    if wanted is None:
        return reader.snapshot(row.id, row.head, is_present=True)
    run, superstep, is_before_input = thread.find(str(wanted))
    return reader.before_input(run, superstep) if is_before_input else reader.snapshot(run, superstep)


def get_history(
    runs: GraphRuns, config: Mapping[str, Any], limit: int | None, before: Mapping[str, Any] | None
) -> Iterator[StateSnapshot]:
    """Yield the states of a thread, the latest first."""
    thread = thread_of(runs, config)
    if limit is not None:
        check_integer("limit", limit, 0, 1 << 62)
    row = thread.current()
    start = configurable_of(config if before is None else before).get("checkpoint_id")
    if before is not None and start is None:
        raise ArgumentError("before must be the config of a state of the thread, with a checkpoint_id")
    if row is None:
        return iter(())
    place = (row.id, row.head, False) if start is None else thread.find(str(start))
    reader = _Reader(runs, thread, is_history=True)
    if place[2]:
        reader.before_input(*place[:2])  # raises if there was none
    states = reader.history(*place)
    first = int(before is not None)
    return islice(states, first, None if limit is None else first + limit)


class _Reader:
    """Reads the states of a thread; those of a history, the latest first, many at once.

    Parameters
    ----------
    runs : GraphRuns
    thread : StoredThread
    is_history : bool
    """

    def __init__(self, runs: GraphRuns, thread: StoredThread, *, is_history: bool = False) -> None:
        self._runs, self._thread, self._store = runs, thread, thread.store
        self._is_history = is_history
        self._empty = {name: data for name, data in runs.empty_state().aggregates.items() if name in runs.graph.folds}
        self._rows: dict[str, tuple[RunRow, dict[int, CommitRow]]] = {}
        self._run = ""
        self._moments: dict[int, Moment] = {}

    def history(self, run: str, superstep: int, is_before_input: bool) -> Iterator[StateSnapshot]:
        """Yield a state and those that led to it, the latest first."""
        is_hidden = is_before_input
        while True:
            row, commits = self._row(run)
            steps = {one for one in commits if one <= superstep}
            if row.parent is None or not steps:  # otherwise a fork begins with the state that it was forked from
                steps.add(-1 if row.parent is None else row.parent[1])
            for step in sorted(steps, reverse=True):
                moment = self._read(run, step)
                if moment.is_empty:
                    return
                if not is_hidden:
                    yield self.snapshot(run, step)
                is_hidden = self._is_idle(moment)  # the state before is the same
                if self._given(moment) is not None:
                    yield self.before_input(run, step)
            if row.parent is None:
                return
            run, superstep = row.parent

    def _row(self, run: str) -> tuple[RunRow, dict[int, CommitRow]]:
        """Return the row of a run, and its commits."""
        if run not in self._rows:
            self._rows[run] = self._store.run(run), {one.step: one for one in self._store.history(run)}
        return self._rows[run]

    def _read(self, run: str, superstep: int) -> Moment:
        """Return the state after a superstep."""
        if run == self._run and superstep in self._moments:
            return self._moments[superstep]
        store, is_last = self._store, superstep == self._row(run)[0].head
        if is_last or not self._is_history:
            states = [read_run(store, run, None if is_last else superstep)]
        else:
            states = read_states(store, run, superstep)
        begun = read_supersteps(store, run, states[0].superstep - 1, superstep + 1)
        moments = {}
        for found in states:
            made = begun.get(found.superstep - 1)
            records = [] if made is None else sorted(one for segment in made.segments for one in segment.records)
            found.begun = begun.get(found.superstep, found.begun)
            moments[found.superstep - 1] = Moment(found, records)
        self._run, self._moments = run, moments
        return moments[superstep]

    def snapshot(self, run: str, superstep: int, *, is_present: bool = False) -> StateSnapshot:
        """Return the state after a superstep; the present one with what has finished since."""
        moment = self._read(run, superstep)
        found, runs = moment.found, self._runs
        ledger = Ledger(found.superstep, [], found.state.inbox)
        found.begun.replay(ledger)
        if is_present:
            found.begun.give_answers(ledger)
        update = None if is_present else self._update_after(run, superstep)
        tasks = self._tasks(found.state, ledger, update, is_present=is_present)
        is_waiting = any(task.name == START for task in tasks)
        is_after_input = self._given(moment) is not None
        source = "input" if is_waiting else "update" if moment.is_update else "loop"
        aggregates = runs.with_finished(found.state, ledger) if is_present else found.state.aggregates
        unfinished = [task.name for task in tasks if not is_present or task.result is None]
        return StateSnapshot(
            values=runs.all_values(aggregates),
            # Where all have finished, the process has ended before it could end the superstep.
            next=tuple(unfinished or (self._left(found.state) if is_present else ())),
            config=self._config(run, superstep),
            metadata=self._metadata(run, moment, source),
            created_at=self._time(run, superstep),
            parent_config=self._config(run, superstep, is_input=True)
            if is_after_input
            else self._parent(run, superstep),
            tasks=tasks,
            interrupts=tuple(question for task in tasks for question in task.interrupts),
        )

    def before_input(self, run: str, superstep: int) -> StateSnapshot:
        """Return the state before the input of which the one after a superstep was made."""
        moment, before = self._read(run, superstep), self._before(run, superstep)
        given, aggregates = self._given(moment), self._empty
        if given is None:
            raise self._thread.no_input_error(run, superstep)
        metadata, created_at = self._metadata(run, moment, "input"), self._time(run, superstep)
        if before is not None:
            aggregates = self._read(*before).found.state.aggregates
        return StateSnapshot(
            values=self._runs.all_values(aggregates),
            next=(START,),
            config=self._config(run, superstep, is_input=True),
            metadata={
                **metadata,
                "step": metadata["step"] - 1,
                "superstep": max(superstep - 1, -1),
                "status": "running",
            },
            created_at=created_at,
            parent_config=self._parent(run, superstep),
            tasks=(TaskSnapshot(START, START, result=given),),
        )

    def _is_idle(self, moment: Moment) -> bool:
        """Whether a state equals the one before; where edges carry messages, the end is idle, but has the results."""
        return self._runs.is_shared and moment.is_idle

    def _given(self, moment: Moment) -> dict[str, Any] | None:
        """Return the input of which a state was made, or None."""
        return moment.given(self._empty) if self._runs.is_shared else None

    def _update_after(self, run: str, superstep: int) -> tuple[str, dict[str, Any]] | None:
        """Return the node and the values with which ``update_state`` has replaced a state, if it has."""
        found = self._read(run, superstep).found
        if superstep == self._row(run)[0].head:
            fork = self._thread.fork_of(run, superstep)
            begun = {} if fork is None else read_supersteps(self._store, fork, superstep + 1, superstep + 1)
            segments = begun[superstep + 1].segments if begun else []
        else:
            segments = found.begun.segments
        for vertex, record in (one for segment in segments for one in segment.records):
            if any(name == UPDATED for name, _ in record.aggregates):
                return node_of(decode(vertex)), updates_of(record.aggregates)
        return None

    def _tasks(
        self, state: State, ledger: Ledger, update: tuple[str, dict[str, Any]] | None, *, is_present: bool
    ) -> tuple[TaskSnapshot, ...]:
        """Return the tasks of the next superstep: what was sent, in order, then nodes in the order of the graph.

        The first task of the node in whose place there was an update has its values as the result.
        """
        runs, tasks = self._runs, []
        for task in self._due(state):
            encoded, error, result = id_key(task), None, None
            entry, record = ledger.find_entry(encoded), ledger.records.get(encoded)
            if record is not None and not runs.is_shared:
                if is_present:
                    continue
            elif record is not None:
                is_done = not any(name in (IDLE, UPDATED) for name, _ in record.aggregates)
                result = updates_of(record.aggregates) if is_done else None
            elif entry is not None and entry.status == "failed" and entry.failure is not None:
                error = f"{entry.failure.type}: {entry.failure.text}"
            if update is not None and node_of(task) == update[0]:
                result, update = update[1] if result is None else result, None
            asked = () if record is not None and is_present else last_questions(ledger, encoded)
            tasks.append(TaskSnapshot(node_of(task), task, error, tuple(one.interrupt for one in asked), result))
        return tuple(tasks)

    def _due(self, state: State) -> list[Any]:
        """Return the ids of the tasks of the next superstep: those that were sent, in order, then those of nodes."""
        places = {name: place for place, name in enumerate((START, *self._runs.graph.nodes))}

        def place_of(task: Any) -> tuple[int, Any]:
            return (0, writer_order(task)) if is_sent(task) else (1, (places.get(task, -1),))

        return sorted(self._runs.due(state, active_vertices(state)), key=place_of)

    def _left(self, state: State) -> Iterator[str]:
        """Yield the nodes of the next superstep or, where edges carry messages, the end that takes them."""
        due = self._due(state)
        yield from map(node_of, due)
        if not due and not self._runs.is_shared and active_vertices(state):
            yield END

    def _metadata(self, run: str, moment: Moment, source: str) -> dict[str, Any]:
        found, inputs = moment.found, moment.inputs if self._runs.is_shared else None
        superstep = found.superstep - 1
        step = superstep + (0 if inputs is None or is_input(inputs) else inputs[0])
        return {
            "source": source, "step": step, "parents": {}, "superstep": superstep, "status": found.status, "run": run
        }  # fmt: skip

    def _time(self, run: str, superstep: int) -> str | None:
        """Return when a state was stored."""
        row, commits = self._row(run)
        commit = commits.get(superstep)
        if commit is None and superstep != -1:
            return None
        return datetime.fromtimestamp(row.created if commit is None else commit.time, UTC).isoformat()

    def _before(self, run: str, superstep: int) -> tuple[str, int] | None:
        """Return the place of the state before one, if there is any."""
        before = self._thread.before(run, superstep)
        return None if before is not None and before[1] == -1 and self._read(*before).is_empty else before

    def _parent(self, run: str, superstep: int) -> dict[str, Any] | None:
        before = self._before(run, superstep)
        while before is not None and self._is_idle(self._read(run, superstep)):
            (run, superstep), before = before, self._before(*before)
        return None if before is None else self._config(*before)

    def _config(self, run: str, superstep: int, *, is_input: bool = False) -> dict[str, Any]:
        checkpoint = checkpoint_id(run, superstep, is_input=is_input)
        return {"configurable": {"thread_id": self._thread.name, "checkpoint_id": checkpoint}}
