"""Marks of the running attempts of a worker, which the master reads."""

from __future__ import annotations

import mmap
import os
from time import monotonic


class AttemptMarks:
    """Running attempts of a worker, in shared memory that outlives it.

    Each slot has the serial number of an attempt, 0 for none, and its start time on the monotonic clock; 0.0 means that
    it has ended and its outcome is being sent. Two flags say whether the worker has started a subprocess, and whether
    it is writing an emission; ``latest`` is the highest serial number of an attempt that has begun.
    """

    def __init__(self, slots: int, fd: int | None = None) -> None:
        self.slots = slots
        self.fd = os.memfd_create("marks") if fd is None else fd
        if fd is None:
            os.ftruncate(self.fd, 16 * slots + 10)
        self._map = mmap.mmap(self.fd, 16 * slots + 10)
        view, end = memoryview(self._map), 16 * slots
        serials, begun = view[: 8 * slots].cast("q"), view[8 * slots : end].cast("d")
        self._views = view, serials, begun, view[end : end + 8].cast("q"), view[end + 8 :]
        _, self.serials, self.begun, self._latest, self._flags = self._views

    def running(self) -> list[tuple[int, float]]:
        """Return (serial, begun) of each occupied slot."""
        return [(serial, begun) for serial, begun in zip(self.serials, self.begun, strict=True) if serial]

    @property
    def latest(self) -> int:
        """The highest serial number of an attempt that has begun."""
        return max(self._latest[0], *self.serials)

    @latest.setter
    def latest(self, serial: int) -> None:
        self._latest[0] = serial

    @property
    def has_subprocesses(self) -> bool:
        """Whether the worker has started a subprocess."""
        return bool(self._flags[0])

    def note_subprocess(self) -> None:
        """Note that the worker is about to start a subprocess."""
        self._flags[0] = 1

    @property
    def is_emitting(self) -> bool:
        """Whether an attempt of the worker is writing an emission, for which it may have to wait."""
        return bool(self._flags[1])

    @is_emitting.setter
    def is_emitting(self, value: bool) -> None:
        self._flags[1] = value

    def excuse(self, begun: float) -> None:
        """Let the running attempts begin later by the time since ``begun``, in which one waited for observers."""
        now = monotonic()
        for slot, mark in enumerate(self.begun):
            if mark:
                self.begun[slot] = min(mark + now - begun, now)

    def close(self) -> None:
        """Release the memory and the descriptor."""
        for view in reversed(self._views):
            view.release()
        self._map.close()
        os.close(self.fd)
