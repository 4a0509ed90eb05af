"""The transport that computes ordinary functions on threads of this process, several attempts side by side."""

from __future__ import annotations

from _thread import allocate_lock
from collections import deque
from collections.abc import Callable
from contextvars import Context as Variables
from contextvars import copy_context
from functools import partial
from time import monotonic

from gpu_pregel.host.agents.context import Context
from gpu_pregel.host.agents.emissions import Emission
from gpu_pregel.host.agents.partition_options import PartitionOptions
from gpu_pregel.host.agents.records import Batch, Id, Outcome, TaskFields
from gpu_pregel.host.agents.workers.executor import SHORT
from gpu_pregel.host.agents.workers.thread_attempt import ThreadAttempt
from gpu_pregel.host.agents.workers.thread_pool import call_on_thread
from gpu_pregel.host.agents.workers.timeouts import Timeouts, too_late
from gpu_pregel.host.agents.workers.transport import (
    SLICE_SECONDS,
    Arrival,
    InProcessTransport,
    OutcomeBatch,
    Progress,
    run_ended_error,
)

_GROW_SECONDS = 0.0002
"""How long tasks wait for the threads that are computing before others join them. Several cheap tasks are then computed
by one thread, as each that joins takes as long as a few of them."""
_LISTEN = 0.1
"""Seconds after which the main thread looks for a signal that another thread has received while it waited."""
_MOST_KNOWN = 1 << 16
_QUICK = 0.001
"""Seconds for which an attempt may keep the thread of the master from its other duties."""


class ThreadTransport(InProcessTransport):
    """One partition, whose ordinary functions are computed on up to ``threads`` threads; the others as in process.

    If there is no timeout, the thread that calls ``wait`` computes a task that is alone and, beside the other threads,
    tasks of vertices whose last attempts were quick: passing them on would take longer.

    Parameters
    ----------
    options : PartitionOptions
    threads : int
    in_slices : bool
        As in process, for such tasks.
    quick : set of Id, optional
        Vertices whose last attempts were quick, in this run or others.
    """

    is_concurrent = True

    def __init__(
        self, options: PartitionOptions, threads: int, *, in_slices: bool = False, quick: set[Id] | None = None
    ) -> None:
        super().__init__(options, in_slices=in_slices)
        self._threads, self._timeouts = threads, Timeouts(options)
        self._tasks: deque[tuple[TaskFields, Batch, Variables]] = deque()
        """Tasks that wait for a thread, and the context variables that they see."""
        self._running: set[ThreadAttempt] = set()
        self._done: list[Outcome] = []
        """Outcomes of attempts on threads that have not been taken; only ever extended and cut."""
        self._taken = self._seen = 0
        """Numbers of outcomes that have been taken, and of all those when threads were last added."""
        self._serving = 0
        """Number of threads that compute tasks, or look for more; abandoned ones do not count."""
        self._lock = allocate_lock()
        """Held to change that number."""
        self._quick: set[Id] = set() if quick is None else quick
        if len(self._quick) > _MOST_KNOWN:
            self._quick.clear()
        """Vertices whose last attempts were quick."""
        self._own_task: TaskFields | None = None
        """The quick task that the master computes."""
        self._grow_at = 0.0
        self._is_emitting = self._is_computing = self._is_asleep = self._is_aborting = False
        """Whether an attempt waits for observers; whether the master computes; whether it waits for ``_called``;
        whether what was submitted is not to be computed."""
        self._called = allocate_lock()
        self._wake_loop: Callable[[], object] | None = None
        """Ends the waiting of ``ready``."""

    # On the thread of the master.

    @property
    def blocks(self) -> bool:
        """Whether the next ``wait`` computes all tasks, of an ordinary function without a timeout."""
        batches = self._batches
        if self._is_single():
            return True
        if len(batches) != 1 or self._running or self._tasks or self._executor.is_async(batches[0]):
            return False
        return self._quick.issuperset([task[0] for task in batches[0].tasks])

    def submit(self, partition: int, batch: Batch) -> None:
        """Keep a batch until ``wait``."""
        super().submit(partition, batch)
        self._is_aborting = False
        if self._timeouts.is_function:
            self._timeouts.note(batch.tasks)

    def _is_single(self) -> bool:
        """Whether there is one task of an ordinary function without a timeout, and nothing else."""
        batches = self._batches
        if len(batches) != 1 or len(batches[0].tasks) != 1 or self._running or self._tasks:
            return False
        if self._executor.is_async(batches[0]):
            return False
        return self._timeouts.shortest is None or self._timeouts.of(batches[0].tasks[0][0]) is None

    def _is_for_loop(self) -> bool:
        """Whether what is to be computed needs an event loop."""
        return bool(self._async_tasks) or bool(self._batches and self._executor.is_async(self._batches[0]))

    def wait(self, until: float | None) -> None:
        """Compute a single task or quick ones, or wait until an attempt has ended."""
        if self._is_single():  # first, as this has to be quick
            copy_context().run(self._compute)
            return
        if self._is_closed or self._is_for_loop():
            super().wait(until)
            return
        self._dispatch()
        if self._tasks and self._quick:
            self._compute_quick()
        try:
            while True:
                self._is_asleep = True  # from here on an attempt that ends releases the lock
                pause = self._pause(until)
                if pause == 0:
                    break
                self._called.acquire(timeout=_LISTEN if pause is None else min(pause, _LISTEN))
        finally:
            self._is_asleep = False

    async def ready(self, until: float | None) -> None:
        """Wait without blocking the running event loop."""
        if self._is_closed or self._is_for_loop():
            await super().ready(until)
            return
        import asyncio

        from gpu_pregel.host.agents.workers.event_loops import set_done, wait_for_future

        loop = asyncio.get_running_loop()
        self._dispatch()
        try:
            while True:
                waiter = loop.create_future()
                self._wake_loop = partial(loop.call_soon_threadsafe, set_done, waiter)
                pause = self._pause(until)
                if pause == 0:
                    break
                await wait_for_future(waiter, None if pause is None else monotonic() + pause)
        finally:
            self._wake_loop = None

    def take(self) -> list[Arrival]:
        """Return the outcomes since the last call."""
        arrivals = super().take()
        if self._done:
            done, count = self._done, len(self._done)
            arrivals.append(OutcomeBatch(0, 0, done[:count]))
            del done[:count]
            self._taken += count
        return arrivals

    def finished(self) -> list[Outcome] | None:
        """Return completed outcomes that ``take`` has not returned, or None if no attempt is running."""
        found, is_running = super().finished(), bool(self._tasks or self._running or self._is_computing)
        done = [outcome for outcome in self._done[:] if outcome.status == "completed"]
        return done + (found or []) if done or is_running else found

    def progress(self) -> Progress:
        """Return the attempts that are running, and the outcomes that ``take`` has not returned."""
        begun = {attempt.task[:2] for attempt in self._running.copy()}
        if (task := self._own_task) is not None:
            begun.add(task[:2])
        others = super().progress()
        return Progress(begun | others.begun, others.ended + self._done)

    def abort(self) -> None:
        """Drop the tasks that wait, and abandon attempts on threads."""
        self._is_aborting = True
        super().abort()
        while self._tasks:
            try:
                self._returned.append(self._tasks.popleft()[0][0])
            except IndexError:  # a thread has taken it
                break
        for attempt in self._running.copy():
            if self._abandon(attempt):
                self._returned.append(attempt.task.id)

    def _abandon(self, attempt: ThreadAttempt) -> bool:
        """Leave an attempt to its thread; return False if it has ended before."""
        if not attempt.abandon():
            return False
        self._running.discard(attempt)
        with self._lock:
            self._serving -= 1
        if attempt.context is not None:
            Context.close(attempt.context)  # an emission may wait for observers, but this must not
        return True

    def close(self) -> None:
        """Abandon all attempts and release the vertices."""
        self._is_closed = True
        self._tasks.clear()
        for attempt in self._running.copy():
            self._abandon(attempt)
        super().close()

    def _dispatch(self) -> None:
        """Let threads compute the submitted batches."""
        if not self._batches:
            return
        variables = copy_context()
        while self._batches:
            batch = self._batches[0]
            self._executor.check_step(batch.step)
            with self._lock:
                self._tasks.extend([(task, batch, variables) for task in batch.tasks])
                del self._batches[0]
        self._grow_at, self._seen = monotonic() + _GROW_SECONDS, self._taken + len(self._done)
        if not self._serving:
            self._start(1)

    def _compute_quick(self) -> None:
        """Compute tasks of vertices whose last attempts were quick, for a few milliseconds or until one has failed.

        If one takes long, other threads compute the rest.
        """
        tasks, done, quick, begun = self._tasks, self._done, self._quick, monotonic()
        self._is_computing, now = True, begun
        try:
            while tasks and now < begun + SLICE_SECONDS:
                try:
                    task, batch, variables = entry = tasks.popleft()
                except IndexError:  # another thread has taken it
                    break
                if task[0] not in quick:
                    tasks.appendleft(entry)
                    break
                self._own_task = task
                try:
                    variables.copy().run(self._executor.execute, batch, done.append, tasks=(task,))
                except BaseException:  # KeyboardInterrupt
                    tasks.appendleft(entry)
                    raise
                before, now = now, monotonic()
                self._note_time(task[0], now - before)
                if done and done[-1].status != "completed":
                    break
        finally:
            self._is_computing, self._own_task = False, None

    def _note_time(self, vertex: Id, seconds: float) -> None:
        if seconds > _QUICK or self._timeouts.of(vertex) is not None:
            self._quick.discard(vertex)
        else:
            self._quick.add(vertex)

    def _pause(self, until: float | None) -> float | None:
        """Return how long to wait, unless called: None without a limit, 0.0 if there is something to report."""
        now = monotonic()
        times = [] if until is None else [until]
        if self._timeouts.shortest is not None and not self._is_emitting:
            times += self._abandon_late(now)
        if self._tasks and self._serving < self._threads:
            if now >= self._grow_at:
                self._grow(now)
            times.append(self._grow_at)
        if self._done or self._returned or (until is not None and now >= until):
            return 0.0
        if times:
            return max(1e-6, min(times) - now)
        return None if self._running or self._tasks else 0.0

    def _grow(self, now: float) -> None:
        """Add threads: one for each task that waits or, if the present ones make progress, as many as there are."""
        ended = self._taken + len(self._done)
        count = min(len(self._tasks), self._threads - self._serving)
        if ended > self._seen:
            count = min(count, max(1, self._serving))
        self._start(count)
        self._grow_at, self._seen = now + _GROW_SECONDS, ended

    def _start(self, count: int) -> None:
        for _ in range(count):
            with self._lock:
                self._serving += 1
            try:
                call_on_thread(self._serve)
            except BaseException as error:
                with self._lock:
                    self._serving -= 1
                if isinstance(error, RuntimeError) and self._serving:  # no more threads: these have to do
                    return
                raise

    def _abandon_late(self, now: float) -> list[float]:
        """Fail the attempts whose time is over; return when that of the others is, also if they are about to begin."""
        ends = [] if self._timeouts.shortest is None else [now + self._timeouts.shortest]
        for attempt in self._running.copy():
            timeout = self._timeouts.of(attempt.task.id)
            if timeout is None:
                continue
            if now < attempt.last + timeout:
                ends.append(attempt.last + timeout)
            elif self._abandon(attempt):
                self._done.append(self._executor.abandon(attempt.task, attempt.context, too_late(timeout)))
        return ends

    # On other threads.

    def _serve(self) -> None:
        """Compute tasks until none waits."""
        tasks = self._tasks
        while True:
            try:
                task, batch, variables = tasks.popleft()
            except IndexError:
                with self._lock:
                    if tasks:
                        continue
                    self._serving -= 1
                return
            if tasks and self._is_computing and self._serving < self._threads:  # the master may take long to look
                self._start(1)
            attempt = ThreadAttempt(task)
            self._running.add(attempt)
            if self._is_aborting and self._abandon(attempt):
                self._returned.append(task[0])
                self._call()
                return
            if not self._is_closed:
                variables.copy().run(self._attempt, attempt, task, batch)
            if self._is_closed or attempt.is_abandoned:
                return

    def _attempt(self, attempt: ThreadAttempt, task: TaskFields, batch: Batch) -> None:
        outcomes: list[Outcome] = []
        begun = attempt.last
        try:
            self._executor.execute(batch, outcomes.append, watch=attempt, tasks=(task,))
        except BaseException as error:  # KeyboardInterrupt, which ends a batch on the master's thread
            if attempt.end():
                outcomes.append(self._fail(attempt, error))
        if not attempt.is_abandoned:
            self._note_time(task[0], monotonic() - begun)
            self._running.discard(attempt)
            self._done += outcomes
            self._call()

    def _fail(self, attempt: ThreadAttempt, error: BaseException) -> Outcome:
        """Return the outcome of an attempt whose exception left the executor."""
        if attempt.context is not None:
            attempt.context.close()
        try:
            return self._executor.fail(attempt.task, error)
        except BaseException as second:
            text = f"{type(error).__name__}, which cannot be described: {type(second).__name__}"
            return self._executor.fail(attempt.task, RuntimeError(text))

    def _call(self) -> None:
        """Call the master if it waits."""
        if self._is_asleep:
            self._is_asleep = False
            try:
                self._called.release()
            except RuntimeError:  # another thread has done so
                return
        elif (wake := self._wake_loop) is not None:
            self._wake_loop = None
            try:
                wake()
            except RuntimeError:  # the loop has ended
                return

    def _emit(self, emission: Emission) -> None:
        """Tell the observers; timeouts do not count the time that they take."""
        if self._is_closed:
            raise run_ended_error()
        if self._timeouts.shortest is None or self._async_tasks:
            super()._emit(emission)
            return
        begun, self._is_emitting = monotonic(), True
        try:
            super()._emit(emission)
        finally:
            now = monotonic()
            if now - begun > SHORT:
                for attempt in self._running.copy():
                    attempt.last = min(attempt.last + now - begun, now)
            self._is_emitting = False
            self._call()
