"""What a checkpoint has beside the snapshot of a state: aggregates, and what a program's ``master`` has decided."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpu_pregel.host.programs.master_step import Decision
from gpu_pregel.host.programs.policy import NumericChange
from gpu_pregel.host.programs.state import ProgramState

Array = np.ndarray[Any, Any]


def arrays_of_change(run: ProgramState, change: NumericChange) -> dict[str, Array]:
    """Return what a superstep commits beside the snapshot of its state, by name: aggregates, and the decision."""
    arrays = {f"total{k}": np.asarray(total).reshape(1) for k, total in enumerate(change.totals)}
    if run.has_master:
        halted, parameters = change.decision
        arrays |= {f"next{k}": np.asarray(value).reshape(1) for k, value in enumerate(parameters)}
        arrays["halted"] = np.array([halted])
    return arrays


def stored_decision(run: ProgramState, arrays: Mapping[str, Array]) -> Decision | None:
    """Return the decision of :func:`arrays_of_change`; a ``LookupError`` or ``ValueError`` if there is no valid one."""
    if not run.has_master:
        return None
    dtypes = run.parameter_dtypes
    columns = [arrays[f"next{k}"] for k in range(len(dtypes))]
    if any(column.dtype != dtype for column, dtype in zip(columns, dtypes, strict=True)):
        raise ValueError("parameters of other dtypes")
    return Decision(bool(arrays["halted"][0]), tuple(column[0] for column in columns))
