"""What a running program does with a store: create, claim, flush, commit, answer; each is one transaction.

It keeps bytes and enforces the protocol: only the newest claim of a run writes, superstep after superstep, each once.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from gpu_pregel.errors import ArgumentError, ClaimedError
from gpu_pregel.host.stores.blobs import as_blob, context_of
from gpu_pregel.host.stores.database import TRIES, Outcome, Row, Write
from gpu_pregel.host.stores.history import History
from gpu_pregel.host.stores.rows import (
    DURABILITIES,
    KINDS,
    Claim,
    check_choice,
    check_integer,
    check_seconds,
    check_text,
)
from gpu_pregel.host.stores.transactions import as_segments, named, new_key

_TOKEN_SIZE = 16


class Store(History):
    """What all stores do; ``MemoryStore``, ``SQLiteStore`` and ``PostgresStore`` say where the bytes go.

    A store may be used by several threads, one call at a time, and the same file or database by several programs.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def create(
        self,
        run_id: str,
        kind: str,
        base: Any,
        *,
        owner: str,
        lease_seconds: float = 60.0,
        durability: str = "machine",
        meta: Any = b"",
        blobs: Mapping[str, Any] | None = None,
        status: str = "running",
        schema: int = 1,
    ) -> Claim:
        """Begin a run: its row and the state before the first superstep.

        Parameters
        ----------
        run_id : str
            From 1 to 200 printable characters.
        kind : {"agents", "numeric"}
        base : bytes or buffer
            The state before superstep 0.
        owner : str
            Who claims the run, for people to read.
        lease_seconds : float, default 60
            How long the claim is good for after each flush, commit or ``renew``.
        durability : {"machine", "process"}
            What the claim's transactions survive.
        meta : bytes or buffer, optional
            What belongs to the run as a whole.
        blobs : mapping of str to buffer, optional
            Arrays that are stored with the base, under names.
        status : str, default "running"
        schema : int, default 1
            Version of the caller's formats.

        Returns
        -------
        Claim
            With epoch 1.

        Raises
        ------
        ArgumentError
            There is a run of this id.
        StoreError
        """
        check_choice("durability", durability, DURABILITIES)
        seconds = check_seconds("lease_seconds", lease_seconds)
        now = self._exact_now()
        key = new_key()
        row = Row(
            key,
            check_text("run_id", run_id),
            check_choice("kind", kind, KINDS),
            branch=0,
            parent=None,
            parent_step=None,
            created=now,
            schema=check_integer("schema", schema, 0),
            head=-1,
            pending=0,
            pending_size=0,
            epoch=1,
            owner=check_text("owner", owner),
            lease=now + seconds,
            status=check_text("status", status),
            changed=now,
        ).revised()
        self._insert(row, meta, named(base, blobs), durability == "machine")
        self._rows[key] = row
        return Claim(run_id, 1, owner, seconds, durability, key)

    def claim(
        self,
        run_id: str,
        *,
        owner: str,
        lease_seconds: float = 60.0,
        durability: str = "machine",
        takeover: bool = False,
        gone: str | None = None,
    ) -> Claim:
        """Take a run over: nothing that is done under an earlier claim is written from here on.

        Parameters
        ----------
        run_id : str
        owner : str
        lease_seconds : float, default 60
        durability : {"machine", "process"}
        takeover : bool, default False
            Although the lease of the present claim has not run out.
        gone : str, optional
            An owner who is known to have ended: the lease of a claim that is still that one's does not count.

        Returns
        -------
        Claim

        Raises
        ------
        ClaimedError
            Somebody holds the run; the error says who and until when.
        ArgumentError
            There is no such run.
        StoreError
        """
        check_text("owner", owner)
        check_choice("durability", durability, DURABILITIES)
        seconds = check_seconds("lease_seconds", lease_seconds)

        def plan(row: Row) -> tuple[Row, list[Write]]:
            now = self._exact_now()
            if row.lease > now and not takeover and row.owner != gone:
                raise ClaimedError(run_id, row.owner, row.lease)
            return row.revised(epoch=row.epoch + 1, owner=owner, lease=now + seconds, changed=now), []

        row = self._swap(lambda: self._find(run_id), plan, durability == "machine")
        with self._lock:
            self._rows[row.key] = row
        return Claim(run_id, row.epoch, owner, seconds, durability, row.key)

    def renew(self, claim: Claim, lease_seconds: float | None = None) -> None:
        """Make a claim good for ``lease_seconds`` from now, or for as long as it was made.

        Parameters
        ----------
        claim : Claim
        lease_seconds : float, optional

        Raises
        ------
        FencedError
            Somebody else has claimed the run, or it was released or deleted.
        StoreError
        """
        seconds = claim.lease_seconds if lease_seconds is None else check_seconds("lease_seconds", lease_seconds)
        self._write(claim, {}, lease=lambda: self._exact_now() + seconds)

    def release(self, claim: Claim, status: str | None = None) -> None:
        """End a claim, so that anybody may claim the run at once.

        Parameters
        ----------
        claim : Claim
        status : str, optional
            Of the run from now on.

        Raises
        ------
        FencedError
        StoreError
        """
        changes = {} if status is None else {"status": check_text("status", status)}
        self._write(claim, changes, lease=_released)
        self._rows.pop(claim.key, None)

    def flush(
        self, claim: Claim, step: int, segments: Sequence[Any], status: str | None = None, *, release: bool = False
    ) -> None:
        """Keep segments of the superstep after the head, before that is committed.

        Parameters
        ----------
        claim : Claim
        step : int
            The head + 1.
        segments : sequence of bytes or buffer
        status : str, optional
            Of the run from now on, such as "failed" where the superstep is held.
        release : bool, default False
            End the claim with it, as ``release`` does.

        Raises
        ------
        FencedError
            Somebody else has claimed the run, or the head is another; nothing was written.
        StoreError
        """
        check_integer("step", step, 0)
        pieces = as_segments(segments)
        changes = {} if status is None else {"status": check_text("status", status)}

        def settled(row: Row, tried: Row) -> bool:
            # Only this claim adds segments, so a row that has them and was changed since is its.
            return row.epoch == claim.epoch and (row.head, row.pending) == (tried.head, tried.pending) and bool(pieces)

        self._write(
            claim,
            changes,
            lambda row: self._segment_writes(row, step, pieces),
            head=step - 1,
            more=pieces,
            lease=_released if release else None,
            settled=settled,
        )

    def commit(
        self,
        claim: Claim,
        step: int,
        commit: Any,
        segments: Sequence[Any] = (),
        status: str = "running",
        *,
        base: Any = None,
        blobs: Mapping[str, Any] | None = None,
        after: int | None = None,
        release: bool = False,
    ) -> None:
        """Commit a superstep: its segments not flushed yet, its commit, the new head, and perhaps its state as a base.

        If the connection to the database is lost before it said whether it committed, that is found out: a commit that
        is there is not repeated.

        Parameters
        ----------
        claim : Claim
        step : int
        commit : bytes or buffer
        segments : sequence of bytes or buffer
        status : str, default "running"
        base : bytes or buffer, optional
            The state after the superstep; for a base that stands for all that led to it.
        blobs : mapping of str to buffer, optional
            Arrays that are stored with the base.
        after : int, optional
            The head that is expected, if not ``step`` - 1: for runs that do not commit every superstep.
        release : bool, default False
            End the claim with it, as ``release`` does: for the last superstep.

        Raises
        ------
        FencedError
            Somebody else has claimed the run, or the head is another; nothing was written.
        StoreError
            If the store cannot be reached, whether it committed shows when it can: load the run.
        """
        head = check_integer("step", step, 0) - 1 if after is None else check_integer("after", after, -1)
        check_integer("step", step, head + 1)
        check_text("status", status)
        if blobs and base is None:
            raise ArgumentError("blobs are stored with a base: pass base=")
        data = as_blob("commit", commit)
        pieces = as_segments(segments)
        parts = [] if base is None else named(base, blobs)
        size = len(data) + sum(map(len, pieces))
        token = os.urandom(_TOKEN_SIZE)

        def writes(row: Row) -> list[Write]:
            if row.pending and head != step - 1:
                raise ArgumentError(f"superstep {head + 1:,} of run {row.id!r} has segments: commit it first")
            own = row.pending + len(pieces), row.pending_size + size
            place = (step, head, claim.epoch, status, self._now(), *own, token)
            sealed = self._sealer.seal(context_of("commit", row.id, *place), data)
            rows = self._segment_writes(row, step, pieces)
            rows.append((self._sql.insert_commit, (row.key, *place, *sealed)))
            return [*rows, *self._base_writes(row, step, parts)] if parts else rows

        def settled(row: Row, _tried: Row) -> bool:
            return self._query(self._sql.token, (row.key, step)) == [(token,)]

        changes = {"head": step, "pending": 0, "pending_size": 0, "status": status}
        lease = _released if release else None
        self._write(claim, changes, writes, head=head, lease=lease, settled=settled)

    def answer(self, run_id: str, step: int, vertex: bytes, number: int, answer: Any) -> None:
        """Answer an interrupt of the superstep that is held; anybody may, without a claim. Forced to disk.

        Parameters
        ----------
        run_id : str
        step : int
            The run's head + 1.
        vertex : bytes
            Its id as the codec's bytes.
        number : int
            Which interrupt of the vertex in this superstep, from 0.
        answer : bytes or buffer

        Raises
        ------
        ArgumentError
            There is no such run, the superstep is not held, or the interrupt has an answer.
        StoreError
        """
        check_integer("step", step, 0)
        vertex = bytes(as_blob("vertex", vertex))
        check_integer("number", number, 0)
        data = as_blob("answer", answer)
        now = self._now()
        seal, stored = self._sealer.seal(context_of("answer", run_id, step, vertex, number, now), data)
        is_tried, left = False, TRIES
        while True:
            row = self._find(run_id)
            present = self._query(self._sql.answer, (row.key, step, vertex, number))
            if is_tried and present == [(seal,)]:
                return
            if row.head != step - 1:
                raise ArgumentError(f"superstep {step:,} of run {run_id!r} is not held: its head is {row.head:,}")
            if present:
                raise ArgumentError(f"interrupt {number} of vertex {vertex!r} of run {run_id!r} has an answer")
            write = (self._sql.insert_answer, (step, vertex, number, now, seal, stored, row.key, step - 1))
            outcome = self._apply(True, write, ())
            if outcome is Outcome.DONE:
                return
            is_tried |= outcome is Outcome.UNKNOWN
            left = self._again(left)


def _released() -> float:
    """The lease of a claim that has ended."""
    return 0.0
