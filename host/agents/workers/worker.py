"""A worker process: computes one partition for a master at the other end of an inherited socket.

``python -m gpu_pregel.host.agents.workers.worker FD MARKS RECALLS MASTER`` with the descriptors of the socket, of the
shared marks and of the pipe of recalls, and the process id of the master. Modules that are slow to import are imported
when first needed.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from _thread import RLock
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING, Any

from gpu_pregel.errors import AgentError
from gpu_pregel.host.agents.codec import register
from gpu_pregel.host.agents.emissions import Emission, Emitter
from gpu_pregel.host.agents.partition_options import PartitionOptions
from gpu_pregel.host.agents.records import Batch, Id, Outcome, Task, VertexData
from gpu_pregel.host.agents.workers import pipes
from gpu_pregel.host.agents.workers.attempt_marks import AttemptMarks
from gpu_pregel.host.agents.workers.executor import Executor
from gpu_pregel.host.agents.workers.garbage_collection import collect_rarely, relaxed_gc
from gpu_pregel.host.agents.workers.outcome_sender import OutcomeSender
from gpu_pregel.host.agents.workers.output import MAX_LINE, AttemptOutput, current_attempt, describe
from gpu_pregel.host.agents.workers.recalls import Recalls
from gpu_pregel.host.agents.workers.subprocesses import Subprocesses
from gpu_pregel.host.agents.workers.watchdog import VARIABLE, kill_descendants

if TYPE_CHECKING:
    from gpu_pregel.host.agents.workers.attempt_loop import AttemptLoop

_PR_SET_PDEATHSIG = 1
_SWITCH_INTERVAL = 0.0005
"""Seconds after which a thread that computes lets the one that sends outcomes run."""


def main(arguments: list[str]) -> None:
    """Serve a master until it ends the worker, or ends itself."""
    *descriptors, master = map(int, arguments)
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with_master(master)
    worker = Worker(*descriptors)
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
    """Kill what this process has started, and its group."""
    kill_descendants(os.getpid())
    os.killpg(0, signal.SIGKILL)


class Worker:
    """Reads frames from the master, computes, and sends outcomes."""

    def __init__(self, channel: int, marks: int, recalls: int) -> None:
        self._channel = channel
        self._lock = RLock()
        self._logs: deque[bytes] = deque()
        self._pid = os.getpid()
        self._reader = pipes.FrameReader(channel)
        self._marks_fd, self._recalls_fd = marks, recalls
        self._recalls: Recalls | None = None
        self._has_subprocesses = False
        self._task: Any = None
        """The running task of an ordinary function."""
        self._loop: AttemptLoop | None = None
        self._frames: deque[tuple[int, bytes | bytearray]] = deque()
        self._vertices: dict[Id, VertexData] = {}

    def serve(self) -> None:
        """Handle frames one by one."""
        while True:
            kind, content = self._next()
            if kind == pipes.BATCH:
                self._compute(self._check(*pipes.unpack_batch(content)))
            elif kind == pipes.COMMIT:
                self._executor.commit(*pipes.unpack_change(content))
            elif kind == pipes.HELLO:
                self._prepare(content)
            elif kind == pipes.LOAD:
                self._load(content)
            elif kind == pipes.END:
                sys.exit()

    def _next(self) -> tuple[int, bytes | bytearray]:
        while not self._frames:
            self._read()
        return self._frames.popleft()

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
        self._marks = AttemptMarks(hello["slots"], self._marks_fd)
        Subprocesses(os.environ[VARIABLE], self._marks.note_subprocess, self._announce).watch()
        self._forward_logging(hello["levels"])
        sys.setswitchinterval(_SWITCH_INTERVAL)
        self._sender = OutcomeSender(self._write, self._marks)
        if hello["recalls"]:
            self._recalls = Recalls(self._recalls_fd, self._write, self._marks)
        if hello["max_memory"] is not None:
            import resource

            _, hard = resource.getrlimit(resource.RLIMIT_AS)
            resource.setrlimit(resource.RLIMIT_AS, (hello["max_memory"], hard))
        try:
            import pickle

            for name, data in hello["types"]:
                # Data of a type that cannot be loaded are refused; the run may have none.
                with suppress(Exception):
                    cls, migrate = pickle.loads(data)
                    register(cls, name, migrate=migrate)
            self._options: PartitionOptions = pickle.loads(hello["options"])
            self._executor = Executor(self._options)
            if self._options.is_observed:
                self._executor.emit_by(Emitter(self._emit))
        except BaseException:
            self._refuse("its compute functions cannot be unpickled")

    def _load(self, content: bytes | bytearray) -> None:
        """Load a frame of vertices; be ready after the last one."""
        try:
            with relaxed_gc(beside_users_code=False):
                self._generation, step, is_last, vertices = pipes.unpack_load(content)
                self._vertices |= vertices
            if not is_last:
                return
            self._executor.load(self._vertices, step)
            gc.freeze()  # these objects live as long as the process
            collect_rarely()
        except MemoryError:
            self._refuse("its vertices do not fit into memory")
        self._write(pipes.READY, b"")

    def _announce(self) -> None:
        """Name the attempt that starts a subprocess, so that the master can attribute its output."""
        if (task := self._task) is not None:
            self._output[0].announce(describe(task))
            self._has_subprocesses = True

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
        text = text[:MAX_LINE].encode("utf-8", "backslashreplace").decode()
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
        while self._logs and not self._is_writing() and self._lock.acquire(blocking=False):
            try:
                with suppress(IndexError):
                    pipes.write_whole(self._channel, pipes.LOG, self._logs.popleft())
            finally:
                self._lock.release()

    def _is_writing(self) -> bool:
        """Whether this thread is writing a frame."""
        return self._lock._is_owned()  # type: ignore[attr-defined, no-any-return]

    def _emit(self, emission: Emission) -> None:
        """Send an emission, which takes until the master reads; timeouts do not count this time."""
        if self._is_writing():
            raise RuntimeError("ctx.emit was called by code that the garbage collector ran while a frame was written")
        content = pipes.pack(tuple(emission))
        begun, self._marks.is_emitting = monotonic(), True
        try:
            with self._lock:
                pipes.write_whole(self._channel, pipes.EMITTED, content)
        finally:
            self._executor.excuse(begun)
            self._marks.excuse(begun)
            self._marks.is_emitting = False
        if self._logs:
            self._write_logs()

    # Batches.

    def _check(self, generation: int, batch: Batch) -> Batch:
        """Return a batch; exit if it is not the next one, so that another worker begins with the committed state."""
        try:
            if generation != self._generation:
                raise AgentError(f"a batch for worker {generation} of this partition came to worker {self._generation}")
            self._executor.check_step(batch.step)
        except AgentError as error:
            print(error, file=sys.stderr)
            os._exit(1)
        return batch

    def _compute(self, batch: Batch) -> None:
        if self._executor.is_async(batch):
            self._compute_on_loop(batch)
        else:
            self._compute_in_order(batch)
        self._end_output()

    def _end_output(self) -> None:
        """Write incomplete lines, because their attempts have ended."""
        for output in self._output:
            output.end_all()
        if self._has_subprocesses:
            self._has_subprocesses = False
            self._output[0].announce("")

    def _end_line(self, task: Task) -> None:
        for output in self._output:
            output.end(task)

    def attempt(self) -> Any:
        """Return the task whose code is running."""
        return self._task or current_attempt.get()

    def _compute_in_order(self, batch: Batch) -> None:
        """Compute a batch of an ordinary function; one mark names the latest attempt until its outcome is written."""
        marks, output, sender = self._marks.serials, self._output, self._sender
        begun, serial, tasks = self._marks.begun, sender.serial, batch.tasks
        outcomes = sender.outcomes
        recalls = self._recalls
        if recalls is not None:
            recalls.begin_in_order(batch.step, serial, len(tasks))

        def begin(index: int) -> bool:
            now = monotonic()
            if now >= sender.due and outcomes:
                sender.before_next(now)
                now = monotonic()
            marks[0] = serial + index + 1
            begun[0] = now
            if recalls is not None and index >= recalls.limit and recalls.is_returned(index):
                return True
            self._task = tasks[index]
            return False

        def emit(outcome: Outcome) -> None:
            begun[0] = 0.0
            if not outcomes:
                sender.oldest = monotonic()
            outcomes.append(outcome)
            if output[0].begun or output[1].begun or self._has_subprocesses:
                self._end_output()

        def beat() -> None:
            begun[0] = monotonic()

        self._executor.execute(batch, emit, begin, beat)
        self._task = None
        if recalls is not None:
            recalls.end()
        sender.flush()
        sender.serial = serial + len(tasks)
        self._marks.latest = marks[0]
        marks[0] = 0

    def _compute_on_loop(self, batch: Batch) -> None:
        """Compute a batch of an ``async`` function, concurrently with batches that arrive meanwhile."""
        if self._loop is None:
            from gpu_pregel.host.agents.workers.attempt_loop import AttemptLoop

            self._loop = AttemptLoop(self._executor, self._marks, self._sender, self._end_line, self._recalls)
        self._loop.run(batch, self._channel, self._next_batches)

    def _next_batches(self) -> Iterator[Batch]:
        """Read what has arrived; yield the batches before any other frame, which must wait for all attempts."""
        self._read()
        while self._frames and self._frames[0][0] == pipes.BATCH:
            yield self._check(*pipes.unpack_batch(self._frames.popleft()[1]))


if __name__ == "__main__":
    main(sys.argv[1:])
