"""Queries and transactions in PostgreSQL through psycopg 3; a lost connection is opened again."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Sequence
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, StoreError
from gpu_pregel.host.arguments import check_seconds, require
from gpu_pregel.host.stores.database import Database, Write, WriteOutcome
from gpu_pregel.host.stores.rows import MAX_SECONDS
from gpu_pregel.host.stores.schema import MIGRATIONS, Dialect, TableGroup, check_version

if TYPE_CHECKING:
    import psycopg

_SCHEMA = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
LOCK = 0x67507265
"""First half of the number of the advisory lock taken by a migration."""
_DEFAULTS = {
    "application_name": "gpu_pregel",
    "client_encoding": "utf8",
    "connect_timeout": "5",
    # Detects an unreachable server within half a minute.
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "25000",
}
_CLOCK = b"SELECT extract(epoch FROM clock_timestamp())::float8"
# Not to_regclass, which may not see tables created since the transaction began.
_TABLES = b"SELECT 1 FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = %s AND relname = %s"
_BEGIN = b"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
# Large values are not compressed, as the server compresses only some 10 MB/s on one core.
_MORE = {0: [f"ALTER TABLE @{table} ALTER COLUMN data SET STORAGE EXTERNAL" for table in ("bases", "segments")]}
"""Further statements of a migration for PostgreSQL only."""
_PROBLEMS = {
    "25006": "is read-only ({error}): connect to the primary server",
    "42501": "denies this user access ({error}): grant access to the schema and its tables",
    "42P07": "has tables of another program ({error}): pass another schema=",
    "53100": "has no space left ({error}): free space on the server's disk and continue; committed data are safe",
    "55P03": "is in use by another program ({error}): wait until it has finished, or pass a longer patience=",
}


class PostgresDatabase(Database):
    """A connection to a PostgreSQL server, opened again when it is lost; ``PostgresStore`` documents the parameters."""

    def __init__(self, dsn: str, *, schema: str, patience: float, create: bool) -> None:
        if not isinstance(dsn, str):
            raise ArgumentTypeError(f"dsn must be a connection string, not {dsn!r:.80}")
        self._psycopg = require("psycopg", "gp.PostgresStore", "gpu-pregel[postgres]")
        self._options = self._parse(dsn)
        if not isinstance(schema, str) or not _SCHEMA.fullmatch(schema):
            raise ArgumentError(
                f"schema must be a name of up to 63 letters, digits and underscores, not {schema!r:.80}"
            )
        self._schema = schema
        self._patience = check_seconds("patience", patience, MAX_SECONDS)
        self._create = create
        self._is_open = True
        self._asynchronous = False
        super().__init__(_name(self._options, schema), _dialect(schema))
        try:
            self._connection = self._new_connection()
            self._migrate(self._connection)
        except self._psycopg.Error as error:
            self.close()
            raise self._problem(error) from error

    def close(self) -> None:
        """Close the connection, and do not open it again."""
        self._is_open = False
        super().close()

    def _parse(self, dsn: str) -> dict[str, Any]:
        from psycopg.conninfo import conninfo_to_dict

        try:
            return {**_DEFAULTS, **conninfo_to_dict(dsn)}
        except self._psycopg.Error as error:
            # Both the text and the error may contain a password.
            raise ArgumentError(f"dsn is not a connection string of PostgreSQL ({type(error).__name__})") from None

    def _problem(self, error: Exception) -> StoreError:
        """Translate an error of PostgreSQL into the problem and its remedy."""
        text = str(error).strip().partition("\n")[0] or type(error).__name__
        state = getattr(error, "sqlstate", None)
        problem = _PROBLEMS.get(state or "")
        if problem is None:
            lost = state is None and isinstance(error, self._psycopg.OperationalError)
            problem = "cannot be reached ({error}); committed data are safe" if lost else "cannot be used ({error})"
        return StoreError(self.name, problem.format(error=text))

    # Connections

    def _new_connection(self) -> psycopg.Connection[Any]:
        connection: psycopg.Connection[Any] = self._psycopg.connect(**self._options, autocommit=True)
        try:
            connection.execute(b"SELECT set_config('lock_timeout', %s, false)", (f"{self._patience * 1000:.0f}",))
            setting = connection.execute(b"SHOW synchronous_commit").fetchone()
            # Keeps the setting of a server that waits for its replicas.
            self._forced = "on" if setting is None or setting[0] == "off" else str(setting[0])
            self._asynchronous = setting is not None and setting[0] == "off"
            clock = connection.execute(_CLOCK).fetchone()
            self._offset = (time.time() if clock is None else float(clock[0])) - time.monotonic()
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect(self) -> psycopg.Connection[Any]:
        """Return the connection; if it was lost, try to open it again for ``patience`` seconds."""
        if self._process != os.getpid():
            self._leave_to_parent()
        if not self._is_open:
            raise StoreError(self.name, "is closed: open it again")
        deadline = time.monotonic() + self._patience
        while self._connection is None:
            try:
                self._connection = self._new_connection()
            except self._psycopg.OperationalError as error:
                if time.monotonic() > deadline or not self._is_open:
                    raise self._problem(error) from error
                time.sleep(0.1)
        connection: psycopg.Connection[Any] = self._connection
        return connection

    def _drop(self) -> None:
        """Drop the connection; the server rolls back its transaction."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(self._psycopg.Error):
                connection.close()

    def _can_retry(self, error: Exception) -> bool:
        """Return whether transactions conflicted or the connection was lost, which is then dropped."""
        state = getattr(error, "sqlstate", None) or ""
        # Class 57P: the server is shutting down. Class 40: it rolled this transaction back because of a conflict.
        if state.startswith("57P") or self._connection.closed:
            self._drop()
            return True
        return state.startswith("40")

    def now(self) -> float:
        """Return seconds since 1970 by the server's clock, extrapolated from its last reading."""
        return time.monotonic() + self._offset

    def exact_now(self) -> float:
        """Return seconds since 1970 by the server's clock, read now."""
        self._offset = self.query(_CLOCK, ())[0][0] - time.monotonic()
        return self.now()

    # Statements

    def query(self, sql: str | bytes, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Return the rows of a query, sent again if the connection is lost."""
        query = sql.encode() if isinstance(sql, str) else sql
        with self.lock:
            attempt = 0
            while True:
                connection = self._connect()
                try:
                    return connection.execute(query, parameters, binary=True).fetchall()
                except self._psycopg.Error as error:
                    if not self._can_retry(error):
                        raise self._problem(error) from error
                    attempt = self.next_attempt(attempt)
                except BaseException:
                    self._drop()
                    raise

    def apply(self, forced: bool, first: Write, rest: Iterable[Write]) -> WriteOutcome:
        """Execute statements in one transaction if the first one matches a row."""
        with self.lock:
            connection = self._connect()
            try:
                committed = self._transact(connection, forced, first, rest)
            except self._psycopg.Error as error:
                if self._can_retry(error):
                    return WriteOutcome.UNKNOWN
                raise self._problem(error) from error
            except BaseException:
                self._drop()
                raise
            if not committed:
                return WriteOutcome.REFUSED
            self.counts.transactions += 1
            self.counts.forced += forced
            return WriteOutcome.COMMITTED

    def _transact(self, connection: psycopg.Connection[Any], forced: bool, first: Write, rest: Iterable[Write]) -> bool:
        """Send a transaction, commit it if its first statement matches a row, and return whether it does."""
        if forced is self._asynchronous:
            setting = self._forced if forced else "off"
            connection.execute(b"SELECT set_config('synchronous_commit', %s, false)", (setting,))
            self._asynchronous = not forced
        cursor = connection.cursor()
        try:
            # Two round trips: one for all statements and one for COMMIT or ROLLBACK.
            with connection.pipeline() if self._psycopg.Pipeline.is_supported() else nullcontext():
                connection.execute(_BEGIN)
                cursor.execute(first[0].encode(), first[1])
                for sql, parameters in rest:
                    connection.execute(sql.encode(), parameters)
        except self._psycopg.Error as error:
            with suppress(self._psycopg.Error):
                connection.rollback()
            info, pq = connection.info, self._psycopg.pq
            if info.transaction_status != pq.TransactionStatus.IDLE or info.pipeline_status != pq.PipelineStatus.OFF:
                connection.close()  # a server that shuts down may leave it open but unusable
            # If the first statement matched no row, later ones may fail because of that.
            if not isinstance(error, self._psycopg.IntegrityError) or cursor.rowcount == 1:
                raise
            return False
        matches = cursor.rowcount == 1
        connection.execute(b"COMMIT" if matches else b"ROLLBACK")
        return matches

    def check_table(self, table: str) -> None:
        """Do nothing: PostgreSQL verifies its pages if the server has checksums enabled."""

    def _migrate(self, connection: psycopg.Connection[Any]) -> None:
        """Update the tables to this release's version in one transaction, one program at a time."""
        if self._version(connection) == len(MIGRATIONS):
            return
        dialect = self.dialect
        with connection.transaction():
            connection.execute(b"SELECT pg_advisory_xact_lock(%s, hashtext(%s))", (LOCK, self._schema))
            version = self._version(connection)
            if version == 0:
                connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{self._schema}"'.encode())
                connection.execute(f"CREATE TABLE {dialect.prefix}about (version BIGINT NOT NULL)".encode())
                connection.execute(f"INSERT INTO {dialect.prefix}about VALUES (0)".encode())
            for number, statements in enumerate(MIGRATIONS[version:], version):
                for statement in (*statements, *_MORE.get(number, ())):
                    connection.execute(dialect.create(statement).encode())
            connection.execute(f"UPDATE {dialect.prefix}about SET version = %s".encode(), (len(MIGRATIONS),))

    def create_tables(self, group: TableGroup) -> None:
        """Create a group of tables, or update it to this release's version, one program at a time."""
        with self.lock:
            attempt = 0
            while True:
                connection = self._connect()
                try:
                    return self._migrate_group(connection, group)
                except self._psycopg.Error as error:
                    if not self._can_retry(error):
                        raise self._problem(error) from error
                    attempt = self.next_attempt(attempt)

    def _migrate_group(self, connection: psycopg.Connection[Any], group: TableGroup) -> None:
        about = self.dialect.prefix + group.about
        with connection.transaction():
            connection.execute(b"SELECT pg_advisory_xact_lock(%s, hashtext(%s))", (LOCK, self._schema))
            version = self._group_version(connection, group)
            for number, statements in enumerate(group.migrations[version:], version):
                for statement in (*statements, *group.more.get(number, ())):
                    connection.execute(self.dialect.create(statement).encode())
            if version == 0:
                connection.execute(f"INSERT INTO {about} VALUES (0)".encode())
            connection.execute(f"UPDATE {about} SET version = %s".encode(), (len(group.migrations),))

    def table_version(self, group: TableGroup) -> int:
        """Return the version of a group of tables, 0 if the store does not have them."""
        with self.lock:
            attempt = 0
            while True:
                try:
                    return self._group_version(self._connect(), group)
                except self._psycopg.Error as error:
                    if not self._can_retry(error):
                        raise self._problem(error) from error
                    attempt = self.next_attempt(attempt)

    def _group_version(self, connection: psycopg.Connection[Any], group: TableGroup) -> int:
        if connection.execute(_TABLES, (self._schema, group.about)).rowcount == 0:
            return 0
        versions = connection.execute(f"SELECT version FROM {self.dialect.prefix}{group.about}".encode()).fetchall()
        version = int(versions[0][0]) if versions else 0
        check_version(self.name, version, len(group.migrations))
        return version

    def _version(self, connection: psycopg.Connection[Any]) -> int:
        """Return the version of the tables in the schema, 0 if there are none."""
        if connection.execute(_TABLES, (self._schema, "about")).rowcount == 0:
            if not self._create:
                raise StoreError(self.name, "is not a store: pass another schema=, or create=True")
            return 0
        versions = connection.execute(f'SELECT version FROM "{self._schema}".about'.encode()).fetchall()
        version = int(versions[0][0]) if versions else 0
        check_version(self.name, version, len(MIGRATIONS))
        return version


def _dialect(schema: str) -> Dialect:
    return Dialect(
        prefix=f'"{schema}".',
        parameter="%b",
        blob="BYTEA",
        integer="BIGINT",
        real="DOUBLE PRECISION",
        text='TEXT COLLATE "C"',
        strict="",
        strict_by_key="",
    )


def _name(options: dict[str, Any], schema: str) -> str:
    """Name a database by its parameters, without the password."""
    database, host, port = (str(options.get(name) or "") for name in ("dbname", "host", "port"))
    server = f" at {host}{':' if port else ''}{port}" if host or port else ""
    return f"PostgreSQL database {database or '(default)'}{server}, schema {schema}"
