"""The journal of a run: what the master writes to a store, and when.

Policies contribute parts: records, failures, questions, messages from outside. Parts wait until the oldest is 12 ms
old, until one of them must be durable before work continues, or until the superstep is committed or held; a quick
superstep is one transaction. If the master is busy when they are due, they are written on a thread. A format, which
belongs to the kind of vertices, turns parts and commits into bytes.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from gpu_pregel.errors import AgentError, ArgumentError, FencedError, StoreError
from gpu_pregel.host.stores.leases import Lease
from gpu_pregel.host.superstep.base_writer import BaseSchedule, Packing
from gpu_pregel.host.superstep.flush_timer import FlushTimer

if TYPE_CHECKING:
    from gpu_pregel.host.stores.store import Store

FLUSH_AFTER = 0.012
"""Seconds that a part may wait for others. It is durable after 20 ms, as a thread that computes in Python keeps the
global interpreter lock for 5 ms, and the transaction takes a few."""


PolicyChange = TypeVar("PolicyChange")


class FoldedSuperstep(NamedTuple, Generic[PolicyChange]):
    """The outcome of a superstep once all reports are folded; it is committed as a whole.

    Attributes
    ----------
    superstep : int
    active : int
        Vertices that are active next.
    halted : bool
        Whether the user's program ends the run here.
    change : object
        What the policy commits; each policy has its own class for it.
    row : dict
        The row of the trace.
    """

    superstep: int
    active: int
    halted: bool
    change: PolicyChange
    row: dict[str, Any]


class Answer(NamedTuple):
    """The answer to an interrupt of a vertex of the held superstep; ``number`` counts its interrupts from 0."""

    vertex: bytes
    number: int
    data: bytes


class PackedCommit(NamedTuple):
    """An encoded commit.

    Attributes
    ----------
    data : bytes
        The commit itself.
    segments : sequence of bytes
        The parts of the superstep that are not in the store yet.
    base : bytes or None
        The whole state after the superstep.
    blobs : mapping of str to buffer, optional
        Arrays that are stored with the base.
    """

    data: bytes
    segments: Sequence[bytes]
    base: bytes | None = None
    blobs: Mapping[str, Any] | None = None


class Format(Protocol):
    """The format in which the parts and commits of one kind of vertices are stored."""

    def pack(self, parts: Sequence[Any]) -> list[bytes]:
        """Encode parts as segments."""

    def pack_commit(
        self, supersteps: Sequence[FoldedSuperstep[Any]], parts: Sequence[Any], *, with_base: bool
    ) -> PackedCommit:
        """Encode supersteps as one commit, that of the last one, with the parts that are not in the store yet."""


def _nothing() -> None:
    """Return that nothing is computed."""


class Journal:
    """Writes a run to a store under a claim, and keeps the claim alive.

    Parameters
    ----------
    lease : Lease
    format : Format
    head : int
        The last committed superstep; -1 before the first.
    status : str
        The status of the run in the store.
    every : int
        Commit after this many supersteps, and when the run ends.
    base_every : int
        Number of commits between bases, counting the one that has the base.
    since_base : int
        Commits since the last base.
    base_size : int, optional
        Bytes of the last base. A base is due only if the commits since then have as many, so that the store grows in
        proportion to the changes. Default: bases are due by the number of commits alone.
    size_since_base : int
        Bytes of the commits since the last base.
    keep : int, optional
        Number of bases to keep; older ones are pruned. Default: all.
    bases : iterable of int
        The supersteps of the bases in the store, oldest first; needed with ``keep``.
    is_due : callable, optional
        ``is_due(folded)``: whether a superstep must be committed at once, whatever ``every`` says.
    begin_base : callable, optional
        Begins to encode the state after a superstep, as a copy that does not change: large bases are written in the
        background of further supersteps, but never while one is held.
    """

    def __init__(
        self,
        lease: Lease,
        format: Format,
        *,
        head: int,
        status: str = "running",
        every: int = 1,
        base_every: int = 1,
        since_base: int = 0,
        base_size: int | None = None,
        size_since_base: int = 0,
        keep: int | None = None,
        bases: Iterable[int] = (),
        is_due: Callable[[FoldedSuperstep[Any]], bool] | None = None,
        begin_base: Callable[[FoldedSuperstep[Any]], Packing] | None = None,
    ) -> None:
        self._lease, self._store, self._claim, self._format = lease, lease.store, lease.claim, format
        self._head, self._status = head, status
        self._every, self._is_due = every, is_due
        self._schedule = BaseSchedule(base_every, since_base, base_size, size_since_base)
        self._keep, self._bases = keep, list(bases)
        self._begin_base = begin_base
        self._parts: list[Any] = []
        self._oldest: float | None = None
        self._urgent = self._is_closed = False
        self._lock = threading.RLock()
        """Held while parts are written; adding more needs no lock."""
        self._adding = threading.Lock()
        self._early: dict[int, Any] = {}
        """Parts of ``watch`` that were written before they were added, by their ``id``."""
        self._finished: Callable[[], list[Any] | None] = _nothing
        self._watched = 0.0
        self._is_timed = False
        self._timer: FlushTimer | None = None
        self._supersteps: list[FoldedSuperstep[Any]] = []
        """Supersteps since the last commit."""

    @property
    def store(self) -> Store:
        """The store to which it writes."""
        return self._store

    @property
    def head(self) -> int:
        """The newest superstep in the store; -1 before the first."""
        return self._head

    # While a superstep runs.

    def add(self, parts: Sequence[Any], *, urgent: bool = False) -> None:
        """Add parts of the running superstep; urgent ones become durable before further attempts begin."""
        with self._adding:
            if self._early:
                parts = [part for part in parts if self._early.pop(id(part), None) is None]
            self._parts.extend(parts)
        self._urgent |= urgent
        if self._oldest is None and parts:
            self._note_oldest()

    def before_wait(
        self, now: float, until: float | None, finished: Callable[[], list[Any] | None] | None
    ) -> float | None:
        """Return until when the master may wait: until ``until``, or until parts must be flushed.

        With ``finished``, finished parts are written even if they cannot be added in time, as the master computes
        vertices itself. ``finished()`` is called on a thread. It returns the parts that will be added, or None once
        none is computed.
        """
        if finished is not None:
            self._finished, self._watched = finished, now
            if not self._is_timed:
                self._set_timer(FLUSH_AFTER)
        oldest = self._oldest
        if oldest is None:
            return until
        return oldest + FLUSH_AFTER if until is None else min(until, oldest + FLUSH_AFTER)

    def _note_oldest(self) -> None:
        """Note that the parts must be written in a moment."""
        self._oldest = time.monotonic()
        if not self._is_timed:
            self._set_timer(FLUSH_AFTER)

    def _set_timer(self, seconds: float) -> None:
        if self._timer is None:
            self._timer = FlushTimer(self._flush_late)
        self._is_timed = True
        self._timer.set(seconds)

    def flush_if_due(self, now: float) -> None:
        """Flush if the parts are due, or urgent."""
        oldest = self._oldest
        if oldest is not None and (self._urgent or now >= oldest + FLUSH_AFTER):
            self.flush()

    def _flush_late(self) -> None:
        """Flush on the timer's thread; an error is raised by the next flush of the master, which is urgent then."""
        with self._lock:
            self._is_timed = False
            if self._is_closed:
                return
            finished = self._finished()
            times = [] if finished is None else [self._watched]
            times += [] if self._oldest is None else [self._oldest]
            left = min(times, default=math.inf) + FLUSH_AFTER - time.monotonic()
            if left <= 0:
                left = FLUSH_AFTER
                with suppress(Exception):
                    self._take_early()
                    self.flush()
            if times:
                self._set_timer(left)

    def _take_early(self) -> None:
        """Add the finished parts before the master does."""
        self._watched = time.monotonic()
        with self._adding:
            new = [part for part in self._finished() or () if id(part) not in self._early]
            self._early.update((id(part), part) for part in new)
            self._parts.extend(new)

    def flush(self, status: str | None = None, taken: Sequence[int] = ()) -> None:
        """Write the parts, and the run's status if one is given; remove the requests ``taken``."""
        with self._lock:
            parts = self._parts[:]
            if parts or status is not None or taken:
                try:
                    segments = self._format.pack(parts) if parts else []
                    self._store.flush(self._claim, self._head + 1, segments, status, taken=taken)
                    self._schedule.add(sum(map(len, segments)))
                except BaseException:
                    self._urgent = True
                    raise
            self._clear(len(parts))

    def record(self, *parts: Any, taken: Sequence[int] = ()) -> None:
        """Make parts from outside durable before this returns; they are dropped if they cannot be written.

        ``taken``: the numbers of the requests to the run that the parts carry out.
        """
        for part in parts:
            if isinstance(part, Answer):
                self._store.answer(self._claim.run_id, self._head + 1, *part)
        others = [part for part in parts if not isinstance(part, Answer)]
        with self._lock:
            self.add(others)
            try:
                self.flush(taken=taken)
            except BaseException:
                del self._parts[len(self._parts) - len(others) :]
                raise

    def _clear(self, count: int) -> None:
        """Forget the first parts, which are written; until then they are kept, whatever interrupts the writing."""
        self._oldest, self._urgent = None, False
        del self._parts[:count]
        if self._parts:  # added meanwhile
            self._note_oldest()

    # Between supersteps.

    def until_commit(self, superstep: int) -> int:
        """Return how many supersteps there are from this one to the next that is committed to the store."""
        return self._every - superstep % self._every

    def commit(self, folded: FoldedSuperstep[Any], status: str) -> None:
        """Make a superstep durable and set the status of the run; repeating this changes nothing."""
        step = folded.superstep
        if step <= self._head:
            return
        if self._supersteps and self._supersteps[-1].superstep == step:
            self._supersteps.pop()  # its commit failed, and it was folded again
        self._supersteps.append(folded)
        if status == "running" and (step + 1) % self._every and not (self._is_due and self._is_due(folded)):
            return
        with self._lock:
            self._write_commit(step, status)
        self._prune()

    def _write_commit(self, step: int, status: str) -> None:
        """Write the supersteps since the last commit."""
        schedule = self._schedule
        schedule.end(wait=status != "running")
        with_base = schedule.is_due()
        packing: Packing | None = None
        written: PackedCommit | None = None
        try:
            if with_base and schedule.is_large and status == "running" and self._begin_base is not None:
                packing, with_base = self._begin_base(self._supersteps[-1]), False
            written = self._format.pack_commit(self._supersteps, self._parts, with_base=with_base)
            self._store.commit(
                self._claim,
                step,
                written.data,
                written.segments,
                status,
                base=written.base,
                blobs=written.blobs,
                after=self._head,
            )
            self._committed(step, status, written)
            if packing is not None:
                put = self._store.put_base
                schedule.begin(packing, lambda data: put(self._claim, step, data))
        except BaseException:
            if written and self._is_committed(step):  # the connection was lost afterwards, or the program interrupted
                self._committed(step, status, written)
            else:
                self._urgent = True
            raise

    def _committed(self, step: int, status: str, written: PackedCommit) -> None:
        """Note a commit; repeating it changes nothing."""
        if step <= self._head:
            return
        self._clear(len(self._parts))
        self._early.clear()
        self._supersteps.clear()
        base_size = None if written.base is None else len(written.base)
        self._schedule.add(len(written.data) + sum(map(len, written.segments)), commits=1, base_size=base_size)
        if written.base is not None and self._keep is not None and step not in self._bases:
            self._bases.append(step)
        self._head, self._status = step, status

    def _prune(self) -> None:
        """Remove bases beyond those that are kept, and the commits before them."""
        if self._keep is not None and len(self._bases) > self._keep:
            self._bases = self._bases[-self._keep :]
            self._store.prune(self._claim.run_id, before=self._bases[0])

    def _is_committed(self, step: int) -> bool:
        """Whether the store has a superstep under this claim, as far as the store can be read."""
        with suppress(StoreError, ArgumentError):  # it is unreachable, or the run was deleted
            row = self._store.run(self._claim.run_id)
            return row.head == step and row.epoch == self._claim.epoch
        return False

    def hold(self, superstep: int, status: str) -> None:  # noqa: ARG002
        """Write the parts of a held superstep, and the run's status."""
        self._schedule.end(wait=True)
        self.flush(status)
        self._status = status

    def drop(self) -> None:
        """Release the claim of a run that nobody refers to any more, without waiting; what is not written is lost."""
        self._is_closed = True
        self._schedule.cancel()
        if self._timer is not None:
            self._timer.close(wait=False)
        self._lease.drop()

    def close(self) -> None:
        """Write the parts and release the claim, so that any program may resume the run immediately."""
        try:
            if not self._lease.is_released:
                # Another program has the run, or the store rejects the parts: their vertices are computed again.
                with suppress(FencedError, StoreError, AgentError):
                    self._schedule.end(wait=True)
                    self.flush("stopped" if self._status == "running" else None)
        finally:
            self._is_closed = True
            if self._timer is not None:
                self._timer.close()
            self._lease.release()
