"""Stores in a PostgreSQL database, for several machines."""

from __future__ import annotations

from typing import Any

from gpu_pregel.host.stores.blobs import BlobFormat, Cipher
from gpu_pregel.host.stores.postgres_database import PostgresDatabase
from gpu_pregel.host.stores.reopening import reopen
from gpu_pregel.host.stores.store import Store


class PostgresStore(Store):
    """Runs in a PostgreSQL database, for several machines.

    A transaction with ``durability="machine"`` is on the server's disk when it returns, and on those of the replicas if
    the server waits for them. One with ``"process"`` has reached the server, and a crash of the server may lose the
    newest ones. Leases follow the server's clock. A lost connection is opened again, and the store finds out whether
    the interrupted transaction was committed.

    Parameters
    ----------
    dsn : str
        A connection string or URI of libpq, such as ``"postgresql://user@host/database"``; missing parameters are taken
        from libpq's environment variables and files. A connection pooler must assign connections per session, not per
        transaction.
    schema : str, default "gpu_pregel"
        The schema of the tables, created if it does not exist.
    cipher : Cipher, optional
        Encrypts the contents of the whole store; ids, supersteps, statuses and times stay readable.
    patience : float, default 30
        Seconds to retry a lost connection, and to wait for other programs that write the same row.
    create : bool, default True
        Create the tables if they do not exist.

    Raises
    ------
    MissingPackageError
        psycopg is not installed: install the extra ``postgres``.
    StoreError
        The server cannot be reached or denies access.

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
        blob_format = BlobFormat(cipher)
        super().__init__(PostgresDatabase(dsn, schema=schema, patience=patience, create=create), blob_format)
        self._place, self._options = (dsn,), {"schema": schema, "cipher": cipher, "patience": patience}

    def __reduce__(self) -> tuple[Any, ...]:
        return reopen, (PostgresStore, self._place, self._options)
