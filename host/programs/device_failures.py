"""What the error of a device that fails in the middle of a run says: what is saved, and how to continue."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gpu_pregel.errors import DeviceError, NotEnoughMemoryError
from gpu_pregel.host.superstep.journal import Journal
from gpu_pregel.host.superstep.master import Master


@contextmanager
def explaining_failures(master: Master[Any, Any, Any], journal: Journal | None) -> Iterator[None]:
    """Add what is saved, and what to do, to the errors of a device."""
    try:
        yield
    except (DeviceError, NotEnoughMemoryError) as error:
        finished = f"{master.superstep:,} superstep{'s' * (master.superstep != 1)}"
        raise type(error)(f"{error}\nThe run had finished {finished}; {_what_is_saved(journal)}") from error


def _what_is_saved(journal: Journal | None) -> str:
    if journal is None:
        return "nothing is saved: with checkpoint= in gp.run, the next run can be resumed."
    if journal.head < 0:
        return "the first checkpoint had not been saved: run again with the same arguments and resume=True."
    return (
        f"the newest checkpoint holds supersteps 0 to {journal.head:,}: run again with the same arguments and "
        f"resume=True, on this device or another."
    )
