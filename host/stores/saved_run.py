"""A run as loaded from a store: a base, the commits after it, and the held superstep; read on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from gpu_pregel.host.stores.rows import RunRow, StoredAnswer


@dataclass(frozen=True, slots=True)
class SavedCommit:
    """A commit with its data.

    Attributes
    ----------
    step, after : int
        Its superstep, and the previously committed one.
    epoch : int
    status : str
    time : float
    data : bytes
        The data given to ``commit``.
    """

    step: int
    after: int
    epoch: int
    status: str
    time: float
    data: bytes
    _segments: Callable[[], Iterator[bytes]] = field(repr=False)

    def segments(self) -> Iterator[bytes]:
        """Yield its segments in the order in which they were written."""
        return self._segments()


@dataclass(frozen=True, slots=True)
class SavedRun:
    """A run up to a superstep.

    The methods read from the store when they are called; they raise ``StoreError`` if the run has been pruned or
    deleted in the meantime, or is damaged.

    Attributes
    ----------
    run : RunRow
        The run as it was when this was loaded.
    step : int
        The requested superstep, or the run's head.
    base_step : int
        The superstep whose state the base is; -1 for the state before the first.
    answers : list of StoredAnswer
        Answers to interrupts of the held superstep, ordered by (vertex, number).
    blobs : tuple of str
        Names of the arrays stored with the base.
    """

    run: RunRow
    step: int
    base_step: int
    answers: list[StoredAnswer]
    blobs: tuple[str, ...]
    _read: Callable[[str], bytes | bytearray] = field(repr=False)
    _commits: Callable[[], Iterator[SavedCommit]] = field(repr=False)
    _held: Callable[[], Iterator[bytes]] = field(repr=False)

    def base(self) -> bytes:
        """Return the base."""
        return bytes(self._read(""))

    def blob(self, name: str) -> bytes | bytearray:
        """Return the bytes of an array stored with the base."""
        if name not in self.blobs:
            raise KeyError(name)
        return self._read(name)

    def commits(self) -> Iterator[SavedCommit]:
        """Yield the commits after the base up to ``step`` in order."""
        return self._commits()

    def held(self) -> Iterator[bytes]:
        """Yield the segments of the uncommitted superstep after the head; none if ``step`` was given to ``load``."""
        return self._held()
