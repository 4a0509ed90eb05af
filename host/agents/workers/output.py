"""What Python code prints in a worker: lines for the master, each with the attempt that wrote it."""

from __future__ import annotations

import os
from _thread import RLock
from collections.abc import Callable
from io import TextIOBase
from typing import Any

from gpu_pregel.host.agents.codec import decode
from gpu_pregel.host.agents.workers import pipes


class Lines(TextIOBase):
    """Standard output or standard error; ``attempt()`` is the task on behalf of which code runs, or None."""

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self, fd: int, attempt: Callable[[], Any]) -> None:
        self._fd, self._attempt = fd, attempt
        self.buffer = open(fd, "wb", 0, closefd=False)  # noqa: SIM115
        self.begun: dict[int, tuple[Any, str]] = {}
        """By attempt, a line that is not complete: others may write meanwhile, on threads or in coroutines."""
        self._lock = RLock()

    def write(self, text: str) -> int:
        """Pass on what is complete."""
        task = self._attempt()
        with self._lock:
            begun = self.begun.pop(id(task), (task, ""))[1]
            *lines, rest = (begun + text).split("\n")
            if rest:
                self.begun[id(task)] = task, rest
            if lines:
                self._pass(task, lines)
        return len(text)

    def flush(self) -> None:
        """Nothing, as a line is passed on when it is complete, or the attempt has ended."""

    def end(self, task: Any) -> None:
        """Pass on what an attempt has begun as a line."""
        with self._lock:
            if begun := self.begun.pop(id(task), None):
                self._pass(task, [begun[1]])

    def end_all(self) -> None:
        """The same of all."""
        with self._lock:
            for task, _ in list(self.begun.values()):
                self.end(task)

    def announce(self, attempt: str) -> None:
        """Tell of whom the output of programs is from here on."""
        self.end_all()
        os.write(self._fd, f"{pipes.PROGRAM}{attempt}\n".encode("utf-8", "backslashreplace"))

    def _pass(self, task: Any, lines: list[str]) -> None:
        attempt = describe(task)
        prefix = f"{pipes.PREFIX}{attempt}{pipes.END_OF_PREFIX}" if attempt else ""
        rest = memoryview("".join(f"{prefix}{line}\n" for line in lines).encode("utf-8", "backslashreplace"))
        while rest:
            rest = rest[os.write(self._fd, rest) :]

    def fileno(self) -> int:
        """The descriptor."""
        return self._fd

    def writable(self) -> bool:
        """Yes."""
        return True


def describe(task: Any) -> str:
    """An attempt in words."""
    return "" if task is None else pipes.describe(decode(task[0]), task[1])
