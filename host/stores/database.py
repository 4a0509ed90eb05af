"""What the protocol needs of a database: queries, and transactions that happen if their first statement hits a row.

Beside them the run's row, which each transaction of a run swaps for its successor.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import suppress
from enum import Enum
from typing import Any, NamedTuple
from weakref import WeakSet

from gpu_pregel.errors import ArgumentError, StoreError
from gpu_pregel.host.stores.blobs import Cipher, DamagedError, Sealer, context_of, digest
from gpu_pregel.host.stores.rows import Counts
from gpu_pregel.host.stores.schema import Dialect, Statements

Write = tuple[str, Sequence[Any]]
"""A statement and its parameters."""
TRIES = 100
"""How often something is tried while connections are lost or other programs write to the same run."""
_NONCE_SIZE = 8
_ABANDONED: list[Any] = []
"""Connections of the process that this one was forked from."""


class Outcome(Enum):
    """How a transaction ended."""

    DONE = 1
    REFUSED = 2
    """Its first statement hit no row; nothing was written."""
    UNKNOWN = 3
    """The connection was lost before the database said: read, and see."""


class Row(NamedTuple):
    """A run's row: what never changes, then what does, then a random number of this state and the checksum of all."""

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
    """Segments of superstep head + 1, and their bytes."""
    pending_size: int
    epoch: int
    owner: str
    lease: float
    status: str
    changed: float
    nonce: bytes = b""
    seal: bytes = b""

    def revised(self, **changes: Any) -> Row:
        """The row's successor."""
        row = self._replace(nonce=os.urandom(_NONCE_SIZE), **changes)
        return Row(*row[:-1], row.checksum())

    def checksum(self) -> bytes:
        """What ``seal`` is, if the row is whole."""
        return digest(context_of("run", str(self.id), *self[:-1]))


class MissingError(StoreError):
    """Rows that others need are not there: they were lost, or the run was pruned between two queries."""


class Database(ABC):
    """Transactions and queries; several processes and threads may have the same database open."""

    def __init__(self, name: str, dialect: Dialect, cipher: Cipher | None) -> None:
        self.name = name
        self.counts = Counts()
        self._prefix = dialect.prefix
        self._sql: Statements = dialect.statements()
        self._sealer = Sealer(cipher)
        self._lock = threading.RLock()
        self._rows: dict[int, Row] = {}
        """Rows of runs claimed here, as they were written last: a commit need not read them."""
        self._connection: Any = None
        self._process = os.getpid()
        _FORKING.add(self)

    def __del__(self) -> None:
        with suppress(Exception):
            self.close()

    def close(self) -> None:
        """Close the store; what is committed stays."""
        if self._process != os.getpid():
            self._abandon()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _abandon(self) -> None:
        """Forget the connection in a forked process, where it must be neither used nor closed."""
        if self._connection is not None:
            _ABANDONED.append(self._connection)
            self._connection = None
        self._rows.clear()
        self._process = os.getpid()

    @abstractmethod
    def _query(self, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        """The rows of a query, which may be sent twice if the connection is lost."""

    @abstractmethod
    def _apply(self, forced: bool, first: Write, rest: Iterable[Write]) -> Outcome:
        """Execute statements in one transaction, if the first hits a row; ``forced`` to disk before this returns."""

    @abstractmethod
    def _now(self) -> float:
        """Seconds since 1970 by the clock of leases, which all programs share."""

    def _exact_now(self) -> float:
        """The same, asked for anew where that clock is elsewhere."""
        return self._now()

    @abstractmethod
    def _examine(self, table: str) -> None:
        """Raise ``StoreError`` if a table is damaged: called before something is said not to be there."""

    def _again(self, left: int) -> int:
        """How many tries are left after another one."""
        if left <= 1:
            raise StoreError(
                self.name, f"was tried {TRIES} times: its connection is cut again and again, or many write to one run"
            )
        return left - 1

    def _damaged(
        self,
        run: str,
        problem: str,
        step: int | None = None,
        segment: int | None = None,
        kind: type[StoreError] = StoreError,
    ) -> StoreError:
        remedy = "" if "cipher=" in problem else ": restore a copy of the store, or fork from an earlier superstep"
        return kind(self.name, problem + remedy, run, step, segment)

    def _require_known(self, version: int, newest: int) -> None:
        """Refuse tables of a release to come."""
        if version > newest:
            raise StoreError(
                self.name,
                f"has version {version} of the tables, and this release knows {newest}: use the release that "
                f"wrote it, or a newer one",
            )

    def _lookup(self, run_id: str) -> Row | None:
        """The row of a run, or None."""
        found = self._query(self._sql.run_by_id, (run_id,))
        if not found:
            self._examine("runs")
            return None
        row = self._whole(found[0])
        if row.id != run_id:
            raise self._damaged(run_id, "is damaged (its row is another's)")
        return row

    def _find(self, run_id: str) -> Row:
        """The row of a run that must be there."""
        if not isinstance(run_id, str) or not run_id.isprintable() or (row := self._lookup(run_id)) is None:
            raise ArgumentError(f"there is no run {run_id!r:.200} in {self.name}: store.runs() lists those there are")
        return row

    def _whole(self, found: Sequence[Any]) -> Row:
        """A run's row whose checksum holds."""
        row = Row(*found)
        if row.seal != row.checksum():
            raise self._damaged(str(row.id), "its row is damaged (the checksum does not match)")
        return row

    def _open(
        self,
        run: str,
        context: bytes,
        seal: Any,
        data: Any,
        step: int | None = None,
        segment: int | None = None,
        *,
        sealed: bool = False,
    ) -> bytes:
        """The contents of a blob; or, with ``sealed``, what is stored, which needs no key to be checked."""
        try:
            return (self._sealer.check if sealed else self._sealer.open)(context, seal, data)
        except DamagedError as error:
            raise self._damaged(run, str(error), step, segment) from error.__cause__


class _Forking:
    """Keeps other threads out of all stores while one forks: else the child might wait for them forever.

    A store whose call takes longer than ``_PATIENCE`` has a new lock in the child, which connects anew in any case.
    """

    _PATIENCE = 1.0

    def __init__(self) -> None:
        self._stores: WeakSet[Database] = WeakSet()
        self._held: list[Database] = []
        self._busy: list[Database] = []
        self._lock = threading.RLock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=self._begin, after_in_parent=self._end, after_in_child=self._begin_child)

    def add(self, store: Database) -> None:
        """A store that was opened."""
        with self._lock:
            self._stores.add(store)

    def _begin(self) -> None:
        self._lock.acquire()
        for store in list(self._stores):
            (self._held if store._lock.acquire(timeout=self._PATIENCE) else self._busy).append(store)

    def _begin_child(self) -> None:
        for store in self._busy:
            store._lock = threading.RLock()
        self._end()

    def _end(self) -> None:
        self._busy.clear()
        while self._held:
            self._held.pop()._lock.release()
        self._lock.release()


_FORKING = _Forking()
