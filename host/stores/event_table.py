"""Events of runs: what observers record beside a run, in rows of many events each; a run does without them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpu_pregel.host.stores.blobs import BlobFormat, DamagedError, as_blob, context_of
from gpu_pregel.host.stores.database import Database, Write, WriteOutcome
from gpu_pregel.host.stores.event_schema import EVENTS, EventStatements
from gpu_pregel.host.stores.rows import StoredEvents
from gpu_pregel.host.stores.run_table import RunTable

_PAGE = 64
"""Maximum rows per query."""
_TRIM_EVERY = 16
"""Rows of a run that are added between two looks at the bytes of all of them."""


class EventTable:
    """Adds and reads recorded events. The table is created when the first ones are added.

    They are deleted with their run, and pruned with their supersteps; adding some needs no claim.
    """

    def __init__(self, database: Database, blob_format: BlobFormat, runs: RunTable) -> None:
        self._database, self._format, self._runs = database, blob_format, runs
        self._sql = database.dialect.translate(EventStatements)
        self._has_tables = False
        self._added: dict[int, int] = {}
        """Number of rows that were added here, by the key of the run."""

    def has_tables(self) -> bool:
        """Return whether anything was ever recorded in the store."""
        self._has_tables = self._has_tables or self._database.table_version(EVENTS) > 0
        return self._has_tables

    def _create_tables(self) -> None:
        if not self._has_tables:
            if self._database.table_version(EVENTS) < len(EVENTS.migrations):
                self._database.create_tables(EVENTS)
            self._has_tables = True

    def add(self, run_id: str, step: int, data: Any, *, limit: int) -> int:
        """Add a row of events, which a crash of the machine may lose.

        Parameters
        ----------
        run_id : str
        step : int
            The last superstep among those of the events.
        data : bytes or buffer
        limit : int
            Bytes of the events of a run beyond which its oldest ones are removed.

        Returns
        -------
        int
            The number of the row; later rows of the run have higher ones.
        """
        blob, attempt = as_blob("data", data), 0
        self._create_tables()
        number, header = -1, b""
        while True:
            row = self._runs.find(run_id)
            if header and self._database.query(self._sql.seal, (row.key, number)) == [(header,)]:
                break  # the connection was lost after the commit
            now = self._database.now()
            last = self._database.query(self._sql.last, (row.key,))[0][0]
            number = max(-1 if last is None else last, int(now * 1e6)) + 1
            header, stored = self._format.encode(context_of("events", run_id, number, step, now), blob)
            insert = (self._sql.insert, (number, step, now, len(stored), header, stored, row.key))
            if self._database.apply(False, insert, self._trim(row.key, limit)) is WriteOutcome.COMMITTED:
                break
            attempt = self._database.next_attempt(attempt)
        self._added[row.key] = self._added.get(row.key, 0) + 1
        return number

    def _trim(self, key: int, limit: int) -> list[Write]:
        """Return the statement that removes the oldest events now and then."""
        return [] if self._added.get(key, 0) % _TRIM_EVERY else [(self._sql.trim, (key, key, limit))]

    def read(self, run_id: str, after: int = -1) -> Iterator[StoredEvents]:
        """Yield the rows of a run with numbers above ``after``, in order; none if nothing was recorded."""
        row = self._runs.find(run_id)
        if not self.has_tables():
            return
        while found := self._database.query(self._sql.rows, (row.key, after, _PAGE)):
            for number, step, time, header, data in found:
                try:
                    content = self._format.decode(context_of("events", run_id, number, step, time), header, data)
                except DamagedError as error:
                    raise self._runs.damage(run_id, f"recorded events {number}: {error}") from error.__cause__
                yield StoredEvents(number, step, content, time)
                after = number
