"""The table of runs: one row per run, which each transaction of the run replaces."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from gpu_pregel.errors import StoreError, UnknownRunError
from gpu_pregel.host.stores.blobs import context_of, digest
from gpu_pregel.host.stores.database import Database
from gpu_pregel.host.stores.rows import UnfinishedRun

_NONCE_SIZE = 8


class StoredRow(NamedTuple):
    """The row of a run: constant columns, variable ones, a random number for each version, and a checksum."""

    key: int
    id: str
    kind: str
    branch: int
    parent: str | None
    parent_step: int | None
    created: float
    schema: int
    head: int
    pending: int
    """Number of segments of superstep head + 1; ``pending_size`` is their size in bytes."""
    pending_size: int
    epoch: int
    owner: str
    lease: float
    status: str
    changed: float
    nonce: bytes = b""
    checksum: bytes = b""

    def revised(self, **changes: Any) -> StoredRow:
        """Return the next version of the row."""
        row = self._replace(nonce=os.urandom(_NONCE_SIZE), **changes)
        return StoredRow(*row[:-1], row.expected_checksum())

    def expected_checksum(self) -> bytes:
        """Return the checksum that an undamaged row has."""
        return digest(context_of("run", str(self.id), *self[:-1]))

    @property
    def identity(self) -> tuple[int, int, int, bytes]:
        """The parameters that match this version of the row and no other."""
        return self.key, self.epoch, self.head, self.checksum


def new_row(
    run_id: str,
    kind: str,
    *,
    branch: int = 0,
    parent: str | None = None,
    head: int = -1,
    now: float,
    schema: int,
    epoch: int,
    owner: str,
    lease: float,
    status: str,
) -> StoredRow:
    """Return the first version of the row of a run, under a random key; a run with a parent is forked from ``head``."""
    return StoredRow(
        int.from_bytes(os.urandom(8), "little") >> 1,
        run_id,
        kind,
        branch=branch,
        parent=parent,
        parent_step=None if parent is None else head,
        created=now,
        schema=schema,
        head=head,
        pending=0,
        pending_size=0,
        epoch=epoch,
        owner=owner,
        lease=lease,
        status=status,
        changed=now,
    ).revised()


class MissingRowsError(StoreError):
    """Required rows are missing: they were lost, or the run was pruned between two queries."""


class RunTable:
    """Reads rows of runs and verifies their checksums."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = database.statements

    def rows(self) -> list[StoredRow]:
        """Return the rows of all runs, oldest first."""
        self._database.check_table("runs")
        return [self._verified(found) for found in self._database.query(self._sql.runs, ())]

    def unfinished(self, kind: str) -> list[UnfinishedRun]:
        """Return the unfinished runs of a kind; whoever claims one verifies its row."""
        found = self._database.query(self._sql.unfinished, (kind, kind, kind))
        now = self._database.exact_now()
        return [UnfinishedRun._make((*row, row[6] > now)) for row in found]

    def lookup(self, run_id: str) -> StoredRow | None:
        """Return the row of a run, or None."""
        found = self._database.query(self._sql.run_by_id, (run_id,))
        if not found:
            self._database.check_table("runs")
            return None
        row = self._verified(found[0])
        if row.id != run_id:
            raise self.damage(run_id, "is damaged (its row belongs to another run)")
        return row

    def find(self, run_id: str) -> StoredRow:
        """Return the row of a run, or raise ``UnknownRunError`` if it does not exist."""
        if not isinstance(run_id, str) or not run_id.isprintable() or (row := self.lookup(run_id)) is None:
            raise UnknownRunError(f"no run {run_id!r:.200} in {self._database.name}: store.runs() lists the runs")
        return row

    def lookup_key(self, key: int) -> StoredRow | None:
        """Return the row with a key, or None."""
        found = self._database.query(self._sql.run_by_key, (key,))
        if not found:
            self._database.check_table("runs")
            return None
        return self._verified(found[0])

    def exists(self, key: int) -> bool:
        """Return whether a row with this key exists."""
        return bool(self._database.query(self._sql.run_by_key, (key,)))

    def damage(
        self,
        run_id: str,
        problem: str,
        step: int | None = None,
        segment: int | None = None,
        kind: type[StoreError] = StoreError,
    ) -> StoreError:
        """Return an error about damaged or unreadable data of a run."""
        remedy = "" if "cipher=" in problem else ": restore a copy of the store, or fork from an earlier superstep"
        return kind(self._database.name, problem + remedy, run_id, step, segment)

    def _verified(self, found: Sequence[Any]) -> StoredRow:
        row = StoredRow(*found)
        if row.checksum != row.expected_checksum():
            raise self.damage(str(row.id), "its row is damaged (the checksum does not match)")
        return row
