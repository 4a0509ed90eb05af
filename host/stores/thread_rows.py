"""Rows of conversation threads as ``ThreadTable`` returns them."""

from __future__ import annotations

import os
from typing import NamedTuple

from gpu_pregel.host.stores.blobs import context_of, digest


class ThreadRow(NamedTuple):
    """The row of one namespace of a thread, replaced by each change of its checkpoints.

    Attributes
    ----------
    key : int
        Random; a thread that is deleted and created again has another one.
    id, namespace : str
    version : int
        Number of changes; 0 for a row that is not stored yet.
    checkpoints : int
        Number of stored checkpoints, by which missing rows are detected.
    chains : int
        Number of chains of values begun so far; their numbers are never used again.
    latest : str
        The greatest id of a checkpoint, "" if there is none.
    checksum : bytes
    """

    key: int
    id: str
    namespace: str
    version: int
    checkpoints: int
    chains: int
    latest: str
    checksum: bytes = b""

    def revised(self, *, checkpoints: int, chains: int, latest: str) -> ThreadRow:
        """Return the next version of the row."""
        row = self._replace(version=self.version + 1, checkpoints=checkpoints, chains=chains, latest=latest)
        return row._replace(checksum=row.expected_checksum())

    def expected_checksum(self) -> bytes:
        """Return the checksum that an undamaged row has."""
        return digest(context_of("thread", str(self.id), *self[:-1]))


def new_thread_row(thread: str, namespace: str) -> ThreadRow:
    """Return the row of a new namespace, under a random key; its first revision can be stored."""
    return ThreadRow(int.from_bytes(os.urandom(8), "little") >> 1, thread, namespace, 0, 0, 0, "")


class CheckpointRow(NamedTuple):
    """A checkpoint of a thread.

    Attributes
    ----------
    key : int
        Key of the row of its namespace.
    thread, namespace, id : str
    parent, run : str or None
        Id of the checkpoint before it, and of the run that made it.
    data : bytes
    """

    key: int
    thread: str
    namespace: str
    id: str
    parent: str | None
    run: str | None
    data: bytes


class WriteRow(NamedTuple):
    """A write of a task, stored before the next checkpoint; ``number`` distinguishes those of one task."""

    checkpoint: str
    task: str
    number: int
    data: bytes


class ValueRow(NamedTuple):
    """A value, or the difference from the value before it in its chain."""

    chain: int
    position: int
    data: bytes
