"""When the bases of a run are due, and how large ones are written while later supersteps run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator

from gpu_pregel.errors import ArgumentError, FencedError, StoreError

Packing = Generator[None, None, bytes]
"""Encodes a state that does not change: yields after each slice of a few milliseconds, and returns the bytes."""
SMALL_BASE = 1 << 16
"""Bases of at most this many bytes are due by the number of commits alone."""
LARGE_BASE = 1 << 20
"""After a base of more bytes, the next one is written in the background if its format can do so."""


class BaseSchedule:
    """When the next base is due, and the one that is being written in the background; see ``Journal``."""

    def __init__(self, every: int, commits: int, size: int | None, size_since: int) -> None:
        self._every, self._size = every, size
        self._commits, self._size_since = commits, size_since
        self._before = 0, 0
        self._writer: BaseWriter | None = None

    def add(self, size: int, *, commits: int = 0, base_size: int | None = None) -> None:
        """Count bytes and commits since the last base; with ``base_size`` they have a new one."""
        self._commits += commits
        self._size_since += size
        if base_size is not None:
            self._commits = self._size_since = 0
            self._note_size(base_size)

    def _note_size(self, size: int) -> None:
        if self._size is not None:
            self._size = size

    def is_due(self) -> bool:
        """Whether the next commit has a base."""
        if self._writer is not None or self._commits + 1 < self._every:
            return False
        return (self._size or 0) <= max(SMALL_BASE, self._size_since)

    @property
    def is_large(self) -> bool:
        """Whether the last base was large."""
        return self._size is not None and self._size > LARGE_BASE

    def begin(self, packing: Packing, write: Callable[[bytes], None]) -> None:
        """Write the base of the last commit in the background."""
        self._before = self._commits, self._size_since
        self._commits = self._size_since = 0
        self._writer = BaseWriter(packing, write)

    def end(self, *, wait: bool) -> None:
        """Note whether the base in the background was written, if that is over; ``wait`` for it."""
        writer = self._writer
        if writer is None or (writer.is_busy and not wait):
            return
        try:
            writer.finish()
        finally:
            if not writer.is_busy:  # otherwise waiting was interrupted
                self._writer = None
                if writer.size is not None:
                    self._note_size(writer.size)
                else:
                    self._commits += self._before[0]
                    self._size_since += self._before[1]

    def cancel(self) -> None:
        """Give the base in the background up, without waiting."""
        if self._writer is not None:
            self._writer.cancel()


class BaseWriter:
    """Encodes a base in slices, pausing after each for as long as it took, and writes it in one transaction.

    Parameters
    ----------
    packing : Packing
    write : callable
        Writes the base. If the store rejects it, the run continues from the base before: the next commit finds out.

    Attributes
    ----------
    size : int or None
        Bytes of the base; None until it is in the store.
    """

    def __init__(self, packing: Packing, write: Callable[[bytes], None]) -> None:
        self.size: int | None = None
        self._packing, self._write = packing, write
        self._error: BaseException | None = None
        self._urgent = threading.Event()
        self._is_cancelled = False
        self._thread = threading.Thread(target=self._run, name="base of a run", daemon=True)
        self._thread.start()

    @property
    def is_busy(self) -> bool:
        """Whether the base is neither written nor given up."""
        return self._thread.is_alive()

    def finish(self) -> None:
        """Wait until the base is written, without further pauses; raise what went wrong besides the store."""
        self._urgent.set()
        self._thread.join()
        error, self._error = self._error, None
        if error is not None:
            raise error

    def cancel(self) -> None:
        """Give the base up, without waiting, unless it is being written."""
        self._is_cancelled = True
        self._urgent.set()

    def _run(self) -> None:
        try:
            data = self._pack()
            if not self._is_cancelled:
                self._write(data)
                self.size = len(data)
        except (StoreError, FencedError, ArgumentError):  # the last: the run was pruned or deleted
            pass
        except BaseException as error:
            self._error = error

    def _pack(self) -> bytes:
        begin = time.perf_counter()
        while not self._is_cancelled:
            try:
                next(self._packing)
            except StopIteration as packed:
                return bytes(packed.value)
            self._urgent.wait(time.perf_counter() - begin)
            begin = time.perf_counter()
        return b""
