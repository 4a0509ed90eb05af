"""A run's claim on a store: what is written of each superstep, and when.

Records wait until the oldest is 20 ms old, a failed attempt is to be made again, or the superstep is committed or held:
a quick superstep is one transaction.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from gpu_pregel.errors import AgentError, ArgumentError, FencedError, StoreError
from gpu_pregel.host.agents.codec import decode
from gpu_pregel.host.agents.fold import Next, state_after
from gpu_pregel.host.agents.formats import (
    FAILED,
    INTERRUPTED,
    RECEIVED,
    RETRIED,
    SENT,
    Segment,
    pack_commit,
    pack_state,
)
from gpu_pregel.host.agents.records import Id, Outcome
from gpu_pregel.host.agents.state import State
from gpu_pregel.host.stores.blobs import MAX_BLOB
from gpu_pregel.host.stores.leases import Lease
from gpu_pregel.host.superstep.master import Folded

if TYPE_CHECKING:
    from gpu_pregel.host.stores.rows import Claim
    from gpu_pregel.host.stores.store import Store

FLUSH_AFTER = 0.02
"""Seconds that a record may wait for others."""
_MAX_SEGMENT = 1 << 28
_MOST_INSIDE, _LARGEST_INSIDE = 16, 2048
"""A commit's last segment lies inside it if so few things happened, and both take so few bytes: that saves a row."""
SCHEMA = 2
"""Of the formats in ``saving``."""


class Journal:
    """Writes a run into a store, under a claim that it keeps alive.

    Parameters
    ----------
    store : Store
    claim : Claim
    head : int
        The superstep committed last.
    state : State
        The run's, for bases.
    base_every : int
        A base after so many commits.
    since_base : int
        How many there have been since the last one.
    status : str
        Of the run in the store.
    """

    def __init__(
        self,
        store: Store,
        claim: Claim,
        head: int,
        state: State,
        base_every: int,
        since_base: int = 0,
        status: str = "running",
    ) -> None:
        self._store, self._claim, self._head, self._state = store, claim, head, state
        self._base_every, self._since_base = base_every, since_base
        self._pending = Segment()
        self._begun: float | None = None
        self._urgent = False
        self._status = status
        self._lease = Lease(store, claim)

    # What happens in a superstep.

    def add(self, outcomes: list[Outcome]) -> None:
        """Attempts that completed; of failed and interrupted ones ``add_failure`` and ``add_question`` tell."""
        self._pending.records += [(outcome.id, outcome.result) for outcome in outcomes if outcome.status == "completed"]
        self._start()

    def add_failure(self, vertex: Id, attempts: int, failure: Iterable[Any], again: bool) -> None:
        """So many attempts failed; it is to be on record before there is another."""
        self._pending.others.append((FAILED, vertex, attempts, tuple(failure), again))
        self._start()
        self._urgent |= again

    def add_question(self, vertex: Id, attempts: int, payload: bytes, asked: int) -> None:
        """A vertex waits for an answer."""
        self._pending.others.append((INTERRUPTED, vertex, attempts, payload, asked))
        self._start()

    def add_retry(self, vertices: Iterable[Id]) -> None:
        """Failed vertices have a fresh set of attempts; that is durable at once."""
        self._pending.others += [(RETRIED, vertex) for vertex in vertices]
        self.flush()

    def add_message(self, target: Id, message: bytes, held: bool) -> None:
        """A message came from outside, for this superstep, or while it is held for the next: durable, or not sent."""
        self._pending.others.append((SENT if held else RECEIVED, target, message))
        try:
            self.flush()
        except BaseException:
            self._pending.others.pop()
            raise

    def answer(self, vertex: Id, number: int, answer: bytes) -> None:
        """An answer, durable at once."""
        self._store.answer(self._claim.run_id, self._head + 1, vertex, number, answer)

    def _start(self) -> None:
        if self._begun is None:
            self._begun = time.monotonic()

    @property
    def due(self) -> float | None:
        """When what waits is to be flushed, by the monotonic clock; None if nothing waits."""
        return None if self._begun is None else self._begun + FLUSH_AFTER

    def flush_if_due(self, at_once: bool = False) -> None:
        """Flush if it is time, if attempts are to begin that what waits must come before, or in any case."""
        if self._begun is None:
            return
        if at_once or self._urgent or time.monotonic() >= self._begun + FLUSH_AFTER:
            self.flush()

    def flush(self, status: str | None = None) -> None:
        """Write what waits, and the run's status if given."""
        segment = self._take()
        if not segment and status is None:
            return
        try:
            self._store.flush(self._claim, self._head + 1, _packed(segment), status)
        except BaseException:
            self._give_back(segment)
            raise

    def _take(self) -> Segment:
        segment, self._pending, self._begun, self._urgent = self._pending, Segment(), None, False
        return segment

    def _give_back(self, segment: Segment) -> None:
        """What was not written waits still."""
        if segment:
            self._pending = Segment(segment.records + self._pending.records, segment.others + self._pending.others)
            self._urgent = True
            self._start()

    # What the master asks.

    def commit(self, folded: Folded, status: str) -> None:
        """Write the commit of a superstep, with the records that wait, as one transaction."""
        step = folded.superstep
        if step <= self._head:
            return
        after: Next = folded.change[0]
        base = None
        if self._since_base + 1 >= self._base_every:
            base = pack_state(state_after(self._state, after))
        segment = self._take()
        try:
            data, packed = _packed_commit(after, folded.row, segment)
            self._store.commit(self._claim, step, data, packed, status, base=base)
        except BaseException:
            if self._is_committed(step):  # it was cut off on its way back
                self._head, self._status = step, status
            else:
                self._give_back(segment)
            raise
        self._head, self._status = step, status
        self._since_base = 0 if base is not None else self._since_base + 1

    def _is_committed(self, step: int) -> bool:
        """Whether the store has a superstep under this claim, as far as it can be asked."""
        with suppress(StoreError, ArgumentError):  # it is away; or the run was deleted
            row = self._store.run(self._claim.run_id)
            return row.head == step and row.epoch == self._claim.epoch
        return False

    def hold(self, superstep: int, status: str) -> None:  # noqa: ARG002
        """Write what there is of a superstep that is held, and the run's status."""
        self.flush(status)
        self._status = status

    def close(self) -> None:
        """Write what waits, and give the claim back, so that anybody may go on with the run at once."""
        try:
            if not self._lease.is_released:
                # Somebody else has the run; or the store is away, or cannot hold what waits: it is computed again.
                with suppress(FencedError, StoreError, AgentError):
                    self.flush("stopped" if self._status == "running" else None)
        finally:
            self._lease.release()


def _packed_commit(after: Next, row: dict[str, Any], segment: Segment) -> tuple[bytes, list[bytes]]:
    """A commit as bytes, and its last segment, unless that is in it."""
    if _is_small(segment):
        data = pack_commit(after, row, segment)
        if len(data) <= _LARGEST_INSIDE:
            return data, []
    return pack_commit(after, row, None), _packed(segment)


def _is_small(segment: Segment) -> bool:
    """Whether it may be worth a trial to have a segment in its commit."""
    if not 0 < len(segment) <= _MOST_INSIDE:
        return False
    return sum([len(record.value or b"") + len(record.outbox) for _, record in segment.records]) <= _LARGEST_INSIDE


def _packed(segment: Segment) -> list[bytes]:
    """A segment as bytes, divided where it would be too large for a row."""
    if not segment:
        return []
    data = segment.pack()
    if len(data) <= _MAX_SEGMENT:
        return [data]
    if len(segment) > 1:
        return [piece for half in segment.halves for piece in _packed(half)]
    if len(data) > MAX_BLOB:
        vertex = [*segment.records, *(other[1:] for other in segment.others)][0][0]
        raise AgentError(
            f"what vertex {decode(vertex)!r} leaves, or is sent, takes {len(data):,} bytes, and a store holds "
            f"{MAX_BLOB:,} in one piece: let it be less; with max_record= such a vertex fails alone"
        )
    return [data]
