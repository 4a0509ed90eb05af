"""Requests to runs: what other programs ask of a run, kept until the program that has claimed it takes them up."""

from __future__ import annotations

from typing import Any

from gpu_pregel.errors import StoreError
from gpu_pregel.host.stores.blobs import BlobFormat, DamagedError, as_blob, context_of
from gpu_pregel.host.stores.database import Database, WriteOutcome
from gpu_pregel.host.stores.rows import StoredRequest
from gpu_pregel.host.stores.run_table import RunTable, StoredRow


class RequestTable:
    """Adds and lists requests; ``Store.flush`` removes them with what they have caused."""

    def __init__(self, database: Database, blob_format: BlobFormat, runs: RunTable) -> None:
        self._database, self._format, self._runs = database, blob_format, runs
        self._sql = database.statements

    def add(self, run_id: str, data: Any) -> int:
        """Add a request to a run, forced to disk; needs no claim.

        Returns
        -------
        int
            The number of the request; later requests of the run have higher ones.

        Raises
        ------
        StoreError
            Also if the connection was lost and it is unknown whether the request was taken up in the meantime.
        """
        blob, attempt = as_blob("data", data), 0
        unknown: tuple[int, bytes, StoredRow] | None = None
        while True:
            row = self._runs.find(run_id)
            if unknown is not None:
                number, header, before = unknown
                if self._database.query(self._sql.request, (row.key, number)) == [(header,)]:
                    return number
                if row != before:
                    problem = (
                        "lost its connection, so that it is unknown whether the request was stored: look at the run"
                    )
                    raise StoreError(self._database.name, problem, run_id)
            now = self._database.now()
            last = self._database.query(self._sql.last_request, (row.key,))[0][0]
            number = max(-1 if last is None else last, int(now * 1e6)) + 1  # never that of a request that was removed
            header, stored = self._format.encode(context_of("request", run_id, number, now), blob)
            insert = (self._sql.insert_request, (number, now, header, stored, row.key))
            outcome = self._database.apply(True, insert, ())
            if outcome is WriteOutcome.COMMITTED:
                return number
            unknown = (number, header, row) if outcome is WriteOutcome.UNKNOWN else None
            attempt = self._database.next_attempt(attempt)

    def list(self, run_id: str) -> list[StoredRequest]:
        """Return the requests to a run, in order."""
        found = []
        for number, time, header, data in self._database.query(self._sql.requests, (run_id,)):
            try:
                content = self._format.decode(context_of("request", run_id, number, time), header, data)
            except DamagedError as error:
                raise self._runs.damage(run_id, f"request {number}: {error}") from error.__cause__
            found.append(StoredRequest(number, content, time))
        return found
