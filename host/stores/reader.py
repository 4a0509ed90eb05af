"""The half of a store that reads. What is missing between two rows is noticed as what is changed in one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

from gpu_pregel.errors import ArgumentError
from gpu_pregel.host.stores.blobs import context_of, read_contents
from gpu_pregel.host.stores.database import Database, MissingError, Row
from gpu_pregel.host.stores.rows import Answer, CommitRow, RunRow, check_integer
from gpu_pregel.host.stores.saved_run import Saved, SavedCommit

T = TypeVar("T")
_COMMITS, _SEGMENTS = 64, 8
"""Rows that one query brings."""
_READS = 20
"""How often a run is read that others prune meanwhile."""


class Reading(Database):
    """Runs, their histories and states."""

    def runs(self) -> list[RunRow]:
        """All runs, oldest first.

        Returns
        -------
        list of RunRow

        Raises
        ------
        StoreError
        """
        self._examine("runs")
        public = []
        for row in map(self._whole, self._query(self._sql.runs, ())):
            try:
                public.append(self._public(row))
            except MissingError:
                if self._query(self._sql.run_by_key, (row.key,)):  # not deleted in between
                    raise
        return public

    def run(self, run_id: str) -> RunRow:
        """One run.

        Parameters
        ----------
        run_id : str

        Returns
        -------
        RunRow

        Raises
        ------
        ArgumentError
            There is none of this id.
        StoreError
        """
        return self._settled(run_id, self._public)

    def history(self, run_id: str) -> list[CommitRow]:
        """The commits of a run that were not pruned, oldest first.

        Parameters
        ----------
        run_id : str

        Returns
        -------
        list of CommitRow

        Raises
        ------
        ArgumentError
            There is no such run.
        StoreError
        """
        return self._settled(run_id, self._history)

    def _history(self, row: Row) -> list[CommitRow]:
        bases = {step for (step,) in self._query(self._sql.base_steps, (row.key,))}
        for step in bases:
            self._base_part(row, step, 0, sealed=True)
        oldest = self._query(self._sql.oldest_commit, (row.key,))[0][0]
        if oldest is None:
            self._require(row, row.head in bases, row.head)
            return []
        self._require(row, oldest <= row.head, row.head)
        rows = []
        for commit, segments, size in self._chain(row, oldest - 1, row.head, after=None, sealed=True):
            listed = (commit.step, commit.after, commit.epoch, commit.status, commit.time)
            rows.append(CommitRow(*listed, segments, size, commit.step in bases))
        self._require(row, oldest in bases or rows[0].after in bases, oldest)
        return rows

    def answers(self, run_id: str, step: int) -> list[Answer]:
        """The answers to interrupts of a superstep, in the order of (vertex, number).

        Parameters
        ----------
        run_id : str
        step : int

        Returns
        -------
        list of Answer

        Raises
        ------
        ArgumentError
            There is no such run.
        StoreError
        """
        return self._answers(self._find(run_id), check_integer("step", step, 0))

    def last_answer(self, run_id: str, vertex: bytes) -> Answer | None:
        """The answer that a vertex was given last, whatever became of it; None if there is none, or it was pruned.

        Parameters
        ----------
        run_id : str
        vertex : bytes
            Its id as the codec's bytes.

        Returns
        -------
        Answer or None

        Raises
        ------
        ArgumentError
            There is no such run.
        StoreError
        """
        row = self._find(run_id)
        found = self._query(self._sql.last_answer, (row.key, vertex))
        return self._answer_of(row, found[0][0], vertex, *found[0][1:]) if found else None

    def load(self, run_id: str, step: int | None = None) -> Saved:
        """What there is of a run up to a superstep: the newest base that it is not before, and the commits since.

        Parameters
        ----------
        run_id : str
        step : int, optional
            A superstep that was committed, -1 for the state before the first. If not given, the last one, and with it
            the segments and answers of the one after, which is held.

        Returns
        -------
        Saved

        Raises
        ------
        ArgumentError
            There is no such run, or no such superstep, or it was pruned.
        StoreError
            A part is missing or damaged; or later, when a part is read.
        """
        if step is not None:
            check_integer("step", step, -1)
        return self._settled(run_id, lambda row: self._load(row, step))

    def _load(self, row: Row, step: int | None) -> Saved:
        held = step is None
        step = row.head if step is None else step
        base = self._base_for(row, step)
        parts = self._parts_of(row, base)
        return Saved(
            run=self._public(row),
            step=step,
            base_step=base,
            answers=self._answers(row, row.head + 1) if held else [],
            blobs=tuple(name for name in parts if name),
            _read=lambda name: self._join(row, base, parts[name]),
            _commits=lambda: (commit for commit, _, _ in self._chain(row, base, step, after=base)),
            _held=partial(self._segments, row, row.head + 1, row.pending if held else 0),
        )

    def _settled(self, run_id: str, read: Callable[[Row], T]) -> T:
        """What several queries say of a run; asked anew where it was pruned or deleted in between."""
        for _ in range(_READS):
            row = self._find(run_id)
            try:
                return read(row)
            except MissingError as error:
                problem = error
                if self._lookup(run_id) == row:
                    break
        raise problem

    def _public(self, row: Row) -> RunRow:
        found = self._query(self._sql.meta, (row.key,))
        if not found:
            raise self._damaged(row.id, "has lost its meta", kind=MissingError)
        seal, data = found[0]
        is_hidden = not self._sealer.is_readable(seal)
        meta = self._open(row.id, context_of("meta", row.id), seal, data, sealed=is_hidden)
        parent = None if row.parent is None or row.parent_step is None else (row.parent, row.parent_step)
        return RunRow(
            row.id,
            row.kind,
            row.branch,
            parent,
            row.head,
            row.epoch,
            row.owner,
            row.lease,
            row.status,
            row.created,
            row.changed,
            row.schema,
            None if is_hidden else meta,
        )

    def _require(self, row: Row, there: bool, step: int) -> None:
        if not there:
            raise self._damaged(row.id, "the base or a commit that it needs is missing", step, kind=MissingError)

    # Bases

    def _base_for(self, row: Row, step: int) -> int:
        """The superstep of the newest base that ``step``, which was committed, is not before."""
        if step > row.head:
            raise ArgumentError(
                f"run {row.id!r} has no superstep {step:,} yet: its last one committed is {row.head:,} in {self.name}"
            )
        base = self._query(self._sql.newest_base, (row.key, step))[0][0]
        if base == step:
            return step
        there = bool(self._query(self._sql.token, (row.key, step)))
        if base is not None and there:
            return int(base)
        self._require(row, not there and step != row.head, step)
        self._examine("bases")
        self._examine("commits")
        why = "was pruned" if base is None else "was not committed on its own"
        raise ArgumentError(f"superstep {step:,} of run {row.id!r} {why}: store.history() lists those there are")

    def _parts_of(self, row: Row, step: int) -> dict[str, range]:
        """The rows of each named blob of a base; the base itself has no name."""
        parts, start = {}, 1
        for name, count in read_contents(self._base_part(row, step, 0)):
            parts[name] = range(start, start + count)
            start += count
        return parts

    def _join(self, row: Row, step: int, parts: range) -> bytes | bytearray:
        if len(parts) == 1:
            return self._base_part(row, step, parts[0])
        whole = bytearray()
        for part in parts:
            whole += self._base_part(row, step, part)
        return whole

    def _base_part(self, row: Row, step: int, part: int, *, sealed: bool = False) -> bytes:
        found = self._query(self._sql.base_part, (row.key, step, part))
        self._require(row, bool(found), step)
        seal, data = found[0]
        return self._open(row.id, context_of("base", row.id, step, part), seal, data, step, sealed=sealed)

    # Commits, segments and answers

    def _chain(
        self, row: Row, low: int, high: int, after: int | None, *, sealed: bool = False
    ) -> Iterator[tuple[SavedCommit, int, int]]:
        """Commits after ``low`` up to ``high`` with numbers and bytes of segments; the first follows ``after``."""
        step = low
        while step < high:
            found = self._query(self._sql.commits, (row.key, step, high, _COMMITS))
            self._require(row, bool(found), high)
            for *place, seal, data in found:
                self._require(row, after in (None, place[1]), step)
                commit, segments, size = self._commit_of(row, place, seal, data, sealed=sealed)
                after = step = commit.step
                yield commit, segments, size

    def _commit_of(
        self, row: Row, place: list[Any], seal: Any, data: Any, *, sealed: bool
    ) -> tuple[SavedCommit, int, int]:
        step, previous, epoch, status, time, segments, size, _token = place
        data = self._open(row.id, context_of("commit", row.id, *place), seal, data, step, sealed=sealed)
        read = partial(self._segments, row, step, segments)
        return SavedCommit(step, previous, epoch, status, time, data, read), segments, size

    def _segments(self, row: Row, step: int, count: int) -> Iterator[bytes]:
        for low in range(0, count, _SEGMENTS):
            high = min(low + _SEGMENTS, count)
            found = self._query(self._sql.segments, (row.key, step, low, high))
            for expected, (number, seal, data) in enumerate(found, low):
                if number != expected:
                    break
                yield self._open(row.id, context_of("segment", row.id, step, number), seal, data, step, number)
            else:
                expected = low + len(found)
            if expected != high:
                raise self._damaged(row.id, f"is missing ({count:,} were written)", step, expected, MissingError)

    def _answers(self, row: Row, step: int) -> list[Answer]:
        self._examine("answers")
        return [self._answer_of(row, step, *found) for found in self._query(self._sql.answers, (row.key, step))]

    def _answer_of(self, row: Row, step: int, vertex: bytes, number: int, time: float, seal: Any, data: Any) -> Answer:
        context = context_of("answer", row.id, step, vertex, number, time)
        return Answer(vertex, number, self._open(row.id, context, seal, data, step), time)
