"""What a run of agents begins with: vertices as given, a checkpoint's data, or what a store has."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from gpu_pregel.errors import ArgumentError, CodecError, StoreError
from gpu_pregel.host.agents.formats import Checkpoint, Commit, Segment, pack_state, unpack_state
from gpu_pregel.host.agents.journal import SCHEMA, Journal
from gpu_pregel.host.agents.ledger import Ledger
from gpu_pregel.host.agents.options import Call, Vertex, new_run_id
from gpu_pregel.host.agents.records import Id
from gpu_pregel.host.agents.state import State
from gpu_pregel.host.stores.leases import claim_run, owner

if TYPE_CHECKING:
    from gpu_pregel.host.stores.saved_run import SavedRun
    from gpu_pregel.host.stores.store import Store


@dataclass
class Beginning:
    """A run's state, and what there is of the superstep that is next.

    Attributes
    ----------
    run_id : str
    branch : int
    superstep : int
        That comes next.
    state : State
    segments, answers
        Of that superstep, if it was begun.
    status : str
    rows : list of dict
        Of the trace.
    journal : Journal or None
    """

    run_id: str
    branch: int
    superstep: int
    state: State
    segments: list[Segment] = field(default_factory=list)
    answers: list[tuple[Id, bytes]] = field(default_factory=list)
    status: str = "running"
    rows: list[dict[str, Any]] = field(default_factory=list)
    journal: Journal | None = None

    def ledger(self) -> Ledger:
        """What is known of those that failed, wait for an answer or have completed in that superstep."""
        ledger = Ledger(self.superstep, [], self.state.inbox)
        for segment in self.segments:
            segment.replay(ledger)
        for vertex, answer in self.answers:
            ledger.answer(vertex, answer)
        return ledger


def begin(given: Iterable[Vertex] | bytes, call: Call) -> Beginning:
    """A new run, of vertices or from a checkpoint's data; in a store, if the call names one."""
    if isinstance(given, bytes):
        if call.store is not None:
            raise ArgumentError("a run from checkpoint_data cannot begin in a store: use gp.agents.resume with a store")
        saved = Checkpoint.unpack(given)
        call.check_fits(saved.state)
        segments = [] if saved.segment is None else [saved.segment]
        return Beginning(saved.run_id, 0, saved.superstep, saved.state, segments, saved.answers)
    state, run_id = call.load(given), new_run_id() if call.run_id is None else call.run_id
    result = Beginning(run_id, 0, 0, state)
    if call.store is not None:
        claim = call.store.create(
            run_id,
            "agents",
            pack_state(state),
            owner=owner(),
            lease_seconds=call.lease_seconds,
            durability=call.durability,
            schema=SCHEMA,
        )
        result.journal = Journal(call.store, claim, -1, state, call.base_every)
    return result


def begin_from_store(store: Store, run_id: str, call: Call, *, takeover: bool) -> Beginning:
    """Claim a run, and read what there is of it."""
    claim = claim_run(store, run_id, lease_seconds=call.lease_seconds, durability=call.durability, takeover=takeover)
    try:
        result = read_run(store, run_id)
        call.check_fits(result.state)
    except BaseException:
        store.release(claim)
        raise
    head, since_base = result.superstep - 1, len(result.rows)
    result.journal = Journal(store, claim, head, result.state, call.base_every, since_base, result.status)
    return result


def read_run(store: Store, run_id: str, superstep: int | None = None) -> Beginning:
    """What a store has of a run of agents up to a superstep; its rows are those of the commits since the base.

    It is read once more where the run changed between two of its parts.
    """
    saved = store.load(run_id, superstep)
    try:
        return _read(store, saved)
    except StoreError:
        again = store.load(run_id, superstep)
        if again.run == saved.run:
            raise
        return _read(store, again)


def _read(store: Store, saved: SavedRun) -> Beginning:
    run = saved.run
    if run.kind != "agents":
        raise ArgumentError(f"run {run.id!r} is one of {run.kind} vertices: gp.run goes on with it")
    if run.schema != SCHEMA:
        raise StoreError(
            store.name, f"was written by another version ({run.schema}, not {SCHEMA}): go on with that one", run.id
        )

    def reading(step: int, read: Callable[[], Any]) -> Any:
        try:
            return read()
        except (CodecError, ValueError, TypeError, KeyError, IndexError) as error:
            if isinstance(error, StoreError):
                raise
            problem = f"holds what cannot be read ({error}): register the types that the run uses, or restore a copy"
            raise StoreError(store.name, problem, run.id, step) from error

    state: State = reading(saved.base_step, lambda: unpack_state(saved.base()))
    status = run.status if saved.step == run.head else "running"
    result = Beginning(run.id, run.branch, saved.step + 1, state, status=status)
    for commit in saved.commits():
        read = reading(commit.step, partial(Commit.unpack, commit.step, commit.segments(), commit.data))
        reading(commit.step, partial(read.advance, state))
        result.rows.append(read.row)
    held = reading(saved.step + 1, partial(_unpack, saved.held))
    for segment in held:
        segment.receive(state.inbox)
    if any(segment.is_begun for segment in held):
        result.segments = held
    result.answers = [(answer.vertex, answer.data) for answer in saved.answers]
    return result


def _unpack(segments: Callable[[], Iterable[bytes]]) -> list[Segment]:
    return [Segment.unpack(data) for data in segments()]
