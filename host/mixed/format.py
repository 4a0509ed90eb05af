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
from gpu_pregel.host.mixed.stored_inputs import decode_arrived, decode_inputs
from gpu_pregel.host.programs.master_step import Decision
from gpu_pregel.host.programs.state import Activity, Posted, ProgramState
from gpu_pregel.host.programs.stored_decisions import arrays_of_change, stored_decision
from gpu_pregel.host.superstep.journal import FoldedSuperstep, PackedCommit
from gpu_pregel.host.superstep.stored_arrays import ArrayHistory, Blobs, read_arrays, with_header

Array = np.ndarray[Any, Any]

_MOST_CHANGED = 0.5
"""A commit that changes a larger part of arrays and agents stores them whole, as a base."""
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
        self._history, self._trace, self._base_size = ArrayHistory(), b"", 0
        self._packed: tuple[dict[str, Array], dict[str, Any] | None, bytes] | None = None
        """What was packed last: arrays, their changes unless they are stored whole, and the trace."""

    def attach(
        self, run: ProgramState, side: NumericSide, fields: Sequence[str], stored: Blobs, base_size: int
    ) -> None:
        """Store this run from now on; ``fields`` are the names of its values.

        The store has the blobs ``stored``, and a base of agents of this number of bytes.
        """
        self._run, self._side, self._fields = run, side, list(fields)
        self._history, self._trace = ArrayHistory(stored), bytes(stored.get(_TRACE, b""))
        self._base_size = base_size

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
        with_base |= size > _MOST_CHANGED * (self._base_size + sum(array.nbytes for array in arrays.values()))
        agents, row = last.change.agents, json.loads(rows[-1])
        with_base = with_base and agents is not None  # a base does not have the records so far
        self._packed = arrays, None if with_base else changes, trace
        self.beside = {} if with_base else changes
        if agents is None:
            return self.pack_open(last.change.begun, row, parts)
        packed = super().pack_commit([agents._replace(row=row)], parts, with_base=with_base)
        self._base_size = self._base_size if packed.base is None else len(packed.base)
        return packed._replace(blobs=arrays) if with_base else packed

    def _arrays(self, change: MixedChange, trace: bytes) -> dict[str, Array]:
        """Return everything that a resumed run needs of the numeric side."""
        is_open, numeric = change.agents is None, change.numeric
        posted = self._run.posted or Posted(np.zeros(0, np.int64), ())
        arrays = {
            **self._run.snapshot(),
            **arrays_of_change(self._run, numeric),
            _ACTIVITY: np.array(numeric.activity, np.int64),
            _WOKEN: self._side.woken,
            _ARRIVED: np.frombuffer(self._side.arrived, np.uint8),
            _INPUTS: np.frombuffer(self._side.inputs() if is_open else b"", np.uint8),
            _BEGUN: np.array([change.begun] if is_open else [], np.int64),
            _POSTED: posted.vertices,
            **{f"{_POSTED}{k}": column for k, column in enumerate(posted.messages)},
            _TRACE: np.frombuffer(trace, np.uint8),
        }
        return with_header(arrays, {"fields": self._fields})

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
    supersteps : int
        How many have been committed.

    Raises
    ------
    CheckpointError
        The blobs are not those of such a run.
    """

    def __init__(self, blobs: Blobs, where: str, supersteps: int) -> None:
        self._where = where
        self.decision: Decision | None = None
        """What the program's ``master`` has decided; None without one, and before :meth:`restore`."""
        try:
            self._arrays, _ = read_arrays(blobs)
            self.rows: list[dict[str, Any]] = [json.loads(line) for line in bytes(blobs[_TRACE]).splitlines()]
            self.activity = Activity(*self._arrays[_ACTIVITY].tolist())
            self.arrived = decode_arrived(self._arrays[_ARRIVED].tobytes())
            begun = self._arrays[_BEGUN].tolist()
            self.begun_at: int | None = begun[0] if begun else None
            self.inputs = decode_inputs(self._arrays[_INPUTS].tobytes()) if begun else None
            is_whole = len(self.rows) == supersteps and all(row.keys() == self.rows[0].keys() for row in self.rows)
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise self._damaged(error) from error
        if not is_whole:
            raise self._damaged("another trace")
        if begun and (len(begun) > 1 or not 0 <= begun[0] < supersteps):
            raise self._damaged(f"agents have begun in superstep {self.begun_at}")

    def _damaged(self, problem: object) -> CheckpointError:
        return CheckpointError(self._where, f"has no valid arrays ({problem}): restore a copy, or fork the run before")

    def restore(self, run: ProgramState, message: Sequence[np.dtype[Any]], totals: int) -> tuple[Any, ...]:
        """Restore values, frontier, aggregates and posted messages; return the last aggregates.

        ``message`` are the dtypes of a message. Kernels do not check vertices, so that they are checked here.
        """
        arrays = self._arrays
        for name, array in run.snapshot().items():
            if name not in arrays or arrays[name].dtype != array.dtype or arrays[name].shape != array.shape:
                raise self._damaged(f"no {name} that fits this run")
        n = len(run.values[0])
        self.woken, vertices = (self._vertices(name, n) for name in (_WOKEN, _POSTED))
        if not 0 <= self.activity.active_vertices <= n or not self.activity.active_edges >= 0:
            raise self._damaged(f"{self.activity.active_vertices} active vertices of {n}")
        if not all(0 <= vertex < n for vertex in self.arrived):
            raise self._damaged("messages to vertices that are not in the graph")
        columns = [arrays.get(f"{_POSTED}{k}") for k in range(len(message))] if len(vertices) else []
        pairs = zip(columns, message, strict=bool(len(vertices)))
        if any(one is None or one.dtype != dtype or len(one) != len(vertices) for one, dtype in pairs):
            raise self._damaged("no messages of agents that fit this run")
        try:
            found = tuple(arrays[f"total{k}"][0] for k in range(totals))
            self.decision = stored_decision(run, arrays)
        except (LookupError, ValueError) as error:
            raise self._damaged(error) from error
        run.restore(arrays)
        run.posted = Posted(vertices, tuple(map(np.array, columns))) if len(vertices) else None
        return found

    def _vertices(self, name: str, n: int) -> Array:
        """Return an array of vertices in ascending order."""
        found = self._arrays.get(name)
        if found is None or found.dtype != np.int64 or (np.diff(found, prepend=-1, append=n) <= 0).any():
            raise self._damaged(f"{name} are no vertices in ascending order")
        return found
