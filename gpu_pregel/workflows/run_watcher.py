"""Follows a run in a store from any process: what has happened since the last look, and whether the run is over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from gpu_pregel.errors import StoreError
from gpu_pregel.host.agents.codec import decode
from gpu_pregel.host.agents.formats import SavedSuperstep
from gpu_pregel.host.agents.observers.timeline import OMITTED, RecordedEvent, read_events
from gpu_pregel.host.agents.parts import FailedAttempts
from gpu_pregel.host.agents.previews import Budget, one_line, show, show_encoded
from gpu_pregel.host.agents.recovery import read_held
from gpu_pregel.host.stores.rows import ENDED_STATUSES
from gpu_pregel.workflows.page.labels import label_of
from gpu_pregel.workflows.page.numeric import numeric_rows
from gpu_pregel.workflows.page.run_data import is_live

if TYPE_CHECKING:
    from gpu_pregel.host.stores.rows import RunRow
    from gpu_pregel.host.stores.store import Store

_HELD = ("failed", "interrupted")
_HIDDEN = (OMITTED, "interrupt", "hold", "end")
"""Recorded events that are not told: the store says what they do, and more."""


class Happening(NamedTuple):
    """Something that happened in a run.

    Attributes
    ----------
    kind : str
        That of an :class:`gpu_pregel.agents.Event`, "question" (of a held superstep, with "text") or "lost" (the
        program that had the run has ended without finishing it).
    superstep : int
    vertex : str or None
    attempt : int or None
    facts : dict
        Those of the event; of a commit, the row of the trace; "text" of an emission, a failure or a question.
    """

    kind: str
    superstep: int
    vertex: str | None = None
    attempt: int | None = None
    facts: dict[str, Any] = {}  # noqa: RUF012 - never modified


class RunWatcher:
    """Looks at a run now and then.

    Parameters
    ----------
    store : Store
    run_id : str
    from_start : bool
        Whether to begin with the oldest superstep that is stored, and not with the next one.

    Attributes
    ----------
    row : RunRow
        The run at the last look.
    is_over : bool
        Whether it has ended, or no program has it.
    """

    def __init__(self, store: Store, run_id: str, *, from_start: bool) -> None:
        self._store, self._run_id = store, run_id
        self.row: RunRow = store.run(run_id)
        self.is_over = False
        self._head = -1 if from_start else self.row.head
        self._events = -1
        self._is_recorded = False
        self._told = self._head
        """The last commit that was told before it was known that the run is recorded."""
        self._rows: dict[int, dict[str, Any]] = {}
        """Rows of commits that have not been told, because their recorded event is yet to come."""
        self._told_held: tuple[Any, ...] | None = None
        self._held_version: tuple[Any, ...] | None = None
        """What the held superstep had, and the version of the run's row, when they were last read."""
        if not from_start:
            self._read_events()

    def look(self) -> list[Happening]:
        """Return what has happened since the last look, as far as it is known."""
        self.row = self._store.run(self._run_id)
        found = self._tell_new()
        if self.row.status in _HELD:
            found += self._held()
        self.is_over = self.row.status in ENDED_STATUSES or not is_live(self.row)
        return found

    def finish(self) -> list[Happening]:
        """Return what is left to be told of a run that is over."""
        found = [*self._tell_new(), *self._tell_rows(self.row.head + 1)]
        if self.row.status == "running":
            found.append(Happening("lost", self.row.head + 1))
        return found

    def _tell_new(self) -> list[Happening]:
        # Events first: the commits that they tell of are in the store by then.
        events = self._read_events()
        commits = self._new_commits()
        if not self._is_recorded:
            self._told = self._head
            return commits
        self._rows |= {one.superstep: one.facts for one in commits if one.kind == "commit"}
        found: list[Happening] = []
        for event in events:
            found += self._tell_rows(event.superstep)
            if event.superstep <= self._told and event.kind != "emit":
                continue
            if event.kind == "commit":
                row = self._rows.pop(event.superstep, None)
                found.append(Happening("commit", event.superstep, facts=event.facts if row is None else row))
            elif event.kind not in _HIDDEN and event.kind != "attempt":
                found.append(_happening(event))
        return found

    def _tell_rows(self, superstep: int) -> list[Happening]:
        """Return the commits before a superstep that no recorded event has told of."""
        steps = sorted(step for step in self._rows if step < superstep)
        return [Happening("commit", step, facts=self._rows.pop(step)) for step in steps]

    def _read_events(self) -> list[RecordedEvent]:
        found: list[RecordedEvent] = []
        for number, events in read_events(self._store, self._run_id, self._events):
            self._events, self._is_recorded = number, True
            found += events
        return found

    def _new_commits(self) -> list[Happening]:
        """Return new commits, each after the failed attempts of its superstep."""
        found: list[Happening] = []
        try:
            for step, happenings in self._read_numeric() if self.row.kind == "numeric" else self._read_commits():
                self._head = step
                found += happenings
        except StoreError:
            if self._store.run(self._run_id) == self.row:
                raise
            # Supersteps were pruned meanwhile: the next look finds the others.
        return found

    def _read_numeric(self) -> Iterator[tuple[int, list[Happening]]]:
        before, head = self._head, self.row.head
        if head > before:
            saved = self._store.load(self._run_id)
            for row in numeric_rows(saved.blob("trace")) if "trace" in saved.blobs else ():
                if before < row["superstep"] <= head:
                    yield row["superstep"], [Happening("commit", row["superstep"], facts=row)]

    def _read_commits(self) -> Iterator[tuple[int, list[Happening]]]:
        for commit in self._store.commits(self._run_id, self._head) if self.row.head > self._head else ():
            read = SavedSuperstep.unpack(commit.step, commit.segments(), commit.data)
            failed = [part for segment in read.segments for part in segment.others if isinstance(part, FailedAttempts)]
            told = [_failure(commit.step, part) for part in failed]
            yield commit.step, [*told, Happening("commit", commit.step, facts=read.row)]

    def _held(self) -> list[Happening]:
        """Return the failures and questions of a held superstep, once."""
        version = self.row.head, self.row.epoch, self.row.status, self.row.changed
        if version == self._held_version:
            return []
        self._held_version = version
        ledger = read_held(self._store, self._run_id)
        failures, questions = ledger.failures({}), ledger.interrupts()
        state = self.row.head, self.row.status, tuple(failures), tuple(questions.items())
        if state == self._told_held:
            return []
        self._told_held = state
        found = []
        if not self._is_recorded:
            for vertex, one in failures.items():
                found.append(_failure(ledger.step, FailedAttempts(vertex, one.attempts or 1, one.failure, False)))
        for vertex, payload in questions.items():
            text = one_line(show_encoded(payload))
            found.append(Happening("question", ledger.step, label_of(decode(vertex)), None, {"text": text}))
        return [*found, Happening("hold", ledger.step, facts={"status": self.row.status})]


def _failure(step: int, part: FailedAttempts) -> Happening:
    facts = {"type": part.failure.type, "text": part.failure.text}
    return Happening("retry" if part.again else "failure", step, label_of(decode(part.vertex)), part.attempts, facts)


def _happening(event: RecordedEvent) -> Happening:
    facts = dict(event.facts)
    if event.kind == "emit" and "text" not in facts:
        facts = {"text": one_line(facts.get("payload") or show(None, Budget()))}
    vertex = None if event.vertex is None else label_of(event.vertex)
    return Happening(event.kind, event.superstep, vertex, event.attempt, facts)
