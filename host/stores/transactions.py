"""Writes runs to a database: each public method is one transaction.

A transaction replaces the run's row, provided it is still the version that was read. If two programs write at the same
time, one of them matches no row, reads it again and finds out why; so does a program that received no reply.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from typing import Any

from gpu_pregel.errors import ArgumentError, ClaimedError, FencedError, RunExistsError
from gpu_pregel.host.stores.blobs import Blob, BlobFormat, NamedBlob, context_of, split_blobs
from gpu_pregel.host.stores.database import Database, Write, WriteOutcome
from gpu_pregel.host.stores.event_schema import EVENTS, EventStatements
from gpu_pregel.host.stores.reader import RunReader
from gpu_pregel.host.stores.rows import Claim
from gpu_pregel.host.stores.run_table import StoredRow

Revision = Callable[[StoredRow], tuple[StoredRow, list[Write]]]
"""Maps the run's row to its next version and the transaction's other statements; may be called several times."""
IsCommitted = Callable[[StoredRow, StoredRow], bool]
"""Whether the run's current row shows that an attempted version was committed, even if it has changed since."""
_TOKEN_SIZE = 16


class RunTransactions:
    """Writes runs; ``Store`` checks the arguments and documents the methods of the same names."""

    def __init__(self, database: Database, blob_format: BlobFormat, reader: RunReader) -> None:
        self._database = database
        self._format = blob_format
        self._reader = reader
        self._table = reader.table
        self._sql = database.statements
        self._claimed: dict[int, StoredRow] = {}
        """Rows of runs claimed here, as last written, so that a commit need not read them."""

    def create(self, row: StoredRow, meta: Blob, blobs: list[NamedBlob], forced: bool) -> None:
        """Write a new run and remember its row."""
        self._insert(row, meta, blobs, forced)
        self._claimed[row.key] = row

    def claim(
        self, run_id: str, owner: str, seconds: float, *, forced: bool, takeover: bool, gone: str | None
    ) -> StoredRow:
        """Raise the epoch of a run under a new owner and return the new row."""

        def revise(row: StoredRow) -> tuple[StoredRow, list[Write]]:
            now = self._database.exact_now()
            if row.lease > now and not takeover and row.owner != gone:
                raise ClaimedError(run_id, row.owner, row.lease)
            return row.revised(epoch=row.epoch + 1, owner=owner, lease=now + seconds, changed=now), []

        row = self._replace(lambda: self._table.find(run_id), revise, forced)
        with self._database.lock:
            self._claimed[row.key] = row
        return row

    def renew(self, claim: Claim, seconds: float) -> None:
        """Extend the lease of a claim."""
        self._write(claim, {}, lease=lambda: self._database.exact_now() + seconds)

    def release(self, claim: Claim, status: str | None) -> None:
        """End a claim."""
        # Without a status, a crash of the machine may undo it: the owner ends too, and claims end with their owner.
        changes = {} if status is None else {"status": status}
        self._write(claim, changes, lease=_released, may_force=status is not None)
        self._claimed.pop(claim.key, None)

    def flush(
        self, claim: Claim, step: int, segments: list[Blob], status: str | None, taken: list[int], release: bool
    ) -> None:
        """Write segments of the superstep after the head, and remove requests that they answer."""

        def writes(row: StoredRow) -> list[Write]:
            removed = [(self._sql.delete_request, (row.key, number)) for number in taken]
            return [*self._segment_writes(row, step, segments), *removed]

        def is_committed(row: StoredRow, attempted: StoredRow) -> bool:
            # Only this claim adds segments, so if they are there, this transaction wrote them.
            is_there = (row.head, row.pending) == (attempted.head, attempted.pending)
            return row.epoch == claim.epoch and is_there and bool(segments)

        self._write(
            claim,
            {} if status is None else {"status": status},
            writes,
            head=step - 1,
            added=segments,
            lease=_released if release else None,
            is_committed=is_committed,
        )

    def commit(
        self,
        claim: Claim,
        step: int,
        data: Blob,
        segments: list[Blob],
        status: str,
        blobs: list[NamedBlob],
        *,
        head: int,
        release: bool,
    ) -> None:
        """Write a commit with its segments, its base if there are ``blobs``, and the new head."""
        size = len(data) + sum(map(len, segments))
        token = os.urandom(_TOKEN_SIZE)

        def writes(row: StoredRow) -> list[Write]:
            if row.pending and head != step - 1:
                raise ArgumentError(f"superstep {head + 1:,} of run {row.id!r} has segments: commit it first")
            total = row.pending + len(segments), row.pending_size + size
            place = (step, head, claim.epoch, status, self._database.now(), *total, token)
            stored = self._format.encode(context_of("commit", row.id, *place), data)
            rows = self._segment_writes(row, step, segments)
            rows.append((self._sql.insert_commit, (row.key, *place, *stored)))
            return [*rows, *self._base_writes(row.key, row.id, step, blobs)] if blobs else rows

        def is_committed(row: StoredRow, _attempted: StoredRow) -> bool:
            return self._database.query(self._sql.token, (row.key, step)) == [(token,)]

        changes = {"head": step, "pending": 0, "pending_size": 0, "status": status}
        lease = _released if release else None
        self._write(claim, changes, writes, head=head, lease=lease, is_committed=is_committed)

    def answer(self, run_id: str, step: int, vertex: bytes, number: int, data: Blob) -> None:
        """Write an answer to an interrupt of the held superstep."""
        now = self._database.now()
        header, stored = self._format.encode(context_of("answer", run_id, step, vertex, number, now), data)
        may_be_stored, attempt = False, 0
        while True:
            row = self._table.find(run_id)
            present = self._database.query(self._sql.answer, (row.key, step, vertex, number))
            if may_be_stored and present == [(header,)]:
                return
            if row.head != step - 1:
                raise ArgumentError(f"superstep {step:,} of run {run_id!r} is not held: its head is {row.head:,}")
            if present:
                raise ArgumentError(f"interrupt {number} of vertex {vertex!r} of run {run_id!r} already has an answer")
            write = (self._sql.insert_answer, (step, vertex, number, now, header, stored, row.key, step - 1))
            outcome = self._database.apply(True, write, ())
            if outcome is WriteOutcome.COMMITTED:
                return
            may_be_stored |= outcome is WriteOutcome.UNKNOWN
            attempt = self._database.next_attempt(attempt)

    def put_base(self, claim: Claim, step: int, blobs: list[NamedBlob], prune: bool) -> None:
        """Write the base of a committed superstep; checksums are computed before other threads have to wait."""
        insert = self._base_writes(claim.key, claim.run_id, step, blobs)

        def writes(row: StoredRow) -> list[Write]:
            self._reader.base_for(row, step)
            pruned = self._prune_writes(row, step) if prune else []
            return [(self._sql.delete_base, (row.key, step)), *insert, *pruned]

        self._write(claim, {}, writes)

    def fork(self, row: StoredRow, meta: Blob, blobs: list[NamedBlob]) -> None:
        """Write a new run that nobody has claimed."""
        self._insert(row, meta, blobs, forced=True)

    def prune(self, run_id: str, before: int | None, keep: int) -> int:
        """Remove old supersteps and return the first one left; ``keep`` counts only where ``before`` is None."""
        first = 0

        def revise(row: StoredRow) -> tuple[StoredRow, list[Write]]:
            nonlocal first
            wanted = row.head - keep + 1 if before is None else min(before, row.head)
            bases = self._reader.base_steps(row)
            self._reader.require(row, bool(bases), row.head)
            first = max((step for step in bases if step <= wanted), default=bases[0])
            return row.revised(), self._prune_writes(row, first)

        self._replace(lambda: self._table.find(run_id), revise, forced=True)
        return first

    def delete(self, run_id: str, force: bool) -> None:
        """Remove a run."""
        row: StoredRow | None = self._table.find(run_id)
        key, attempt = None if row is None else row.key, 0
        while row is not None and row.key == key:
            if row.lease > self._database.exact_now() and not force:
                raise ClaimedError(run_id, row.owner, row.lease, "force=True")
            delete = (self._sql.delete_run, (row.key, row.checksum))
            if self._database.apply(True, delete, ()) is WriteOutcome.COMMITTED:
                return
            attempt = self._database.next_attempt(attempt)
            row = self._table.lookup(run_id)

    def expire(self, seconds: float, statuses: Collection[str], dry_run: bool) -> list[str]:
        """Remove old runs; return their ids."""
        now, expired = self._database.exact_now(), []
        for row in self._table.rows():
            if row.status not in statuses or row.lease > now or now - row.changed < seconds:
                continue
            if dry_run or self._remove(row):
                expired.append(row.id)
        return expired

    def _remove(self, row: StoredRow) -> bool:
        """Remove a run unless it has changed; return whether it is gone."""
        outcome, attempt = WriteOutcome.UNKNOWN, 0
        while outcome is WriteOutcome.UNKNOWN:
            outcome = self._database.apply(True, (self._sql.delete_run, (row.key, row.checksum)), ())
            attempt = self._database.next_attempt(attempt)
        return outcome is WriteOutcome.COMMITTED or not self._table.exists(row.key)

    # The row of a run

    def _insert(self, row: StoredRow, meta: Blob, blobs: list[NamedBlob], forced: bool) -> None:
        """Write a new run."""
        stored = self._format.encode(context_of("meta", row.id), meta)
        writes = [(self._sql.insert_meta, (row.key, *stored)), *self._base_writes(row.key, row.id, row.head, blobs)]
        attempt = 0
        while self._database.apply(forced, (self._sql.insert_run, row), writes) is not WriteOutcome.COMMITTED:
            attempt = self._database.next_attempt(attempt)
            found = self._table.lookup(row.id)
            if found is not None and found.key == row.key:
                return
            if found is not None:
                raise RunExistsError(
                    f"run {row.id!r} already exists in {self._database.name}: choose another id, or resume it"
                )

    def _replace(
        self, read: Callable[[], StoredRow], revise: Revision, forced: bool, is_committed: IsCommitted | None = None
    ) -> StoredRow:
        """Replace the row of a run by its revision, with other statements, and return the new row."""
        unknown: list[StoredRow] = []
        attempt = 0
        with self._database.lock:
            while True:
                row = read()
                if unknown and _is_written(row, unknown, is_committed):
                    return row
                new, writes = revise(row)
                try:
                    outcome = self._database.apply(forced, self._swap(row, new), writes)
                except BaseException:
                    self._claimed.pop(row.key, None)
                    raise
                if outcome is WriteOutcome.COMMITTED:
                    return new
                self._claimed.pop(row.key, None)
                if outcome is WriteOutcome.UNKNOWN:
                    unknown.append(new)
                attempt = self._database.next_attempt(attempt)

    def _swap(self, row: StoredRow, new: StoredRow) -> Write:
        """Return the statement that replaces a row by its next version."""
        if new.status == row.status and new.pending == row.pending:
            return self._sql.advance_run, (new.head, *new[10:14], *new[15:], *row.identity)
        return self._sql.swap_run, (*new[8:], *row.identity)

    def _write(
        self,
        claim: Claim,
        changes: dict[str, Any],
        writes: Callable[[StoredRow], list[Write]] | None = None,
        *,
        head: int | None = None,
        added: Sequence[Blob] = (),
        lease: Callable[[], float] | None = None,
        is_committed: IsCommitted | None = None,
        may_force: bool = True,
    ) -> None:
        """Replace the row of a run if the claim is still valid and the head is the expected one."""

        def read() -> StoredRow:
            row = self._claimed.get(claim.key)
            return row if row is not None and _fence_reason(claim, row, head) is None else self._read_claimed(claim)

        def revise(row: StoredRow) -> tuple[StoredRow, list[Write]]:
            if (reason := _fence_reason(claim, row, head)) is not None:
                raise FencedError(claim.run_id, reason)
            now = self._database.now()
            until = now + claim.lease_seconds if lease is None else lease()
            pending = {"pending": row.pending + len(added), "pending_size": row.pending_size + sum(map(len, added))}
            new = row.revised(**{**pending, "lease": until, "changed": now, **changes})
            return new, [] if writes is None else writes(row)

        with self._database.lock:
            forced = may_force and claim.durability == "machine"
            self._claimed[claim.key] = self._replace(read, revise, forced, is_committed)

    def _read_claimed(self, claim: Claim) -> StoredRow:
        row = self._table.lookup_key(claim.key)
        if row is None:
            raise FencedError(claim.run_id, "was deleted")
        return row

    # Statements

    def _segment_writes(self, row: StoredRow, step: int, segments: Sequence[Blob]) -> list[Write]:
        writes: list[Write] = []
        for number, segment in enumerate(segments, row.pending):
            stored = self._format.encode(context_of("segment", row.id, step, number), segment)
            writes.append((self._sql.insert_segment, (row.key, step, number, *stored)))
        return writes

    def _base_writes(self, key: int, run_id: str, step: int, blobs: list[NamedBlob]) -> list[Write]:
        writes: list[Write] = []
        for part, data in enumerate(split_blobs(blobs)):
            stored = self._format.encode(context_of("base", run_id, step, part), data)
            writes.append((self._sql.insert_base, (key, step, part, *stored)))
        return writes

    def _prune_writes(self, row: StoredRow, first: int) -> list[Write]:
        sql = self._sql
        prune = [sql.prune_bases, sql.prune_commits, sql.prune_segments, sql.prune_answers]
        if self._database.table_version(EVENTS):
            prune.append(self._database.dialect.translate(EventStatements).prune)
        return [(statement, (row.key, first)) for statement in prune]


def _released() -> float:
    """Return the lease of a released claim."""
    return 0.0


def _is_written(row: StoredRow, unknown: list[StoredRow], is_committed: IsCommitted | None) -> bool:
    """Return whether one of the transactions without a reply was committed."""
    if any(row.nonce == attempted.nonce for attempted in unknown):
        return True
    return is_committed is not None and is_committed(row, unknown[-1])


def _fence_reason(claim: Claim, row: StoredRow, head: int | None) -> str | None:
    """Return why a claim may not write, or None if it is the newest, not released, and the head is as expected."""
    if row.epoch != claim.epoch:
        return f"was claimed by {row.owner} (epoch {row.epoch}) after this claim (epoch {claim.epoch})"
    if row.lease == 0:
        return "was released by this claim: claim it again"
    if head is not None and row.head != head:
        return f"has superstep {row.head:,} as its head, not {head:,}"
    return None
