"""The store of runs: how a running program creates, claims, writes and reads them; each write is one transaction.

A store holds bytes and enforces the protocol: only the newest claim of a run may write, and each superstep is committed
once and in order. ``RunReader`` and ``RunTransactions`` implement it over a ``Database``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from gpu_pregel.errors import ArgumentError, ArgumentTypeError
from gpu_pregel.host.arguments import check_choice, check_flag, check_integer, check_number, check_seconds, check_text
from gpu_pregel.host.stores.blobs import BlobFormat, as_blob, as_segments, named_blobs
from gpu_pregel.host.stores.database import Database
from gpu_pregel.host.stores.event_table import EventTable
from gpu_pregel.host.stores.reader import RunReader
from gpu_pregel.host.stores.request_table import RequestTable
from gpu_pregel.host.stores.rows import (
    DURABILITIES,
    ENDED_STATUSES,
    KINDS,
    MAX_SECONDS,
    STATUSES,
    Claim,
    CommitRow,
    RunRow,
    StoredAnswer,
    UnfinishedRun,
)
from gpu_pregel.host.stores.run_table import new_row
from gpu_pregel.host.stores.saved_run import SavedCommit, SavedRun
from gpu_pregel.host.stores.thread_table import ThreadTable
from gpu_pregel.host.stores.transactions import RunTransactions


class Store:
    """Runs in a database; ``MemoryStore``, ``SQLiteStore`` and ``PostgresStore`` open one.

    Several threads may use a store, one call at a time, and several programs the same file or database. Every method
    may raise ``StoreError`` if the store cannot be used or is damaged, and ``ArgumentError`` for an unknown run.
    Methods that take a claim raise ``FencedError``, and write nothing, if the run has been claimed again, released or
    deleted.

    Attributes
    ----------
    name : str
        How errors name the store.
    counts : WriteCounts
    requests : RequestTable
    events : EventTable
    threads : ThreadTable
    """

    def __init__(self, database: Database, blob_format: BlobFormat) -> None:
        self.name = database.name
        self.counts = database.counts
        self._database = database
        self._reader = RunReader(database, blob_format)
        self._transactions = RunTransactions(database, blob_format, self._reader)
        self.requests = RequestTable(database, blob_format, self._reader.table)
        self.events = EventTable(database, blob_format, self._reader.table)
        self.threads = ThreadTable(database, blob_format)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the store; committed data stay in it."""
        self._database.close()

    # Reading runs, which needs no claim

    def runs(self) -> list[RunRow]:
        """Return all runs, oldest first."""
        return self._reader.runs()

    def unfinished(self, kind: str) -> list[UnfinishedRun]:
        """Return the runs of a kind that have not ended, and those that have ended and were asked to continue.

        The first one has not changed for the longest time. Runs that are "halted", "max_supersteps" or "cancelled" are
        left out even if there are requests to them. This takes a search in an index, however many runs have ended.
        """
        return self._reader.table.unfinished(check_choice("kind", kind, KINDS))

    def run(self, run_id: str) -> RunRow:
        """Return one run."""
        return self._reader.run(run_id)

    def history(self, run_id: str) -> list[CommitRow]:
        """Return the commits of a run that have not been pruned, oldest first."""
        return self._reader.history(run_id)

    def commits(self, run_id: str, after: int = -1) -> Iterator[SavedCommit]:
        """Yield the stored commits after a superstep in order, with their data and segments, whatever bases there are.

        It ends with the run's last commit when this is called; those that are pruned meanwhile raise ``StoreError``.
        """
        return self._reader.commits_after(run_id, check_integer("after", after, -1))

    def answers(self, run_id: str, step: int) -> list[StoredAnswer]:
        """Return the answers to interrupts of a superstep, ordered by (vertex, number)."""
        return self._reader.answers(run_id, check_integer("step", step, 0))

    def last_answer(self, run_id: str, vertex: bytes) -> StoredAnswer | None:
        """Return the latest stored answer to a vertex, given by its encoded id, or None."""
        return self._reader.last_answer(run_id, vertex)

    def load(self, run_id: str, step: int | None = None) -> SavedRun:
        """Return a run up to a superstep: the newest base at or before it, and the commits after that base.

        Parameters
        ----------
        run_id : str
        step : int, optional
            A committed superstep, or -1 for the state before the first; refused with ``ArgumentError`` if it is not
            stored. By default the last one, with the segments and answers of the held superstep after it.

        Returns
        -------
        SavedRun
        """
        return self._reader.load(run_id, None if step is None else check_integer("step", step, -1))

    # Writing runs

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
        forced: bool = True,
    ) -> Claim:
        """Create a run with the state before its first superstep, and claim it.

        Parameters
        ----------
        run_id : str
            From 1 to 200 printable characters; refused with ``ArgumentError`` if the run exists.
        kind : {"agents", "numeric", "mixed"}
        base : bytes or buffer
            The state before superstep 0.
        owner : str
            Name of the claiming program, for people to read.
        lease_seconds : float, default 60
            How long the claim is valid after each flush, commit or ``renew``.
        durability : {"machine", "process"}
            Whether the claim's transactions survive a crash of the machine, or only one of the process.
        meta : bytes or buffer, optional
            Data about the run as a whole.
        blobs : mapping of str to buffer, optional
            Arrays to store with the base, by name.
        status : str, default "running"
        schema : int, default 1
            Version of the caller's formats.
        forced : bool, default True
            With False, a crash of the machine before the claim's next forced transaction may undo the creation.

        Returns
        -------
        Claim
            With epoch 1.
        """
        check_choice("durability", durability, DURABILITIES)
        seconds = check_seconds("lease_seconds", lease_seconds, MAX_SECONDS)
        now = self._database.exact_now()
        row = new_row(
            check_text("run_id", run_id),
            check_choice("kind", kind, KINDS),
            now=now,
            schema=check_integer("schema", schema, 0),
            epoch=1,
            owner=check_text("owner", owner),
            lease=now + seconds,
            status=check_text("status", status),
        )
        forced = forced and durability == "machine"
        self._transactions.create(row, as_blob("meta", meta), named_blobs(base, blobs), forced)
        return Claim(run_id, 1, owner, seconds, durability, row.key)

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
        """Claim a run; from then on earlier claims cannot write to it.

        Parameters
        ----------
        run_id, owner, lease_seconds, durability
            As for ``create``.
        takeover : bool, default False
            Take the run even while another claim is valid.
        gone : str, optional
            An owner known to have ended, whose lease is ignored.

        Returns
        -------
        Claim

        Raises
        ------
        ClaimedError
            Another claim is valid; the error names its owner and expiry.
        """
        check_text("owner", owner)
        check_choice("durability", durability, DURABILITIES)
        seconds = check_seconds("lease_seconds", lease_seconds, MAX_SECONDS)
        forced = durability == "machine"
        row = self._transactions.claim(run_id, owner, seconds, forced=forced, takeover=takeover, gone=gone)
        return Claim(run_id, row.epoch, owner, seconds, durability, row.key)

    def renew(self, claim: Claim, lease_seconds: float | None = None) -> None:
        """Extend a claim to ``lease_seconds`` from now, by default those of the claim."""
        seconds = claim.lease_seconds if lease_seconds is None else lease_seconds
        self._transactions.renew(claim, check_seconds("lease_seconds", seconds, MAX_SECONDS))

    def release(self, claim: Claim, status: str | None = None) -> None:
        """End a claim so that other programs can claim the run, and optionally set the run's status."""
        self._transactions.release(claim, None if status is None else check_text("status", status))

    def flush(
        self,
        claim: Claim,
        step: int,
        segments: Sequence[Any],
        status: str | None = None,
        *,
        taken: Iterable[int] = (),
        release: bool = False,
    ) -> None:
        """Store segments of the superstep after the head before it is committed.

        Parameters
        ----------
        claim : Claim
        step : int
            The head + 1.
        segments : sequence of bytes or buffer
        status : str, optional
            New status of the run, such as "failed" for a held superstep.
        taken : iterable of int
            Numbers of requests to the run, which are also removed.
        release : bool, default False
            Also release the claim.

        Raises
        ------
        FencedError
            Also if the run has another head.
        """
        check_integer("step", step, 0)
        checked = None if status is None else check_text("status", status)
        self._transactions.flush(claim, step, as_segments(segments), checked, list(taken), release)

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
        """Commit a superstep: the remaining segments, the commit, the new head, and optionally the state as a base.

        If the connection is lost before the database replies, the transaction is repeated only if it did not commit.

        Parameters
        ----------
        claim : Claim
        step : int
        commit : bytes or buffer
        segments : sequence of bytes or buffer
        status : str, default "running"
        base : bytes or buffer, optional
            The state after the superstep, which replaces all commits up to it.
        blobs : mapping of str to buffer, optional
            Arrays to store with the base.
        after : int, optional
            The expected head if it is not ``step`` - 1, for runs that do not commit every superstep.
        release : bool, default False
            Also release the claim, for the last superstep.

        Raises
        ------
        FencedError
            Also if the run has another head.
        StoreError
            If the store could not be reached, load the run later to see whether this was committed.
        """
        if after is None:
            head = check_integer("step", step, 0) - 1
        else:
            head = check_integer("after", after, -1)
            check_integer("step", step, head + 1)
        check_text("status", status)
        if blobs and base is None:
            raise ArgumentError("blobs are stored with a base: pass base=")
        data = as_blob("commit", commit)
        pieces = as_segments(segments)
        parts = [] if base is None else named_blobs(base, blobs)
        self._transactions.commit(claim, step, data, pieces, status, parts, head=head, release=release)

    def answer(self, run_id: str, step: int, vertex: bytes, number: int, answer: Any) -> None:
        """Answer an interrupt of the held superstep; forced to disk, and needs no claim.

        Parameters
        ----------
        run_id : str
        step : int
            The run's head + 1.
        vertex : bytes
            Encoded id of the vertex.
        number : int
            Number of the interrupt among those of the vertex in this superstep, from 0.
        answer : bytes or buffer

        Raises
        ------
        ArgumentError
            The superstep is not held, or the interrupt already has an answer.
        """
        check_integer("step", step, 0)
        vertex = bytes(as_blob("vertex", vertex))
        check_integer("number", number, 0)
        self._transactions.answer(run_id, step, vertex, number, as_blob("answer", answer))

    def put_base(
        self, claim: Claim, step: int, base: Any, blobs: Mapping[str, Any] | None = None, *, prune: bool = False
    ) -> None:
        """Store the state after a committed superstep, so that later states need no earlier commits.

        Parameters
        ----------
        claim, step, base, blobs
            As for ``commit``; refused with ``ArgumentError`` if the superstep is not stored.
        prune : bool, default False
            In the same transaction, remove what only supersteps before ``step`` need.
        """
        check_integer("step", step, -1)
        self._transactions.put_base(claim, step, named_blobs(base, blobs), prune)

    def fork(
        self,
        run_id: str,
        step: int,
        new_id: str,
        base: Any,
        *,
        blobs: Mapping[str, Any] | None = None,
        meta: Any = b"",
        status: str = "stopped",
    ) -> None:
        """Create a run from the state after a superstep of another one; it does not depend on that one afterwards.

        Parameters
        ----------
        run_id : str
        step : int
            A committed superstep, or -1 for the state before the first; the head of the new run.
        new_id : str
            Refused with ``ArgumentError`` if the run exists.
        base : bytes or buffer
            The state after ``step``.
        blobs : mapping of str to buffer, optional
        meta : bytes or buffer, optional
        status : str, default "stopped"
        """
        check_text("new_id", new_id)
        parent = self._reader.table.find(run_id)
        self._reader.base_for(parent, check_integer("step", step, -1))
        row = new_row(
            new_id,
            parent.kind,
            branch=parent.branch + 1,
            parent=run_id,
            head=step,
            now=self._database.exact_now(),
            schema=parent.schema,
            epoch=0,
            owner="nobody",
            lease=0.0,
            status=check_text("status", status),
        )
        self._transactions.fork(row, as_blob("meta", meta), named_blobs(base, blobs))

    def prune(self, run_id: str, *, before: int | None = None, keep: int | None = None) -> int:
        """Remove data that only old supersteps need: those before the newest base from which the rest can be loaded.

        Store a newer base with ``put_base`` to remove more.

        Parameters
        ----------
        run_id : str
        before : int, optional
            The first superstep to keep.
        keep : int, optional
            Alternatively, the number of newest supersteps to keep.

        Returns
        -------
        int
            The first superstep that can still be loaded.
        """
        if (before is None) == (keep is None):
            raise ArgumentError("pass either before= or keep=")
        if before is not None:
            return self._transactions.prune(run_id, check_integer("before", before, -1), 0)
        return self._transactions.prune(run_id, None, check_integer("keep", keep, 1))

    def delete(self, run_id: str, *, force: bool = False) -> None:
        """Delete a run but not its forks; a valid claim raises ``ClaimedError`` unless ``force`` is given."""
        self._transactions.delete(run_id, force)

    def expire(
        self, older_than: float, *, statuses: Iterable[str] = ENDED_STATUSES, dry_run: bool = False
    ) -> list[str]:
        """Delete runs that have ended and have not changed for a time; runs that a program has are kept.

        Each run is deleted by a transaction of its own, which has no effect if the run changes in the meantime.

        Parameters
        ----------
        older_than : float
            Seconds since the last change.
        statuses : iterable of str
            Only runs with these; by default "completed", "partial", "halted", "max_supersteps" and "cancelled". Runs
            that are "stopped", "waiting" or held can be continued, and are deleted only if this lists their status.
        dry_run : bool, default False
            Only return the runs that would be deleted.

        Returns
        -------
        list of str
            The ids of these runs, oldest first.
        """
        seconds = check_number("older_than", older_than, 0)
        if isinstance(statuses, str) or not isinstance(statuses, Iterable):
            raise ArgumentTypeError(f"statuses must be a list of statuses, not {statuses!r}")
        chosen = frozenset([check_choice("statuses", one, STATUSES) for one in statuses])
        return self._transactions.expire(seconds, chosen, check_flag("dry_run", dry_run))
