"""How a run's rows are written: one transaction that swaps the run's row, as it was read, for its successor.

Of two programs that do so at once one hits no row, reads again and sees why; so does one that got no reply.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, FencedError
from gpu_pregel.host.stores.blobs import Blob, as_blob, context_of, parts_of
from gpu_pregel.host.stores.database import TRIES, Outcome, Row, Write
from gpu_pregel.host.stores.reader import Reading
from gpu_pregel.host.stores.rows import Claim, check_text

Plan = Callable[[Row], tuple[Row, list[Write]]]
"""From a run's row to its successor, and what else to write in the same transaction."""
Settled = Callable[[Row, Row], bool]
"""Whether the run's row as it is now shows that the one tried was committed, although something changed it since."""


class Swapping(Reading):
    """Transactions on a run's row."""

    def _swap(self, read: Callable[[], Row], plan: Plan, forced: bool, settled: Settled | None = None) -> Row:
        """Swap a run's row by a plan that may be made several times; returns the row that is there then."""
        tried: list[Row] = []
        left = TRIES
        with self._lock:
            while True:
                row = read()
                if tried and _is_done(row, tried, settled):
                    return row
                new, writes = plan(row)
                try:
                    outcome = self._apply(forced, (self._sql.swap_run, (*new[8:], *_identity(row))), writes)
                except BaseException:
                    self._rows.pop(row.key, None)
                    raise
                if outcome is Outcome.DONE:
                    return new
                self._rows.pop(row.key, None)
                if outcome is Outcome.UNKNOWN:
                    tried.append(new)
                left = self._again(left)

    def _write(
        self,
        claim: Claim,
        changes: dict[str, Any],
        writes: Callable[[Row], list[Write]] | None = None,
        *,
        head: int | None = None,
        more: Sequence[Blob] = (),
        lease: Callable[[], float] | None = None,
        settled: Settled | None = None,
    ) -> None:
        """Swap the row of a run where it is still the claim's, and its head the one expected."""

        def read() -> Row:
            row = self._rows.get(claim.key)
            return row if row is not None and _why_fenced(claim, row, head) is None else self._reread(claim)

        def plan(row: Row) -> tuple[Row, list[Write]]:
            if (why := _why_fenced(claim, row, head)) is not None:
                raise FencedError(claim.run_id, why)
            now = self._now()
            until = now + claim.lease_seconds if lease is None else lease()
            held = {"pending": row.pending + len(more), "pending_size": row.pending_size + sum(map(len, more))}
            new = row.revised(**{**held, "lease": until, "changed": now, **changes})
            return new, [] if writes is None else writes(row)

        with self._lock:
            self._rows[claim.key] = self._swap(read, plan, claim.durability == "machine", settled)

    def _insert(self, row: Row, meta: Any, parts: list[tuple[str, Blob]], forced: bool) -> None:
        """Write a new run."""
        sealed = self._sealer.seal(context_of("meta", row.id), as_blob("meta", meta))
        writes = [(self._sql.insert_meta, (row.key, *sealed)), *self._base_writes(row, row.head, parts)]
        left = TRIES
        while self._apply(forced, (self._sql.insert_run, row), writes) is not Outcome.DONE:
            left = self._again(left)
            found = self._lookup(row.id)
            if found is not None and found.key == row.key:
                return
            if found is not None:
                raise ArgumentError(f"there is a run {row.id!r} in {self.name} already: give another id, or resume it")

    def _reread(self, claim: Claim) -> Row:
        found = self._query(self._sql.run_by_key, (claim.key,))
        if not found:
            self._examine("runs")
            raise FencedError(claim.run_id, "was deleted")
        return self._whole(found[0])

    def _segment_writes(self, row: Row, step: int, pieces: Sequence[Blob]) -> list[Write]:
        writes: list[Write] = []
        for number, piece in enumerate(pieces, row.pending):
            sealed = self._sealer.seal(context_of("segment", row.id, step, number), piece)
            writes.append((self._sql.insert_segment, (row.key, step, number, *sealed)))
        return writes

    def _base_writes(self, row: Row, step: int, blobs: list[tuple[str, Blob]]) -> list[Write]:
        writes: list[Write] = []
        for part, data in enumerate(parts_of(blobs)):
            sealed = self._sealer.seal(context_of("base", row.id, step, part), data)
            writes.append((self._sql.insert_base, (row.key, step, part, *sealed)))
        return writes


def new_key() -> int:
    """A random key of a run's rows."""
    return int.from_bytes(os.urandom(8), "little") >> 1


def named(base: Any, blobs: Mapping[str, Any] | None) -> list[tuple[str, Blob]]:
    """A base, which has no name, and the arrays that are stored with it."""
    given = {check_text("the name of a blob", name): value for name, value in (blobs or {}).items()}
    arrays = [(name, as_blob(f"blob {name!r}", value, limit=None)) for name, value in given.items()]
    return [("", as_blob("base", base, limit=None)), *arrays]


def as_segments(segments: Sequence[Any]) -> list[Blob]:
    """Segments that can be stored."""
    if isinstance(segments, (bytes, bytearray, memoryview, str)):
        raise ArgumentTypeError("segments must be a list of bytes, not one")
    return [as_blob("a segment", piece) for piece in segments]


def _is_done(row: Row, tried: list[Row], settled: Settled | None) -> bool:
    """Whether one of the transactions that got no reply was committed."""
    return any(row.nonce == one.nonce for one in tried) or (settled is not None and settled(row, tried[-1]))


def _identity(row: Row) -> tuple[int, int, int, bytes]:
    """What a row is found by, if it is as it was read."""
    return row.key, row.epoch, row.head, row.seal


def _why_fenced(claim: Claim, row: Row, head: int | None) -> str | None:
    """None if the claim is the newest and was not released, and the head is the one expected."""
    if row.epoch != claim.epoch:
        return f"was claimed by {row.owner} (epoch {row.epoch}) after this claim (epoch {claim.epoch})"
    if row.lease == 0:
        return "was released by this claim: claim it again"
    if head is not None and row.head != head:
        return f"has superstep {row.head:,} as its head, not {head:,}"
    return None
