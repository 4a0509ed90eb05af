"""Runs kernels on a pool of CPU threads.

A kernel is a compiled function that releases the GIL and claims its work in chunks
(``gpu_pregel.kernels.library.work_cpu``), so ordinary Python threads run it. Compared with Numba's parallel regions,
it compiles in a tenth of the time, survives a fork, and allows Ctrl-C and a progress bar while it runs.

Where there are several NUMA nodes, the items of a region are divided once more, as Gemini divides a partition: each
node has a share in proportion to its threads, with a ``work`` array of its own. A thread is bound to the processors of
its node, computes the share of the node, and then helps the others. It holds for the kernels of vertex programs and
operators; those of algorithms share one ``work``.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic_ns
from typing import Any, NamedTuple

import numpy as np

from gpu_pregel.host.arguments import check_integer
from gpu_pregel.host.devices.topology import NodeThreads, numa_nodes, threads_by_node
from gpu_pregel.kernels.library.compile_clock import add_compile_seconds, compile_seconds
from gpu_pregel.kernels.library.ranges_cpu import first_left, make_ranges
from gpu_pregel.kernels.library.work_cpu import CHUNK, NEXT, SIZE, WORK_LENGTH

Tick = Callable[[int, int], None]
"""Called periodically as ``tick(done, size)`` while a region runs."""

_EXHAUSTED = 1 << 62
_MAX_THREADS = 1 << 12
_TICK_SECONDS = 0.1
_FEW_ITEMS = 1 << 8
"""Up to this number of items, cheap work takes less time than waking the threads."""
_WAKING_NANOSECONDS = 100_000
"""How long the calling thread computes few items before it wakes the others."""


def available_threads() -> int:
    """Return the number of processors available to this process."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def thread_count(threads: int | None) -> int:
    """Return ``threads`` after a check, or the number of available processors if it is None."""
    if threads is None:
        return available_threads()
    return check_integer("threads", threads, 1, _MAX_THREADS)


class _Outcome(NamedTuple):
    """How a thread's part of a region ended: its error, and the time for which it compiled or loaded the kernel."""

    failure: BaseException | None
    compile_seconds: float


class _Pool:
    """Idle daemon threads, each of which waits on its own queue."""

    def __init__(self) -> None:
        self.queues: list[queue.SimpleQueue[Any]] = []
        self.lock = threading.Lock()
        self._started = 0

    def grow(self, size: int) -> None:
        """Start threads until there are ``size``."""
        while len(self.queues) < size:
            tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
            name = f"gpu_pregel-{self._started}"
            threading.Thread(target=_serve, args=(tasks,), name=name, daemon=True).start()
            self.queues.append(tasks)
            self._started += 1

    def leave_behind(self, count: int) -> None:
        """Replace the first ``count`` threads; each ends when its kernel does."""
        for tasks in self.queues[:count]:
            tasks.put(None)
        del self.queues[:count]


def _serve(tasks: queue.SimpleQueue[Any]) -> None:
    usual: Any = None
    bound: frozenset[int] | None = None
    while (task := tasks.get()) is not None:
        kernel, arguments, outcomes, done, works, processors = task
        failure: BaseException | None = None
        before = compile_seconds()
        try:
            if processors is not bound:
                usual = usual or os.sched_getaffinity(0)
                with suppress(OSError):
                    os.sched_setaffinity(0, processors or usual)
                bound = processors
            for work in works:
                kernel(work, *arguments)
        except BaseException as error:
            failure = error
        outcomes.append(_Outcome(failure, compile_seconds() - before))
        done.put(None)
        # An idle thread must not keep the last region's arrays alive.
        del task, kernel, arguments, outcomes, done, works, failure


_pool = _Pool()


def _reset_pool() -> None:
    global _pool
    _pool = _Pool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_pool)


def parallel(
    kernel: Callable[..., Any],
    size: int,
    chunk: int,
    *arguments: Any,
    threads: int,
    tick: Tick | None = None,
) -> None:
    """Run ``kernel(work, *arguments)`` on up to ``threads`` threads, which share ``size`` items in chunks.

    Returns when all items are done. If the kernel raises an exception or Ctrl-C is pressed, the other threads stop at
    their next chunk, and the exception is raised here. A second Ctrl-C does not wait for them: they keep their
    arguments, and end when the kernel does or with the process.

    A single chunk runs on the calling thread, unless the kernel may never return: handing it over takes 7 µs, and
    Python handles signals only between two calls of compiled code.
    """
    if size <= chunk and not getattr(kernel, "may_loop", False):
        kernel(_make_work(0, size, chunk), *arguments)
        return
    blocks = -(-size // chunk)
    workers = max(1, min(threads, blocks))
    nodes = [NodeThreads(workers, None)]
    if workers > 1 and getattr(kernel, "by_node", False):
        nodes = threads_by_node(workers, numa_nodes())
    works, before = [], 0
    for node in nodes:
        first, before = chunk * (blocks * before // workers), before + node.threads
        works.append(_make_work(first, min(size, chunk * (blocks * before // workers)), chunk))
    _run(kernel, works, arguments, nodes, tick)


def _make_work(first: int, size: int, chunk: int) -> Any:
    work = np.zeros(WORK_LENGTH, np.int64)
    work[NEXT], work[SIZE], work[CHUNK] = first, size, chunk
    return work


def parallel_ranges(kernel: Callable[..., Any], size: int, *arguments: Any, threads: int) -> None:
    """Run ``kernel(work, *arguments)`` over ``size`` items of unknown cost, as :func:`parallel` does.

    Each thread has a range of its own, those of a NUMA node side by side, and steals from others when it is done, first
    from those of its node; see ``gpu_pregel.kernels.library.ranges_cpu``. Few items are begun on the calling thread,
    and left to the others if they take longer than waking them.
    """
    first = 0
    if size <= _FEW_ITEMS and not getattr(kernel, "may_loop", False):
        work = make_ranges(0, size, 1, deadline=0 if size == 1 else monotonic_ns() + _WAKING_NANOSECONDS)
        kernel(work, *arguments)
        first = first_left(work)
        if first == size:
            return
    workers = min(threads, size - first)
    if not workers:
        return
    nodes, works, before = threads_by_node(workers, numa_nodes()), [], 0
    for node in nodes:
        begin, before = first + (size - first) * before // workers, before + node.threads
        end = first + (size - first) * before // workers
        works.append(make_ranges(begin, end, node.threads, helpers=workers - node.threads))
    _run(kernel, works, arguments, nodes, None)


def _run(
    kernel: Any, works: Sequence[Any], arguments: tuple[Any, ...], nodes: Sequence[NodeThreads], tick: Tick | None
) -> None:
    """Run a kernel on threads of the pool: those of each node begin with its element of ``works``."""
    outcomes: list[_Outcome] = []
    done: queue.SimpleQueue[None] = queue.SimpleQueue()
    tasks = [
        (kernel, arguments, outcomes, done, [*works[k:], *works[:k]], node.processors)
        for k, node in enumerate(nodes)
        for _ in range(node.threads)
    ]
    pool = _pool
    entered = False
    try:
        with pool.lock:
            entered = True
            _run_region(pool, tasks, works, outcomes, done, tick)
    except BaseException as error:
        if not entered:
            if pool is _pool:
                _reset_pool()
            error.add_note("another thread was running a kernel on these threads; the next kernel gets new ones")
        raise


def _run_region(
    pool: _Pool, tasks: Sequence[Any], works: Sequence[Any], outcomes: list[_Outcome], done: Any, tick: Tick | None
) -> None:
    """Run tasks on threads of the pool, whose lock is held."""
    workers = len(tasks)
    pool.grow(workers)
    try:
        for thread, task in zip(pool.queues, tasks, strict=False):
            thread.put(task)
        _wait(outcomes, done, workers, works, tick)
    except BaseException as error:
        left = workers - len(outcomes)
        if left:
            _stop(works)
            pool.leave_behind(workers)
            error.add_note(
                f"a kernel is still running on {left} thread{'s' * (left > 1)} and may write to its arrays; it "
                f"ends when its loop ends, or with the process"
            )
        raise
    finally:
        add_compile_seconds(sum(outcome.compile_seconds for outcome in outcomes))
        if pool is not _pool:  # it has been replaced meanwhile
            pool.leave_behind(len(pool.queues))


def _stop(works: Sequence[Any]) -> None:
    """Let no thread claim more."""
    for work in works:
        work[NEXT] = _EXHAUSTED


def _wait(outcomes: list[_Outcome], done: Any, workers: int, works: Sequence[Any], tick: Tick | None) -> None:
    """Wait for the workers of a region; on an exception, stop them, wait for them and raise the first exception.

    A second exception in this thread, such as that of a second Ctrl-C, is raised at once. ``done`` only wakes this
    thread. The number of finished workers is that of ``outcomes``, because Ctrl-C may interrupt after a token has been
    taken from ``done`` and before it has been counted.
    """
    failure: BaseException | None = None
    size = int(works[-1][SIZE])
    while len(outcomes) < workers:
        try:
            try:
                done.get(timeout=_TICK_SECONDS if tick and failure is None else None)
            except queue.Empty:
                assert tick is not None
                claimed = sum(min(int(work[NEXT]), int(work[SIZE])) for work in works)
                tick(claimed - sum(int(work[SIZE]) for work in works[:-1]), size)
        except BaseException as error:
            if failure is not None:
                raise
            failure = error
        failure = failure or next((outcome.failure for outcome in outcomes if outcome.failure is not None), None)
        if failure is not None:
            _stop(works)
    if failure is not None:
        raise failure
    if tick:
        tick(size, size)
