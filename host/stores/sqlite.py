"""Stores in a SQLite file: write-ahead log, one forced write per transaction."""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, StoreError
from gpu_pregel.host.stores.blobs import Cipher
from gpu_pregel.host.stores.database import Outcome, Write
from gpu_pregel.host.stores.rows import check_seconds
from gpu_pregel.host.stores.schema import MIGRATIONS, Dialect
from gpu_pregel.host.stores.store import Store

APPLICATION_ID = 0x67507265
"""In the header of each file, so that ``file`` and this package know one."""
OLDEST_SQLITE = (3, 37, 0)
"""The first with STRICT tables."""
_CHECKPOINT_PAGES = 500
"""Pages of 4 kB in the log before they are moved into the file, which takes three more forced writes: after some 250
quick supersteps."""
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
    # Commits are small, so that their rows fit into the leaves of the tree of keys.
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
    sqlite3.SQLITE_BUSY: "is in use by another program that writes: wait for its end, or pass a longer busy_timeout",
    sqlite3.SQLITE_FULL: "has no room left: make room on its disk, and go on; what was committed stands",
    sqlite3.SQLITE_READONLY: "cannot be written to ({error}): change the permissions of the file and its folder",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened ({error}): look at the permissions of the file and its folder",
    sqlite3.SQLITE_PERM: "cannot be opened ({error}): look at the permissions of the file and its folder",
    sqlite3.SQLITE_IOERR: "cannot be read or written ({error}): look at its disk; what was committed stands",
    sqlite3.SQLITE_CORRUPT: "is damaged ({error}): restore a copy",
    sqlite3.SQLITE_NOTADB: "is no SQLite database, or its beginning is damaged: give another path, or restore a copy",
    sqlite3.SQLITE_TOOBIG: "cannot hold this ({error})",
}
# The module raises the latter where a text or SQLite's message is not UTF-8, which damage can bring about.
_ERRORS = (sqlite3.Error, UnicodeDecodeError)


class SQLiteBase(Store):
    """A store on one connection to SQLite, in a file or in memory."""

    def __init__(self, name: str, cipher: Cipher | None) -> None:
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            needed = ".".join(map(str, OLDEST_SQLITE))
            raise StoreError(name, f"needs SQLite {needed} or newer, and this Python has {sqlite3.sqlite_version}")
        super().__init__(name, DIALECT, cipher)
        self._forced = False

    def _connect(self) -> sqlite3.Connection:
        """The connection, which threads take in turn."""
        connection: sqlite3.Connection | None = self._connection
        if connection is None:
            raise StoreError(self.name, "is closed: open it again")
        return connection

    def _problem(self, error: Exception) -> StoreError:
        """What an error of SQLite means for the user."""
        for code, problem in _PROBLEMS.items():
            if _is(error, code):
                return StoreError(self.name, problem.format(error=error))
        return StoreError(self.name, f"cannot be used ({error}): it is damaged, or another program changed its tables")

    def _now(self) -> float:
        return time.time()

    def _query(self, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        with self._lock:
            try:
                return self._connect().execute(sql, parameters).fetchall()
            except _ERRORS as error:
                raise self._problem(error) from error

    def _apply(self, forced: bool, first: Write, rest: Iterable[Write]) -> Outcome:
        with self._lock:
            connection = self._connect()
            try:
                if forced is not self._forced:
                    connection.execute(f"PRAGMA synchronous = {'FULL' if forced else 'NORMAL'}")
                    self._forced = forced
                connection.execute("BEGIN IMMEDIATE")
                if not self._hits(connection, first):
                    connection.execute("ROLLBACK")
                    return Outcome.REFUSED
                for sql, parameters in rest:
                    connection.execute(sql, parameters)
                connection.execute("COMMIT")
            except BaseException as error:
                if connection.in_transaction:
                    with suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")
                if isinstance(error, _ERRORS):
                    raise self._problem(error) from error
                raise
            self.counts.transactions += 1
            self.counts.forced += forced
            return Outcome.DONE

    def _hits(self, connection: sqlite3.Connection, first: Write) -> bool:
        try:
            return connection.execute(*first).rowcount == 1
        except sqlite3.IntegrityError:
            return False

    def _examine(self, table: str) -> None:
        found = self._query(f"PRAGMA integrity_check({table})", ())
        if found != [("ok",)]:
            raise StoreError(self.name, f"is damaged ({found[0][0]}): restore a copy")

    def _migrate(self, connection: sqlite3.Connection, version: int) -> None:
        """Bring the tables to this release's version, in one transaction."""
        if version == len(MIGRATIONS):
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Another program may have done so by now.
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            for statements in MIGRATIONS[version:]:
                for statement in statements:
                    connection.execute(DIALECT.create(statement))
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
            connection.execute("COMMIT")
            # Into the file itself, so that it is known as a store even without its log.
            connection.execute("PRAGMA wal_checkpoint")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


class SQLiteStore(SQLiteBase):
    """Runs in a SQLite file on a local disk, made if there is none; several programs may use it at once.

    A transaction of ``durability="machine"`` is on the disk when it returns. One of ``"process"`` is with the operating
    system: it survives the end of the program, but the newest may be lost when the machine goes down; the file is whole
    even then. Pruned and deleted rows leave room in the file that is used again; ``compact`` gives it back.

    Parameters
    ----------
    path : path
        Beside it SQLite keeps ``path-wal`` and ``path-shm`` while the store is open, and after a crash: they hold the
        newest supersteps, so copy a store when it is closed.
    cipher : Cipher, optional
        Encrypts what is stored, all of a store or nothing; ids, supersteps, statuses and times stay readable.
    busy_timeout : float, default 5
        Seconds to wait for another program that writes.
    read_only : bool, default False
        For listing and reading: nothing is written, not even a newer version of the tables.
    create : bool, default True
        Whether to make a file that is not there.

    Raises
    ------
    StoreError
        The file cannot be used, or holds something else.

    Examples
    --------
    >>> import tempfile
    >>> import gpu_pregel as gp
    >>> with tempfile.TemporaryDirectory() as folder, gp.SQLiteStore(folder + "/runs.db") as store:
    ...     claim = store.create("tuesday", "agents", b"state", owner="me")
    ...     store.commit(claim, 0, b"commit", [b"records"], status="completed")
    ...     [(run.id, run.head, run.status) for run in store.runs()]
    [('tuesday', 0, 'completed')]
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        cipher: Cipher | None = None,
        busy_timeout: float = 5.0,
        read_only: bool = False,
        create: bool = True,
    ) -> None:
        if not isinstance(path, (str, os.PathLike)):
            raise ArgumentTypeError(f"path must be the path of a file, not {path!r}")
        name = os.fsdecode(path)
        if not name or name.startswith(":") or "\0" in name:
            raise ArgumentError(f"path must be the path of a file, not {path!r}: gp.MemoryStore() keeps runs in memory")
        self._path = Path(name).absolute()
        super().__init__(str(self._path), cipher)
        self._busy_timeout = check_seconds("busy_timeout", busy_timeout)
        self._read_only = read_only
        self._create = create and not read_only
        self._check_file()
        self._reopen()

    def compact(self) -> None:
        """Give room that pruned and deleted rows left back to the file system; takes a copy of the file meanwhile."""
        self._check_writable()
        self._query("VACUUM", ())
        self._query("PRAGMA wal_checkpoint(TRUNCATE)", ())

    def _check_file(self) -> None:
        """Say what would make SQLite fail with less of an explanation."""
        folder = self._path.parent
        if not folder.is_dir():
            raise StoreError(self.name, f"cannot be opened, as there is no folder {folder}: make it")
        try:
            status = self._path.stat()
        except FileNotFoundError:
            if not self._create:
                raise StoreError(self.name, "is not there") from None
        except OSError as error:
            raise StoreError(self.name, f"cannot be opened: {error.strerror or error}") from error
        else:
            if not stat.S_ISREG(status.st_mode):
                raise StoreError(self.name, "is no file: give the path of one")
            if not _may(self._path, os.R_OK):
                raise StoreError(self.name, "cannot be read: its permissions forbid it")
            if not self._read_only and not _may(self._path, os.W_OK):
                raise StoreError(self.name, "cannot be written to: change its permissions, or pass read_only=True")
        if not self._read_only and not _may(folder, os.W_OK | os.X_OK):
            raise StoreError(
                self.name,
                f"cannot be written to, as no files can be made in {folder}: change its permissions, or pass "
                f"read_only=True",
            )

    def _connect(self) -> sqlite3.Connection:
        if self._process != os.getpid():
            self._abandon()
            self._reopen()
        return super()._connect()

    def _reopen(self) -> None:
        try:
            self._connection = self._opened("ro" if self._read_only else "rwc" if self._create else "rw")
        except _ERRORS as error:
            if (
                not self._read_only
                or not _is(error, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
                or self._has_log()
            ):
                raise self._problem(error) from error
            # In a folder where nothing can be made, a file that nobody has open.
            self._connection = self._opened("ro&immutable=1")
        status = self._path.stat()
        self._place = status.st_dev, status.st_ino

    def _has_log(self) -> bool:
        log = self._path.with_name(self._path.name + "-wal")
        return log.exists() and log.stat().st_size > 0

    def _opened(self, mode: str) -> sqlite3.Connection:
        """A connection to a file that is a store, of this release's version."""
        connection = sqlite3.connect(
            f"file://{quote(os.fsencode(self._path))}?mode={mode}",
            uri=True,
            timeout=self._busy_timeout,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            version = self._version_of(connection)
            if not self._read_only:
                self._use_log(connection)
                self._migrate(connection, version)
            elif version < len(MIGRATIONS):
                raise StoreError(self.name, f"has version {version} of the tables: open it once without read_only=True")
            for setting in _SETTINGS:
                connection.execute(f"PRAGMA {setting}")
            self._forced = False
        except BaseException:
            connection.close()
            raise
        return connection

    def _version_of(self, connection: sqlite3.Connection) -> int:
        """The version of the tables in a store; 0 if the file is empty."""
        # In a transaction, as another program may be making them.
        connection.execute("BEGIN")
        application, version = (
            int(connection.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("application_id", "user_version")
        )
        tables = _tables(connection)
        connection.execute("COMMIT")
        if application != APPLICATION_ID:
            if application or version or tables:
                raise StoreError(self.name, "is a database of another program: give another path")
            if not self._create:
                raise StoreError(self.name, "is empty: it holds no store")
        self._require_known(version, len(MIGRATIONS))
        # Neither a trigger nor a view that somebody put there is to run here.
        if tables != _tables_of(MIGRATIONS[:version]):
            raise StoreError(self.name, "does not have the tables of a store: it is damaged or was changed")
        return version

    def _use_log(self, connection: sqlite3.Connection) -> None:
        """Set the write-ahead log, which a file keeps; SQLite does not wait for others here, so this does."""
        deadline = time.monotonic() + self._busy_timeout
        while True:
            try:
                mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            except sqlite3.OperationalError as error:
                if not _is(error, sqlite3.SQLITE_BUSY) or time.monotonic() > deadline:
                    raise
                time.sleep(0.005)
                continue
            if mode == "wal":
                return
            raise StoreError(
                self.name,
                "is on a file system that programs cannot share memory on, such as a network's: put it on a local "
                "disk, or use gp.PostgresStore",
            )

    def _apply(self, forced: bool, first: Write, rest: Iterable[Write]) -> Outcome:
        self._check_writable()
        return super()._apply(forced, first, rest)

    def _check_writable(self) -> None:
        """Refuse to write where nothing may be, or to a file that is no longer at its path: that would be lost."""
        if self._read_only:
            raise StoreError(self.name, "was opened with read_only=True")
        try:
            status = os.stat(self.name)
        except OSError:
            status = None
        if status is None or (status.st_dev, status.st_ino) != self._place:
            raise StoreError(self.name, "was moved or removed while it was open: put it back, and open it again")


def _is(error: Exception, *codes: int) -> bool:
    """Whether an error of SQLite has one of these codes, with whatever details; errors of the module have none."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in codes


def _tables(connection: sqlite3.Connection) -> set[tuple[Any, ...]]:
    """What is defined in a database; SQLite's own statistics aside."""
    found = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
    return {row for row in found if not str(row[1]).startswith("sqlite_stat")}


@cache
def _tables_of(migrations: tuple[tuple[str, ...], ...]) -> set[tuple[Any, ...]]:
    """What is defined in a store after migrations."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for statements in migrations:
            for statement in statements:
                connection.execute(DIALECT.create(statement))
        return _tables(connection)


def _may(path: Path, mode: int) -> bool:
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)
