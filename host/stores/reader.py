"""Reads runs, histories and states from a database, and detects altered and missing rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

from gpu_pregel.errors import ArgumentError
from gpu_pregel.host.stores.blobs import BlobFormat, DamagedError, context_of, read_contents
from gpu_pregel.host.stores.database import Database
from gpu_pregel.host.stores.rows import CommitRow, RunRow, StoredAnswer
from gpu_pregel.host.stores.run_table import MissingRowsError, RunTable, StoredRow
from gpu_pregel.host.stores.saved_run import SavedCommit, SavedRun

T = TypeVar("T")
_COMMITS, _SEGMENTS = 64, 8
"""Maximum rows per query."""
_MAX_READS = 20
"""Maximum number of times that a run is read again while other programs prune it."""


class RunReader:
    """Reads runs; ``Store`` checks the arguments and documents the methods of the same names."""

    def __init__(self, database: Database, blob_format: BlobFormat) -> None:
        self.table = RunTable(database)
        self._database = database
        self._format = blob_format
        self._sql = database.statements

    def runs(self) -> list[RunRow]:
        """Return all runs, oldest first."""
        public = []
        for row in self.table.rows():
            try:
                public.append(self._public(row))
            except MissingRowsError:
                if self.table.exists(row.key):  # not deleted in the meantime
                    raise
        return public

    def run(self, run_id: str) -> RunRow:
        """Return one run."""
        return self._consistent(run_id, self._public)

    def history(self, run_id: str) -> list[CommitRow]:
        """Return the stored commits of a run, oldest first."""
        return self._consistent(run_id, self._history)

    def commits_after(self, run_id: str, step: int) -> Iterator[SavedCommit]:
        """Yield the stored commits after a superstep, oldest first."""
        row = self.table.find(run_id)
        oldest = self._database.query(self._sql.oldest_commit, (row.key,))[0][0]
        if oldest is not None:
            low = max(step, oldest - 1)
            yield from (commit for commit, _, _ in self.commits(row, low, row.head, after=None))

    def answers(self, run_id: str, step: int) -> list[StoredAnswer]:
        """Return the answers to interrupts of a superstep."""
        return self._answers(self.table.find(run_id), step)

    def last_answer(self, run_id: str, vertex: bytes) -> StoredAnswer | None:
        """Return the latest answer to a vertex, or None."""
        row = self.table.find(run_id)
        found = self._database.query(self._sql.last_answer, (row.key, vertex))
        return self._answer(row, found[0][0], vertex, *found[0][1:]) if found else None

    def load(self, run_id: str, step: int | None) -> SavedRun:
        """Return the base, commits and held segments of a run."""
        return self._consistent(run_id, lambda row: self._load(row, step))

    def _consistent(self, run_id: str, read: Callable[[StoredRow], T]) -> T:
        """Read a run by several queries; start again if it was pruned or deleted between them."""
        for _ in range(_MAX_READS):
            row = self.table.find(run_id)
            try:
                return read(row)
            except MissingRowsError as error:
                problem = error
                if self.table.lookup(run_id) == row:
                    break
        raise problem

    def _public(self, row: StoredRow) -> RunRow:
        found = self._database.query(self._sql.meta, (row.key,))
        if not found:
            raise self.table.damage(row.id, "has lost its metadata", kind=MissingRowsError)
        header, data = found[0]
        is_hidden = not self._format.is_readable(header)
        meta = self._content(row.id, context_of("meta", row.id), header, data, verify_only=is_hidden)
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

    def _history(self, row: StoredRow) -> list[CommitRow]:
        bases = set(self.base_steps(row))
        for step in bases:
            self._base_part(row, step, 0, verify_only=True)
        oldest = self._database.query(self._sql.oldest_commit, (row.key,))[0][0]
        if oldest is None:
            self.require(row, row.head in bases, row.head)
            return []
        self.require(row, oldest <= row.head, row.head)
        rows = []
        for commit, segments, size in self.commits(row, oldest - 1, row.head, after=None, verify_only=True):
            listed = (commit.step, commit.after, commit.epoch, commit.status, commit.time)
            rows.append(CommitRow(*listed, segments, size, commit.step in bases))
        self.require(row, oldest in bases or rows[0].after in bases, oldest)
        return rows

    def _load(self, row: StoredRow, step: int | None) -> SavedRun:
        held = step is None
        step = row.head if step is None else step
        base = self.base_for(row, step)
        parts = self._parts(row, base)
        return SavedRun(
            run=self._public(row),
            step=step,
            base_step=base,
            answers=self._answers(row, row.head + 1) if held else [],
            blobs=tuple(name for name in parts if name),
            _read=lambda name: self._join(row, base, parts[name]),
            _commits=lambda: (commit for commit, _, _ in self.commits(row, base, step, after=base)),
            _held=partial(self._segments, row, row.head + 1, row.pending if held else 0),
        )

    def require(self, row: StoredRow, present: bool, step: int) -> None:
        """Raise ``MissingRowsError`` unless the rows that a superstep needs are present."""
        if not present:
            raise self.table.damage(
                row.id, "the base or a commit that it needs is missing", step, kind=MissingRowsError
            )

    def _content(
        self,
        run_id: str,
        context: bytes,
        header: Any,
        data: Any,
        step: int | None = None,
        segment: int | None = None,
        *,
        verify_only: bool = False,
    ) -> bytes:
        """Return the content of a blob, or with ``verify_only`` the data as stored, for which no key is needed."""
        try:
            return (self._format.verify if verify_only else self._format.decode)(context, header, data)
        except DamagedError as error:
            raise self.table.damage(run_id, str(error), step, segment) from error.__cause__

    # Bases

    def base_steps(self, row: StoredRow) -> list[int]:
        """Return the supersteps of the stored bases in ascending order."""
        return [step for (step,) in self._database.query(self._sql.base_steps, (row.key,))]

    def base_for(self, row: StoredRow, step: int) -> int:
        """Return the superstep of the newest base that is not after ``step``, which must have been committed."""
        if step > row.head:
            raise ArgumentError(
                f"run {row.id!r} has no superstep {step:,} yet: its last committed one in {self._database.name} is "
                f"{row.head:,}"
            )
        base = self._database.query(self._sql.newest_base, (row.key, step))[0][0]
        if base == step:
            return step
        is_committed = bool(self._database.query(self._sql.token, (row.key, step)))
        if base is not None and is_committed:
            return int(base)
        self.require(row, not is_committed and step != row.head, step)
        self._database.check_table("bases")
        self._database.check_table("commits")
        why = "was pruned" if base is None else "was not committed on its own"
        raise ArgumentError(f"superstep {step:,} of run {row.id!r} {why}: store.history() lists the stored supersteps")

    def _parts(self, row: StoredRow, step: int) -> dict[str, range]:
        """Return the parts of each named blob of a base; the name of the base itself is empty."""
        parts, start = {}, 1
        try:
            for name, count in read_contents(self._base_part(row, step, 0)):
                parts[name] = range(start, start + count)
                start += count
        except ValueError as error:
            raise self.table.damage(row.id, "the base has an invalid table of contents", step) from error
        self.require(row, "" in parts, step)
        return parts

    def _join(self, row: StoredRow, step: int, parts: range) -> bytes | bytearray:
        if len(parts) == 1:
            return self._base_part(row, step, parts[0])
        whole = bytearray()
        for part in parts:
            whole += self._base_part(row, step, part)
        return whole

    def _base_part(self, row: StoredRow, step: int, part: int, *, verify_only: bool = False) -> bytes:
        found = self._database.query(self._sql.base_part, (row.key, step, part))
        self.require(row, bool(found), step)
        context = context_of("base", row.id, step, part)
        header, data = found[0]
        return self._content(row.id, context, header, data, step, verify_only=verify_only)

    # Commits, segments and answers

    def commits(
        self, row: StoredRow, low: int, high: int, after: int | None, *, verify_only: bool = False
    ) -> Iterator[tuple[SavedCommit, int, int]]:
        """Yield each commit after ``low`` up to ``high`` with the number and bytes of its segments.

        The first commit must follow superstep ``after``, unless that is None.
        """
        step = low
        while step < high:
            found = self._database.query(self._sql.commits, (row.key, step, high, _COMMITS))
            self.require(row, bool(found), high)
            for *place, header, data in found:
                self.require(row, after in (None, place[1]), step)
                commit, segments, size = self._commit(row, place, header, data, verify_only=verify_only)
                after = step = commit.step
                yield commit, segments, size

    def _commit(
        self, row: StoredRow, place: list[Any], header: Any, data: Any, *, verify_only: bool
    ) -> tuple[SavedCommit, int, int]:
        step, previous, epoch, status, time, segments, size, _token = place
        data = self._content(row.id, context_of("commit", row.id, *place), header, data, step, verify_only=verify_only)
        read = partial(self._segments, row, step, segments)
        return SavedCommit(step, previous, epoch, status, time, data, read), segments, size

    def _segments(self, row: StoredRow, step: int, count: int) -> Iterator[bytes]:
        for low in range(0, count, _SEGMENTS):
            high = min(low + _SEGMENTS, count)
            found = self._database.query(self._sql.segments, (row.key, step, low, high))
            for expected, (number, header, data) in enumerate(found, low):
                if number != expected:
                    break
                yield self._content(row.id, context_of("segment", row.id, step, number), header, data, step, number)
            else:
                expected = low + len(found)
            if expected != high:
                raise self.table.damage(
                    row.id, f"is missing ({count:,} were written)", step, expected, MissingRowsError
                )

    def _answers(self, row: StoredRow, step: int) -> list[StoredAnswer]:
        self._database.check_table("answers")
        found = self._database.query(self._sql.answers, (row.key, step))
        return [self._answer(row, step, *columns) for columns in found]

    def _answer(
        self, row: StoredRow, step: int, vertex: bytes, number: int, time: float, header: Any, data: Any
    ) -> StoredAnswer:
        context = context_of("answer", row.id, step, vertex, number, time)
        return StoredAnswer(vertex, number, self._content(row.id, context, header, data, step), time)
