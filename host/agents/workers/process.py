"""A worker process as the master sees it: its connection, its output, its marks, its end."""

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
from itertools import islice
from pathlib import Path
from typing import Any

from gpu_pregel.host.agents.records import Id, Outcome, Vertex
from gpu_pregel.host.agents.workers import pipes

LAST_SECONDS = 0.5
"""Seconds that a worker has to end by itself when told to."""
_MOMENT = 0.1
"""Seconds within which a process that has closed its connection is to end."""
_BUFFER = 1 << 20
_LARGE = 1 << 16
_READS = 64
"""So often is output read when a worker has ended, as what it has started may write without end."""
_WORDS = 20
"""So many last lines of a worker's output are kept, to say why it ended."""
_ROOT = str(Path(__file__).absolute().parents[4])
_PROGRAM = "gpu_pregel.host.agents.workers.worker"


class Process:
    """One generation of a partition's worker.

    Attributes
    ----------
    frames : pipes.Frames
    marks : pipes.Marks
    tasks : list
        Those submitted and not all answered; the first has the serial number ``served + 1``.
    outstanding : int
        How many of them are not answered.
    late : set of int
        Serial numbers of attempts for whose sake it was ended.
    touched : float
        When something came from it, or was submitted, by the monotonic clock.
    """

    def __init__(
        self, partition: int, generation: int, slots: int, selector: selectors.BaseSelector, guardian: Guardian
    ) -> None:
        self.partition, self.generation, self.guardian = partition, generation, guardian
        self.tasks: list[tuple[Any, ...]] = []
        self.answered: list[list[Outcome]] = []
        self.served = self.outstanding = 0
        self.late: set[int] = set()
        self.is_ready = self.is_async = self.is_killed = self.is_spared = self.is_broken = self.is_finished = False
        self.touched = time.monotonic()
        self.next_look = 0.0
        self._reason = ""
        self._out: deque[memoryview] = deque()
        self._line = b""
        self._program = ""  # the attempt that has started a program, whose output comes as it is
        self._words: deque[str] = deque(maxlen=_WORDS)
        self._selector = selector
        self.marks = pipes.Marks(slots)
        self._channel, theirs = socket.socketpair()
        self._output, output = os.pipe()
        try:
            for end in (self._channel, theirs):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
            self._process = _start([theirs.fileno(), self.marks.fd], output)
        except BaseException:
            self._channel.close()
            os.close(self._output)
            self.marks.close()
            raise
        finally:
            theirs.close()
            os.close(output)
        guardian.add(self._process.pid)
        self._end = os.pidfd_open(self._process.pid)
        self._channel.setblocking(False)
        os.set_blocking(self._output, False)
        self.frames = pipes.Frames(self._channel.fileno())
        selector.register(self._channel, selectors.EVENT_READ, (self, "channel"))
        selector.register(self._output, selectors.EVENT_READ, (self, "output"))
        selector.register(self._end, selectors.EVENT_READ, (self, "end"))

    @property
    def pid(self) -> int:
        """The process's number, which is also its group's."""
        return self._process.pid

    # The connection.

    def greet(self, hello: bytes, vertices: dict[Id, Vertex]) -> None:
        """Send what a new worker must know."""
        self.send(pipes.HELLO, hello)
        self.send(pipes.LOAD, pipes.pack(pipes.pack_vertices(vertices)))

    def send(self, kind: int, content: bytes) -> None:
        """Send a frame, or keep what the other end does not take yet."""
        if self.is_broken:
            return
        head = pipes.header.pack(len(content), kind)
        is_idle = not self._out
        if len(content) < _LARGE:
            self._out.append(memoryview(head + content))
        else:
            self._out += (memoryview(head), memoryview(content))
        if is_idle:
            self.send_rest()
            if self._out:
                self._selector.modify(self._channel, selectors.EVENT_READ | selectors.EVENT_WRITE, (self, "channel"))

    def send_rest(self) -> None:
        """Send as much as the other end takes."""
        was_waiting = len(self._out) > 0
        try:
            while self._out:
                n = self._channel.sendmsg(list(islice(self._out, 64)))
                self.touched = time.monotonic()
                while n:
                    first = self._out.popleft()
                    if n < len(first):
                        self._out.appendleft(first[n:])
                        return
                    n -= len(first)
        except BlockingIOError:
            return
        except OSError:
            self._out.clear()  # it is ending, and its end will be told
        if was_waiting and not self.is_broken:
            self._selector.modify(self._channel, selectors.EVENT_READ, (self, "channel"))

    def read(self) -> list[tuple[int, bytes | bytearray]]:
        """Frames that have come."""
        if self.is_broken:
            return []
        frames = self.frames.read()
        if not self.frames.empty:
            self.touched = time.monotonic()
        return frames

    def ignore_channel(self) -> None:
        """Neither read nor write any more."""
        if not self.is_broken:
            self.is_broken = True
            self._out.clear()
            self._selector.unregister(self._channel)

    # What was under way.

    def task(self, serial: int) -> tuple[Id, int]:
        """The vertex and attempt of a serial number."""
        vertex, attempt, *_ = self.tasks[serial - self.served - 1]
        return vertex, attempt

    def under_way(self) -> list[int]:
        """Serial numbers of attempts that are marked, and whose outcome has not come."""
        serials = [serial for serial, _ in self.marks.under_way()]
        serials = [serial for serial in serials if 0 < serial - self.served <= len(self.tasks)]
        if not serials:
            return []
        answered = {(outcome.id, outcome.attempt) for outcomes in self.answered for outcome in outcomes}
        return [serial for serial in serials if self.task(serial) not in answered]

    # Its output.

    def read_output(self, to_end: bool = False) -> None:
        """Pass on lines of its output, to standard error here."""
        for _ in range(0 if self.is_finished else _READS):
            try:
                data = os.read(self._output, _LARGE)
            except BlockingIOError:
                break
            if not data:
                if not to_end:
                    self._selector.unregister(self._output)
                break
            *lines, self._line = (self._line + data).split(b"\n")
            for line in lines:
                self._show(line)
            if not to_end:
                return
        if to_end and self._line:
            line, self._line = self._line, b""
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
        self._words.append(text)
        if sys.stderr is not None:
            with contextlib.suppress(OSError, ValueError):  # it is full, or closed: no reason to end a run
                sys.stderr.write(f"[{self._name(writer)}] {text}\n")

    def _name(self, attempt: str) -> str:
        return f"worker {self.partition}, {attempt}" if attempt else f"worker {self.partition}"

    def log(self, name: str, level: int, attempt: str, text: str) -> None:
        """Handle a log record of the worker as one of this process."""
        logger = logging.getLogger(name)
        if logger.isEnabledFor(level):
            logger.handle(logger.makeRecord(name, level, "", 0, "[%s] %s", (self._name(attempt), text), None))

    def last_words(self) -> str:
        """The last lines of its output, to be added to an error."""
        return "".join(f"\n    {line}" for line in self._words)

    # Its end.

    def is_ending(self) -> bool:
        """Whether it has ended, or does so in a moment."""
        poll = select.poll()
        poll.register(self._end, select.POLLIN)
        return bool(poll.poll(_MOMENT * 1000))

    def kill(self, reason: str, *, spare: bool = False) -> None:
        """End it and what it has started; with ``spare``, only attempts in ``late`` are to be blamed."""
        if not self.is_killed:
            self.is_killed, self.is_spared, self._reason = True, spare, reason
        self.end_group()

    def end_group(self) -> None:
        """End the process group."""
        if not self.is_finished:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    def ask_to_end(self) -> None:
        """Let it end by itself if it is idle; else end it."""
        if self.outstanding or not self.is_ready or self._out:
            self.kill("the run was closed")
        else:
            self.send(pipes.END, b"")

    def wait(self, until: float) -> None:
        """Wait for its end, and end it then."""
        if not self.is_finished:
            poll = select.poll()
            poll.register(self._end, select.POLLIN)
            poll.poll(max(0.0, until - time.monotonic()) * 1000)
            self.end_group()

    def finish(self) -> str:
        """Take leave of a process that has ended or is about to; why it did."""
        if self.is_finished:
            return self._reason
        self.end_group()
        code = self._process.wait()
        self.is_finished = True
        self.guardian.remove(self.pid)
        self.ignore_channel()
        for registered in (self._output, self._end):
            with contextlib.suppress(KeyError):
                self._selector.unregister(registered)
            os.close(registered)
        self._channel.close()
        self.marks.close()
        if code != -signal.SIGKILL or not self._reason:
            self._reason = f"ended by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"
        return self._reason


def _start(descriptors: list[int], output: int) -> subprocess.Popen[bytes]:
    if not sys.executable:
        raise RuntimeError("sys.executable is not set, so that no worker process can be started: pass workers=0")
    path = [_ROOT, *filter(None, [os.environ.get("PYTHONPATH")])]
    # Where a program has closed its standard output, say, their numbers would be those of the worker's.
    passed = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3) for descriptor in descriptors]
    try:
        return subprocess.Popen(
            [sys.executable, "-P", *["-O"] * sys.flags.optimize, "-m", _PROGRAM, *map(str, passed), str(os.getpid())],
            env={**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": os.pathsep.join(path)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=passed,
            start_new_session=True,
        )
    finally:
        for descriptor in passed:
            os.close(descriptor)


class Guardian:
    """A process that ends the workers' process groups if this one ends without doing so.

    Until it is started, it keeps in mind what it is told.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._groups: set[int] = set()

    def start(self) -> None:
        """Start it: last, as workers without work need it least."""
        program = str(Path(__file__).absolute().with_name("guardian.py"))
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", program, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._tell("".join(f"+{group}\n" for group in self._groups))

    def add(self, group: int) -> None:
        """Watch over a process group."""
        self._groups.add(group)
        self._tell(f"+{group}\n")

    def remove(self, group: int) -> None:
        """Forget a process group."""
        self._groups.discard(group)
        self._tell(f"-{group}\n")

    def _tell(self, lines: str) -> None:
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                os.write(self._process.stdin.fileno(), lines.encode())

    def close(self) -> None:
        """End it."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()
