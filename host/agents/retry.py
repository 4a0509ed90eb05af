"""The retry policy of failed attempts."""

from __future__ import annotations

import random
from dataclasses import dataclass

from gpu_pregel.errors import ArgumentTypeError
from gpu_pregel.host.arguments import check_integer, check_number


@dataclass(frozen=True)
class RetryPolicy:
    """The number of attempts at a vertex in a superstep, and the waits between them.

    Parameters
    ----------
    attempts : int
        Maximum number of attempts, including the first.
    wait : float
        Seconds before the second attempt.
    factor : float
        Each further wait is this many times as long as the previous one.
    max_wait : float
        Maximum seconds of a wait.
    jitter : float
        Fraction of a wait, from 0 to 1, that is random, so that simultaneous failures are not retried simultaneously.
    exceptions : tuple of exception types
        Only these are retried. Timeouts and deaths of workers always are, data that cannot be encoded or read never,
        and an :class:`~gpu_pregel.errors.AttemptError` decides for itself. The default, ``(Exception,)``, leaves
        exits and cancellations out.

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
        check_integer("RetryPolicy's attempts", self.attempts, 1)
        check_number("RetryPolicy's wait", self.wait, 0)
        check_number("RetryPolicy's max_wait", self.max_wait, 0)
        check_number("RetryPolicy's factor", self.factor, 1)
        check_number("RetryPolicy's jitter", self.jitter, 0, 1)
        types = self.exceptions
        if not isinstance(types, (tuple, list)) or not all(
            isinstance(one, type) and issubclass(one, BaseException) for one in types
        ):
            raise ArgumentTypeError(f"RetryPolicy's exceptions must be a tuple of exception types, not {types!r}")

    def matches(self, error: BaseException) -> bool:
        """Whether an exception is retried."""
        return isinstance(error, (*self.exceptions, TimeoutError))

    def seconds_before(self, attempt: int) -> float:
        """Return a random wait before an attempt, from the second on."""
        try:
            longest = min(self.max_wait, self.wait * self.factor ** (attempt - 2))
        except OverflowError:
            longest = self.max_wait if self.wait else 0.0
        return longest * (1 - self.jitter * random.random())


DEFAULT_RETRY = RetryPolicy()
