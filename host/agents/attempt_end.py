"""The end of an attempt: the exception that ends one early, and the errors of what comes later."""

from __future__ import annotations

from typing import Any, NoReturn


class AttemptInterrupt(BaseException):
    """Ends an attempt that needs an answer; not an ``Exception``, so that compute functions do not catch it."""

    def __init__(self, payload: bytes) -> None:
        self.payload = payload
        super().__init__("waits for an answer")


class ClosedList(list[Any]):
    """Replaces the outbox and the requests of an attempt that has ended."""

    def append(self, _: Any) -> NoReturn:
        """Refuse."""
        raise RuntimeError(
            "the attempt has ended, so messages and requests of its context are lost: wait for threads and tasks "
            "before compute returns"
        )

    extend = append


CLOSED = ClosedList()


def emission_refused() -> RuntimeError:
    """Return the error for emissions after the end of their attempt."""
    return RuntimeError(
        "the attempt has ended, so emissions of its context are lost: wait for threads and tasks before compute returns"
    )
