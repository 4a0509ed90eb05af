"""The parts that a superstep of agents adds to the journal, besides the records of completed attempts."""

from __future__ import annotations

from typing import NamedTuple

from gpu_pregel.host.agents.records import Failure, Id


class FailedAttempts(NamedTuple):
    """An attempt at a vertex has failed, the last of ``attempts`` so far; ``again``: whether another follows."""

    vertex: Id
    attempts: int
    failure: Failure
    again: bool


class Question(NamedTuple):
    """A vertex waits for an answer to its interrupt with this number."""

    vertex: Id
    attempts: int
    payload: bytes
    number: int


class Retry(NamedTuple):
    """A failed vertex receives a fresh set of attempts."""

    vertex: Id


class LaterMessage(NamedTuple):
    """A message from outside that arrived while the superstep was running or held, for the next superstep."""

    target: Id
    message: bytes


class EarlyMessage(NamedTuple):
    """A message from outside that arrived before the superstep began, for this superstep."""

    target: Id
    message: bytes


class ChangedOptions(NamedTuple):
    """The options of the run from this superstep on, encoded."""

    options: bytes


class WakeUp(NamedTuple):
    """The time of a vertex's timer has come before the superstep began."""

    vertex: Id


Part = FailedAttempts | Question | Retry | LaterMessage | EarlyMessage | ChangedOptions | WakeUp
