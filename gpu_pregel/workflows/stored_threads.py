"""Threads in a store: the runs that a thread consists of, one after the other.

The first run has the thread's name; each later one was forked from an earlier one and is named ``"thread #2"``, and so
on. The last one is the current one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import TYPE_CHECKING

from gpu_pregel.errors import ArgumentError, ClaimedError, UnknownRunError
from gpu_pregel.host.agents.codec import decode, encode, id_key
from gpu_pregel.host.agents.recovery import RunChangedError, check_unchanged, read_records, read_run
from gpu_pregel.host.agents.state_format import pack_state
from gpu_pregel.host.arguments import check_text
from gpu_pregel.host.stores.leases import claim_run
from gpu_pregel.workflows.commands import START
from gpu_pregel.workflows.task_messages import active_vertices, drop_tasks, due_tasks, is_input

if TYPE_CHECKING:
    from gpu_pregel.host.agents.state import State
    from gpu_pregel.host.stores.rows import RunRow
    from gpu_pregel.host.stores.store import Store
    from gpu_pregel.workflows.graph_spec import GraphSpec

_CHECKPOINT = re.compile(r"(?s)(.*)@(-?\d+)(:input)?")
_START = id_key(START)
_FORK_SECONDS = 60.0
_LONGEST = 180
"""Characters of a thread's name: ids of runs have up to 200."""


class StoredThread:
    """A thread.

    Parameters
    ----------
    store : Store
    name : str
    """

    def __init__(self, store: Store, name: str) -> None:
        self.store, self.name = store, check_text("thread_id", name, _LONGEST)
        if re.search(r" [#@]\d+$", name):
            raise ArgumentError(f"thread_id {name!r} ends like the name of a fork or a subgraph: choose another one")

    def run_id(self, number: int) -> str:
        """Return the id of the k-th run, from 1."""
        return self.name if number == 1 else f"{self.name} #{number}"

    def current(self) -> RunRow | None:
        """Return the current run, or None if there is none."""
        return self._latest()[1]

    def _latest(self) -> tuple[int, RunRow | None]:
        """Return the number of runs, and the last one; looks up few of many."""
        low, found, high = 0, None, 1
        while (row := self._find(high)) is not None:
            low, found, high = high, row, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            row = self._find(middle)
            if row is None:
                high = middle
            else:
                low, found = middle, row
        return low, found

    def _find(self, number: int) -> RunRow | None:
        try:
            return self.store.run(self.run_id(number))
        except UnknownRunError:
            return None

    def find(self, checkpoint: str) -> tuple[str, int, bool]:
        """Return run and superstep of a checkpoint of this thread, and whether it is before that superstep's input."""
        match = _CHECKPOINT.fullmatch(checkpoint)
        fork = None if match is None else re.fullmatch(re.escape(self.name) + r" #(\d+)", match[1])
        number = 1 if match is not None and match[1] == self.name else 0 if fork is None else int(fork[1])
        row = self._find(number) if number else None
        first = -1 if row is None or row.parent is None else row.parent[1]
        if match is None or row is None or not first <= int(match[2]) <= row.head:
            raise ArgumentError(
                f"checkpoint_id {checkpoint!r} is none of thread {self.name!r}: take one from get_state_history"
            )
        return match[1], int(match[2]), match[3] is not None

    def before(self, run: str, superstep: int) -> tuple[str, int] | None:
        """Return run and superstep of the state before one, or None if that is the first."""
        parent = self.store.run(run).parent
        first = -1 if parent is None else parent[1]
        return (run, superstep - 1) if superstep - 1 > first or (parent is None and superstep >= 0) else parent

    def fork_of(self, run: str, superstep: int) -> str | None:
        """Return the next run of this thread if it was forked from a state."""
        number = 1 if run == self.name else int(run[len(self.name) + 2 :])
        row = self._find(number + 1)
        return row.id if row is not None and row.parent == (run, superstep) else None

    def has_tasks(self, row: RunRow, graph: GraphSpec) -> bool:
        """Whether a run has tasks that are not finished."""
        if row.status == "completed":
            return False
        found = read_run(self.store, row.id)
        return bool(found.begun or due_tasks(graph, found.state, active_vertices(found.state)))

    def fork(self, row: RunRow, drop: GraphSpec | None = None) -> RunRow:
        """Fork the current run, whose row is given, without its unfinished tasks if a graph is; return the fork.

        Raises
        ------
        RunChangedError
            Another program may have continued the thread since the row was read.
        """
        return self._fork(row.id, row.head, drop, row)

    def fork_from(self, checkpoint: str, drop: GraphSpec | None, empty: State | None = None) -> RunRow:
        """Let the thread go on from a former state, without its tasks if a graph is given; return the new run.

        If the state is one before an input, the new run goes on without that input from the state before or, if there
        is none, from the ``empty`` one, unless that is None.
        """
        run, superstep, is_input = self.find(checkpoint)
        if is_input and not self._has_input(run, superstep):
            raise self.no_input_error(run, superstep)
        if not is_input or empty is None:
            return self._fork(run, superstep, drop)
        before = self.before(run, superstep)
        return self._fork(run, superstep, None, state=empty) if before is None else self._fork(*before, drop)

    def _has_input(self, run: str, superstep: int) -> bool:
        """Whether an input led to the state after a superstep."""
        if superstep == -1:
            value = decode(bytes(read_run(self.store, run, -1).state.vertices[_START].value))
            return isinstance(value, tuple) and not is_input(value)
        return any(vertex == _START for vertex, _ in read_records(self.store, run, superstep))

    def no_input_error(self, run: str, superstep: int) -> ArgumentError:
        """Return the error for a checkpoint before an input that there was not."""
        name = checkpoint_id(run, superstep, is_input=True)
        return ArgumentError(f"no input led to the state {name!r}: take a checkpoint_id from get_state_history")

    def _fork(
        self,
        run: str,
        superstep: int,
        drop: GraphSpec | None,
        since: RunRow | None = None,
        state: State | None = None,
    ) -> RunRow:
        """Fork a run, unless a program is computing the current one or has continued it ``since``."""
        count, current = self._latest()
        if current is None:
            raise ArgumentError(f"there is no thread {self.name!r} in {self.store.name}")
        with claims_explained():
            claim = claim_run(self.store, current.id, lease_seconds=_FORK_SECONDS, durability="process", takeover=False)
        try:
            if since is not None:
                if since.id != current.id:
                    raise RunChangedError
                check_unchanged(claim, since)
            if self._find(count + 1) is not None:
                raise self.continued_error()
            state = read_run(self.store, run, superstep).state if state is None else state
            if drop is not None:
                drop_tasks(drop, state)
            new = self.run_id(count + 1)
            self.store.fork(run, superstep, new, pack_state(state), meta=self.store.run(run).meta or b"", blobs={})
        finally:
            self.store.release(claim)
        return self.store.run(new)

    def continued_error(self) -> ArgumentError:
        """Return the error for a thread that another program has continued during a call."""
        return ArgumentError(f"another program has continued thread {self.name!r} meanwhile: call again")


@contextmanager
def claims_explained() -> Iterator[None]:
    """Let the error for a run that another program computes name no option that calls of graphs do not have."""
    try:
        yield
    except ClaimedError as error:
        raise ClaimedError(error.run, error.owner, error.until, option="") from None


def checkpoint_id(run: str, superstep: int, *, is_input: bool = False) -> str:
    """Return the name of the state of a run after a superstep, or of the one before the superstep's input."""
    return f"{run}@{superstep}{':input' if is_input else ''}"


def nested_id(run: str, task: str, superstep: int) -> str:
    """Return the id of the run of a task; one that is too long for a store, or cannot be printed, is shortened."""
    name, end = f"{run} > {task}", f" @{superstep}"
    if len(name) + len(end) > 200 or not name.isprintable():
        name = f"{run[:100]} > {sha256(encode((run, task))).hexdigest()[:32]}"
    return name + end
