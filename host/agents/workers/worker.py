"""A worker process: computes one partition for a master at the other end of an inherited socket.

``python -m gpu_pregel.host.agents.workers.worker FD MARKS MASTER`` with the descriptors of the socket and of the shared
marks, and the process id of the master. Modules that are slow to import are imported when first needed.
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
from gpu_pregel.host.agents.partition_options import PartitionOptions
from gpu_pregel.host.agents.records import Batch, Outcome, Task
from gpu_pregel.host.agents.workers import pipes
from gpu_pregel.host.agents.workers.executor import Executor
from gpu_pregel.host.agents.workers.garbage_collection import collect_rarely
from gpu_pregel.host.agents.workers.output import AttemptOutput, describe

if TYPE_CHECKING:
    from asyncio import Runner

_FLUSH_AFTER = 0.001
"""Seconds after which an outcome is sent, even if its frame has room for more."""
_PR_SET_PDEATHSIG = 1

_current: ContextVar[Any] = ContextVar("current", default=None)
"""The task of an ``async`` function whose code is running."""


def main(arguments: list[str]) -> None:
    """Serve a master until it ends the worker, or ends itself."""
    channel, marks, master = map(int, arguments)
    os.set_inheritable(channel, False)
    os.set_inheritable(marks, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with_master(master)
    worker = Worker(channel, marks)
    worker.serve()


def _end_with_master(master: int) -> None:
    """End this process and its subprocesses when the master ends."""
    import ctypes

    def check(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        if os.getppid() != master:  # otherwise only the thread that started this process has ended
            _end_all()

    signal.signal(signal.SIGHUP, check)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGHUP)
    check(0, None)


def _end_all() -> None:
    """Kill this process group."""
    os.killpg(0, signal.SIGKILL)


class Worker:
    """Reads frames from the master, computes, and sends outcomes."""

    def __init__(self, channel: int, marks: int) -> None:
        self._channel = channel
        self._lock = allocate_lock()
        self._logs: deque[bytes] = deque()
        self._pid = os.getpid()
        self._reader = pipes.FrameReader(channel)
        self._marks_fd = marks
        self._outcomes: list[Outcome] = []
        self._oldest = 0.0
        self._has_subprocesses = self._in_order = False
        self._serial = 0
        """Serial number of the latest task: answered, for an ordinary function, or started, for an ``async`` one."""
        self._serials: list[int] = []
        self._task: Any = None
        """The running task of an ordinary function."""
        self._runner: Runner | None = None
        self._frames: list[tuple[int, bytes | bytearray]] = []

    def serve(self) -> None:
        """Handle frames one by one."""
        while True:
            kind, content = self._next()
            if kind == pipes.BATCH:
                self._compute(pipes.unpack_batch(content))
            elif kind == pipes.COMMIT:
                self._executor.commit(pipes.unpack_change(content))
            elif kind == pipes.HELLO:
                self._prepare(content)
            elif kind == pipes.LOAD:
                self._load(content)
            elif kind == pipes.END:
                sys.exit()

    def _next(self) -> tuple[int, bytes | bytearray]:
        while not self._frames:
            self._read()
        return self._frames.pop(0)

    def _read(self) -> None:
        self._frames += self._reader.read()
        if self._reader.closed:
            _end_all()

    # Before the first batch.

    def _prepare(self, content: bytes | bytearray) -> None:
        """Take over paths, environment, limits, functions and registered types of the master."""
        hello = pipes.unpack(content)
        sys.path[:] = hello["path"]
        sys.argv[:] = hello["argv"]
        for name, value in hello["environment"].items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self._output = AttemptOutput(1, self.attempt), AttemptOutput(2, self.attempt)
        sys.stdout, sys.stderr = self._output
        self._watch_subprocesses()
        self._forward_logging(hello["levels"])
        self._marks = pipes.AttemptMarks(hello["slots"], self._marks_fd)
        if hello["max_memory"] is not None:
            import resource

            _, hard = resource.getrlimit(resource.RLIMIT_AS)
            resource.setrlimit(resource.RLIMIT_AS, (hello["max_memory"], hard))
        try:
            import pickle

            for name, data in hello["types"]:
                # Data of a type that cannot be loaded are refused; the run may have none.
                with suppress(Exception):
                    register(pickle.loads(data), name)
            self._options: PartitionOptions = pickle.loads(hello["options"])
            self._executor = Executor(self._options, interruptible=False)
        except BaseException:
            self._refuse("its compute functions cannot be unpickled")

    def _load(self, content: bytes | bytearray) -> None:
        try:
            self._executor.load(pipes.unpack_vertices(pipes.unpack(content)))
            gc.freeze()  # these objects live as long as the process
            collect_rarely()
        except MemoryError:
            self._refuse("its vertices do not fit into memory")
        self._write(pipes.READY, b"")

    def _watch_subprocesses(self) -> None:
        """Name the attempt that starts a subprocess, so that the master can attribute its output."""
        import _posixsubprocess

        def watched(start: Callable[..., Any]) -> Callable[..., Any]:
            def call(*arguments: Any, **options: Any) -> Any:
                if (task := self._task) is not None:
                    self._output[0].announce(describe(task))
                    self._has_subprocesses = True
                return start(*arguments, **options)

            return call

        _posixsubprocess.fork_exec = watched(_posixsubprocess.fork_exec)
        os.posix_spawn = watched(os.posix_spawn)
        if "subprocess" in sys.modules:
            sys.modules["subprocess"]._fork_exec = _posixsubprocess.fork_exec  # type: ignore[attr-defined]

    def _refuse(self, problem: str) -> None:
        """Report why no worker can compute this partition, with the missing module, if any; exit."""
        import traceback

        error = sys.exc_info()[1]
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        self._write(pipes.REFUSED, pipes.pack((f"{problem}: {traceback.format_exc()}", missing)))
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
            print(text, file=sys.stderr)  # a fork must not write to the connection of its parent

    def _write(self, kind: int, content: bytes) -> None:
        with self._lock:
            pipes.write(self._channel, kind, content)
        if self._logs:
            self._write_logs()

    def _write_logs(self) -> None:
        """Send log records, unless a frame is being written: then its writer sends them afterwards.

        The writer may be this thread, when the garbage collector runs code that logs.
        """
        while self._logs and self._lock.acquire(blocking=False):
            try:
                with suppress(IndexError):
                    pipes.write(self._channel, pipes.LOG, self._logs.popleft())
            finally:
                self._lock.release()

    # Batches.

    def _compute(self, batch: Batch) -> None:
        self._in_order = not self._executor.is_async(batch)
        if not self._in_order:
            self._compute_on_loop(batch)
        else:
            self._compute_in_order(batch)
        self._flush()
        self._end_output()

    def _end_output(self) -> None:
        """Write incomplete lines, because their attempts have ended."""
        for output in self._output:
            output.end_all()
        if self._has_subprocesses:
            self._has_subprocesses = False
            self._output[0].announce("")

    def attempt(self) -> Any:
        """Return the task whose code is running."""
        return self._task or _current.get()

    def _compute_in_order(self, batch: Batch) -> None:
        """Compute a batch of an ordinary function; one mark names the latest attempt until its outcome is written."""
        marks, output = self._marks.serials, self._output
        begun, serial, tasks = self._marks.begun, self._serial, batch.tasks
        outcomes, flush = self._outcomes, self._flush
        pid, getpid = self._pid, os.getpid

        def begin(index: int) -> None:
            now = monotonic()
            if outcomes and now - self._oldest >= _FLUSH_AFTER:
                flush()
                now = monotonic()
            marks[0] = serial + index + 1
            begun[0] = now
            self._task = tasks[index]

        def emit(outcome: Outcome) -> None:
            if getpid() != pid:
                os._exit(0)  # a fork that returned from compute: its parent sends the outcome
            begun[0] = 0.0
            if not outcomes:
                self._oldest = monotonic()
            outcomes.append(outcome)
            if output[0].begun or output[1].begun or self._has_subprocesses:
                self._end_output()

        self._executor.execute(batch, emit, begin)
        self._task = None
        flush()
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
            self._write(pipes.OUTCOMES, content)

    def _compute_on_loop(self, batch: Batch) -> None:
        """Compute a batch of an ``async`` function, concurrently with batches that arrive meanwhile."""
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
        places = asyncio.Semaphore(self._options.max_concurrency)
        running: set[asyncio.Task[None]] = set()
        finished = loop.create_future()

        async def attempt(serial: int, task: Task, batch: Batch) -> None:
            async with places:
                slot = free.pop()
                marks.serials[slot] = serial
                marks.begun[slot] = monotonic()
                _current.set(task)
                outcome = await self._executor.execute_async(task, batch)
                if os.getpid() != self._pid:
                    os._exit(0)
                marks.begun[slot] = 0.0
                for output in self._output:
                    output.end(task)
                if not self._outcomes:
                    loop.call_later(_FLUSH_AFTER, self._flush)
                self._outcomes.append(outcome)
                self._serials.append(serial)
                marks.serials[slot] = 0
                free.append(slot)

        def on_end(task: asyncio.Task[None]) -> None:
            running.discard(task)
            if not finished.done() and (task.exception() is not None or not running):
                error = task.exception()
                finished.set_result(None) if error is None else finished.set_exception(error)

        def begin(batch: Batch) -> None:
            for task in batch.tasks:
                self._serial += 1
                started = loop.create_task(attempt(self._serial, Task(*task), batch))
                running.add(started)
                started.add_done_callback(on_end)

        def read() -> None:
            self._read()
            if finished.done():
                return  # serve() handles the frames
            for frame in [frame for frame in self._frames if frame[0] == pipes.BATCH]:
                self._frames.remove(frame)
                begin(pipes.unpack_batch(frame[1]))
            if any(kind == pipes.END for kind, _ in self._frames):
                finished.set_exception(SystemExit())

        begin(batch)
        loop.add_reader(self._channel, read)
        try:
            await finished
        finally:
            loop.remove_reader(self._channel)


if __name__ == "__main__":
    main(sys.argv[1:])
