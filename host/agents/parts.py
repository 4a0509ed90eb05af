"""What a superstep of agents contributes to the journal beside the records of completed attempts."""

from __future__ import annotations

from typing import NamedTuple

from gpu_pregel.host.agents.records import Failure, Id


class FailedAttempts(NamedTuple):
    """Attempts at a vertex failed, ``attempts`` so far; ``again`` says whether another follows."""

    vertex: Id
    attempts: int
    failure: Failure
    again: bool


class Question(NamedTuple):
    """A vertex is interrupted and waits for the answer of this number."""

    vertex: Id
    attempts: int
    payload: bytes
    number: int


class Retry(NamedTuple):
    """A failed vertex gets a fresh set of attempts."""

    vertex: Id


class LaterMessage(NamedTuple):
    """A message from outside that came while the superstep ran or was held: for the next superstep."""

    target: Id
    message: bytes


class EarlyMessage(NamedTuple):
    """A message from outside that came before the superstep began: for this superstep."""

    target: Id
    message: bytes


Part = FailedAttempts | Question | Retry | LaterMessage | EarlyMessage
