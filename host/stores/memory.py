"""Stores in this process's memory."""

from __future__ import annotations

import sqlite3

from gpu_pregel.host.stores.blobs import Cipher
from gpu_pregel.host.stores.sqlite import SQLiteBase


class MemoryStore(SQLiteBase):
    """Runs in memory, gone when the store is closed or the program ends: for trials, tests and going back in time.

    It is a SQLite database without a file, so that it does what the other stores do.

    Parameters
    ----------
    cipher : Cipher, optional
        Encrypts what is stored, as in the other stores.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> store = gp.MemoryStore()
    >>> claim = store.create("tuesday", "agents", b"state", owner="me")
    >>> store.commit(claim, 0, b"commit", [b"records"], status="completed")
    >>> [(commit.step, commit.status) for commit in store.history("tuesday")]
    [(0, 'completed')]
    """

    def __init__(self, *, cipher: Cipher | None = None) -> None:
        super().__init__("MemoryStore", cipher)
        self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA foreign_keys = ON")
        self._migrate(self._connection, 0)
