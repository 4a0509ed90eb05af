"""Stores in a SQLite file: a write-ahead log with one forced write per transaction."""

from __future__ import annotations

import os
from typing import Any

from gpu_pregel.host.stores.blobs import BlobFormat, Cipher
from gpu_pregel.host.stores.reopening import reopen
from gpu_pregel.host.stores.sqlite_database import SQLiteDatabase
from gpu_pregel.host.stores.sqlite_file import SQLiteFile
from gpu_pregel.host.stores.store import Store


class SQLiteStore(Store):
    """Runs in a SQLite file on a local disk, created if it does not exist; several programs may use it at a time.

    A transaction with ``durability="machine"`` is on the disk when it returns. One with ``"process"`` has been passed
    to the operating system: it survives a crash of the program, but a crash of the machine may lose the newest ones
    without damaging the file. The space of pruned and deleted rows is reused; ``compact`` returns it to the file
    system.

    Parameters
    ----------
    path : path
        While the store is open, and after a crash, SQLite keeps ``path-wal`` and ``path-shm`` next to it. They hold the
        newest supersteps, so close a store before copying it.
    cipher : Cipher, optional
        Encrypts the contents of the whole store; ids, supersteps, statuses and times stay readable.
    patience : float, default 30
        Seconds to wait while another program has locked the file.
    read_only : bool, default False
        Only list and read runs; not even the tables are updated to a newer version.
    create : bool, default True
        Create the file if it does not exist.

    Raises
    ------
    StoreError
        The file cannot be used, or is not a store.

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

    _database: SQLiteDatabase

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        cipher: Cipher | None = None,
        patience: float = 30.0,
        read_only: bool = False,
        create: bool = True,
    ) -> None:
        blob_format = BlobFormat(cipher)
        file = SQLiteFile(path, patience=patience, read_only=read_only, create=create)
        super().__init__(SQLiteDatabase(file.name, file), blob_format)
        self._options = {"cipher": cipher, "patience": patience, "read_only": read_only}

    def __reduce__(self) -> tuple[Any, ...]:
        return reopen, (SQLiteStore, (self.name,), self._options)

    def compact(self) -> None:
        """Return unused space to the file system; needs disk space for a copy of the file."""
        self._database.check_writable()
        self._database.query("VACUUM", ())
        self._database.query("PRAGMA wal_checkpoint(TRUNCATE)", ())
