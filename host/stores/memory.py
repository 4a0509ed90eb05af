"""Stores in the memory of this process."""

from __future__ import annotations

from gpu_pregel.host.stores.blobs import BlobFormat, Cipher
from gpu_pregel.host.stores.sqlite_database import SQLiteDatabase
from gpu_pregel.host.stores.store import Store


class MemoryStore(Store):
    """Runs in memory, lost when the store is closed or the program ends: for experiments, tests and time travel.

    It is a SQLite database without a file and behaves like the other stores.

    Parameters
    ----------
    cipher : Cipher, optional
        Encrypts the contents, as in the other stores.

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
        blob_format = BlobFormat(cipher)
        super().__init__(SQLiteDatabase("MemoryStore", None), blob_format)
