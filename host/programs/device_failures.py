"""What the error of a device that fails in the middle of a run says: what is saved, and how to continue."""

from __future__ import annotations

from typing import Any

from gpu_pregel.host.superstep.journal import Journal
from gpu_pregel.host.superstep.master import Master


def explain_failure(master: Master[Any, Any, Any], journal: Journal | None) -> str:
    """Return how far a run has come, what is saved, and how to continue."""
    finished = f"{master.superstep:,} superstep{'s' * (master.superstep != 1)}"
    return f"The run had finished {finished}; {_what_is_saved(journal)}"


def _what_is_saved(journal: Journal | None) -> str:
    if journal is None:
        return "nothing is saved: with checkpoint= in gp.run, the next run can be resumed."
    if journal.head < 0:
        return "the first checkpoint had not been saved: run again with the same arguments and resume=True."
    return (
        f"the newest checkpoint holds supersteps 0 to {journal.head:,}: run again with the same arguments and "
        f"resume=True, on this device or another."
    )
