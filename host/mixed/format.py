"""The format of a run with numeric vertices and agents in a store: commits of agents with the arrays beside them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpu_pregel.errors import CheckpointError
from gpu_pregel.host.agents.formats import AgentFormat
from gpu_pregel.host.agents.state import State
from gpu_pregel.host.mixed.change import MixedChange
from gpu_pregel.host.mixed.numeric_side import NumericSide
from gpu_pregel.host.programs.state import Activity, Posted, ProgramState
from gpu_pregel.host.superstep.journal import FoldedSuperstep, PackedCommit
from gpu_pregel.host.superstep.stored_arrays import ArrayHistory, Blobs, read_arrays, with_header

Array = np.ndarray[Any, Any]

_MOST_CHANGED = 0.5
"""A commit in which a larger part of the arrays has changed stores them whole, with a base."""
_TRACE, _ACTIVITY, _WOKEN, _POSTED = "trace", "activity", "woken", "posted"
_ARRIVED, _INPUTS, _BEGUN = "arrived", "inputs", "begun"


class MixedFormat(AgentFormat):
    """The format of the journal: that of agents, and numeric arrays as changed blocks, or whole with a base.

    Parameters
    ----------
    agents : State
    """

    def __init__(self, agents: State) -> None:
        super().__init__(agents)
        self._history, self._trace = ArrayHistory(), b""
        self._packed: tuple[dict[str, Array], dict[str, Any] | None, bytes] | None = None
        """What was packed last: arrays, their changes unless they are stored whole, and the trace."""

    def attach(self, run: ProgramState, side: NumericSide, fields: Sequence[str], stored: Blobs) -> None:
        """Store this run from now on; the store has the blobs ``stored``. ``fields`` are the names of its values."""
        self._run, self._side, self._fields = run, side, list(fields)
        self._history, self._trace = ArrayHistory(stored), bytes(stored.get(_TRACE, b""))

    def pack_commit(
        self, supersteps: Sequence[FoldedSuperstep[Any]], parts: Sequence[Any], *, with_base: bool
    ) -> PackedCommit:
        """Encode the state after the last of the supersteps; no agent was computed in those before it."""
        last: FoldedSuperstep[MixedChange] = supersteps[-1]
        rows = [json.dumps(folded.row, default=lambda number: number.item()).encode() + b"\n" for folded in supersteps]
        trace = self._trace + b"".join(rows)
        arrays = self._arrays(last.change, trace)
        changes = self._history.changes(arrays)
        size = sum(len(contents) for _, _, contents in changes.values())
        with_base = with_base or size > _MOST_CHANGED * sum(array.nbytes for array in arrays.values())
        agents, row = last.change.agents, json.loads(rows[-1])
        with_base = with_base and agents is not None  # a base does not have the records so far
        self._packed = arrays, None if with_base else changes, trace
        self.beside = {} if with_base else changes
        if agents is None:
            return self.pack_open(last.change.begun, row, parts)
        packed = super().pack_commit([agents._replace(row=row)], parts, with_base=with_base)
        return packed._replace(blobs=arrays) if with_base else packed

    def _arrays(self, change: MixedChange, trace: bytes) -> dict[str, Array]:
        """Return everything that a resumed run needs of the numeric side."""
        is_open, numeric = change.agents is None, change.numeric
        posted = self._run.posted or Posted(np.zeros(0, np.int64), ())
        arrays = {
            **self._run.snapshot(),
            **{f"total{k}": np.asarray(total).reshape(1) for k, total in enumerate(numeric.totals)},
            _ACTIVITY: np.array(numeric.activity, np.int64),
            _WOKEN: self._side.woken,
            _ARRIVED: np.frombuffer(self._side.arrived, np.uint8),
            _INPUTS: np.frombuffer(self._side.inputs if is_open else b"", np.uint8),
            _BEGUN: np.array([change.begun] if is_open else [], np.int64),
            _POSTED: posted.vertices,
            **{f"{_POSTED}{k}": column for k, column in enumerate(posted.messages)},
            _TRACE: np.frombuffer(trace, np.uint8),
        }
        return with_header(arrays, {"fields": self._fields, "agents": self._side.digest})

    def stored(self, names: Sequence[str]) -> Blobs | None:
        """Return arrays as they are in the store; None if it has none yet."""
        return self._history.find(names)

    def note_commit(self) -> None:
        """Note that what was packed last, if anything, is in the store."""
        if self._packed is not None:
            arrays, changes, self._trace = self._packed
            self._history.keep(arrays, changes)
            self._packed = None


class Restored:
    """The numeric side of a stored run.

    Parameters
    ----------
    blobs : mapping of str to bytes
        Not empty.
    where : str
        The name of the run, for errors.

    Raises
    ------
    CheckpointError
        The blobs are not those of such a run.
    """

    def __init__(self, blobs: Blobs, where: str) -> None:
        self._where = where
        try:
            self._arrays, facts = read_arrays(blobs)
            self.rows: list[dict[str, Any]] = [json.loads(line) for line in bytes(blobs[_TRACE]).splitlines()]
            self.activity = Activity(*self._arrays[_ACTIVITY].tolist())
            self.agents = str(facts["agents"])
            self.woken = self._arrays[_WOKEN].astype(np.int64)
            self.arrived = self._arrays[_ARRIVED].tobytes()
            begun = self._arrays[_BEGUN].tolist()
            self.begun_at: int | None = begun[0] if begun else None
            self.inputs = self._arrays[_INPUTS].tobytes() if begun else None
        except (LookupError, TypeError, ValueError) as error:
            raise self._damaged(error) from error

    def _damaged(self, problem: object) -> CheckpointError:
        return CheckpointError(self._where, f"has no valid arrays ({problem}): restore a copy, or fork the run before")

    def restore(self, run: ProgramState, totals: int) -> tuple[Activity, tuple[Any, ...]]:
        """Restore values, frontier, aggregates and posted messages; return activity and the last aggregates."""
        arrays = self._arrays
        for name, array in run.snapshot().items():
            if name not in arrays or arrays[name].dtype != array.dtype or arrays[name].shape != array.shape:
                raise self._damaged(f"no {name} that fits this run")
        try:
            vertices = arrays[_POSTED].astype(np.int64)
            columns = tuple(
                array.copy() for name, array in arrays.items() if name.startswith(_POSTED) and name != _POSTED
            )
            found = tuple(arrays[f"total{k}"][0] for k in range(totals))
        except (LookupError, ValueError) as error:
            raise self._damaged(error) from error
        run.restore(arrays)
        run.posted = Posted(vertices, columns) if len(vertices) else None
        return self.activity, found
