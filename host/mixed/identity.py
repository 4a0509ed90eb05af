"""What a stored run with agents belongs to: its graph, program and start, kept as an aggregate that never changes."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING

from gpu_pregel.errors import CheckpointError, UnknownRunError
from gpu_pregel.host.agents.recovery import read_run
from gpu_pregel.host.agents.results import decode_aggregates
from gpu_pregel.host.programs.checkpoints import Checkpoint, Identity, difference, differs
from gpu_pregel.host.superstep.aggregators import InternalAggregator

if TYPE_CHECKING:
    from gpu_pregel.host.stores.store import Store

IDENTITY = "identity of the run"
"""With spaces it is no name that a program may use."""


def identity_aggregator(identity: Identity, vertices: str | None = None) -> dict[str, InternalAggregator]:
    """Return the aggregator that keeps an identity, by its name; ``vertices`` is a digest of the agents' vertices."""
    return {IDENTITY: InternalAggregator("last", initial=[*identity, vertices], persistent=True)}


def open_store(checkpoint: Checkpoint, stack: ExitStack) -> Store:
    """Return the store of a checkpoint; the stack closes one that is opened here."""
    given = checkpoint.store
    if not isinstance(given, (str, os.PathLike)):
        return given
    from gpu_pregel.host.stores.sqlite import SQLiteStore

    return stack.enter_context(SQLiteStore(given))


def is_stored(
    store: Store, run_id: str, kind: str, identity: Identity, vertices: str | None = None, *, resume: bool
) -> bool:
    """Whether the store has this run; raise if it may not be resumed, or is another one."""
    try:
        row = store.run(run_id)
    except UnknownRunError:
        return False
    where = f"{store.name}, run {run_id!r}, superstep {row.head}"
    if not resume:
        raise CheckpointError(
            store.name,
            f"already has a run {run_id!r}: pass resume=True to resume it from its newest checkpoint, or choose "
            f"another run_id or file to start a new run",
        )
    if row.kind != kind:
        raise CheckpointError(
            where,
            f"belongs to a run of {row.kind} vertices: choose another run_id, or pass the program, the agents and the "
            f"device that it was started with",
        )
    saved = decode_aggregates(read_run(store, run_id).state.aggregates).get(IDENTITY)
    if saved is None:
        raise CheckpointError(where, "belongs to a run of gp.agents: choose another run_id")
    *facts, chosen = saved
    if differs(Identity(*facts), identity):
        raise CheckpointError(where, difference(Identity(*facts), identity))
    if chosen != vertices:
        raise CheckpointError(
            where,
            "belongs to a run with other vertices= of gp.Agents: choose another run_id, or pass those that it was "
            "started with",
        )
    return True
