"""Checkpoints: the state of a vertex program's run between two supersteps, in a store.

A checkpoint is a commit with a base of its own: a JSON header, the run's arrays as blobs, and the trace so far. Reading
one executes and imports nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, CheckpointError, StoreError
from gpu_pregel.host.programs.state import Activity, ProgramState
from gpu_pregel.host.stores.rows import DURABILITIES, check_choice, check_seconds
from gpu_pregel.host.superstep.master import Folded

if TYPE_CHECKING:
    from gpu_pregel.host.stores.saved_run import Saved
    from gpu_pregel.host.stores.store import Store

Array = np.ndarray[Any, Any]

SCHEMA = 1
"""Of the header, the names of the arrays, and the trace."""
_TRACE = "trace"


@dataclass(frozen=True)
class Checkpoint:
    """Where and how often a run saves its state.

    Parameters
    ----------
    store : path, SQLiteStore, PostgresStore or MemoryStore
        A path means the SQLite file there, made if there is none.
    run_id : str, default "run"
        The run's name in the store.
    every : int, default 10
        Save after every so many supersteps, and when the run ends.
    keep : int, default 2
        How many are kept, the newest; older ones are removed once a new one is in place.
    durability : {"machine", "process"}
        Whether a checkpoint survives the end of the machine, forced to disk, or that of the program alone.
    lease_seconds : float, default 60
        For so long no other program may go on with the run, unless this one is known to be gone; renewed meanwhile.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> gp.Checkpoint("pagerank.db", every=5).run_id
    'run'
    """

    store: Store | str | os.PathLike[str]
    run_id: str = "run"
    every: int = 10
    keep: int = 2
    durability: str = "machine"
    lease_seconds: float = 60.0

    def __post_init__(self) -> None:
        if isinstance(self.store, (str, os.PathLike)):
            if not os.fspath(self.store):
                raise ArgumentError("store must be the path of a file, or a store, not an empty string")
        elif not hasattr(self.store, "commit"):
            raise ArgumentTypeError(f"store must be the path of a file, or a store, not {self.store!r}")
        if not isinstance(self.run_id, str):
            raise ArgumentTypeError(f"run_id must be a string, not {self.run_id!r}")
        for name in ("every", "keep"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
                raise ArgumentTypeError(f"{name} must be a whole number, not {value!r}")
            if value < 1:
                raise ArgumentError(f"{name} must be at least 1, not {value}")
        check_choice("durability", self.durability, DURABILITIES)
        check_seconds("lease_seconds", self.lease_seconds)


def as_checkpoint(given: object) -> Checkpoint:
    """What ``checkpoint=`` means: a path, or a store, stands for ``Checkpoint(path)``."""
    if isinstance(given, Checkpoint):
        return given
    if not isinstance(given, (str, os.PathLike)) and not hasattr(given, "commit"):
        raise ArgumentTypeError(f"checkpoint must be a gp.Checkpoint, the path of a file or a store, not {given!r}")
    return Checkpoint(given)  # type: ignore[arg-type]


class Identity(NamedTuple):
    """What a checkpoint is of: the graph's size, kind, dtype of weights and content, and the program's digest."""

    vertices: int
    edges: int
    directed: bool
    weights: str | None
    content: str
    program: str


class Start(NamedTuple):
    """What a run goes on from, beside the arrays in its own state.

    Attributes
    ----------
    supersteps : int
        How many have been, 0 included.
    plan : Activity
        What is active.
    totals : tuple
        The aggregates that the next superstep's ``apply`` will see.
    rows : list of dict
        The trace so far.
    """

    supersteps: int
    plan: Activity
    totals: tuple[Any, ...]
    rows: list[dict[str, Any]]


class Checkpoints:
    """The checkpoints of one run, which nobody else writes meanwhile; a context, and the master's journal.

    Parameters
    ----------
    checkpoint : Checkpoint
    identity : Identity
        Of the run's graph and program.
    resume : bool
        Take the newest checkpoint up; if False there must be no such run.
    max_supersteps : int, optional
        The run's limit, which the checkpoint must not be beyond.

    Raises
    ------
    CheckpointError
        The newest checkpoint is of another graph or program, or there is one and ``resume`` is False.
    ClaimedError
        Another program has the run.
    StoreError
        The store cannot be opened, or is damaged.
    """

    def __init__(
        self, checkpoint: Checkpoint, identity: Identity, *, resume: bool, max_supersteps: int | None = None
    ) -> None:
        self._checkpoint, self._identity = checkpoint, identity
        self._resume, self._max_supersteps = resume, max_supersteps
        self._exit = ExitStack()
        self._steps: list[int] = []
        """Supersteps of the checkpoints that are kept, oldest first."""
        self._saved: Saved | None = None
        self._header: dict[str, Any] = {}
        """Of the newest checkpoint, or of the run where there is none yet."""
        self._trace = bytearray()
        """The rows so far, a line of JSON each, so that each is encoded once."""

    def __enter__(self) -> Checkpoints:
        with self._exit:
            self._open()
            self._exit = self._exit.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._exit.close()

    def _open(self) -> None:
        """Open the store, and create the run or claim it."""
        from gpu_pregel.host.stores.leases import Lease, claim_run, owner

        given, run_id = self._checkpoint, self._checkpoint.run_id
        if isinstance(given.store, (str, os.PathLike)):
            from gpu_pregel.host.stores.sqlite import SQLiteStore

            self._store: Store = self._exit.enter_context(SQLiteStore(given.store))
        else:
            self._store = given.store
        keeping: dict[str, Any] = {"lease_seconds": given.lease_seconds, "durability": given.durability}
        if all(row.id != run_id for row in self._store.runs()):
            header = json.dumps({"identity": self._identity}).encode()
            claim = self._store.create(run_id, "numeric", header, owner=owner(), schema=SCHEMA, **keeping)
        elif not self._resume:
            raise CheckpointError(
                self._store.name,
                f"has a run {run_id!r} already: pass resume=True to go on from its newest checkpoint, or name another "
                f"run_id or file to begin anew",
            )
        else:
            claim = claim_run(self._store, run_id, takeover=False, **keeping)
        self._lease = Lease(self._store, claim)
        self._exit.callback(self._lease.release)
        self._saved = self._store.load(run_id)
        self._steps = [commit.step for commit in self._store.history(run_id) if commit.base]
        if not self._steps and self._saved.step >= 0:  # a fork
            self._steps = [self._saved.step]
        self._check(self._saved)

    def _check(self, saved: Saved) -> None:
        """Refuse what is of another graph, program, kind or version."""
        run = saved.run
        if run.kind != "numeric":
            raise self._error(run.head, f"is of a run of {run.kind}: name another run_id")
        if run.schema != SCHEMA:
            raise self._error(
                run.head,
                f"was written by another version ({run.schema}, not {SCHEMA}): go on with that one, or begin anew with "
                f"another run_id",
            )
        self._header = self._read_header(saved)
        identity = Identity(*self._header["identity"])
        if identity != self._identity:
            raise self._error(run.head, _difference(identity, self._identity))
        if self._max_supersteps is not None and run.head + 1 > self._max_supersteps:
            raise self._error(
                run.head,
                f"holds {run.head + 1:,} supersteps, more than max_supersteps={self._max_supersteps}: raise that, or "
                f"begin anew with another run_id",
            )

    def _read_header(self, saved: Saved) -> dict[str, Any]:
        try:
            header: dict[str, Any] = json.loads(saved.base())
            Identity(*header["identity"])
            if saved.base_step >= 0:
                Activity(*map(int, header["plan"]))
                {str(name): np.dtype(str(code)) for name, code in header["arrays"].items()}
        except (ArithmeticError, LookupError, AttributeError, TypeError, ValueError, RecursionError) as error:
            raise self._damaged(saved, error) from error
        return header

    def _error(self, step: int, problem: str) -> CheckpointError:
        where = f"{self._store.name}, run {self._checkpoint.run_id!r}, superstep {step}"
        return CheckpointError(where, problem)

    def _damaged(self, saved: Saved, error: Exception) -> StoreError:
        problem = f"does not hold what a checkpoint does ({error}): restore a copy, or fork the run before it"
        return StoreError(self._store.name, problem, self._checkpoint.run_id, saved.base_step)

    def begin(self, run: ProgramState) -> Start | None:
        """Give ``run`` the state of the newest checkpoint, if there is one; and write this run's from now on."""
        self._run, saved, self._saved = run, self._saved, None
        if saved is None or saved.base_step < 0:
            return None
        arrays = {name: self._array(saved, name, code) for name, code in self._header["arrays"].items()}
        for name, array in run.snapshot().items():
            if name not in arrays or arrays[name].dtype != array.dtype or arrays[name].shape != array.shape:
                raise self._error(saved.base_step, f"has no {name} that fits this run: begin anew with another run_id")
        try:
            totals = tuple(arrays[f"total{k}"][0] for k in range(len(run.aggregates)))
            self._trace = bytearray(saved.blob(_TRACE))
            rows = [json.loads(line) for line in self._trace.splitlines()]
        except (LookupError, ValueError) as error:
            raise self._damaged(saved, error) from error
        run.restore(arrays)
        return Start(saved.base_step + 1, Activity(*self._header["plan"]), totals, rows)

    def _array(self, saved: Saved, name: str, code: str) -> Array:
        try:
            dtype = np.dtype(code)
            if dtype.kind not in "biuf":
                raise ValueError(f"array {name!r} of {dtype}")
            return np.frombuffer(saved.blob(name), dtype)
        except (KeyError, TypeError, ValueError) as error:
            raise self._damaged(saved, error) from error

    def commit(self, folded: Folded, status: str) -> None:
        """Save the superstep if it is one of those that are saved."""
        step, given = folded.superstep, self._checkpoint
        if self._steps and step <= self._steps[-1]:
            return
        self._trace += json.dumps(folded.row, default=lambda number: number.item()).encode() + b"\n"
        if status == "running" and (step + 1) % given.every:
            return
        activity, totals = folded.change
        sums = {f"total{k}": np.asarray(total).reshape(1) for k, total in enumerate(totals)}
        self._save(step, activity, {**self._run.snapshot(), **sums}, status)
        self._steps.append(step)
        if len(self._steps) > given.keep:
            self._steps = self._steps[-given.keep :]
            self._store.prune(given.run_id, before=self._steps[0])

    def _save(self, step: int, activity: Activity, arrays: Mapping[str, Array], status: str) -> None:
        codes = {name: array.dtype.str for name, array in arrays.items()}
        header = {"identity": self._identity, "plan": [int(number) for number in activity], "arrays": codes}
        blobs = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        self._store.commit(
            self._lease.claim,
            step,
            b"",
            (),
            status,
            base=json.dumps(header).encode(),
            blobs={**blobs, _TRACE: self._trace},
            after=self._steps[-1] if self._steps else -1,
        )

    def hold(self, superstep: int, status: str) -> None:
        """Nothing: numeric supersteps are not held."""


def _difference(saved: Identity, own: Identity) -> str:
    """How the identities of a checkpoint and of this run differ, and what to do."""
    remedy = "name another run_id, or give the one that it was made with"
    if saved[:-1] == own[:-1]:
        return (
            f"is of another program (functions, constants they use, dtypes, or the versions of Python or a library): "
            f"{remedy}"
        )

    def size(identity: Identity) -> str:
        kind = "directed" if identity.directed else "undirected"
        weights = f"{identity.weights} weights" if identity.weights else "no weights"
        return f"{identity.vertices:,} vertices and {identity.edges:,} stored edges, {kind}, {weights}"

    if saved[:4] == own[:4]:
        return f"is of another graph (as large, but its edges or weights differ): {remedy}"
    return f"is of another graph (it has {size(saved)}; this one {size(own)}): {remedy}"
