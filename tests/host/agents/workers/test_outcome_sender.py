"""When the timer of a worker is set: outcomes are sent in time, and short supersteps hardly ever set it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_pregel.host.agents.records import Outcome
from gpu_pregel.host.agents.workers import outcome_sender
from gpu_pregel.host.agents.workers.attempt_marks import AttemptMarks
from gpu_pregel.host.agents.workers.outcome_sender import OutcomeSender

OUTCOME = Outcome(b"", 1, "interrupted", b"")
SECONDS = st.sampled_from([0.0, 1e-5, 1e-4, 3e-4, 5e-4, 8e-4, 0.0012, 0.002, 1.0])


class Machine:
    """A worker that computes ordinary functions, and its timer, on a clock that only attempts and pauses advance."""

    def __init__(self) -> None:
        self.now, self.call_at = 100.0, math.inf
        self.sets = self.calls = 0
        self.ages: list[float] = []
        """Ages of the oldest outcomes of each frame."""
        self._ended: list[float] = []
        """When the unsent attempts ended."""
        self._call: Callable[[], object] = list

    def make_timer(self, call: Callable[[], object]) -> Machine:
        self._call = call
        return self

    def set(self, seconds: float) -> None:
        self.call_at, self.sets = self.now + seconds, self.sets + 1

    def write(self, kind: int, content: bytes) -> None:
        self.ages.append(self.now - self._ended[0])
        self._ended.clear()

    def spend(self, seconds: float) -> None:
        """Let time pass, in which the timer may call."""
        until = self.now + seconds
        if self.call_at < until:
            self.now, self.call_at, self.calls = self.call_at, math.inf, self.calls + 1
            self._call()
        self.now = until

    def compute(self, sender: OutcomeSender, batch: list[float]) -> None:
        """Compute attempts that take these times, as a ``Worker`` does."""
        for seconds in batch:
            if self.now >= sender.due and sender.outcomes:
                sender.before_next(self.now)
            self.spend(seconds)
            if not sender.outcomes:
                sender.oldest = self.now
            sender.outcomes.append(OUTCOME)
            self._ended.append(self.now)
        sender.flush()


@contextmanager
def simulated() -> Iterator[tuple[Machine, OutcomeSender]]:
    machine, marks = Machine(), AttemptMarks(1)
    with patch.object(outcome_sender, "FlushTimer", machine.make_timer):
        yield machine, OutcomeSender(machine.write, marks)
    marks.close()


@given(st.lists(st.tuples(SECONDS, st.lists(SECONDS, min_size=1, max_size=6)), max_size=8))
def test_every_outcome_is_sent_in_time(supersteps: list[tuple[float, list[float]]]) -> None:
    with simulated() as (machine, sender):
        for pause, batch in supersteps:
            machine.spend(pause)
            machine.compute(sender, batch)
        assert max(machine.ages, default=0.0) < 0.0013
        assert not sender.outcomes


@pytest.mark.parametrize("pause", [0.0001, 0.0002, 0.00033])
def test_short_supersteps_set_the_timer_rarely_and_do_not_let_it_call(pause: float) -> None:
    with simulated() as (machine, sender):
        for _ in range(1000):
            machine.compute(sender, [0.00001] * 10)
            machine.spend(pause)
        assert machine.calls == 0
        assert 0 < machine.sets < (machine.now - 100) / 0.0007
        assert len(machine.ages) == 1000


def test_a_long_batch_is_sent_about_once_a_millisecond() -> None:
    with simulated() as (machine, sender):
        machine.compute(sender, [0.00001] * 10_000)
        assert machine.calls == 0
        assert 80 <= len(machine.ages) <= 120
