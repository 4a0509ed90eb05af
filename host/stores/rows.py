"""What a store keeps of a run, as its callers see it, and the checks of what they pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from gpu_pregel.errors import ArgumentError, ArgumentTypeError

DURABILITIES = ("machine", "process")
KINDS = ("agents", "numeric")
_MAX_NAME = 200
_MAX_INTEGER = (1 << 63) - 1


class RunRow(NamedTuple):
    """A run.

    Attributes
    ----------
    id : str
    kind : {"agents", "numeric"}
    branch : int
        0, and one more with each fork.
    parent : (str, int) or None
        Run and superstep that it was forked from.
    head : int
        The last superstep committed; -1 before the first.
    epoch : int
        Raised by each claim; 0 before the first.
    owner : str
        Who claimed it last.
    lease : float
        When that claim ends, in seconds since 1970; 0 if it was released.
    status : str
    created, changed : float
        Seconds since 1970.
    schema : int
        Version of what the caller writes in ``meta``, bases, commits and segments.
    meta : bytes or None
        None if it is encrypted and the store was opened without a cipher, or the other way round.
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


class CommitRow(NamedTuple):
    """A commit, as a history lists it.

    Attributes
    ----------
    step : int
    after : int
        The superstep committed before it.
    epoch : int
        Of the claim under which it was committed.
    status : str
        Of the run, as the commit left it.
    time : float
        Seconds since 1970.
    segments, size : int
        How many segments it has beside what is in the commit itself, and how many bytes all of it takes.
    base : bool
        Whether there is a base of this superstep.
    """

    step: int
    after: int
    epoch: int
    status: str
    time: float
    segments: int
    size: int
    base: bool


class Answer(NamedTuple):
    """An answer to the interrupt ``number``, from 0, of a vertex."""

    vertex: bytes
    number: int
    data: bytes
    time: float


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to write to a run, until somebody else claims it.

    Attributes
    ----------
    run_id : str
    epoch : int
    owner : str
    lease_seconds : float
        How long the claim is good for after it was last renewed; each flush and commit renews it.
    durability : {"machine", "process"}
        What a transaction of this claim survives: the end of the machine, or that of the program.
    key : int
        Of the run's rows; a run that is deleted and created anew has another.
    """

    run_id: str
    epoch: int
    owner: str
    lease_seconds: float
    durability: str
    key: int


@dataclass(slots=True)
class Counts:
    """What a store wrote: transactions committed, and those of them that were forced to disk."""

    transactions: int = 0
    forced: int = 0


def check_text(name: str, value: object) -> str:
    """Return ``value``, a string of 1 to 200 printable characters."""
    if not isinstance(value, str):
        raise ArgumentTypeError(f"{name} must be a string, not {value!r:.80}")
    if not 0 < len(value) <= _MAX_NAME or not value.isprintable():
        raise ArgumentError(f"{name} must have from 1 to {_MAX_NAME} printable characters, not {value!r:.80}")
    return value


def check_integer(name: str, value: Any, low: int) -> int:
    """Return ``value``, an int of at least ``low`` that a database can hold."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ArgumentTypeError(f"{name} must be a whole number, not {value!r:.80}")
    if not low <= value <= _MAX_INTEGER:
        raise ArgumentError(f"{name} must be from {low:,} to {_MAX_INTEGER:,}, not {value:,}")
    return value


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> str:
    """Return ``value``, one of ``choices``."""
    if value not in choices:
        raise ArgumentError(f"{name} must be {' or '.join(map(repr, choices))}, not {value!r:.80}")
    return str(value)


def check_seconds(name: str, value: Any) -> float:
    """Return ``value``, a number of seconds above 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ArgumentTypeError(f"{name} must be a number, not {value!r:.80}")
    if not 0 < value < 1e6:
        raise ArgumentError(f"{name} must be a number of seconds above 0, not {value!r}")
    return float(value)
