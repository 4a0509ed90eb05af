"""Tests of kernels on threads: each item is visited once; errors, Ctrl-C, forks and progress."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import textwrap
import threading
import time
from typing import Any

import numpy as np
import pytest

from gpu_pregel.errors import ArgumentError, ArgumentTypeError
from gpu_pregel.host.devices.threads import _Outcome, _Pool, _wait, available_threads, parallel, thread_count
from gpu_pregel.kernels.library.atomics_cpu import fetch_and_add
from gpu_pregel.kernels.library.jit_cpu import inline
from gpu_pregel.kernels.library.work_cpu import CHUNK, NEXT, WORK_LENGTH, claim


@inline
def visit(work: Any, visits: Any, started: Any, chunks: Any) -> None:
    number = fetch_and_add(started, 0, 1)
    first, last = claim(work)
    while first < last:
        for i in range(first, last):
            visits[i] += 1
        fetch_and_add(chunks, number, 1)
        first, last = claim(work)


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 1000])
@pytest.mark.parametrize("chunk", [1, 64, 5000])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_item_is_visited_once(size: int, chunk: int, threads: int) -> None:
    visits = np.zeros(size, np.int64)
    chunks = np.zeros(threads, np.int64)
    parallel(visit, size, chunk, visits, np.zeros(1, np.int64), chunks, threads=threads)
    assert (visits == 1).all()
    assert chunks.sum() == -(-size // chunk)


def test_regions_of_several_python_threads_are_independent() -> None:
    totals: dict[int, int] = {}

    def run(number: int) -> None:
        visits = np.zeros(10_000, np.int64)
        for _ in range(20):
            parallel(visit, len(visits), 64, visits, np.zeros(1, np.int64), np.zeros(3, np.int64), threads=3)
        totals[number] = int(visits.min() + visits.max())

    callers = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert totals == dict.fromkeys(range(4), 40)


def test_an_error_in_a_kernel_is_raised_and_the_next_region_works() -> None:
    def fail(work: Any, seen: list[int]) -> None:
        seen.append(threading.get_ident())
        raise ZeroDivisionError("planted")

    with pytest.raises(ZeroDivisionError, match="planted"):
        parallel(fail, 100, 1, [], threads=3)
    visits = np.zeros(100, np.int64)
    parallel(visit, 100, 1, visits, np.zeros(1, np.int64), np.zeros(3, np.int64), threads=3)
    assert (visits == 1).all()


def test_an_error_stops_the_other_workers_at_their_next_chunk() -> None:
    begun = threading.Event()

    def worker(work: Any) -> None:
        if not begun.is_set():
            begun.set()
            raise ValueError("planted")
        while work[NEXT] < 1 << 40:
            time.sleep(0.001)

    with pytest.raises(ValueError, match="planted"):
        parallel(worker, 100, 1, threads=2)


def test_the_last_tick_reports_the_total_size() -> None:
    ticks: list[tuple[int, int]] = []

    def slow(work: Any) -> None:
        while work[NEXT] < 100:
            work[NEXT] += work[CHUNK]
            time.sleep(0.02)

    parallel(slow, 100, 10, threads=1, tick=lambda done, size: ticks.append((done, size)))
    assert ticks[-1] == (100, 100)
    assert ticks == sorted(ticks)
    assert len(ticks) > 1


def test_arguments_are_released_after_a_region() -> None:
    import gc
    import weakref

    class Argument:
        pass

    argument = Argument()
    watcher = weakref.ref(argument)
    parallel(lambda work, held: None, 10, 1, argument, threads=2)
    del argument
    for _ in range(200):
        gc.collect()
        if watcher() is None:
            return
        time.sleep(0.01)
    pytest.fail("an idle thread keeps the arguments of its last region alive")


def test_a_forked_child_has_its_own_threads() -> None:
    program = """
        import os, warnings
        import numpy as np
        import gpu_pregel as gp
        graph = gp.kronecker(12)
        before = gp.connected_components(graph, threads=2).labels
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns about forks of multithreaded processes
        child = os.fork()
        if child == 0:
            after = gp.connected_components(gp.kronecker(12), threads=2).labels
            os._exit(0 if np.array_equal(before, after) else 1)
        raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    assert subprocess.run([sys.executable, "-c", textwrap.dedent(program)], timeout=120).returncode == 0


def test_ctrl_c_is_honoured_between_chunks() -> None:
    program = """
        import signal
        import numpy as np
        from gpu_pregel.host.devices.threads import parallel
        from gpu_pregel.kernels.library.jit_cpu import inline
        from gpu_pregel.kernels.library.work_cpu import claim

        # Shells start background processes with SIGINT ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)

        @inline
        def long(work, beat):
            first, last = claim(work)
            while first < last:
                for i in range(20_000_000):
                    beat[0] += i ^ beat[0]
                first, last = claim(work)

        beat = np.zeros(8, np.int64)
        parallel(long, 2, 1, beat, threads=1)
        print("ready", flush=True)
        try:
            parallel(long, 1 << 40, 1, beat, threads=2)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.3)
    os.kill(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert output == "interrupted\n"
    assert process.returncode == 0


def test_ctrl_c_before_a_finished_worker_is_counted() -> None:
    class InterruptedOnce(queue.SimpleQueue):  # type: ignore[type-arg]
        interrupted = False

        def get(self, block: bool = True, timeout: float | None = None) -> Any:
            token = super().get(block, timeout)
            if not self.interrupted:
                self.interrupted = True
                raise KeyboardInterrupt
            return token

    outcomes = [_Outcome(None, 0.0)]
    done = InterruptedOnce()
    done.put(None)
    work = np.zeros(WORK_LENGTH, np.int64)

    def end() -> None:
        outcomes.append(_Outcome(None, 0.0))
        done.put(None)

    waiting = threading.Timer(0.2, end)
    waiting.start()
    with pytest.raises(KeyboardInterrupt):
        _wait(outcomes, done, 2, [work], None)
    waiting.join()
    assert len(outcomes) == 2
    assert work[NEXT] > 10


def test_ctrl_c_in_a_tick_waits_for_the_workers() -> None:
    ended: list[bool] = []

    def slow(work: Any) -> None:
        while work[NEXT] < 1 << 40:
            time.sleep(0.01)
        ended.append(True)

    def tick(done: int, size: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        parallel(slow, 100, 10, threads=2, tick=tick)
    assert ended == [True, True]


def test_a_second_interrupt_leaves_the_threads_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = _Pool()
    monkeypatch.setattr("gpu_pregel.host.devices.threads._pool", pool)
    release, held, left = threading.Event(), np.zeros(3), list[threading.Thread]()
    started: queue.SimpleQueue[threading.Thread] = queue.SimpleQueue()

    def endless(work: Any, array: Any) -> None:
        started.put(threading.current_thread())
        left.append(threading.current_thread())
        release.wait(60)
        array += 1

    monkeypatch.setattr(
        "gpu_pregel.host.devices.threads._wait",
        lambda outcomes, done, *rest: _wait(outcomes, InterruptedTwice(started), *rest),
    )
    with pytest.raises(KeyboardInterrupt) as caught:
        parallel(endless, 100, 50, held, threads=2)
    monkeypatch.undo()
    monkeypatch.setattr("gpu_pregel.host.devices.threads._pool", pool)
    (note,) = caught.value.__notes__
    assert note.startswith("a kernel is still running on 2 threads and may write to its arrays")
    assert not pool.lock.locked()
    visits = np.zeros(100, np.int64)
    parallel(visit, 100, 1, visits, np.zeros(1, np.int64), np.zeros(3, np.int64), threads=2)
    assert (visits == 1).all()
    release.set()
    for one in left:
        one.join(60)
        assert not one.is_alive()
    assert held.tolist() == [2, 2, 2]


class InterruptedTwice:
    """The queue of finished threads, in which Ctrl-C is pressed twice once two threads have started."""

    def __init__(self, started: Any) -> None:
        self._started = started

    def get(self, timeout: float | None = None) -> None:
        assert timeout is None
        self._started.get(timeout=60)
        raise KeyboardInterrupt


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2", True, 100_000])
def test_an_invalid_number_of_threads_raises(threads: Any) -> None:
    is_integer = type(threads) is int
    message = "threads must be from 1 to 4,096, not" if is_integer else "threads must be a whole number, not"
    with pytest.raises(ArgumentError if is_integer else ArgumentTypeError, match=message):
        thread_count(threads)


def test_the_default_is_the_number_of_available_processors() -> None:
    assert thread_count(None) == available_threads() == len(os.sched_getaffinity(0))
    assert thread_count(3) == 3
