"""The file of a SQLite database: checks of its path and tables, and connections to it."""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, StoreError
from gpu_pregel.host.arguments import check_seconds
from gpu_pregel.host.stores.event_schema import EVENTS
from gpu_pregel.host.stores.rows import MAX_SECONDS
from gpu_pregel.host.stores.schema import MIGRATIONS, Dialect, TableGroup, check_version
from gpu_pregel.host.stores.thread_schema import THREADS

APPLICATION_ID = 0x67507265
"""Identifies a store in the header of its file, to ``file`` and to this package."""
_GROUPS = (THREADS, EVENTS)
"""Tables that a store has once they are needed."""
_CHECKPOINT_PAGES = 500
"""Pages of 4 kB in the log before SQLite moves them to the file, with three more forced writes: some 250 quick
supersteps."""
_LOG_BYTES = 64 << 20
_CACHE_KB = 16 << 10

DIALECT = Dialect(
    prefix="",
    parameter="?",
    blob="BLOB",
    integer="INTEGER",
    real="REAL",
    text="TEXT",
    strict=" STRICT",
    # Commits are small enough for their rows to fit in the leaves of the primary key's tree.
    strict_by_key=" STRICT, WITHOUT ROWID",
)
_SETTINGS = (
    "synchronous = NORMAL",
    "foreign_keys = ON",
    "trusted_schema = OFF",
    "cell_size_check = ON",
    f"cache_size = -{_CACHE_KB}",
    "secure_delete = FAST",
    f"wal_autocheckpoint = {_CHECKPOINT_PAGES}",
    f"journal_size_limit = {_LOG_BYTES}",
)
_PROBLEMS = {
    sqlite3.SQLITE_BUSY: "is in use by another program: wait until it has finished, or pass a longer patience=",
    sqlite3.SQLITE_FULL: "has no space left: free space on its disk and continue; committed data are safe",
    sqlite3.SQLITE_READONLY: "cannot be written ({error}): change the permissions of the file and its folder",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened ({error}): check the permissions of the file and its folder",
    sqlite3.SQLITE_PERM: "cannot be opened ({error}): check the permissions of the file and its folder",
    sqlite3.SQLITE_IOERR: "cannot be read or written ({error}): check its disk; committed data are safe",
    sqlite3.SQLITE_CORRUPT: "is damaged ({error}): restore a copy",
    sqlite3.SQLITE_NOTADB: "is not a SQLite database, or its header is damaged: give another path, or restore a copy",
    sqlite3.SQLITE_TOOBIG: "cannot hold data of this size ({error})",
}
SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""Python's module raises the latter for text or messages that are not UTF-8, which damage can cause."""


class SQLiteFile:
    """The path of a store and how to open it; ``SQLiteStore`` documents the parameters."""

    def __init__(self, path: str | os.PathLike[str], *, patience: float, read_only: bool, create: bool) -> None:
        if not isinstance(path, (str, os.PathLike)):
            raise ArgumentTypeError(f"path must be the path of a file, not {path!r}")
        name = os.fsdecode(path)
        if not name or name.startswith(":") or "\0" in name:
            raise ArgumentError(
                f"path must be the path of a file, not {path!r}: use gp.MemoryStore() to keep runs in memory"
            )
        self.path = Path(name).absolute()
        self.name = str(self.path)
        self._patience = check_seconds("patience", patience, MAX_SECONDS)
        self.read_only = read_only
        self._create = create and not read_only
        self._identity = (0, 0)
        """Device and inode of the file."""

    def check(self) -> None:
        """Refuse a path that SQLite would refuse with a less helpful message."""
        folder = self.path.parent
        if not folder.is_dir():
            raise StoreError(self.name, f"cannot be opened: create the folder {folder} first")
        try:
            status = self.path.stat()
        except FileNotFoundError:
            if not self._create:
                raise StoreError(self.name, "does not exist") from None
        except OSError as error:
            raise StoreError(self.name, f"cannot be opened: {error.strerror or error}") from error
        else:
            self._check_permissions(status)
        if not self.read_only and not _may(folder, os.W_OK | os.X_OK):
            raise StoreError(
                self.name,
                f"cannot be written, as no files can be created in {folder}: change its permissions, or pass "
                f"read_only=True",
            )

    def _check_permissions(self, status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode):
            raise StoreError(self.name, "is not a regular file: give the path of one")
        if not _may(self.path, os.R_OK):
            raise StoreError(self.name, "cannot be read: change its permissions")
        if not self.read_only and not _may(self.path, os.W_OK):
            raise StoreError(self.name, "cannot be written: change its permissions, or pass read_only=True")

    def open(self) -> sqlite3.Connection:
        """Return a new connection with the settings and tables of this release."""
        try:
            connection = self._connect("ro" if self.read_only else "rwc" if self._create else "rw")
        except SQLITE_ERRORS as error:
            if (
                not self.read_only
                or not has_code(error, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
                or self._has_log()
            ):
                raise store_error(self.name, error) from error
            # The folder is read-only and no program has the file open.
            connection = self._connect("ro&immutable=1")
        status = self.path.stat()
        self._identity = status.st_dev, status.st_ino
        return connection

    def check_writable(self) -> None:
        """Refuse to write to a read-only store, or to a file that has been moved, where the data would be lost."""
        if self.read_only:
            raise StoreError(self.name, "was opened with read_only=True")
        try:
            status = os.stat(self.name)
        except OSError:
            status = None
        if status is None or (status.st_dev, status.st_ino) != self._identity:
            raise StoreError(self.name, "was moved or deleted while it was open: restore it, and open it again")

    def _has_log(self) -> bool:
        log = self.path.with_name(self.path.name + "-wal")
        return log.exists() and log.stat().st_size > 0

    def _connect(self, mode: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"file://{quote(os.fsencode(self.path))}?mode={mode}",
            uri=True,
            timeout=self._patience,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            version = self._version(connection)
            if not self.read_only:
                self._use_log(connection)
                migrate(connection, version)
            elif version < len(MIGRATIONS):
                raise StoreError(self.name, f"has version {version} of the tables: open it once without read_only=True")
            for setting in _SETTINGS:
                connection.execute(f"PRAGMA {setting}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _version(self, connection: sqlite3.Connection) -> int:
        """Return the version of the tables, 0 for an empty file; refuse files that are not stores."""
        # In a transaction, as another program may be creating the tables.
        connection.execute("BEGIN")
        application, version = (
            int(connection.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("application_id", "user_version")
        )
        tables = _tables(connection)
        # Not those of tables which someone else added.
        present = [group for group in _GROUPS if _tables_of((group.migrations[0][:1],)) <= tables]
        groups = [(group, group_version(connection, group)) for group in present]
        connection.execute("COMMIT")
        if application != APPLICATION_ID:
            if application or version or tables:
                raise StoreError(self.name, "is a database of another program: give another path")
            if not self._create:
                raise StoreError(self.name, "is empty: it is not a store")
        check_version(self.name, version, len(MIGRATIONS))
        expected = _tables_of(MIGRATIONS[:version])
        for group, number in groups:
            check_version(self.name, number, len(group.migrations))
            expected = expected | _tables_of(group.migrations[:number])
        # Refuse triggers and views that someone added, before they can run.
        if tables != expected:
            raise StoreError(self.name, "does not have the tables of a store: it is damaged or was changed")
        return version

    def _use_log(self, connection: sqlite3.Connection) -> None:
        """Set the write-ahead log, a setting stored in the file; retry, as SQLite ignores its timeout here."""
        deadline = time.monotonic() + self._patience
        while True:
            try:
                mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            except sqlite3.OperationalError as error:
                if not has_code(error, sqlite3.SQLITE_BUSY) or time.monotonic() > deadline:
                    raise
                time.sleep(0.005)
                continue
            if mode == "wal":
                return
            raise StoreError(
                self.name,
                "is on a file system without shared memory between programs, such as a network one: move it to a "
                "local disk, or use gp.PostgresStore",
            )


def migrate(connection: sqlite3.Connection, version: int) -> None:
    """Update the tables of runs to this release's version in one transaction."""
    if version == len(MIGRATIONS):
        return
    with _transaction(connection):
        # Another program may have updated them in the meantime.
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        for statements in MIGRATIONS[version:]:
            for statement in statements:
                connection.execute(DIALECT.create(statement))
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    # Write it to the file itself, which then is recognized as a store even without its log.
    connection.execute("PRAGMA wal_checkpoint")


def group_version(connection: sqlite3.Connection, group: TableGroup) -> int:
    """Return the version of a group of tables, 0 if there are none."""
    found = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (group.about,))
    if found.fetchone() is None:
        return 0
    versions = connection.execute(f"SELECT version FROM {group.about}").fetchall()
    return int(versions[0][0]) if versions else 0


def migrate_group(connection: sqlite3.Connection, group: TableGroup) -> None:
    """Update a group of tables to this release's version in one transaction."""
    with _transaction(connection):
        version = group_version(connection, group)
        for statements in group.migrations[version:]:
            for statement in statements:
                connection.execute(DIALECT.create(statement))
        if version == 0:
            connection.execute(f"INSERT INTO {group.about} VALUES (0)")
        connection.execute(f"UPDATE {group.about} SET version = ?", (len(group.migrations),))


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit what is executed within the block, or roll it back if an exception is raised."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def store_error(name: str, error: Exception) -> StoreError:
    """Translate an error of SQLite into the problem and its remedy."""
    for code, problem in _PROBLEMS.items():
        if has_code(error, code):
            return StoreError(name, problem.format(error=error))
    return StoreError(name, f"cannot be used ({error}): it is damaged, or another program changed its tables")


def has_code(error: Exception, *codes: int) -> bool:
    """Return whether an error of SQLite has one of these primary codes; errors of Python's module have none."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in codes


def _tables(connection: sqlite3.Connection) -> set[tuple[Any, ...]]:
    """Return the definitions in a database except for SQLite's own statistics."""
    found = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
    return {row for row in found if not str(row[1]).startswith("sqlite_stat")}


@cache
def _tables_of(migrations: tuple[tuple[str, ...], ...]) -> set[tuple[Any, ...]]:
    """Return the definitions in a store after migrations."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for statements in migrations:
            for statement in statements:
                connection.execute(DIALECT.create(statement))
        return _tables(connection)


def _may(path: Path, mode: int) -> bool:
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)
