"""Subprocesses of a worker: kept together, so that the master finds them when the worker ends."""

from __future__ import annotations

import atexit
import os
import sys
from _thread import allocate_lock
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Any

from gpu_pregel.host.agents.workers.watchdog import children, enter_cgroup, kill_descendants

_PR_SET_CHILD_SUBREAPER = 36
_REAP_AFTER = 1.0
"""Seconds after its end that an orphan is reaped; a library that has started a process itself waits for it sooner."""


class Subprocesses:
    """Watches what a worker starts from Python.

    Before the first start, the worker moves into a cgroup of its own, which its subprocesses cannot leave. If that is
    not allowed, it becomes the parent of processes that lose theirs, so that they stay its descendants.

    Parameters
    ----------
    name : str
        The name of the worker.
    note : callable
        Called before each start.
    announce : callable
        Called before the start of each program.
    """

    def __init__(self, name: str, note: Callable[[], object], announce: Callable[[], object]) -> None:
        self._name, self._note, self._announce = name, note, announce
        self._worker = os.getpid()
        self._is_prepared = self._adopts = False
        self._lock = allocate_lock()
        self._own: set[int] = set()
        """Children that code in this process has started and waits for."""
        self._ended: dict[int, float] = {}
        """Since when orphans are known to have ended, on the monotonic clock."""

    def watch(self) -> None:
        """Replace the functions of Python that start processes."""
        import _posixsubprocess

        atexit.register(self._end)  # the first one to be registered is called last
        os.register_at_fork(before=self._prepare)
        _posixsubprocess.fork_exec = self._watched(_posixsubprocess.fork_exec)
        os.posix_spawn, os.posix_spawnp = self._watched(os.posix_spawn), self._watched(os.posix_spawnp)
        os.system = self._watched(os.system, returns_pid=False)
        os.fork, os.forkpty = self._noted(os.fork), self._noted(os.forkpty)
        if "subprocess" in sys.modules:
            sys.modules["subprocess"]._fork_exec = _posixsubprocess.fork_exec  # type: ignore[attr-defined]

    def _watched(self, start: Callable[..., Any], *, returns_pid: bool = True) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            self._prepare()
            self._announce()
            result = start(*arguments, **options)
            if returns_pid:
                self._own.add(result)
            return result

        return call

    def _noted(self, fork: Callable[[], Any]) -> Callable[[], Any]:
        def call() -> Any:
            result = fork()
            self._own.add(result[0] if isinstance(result, tuple) else result)
            return result

        return call

    def _prepare(self) -> None:
        """Keep the subprocesses together that start from now on."""
        self._note()
        if not self._is_prepared:
            with self._lock:
                if not self._is_prepared:
                    self._adopts = not enter_cgroup(self._name)
                    if self._adopts:
                        import ctypes

                        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
                    self._is_prepared = True
        elif self._adopts and os.getpid() == self._worker:
            self._reap_orphans()

    def _end(self) -> None:
        """Kill what is left when the worker exits, as it has no parent afterwards."""
        if self._is_prepared and os.getpid() == self._worker:
            kill_descendants(self._worker)

    def _reap_orphans(self) -> None:
        """Reap adopted processes that have ended, as nobody else waits for them."""
        own = self._own.copy()
        found, now = children(self._worker), monotonic()
        self._own -= own - found
        ended = {pid: self._ended.get(pid, now) for pid in found - own if _has_ended(pid)}
        self._ended = {pid: since for pid, since in ended.items() if now - since < _REAP_AFTER}
        for pid in ended.keys() - self._ended.keys():
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def _has_ended(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] == b"Z"
    except OSError:
        return False
