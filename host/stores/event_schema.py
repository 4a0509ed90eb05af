"""The tables of recorded events, which a store gets on their first use, and the statements on their rows."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_pregel.host.stores.schema import TableGroup

EVENTS = TableGroup(
    "event_about",
    (
        (
            "CREATE TABLE @event_about (version {integer} NOT NULL){strict}",
            """CREATE TABLE @events (
                run {integer} NOT NULL {of_run}, number {integer} NOT NULL, step {integer} NOT NULL,
                time {real} NOT NULL, size {integer} NOT NULL, seal {blob} NOT NULL, data {blob} NOT NULL,
                PRIMARY KEY (run, number)
            ){strict}""",
        ),
    ),
    {0: ["ALTER TABLE @events ALTER COLUMN data SET STORAGE EXTERNAL"]},
)


@dataclass(frozen=True)
class EventStatements:
    """All statements that read or write rows of events."""

    insert: str = (
        "INSERT INTO @events (run, number, step, time, size, seal, data) "
        "SELECT key, ?, ?, ?, ?, ?, ? FROM @runs WHERE key = ?"
    )
    last: str = "SELECT MAX(number) FROM @events WHERE run = ?"
    seal: str = "SELECT seal FROM @events WHERE run = ? AND number = ?"
    rows: str = (
        "SELECT number, step, time, seal, data FROM @events WHERE run = ? AND number > ? ORDER BY number LIMIT ?"
    )
    # Keeps the newest rows that together have at most the given number of bytes.
    trim: str = (
        "DELETE FROM @events WHERE run = ? AND number < (SELECT MIN(number) FROM "
        "(SELECT number, SUM(size) OVER (ORDER BY number DESC) AS total FROM @events WHERE run = ?) AS sums "
        "WHERE total <= ?)"
    )
    prune: str = "DELETE FROM @events WHERE run = ? AND step < ?"
