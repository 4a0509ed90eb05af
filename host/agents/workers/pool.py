"""The pool of worker processes: starts, monitors and replaces them, and exchanges frames with them."""

from __future__ import annotations

import contextlib
import os
import selectors
import sys
import threading
import time
import weakref
from collections.abc import Callable, Collection, Sequence

from gpu_pregel.errors import AgentError, ArgumentError
from gpu_pregel.host.agents.codec import places_of_keys, registered
from gpu_pregel.host.agents.emissions import Emission
from gpu_pregel.host.agents.partition_options import PartitionOptions
from gpu_pregel.host.agents.records import NO_CHANGE, Batch, Change, Failure, Id, Outcome, VertexData
from gpu_pregel.host.agents.workers import pipes
from gpu_pregel.host.agents.workers.output import levels
from gpu_pregel.host.agents.workers.process import LAST_SECONDS, Watchdog, WorkerProcess, refused
from gpu_pregel.host.agents.workers.timeouts import Timeouts
from gpu_pregel.host.agents.workers.transport import (
    Arrival,
    OutcomeBatch,
    Progress,
    ReturnedTasks,
    WorkerDeath,
    run_ended_error,
)
from gpu_pregel.kernels.library.interrupts import deferred_interrupts

_GRACE = 1.0
"""Seconds that a cancelled attempt of an ``async`` function has to end."""
_SILENCE = 2.0
"""Seconds beyond a timeout after which a worker that has tasks, but has started none, counts as hung."""
_START = 60.0
"""Seconds of silence after which a worker that is not ready counts as hung."""
_MAX_WAIT = 3600.0
_FEW = 100
"""Maximum number of records that a worker need not apply while the master prepares the next superstep."""
_LASTING = 10.0
"""Seconds after which the death of an idle worker is no fault of the program that it has loaded; SIGKILL never is."""
_FRUITLESS = 3
"""Maximum number of successive workers of a partition that may die without an outcome."""


class WorkerPool:
    """The transport to worker processes, each with one partition; see ``Transport``."""

    is_local, is_concurrent, blocks = False, True, False

    def __init__(self, options: PartitionOptions, count: int) -> None:
        self.partitions = count
        self._options, self._timeouts = options, Timeouts(options)
        self._is_async = {name: options.is_async(name) for name in options.functions}
        self._slots = options.max_concurrency if any(self._is_async.values()) else 1
        self._hello = _hello(options, self._slots, recalls=count > 1)
        self._step: int | None = None
        """The superstep before which the committed vertices are; None until the first batch or commit."""
        self._processes: list[WorkerProcess] = []
        self._fruitless = [0] * count
        self._vacant: list[int] = []
        self._arrivals: list[Arrival] = []
        self._selector = selectors.DefaultSelector()
        self._watchdog = Watchdog()
        self._caller = [threading.get_ident()]
        """The thread that has used the pool last."""
        self._close = weakref.finalize(
            self, _end_all, self._processes, self._selector, self._watchdog, os.getpid(), self._caller
        )

    def place(self, vertices: Collection[Id]) -> Sequence[int]:
        """Return the partition that owns each vertex."""
        return places_of_keys(vertices, self.partitions)

    def start(
        self,
        vertices: list[dict[Id, VertexData]],
        states: Callable[[int], dict[Id, VertexData]],
        emit: Callable[[Emission], None],  # noqa: ARG002
    ) -> None:
        """Start all workers in parallel, and wait until each has loaded its vertices."""
        self._states = states
        try:
            self._processes += [self._process(partition, 0) for partition in range(self.partitions)]
            for process, part in zip(self._processes, vertices, strict=True):
                process.greet(self._hello, None, part)
            while not all(process.is_ready for process in self._processes):
                self._poll(self._check_deadlines())
            self._watchdog.start()
        except BaseException:
            self.close()
            raise
        self._arrivals.clear()

    def submit(self, partition: int, batch: Batch) -> None:
        """Send a batch."""
        self._check_is_open()
        self._fill_vacancies()
        process = self._processes[partition]
        if process.is_finished:
            raise AgentError(f"worker {partition} has ended and was not replaced: {process.finish()}")
        if self._timeouts.is_function:
            self._timeouts.note(batch.tasks)
        process.tasks += batch.tasks
        process.outstanding += len(batch.tasks)
        process.is_async = self._is_async[batch.function]
        process.channel.touched = time.monotonic()
        process.next_check = 0.0
        self._step = batch.step
        process.channel.send(pipes.BATCH, pipes.pack_batch(process.generation, batch))

    def recall(self, partition: int, step: int, count: int) -> None:
        """Recall tasks; a worker that dies first answers with its death."""
        self._processes[partition].recall(step, count)

    def abort(self) -> None:
        """Kill the workers that have tasks; their deaths arrive, without running vertices."""
        for process in self._processes:
            if process.outstanding and not process.is_killed:
                self._fruitless[process.partition] = -1  # it is not to blame
                process.kill("the superstep was aborted", spare=True)

    def commit(self, partition: int, step: int, change: Change) -> None:
        """Send a change, a small one with the next batch.

        A worker that replaces a dead one starts from the committed state instead.
        """
        self._check_is_open()
        self._step = step + 1
        process = self._processes[partition]
        is_small = change is NO_CHANGE and process.uncommitted <= _FEW
        process.uncommitted = 0
        (process.channel.hold if is_small else process.channel.send)(pipes.COMMIT, pipes.pack_change(step, change))

    def wait(self, until: float | None) -> None:
        """Wait for arrivals; send queued frames and check deadlines meanwhile."""
        self._check_is_open()
        while not self._arrivals:
            self._poll(self._next_time(until))
            if until is not None and time.monotonic() >= until:
                break

    async def ready(self, until: float | None) -> None:
        """Wait until a descriptor is ready or a deadline has come, which ``take`` handles."""
        self._check_is_open()
        if not self._arrivals:
            from gpu_pregel.host.agents.workers.event_loops import wait_for_descriptor

            await wait_for_descriptor(self._selector.fileno(), self._next_time(until))

    async def cancel(self) -> None:
        """Cancel nothing: ``close`` ends the workers."""

    def take(self) -> list[Arrival]:
        """Return the arrivals since the last call."""
        if not self._arrivals:
            self._check_is_open()
            self._poll(self._next_time(0.0))
        arrivals = self._arrivals[:]
        self._arrivals.clear()
        return arrivals

    def finished(self) -> list[Outcome] | None:
        """Return None: attempts run in other processes."""

    def progress(self) -> Progress:
        """Return the attempts that have begun, as far as their workers say it, and the outcomes that have arrived."""
        begun = {attempt for process in self._processes[:] for attempt in process.begun()}
        batches = [event.outcomes for event in self._arrivals[:] if isinstance(event, OutcomeBatch)]
        return Progress(begun, [outcome for outcomes in batches for outcome in outcomes])

    def _next_time(self, until: float | None) -> float | None:
        """Check deadlines; return until when to wait, at most until a given time."""
        limit = self._check_deadlines()
        return until if limit is None or (until is not None and until < limit) else limit

    def close(self) -> None:
        """End all workers and their subprocesses."""
        self._close()

    def _check_is_open(self) -> None:
        if not self._close.alive:
            if _is_exiting():
                raise SystemExit  # ends a daemon thread silently
            raise run_ended_error()
        self._caller[0] = threading.get_ident()

    def _process(self, partition: int, generation: int) -> WorkerProcess:
        return WorkerProcess(partition, generation, self._slots, self._selector, self._watchdog)

    # Polling.

    def _poll(self, until: float | None) -> None:
        """Wait for descriptors and handle those that are ready."""
        self._fill_vacancies()
        seconds = None if until is None else min(max(0.0, until - time.monotonic()), _MAX_WAIT)
        dead = []
        ready = self._selector.select(seconds)
        self._check_is_open()
        with deferred_interrupts():
            for key, mask in ready:
                process, source = key.data
                if source == "channel":
                    if mask & selectors.EVENT_WRITE:
                        process.channel.send_rest()
                    if mask & selectors.EVENT_READ:
                        self._receive(process)
                elif source == "output":
                    process.read_output()
                elif source == "end":
                    dead.append(process)
        for process in dead:
            self._replace(process)

    def _receive(self, process: WorkerProcess) -> None:
        """Handle the frames that one read returns."""
        try:
            for kind, content in process.channel.read():
                if kind == pipes.OUTCOMES:
                    self._take(process, pipes.unpack_outcomes(content, process.tasks, process.served))
                elif kind == pipes.RETURNED:
                    self._take_back(process, pipes.unpack(content))
                elif kind == pipes.EMITTED:
                    self._arrivals.append(Emission(*pipes.unpack(content)))
                elif kind == pipes.READY:
                    process.is_ready, process.ready_since = True, time.monotonic()
                elif kind == pipes.LOG:
                    process.log(*pipes.unpack(content))
                elif kind == pipes.REFUSED:
                    raise refused(process.partition, *pipes.unpack(content))
                else:
                    raise pipes.BrokenFrameError(f"a frame of kind {kind}")
        except pipes.BrokenFrameError as error:
            process.channel.ignore()
            process.is_corrupt = True
            process.kill(f"it sent an invalid frame: {error}")
        if process.channel.reader.closed:
            process.channel.ignore()
            if not process.is_ending():
                process.kill("it closed its connection")

    def _take(self, process: WorkerProcess, outcomes: list[Outcome]) -> None:
        self._fruitless[process.partition] = 0
        process.answered.append(outcomes)
        process.uncommitted += len(outcomes)
        self._arrivals.append(OutcomeBatch(process.partition, process.generation, outcomes))
        process.settle(len(outcomes))

    def _take_back(self, process: WorkerProcess, serials: list[int]) -> None:
        vertices = [process.task(serial)[0] for serial in serials]
        process.returned.update(serials)
        process.settle(len(serials))
        self._arrivals.append(ReturnedTasks(process.partition, vertices))

    # Deadlines.

    def _check_deadlines(self) -> float | None:
        """Kill workers that do not start or whose attempts exceed the timeout; return when to check again."""
        now, shortest = time.monotonic(), self._timeouts.shortest
        times = []
        for process in self._processes:
            if process.is_finished:
                continue
            if not process.is_ready:
                times.append(process.channel.touched + _START)
                if times[-1] <= now:
                    process.kill(f"it was not ready after {_START:.0f} s of silence", spare=True)
            elif shortest is not None and process.outstanding:
                times.append(self._check_timeouts(process, now, shortest))
        return min(times, default=None)

    def _check_timeouts(self, process: WorkerProcess, now: float, shortest: float) -> float:
        if process.is_killed:
            return now + 1.0
        if now < process.next_check:
            return process.next_check
        since = 0.0
        if process.marks.is_emitting:  # while the master was busy, it may have waited for this
            self._receive(process)
            since = process.channel.touched
        grace = _GRACE if process.is_async else 0.0
        slots = [(serial, max(begun, since)) for serial, begun in process.marks.running() if begun]
        limits = [(serial, begun, self._limit(process, serial)) for serial, begun in slots]
        ends = [(serial, begun + seconds + grace) for serial, begun, seconds in limits if seconds is not None]
        process.late = {serial for serial, end in ends if end <= now}
        if process.late:
            process.kill(f"an attempt took more than {self._limit(process, min(process.late))} s", spare=True)
        elif not slots and now > process.channel.touched + shortest + _SILENCE:
            self._receive(process)  # it may have answered while the master was busy
            if process.channel.touched <= now:
                process.kill(f"it started none of its tasks within {shortest + _SILENCE} s", spare=True)
        # An attempt that begins now may have the shortest timeout, and so have all that run, if there is only one.
        process.next_check = min([now + shortest + grace, *(end for _, end in ends)])
        return process.next_check

    def _limit(self, process: WorkerProcess, serial: int) -> float | None:
        """Return the timeout of an attempt; only that of all vertices if the worker has altered its marks."""
        number = serial - process.served - 1
        return self._timeouts.of(process.tasks[number][0] if 0 <= number < len(process.tasks) else b"")

    # Deaths.

    def _replace(self, process: WorkerProcess) -> None:
        """Handle the end of a worker: read its last frames, report its death, and request a new worker."""
        process.end_group()
        process.channel.reader.empty = False
        while not (process.channel.reader.closed or process.channel.reader.empty or process.channel.is_broken):
            self._receive(process)
        partition = process.partition
        running = process.running()
        late = [serial for serial in running if serial in process.late]
        blamed = late if process.is_spared else running
        if len(late) == 1:
            blamed = []
            vertex, attempt = process.task(late[0])
            text = f"took more than {self._timeouts.of(vertex)} s; its worker was killed"
            failure = Failure("timeout", "TimeoutError", text, "", True)
            self._arrivals.append(
                OutcomeBatch(partition, process.generation, [Outcome(vertex, attempt, "failed", failure)])
            )
        is_idle = process.is_ready and not process.outstanding
        process.read_output(to_end=True)
        reason = process.finish()
        if running or (is_idle and time.monotonic() - process.ready_since >= _LASTING):
            self._fruitless[partition] = 0
        elif not (is_idle and process.is_killed_by_others):
            self._fruitless[partition] += 1
        if self._fruitless[partition] >= _FRUITLESS:
            raise AgentError(
                f"{_FRUITLESS} workers of partition {partition} in succession ended before computing a vertex; the "
                f"last one {reason}{process.last_output()}"
            )
        self._arrivals.append(
            WorkerDeath(partition, process.generation, [process.task(serial)[0] for serial in blamed], reason)
        )
        self._vacant.append(partition)

    def _fill_vacancies(self) -> None:
        """Replace workers that have ended, with the committed vertices."""
        while self._vacant:
            partition = self._vacant.pop()
            replacement = self._process(partition, self._processes[partition].generation + 1)
            self._processes[partition] = replacement
            replacement.greet(self._hello, self._step, self._states(partition))


def _hello(options: PartitionOptions, slots: int, *, recalls: bool) -> bytes:
    """Return the content of the first frame to a new worker."""
    from gpu_pregel.host.agents.workers.function_pickles import dump_function

    try:
        pickled = dump_function(options)
    except Exception:
        parts = {f"compute function {name!r}": function for name, function in options.functions.items()}
        for what, part in {
            **parts,
            "the combiner": options.combiner,
            "RetryPolicy's exceptions": options.retry,
        }.items():
            try:
                dump_function(part)
            except Exception as error:
                raise ArgumentError(
                    f"{what} cannot be sent to worker processes: {error}: create the objects that it refers to inside "
                    f"it, or pass workers=0"
                ) from error
        raise
    types = []
    for name, one in registered().items():
        with contextlib.suppress(Exception):  # data of this type will be refused
            types.append((name, dump_function(one)))
    return pipes.pack(
        {
            "options": pickled,
            "types": types,
            "path": [entry or os.getcwd() for entry in sys.path if isinstance(entry, str)],
            "argv": [str(argument) for argument in sys.argv],
            "environment": {"PYTHONPATH": os.environ.get("PYTHONPATH")},
            "levels": levels(),
            "slots": slots,
            "max_memory": options.max_memory,
            "recalls": recalls,
        }
    )


def _is_exiting() -> bool:
    """Whether the program ends: its main thread has, and only daemon threads are left."""
    return not threading.main_thread().is_alive()


def _end_all(
    processes: list[WorkerProcess],
    selector: selectors.BaseSelector,
    watchdog: Watchdog,
    owner: int,
    caller: list[int],
) -> None:
    """End workers and their subprocesses; idle workers may exit by themselves."""
    if os.getpid() != owner:
        return  # a fork of the master
    if _is_exiting() and caller[0] != threading.get_ident():
        # A daemon thread may be using the pool: close nothing. The watchdog ends the subprocesses.
        for process in processes[:]:
            process.kill("the program ended")
        return
    for process in processes:
        process.ask_to_end()
    until = time.monotonic() + LAST_SECONDS
    for process in processes:
        process.wait(until)
    for process in processes:
        process.read_output(to_end=True)
        process.finish()
    watchdog.close()
    processes.clear()
    selector.close()
