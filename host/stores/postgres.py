"""Stores in PostgreSQL, by psycopg 3. A connection lost is made again, and what became of a commit is found out."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Sequence
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, StoreError
from gpu_pregel.host.arguments import require
from gpu_pregel.host.stores.blobs import Cipher
from gpu_pregel.host.stores.database import TRIES, Outcome, Write
from gpu_pregel.host.stores.rows import check_seconds
from gpu_pregel.host.stores.schema import MIGRATIONS, Dialect
from gpu_pregel.host.stores.store import Store

if TYPE_CHECKING:
    import psycopg

_SCHEMA = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
LOCK = 0x67507265
"""First half of the number of the advisory lock that a migration takes."""
_DEFAULTS = {
    "application_name": "gpu_pregel",
    "client_encoding": "utf8",
    "connect_timeout": "5",
    # A server that is gone without a word is noticed in half a minute.
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "25000",
}
_CLOCK = b"SELECT extract(epoch FROM clock_timestamp())::float8"
_BEGIN = b"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
# Large values are not compressed by the server, one core at some 10 MB/s.
_MORE = {0: [f"ALTER TABLE @{table} ALTER COLUMN data SET STORAGE EXTERNAL" for table in ("bases", "segments")]}
"""What else a migration does here."""
_PROBLEMS = {
    "25006": "can only be read ({error}): connect to the primary server",
    "42501": "is not for this user ({error}): grant it the schema and its tables",
    "42P07": "has tables of another program ({error}): give another schema=",
    "53100": "has no room left ({error}): make room on the server's disk, and go on; what was committed stands",
    "55P03": "is in use by another program that writes ({error}): wait for its end",
}


class PostgresStore(Store):
    """Runs in a PostgreSQL database, for several machines.

    A transaction of ``durability="machine"`` is on the server's disk when it returns, and where the server waits for
    its replicas, on theirs. One of ``"process"`` is with the server, and the newest may be lost when that goes down.
    Leases run by the server's clock.

    Parameters
    ----------
    dsn : str
        libpq's connection string or URI, such as ``"postgresql://user@host/database"``; what it leaves out is taken
        from libpq's environment variables and files. Connections are sessions: a pooler must not share them out by
        the transaction.
    schema : str, default "gpu_pregel"
        Where the tables are; made if it is not there.
    cipher : Cipher, optional
        Encrypts what is stored, all of a store or nothing; ids, supersteps, statuses and times stay readable.
    patience : float, default 30
        Seconds to try for when the connection was lost, and to wait for others that write the same row.
    create : bool, default True
        Whether to make tables that are not there.

    Raises
    ------
    MissingPackageError
        psycopg is not installed: the extra ``postgres``.
    StoreError
        The server cannot be reached, or refuses.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> store = gp.PostgresStore("postgresql://localhost/agents")  # doctest: +SKIP
    >>> claim = store.create("tuesday", "agents", b"state", owner="me")  # doctest: +SKIP
    """

    def __init__(
        self,
        dsn: str,
        *,
        schema: str = "gpu_pregel",
        cipher: Cipher | None = None,
        patience: float = 30.0,
        create: bool = True,
    ) -> None:
        if not isinstance(dsn, str):
            raise ArgumentTypeError(f"dsn must be a connection string, not {dsn!r:.80}")
        self._psycopg = require("psycopg", "gp.PostgresStore", "gpu-pregel[postgres]")
        self._options = self._parse(dsn)
        if not isinstance(schema, str) or not _SCHEMA.fullmatch(schema):
            raise ArgumentError(
                f"schema must be a name of up to 63 letters, digits and underscores, not {schema!r:.80}"
            )
        self._schema = schema
        self._patience = check_seconds("patience", patience)
        self._create = create
        self._is_open = True
        self._asynchronous = False
        place = (self._options.get(name) for name in ("dbname", "host", "port"))
        database, host, port = (str(part or "") for part in place)
        where = f" at {host}{':' if port else ''}{port}" if host or port else ""
        name = f"PostgreSQL database {database or '(default)'}{where}, schema {schema}"
        super().__init__(name, _dialect(schema), cipher)
        try:
            self._connection = self._new_connection()
            self._migrate(self._connection)
        except self._psycopg.Error as error:
            self.close()
            raise self._problem(error) from error

    def close(self) -> None:
        """Close the store; what is committed stays."""
        self._is_open = False
        super().close()

    def _parse(self, dsn: str) -> dict[str, Any]:
        from psycopg.conninfo import conninfo_to_dict

        try:
            return {**_DEFAULTS, **conninfo_to_dict(dsn)}
        except self._psycopg.Error as error:
            # The text may have a password, and so may the error.
            raise ArgumentError(f"dsn is no connection string of PostgreSQL ({type(error).__name__})") from None

    def _problem(self, error: Exception) -> StoreError:
        """What an error of PostgreSQL means for the user."""
        text = str(error).strip().partition("\n")[0] or type(error).__name__
        state = getattr(error, "sqlstate", None)
        problem = _PROBLEMS.get(state or "")
        if problem is None:
            lost = state is None and isinstance(error, self._psycopg.OperationalError)
            problem = "cannot be reached ({error}); what was committed stands" if lost else "cannot be used ({error})"
        return StoreError(self.name, problem.format(error=text))

    # Connections

    def _new_connection(self) -> psycopg.Connection[Any]:
        connection: psycopg.Connection[Any] = self._psycopg.connect(**self._options, autocommit=True)
        try:
            connection.execute(b"SELECT set_config('lock_timeout', %s, false)", (f"{self._patience * 1000:.0f}",))
            setting = connection.execute(b"SHOW synchronous_commit").fetchone()
            # Whoever has made the server wait for its replicas keeps that.
            self._forced = "on" if setting is None or setting[0] == "off" else str(setting[0])
            self._asynchronous = setting is not None and setting[0] == "off"
            clock = connection.execute(_CLOCK).fetchone()
            self._offset = (time.time() if clock is None else float(clock[0])) - time.monotonic()
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect(self) -> psycopg.Connection[Any]:
        """The connection, made again if it was lost; tries for as long as ``patience`` says."""
        if self._process != os.getpid():
            self._abandon()
        if not self._is_open:
            raise StoreError(self.name, "is closed: open it again")
        deadline = time.monotonic() + self._patience
        while self._connection is None:
            try:
                self._connection = self._new_connection()
            except self._psycopg.OperationalError as error:
                if time.monotonic() > deadline:
                    raise self._problem(error) from error
                time.sleep(0.1)
        connection: psycopg.Connection[Any] = self._connection
        return connection

    def _drop(self) -> None:
        """Give a connection up, whatever it was doing; the server then undoes that."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(self._psycopg.Error):
                connection.close()

    def _may_try_again(self, error: Exception) -> bool:
        """Whether an error says that the connection is gone, and so is given up; or that transactions met."""
        state = getattr(error, "sqlstate", None) or ""
        # Class 57P: the server is being shut down. Class 40: it chose this transaction to let another one pass.
        if state.startswith("57P") or self._connection.closed:
            self._drop()
            return True
        return state.startswith("40")

    def _now(self) -> float:
        return time.monotonic() + self._offset

    def _exact_now(self) -> float:
        self._offset = self._query(_CLOCK, ())[0][0] - time.monotonic()
        return self._now()

    # Statements

    def _query(self, sql: str | bytes, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        query = sql.encode() if isinstance(sql, str) else sql
        with self._lock:
            left = TRIES
            while True:
                connection = self._connect()
                try:
                    return connection.execute(query, parameters, binary=True).fetchall()
                except self._psycopg.Error as error:
                    if not self._may_try_again(error):
                        raise self._problem(error) from error
                    left = self._again(left)
                except BaseException:
                    self._drop()
                    raise

    def _apply(self, forced: bool, first: Write, rest: Iterable[Write]) -> Outcome:
        with self._lock:
            connection = self._connect()
            try:
                done = self._transact(connection, forced, first, rest)
            except self._psycopg.Error as error:
                if self._may_try_again(error):
                    return Outcome.UNKNOWN
                raise self._problem(error) from error
            except BaseException:
                self._drop()
                raise
            if not done:
                return Outcome.REFUSED
            self.counts.transactions += 1
            self.counts.forced += forced
            return Outcome.DONE

    def _transact(self, connection: psycopg.Connection[Any], forced: bool, first: Write, rest: Iterable[Write]) -> bool:
        """Send a transaction; commit it if its first statement hits a row."""
        if forced is self._asynchronous:
            setting = self._forced if forced else "off"
            connection.execute(b"SELECT set_config('synchronous_commit', %s, false)", (setting,))
            self._asynchronous = not forced
        cursor = connection.cursor()
        try:
            # Two round trips: all statements, then the end of the transaction.
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
                connection.close()  # a server that shuts down may leave it open, and of no use
            # Statements after one that hit no row fail for want of it.
            if not isinstance(error, self._psycopg.IntegrityError) or cursor.rowcount == 1:
                raise
            return False
        hit = cursor.rowcount == 1
        connection.execute(b"COMMIT" if hit else b"ROLLBACK")
        return hit

    def _examine(self, table: str) -> None:
        """PostgreSQL looks at its pages itself, where it was set up with checksums."""

    def _migrate(self, connection: psycopg.Connection[Any]) -> None:
        """Bring the tables to this release's version, in one transaction, one program at a time."""
        if self._version_of(connection) == len(MIGRATIONS):
            return
        dialect = _dialect(self._schema)
        with connection.transaction():
            connection.execute(b"SELECT pg_advisory_xact_lock(%s, hashtext(%s))", (LOCK, self._schema))
            version = self._version_of(connection)
            if version == 0:
                connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{self._schema}"'.encode())
                connection.execute(f"CREATE TABLE {dialect.prefix}about (version BIGINT NOT NULL)".encode())
                connection.execute(f"INSERT INTO {dialect.prefix}about VALUES (0)".encode())
            for number, statements in enumerate(MIGRATIONS[version:], version):
                for statement in (*statements, *_MORE.get(number, ())):
                    connection.execute(dialect.create(statement).encode())
            connection.execute(f"UPDATE {dialect.prefix}about SET version = %s".encode(), (len(MIGRATIONS),))

    def _version_of(self, connection: psycopg.Connection[Any]) -> int:
        """The version of the tables in the schema; 0 if there are none."""
        # Not to_regclass, which may not see what others have made since this transaction began.
        tables = b"SELECT FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = %s AND relname = %s"
        if connection.execute(tables, (self._schema, "about")).rowcount == 0:
            if not self._create:
                raise StoreError(self.name, "holds no store: give another schema=, or pass create=True")
            return 0
        versions = connection.execute(f'SELECT version FROM "{self._schema}".about'.encode()).fetchall()
        version = int(versions[0][0]) if versions else 0
        self._require_known(version, len(MIGRATIONS))
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
