"""Standard output and error of Python code in a worker, passed to the master with the name of the attempt."""

from __future__ import annotations

import os
from _thread import RLock
from collections.abc import Callable
from contextvars import ContextVar
from io import StringIO, TextIOBase
from typing import Any

from gpu_pregel.host.agents.codec import decode
from gpu_pregel.host.agents.workers import pipes

current_attempt: ContextVar[Any] = ContextVar("current_attempt", default=None)
"""The task of the ``async`` function whose code is running."""
MAX_LINE = 1 << 20
"""Longer lines are divided, so that output without newlines takes little memory."""


class AttemptOutput(TextIOBase):
    """Standard output or standard error, line by line.

    Parameters
    ----------
    fd : int
    attempt : callable
        Returns the task whose code is running, or None.
    """

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self, fd: int, attempt: Callable[[], Any]) -> None:
        self._fd, self._attempt = fd, attempt
        self.buffer = open(fd, "wb", 0, closefd=False)  # noqa: SIM115
        self.begun: dict[int, tuple[Any, StringIO]] = {}
        """The incomplete line of each attempt; threads and coroutines may interleave."""
        self._lock = RLock()

    def write(self, text: str) -> int:
        """Write complete lines."""
        task = self._attempt()
        with self._lock:
            *lines, rest = text.split("\n")
            if lines:
                if begun := self.begun.pop(id(task), None):
                    lines[0] = begun[1].getvalue() + lines[0]
                self._write_lines(task, lines)
            if rest:
                _, line = self.begun.setdefault(id(task), (task, StringIO()))
                line.write(rest)
                if line.tell() >= MAX_LINE:
                    self.end(task)
        return len(text)

    def flush(self) -> None:
        """Do nothing: a line is written when it is complete or its attempt has ended."""

    def end(self, task: Any) -> None:
        """Write the incomplete line of an attempt."""
        with self._lock:
            if begun := self.begun.pop(id(task), None):
                self._write_lines(task, [begun[1].getvalue()])

    def end_all(self) -> None:
        """Write all incomplete lines."""
        with self._lock:
            for task, _ in list(self.begun.values()):
                self.end(task)

    def announce(self, attempt: str) -> None:
        """Name the attempt whose subprocesses write the following output."""
        self.end_all()
        os.write(self._fd, f"{pipes.PROGRAM}{attempt}\n".encode("utf-8", "backslashreplace"))

    def _write_lines(self, task: Any, lines: list[str]) -> None:
        attempt = describe(task)
        prefix = f"{pipes.PREFIX}{attempt}{pipes.END_OF_PREFIX}" if attempt else ""
        rest = memoryview("".join(f"{prefix}{line}\n" for line in lines).encode("utf-8", "backslashreplace"))
        while rest:
            rest = rest[os.write(self._fd, rest) :]

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._fd

    def writable(self) -> bool:
        """Return True."""
        return True


class LineSplitter:
    """Divides the output of a worker into lines, in time proportional to its length."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []
        self._size = 0

    def add(self, data: bytes) -> list[bytes]:
        """Return the lines that ``data`` completes, and an incomplete one that is too long."""
        *lines, rest = data.split(b"\n")
        if lines:
            lines[0] = b"".join((*self._begun, lines[0]))
            self._begun.clear()
            self._size = 0
        if rest:
            self._begun.append(rest)
            self._size += len(rest)
            if self._size >= MAX_LINE:
                lines += self.end()
        return lines

    def end(self) -> list[bytes]:
        """Return the incomplete line, if there is one."""
        lines = [b"".join(self._begun)] if self._begun else []
        self._begun.clear()
        self._size = 0
        return lines


def describe(task: Any) -> str:
    """Return the name of a task; empty for None."""
    return "" if task is None else pipes.describe(decode(task[0]), task[1])


def levels() -> dict[str, int]:
    """Return the levels of all loggers, so that workers forward only enabled records."""
    import logging

    manager = logging.Logger.manager
    levels = {
        name: one.level for name, one in manager.loggerDict.items() if isinstance(one, logging.Logger) and one.level
    }
    return {"": logging.getLogger().level, **levels}
