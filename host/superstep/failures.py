"""Errors of a device that fails in the middle of a computation: they say what is saved, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gpu_pregel.errors import DeviceError, NotEnoughMemoryError


def _nothing_is_saved() -> str:
    return "Nothing is saved: run again."


@contextmanager
def explaining_failures(explain: Callable[[], str] = _nothing_is_saved) -> Iterator[None]:
    """Add a line to the errors of a device, unless a computation within the context has added its own."""
    try:
        yield
    except (DeviceError, NotEnoughMemoryError) as error:
        if type(error.__cause__) is type(error):
            raise
        raise type(error)(f"{error}\n{explain()}") from error
