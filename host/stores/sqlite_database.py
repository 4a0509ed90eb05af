"""Queries and transactions in SQLite, in a file or in memory."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from gpu_pregel.errors import StoreError
from gpu_pregel.host.stores.database import Database, Write, WriteOutcome
from gpu_pregel.host.stores.schema import TableGroup, check_version
from gpu_pregel.host.stores.sqlite_file import (
    DIALECT,
    SQLITE_ERRORS,
    SQLiteFile,
    group_version,
    migrate,
    migrate_group,
    store_error,
)

OLDEST_SQLITE = (3, 37, 0)
"""The first release with STRICT tables."""


class SQLiteDatabase(Database):
    """A connection to SQLite, which the threads of this process use in turn.

    Parameters
    ----------
    name : str
    file : SQLiteFile or None
        None for a database in memory.
    """

    def __init__(self, name: str, file: SQLiteFile | None) -> None:
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            needed = ".".join(map(str, OLDEST_SQLITE))
            raise StoreError(name, f"needs SQLite {needed} or newer, but this Python has {sqlite3.sqlite_version}")
        super().__init__(name, DIALECT)
        self._file = file
        self._forced = False
        self.read_only = file is not None and file.read_only
        if file is None:
            self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            self._connection.execute("PRAGMA foreign_keys = ON")
            migrate(self._connection, 0)
        else:
            file.check()
            self._connection = file.open()

    def now(self) -> float:
        """Return seconds since 1970 by the machine's clock."""
        return time.time()

    def query(self, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with self.lock:
            try:
                return self._connect().execute(sql, parameters).fetchall()
            except SQLITE_ERRORS as error:
                raise store_error(self.name, error) from error

    def apply(self, forced: bool, first: Write, rest: Iterable[Write]) -> WriteOutcome:
        """Execute statements in one transaction if the first one matches a row."""
        self.check_writable()
        with self.lock:
            connection = self._connect()
            try:
                if forced is not self._forced:
                    connection.execute(f"PRAGMA synchronous = {'FULL' if forced else 'NORMAL'}")
                    self._forced = forced
                connection.execute("BEGIN IMMEDIATE")
                if not _matches(connection, first):
                    connection.execute("ROLLBACK")
                    return WriteOutcome.REFUSED
                for sql, parameters in rest:
                    connection.execute(sql, parameters)
                connection.execute("COMMIT")
            except BaseException as error:
                if connection.in_transaction:
                    with suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")
                if isinstance(error, SQLITE_ERRORS):
                    raise store_error(self.name, error) from error
                raise
            self.counts.transactions += 1
            self.counts.forced += forced
            return WriteOutcome.COMMITTED

    def check_table(self, table: str) -> None:
        """Raise ``StoreError`` if a table is damaged."""
        found = self.query(f"PRAGMA integrity_check({table})", ())
        if found != [("ok",)]:
            raise StoreError(self.name, f"is damaged ({found[0][0]}): restore a copy")

    def table_version(self, group: TableGroup) -> int:
        """Return the version of a group of tables, 0 if the store does not have them."""
        with self.lock:
            try:
                version = group_version(self._connect(), group)
            except SQLITE_ERRORS as error:
                raise store_error(self.name, error) from error
        check_version(self.name, version, len(group.migrations))
        return version

    def create_tables(self, group: TableGroup) -> None:
        """Create a group of tables, or update it to this release's version."""
        self.check_writable()
        with self.lock:
            try:
                migrate_group(self._connect(), group)
            except SQLITE_ERRORS as error:
                raise store_error(self.name, error) from error

    def check_writable(self) -> None:
        """Refuse to write to a file that is read-only or has been moved."""
        if self._file is not None:
            self._file.check_writable()

    def _connect(self) -> sqlite3.Connection:
        """Return the connection, a new one in a forked process."""
        if self._file is not None and self._process != os.getpid():
            self._leave_to_parent()
            self._connection = self._file.open()
            self._forced = False
        connection: sqlite3.Connection | None = self._connection
        if connection is None:
            raise StoreError(self.name, "is closed: open it again")
        return connection


def _matches(connection: sqlite3.Connection, statement: Write) -> bool:
    """Execute a statement and return whether it changed exactly one row."""
    try:
        return connection.execute(*statement).rowcount == 1
    except sqlite3.IntegrityError:
        return False
