"""Which failed attempts are made again, how often and when."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from gpu_pregel.errors import ArgumentError, ArgumentTypeError


@dataclass(frozen=True)
class RetryPolicy:
    """How often a vertex is tried in a superstep.

    Parameters
    ----------
    attempts : int
        Attempts in all.
    wait : float
        Seconds before the second attempt.
    factor : float
        How many times longer each further wait is.
    max_wait : float
        No wait is longer.
    jitter : float
        Share of a wait, from 0 to 1, that is drawn at random, so that many failures do not come back at once.
    exceptions : tuple of exception types
        Only these are worth another attempt. Timeouts and deaths of workers always are.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> gp.agents.RetryPolicy(attempts=4, wait=0.5, jitter=0).seconds_before(3)
    1.0
    """

    attempts: int = 3
    wait: float = 0.1
    factor: float = 2.0
    max_wait: float = 60.0
    jitter: float = 0.5
    exceptions: tuple[type[BaseException], ...] = (Exception,)

    def __post_init__(self) -> None:
        if not isinstance(self.attempts, int) or isinstance(self.attempts, bool) or self.attempts < 1:
            raise ArgumentError(f"RetryPolicy's attempts must be a whole number from 1, not {self.attempts!r}")
        for name in ("wait", "max_wait", "factor", "jitter"):
            if not isinstance(getattr(self, name), (int, float)):
                raise ArgumentTypeError(f"RetryPolicy's {name} must be a number, not {getattr(self, name)!r}")
        for name in ("wait", "max_wait"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ArgumentError(f"RetryPolicy's {name} must be seconds from 0, not {getattr(self, name)!r}")
        if not 1 <= self.factor < math.inf:
            raise ArgumentError(f"RetryPolicy's factor must be at least 1, not {self.factor!r}")
        if not 0 <= self.jitter <= 1:
            raise ArgumentError(f"RetryPolicy's jitter must be from 0 to 1, not {self.jitter!r}")
        kinds = self.exceptions
        if not isinstance(kinds, (tuple, list)) or not all(
            isinstance(kind, type) and issubclass(kind, BaseException) for kind in kinds
        ):
            raise ArgumentTypeError(f"RetryPolicy's exceptions must be a tuple of exception types, not {kinds!r}")

    def matches(self, error: BaseException) -> bool:
        """Whether an exception is worth another attempt."""
        return isinstance(error, (*self.exceptions, TimeoutError))

    def seconds_before(self, attempt: int) -> float:
        """How long to wait before an attempt, from the second on."""
        try:
            longest = min(self.max_wait, self.wait * self.factor ** (attempt - 2))
        except OverflowError:
            longest = self.max_wait if self.wait else 0.0
        return longest * (1 - self.jitter * random.random())
