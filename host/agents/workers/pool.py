"""Partitions in worker processes, which the master starts, feeds, watches, ends and replaces without ever blocking."""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import sys
import time
import weakref
from collections.abc import Callable

from gpu_pregel.errors import AgentError, ArgumentError
from gpu_pregel.host.agents.codec import place_of_key, registered
from gpu_pregel.host.agents.records import Batch, Change, Failure, Id, Outcome, Vertex
from gpu_pregel.host.agents.workers import pipes
from gpu_pregel.host.agents.workers.executor import Job
from gpu_pregel.host.agents.workers.process import LAST_SECONDS, Guardian, Process
from gpu_pregel.host.agents.workers.transport import Death, Done, Event, ended

_GRACE = 1.0
"""Seconds that a cancelled attempt of an ``async`` function has to end."""
_SILENCE = 2.0
"""Seconds beyond a timeout after which a worker that should compute, and has begun nothing, is taken for hung."""
_START = 60.0
"""Seconds after which a worker that is not ready, and neither takes nor sends anything, is taken for hung."""
_LONGEST_WAIT = 3600.0
_FRUITLESS = 3
"""So many workers of a partition may die one after the other without having computed anything."""


class Workers:
    """A transport to worker processes, each with one partition; see ``Transport``."""

    is_local = blocks = False

    def __init__(self, job: Job, count: int) -> None:
        self.partitions = count
        self._job = job
        self._is_async = {name: job.is_async(name) for name in job.functions}
        self._slots = job.max_concurrency if any(self._is_async.values()) else 1
        self._hello = b""
        self._processes: list[Process] = []
        self._fruitless = [0] * count
        self._vacant: list[int] = []
        self._events: list[Event] = []
        self._selector = selectors.DefaultSelector()
        self._guardian = Guardian()
        self._close = weakref.finalize(self, _end_all, self._processes, self._selector, self._guardian, os.getpid())

    def place(self, vertex: Id) -> int:
        """The partition that owns a vertex."""
        return place_of_key(vertex, self.partitions)

    def start(self, vertices: list[dict[Id, Vertex]], states: Callable[[int], dict[Id, Vertex]]) -> None:
        """Start all workers side by side, and wait until each has its vertices."""
        self._states = states
        try:
            self._processes += [self._process(partition, 0) for partition in range(self.partitions)]
            self._hello = _hello(self._job, self._slots)
            for process, part in zip(self._processes, vertices, strict=True):
                process.greet(self._hello, part)
            while not all(process.is_ready for process in self._processes):
                self._turn(self._look_at_deadlines())
            self._guardian.start()
        except BaseException:
            self.close()
            raise
        self._events.clear()

    def submit(self, partition: int, batch: Batch) -> None:
        """Send a batch."""
        self._check_is_open()
        self._fill_vacancies()
        process = self._processes[partition]
        if process.is_finished:
            raise AgentError(f"worker {partition} is gone, and has no successor: {process.finish()}")
        process.tasks += batch.tasks
        process.outstanding += len(batch.tasks)
        process.is_async = self._is_async[batch.function]
        process.touched = time.monotonic()
        process.next_look = 0.0
        process.send(pipes.BATCH, pipes.pack_batch(batch))

    def commit(self, partition: int, step: int, change: Change) -> None:  # noqa: ARG002
        """Send what a commit changes; a worker that is gone learns of it from its successor's state."""
        self._check_is_open()
        self._processes[partition].send(pipes.COMMIT, pipes.pack_change(change))

    def kill(self, partition: int, reason: str) -> None:
        """End a worker's process group; its death is an event, and no vertex is charged with it."""
        self._check_is_open()
        self._processes[partition].kill(reason, spare=True)

    def wait(self, until: float | None) -> list[Event]:
        """Wait for events, and meanwhile send what is to be sent, and look at deadlines."""
        self._check_is_open()
        while not self._events:
            limit = self._look_at_deadlines()
            if until is not None and (limit is None or until < limit):
                limit = until
            self._turn(limit)
            if until is not None and time.monotonic() >= until:
                break
        events = self._events[:]
        self._events.clear()
        return events

    def close(self) -> None:
        """End all workers, and what they have started."""
        self._close()

    def _check_is_open(self) -> None:
        if not self._close.alive:
            raise ended()

    def _process(self, partition: int, generation: int) -> Process:
        return Process(partition, generation, self._slots, self._selector, self._guardian)

    # One turn.

    def _turn(self, until: float | None) -> None:
        """Wait until something is ready, and handle what is."""
        self._fill_vacancies()
        seconds = None if until is None else min(max(0.0, until - time.monotonic()), _LONGEST_WAIT)
        dead = []
        for key, mask in self._selector.select(seconds):
            process, what = key.data
            if what == "channel":
                if mask & selectors.EVENT_WRITE:
                    process.send_rest()
                if mask & selectors.EVENT_READ:
                    self._receive(process)
            elif what == "output":
                process.read_output()
            elif what == "end":
                dead.append(process)
        for process in dead:
            self._replace(process)

    def _receive(self, process: Process) -> None:
        """Read what a worker has sent, as far as one call gives it."""
        try:
            for kind, content in process.read():
                if kind == pipes.OUTCOMES:
                    self._take(process, pipes.unpack_outcomes(content, process.tasks, process.served))
                elif kind == pipes.READY:
                    process.is_ready = True
                elif kind == pipes.LOG:
                    process.log(*pipes.unpack(content))
                elif kind == pipes.REFUSED:
                    raise _refused(process.partition, *pipes.unpack(content))
                else:
                    raise pipes.BrokenFrameError(f"a frame of kind {kind}")
        except pipes.BrokenFrameError as error:
            process.ignore_channel()
            process.kill(f"what it sent cannot be read: {error}")
        if process.frames.closed:
            process.ignore_channel()
            if not process.is_ending():
                process.kill("it closed its connection")

    def _take(self, process: Process, outcomes: list[Outcome]) -> None:
        self._fruitless[process.partition] = 0
        process.answered.append(outcomes)
        process.outstanding -= len(outcomes)
        if not process.outstanding:
            process.served += len(process.tasks)
            process.tasks.clear()
            process.answered.clear()
        self._events.append(Done(process.partition, process.generation, outcomes))

    # Deadlines.

    def _look_at_deadlines(self) -> float | None:
        """End workers that do not start, and those whose attempts take too long; when to look again."""
        now, timeout = time.monotonic(), self._job.timeout
        looks = []
        for process in self._processes:
            if process.is_finished:
                continue
            if not process.is_ready:
                looks.append(process.touched + _START)
                if looks[-1] <= now:
                    process.kill(f"it was not ready, and nothing happened for {_START:.0f} s", spare=True)
            elif timeout is not None and process.outstanding:
                looks.append(self._look_at(process, now, timeout))
        return min(looks, default=None)

    def _look_at(self, process: Process, now: float, timeout: float) -> float:
        if process.is_killed:
            return now + 1.0
        if now < process.next_look:
            return process.next_look
        limit = timeout + (_GRACE if process.is_async else 0.0)
        slots = [(serial, begun) for serial, begun in process.marks.under_way() if begun]
        process.late = {serial for serial, begun in slots if begun + limit <= now}
        if process.late:
            process.kill(f"an attempt took more than {timeout} s", spare=True)
        elif not slots and now > process.touched + timeout + _SILENCE:
            self._receive(process)  # it may have answered while the master was elsewhere
            if process.touched <= now:
                process.kill(f"it had work, and began none in {timeout + _SILENCE} s", spare=True)
        process.next_look = min((begun for _, begun in slots), default=now) + limit
        return process.next_look

    # Deaths.

    def _replace(self, process: Process) -> None:
        """A worker has ended: take what it left, and tell of its death; the next one is started after that is told."""
        process.end_group()
        process.frames.empty = False
        while not (process.frames.closed or process.frames.empty or process.is_broken):
            self._receive(process)
        partition = process.partition
        under_way = process.under_way()
        late = [serial for serial in under_way if serial in process.late]
        blamed = late if process.is_spared else under_way
        if len(late) == 1:
            blamed = []
            vertex, attempt = process.task(late[0])
            text = f"took more than {self._job.timeout} s; its worker was ended"
            failure = Failure("timeout", "TimeoutError", text, "", True)
            self._events.append(Done(partition, process.generation, [Outcome(vertex, attempt, "failed", failure)]))
        if under_way:
            self._fruitless[partition] = 0
        else:
            self._fruitless[partition] += 1
        process.read_output(to_end=True)
        reason = process.finish()
        if self._fruitless[partition] >= _FRUITLESS:
            raise AgentError(
                f"{_FRUITLESS} workers of partition {partition} ended one after the other before they had computed a "
                f"vertex; the last: {reason}{process.last_words()}"
            )
        self._events.append(
            Death(partition, process.generation, [process.task(serial)[0] for serial in blamed], reason)
        )
        self._vacant.append(partition)

    def _fill_vacancies(self) -> None:
        """Start successors of workers that have ended, with the committed vertices."""
        while self._vacant:
            partition = self._vacant.pop()
            successor = self._process(partition, self._processes[partition].generation + 1)
            self._processes[partition] = successor
            successor.greet(self._hello, self._states(partition))


def _hello(job: Job, slots: int) -> bytes:
    """What a new worker is told first."""
    import cloudpickle

    try:
        pickled = cloudpickle.dumps(job)
    except Exception:
        parts = {f"compute function {name!r}": function for name, function in job.functions.items()}
        for what, part in {**parts, "the combiner": job.combine, "RetryPolicy's exceptions": job.retry}.items():
            try:
                cloudpickle.dumps(part)
            except Exception as error:
                raise ArgumentError(
                    f"{what} cannot be sent to worker processes: {error}: make what it refers to inside it, or pass "
                    f"workers=0"
                ) from error
        raise
    types = []
    for name, one in registered().items():
        with contextlib.suppress(Exception):  # refused where data are of it
            types.append((name, cloudpickle.dumps(one)))
    return pipes.pack(
        {
            "job": pickled,
            "types": types,
            "path": [entry or os.getcwd() for entry in sys.path if isinstance(entry, str)],
            "argv": [str(argument) for argument in sys.argv],
            "environment": {"PYTHONPATH": os.environ.get("PYTHONPATH")},
            "levels": _levels(),
            "slots": slots,
            "max_memory": job.max_memory,
        }
    )


def _refused(partition: int, why: str, missing: str | None) -> AgentError:
    """Why a worker cannot work, with the way out if it lacks a module that is there here."""
    module = sys.modules.get(missing) if missing else None
    if module is None:
        return AgentError(f"worker {partition} cannot work: {why}")
    file = getattr(module, "__file__", None)
    return AgentError(
        f"workers cannot import the module {missing!r}, of which they need a function or a class: "
        f"{f'put the folder of {file}' if file else 'put its folder'} on sys.path or PYTHONPATH under that name, "
        f"start its file as a program, or define what is needed in the script or inside a function"
    )


def _levels() -> dict[str, int]:
    """The levels of loggers here, so that workers pass on what somebody wants."""
    manager = logging.Logger.manager
    levels = {
        name: one.level for name, one in manager.loggerDict.items() if isinstance(one, logging.Logger) and one.level
    }
    return {"": logging.getLogger().level, **levels}


def _end_all(processes: list[Process], selector: selectors.BaseSelector, guardian: Guardian, owner: int) -> None:
    """End workers and what they have started: the idle ones by themselves, if they do so soon."""
    if os.getpid() != owner:
        return  # a fork of the master
    for process in processes:
        process.ask_to_end()
    until = time.monotonic() + LAST_SECONDS
    for process in processes:
        process.wait(until)
    for process in processes:
        process.read_output(to_end=True)
        process.finish()
    guardian.close()
    processes.clear()
    selector.close()
