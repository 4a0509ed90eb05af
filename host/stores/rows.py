"""Runs, commits, answers and claims as a store returns them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

DURABILITIES = ("machine", "process")
MAX_SECONDS = 1_000_000
"""Leases and timeouts are shorter: longer ones would overflow dates and the clocks of databases."""
ENDED_STATUSES = ("completed", "partial", "halted", "max_supersteps", "cancelled")
"""The statuses of runs that nobody is expected to continue."""
STATUSES = (*ENDED_STATUSES, "running", "stopped", "waiting", "failed", "interrupted")
"""The statuses that agent runs and runs of vertex programs have."""
KINDS = ("agents", "numeric", "mixed")


class RunRow(NamedTuple):
    """A run.

    Attributes
    ----------
    id : str
    kind : {"agents", "numeric", "mixed"}
    branch : int
        Number of forks between this run and the original one.
    parent : (str, int) or None
        Run and superstep from which it was forked.
    head : int
        The last committed superstep; -1 before the first.
    epoch : int
        Number of claims so far.
    owner : str
        Owner of the latest claim.
    lease : float
        When that claim expires, in seconds since 1970; 0 if it was released.
    status : str
    created, changed : float
        Seconds since 1970.
    schema : int
        Version of the caller's formats of ``meta``, bases, commits and segments.
    meta : bytes or None
        None if it is encrypted but the store was opened without a cipher, or vice versa.
    """

    id: str
    kind: str
    branch: int
    parent: tuple[str, int] | None
    head: int
    epoch: int
    owner: str
    lease: float
    status: str
    created: float
    changed: float
    schema: int
    meta: bytes | None


class UnfinishedRun(NamedTuple):
    """A run that has not ended, or that has ended and was asked to continue.

    Attributes
    ----------
    id, status, head, epoch, owner, lease, changed
        As in ``RunRow``.
    pending : int
        Number of segments of superstep head + 1.
    answers : int
        Number of answers to interrupts of superstep head + 1.
    last_request : int or None
        Number of the last request.
    is_claimed : bool
        Whether a claim is valid.
    """

    id: str
    status: str
    head: int
    epoch: int
    pending: int
    owner: str
    lease: float
    changed: float
    answers: int
    last_request: int | None
    is_claimed: bool


class CommitRow(NamedTuple):
    """A commit in the history of a run.

    Attributes
    ----------
    step : int
    after : int
        The previously committed superstep.
    epoch : int
        Epoch of the claim that committed it.
    status : str
        Status of the run after the commit.
    time : float
        Seconds since 1970.
    segments, size : int
        Number of segments besides the data of the commit itself, and the bytes of both.
    base : bool
        Whether a base of this superstep is stored.
    """

    step: int
    after: int
    epoch: int
    status: str
    time: float
    segments: int
    size: int
    base: bool


class StoredAnswer(NamedTuple):
    """An answer to an interrupt of a vertex; ``number`` counts its interrupts in the superstep from 0."""

    vertex: bytes
    number: int
    data: bytes
    time: float


class StoredRequest(NamedTuple):
    """What another program asks of a run."""

    number: int
    data: bytes
    time: float


class StoredEvents(NamedTuple):
    """Events of a run that were recorded together; ``step`` is the last superstep among theirs."""

    number: int
    step: int
    data: bytes
    time: float


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to write to a run until another program claims it.

    Attributes
    ----------
    run_id : str
    epoch : int
    owner : str
    lease_seconds : float
        How long the claim is valid; each flush and commit renews it.
    durability : {"machine", "process"}
        What a transaction of this claim survives: a crash of the machine, or only one of the process.
    key : int
        Key of the run's rows; a run that is deleted and created again has a new key.
    """

    run_id: str
    epoch: int
    owner: str
    lease_seconds: float
    durability: str
    key: int


@dataclass(slots=True)
class WriteCounts:
    """Numbers of transactions committed, and of those that were forced to disk."""

    transactions: int = 0
    forced: int = 0
