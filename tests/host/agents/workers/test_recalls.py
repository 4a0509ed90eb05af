"""Recalls of waiting tasks: each task is computed or returned, and never both."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

import pytest

from gpu_pregel.host.agents.workers import pipes
from gpu_pregel.host.agents.workers.attempt_marks import AttemptMarks
from gpu_pregel.host.agents.workers.recalls import Recalls, message


class Recaller:
    """Both ends of recalls in this process."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        self.marks = AttemptMarks(1)
        self.answers: SimpleQueue[list[int]] = SimpleQueue()
        self.recalls = Recalls(self.reader, self.answer, self.marks)

    def answer(self, kind: int, content: bytes) -> None:
        assert kind == pipes.RETURNED
        self.answers.put(pipes.unpack(content))

    def recall(self, step: int, count: int) -> None:
        os.write(self.writer, message.pack(step, count))

    def ask(self, step: int, count: int) -> list[int]:
        self.recall(step, count)
        return self.answers.get(timeout=200)


@pytest.fixture
def recaller() -> Iterator[Recaller]:
    made = Recaller()
    yield made
    os.close(made.writer)


@contextmanager
def frequent_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def test_the_last_tasks_that_have_not_begun_are_returned(recaller: Recaller) -> None:
    recalls, serials = recaller.recalls, recaller.marks.serials
    assert recaller.ask(3, 9) == []
    recalls.begin_in_order(3, 10, 6)
    serials[0] = 12  # the second task
    assert recaller.ask(3, 1) == [16]
    assert recaller.ask(2, 1) == []  # of another superstep
    assert recaller.ask(3, 9) == [13, 14, 15]
    assert recaller.ask(3, 9) == []
    assert [recalls.is_returned(index) for index in range(6)] == [False, False, True, True, True, True]
    recalls.begin_in_order(4, 16, 2)
    serials[0] = 0
    assert recaller.ask(4, 1) == [18]
    recalls.end()
    assert recaller.ask(4, 1) == []


def test_a_task_that_begins_during_a_recall_is_not_returned(recaller: Recaller) -> None:
    """The other thread is computing the last task by the time that its mark is read."""
    recalls = recaller.recalls

    class LateMark(list[int]):
        def __getitem__(self, index: Any) -> Any:
            stopped.append(recalls.limit <= 4)
            return 15

    stopped: list[bool] = []
    recaller.marks.serials = LateMark()  # type: ignore[assignment]
    recalls.begin_in_order(3, 10, 5)
    assert (recaller.ask(3, 2), stopped) == ([], [True])
    assert not recalls.is_returned(4)


def test_each_task_is_computed_or_returned(recaller: Recaller) -> None:
    """The thread that computes does what a worker does before each task, while recalls arrive at any time."""
    recalls, serials = recaller.recalls, recaller.marks.serials
    choose = random.Random(5)
    totals = [0, 0]
    with frequent_switches():
        for step in range(20_000):
            if min(totals) > 1000:
                break
            serial, count = 100 * step, 40
            times = [choose.randrange(count), choose.randrange(count), count]
            recalls.begin_in_order(step, serial, count)
            computed: list[int] = []
            for index in range(count):
                if index in times:
                    recaller.recall(step, choose.randrange(1, count))
                    times.remove(index)
                serials[0] = serial + index + 1
                if index >= recalls.limit and recalls.is_returned(index):
                    break
                computed.append(serials[0])
                sum(range(30))
            recalls.end()
            for _ in times:
                recaller.recall(step, 1)
            returned = [one for _ in range(3) for one in recaller.answers.get(timeout=200)]
            assert sorted(computed + returned) == list(range(serial + 1, serial + 1 + count))
            totals[0] += len(computed)
            totals[1] += len(returned)
    assert min(totals) > 1000
