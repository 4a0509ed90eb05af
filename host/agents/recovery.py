"""Where a run of agents starts: from the given vertices, from checkpoint data, or from a run in a store."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from gpu_pregel.errors import ArgumentError, CheckpointError, CodecError, StoreError
from gpu_pregel.host.agents.codec import encode
from gpu_pregel.host.agents.formats import (
    READABLE_SCHEMAS,
    SCHEMA,
    AgentFormat,
    BegunSuperstep,
    SavedSuperstep,
    Segment,
)
from gpu_pregel.host.agents.initial_state import adapt_state, initial_state
from gpu_pregel.host.agents.ledger import Ledger
from gpu_pregel.host.agents.options import RunOptions, new_run_id
from gpu_pregel.host.agents.parts import ChangedOptions
from gpu_pregel.host.agents.records import Id
from gpu_pregel.host.agents.run_metadata import RunMetadata
from gpu_pregel.host.agents.snapshots import RunSnapshot
from gpu_pregel.host.agents.state import Records, State
from gpu_pregel.host.agents.state_format import pack_state, unpack_state
from gpu_pregel.host.agents.vertices import Vertex
from gpu_pregel.host.agents.workers.garbage_collection import relaxed_gc
from gpu_pregel.host.stores.leases import Lease, claim_run, owner
from gpu_pregel.host.superstep.journal import Journal
from gpu_pregel.host.superstep.master import limit_problem

if TYPE_CHECKING:
    from gpu_pregel.host.stores.rows import Claim, RunRow
    from gpu_pregel.host.stores.saved_run import SavedCommit, SavedRun
    from gpu_pregel.host.stores.store import Store


class RunChangedError(Exception):
    """Another program may have changed a run since its row was read: read it again."""


@dataclass
class RecoveredRun:
    """The state of a run, and the recorded part of its next superstep.

    Attributes
    ----------
    run_id : str
    branch : int
    superstep : int
        The next superstep.
    state : State
    begun : BegunSuperstep
        Empty if that superstep has not begun.
    status : str
    rows : list of dict
        The rows of the trace.
    base_size, size_since_base : int
        Bytes of the last base, and of the commits since then.
    blobs : dict of str to bytearray
        Arrays beside the agents.
    journal : Journal or None
    """

    run_id: str
    branch: int
    superstep: int
    state: State
    begun: BegunSuperstep = field(default_factory=BegunSuperstep)
    status: str = "running"
    rows: list[dict[str, Any]] = field(default_factory=list)
    base_size: int = 0
    size_since_base: int = 0
    blobs: dict[str, bytearray] = field(default_factory=dict)
    journal: Journal | None = None

    def ledger(self) -> Ledger:
        """Return a ledger with the failures, interrupts and completed vertices of that superstep."""
        ledger = Ledger(self.superstep, [], self.state.inbox)
        self.begun.replay(ledger)
        self.begun.give_answers(ledger)
        return ledger

    def cancelled(self) -> list[Id]:
        """Return the vertices of a failed superstep that have not ended, in order."""
        if self.status != "failed":
            return []
        ledger, vertices, inbox = self.ledger(), self.state.vertices, self.state.inbox
        active = [vertex for vertex, one in vertices.items() if vertex in inbox or not one.halted]
        return sorted(vertex for vertex in active if not ledger.has_ended(vertex))


@dataclass(frozen=True)
class RunKind:
    """A kind of runs in a store: of agents alone, or of agents beside numeric vertices.

    Attributes
    ----------
    name : str
    make_format : callable
        Returns the format of a run's journal from the state of its agents.
    journal_options : dict
        Options of its journal.
    """

    name: str = "agents"
    make_format: Callable[[State], AgentFormat] = AgentFormat
    journal_options: dict[str, Any] = field(default_factory=dict)

    def journal(self, lease: Lease, state: State, **options: Any) -> Journal:
        """Return the journal of a run."""
        packs = self.make_format(state)
        return Journal(lease, packs, **{"begin_base": packs.begin_base, **options, **self.journal_options})


AGENTS = RunKind()


def begin(given: Iterable[Vertex] | bytes, options: RunOptions, kind: RunKind = AGENTS) -> RecoveredRun:
    """Begin a run with new vertices or from checkpoint data, in a store if the options name one."""
    if isinstance(given, bytes):
        if options.store is not None:
            raise ArgumentError("a run from checkpoint_data cannot begin in a store: use gp.agents.resume with a store")
        saved = RunSnapshot.unpack(given)
        if options.run_id not in (None, saved.run_id):
            raise ArgumentError(f"checkpoint_data is of run {saved.run_id!r}, not of {options.run_id!r}: omit run_id=")
        adapt_state(saved.state, options, "checkpoint_data", saved.superstep)
        begun = BegunSuperstep([] if saved.segment is None else [saved.segment], saved.answers)
        result = RecoveredRun(saved.run_id, saved.branch, saved.superstep, saved.state, begun)
        _check_limit("checkpoint_data", result, options)
        return result
    return begin_state(initial_state(given, options), options, kind)


def begin_state(
    state: State,
    options: RunOptions,
    kind: RunKind = AGENTS,
    run_id: str | None = None,
    *,
    forced: bool = True,
) -> RecoveredRun:
    """Begin a run with a state, in a store if the options name one.

    With ``run_id``, which replaces that of the options, they serve for many runs.
    ``forced`` as in ``Store.create``: where nobody is told that the run exists before its first commit.
    """
    if run_id is None:
        run_id = new_run_id() if options.run_id is None else options.run_id
    result = RecoveredRun(run_id, 0, 0, state)
    if options.store is not None:
        base = pack_state(state)
        claim = options.store.create(
            run_id,
            kind.name,
            base,
            owner=owner(),
            lease_seconds=options.lease_seconds,
            durability=options.durability,
            meta=RunMetadata.of_options(options).pack(),
            schema=SCHEMA,
            forced=forced,
        )
        lease = Lease(options.store, claim)
        result.journal = kind.journal(lease, state, head=-1, base_every=options.base_every, base_size=len(base))
    return result


def _check_limit(where: str, recovered: RecoveredRun, options: RunOptions) -> None:
    """Refuse a run that is already beyond its limit."""
    problem = limit_problem(recovered.superstep + bool(recovered.begun.segments), options.max_supersteps)
    if problem is not None:
        raise CheckpointError(where, problem)


def begin_from_store(
    store: Store,
    run_id: str,
    options: RunOptions,
    *,
    takeover: bool,
    kind: RunKind = AGENTS,
    since: RunRow | None = None,
) -> RecoveredRun:
    """Claim a run in a store and read it.

    Raises ``RunChangedError`` unless the run is as it was when the row ``since`` was read.
    """
    found = store.run(run_id).kind
    if found != kind.name:
        raise ArgumentError(f"run {run_id!r} has {found} vertices: resume it with gp.run")
    claim = claim_run(
        store, run_id, lease_seconds=options.lease_seconds, durability=options.durability, takeover=takeover
    )
    try:
        if since is not None:
            check_unchanged(claim, since)
        result, where = read_run(store, run_id), f"{store.name}, run {run_id!r}"
        _check_limit(where, result, options)
        stored = result.state.options
        adapt_state(result.state, options, where, result.superstep)
    except BaseException:
        store.release(claim)
        raise
    result.journal = kind.journal(
        Lease(store, claim),
        result.state,
        head=result.superstep - 1,
        status=result.status,
        base_every=options.base_every,
        since_base=len(result.rows),
        base_size=result.base_size,
        size_since_base=result.size_since_base,
    )
    if result.state.options != stored:
        try:
            result.journal.record(ChangedOptions(encode(result.state.options)))
        except BaseException:
            result.journal.close()
            raise
    return result


def check_unchanged(claim: Claim, since: RunRow) -> None:
    """Raise ``RunChangedError`` if another program may have written to a run between its row and this claim.

    It had to claim the run, before or after the row was read, and a claim that has not been released has a lease.
    """
    if since.lease != 0 or claim.epoch != since.epoch + 1:
        raise RunChangedError


def read_run(
    store: Store, run_id: str, superstep: int | None = None, keep: Callable[[int, State], object] | None = None
) -> RecoveredRun:
    """Read a run of agents after a superstep from a store; its rows are those of the commits since the base.

    It is read again if the run changed in the meantime. ``keep`` is called with each superstep since the base and the
    state after it, which it must copy.
    """
    with relaxed_gc(beside_users_code=False):
        saved = store.load(run_id, superstep)
        try:
            return _read(store, saved, keep)
        except StoreError:
            again = store.load(run_id, superstep)
            if again.run == saved.run:
                raise
            return _read(store, again, keep)


def read_held(store: Store, run_id: str) -> Ledger:
    """Read the recorded part of the superstep after the head of a run: its failures, interrupts and answers."""
    if store.run(run_id).kind == "mixed":  # its agents may have begun before the head
        return read_run(store, run_id).ledger()
    while True:
        saved = store.load(run_id)
        try:
            reading = partial(_reading, store, run_id, saved.run.head + 1)
            segments = reading(partial(_held_segments, saved), saved.held())
        except StoreError:
            if store.run(run_id) == saved.run:
                raise
            continue  # it was committed meanwhile
        ledger = Ledger(saved.run.head + 1, [], {})
        begun = BegunSuperstep(segments, [(answer.vertex, answer.data) for answer in saved.answers])
        begun.replay(ledger)
        begun.give_answers(ledger)
        return ledger


def check_readable(store: Store, run: RunRow) -> None:
    """Refuse runs of numeric vertices alone, and those of other versions."""
    if run.kind == "numeric":
        raise ArgumentError(f"run {run.id!r} has {run.kind} vertices: resume it with gp.run")
    if run.schema not in READABLE_SCHEMAS:
        raise StoreError(
            store.name,
            f"was written by another version ({run.schema}, not {SCHEMA}): resume it with that version",
            run.id,
        )


def _held_segments(saved: SavedRun) -> list[Segment]:
    return list(map(Segment.unpack, saved.held()))


def _reading(store: Store, run_id: str, step: int, read: Callable[[], Any], segments: Iterable[bytes] = ()) -> Any:
    """Return what ``read`` decodes, from ``segments`` among others; raise ``StoreError`` if it cannot."""
    try:
        return read()
    except (CodecError, ValueError, TypeError, KeyError, IndexError) as error:
        if isinstance(error, StoreError):
            raise
        problem = f"holds data that cannot be read ({error}): register the types that the run uses, or restore a copy"
        raise StoreError(store.name, problem, run_id, step, _find_unreadable(segments)) from error


def _find_unreadable(segments: Iterable[bytes]) -> int | None:
    """Return the number of the first segment that cannot be read."""
    for number, data in enumerate(segments):
        try:
            Segment.unpack(data)
        except (CodecError, ValueError, TypeError, KeyError, IndexError):
            return number
    return None


def _receive(begun: BegunSuperstep, state: State) -> None:
    """Apply what happened before a superstep that may have begun."""
    begun.check_vertices(state.vertices)
    for segment in begun.segments:
        segment.receive(state)


def _read(store: Store, saved: SavedRun, keep: Callable[[int, State], object] | None = None) -> RecoveredRun:
    run = saved.run
    check_readable(store, run)

    reading = partial(_reading, store, run.id)
    base = saved.base()
    state: State = reading(saved.base_step, lambda: unpack_state(base))
    status = run.status if saved.step == run.head else "running"
    result = RecoveredRun(run.id, run.branch, saved.step + 1, state, status=status, base_size=len(base))
    result.blobs = {name: bytearray(saved.blob(name)) for name in saved.blobs}
    if keep is not None:
        keep(saved.base_step, state)
    last: SavedSuperstep | None = None
    carried: list[Segment] = []
    begun_at: int | None = None
    for commit in saved.commits():
        segments = list(commit.segments())
        result.size_since_base += len(commit.data) + sum(map(len, segments))
        read = reading(commit.step, partial(SavedSuperstep.unpack, commit.step, segments, commit.data), segments)
        if read.beside:
            from gpu_pregel.host.superstep.stored_arrays import apply_changes  # imports NumPy

            reading(commit.step, partial(apply_changes, result.blobs, read.beside))
        result.rows.append(read.row)
        begun_at = read.begun
        if read.begun is not None:
            carried += read.segments
            continue
        read.segments, carried = carried + read.segments, []
        if last is not None and read.needs_inbox:
            reading(last.step, partial(last.deliver, state))
        reading(commit.step, partial(read.apply, state))
        last = read
        if keep is not None:
            reading(commit.step, partial(read.deliver, state))
            keep(commit.step, state)
            last = None
    if last is not None:
        reading(last.step, partial(last.deliver, state))
    held = carried + reading(saved.step + 1, partial(_held_segments, saved), saved.held())
    answers = {(answer.vertex, answer.number): answer.data for answer in saved.answers}
    if begun_at is not None and saved.step == run.head:
        for step in range(run.head, begun_at - 1, -1):  # the first answer to a question counts
            answers |= {(answer.vertex, answer.number): answer.data for answer in store.answers(run.id, step)}
    result.begun.answers = [(vertex, data) for (vertex, _), data in sorted(answers.items())]
    reading(saved.step + 1, partial(_receive, BegunSuperstep(held, result.begun.answers), state))
    if any(segment.is_begun for segment in held):
        result.begun.segments = held
    return result


def read_values(store: Store, found: RecoveredRun) -> dict[str, Any]:
    """Return the values of numeric vertices beside the agents, by field."""
    if not found.blobs:
        return {}
    from gpu_pregel.host.superstep.stored_arrays import read_arrays  # imports NumPy

    def read() -> dict[str, Any]:
        arrays, facts = read_arrays(found.blobs)
        return {str(name): arrays[f"value{k}"] for k, name in enumerate(facts["fields"])}

    values: dict[str, Any] = _reading(store, found.run_id, found.superstep - 1, read)
    return values


def read_records(store: Store, run_id: str, superstep: int) -> Records:
    """Return the records of a committed superstep; none if its commit has been pruned."""
    for commit in store.load(run_id, superstep).commits():
        if commit.step == superstep:
            saved = read_commit(store, run_id, commit)
            return sorted(record for segment in saved.segments for record in segment.records)
    return []


def read_commit(store: Store, run_id: str, commit: SavedCommit) -> SavedSuperstep:
    """Decode a commit of a run."""
    segments = list(commit.segments())
    unpack = partial(SavedSuperstep.unpack, commit.step, segments, commit.data)
    saved: SavedSuperstep = _reading(store, run_id, commit.step, unpack, segments)
    return saved
