"""A run as a store has it: a base, the commits since, and the superstep that is held; read when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from gpu_pregel.host.stores.rows import Answer, RunRow


@dataclass(frozen=True, slots=True)
class SavedCommit:
    """A commit, whole.

    Attributes
    ----------
    step, after : int
        Its superstep, and the one committed before.
    epoch : int
    status : str
    time : float
    data : bytes
        What was given to ``commit``.
    """

    step: int
    after: int
    epoch: int
    status: str
    time: float
    data: bytes
    _segments: Callable[[], Iterator[bytes]] = field(repr=False)

    def segments(self) -> Iterator[bytes]:
        """Its segments in the order in which they were written."""
        return self._segments()


@dataclass(frozen=True, slots=True)
class Saved:
    """What there is of a run up to a superstep.

    What is not read at once is read from the store when it is asked for; if the run was pruned or deleted meanwhile, or
    is damaged there, that raises ``StoreError``.

    Attributes
    ----------
    run : RunRow
        As it was when this was loaded.
    step : int
        The superstep asked for, or the run's head.
    base_step : int
        The superstep whose state the base is; -1 if that is the state before the first.
    answers : list of Answer
        Those to interrupts of the superstep that is held, in the order of (vertex, number).
    blobs : tuple of str
        Names of the arrays that were stored with the base.
    """

    run: RunRow
    step: int
    base_step: int
    answers: list[Answer]
    blobs: tuple[str, ...]
    _read: Callable[[str], bytes | bytearray] = field(repr=False)
    _commits: Callable[[], Iterator[SavedCommit]] = field(repr=False)
    _held: Callable[[], Iterator[bytes]] = field(repr=False)

    def base(self) -> bytes:
        """The base."""
        return bytes(self._read(""))

    def blob(self, name: str) -> bytes | bytearray:
        """The bytes of an array that was stored with the base."""
        if name not in self.blobs:
            raise KeyError(name)
        return self._read(name)

    def commits(self) -> Iterator[SavedCommit]:
        """The commits after the base, up to ``step``, in order."""
        return self._commits()

    def held(self) -> Iterator[bytes]:
        """The segments of the superstep after the run's head, which is not committed; none if ``step`` was given."""
        return self._held()
