"""A worker process in the master: start, tasks, output and end."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

from gpu_pregel.errors import AgentError
from gpu_pregel.host.agents.records import Id, Outcome, VertexData
from gpu_pregel.host.agents.workers import pipes, recalls
from gpu_pregel.host.agents.workers.attempt_marks import AttemptMarks
from gpu_pregel.host.agents.workers.channel import Channel
from gpu_pregel.host.agents.workers.output import LineSplitter
from gpu_pregel.host.agents.workers.watchdog import VARIABLE, end_cgroups, kill_descendants, kill_named

LAST_SECONDS = 0.5
"""Seconds that a worker has to exit when asked to."""
_END_SECONDS = 0.1
"""Seconds that a process has to end after it has closed its connection."""
_BUFFER = 1 << 20
_LARGE = 1 << 16
_MAX_READS = 64
"""Maximum number of reads of the output of a worker that has ended, because its subprocesses may still write."""
_KEPT_LINES, _KEPT_LENGTH = 20, 500
"""Number and length of lines of output that are kept for error messages."""
_ROOT = str(Path(__file__).absolute().parents[4])
_PROGRAM = "gpu_pregel.host.agents.workers.worker"


class WorkerProcess:
    """One generation of the worker of a partition.

    Attributes
    ----------
    channel : Channel
    marks : AttemptMarks
    tasks : list
        Submitted tasks, until all are answered; the first has the serial number ``served + 1``.
    outstanding : int
        Number of tasks that are neither answered nor returned.
    uncommitted : int
        Number of tasks answered since the last commit.
    returned : set of int
        Serial numbers of those of the tasks that were returned.
    late : set of int
        Serial numbers of attempts that exceeded the timeout, so that the process was killed.
    is_killed_by_others : bool
        Whether neither the master nor an error has ended the process, but SIGKILL; known once it is finished.
    is_corrupt : bool
        Whether code in the process has damaged the connection: any of its tasks may have done so.
    """

    def __init__(
        self, partition: int, generation: int, slots: int, selector: selectors.BaseSelector, watchdog: Watchdog
    ) -> None:
        self.partition, self.generation, self._watchdog = partition, generation, watchdog
        self._name_inherited = f"{watchdog.name}.{partition}.{generation}."
        self.tasks: list[tuple[Any, ...]] = []
        self.answered: list[list[Outcome]] = []
        self.served = self.outstanding = self.uncommitted = 0
        self.returned: set[int] = set()
        self.late: set[int] = set()
        self.ready_since = 0.0
        self.is_ready = self.is_async = self.is_killed = self.is_spared = self.is_finished = self.is_corrupt = False
        self.is_killed_by_others = False
        self.next_check = 0.0
        self._reason = ""
        self._lines = LineSplitter()
        self._program = ""  # name of the attempt whose subprocess writes unmarked output
        self._last_lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._selector = selector
        self.marks = AttemptMarks(slots)
        self._connection, theirs = socket.socketpair()
        self._output, output = os.pipe()
        theirs_too, self._recalls = os.pipe()
        try:
            for end in (self._connection, theirs):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
            self._process = _start([theirs.fileno(), self.marks.fd, theirs_too], output, self._name_inherited)
        except BaseException:
            self._connection.close()
            os.close(self._output)
            os.close(self._recalls)
            self.marks.close()
            raise
        finally:
            theirs.close()
            os.close(output)
            os.close(theirs_too)
        watchdog.add(self._process.pid)
        self._end = os.pidfd_open(self._process.pid)
        os.set_blocking(self._output, False)
        os.set_blocking(self._recalls, False)
        self.channel = Channel(self._connection, selector, (self, "channel"))
        selector.register(self._output, selectors.EVENT_READ, (self, "output"))
        selector.register(self._end, selectors.EVENT_READ, (self, "end"))

    @property
    def pid(self) -> int:
        """The id of the process and of its group."""
        return self._process.pid

    def greet(self, hello: bytes, step: int | None, vertices: dict[Id, VertexData]) -> None:
        """Send the options and the vertices before a superstep to a new worker."""
        self.channel.send(pipes.HELLO, hello)
        self.channel.send_each(pipes.LOAD, pipes.pack_load(self.generation, step, vertices))

    # Tasks.

    def task(self, serial: int) -> tuple[Id, int]:
        """Return the vertex and attempt of a serial number."""
        vertex, attempt, *_ = self.tasks[serial - self.served - 1]
        return vertex, attempt

    def running(self) -> list[int]:
        """Return serial numbers of attempts that are marked and not answered; of a corrupt worker, of all others."""
        tasks = range(self.served + 1, self.served + len(self.tasks) + 1)
        serials = list(tasks) if self.is_corrupt else [serial for serial, _ in self.marks.running() if serial in tasks]
        if not serials:
            return []
        answered = {(outcome.id, outcome.attempt) for outcomes in self.answered for outcome in outcomes}
        return [serial for serial in serials if self.task(serial) not in answered]

    def begun(self) -> list[tuple[Id, int]]:
        """Return vertex and attempt of each task that has begun, answered ones among them; any thread may call this.

        Tasks begin in order.
        """
        tasks, served = self.tasks[:], self.served
        try:
            latest = self.marks.latest - served
        except ValueError:  # the process has ended
            return []
        returned = {serial - served - 1 for serial in self.returned.copy()}
        return [(vertex, attempt) for number, (vertex, attempt, *_) in enumerate(tasks[: max(0, latest)])
                if number not in returned]  # fmt: skip

    def settle(self, count: int) -> None:
        """Count tasks that were answered or returned."""
        self.outstanding -= count
        if not self.outstanding:
            self.served += len(self.tasks)
            self.tasks.clear()
            self.answered.clear()
            self.returned.clear()

    def recall(self, step: int, count: int) -> None:
        """Ask for the return of tasks of a superstep."""
        if not self.is_finished:
            with contextlib.suppress(OSError):  # full, or the process is ending
                os.write(self._recalls, recalls.message.pack(step, count))

    # Output.

    def read_output(self, to_end: bool = False) -> None:
        """Copy lines of output to standard error of this process."""
        for _ in range(0 if self.is_finished else _MAX_READS):
            try:
                data = os.read(self._output, _LARGE)
            except BlockingIOError:
                break
            if not data:
                if not to_end:
                    self._selector.unregister(self._output)
                break
            for line in self._lines.add(data):
                self._show(line)
            if not to_end:
                return
        for line in self._lines.end() if to_end else ():
            self._show(line)

    def _show(self, line: bytes) -> None:
        text = line.decode("utf-8", "backslashreplace")
        if text.startswith(pipes.PREFIX):
            writer, _, text = text[1:].partition(pipes.END_OF_PREFIX)
            self._print(writer, text)
            return
        text, mark, attempt = text.partition(pipes.PROGRAM)
        if text or not mark:
            self._print(self._program, text)
        if mark:
            self._program = attempt

    def _print(self, writer: str, text: str) -> None:
        self._last_lines.append(text[:_KEPT_LENGTH])
        if sys.stderr is not None:
            with contextlib.suppress(OSError, ValueError):  # full or closed; the run continues
                sys.stderr.write(f"[{self._name(writer)}] {text}\n")

    def _name(self, attempt: str) -> str:
        return f"worker {self.partition}, {attempt}" if attempt else f"worker {self.partition}"

    def log(self, name: str, level: int, attempt: str, text: str) -> None:
        """Handle a log record of the worker in this process."""
        logger = logging.getLogger(name)
        if logger.isEnabledFor(level):
            logger.handle(logger.makeRecord(name, level, "", 0, "[%s] %s", (self._name(attempt), text), None))

    def last_output(self) -> str:
        """Return the last lines of output, for an error message."""
        return "".join(f"\n    {line}" for line in self._last_lines)

    # End.

    def is_ending(self) -> bool:
        """Whether the process ends within a moment."""
        return self._ends_within(_END_SECONDS)

    def _ends_within(self, seconds: float) -> bool:
        poll = select.poll()
        poll.register(self._end, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def kill(self, reason: str, *, spare: bool = False) -> None:
        """Kill the process group; with ``spare``, only attempts in ``late`` are charged."""
        if not self.is_killed:
            self.is_killed, self.is_spared, self._reason = True, spare, reason
        self.end_group()

    def end_group(self) -> None:
        """Kill the process group, and subprocesses that have left it."""
        if self.is_finished:
            return
        if self.marks.has_subprocesses:
            kill_descendants(self.pid)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def ask_to_end(self) -> None:
        """Ask an idle worker to exit; kill a busy one."""
        if self.outstanding or not self.is_ready or self.channel.has_unsent:
            self.kill("the run was closed")
        else:
            self.channel.send(pipes.END, b"")

    def wait(self, until: float) -> None:
        """Wait until the process ends, at most until a time on the monotonic clock; then kill its group."""
        if not self.is_finished:
            self._ends_within(max(0.0, until - time.monotonic()))
            self.end_group()

    def finish(self) -> str:
        """Reap the process; return why it ended."""
        if self.is_finished:
            return self._reason
        self.end_group()
        code = self._process.wait()
        if self.marks.has_subprocesses:
            end_cgroups(self._name_inherited)
            kill_named(self._name_inherited)
        self.is_finished = True
        self.is_killed_by_others = code == -signal.SIGKILL and not self.is_killed
        self._watchdog.remove(self.pid)
        self.channel.ignore()
        for registered in (self._output, self._end):
            with contextlib.suppress(KeyError):
                self._selector.unregister(registered)
            os.close(registered)
        os.close(self._recalls)
        self._connection.close()
        self.marks.close()
        if code != -signal.SIGKILL or not self._reason:
            self._reason = f"ended by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"
        return self._reason


def refused(partition: int, problem: str, missing: str | None) -> AgentError:
    """Return the error for a worker that cannot compute, with the remedy if it lacks a module that is loaded here."""
    module = sys.modules.get(missing) if missing else None
    if module is None:
        return AgentError(f"worker {partition} cannot compute: {problem}")
    file = getattr(module, "__file__", None)
    return AgentError(
        f"workers cannot import the module {missing!r}, which defines a function or class that they need: "
        f"{f'put the folder of {file}' if file else 'put its folder'} on sys.path or PYTHONPATH under that name, "
        f"run its file as a program, or move the definition into the script or into a function"
    )


def _start(descriptors: list[int], output: int, name: str) -> subprocess.Popen[bytes]:
    if not sys.executable:
        raise RuntimeError("sys.executable is not set, so no worker process can be started: pass workers=0")
    path = [_ROOT, *filter(None, [os.environ.get("PYTHONPATH")])]
    # If the program has closed its standard output, for example, descriptors would collide with those of the worker.
    passed = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3) for descriptor in descriptors]
    try:
        return subprocess.Popen(
            [sys.executable, "-P", *["-O"] * sys.flags.optimize, "-m", _PROGRAM, *map(str, passed), str(os.getpid())],
            env={**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": os.pathsep.join(path), VARIABLE: name},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=passed,
            start_new_session=True,
        )
    finally:
        for descriptor in passed:
            os.close(descriptor)


class Watchdog:
    """A process that kills the process groups of workers if this one ends without doing so.

    Groups that are added before ``start`` are watched from then on.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._groups: set[int] = set()
        self.name = os.urandom(8).hex()
        """Begins the names of the workers in their environment."""

    def start(self) -> None:
        """Start the process, after the workers, because idle workers do not need it."""
        program = str(Path(__file__).absolute().with_name("watchdog.py"))
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", program, str(os.getpid()), f"{self.name}."],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._write("".join(f"+{group}\n" for group in self._groups))

    def add(self, group: int) -> None:
        """Watch a process group."""
        self._groups.add(group)
        self._write(f"+{group}\n")

    def remove(self, group: int) -> None:
        """Stop watching a process group."""
        self._groups.discard(group)
        self._write(f"-{group}\n")

    def _write(self, lines: str) -> None:
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                os.write(self._process.stdin.fileno(), lines.encode())

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()
