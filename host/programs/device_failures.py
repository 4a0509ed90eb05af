"""What the error of a device that fails in the middle of a run says: what is saved, and how to continue."""

from __future__ import annotations

from typing import Any

from gpu_pregel.host.programs.checkpoints import CheckpointedRun
from gpu_pregel.host.superstep.master import Master


def explain_failure(master: Master[Any, Any, Any] | None, checkpoints: CheckpointedRun | None) -> str:
    """Return how far a run has come, what is saved, and how to continue.

    ``master`` is None until the run begins, ``checkpoints`` if it has none.
    """
    if master is None and checkpoints is None:
        return "The run had not begun."
    finished = "begun" if master is None else f"finished {master.superstep:,} superstep{'s' * (master.superstep != 1)}"
    return f"The run had {'not ' * (master is None)}{finished}; {_what_is_saved(checkpoints)}"


def _what_is_saved(checkpoints: CheckpointedRun | None) -> str:
    if checkpoints is None:
        return "nothing is saved: run again; a run of gp.run with checkpoint= can be resumed."
    if checkpoints.head < 0:
        return "the first checkpoint had not been saved: run again with the same arguments and resume=True."
    return (
        f"the newest checkpoint holds supersteps 0 to {checkpoints.head:,}: run again with the same arguments and "
        f"resume=True, on this device or another."
    )
