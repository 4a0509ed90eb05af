"""Threads of LangGraph in a store: what ``LangGraphSaver`` does, in terms of ids and values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from gpu_pregel.errors import ArgumentError, StoreError
from gpu_pregel.host.agents.codec import decode, encode
from gpu_pregel.host.stores.database import WriteOutcome
from gpu_pregel.host.stores.thread_rows import CheckpointRow, ThreadRow, WriteRow, new_thread_row
from gpu_pregel.host.stores.thread_table import MissingValuesError, ThreadTable
from gpu_pregel.workflows.langgraph_checkpoints import (
    CheckpointRecord,
    NewCheckpoint,
    Place,
    ThreadHead,
    ThreadHeads,
    encode_value,
    read_record,
    read_values,
)
from gpu_pregel.workflows.value_chains import ChainReader

_MAX_READS = 20
"""Maximum number of times that a checkpoint is read again while other programs delete others."""
_DELTAS = "counters_since_delta_snapshot"
"""In the metadata: the channels whose values LangGraph computes from the writes of earlier checkpoints."""


class SavedCheckpoint(NamedTuple):
    """A checkpoint with its values.

    Attributes
    ----------
    thread, namespace, id : str
    parent : str or None
    checkpoint, metadata : dict
    writes : list of (str, str, object)
        The task, the channel and the value of each write, in the order in which LangGraph applies them.
    """

    thread: str
    namespace: str
    id: str
    parent: str | None
    checkpoint: dict[str, Any]
    metadata: dict[str, Any]
    writes: list[tuple[str, str, Any]]


class Threads:
    """The threads in a store.

    Parameters
    ----------
    table : ThreadTable
    forced : bool
        Force each transaction to disk.
    """

    def __init__(self, table: ThreadTable, forced: bool) -> None:
        table.prepare()
        self._table = table
        self._forced = forced
        self._heads = ThreadHeads(table.database)

    # Writing

    def put(self, place: Place, new: NewCheckpoint, parent: str | None, run: str | None) -> None:
        """Store a checkpoint that follows another one, in one transaction."""
        head = self._heads.get(place)
        attempt = 0
        while True:
            if head is None or head.parent is None or head.parent.id != parent:
                head = self._read_head(place, parent)
            try:
                after, checkpoint, values = new.after(head, self._table, parent, run)
            except MissingValuesError:
                if self._table.find(*place) == head.row:
                    raise
            else:
                if self._table.put(head.row, after.row, checkpoint, values, self._forced):
                    self._heads.set(place, after)
                    return
                if self._table.checkpoint(head.row, new.id) == checkpoint:
                    return  # the connection was lost after the commit
            head = None
            attempt = self._table.database.next_attempt(attempt)

    def put_writes(
        self, place: Place, checkpoint: str, writes: Mapping[int, tuple[str, Any]], task: str, path: str, replace: bool
    ) -> None:
        """Store what a task has written after a checkpoint, by number, in one transaction."""
        rows = [
            WriteRow(checkpoint, task, number, _pack_write(len(writes), path, channel, value))
            for number, (channel, value) in writes.items()
        ]
        if not rows:
            return
        head = self._heads.get(place)
        row = self._row(place) if head is None else head.row
        attempt = 0
        while not self._table.put_writes(row, rows, replace, self._forced):
            attempt = self._table.database.next_attempt(attempt)
            row = self._row(place)

    def _row(self, place: Place) -> ThreadRow:
        """Return the row of a namespace, created if there is none."""
        attempt = 0
        while (row := self._table.find(*place)) is None:
            self._table.create(*place)
            attempt = self._table.database.next_attempt(attempt)
        return row

    def _read_head(self, place: Place, parent: str | None) -> ThreadHead:
        row = self._table.find(*place) or new_thread_row(*place)
        found = None if parent is None or row.version == 0 else self._table.checkpoint(row, parent)
        return ThreadHead(row, None) if found is None else ThreadHead(row, found, read_record(found))

    # Reading

    def get(self, place: Place, checkpoint: str | None) -> SavedCheckpoint | None:
        """Return a checkpoint, by default the latest, or None."""
        problem: StoreError | None = None
        for _ in range(_MAX_READS):
            row = self._table.find(*place)
            wanted = checkpoint or (row.latest if row is not None else "")
            if row is None or not wanted:
                return None
            found = self._table.checkpoint(row, wanted)
            if found is None and checkpoint:
                return None
            if found is None:
                problem = self._table.damage(row, wanted, "is missing")
            else:
                try:
                    return self._load(found, read_record(found), self._reader(found))
                except MissingValuesError as error:
                    problem = error
            if self._table.find(*place) == row:
                break
        assert problem is not None
        raise problem

    def find_all(
        self,
        thread: str | None,
        namespace: str | None,
        checkpoint: str | None,
        *,
        before: str | None,
        limit: int | None,
        matches: Mapping[str, Any],
    ) -> Iterator[SavedCheckpoint]:
        """Yield checkpoints, the greatest id first; None stands for all."""
        if checkpoint is not None and thread is not None and namespace is not None:
            one = self.get((thread, namespace), checkpoint)
            rows = iter(() if one is None or (before is not None and checkpoint >= before) else (one,))
            yield from islice((row for row in rows if _has(row.metadata, matches)), limit)
            return
        found = self._find(thread, namespace, before, None if matches or checkpoint is not None else limit)
        yield from islice(self._load_all(found, checkpoint, matches), limit)

    def _find(
        self, thread: str | None, namespace: str | None, before: str | None, limit: int | None
    ) -> Iterator[CheckpointRow]:
        if thread is None or namespace is None:
            return self._table.of_thread(thread, before, limit)
        row = self._table.find(thread, namespace)
        return iter(()) if row is None else self._table.of_namespace(row, before, limit)

    def _load_all(
        self, rows: Iterator[CheckpointRow], checkpoint: str | None, matches: Mapping[str, Any]
    ) -> Iterator[SavedCheckpoint]:
        readers: dict[int, tuple[CheckpointRow, ChainReader]] = {}
        for row in rows:
            if checkpoint is not None and row.id != checkpoint:
                continue
            record = read_record(row)
            if not _has(record.metadata, matches):
                continue
            reader = readers.setdefault(row.key, (row, self._reader(row)))[1]
            try:
                yield self._load(row, record, reader)
            except MissingValuesError:
                again = self.get((row.thread, row.namespace), row.id)
                if again is not None:  # otherwise it was deleted in the meantime
                    yield again

    def _reader(self, row: CheckpointRow) -> ChainReader:
        return ChainReader(lambda chain, position: self._table.values(row, chain, position))

    def _load(self, row: CheckpointRow, record: CheckpointRecord, reader: ChainReader) -> SavedCheckpoint:
        checkpoint = {**record.checkpoint, "channel_values": read_values(record, reader)}
        writes = self._read_writes(row)
        return SavedCheckpoint(row.thread, row.namespace, row.id, row.parent, checkpoint, record.metadata, writes)

    def _read_writes(self, row: CheckpointRow) -> list[tuple[str, str, Any]]:
        writes = []
        missing: Counter[str] = Counter()
        for write in self._table.writes(row):
            together, path, channel, data = decode(write.data, name="a write")
            writes.append(((path, write.task, write.number), channel, data))
            missing[write.task] = max(missing[write.task], together)
        missing.subtract(at[1] for at, _, _ in writes)
        if +missing:
            raise self._table.damage(row, row.id, f"writes of task {next(iter(+missing))!r} are missing")
        writes.sort(key=lambda write: write[0])
        return [(at[1], channel, decode(data, name=f"the write to {channel!r}")) for at, channel, data in writes]

    # Deleting and copying

    def delete(self, thread: str) -> None:
        """Delete a thread with all its namespaces."""
        attempt = 0
        while rows := self._table.namespaces(thread):
            if self._table.delete(rows, self._forced):
                break
            attempt = self._table.database.next_attempt(attempt)
        self._forget(rows)

    def delete_runs(self, runs: Collection[str]) -> None:
        """Delete the checkpoints that runs have made."""
        found = {row.key: row for run in runs for row in self._table.threads_of_run(run)}
        for row in found.values():
            self._keep_only(row, lambda rows: {one.id for one in rows if one.run not in runs})

    def prune(self, thread: str) -> None:
        """Delete all checkpoints of a thread but the latest of each namespace, and what that one needs."""
        for row in self._table.namespaces(thread):
            self._keep_only(row, _latest_with_deltas)

    def _keep_only(self, row: ThreadRow, choose: Callable[[Sequence[CheckpointRow]], set[str]]) -> None:
        """Delete the checkpoints of a namespace that are not chosen."""
        current: ThreadRow | None = row
        attempt = 0
        while current is not None:
            rows = list(self._table.of_namespace(current, None))
            kept = choose(rows)
            gone = [one.id for one in rows if one.id not in kept]
            if not gone:
                return
            new = None
            if kept:
                new = current.revised(checkpoints=len(kept), chains=current.chains, latest=max(kept))
            ends = self._unused_ends(current, [one for one in rows if one.id in kept])
            if self._table.delete_checkpoints(current, new, gone, ends, self._forced):
                break
            attempt = self._table.database.next_attempt(attempt)
            current = self._table.find(row.id, row.namespace)
        self._forget([row])

    def _unused_ends(self, row: ThreadRow, kept: Sequence[CheckpointRow]) -> dict[int, int]:
        """Return the last position that is needed of each chain with rows after it, -1 for one that is not needed."""
        needed: dict[int, int] = {}
        for one in kept:
            for stored in read_record(one).values.values():
                if not isinstance(stored, bytes):
                    chain, position = stored
                    needed[chain] = max(position, needed.get(chain, -1))
        ends = {chain: (needed.get(chain, -1), end) for chain, end in self._table.chains(row).items()}
        return {chain: last for chain, (last, end) in ends.items() if last < end}

    def copy(self, source: str, target: str) -> None:
        """Copy a thread with all its namespaces to a new one."""
        attempt = 0
        copies: list[tuple[ThreadRow, ThreadRow]] = []
        while True:
            found = self._table.namespaces(target)
            if found and {row.key for row in found} <= {new.key for _, new in copies}:
                return  # the connection was lost after the commit
            if found:
                raise ArgumentError(f"thread {target!r} exists in {self._table.database.name}: delete it first")
            rows = self._table.namespaces(source)
            if not rows:
                raise ArgumentError(f"no thread {source!r} in {self._table.database.name}")
            copies = [(row, _copied(row, target)) for row in rows]
            if self._table.copy(copies, self._forced) is WriteOutcome.COMMITTED:
                return
            attempt = self._table.database.next_attempt(attempt)

    def _forget(self, rows: Sequence[ThreadRow]) -> None:
        for row in rows:
            self._heads.set((row.id, row.namespace), None)


def _pack_write(together: int, path: str, channel: str, value: Any) -> bytes:
    """Encode a write, with the number of those that are stored together."""
    return encode((together, path, channel, encode_value(value, f"the write to {channel!r}")))


def _has(metadata: Mapping[str, Any], matches: Mapping[str, Any]) -> bool:
    return all(metadata.get(key) == value for key, value in matches.items())


def _copied(row: ThreadRow, target: str) -> ThreadRow:
    new = new_thread_row(target, row.namespace)
    return new.revised(checkpoints=row.checkpoints, chains=row.chains, latest=row.latest)


def _latest_with_deltas(rows: Sequence[CheckpointRow]) -> set[str]:
    """Return the latest checkpoint, and those before it from whose writes LangGraph computes values that it lacks."""
    by_id = {row.id: row for row in rows}
    row: CheckpointRow | None = rows[0] if rows else None
    kept: set[str] = set()
    missing: set[str] | None = None
    while row is not None and row.id not in kept and missing != set():
        kept.add(row.id)
        record = read_record(row)
        if missing is None:
            missing = set(record.metadata.get(_DELTAS) or ())
        missing -= record.values.keys()
        row = by_id.get(row.parent or "")
    return kept
