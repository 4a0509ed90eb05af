"""A worker process: computes one partition for a master at the other end of an inherited socket.

``python -m gpu_pregel.host.agents.workers.worker FD MARKS MASTER`` with the descriptors of the socket and of the shared
marks,
and the master's process id. Nothing that takes long to import is imported before it is needed.

For tests, ``GPU_PREGEL_WORKER_FAULT=place:count:path`` lets a worker kill itself when it comes to ``place`` for the
``count``-th time, if it is the one that creates the file ``path``; with ``:stop`` at the end it stops instead. Places:
"loading", "idle" (a batch has come), "computing", "marked" (a frame is written, and its mark not cleared), "torn" (half
a frame is written), "committing".
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from _thread import allocate_lock
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING, Any

from gpu_pregel.host.agents.codec import register
from gpu_pregel.host.agents.records import Batch, Outcome, Task
from gpu_pregel.host.agents.workers import pipes
from gpu_pregel.host.agents.workers.executor import Executor, Job
from gpu_pregel.host.agents.workers.garbage import collect_rarely
from gpu_pregel.host.agents.workers.output import Lines, describe

if TYPE_CHECKING:
    from asyncio import Runner

_FLUSH_AFTER = 0.001
"""Seconds after which a completed outcome does not wait for others to share its frame."""
_PR_SET_PDEATHSIG = 1

_current: ContextVar[Any] = ContextVar("current", default=None)
"""The attempt of an ``async`` function on behalf of which code runs."""


def main(arguments: list[str]) -> None:
    """Serve a master until it says so, or is gone."""
    channel, marks, master = map(int, arguments)
    os.set_inheritable(channel, False)
    os.set_inheritable(marks, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with(master)
    worker = Worker(channel, marks)
    worker.serve()


def _end_with(master: int) -> None:
    """End, with all that this process has started, when the master does."""
    import ctypes

    def check(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        if os.getppid() != master:  # else it is the thread that started us that has ended
            _end_all()

    signal.signal(signal.SIGHUP, check)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGHUP)
    check(0, None)


def _end_all() -> None:
    """End this process group at once."""
    os.killpg(0, signal.SIGKILL)


class Worker:
    """Reads what the master wants, computes, and answers."""

    def __init__(self, channel: int, marks: int) -> None:
        self._channel = channel
        self._lock = allocate_lock()
        self._logs: deque[bytes] = deque()
        self._pid = os.getpid()
        self._frames = pipes.Frames(channel)
        self._marks_fd = marks
        self._outcomes: list[Outcome] = []
        self._oldest = 0.0
        self._has_programs = self._in_order = False
        self._serial = 0
        """Of the latest task answered, for an ordinary function, or begun."""
        self._serials: list[int] = []
        self._task: Any = None
        """The attempt of an ordinary function that is under way."""
        self._runner: Runner | None = None
        self._fault = _Fault.of(os.environ.get("GPU_PREGEL_WORKER_FAULT"))

    def serve(self) -> None:
        """Answer the master's frames one by one."""
        self._waiting: list[tuple[int, bytes | bytearray]] = []
        while True:
            kind, content = self._next()
            if kind == pipes.BATCH:
                self._compute(pipes.unpack_batch(content))
            elif kind == pipes.COMMIT:
                self._fault.at("committing")
                self._executor.commit(pipes.unpack_change(content))
            elif kind == pipes.HELLO:
                self._prepare(content)
            elif kind == pipes.LOAD:
                self._load(content)
            elif kind == pipes.END:
                sys.exit()

    def _next(self) -> tuple[int, bytes | bytearray]:
        while not self._waiting:
            self._read()
        return self._waiting.pop(0)

    def _read(self) -> None:
        self._waiting += self._frames.read()
        if self._frames.closed:
            _end_all()

    # Before the first batch.

    def _prepare(self, content: bytes | bytearray) -> None:
        """Become as the master is: paths, environment, limits, functions, registered types."""
        hello = pipes.unpack(content)
        sys.path[:] = hello["path"]
        sys.argv[:] = hello["argv"]
        for name, value in hello["environment"].items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self._lines = Lines(1, self.attempt), Lines(2, self.attempt)
        sys.stdout, sys.stderr = self._lines
        self._watch_programs()
        self._forward_logging(hello["levels"])
        self._marks = pipes.Marks(hello["slots"], self._marks_fd)
        if hello["max_memory"] is not None:
            import resource

            _, hard = resource.getrlimit(resource.RLIMIT_AS)
            resource.setrlimit(resource.RLIMIT_AS, (hello["max_memory"], hard))
        try:
            import pickle

            for name, data in hello["types"]:
                # One that cannot be made here is refused where data are of it: the run may have none.
                with suppress(Exception):
                    register(pickle.loads(data), name)
            self._job: Job = pickle.loads(hello["job"])
            self._executor = Executor(self._job, interruptible=False)
        except BaseException:
            self._refuse("what it is to compute cannot be unpickled there")

    def _load(self, content: bytes | bytearray) -> None:
        try:
            self._executor.load(pipes.unpack_vertices(pipes.unpack(content)))
            gc.freeze()  # what is here by now stays
            collect_rarely()
        except MemoryError:
            self._refuse("there is no memory for its vertices")
        self._fault.at("loading")
        self._write(pipes.READY, b"")

    def _watch_programs(self) -> None:
        """Say whose output it is before an attempt starts a program."""
        import _posixsubprocess

        def watched(start: Callable[..., Any]) -> Callable[..., Any]:
            def call(*arguments: Any, **options: Any) -> Any:
                if (task := self._task) is not None:
                    self._lines[0].announce(describe(task))
                    self._has_programs = True
                return start(*arguments, **options)

            return call

        _posixsubprocess.fork_exec = watched(_posixsubprocess.fork_exec)
        os.posix_spawn = watched(os.posix_spawn)
        if "subprocess" in sys.modules:
            sys.modules["subprocess"]._fork_exec = _posixsubprocess.fork_exec  # type: ignore[attr-defined]

    def _refuse(self, what: str) -> None:
        """Tell why this worker, and any in its place, cannot work; and which module it lacks, if that is why."""
        import traceback

        error = sys.exc_info()[1]
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        self._write(pipes.REFUSED, pipes.pack((f"{what}: {traceback.format_exc()}", missing)))
        sys.exit(1)

    def _forward_logging(self, levels: dict[str, int] | None) -> None:
        if levels is None:
            return
        import logging

        class Forward(logging.Handler):
            def emit(handler, record: logging.LogRecord) -> None:  # noqa: N805
                try:
                    self._log(record.name, record.levelno, handler.format(record))
                except Exception:
                    handler.handleError(record)

        logging.getLogger().addHandler(Forward())
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)

    def _log(self, name: str, level: int, text: str) -> None:
        text = text.encode("utf-8", "backslashreplace").decode()
        if os.getpid() == self._pid:
            self._logs.append(pipes.pack((str(name), int(level), describe(self.attempt()), text)))
            self._write_logs()
        else:
            print(text, file=sys.stderr)  # a fork must not write into our connection

    def _write(self, kind: int, content: bytes) -> None:
        with self._lock:
            pipes.write(self._channel, kind, content)
        if self._logs:
            self._write_logs()

    def _write_logs(self) -> None:
        """Send log records, unless something is being written: then whoever does so sends them, too.

        That may be this thread, where the collector of garbage calls what logs.
        """
        while self._logs and self._lock.acquire(blocking=False):
            try:
                with suppress(IndexError):
                    pipes.write(self._channel, pipes.LOG, self._logs.popleft())
            finally:
                self._lock.release()

    # Batches.

    def _compute(self, batch: Batch) -> None:
        self._fault.at("idle")
        self._in_order = not self._executor.is_async(batch)
        if not self._in_order:
            self._compute_on_loop(batch)
        else:
            self._compute_in_order(batch)
        self._flush()
        self._end_output()

    def _end_output(self) -> None:
        """What was printed without an end of line has one when its attempt ends."""
        for lines in self._lines:
            lines.end_all()
        if self._has_programs:
            self._has_programs = False
            self._lines[0].announce("")

    def attempt(self) -> Any:
        """The task on behalf of which code runs here."""
        return self._task or _current.get()

    def _compute_in_order(self, batch: Batch) -> None:
        """An ordinary function: one mark, which names the latest attempt until its outcome is written."""
        marks, lines = self._marks.serials, self._lines
        begun, serial, tasks = self._marks.begun, self._serial, batch.tasks
        outcomes, flush, fault = self._outcomes, self._flush, self._fault.at if self._fault.place else None
        pid, getpid = self._pid, os.getpid

        def begin(index: int) -> None:
            now = monotonic()
            if outcomes and now - self._oldest >= _FLUSH_AFTER:
                flush()
                now = monotonic()
            marks[0] = serial + index + 1
            begun[0] = now
            self._task = tasks[index]
            if fault is not None:
                fault("computing")

        def emit(outcome: Outcome) -> None:
            if getpid() != pid:
                os._exit(0)  # a fork that came back from compute: the outcome is its parent's to tell
            begun[0] = 0.0
            if not outcomes:
                self._oldest = monotonic()
            outcomes.append(outcome)
            if lines[0].begun or lines[1].begun or self._has_programs:
                self._end_output()

        self._executor.execute(batch, emit, begin)
        self._task = None
        flush()
        self._fault.at("marked")
        marks[0] = 0

    def _flush(self) -> None:
        if self._outcomes:
            numbers: Sequence[int] = self._serials
            if self._in_order:
                numbers = range(self._serial + 1, self._serial + 1 + len(self._outcomes))
                self._serial = numbers[-1]
            content = pipes.pack_outcomes(numbers, self._outcomes)
            self._outcomes.clear()
            self._serials.clear()
            if self._fault.is_now("torn"):
                os.write(
                    self._channel, (pipes.header.pack(len(content), pipes.OUTCOMES) + content)[: 9 + len(content) // 2]
                )
                self._fault.strike()
            self._write(pipes.OUTCOMES, content)

    def _compute_on_loop(self, batch: Batch) -> None:
        """An ``async`` function: attempts side by side, and further batches of the superstep as they come."""
        import asyncio

        from gpu_pregel.host.agents.workers.event_loops import run_until_complete

        if self._runner is None:
            self._runner = asyncio.Runner()
        loop = self._runner.get_loop()
        ends = SystemExit, KeyboardInterrupt
        run_until_complete(loop, loop.create_task(self._serve_batches(batch)), *ends)

    async def _serve_batches(self, batch: Batch) -> None:
        import asyncio

        loop = asyncio.get_running_loop()
        marks = self._marks
        free = list(range(marks.slots))
        places = asyncio.Semaphore(self._job.max_concurrency)
        running: set[asyncio.Task[None]] = set()
        over = loop.create_future()

        async def one(serial: int, task: Task, batch: Batch) -> None:
            async with places:
                slot = free.pop()
                marks.serials[slot] = serial
                marks.begun[slot] = monotonic()
                _current.set(task)
                self._fault.at("computing")
                outcome = await self._executor.execute_async(task, batch)
                if os.getpid() != self._pid:
                    os._exit(0)
                marks.begun[slot] = 0.0
                for lines in self._lines:
                    lines.end(task)
                if not self._outcomes:
                    loop.call_later(_FLUSH_AFTER, self._flush)
                self._outcomes.append(outcome)
                self._serials.append(serial)
                marks.serials[slot] = 0
                free.append(slot)

        def ended(task: asyncio.Task[None]) -> None:
            running.discard(task)
            if not over.done() and (task.exception() is not None or not running):
                error = task.exception()
                over.set_result(None) if error is None else over.set_exception(error)

        def begin(batch: Batch) -> None:
            for task in batch.tasks:
                self._serial += 1
                attempt = loop.create_task(one(self._serial, Task(*task), batch))
                running.add(attempt)
                attempt.add_done_callback(ended)

        def read() -> None:
            self._read()
            if over.done():
                return  # what came waits for its turn
            for frame in [frame for frame in self._waiting if frame[0] == pipes.BATCH]:
                self._waiting.remove(frame)
                begin(pipes.unpack_batch(frame[1]))
            if any(kind == pipes.END for kind, _ in self._waiting):
                over.set_exception(SystemExit())

        begin(batch)
        loop.add_reader(self._channel, read)
        try:
            await over
        finally:
            loop.remove_reader(self._channel)


class _Fault:
    """Where a test wants this worker to die."""

    def __init__(self, place: str = "", count: int = 0, path: str = "", how: str = "kill") -> None:
        self.place, self._left, self._path = place, count, path
        self._signal = signal.SIGSTOP if how == "stop" else signal.SIGKILL

    @classmethod
    def of(cls, text: str | None) -> _Fault:
        if not text:
            return cls()
        place, count, *rest = text.split(":")
        return cls(place, int(count), *rest)

    def is_now(self, place: str) -> bool:
        if place != self.place:
            return False
        self._left -= 1
        if self._left:
            return False
        try:
            os.close(os.open(self._path, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

    def at(self, place: str) -> None:
        if self.is_now(place):
            self.strike()

    def strike(self) -> None:
        os.kill(os.getpid(), self._signal)


if __name__ == "__main__":
    main(sys.argv[1:])
