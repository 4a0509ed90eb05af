"""The interface between the store protocol and a database: queries and conditional transactions."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import suppress
from enum import Enum
from typing import Any
from weakref import WeakSet

from gpu_pregel.errors import StoreError
from gpu_pregel.host.stores.rows import WriteCounts
from gpu_pregel.host.stores.schema import Dialect, TableGroup

Write = tuple[str, Sequence[Any]]
"""A statement and its parameters."""
MAX_ATTEMPTS = 100
"""Maximum number of attempts at an operation while connections are lost or other programs write to the same run."""
_INHERITED: list[Any] = []
"""Connections of the process that this one was forked from; a reference here keeps them from being closed."""


class WriteOutcome(Enum):
    """The outcome of a transaction."""

    COMMITTED = 1
    REFUSED = 2
    """The first statement matched no row; nothing was written."""
    UNKNOWN = 3
    """The connection was lost before the database replied; a query shows whether it committed."""


class Database(ABC):
    """One connection to a database, shared by the threads of this process.

    Attributes
    ----------
    name : str
        How errors name the database.
    counts : WriteCounts
    dialect : Dialect
    statements : Statements
    lock : threading.RLock
        Held during each query and transaction.
    read_only : bool
        Whether the store was opened only to read it.
    """

    def __init__(self, name: str, dialect: Dialect) -> None:
        self.name = name
        self.counts = WriteCounts()
        self.dialect = dialect
        self.statements = dialect.statements()
        self.lock = threading.RLock()
        self.read_only = False
        self._connection: Any = None
        self._process = os.getpid()
        _FORK_LOCKS.add(self)

    def __del__(self) -> None:
        with suppress(Exception):
            self.close()

    @abstractmethod
    def query(self, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Return the rows of a query, which may be sent twice if the connection is lost."""

    @abstractmethod
    def apply(self, forced: bool, first: Write, rest: Iterable[Write]) -> WriteOutcome:
        """Execute statements in one transaction if the first one matches a row.

        Parameters
        ----------
        forced : bool
            Force the transaction to disk before returning.
        first : Write
        rest : iterable of Write
        """

    @abstractmethod
    def now(self) -> float:
        """Return seconds since 1970 by the clock of leases, which all programs share."""

    def exact_now(self) -> float:
        """Return the same time, read from the server if the clock is there."""
        return self.now()

    @abstractmethod
    def check_table(self, table: str) -> None:
        """Raise ``StoreError`` if a table is damaged; called before reporting that a row does not exist."""

    @abstractmethod
    def table_version(self, group: TableGroup) -> int:
        """Return the version of a group of tables, 0 if the store does not have them; refuse a newer one."""

    @abstractmethod
    def create_tables(self, group: TableGroup) -> None:
        """Create a group of tables, or update it to this release's version, in one transaction."""

    def close(self) -> None:
        """Close the connection."""
        if self._process != os.getpid():
            self._leave_to_parent()
        with self.lock:  # another thread may be using it
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def _leave_to_parent(self) -> None:
        """Drop an inherited connection, which a forked process must neither use nor close."""
        if self._connection is not None:
            _INHERITED.append(self._connection)
            self._connection = None
        self._process = os.getpid()

    def next_attempt(self, attempt: int) -> int:
        """Return the number of the next attempt, from 0, or raise ``StoreError`` after the last one."""
        if attempt + 1 >= MAX_ATTEMPTS:
            raise StoreError(
                self.name,
                f"failed {MAX_ATTEMPTS} attempts: its connection is lost repeatedly, or many programs write to one run",
            )
        return attempt + 1


class _ForkLocks:
    """Holds the locks of all databases while this process forks, as a child cannot release another thread's lock.

    A database that is busy for longer than ``_TIMEOUT`` gets a new lock in the child, which reconnects in any case.
    """

    _TIMEOUT = 1.0

    def __init__(self) -> None:
        self._databases: WeakSet[Database] = WeakSet()
        self._held: list[Database] = []
        self._busy: list[Database] = []
        self._lock = threading.RLock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=self._acquire, after_in_parent=self._release, after_in_child=self._renew)

    def add(self, database: Database) -> None:
        """Add a database that was opened."""
        with self._lock:
            self._databases.add(database)

    def _acquire(self) -> None:
        self._lock.acquire()
        for database in list(self._databases):
            (self._held if database.lock.acquire(timeout=self._TIMEOUT) else self._busy).append(database)

    def _renew(self) -> None:
        for database in self._busy:
            database.lock = threading.RLock()
        self._release()

    def _release(self) -> None:
        self._busy.clear()
        while self._held:
            self._held.pop().lock.release()
        self._lock.release()


_FORK_LOCKS = _ForkLocks()
