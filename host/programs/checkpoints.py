"""Checkpoints: the state of a vertex program's run between two supersteps, in a store.

A checkpoint is a commit with a base of its own: a JSON header, the run's arrays as blobs, and the trace so far. Reading
one executes and imports nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, CheckpointError, StoreError
from gpu_pregel.host.arguments import check_choice, check_integer, check_seconds
from gpu_pregel.host.programs.master_step import Decision
from gpu_pregel.host.programs.policy import NumericChange
from gpu_pregel.host.programs.state import Activity, ProgramState
from gpu_pregel.host.programs.stored_decisions import arrays_of_change, stored_decision
from gpu_pregel.host.stores.rows import DURABILITIES, MAX_SECONDS
from gpu_pregel.host.superstep.journal import FoldedSuperstep, Journal, PackedCommit
from gpu_pregel.host.superstep.master import limit_problem

if TYPE_CHECKING:
    from gpu_pregel.host.stores.saved_run import SavedRun
    from gpu_pregel.host.stores.store import Store

Array = np.ndarray[Any, Any]

SCHEMA = 1
"""The version of the header, the names of the arrays, and the trace."""
_TRACE = "trace"


@dataclass(frozen=True)
class Checkpoint:
    """Where and how often a run saves its state.

    Parameters
    ----------
    store : path, SQLiteStore, PostgresStore or MemoryStore
        A path is a SQLite file, created if it does not exist.
    run_id : str, default "run"
        The run's name in the store.
    every : int, default 10
        Save after this many supersteps, and when the run ends.
    keep : int, default 2
        Number of newest checkpoints to keep; older ones are removed once a new one is complete.
    durability : {"machine", "process"}
        "machine" forces each checkpoint to disk, so that it survives a crash of the machine; with "process" it
        survives a crash of the program.
    lease_seconds : float, default 60
        How long no other program may resume the run, unless this process is known to have ended. The lease is renewed
        while the run lasts.

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
            check_integer(name, getattr(self, name), 1)
        check_choice("durability", self.durability, DURABILITIES)
        check_seconds("lease_seconds", self.lease_seconds, MAX_SECONDS)


def as_checkpoint(given: object) -> Checkpoint:
    """Return the checkpoint given as ``checkpoint=``; a path or a store stands for ``Checkpoint(path)``."""
    if isinstance(given, Checkpoint):
        return given
    if not isinstance(given, (str, os.PathLike)) and not hasattr(given, "commit"):
        raise ArgumentTypeError(f"checkpoint must be a gp.Checkpoint, the path of a file or a store, not {given!r}")
    return Checkpoint(given)  # type: ignore[arg-type]


class Identity(NamedTuple):
    """Identifies a run: the graph (size, kind, dtype of weights, digest of its content), the program and its start.

    Attributes
    ----------
    vertices, edges : int
    directed : bool
    weights : str or None
        Their dtype.
    content, program : str
        Digests of the graph and of the program.
    parameters : dict of str to str
        The values of the program's parameters. Runs that were saved before there were parameters have none.
    initial, frontier : str or None
        Digests of what was given as ``initial=`` and ``frontier=``.
    seed : int
    partitions : int or None
        Their number if sums of floats, which depend on it, are part of the result, and None otherwise, or if the run
        was saved before it was stored.
    """

    vertices: int
    edges: int
    directed: bool
    weights: str | None
    content: str
    program: str
    parameters: dict[str, str]
    initial: str | None = None
    frontier: str | None = None
    seed: int = 0
    partitions: int | None = None


def _as_identity(saved: list[Any]) -> Identity:
    """Return the identity that a header holds."""
    return Identity(*saved, *([{}] if len(saved) == 6 else []))


class ResumePoint(NamedTuple):
    """The starting point of a resumed run, besides the arrays in its state.

    Attributes
    ----------
    supersteps : int
        How many there were, 0 included.
    plan : Activity
        Active vertices and edges.
    totals : tuple
        The aggregates that the next superstep's ``apply`` will see.
    rows : list of dict
        The trace so far.
    decision : Decision or None, of the program's ``master``
    """

    supersteps: int
    plan: Activity
    totals: tuple[Any, ...]
    rows: list[dict[str, Any]]
    decision: Decision | None = None


class CheckpointedRun:
    """A run of a vertex program in a store, claimed by this process; a context.

    Parameters
    ----------
    checkpoint : Checkpoint
    identity : Identity
        Identifies the run's graph and program.
    resume : bool
        Start from the newest checkpoint; if False, the store must have no such run.
    max_supersteps : int, optional
        The run's limit; the checkpoint must not be beyond it.

    Raises
    ------
    CheckpointError
        The newest checkpoint belongs to another graph or program, or there is one and ``resume`` is False.
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
        self._bases: list[int] = []
        """Supersteps of the checkpoints that are kept, oldest first."""
        self._saved: SavedRun | None = None
        self._journal: Journal | None = None
        self._header: dict[str, Any] = {}
        """The header of the newest checkpoint, or of the run if there is no checkpoint yet."""

    def __enter__(self) -> CheckpointedRun:
        with self._exit:
            self._open()
            self._exit = self._exit.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._exit.close()

    @property
    def head(self) -> int:
        """The superstep of the newest checkpoint, -1 if there is none."""
        if self._journal is not None:
            return self._journal.head
        assert self._saved is not None
        return self._saved.run.head

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
                f"already has a run {run_id!r}: pass resume=True to resume it from its newest checkpoint, or choose "
                f"another run_id or file to start a new run",
            )
        else:
            claim = claim_run(self._store, run_id, takeover=False, **keeping)
        self._lease = Lease(self._store, claim)
        self._exit.callback(self._lease.release)
        self._saved = self._store.load(run_id)
        self._bases = [commit.step for commit in self._store.history(run_id) if commit.base]
        if not self._bases and self._saved.step >= 0:  # a fork
            self._bases = [self._saved.step]
        self._check(self._saved)

    def _check(self, saved: SavedRun) -> None:
        """Refuse a checkpoint of another graph, program, kind or version."""
        run = saved.run
        if run.kind != "numeric":
            raise self._error(run.head, f"belongs to a run of {run.kind}: choose another run_id")
        if run.schema != SCHEMA:
            raise self._error(
                run.head,
                f"was written by another version ({run.schema}, not {SCHEMA}): resume it with that version, or start a "
                f"new run with another run_id",
            )
        self._header = self._read_header(saved)
        identity = _as_identity(self._header["identity"])
        if differs(identity, self._identity):
            raise self._error(run.head, difference(identity, self._identity))
        problem = limit_problem(run.head + 1, self._max_supersteps)
        if problem is not None:
            raise self._error(run.head, problem)

    def _read_header(self, saved: SavedRun) -> dict[str, Any]:
        try:
            header: dict[str, Any] = json.loads(saved.base())
            dict(_as_identity(header["identity"]).parameters)
            if saved.base_step >= 0:
                Activity(*map(int, header["plan"]))
                {str(name): np.dtype(str(code)) for name, code in header["arrays"].items()}
        except (ArithmeticError, LookupError, AttributeError, TypeError, ValueError, RecursionError) as error:
            raise self._damaged(saved, error) from error
        return header

    def _error(self, step: int, problem: str) -> CheckpointError:
        where = f"{self._store.name}, run {self._checkpoint.run_id!r}, superstep {step}"
        return CheckpointError(where, problem)

    def _damaged(self, saved: SavedRun, error: Exception) -> StoreError:
        problem = f"is not a checkpoint ({error}): restore a copy, or fork the run before it"
        return StoreError(self._store.name, problem, self._checkpoint.run_id, saved.base_step)

    def begin(self, run: ProgramState) -> tuple[Journal, ResumePoint | None]:
        """Restore the newest checkpoint, if there is one, into ``run``; return the journal that saves it from here."""
        saved = self._saved
        assert saved is not None
        start, rows = None, bytearray()
        if saved.base_step >= 0:
            rows = bytearray(self._blob(saved, _TRACE))
            start = self._restore(run, saved, rows)
        given = self._checkpoint
        journal = Journal(
            self._lease,
            NumericFormat(run, self._identity, rows),
            head=saved.run.head,
            status=saved.run.status,
            every=given.every,
            keep=given.keep,
            bases=self._bases,
        )
        self._exit.callback(journal.close)
        self._saved, self._journal = None, journal
        return journal, start

    def _restore(self, run: ProgramState, saved: SavedRun, rows: bytearray) -> ResumePoint:
        arrays = {name: self._array(saved, name, code) for name, code in self._header["arrays"].items()}
        for name, array in run.snapshot().items():
            if name not in arrays or arrays[name].dtype != array.dtype or arrays[name].shape != array.shape:
                raise self._error(saved.base_step, f"has no {name} that fits this run: choose another run_id")
        try:
            totals = tuple(arrays[f"total{k}"][0] for k in range(len(run.aggregates)))
            trace = [json.loads(line) for line in rows.splitlines()]
            decision = stored_decision(run, arrays)
        except (LookupError, ValueError) as error:
            raise self._damaged(saved, error) from error
        run.restore(arrays)
        return ResumePoint(saved.base_step + 1, Activity(*self._header["plan"]), totals, trace, decision)

    def _array(self, saved: SavedRun, name: str, code: str) -> Array:
        try:
            dtype = np.dtype(code)
            if dtype.kind not in "biuf":
                raise ValueError(f"array {name!r} of {dtype}")
            return np.frombuffer(self._blob(saved, name), dtype)
        except (TypeError, ValueError) as error:
            raise self._damaged(saved, error) from error

    def _blob(self, saved: SavedRun, name: str) -> bytes | bytearray:
        try:
            return saved.blob(name)
        except KeyError as error:
            raise self._damaged(saved, error) from error


class NumericFormat:
    """The format of a vertex program's run in a journal: each commit is a base with a JSON header and arrays.

    Parameters
    ----------
    run : ProgramState
        The state to be saved.
    identity : Identity
    rows : bytearray
        The trace so far, a line of JSON per row, so that each row is encoded once.
    """

    def __init__(self, run: ProgramState, identity: Identity, rows: bytearray) -> None:
        self._run, self._identity, self._rows = run, identity, rows
        self._encoded = rows.count(b"\n")

    def pack(self, parts: Sequence[Any]) -> list[bytes]:
        """Raise an error, as numeric supersteps have no segments."""
        raise NotImplementedError(parts)

    def pack_commit(
        self,
        supersteps: Sequence[FoldedSuperstep[NumericChange]],
        parts: Sequence[Any],  # noqa: ARG002
        *,
        with_base: bool,  # noqa: ARG002
    ) -> PackedCommit:
        """Encode the state after the last of the supersteps."""
        for folded in supersteps:
            if folded.superstep >= self._encoded:
                self._rows += json.dumps(folded.row, default=lambda number: number.item()).encode() + b"\n"
                self._encoded = folded.superstep + 1
        change = supersteps[-1].change
        arrays = self._run.snapshot() | arrays_of_change(self._run, change)
        header = {
            "identity": self._identity,
            "plan": [int(number) for number in change.activity],
            "arrays": {name: array.dtype.str for name, array in arrays.items()},
        }
        blobs = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        return PackedCommit(b"", (), json.dumps(header).encode(), {**blobs, _TRACE: self._rows})


def differs(saved: Identity, own: Identity) -> bool:
    """Whether a checkpoint belongs to another run."""
    return saved != (own if saved.partitions is not None else own._replace(partitions=None))


def difference(saved: Identity, own: Identity) -> str:
    """Return how the identities of a checkpoint and of this run differ, and the remedy."""
    if saved[:6] == own[:6]:
        return _difference_of_starts(saved, own)
    remedy = "choose another run_id, or pass the graph and program that it was made with"
    if saved[:5] == own[:5]:
        return (
            f"belongs to another program (functions, constants they use, dtypes, or the versions of Python or a "
            f"library): {remedy}"
        )

    def size(identity: Identity) -> str:
        kind = "directed" if identity.directed else "undirected"
        weights = f"{identity.weights} weights" if identity.weights else "no weights"
        return f"{identity.vertices:,} vertices and {identity.edges:,} stored edges, {kind}, {weights}"

    if saved[:4] == own[:4]:
        return f"belongs to another graph (as large, but its edges or weights differ): {remedy}"
    return f"belongs to another graph (it has {size(saved)}; this one {size(own)}): {remedy}"


def _difference_of_starts(saved: Identity, own: Identity) -> str:
    """Return how the parameters, initial values or first frontiers of two runs of a program on a graph differ."""
    for name, value in own.parameters.items():
        if saved.parameters.get(name) != value:
            return (
                f"belongs to a run with parameter {name!r} = {saved.parameters.get(name)}, not {value}: choose another "
                f"run_id, or pass the parameters that it was started with"
            )
    if saved.seed != own.seed:
        return f"belongs to a run with seed={saved.seed}, not {own.seed}: pass the seed that it was started with"
    if saved.partitions is not None and saved.partitions != own.partitions:
        return (
            f"belongs to a run with partitions={saved.partitions}, not {own.partitions}, on which its sums of floats "
            f"depend: pass partitions={saved.partitions}"
        )
    name = "initial" if saved.initial != own.initial else "frontier"
    return f"belongs to a run with another {name}=: choose another run_id, or pass what it was started with"
