"""Conversation threads in a store: their checkpoints, the values of these, and the writes of tasks, all as bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from gpu_pregel.errors import StoreError
from gpu_pregel.host.stores.blobs import BlobFormat, DamagedError, context_of
from gpu_pregel.host.stores.database import Database, Write, WriteOutcome
from gpu_pregel.host.stores.thread_rows import CheckpointRow, ThreadRow, ValueRow, WriteRow, new_thread_row
from gpu_pregel.host.stores.thread_schema import THREADS, ThreadStatements

_FIRST_PAGE, _LAST_PAGE = 16, 1024
"""Rows of the first page of a list, and at most of later ones, each of which has four times as many."""
_AFTER_ALL = "\U0010ffff"
"""Sorts after every id of a checkpoint, as they are printable."""
_MAX_KEY = (1 << 63) - 1


class MissingValuesError(StoreError):
    """Required rows of a thread are missing: they were lost, or deleted between two queries."""


class ThreadTable:
    """Reads and writes threads. Where there are no tables yet, there are no threads."""

    def __init__(self, database: Database, blob_format: BlobFormat) -> None:
        self.database = database
        self._format = blob_format
        self._sql = database.dialect.translate(ThreadStatements)
        self._has_tables = False

    def prepare(self) -> None:
        """Create the tables, or update them to this release's version, unless the store is only read."""
        is_newest = self.database.table_version(THREADS) == len(THREADS.migrations)
        if not is_newest and not self.database.read_only:
            self.database.create_tables(THREADS)

    def damage(
        self,
        place: ThreadRow | CheckpointRow,
        checkpoint: str | None,
        problem: str,
        kind: type[StoreError] = StoreError,
    ) -> StoreError:
        """Return an error about damaged or unreadable data of a thread."""
        thread = place.thread if isinstance(place, CheckpointRow) else place.id
        where = f"thread {thread!r}"
        if place.namespace:
            where += f", namespace {place.namespace!r}"
        if checkpoint is not None:
            where += f", checkpoint {checkpoint}"
        remedy = "" if "cipher=" in problem else ": restore a copy of the store, or continue from an earlier checkpoint"
        return kind(self.database.name, f"{where}: {problem}{remedy}")

    # Reading

    def find(self, thread: str, namespace: str) -> ThreadRow | None:
        """Return the row of a namespace of a thread, or None."""
        found = self._query(self._sql.thread, (thread, namespace))
        return self._verified(found[0]) if found else None

    def namespaces(self, thread: str) -> list[ThreadRow]:
        """Return the rows of all namespaces of a thread."""
        return [self._verified(row) for row in self._query(self._sql.namespaces, (thread,))]

    def threads_of_run(self, run: str) -> list[ThreadRow]:
        """Return the rows of the namespaces with checkpoints that a run made."""
        return [self._verified(row) for row in self._query(self._sql.threads_of_run, (run,))]

    def checkpoint(self, row: ThreadRow, checkpoint: str) -> CheckpointRow | None:
        """Return a checkpoint, or None."""
        found = self._query(self._sql.checkpoint, (row.key, checkpoint))
        return self._checkpoint(found[0]) if found else None

    def of_namespace(self, row: ThreadRow, before: str | None, limit: int | None = None) -> Iterator[CheckpointRow]:
        """Yield the checkpoints of a namespace with ids below ``before``, the greatest id first."""
        last = _AFTER_ALL if before is None else before
        count = 0
        for size in _page_sizes(limit):
            found = self._query(self._sql.page_of_namespace, (row.key, last, size))
            yield from map(self._checkpoint, found)
            count += len(found)
            if len(found) < size:
                break
            last = found[-1][3]
        if before is None and count != row.checkpoints and self.find(row.id, row.namespace) == row:
            raise self.damage(row, None, f"has {row.checkpoints:,} checkpoints, but {count:,} are found")

    def of_thread(self, thread: str | None, before: str | None, limit: int | None = None) -> Iterator[CheckpointRow]:
        """Yield the checkpoints of all namespaces of a thread, or of all threads, the greatest id first."""
        last, key = (_AFTER_ALL, _MAX_KEY) if before is None else (before, -1)
        sql, which = (self._sql.page_of_all, ()) if thread is None else (self._sql.page_of_thread, (thread,))
        rows = [] if thread is None or before is not None else self.namespaces(thread)
        count = 0
        for size in _page_sizes(limit):
            found = self._query(sql, (*which, last, key, size))
            yield from map(self._checkpoint, found)
            count += len(found)
            if len(found) < size:
                break
            key, last = found[-1][0], found[-1][3]
        total = sum(row.checkpoints for row in rows)
        if rows and count != total and self.namespaces(rows[0].id) == rows:
            raise self.damage(rows[0], None, f"all namespaces have {total:,} checkpoints, but {count:,} are found")

    def values(self, place: ThreadRow | CheckpointRow, chain: int, position: int) -> list[bytes]:
        """Return a value and its differences up to a position of a chain."""
        found = self._query(self._sql.values, (place.key, chain, position))
        checkpoint = place.id if isinstance(place, CheckpointRow) else None
        if [row[0] for row in found] != list(range(position + 1)):
            raise self.damage(place, checkpoint, f"rows of chain {chain} of its values are missing", MissingValuesError)
        return [
            self._content(place, checkpoint, "a value", ("value", chain, number), header, data)
            for number, header, data in found
        ]

    def chain_end(self, key: int, chain: int) -> int:
        """Return the last position of a chain, -1 if it is empty."""
        end = self._query(self._sql.chain_end, (key, chain))[0][0]
        return -1 if end is None else int(end)

    def chains(self, row: ThreadRow) -> dict[int, int]:
        """Return the last position of each chain of a namespace."""
        return {int(chain): int(end) for chain, end in self._query(self._sql.chains, (row.key,))}

    def writes(self, place: CheckpointRow) -> list[WriteRow]:
        """Return the writes stored after a checkpoint."""
        found = self._query(self._sql.writes, (place.key, place.id))
        if any(row[0] != place.id for row in found):
            raise self.damage(place, place.id, "its writes are damaged (a row is of another checkpoint)")
        return [self._write(place, *row) for row in found]

    def all_writes(self, row: ThreadRow) -> list[WriteRow]:
        """Return the writes of a namespace, also those of checkpoints that are not stored."""
        return [self._write(row, *found) for found in self._query(self._sql.all_writes, (row.key,))]

    # Writing

    def create(self, thread: str, namespace: str) -> None:
        """Create the row of a namespace, unless there is one; the transaction that needs it forces it to disk."""
        row = new_thread_row(thread, namespace).revised(checkpoints=0, chains=0, latest="")
        self.database.apply(False, (self._sql.insert_thread, row), ())

    def put(
        self, row: ThreadRow, new: ThreadRow, checkpoint: CheckpointRow, values: Iterable[ValueRow], forced: bool
    ) -> bool:
        """Write a checkpoint and its new values; return whether ``row`` was current and the transaction committed."""
        writes = [self._value_write(new, value) for value in values]
        writes.append(self._checkpoint_write(checkpoint))
        return self._swap(row, new, writes, forced)

    def put_writes(self, row: ThreadRow, writes: Sequence[WriteRow], replace: bool, forced: bool) -> bool:
        """Write what a task has written, or keep what is stored of it unless ``replace``; return whether it committed.

        False also means that the thread was deleted; repeat the call with its new row.
        """
        sql = self._sql.put_write if replace else self._sql.add_write
        statements: list[Write] = [(sql, (*self._stored_write(row, write), row.key)) for write in writes]
        return self.database.apply(forced, statements[0], statements[1:]) is WriteOutcome.COMMITTED

    def delete(self, rows: Sequence[ThreadRow], forced: bool) -> bool:
        """Delete namespaces whatever their version; return whether the first one existed and they are deleted."""
        first, *rest = [(self._sql.delete_any_thread, (row.key,)) for row in rows]
        return self.database.apply(forced, first, rest) is WriteOutcome.COMMITTED

    def delete_checkpoints(
        self, row: ThreadRow, new: ThreadRow | None, checkpoints: Iterable[str], ends: dict[int, int], forced: bool
    ) -> bool:
        """Delete checkpoints and their writes, and values after the given positions; return whether it committed.

        Without ``new``, the whole namespace is deleted.
        """
        if new is None:
            delete = (self._sql.delete_thread, (row.key, row.version, row.checksum))
            return self.database.apply(forced, delete, ()) is WriteOutcome.COMMITTED
        writes: list[Write] = []
        for checkpoint in checkpoints:
            writes.append((self._sql.delete_checkpoint, (row.key, checkpoint)))
            writes.append((self._sql.delete_writes, (row.key, checkpoint)))
        writes += [(self._sql.cut_chain, (row.key, chain, end)) for chain, end in ends.items()]
        return self._swap(row, new, writes, forced)

    def copy(self, copies: Sequence[tuple[ThreadRow, ThreadRow]], forced: bool) -> WriteOutcome:
        """Write copies of namespaces to rows that do not exist yet, in one transaction, unless they have changed."""
        writes: list[Write] = []
        for source, target in copies:
            writes.append((self._sql.insert_thread, target))
            writes += self._copies(source, target)
        if any(self.find(source.id, source.namespace) != source for source, _ in copies):
            return WriteOutcome.REFUSED
        return self.database.apply(forced, writes[0], writes[1:])

    def _copies(self, source: ThreadRow, target: ThreadRow) -> Iterator[Write]:
        """Yield the statements that copy everything of a namespace; checksums and encryption depend on the thread."""
        for one in self.of_namespace(source, None):
            yield self._checkpoint_write(one._replace(key=target.key, thread=target.id, namespace=target.namespace))
        for chain, end in self.chains(source).items():
            for position, data in enumerate(self.values(source, chain, end)):
                yield self._value_write(target, ValueRow(chain, position, data))
        for write in self.all_writes(source):
            yield self._sql.copy_write, (target.key, *self._stored_write(target, write))

    # Rows

    def _query(self, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        if not self._has_tables:
            self._has_tables = self.database.table_version(THREADS) > 0
        return self.database.query(sql, parameters) if self._has_tables else []

    def _swap(self, row: ThreadRow, new: ThreadRow, writes: Iterable[Write], forced: bool) -> bool:
        swap: Write = (self._sql.swap_thread, (*new[3:], row.key, row.version, row.checksum))
        if row.version == 0:
            swap = (self._sql.insert_thread, new)
        return self.database.apply(forced, swap, writes) is WriteOutcome.COMMITTED

    def _verified(self, found: Sequence[Any]) -> ThreadRow:
        row = ThreadRow(*found)
        if row.checksum != row.expected_checksum():
            raise self.damage(row, None, "its row is damaged (the checksum does not match)")
        return row

    def _content(
        self,
        place: ThreadRow | CheckpointRow,
        checkpoint: str | None,
        what: str,
        at: tuple[Any, ...],
        header: Any,
        data: Any,
    ) -> bytes:
        try:
            return self._format.decode(_context(place, *at), header, data)
        except DamagedError as error:
            raise self.damage(place, checkpoint, f"{what} {error}") from error.__cause__

    def _checkpoint(self, found: Sequence[Any]) -> CheckpointRow:
        *place, header, data = found
        row = CheckpointRow._make((*place, b""))
        at = ("checkpoint", row.id, row.parent, row.run)
        return row._replace(data=self._content(row, str(row.id), "its row", at, header, data))

    def _checkpoint_write(self, row: CheckpointRow) -> Write:
        stored = self._format.encode(_context(row, "checkpoint", row.id, row.parent, row.run), row.data)
        return self._sql.put_checkpoint, (row.key, row.id, row.parent, row.run, *stored)

    def _write(
        self, place: ThreadRow | CheckpointRow, checkpoint: str, task: str, number: int, header: Any, data: Any
    ) -> WriteRow:
        at = ("write", checkpoint, task, number)
        content = self._content(place, checkpoint, f"write {number} of task {task!r}", at, header, data)
        return WriteRow(checkpoint, task, number, content)

    def _stored_write(self, row: ThreadRow, write: WriteRow) -> tuple[Any, ...]:
        at = write[:3]
        return (*at, *self._format.encode(_context(row, "write", *at), write.data))

    def _value_write(self, row: ThreadRow, value: ValueRow) -> Write:
        at = value.chain, value.position
        return self._sql.insert_value, (row.key, *at, *self._format.encode(_context(row, "value", *at), value.data))


def _context(place: ThreadRow | CheckpointRow, kind: str, *at: object) -> bytes:
    """Return the bytes that identify the position of a blob."""
    thread = place.thread if isinstance(place, CheckpointRow) else place.id
    return context_of(f"thread {kind}", thread, place.namespace, *at)


def _page_sizes(limit: int | None) -> Iterator[int]:
    """Yield the sizes of the pages of a list, of which only the first ``limit`` rows are known to be needed."""
    size = _FIRST_PAGE if limit is None else max(1, min(limit, _LAST_PAGE))
    while True:
        yield size
        size = min(4 * size, _LAST_PAGE)
