"""The tables of runs, their migrations, and all statements that read or write their rows.

SQLite and PostgreSQL share them, and ``Dialect`` holds the differences. In the templates tables are written ``@runs``
and parameters ``?``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from gpu_pregel.errors import StoreError

T = TypeVar("T")

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE @runs (
            key {integer} PRIMARY KEY, id {text} NOT NULL UNIQUE, kind {text} NOT NULL, branch {integer} NOT NULL,
            parent {text}, parent_step {integer}, created {real} NOT NULL, schema {integer} NOT NULL,
            head {integer} NOT NULL, pending {integer} NOT NULL, pending_size {integer} NOT NULL,
            epoch {integer} NOT NULL, owner {text} NOT NULL, lease {real} NOT NULL, status {text} NOT NULL,
            changed {real} NOT NULL, nonce {blob} NOT NULL, seal {blob} NOT NULL
        ){strict}""",
        # In a table of its own, as each commit rewrites the run's row.
        "CREATE TABLE @metas (run {integer} PRIMARY KEY {of_run}, seal {blob} NOT NULL, data {blob} NOT NULL){strict}",
        """CREATE TABLE @bases (
            run {integer} NOT NULL {of_run}, step {integer} NOT NULL, part {integer} NOT NULL,
            seal {blob} NOT NULL, data {blob} NOT NULL,
            PRIMARY KEY (run, step, part)
        ){strict}""",
        """CREATE TABLE @commits (
            run {integer} NOT NULL {of_run}, step {integer} NOT NULL, after {integer} NOT NULL,
            epoch {integer} NOT NULL, status {text} NOT NULL, time {real} NOT NULL, segments {integer} NOT NULL,
            size {integer} NOT NULL, token {blob} NOT NULL, seal {blob} NOT NULL, data {blob} NOT NULL,
            PRIMARY KEY (run, step)
        ){strict_by_key}""",
        """CREATE TABLE @segments (
            run {integer} NOT NULL {of_run}, step {integer} NOT NULL, number {integer} NOT NULL,
            seal {blob} NOT NULL, data {blob} NOT NULL,
            PRIMARY KEY (run, step, number)
        ){strict}""",
        """CREATE TABLE @answers (
            run {integer} NOT NULL {of_run}, step {integer} NOT NULL, vertex {blob} NOT NULL,
            number {integer} NOT NULL, time {real} NOT NULL, seal {blob} NOT NULL, data {blob} NOT NULL,
            PRIMARY KEY (run, step, vertex, number)
        ){strict}""",
    ),
    (
        """CREATE TABLE @requests (
            run {integer} NOT NULL {of_run}, number {integer} NOT NULL, time {real} NOT NULL,
            seal {blob} NOT NULL, data {blob} NOT NULL,
            PRIMARY KEY (run, number)
        ){strict}""",
    ),
    ("CREATE INDEX runs_by_status ON @runs (status, pending)",),
)
"""Statements that update a store from version k to k + 1; version 0 is empty. Only append: every version is in use."""

_RUN = (
    "key, id, kind, branch, parent, parent_step, created, schema, "
    "head, pending, pending_size, epoch, owner, lease, status, changed, nonce, seal"
)

_UNFINISHED = (
    "SELECT r.id, r.status, r.head, r.epoch, r.pending, r.owner, r.lease, r.changed, "
    "(SELECT COUNT(*) FROM @answers AS a WHERE a.run = r.key AND a.step = r.head + 1), "
    "(SELECT MAX(q.number) FROM @requests AS q WHERE q.run = r.key) FROM @runs AS r"
)


@dataclass(frozen=True)
class TableGroup:
    """Tables that a store gets when they are first written to, with a version of their own.

    Attributes
    ----------
    about : str
        The table that holds the version, which the first migration creates.
    migrations : tuple of tuple of str
        Statements that update the tables from version k to k + 1. Only append.
    more : mapping of int to sequence of str
        Further statements of a migration for PostgreSQL only.
    """

    about: str
    migrations: tuple[tuple[str, ...], ...]
    more: Mapping[int, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Dialect:
    """Differences between databases: types, options of CREATE TABLE, the prefix of tables, and the parameter marker."""

    prefix: str
    parameter: str
    blob: str
    integer: str
    real: str
    text: str
    strict: str
    strict_by_key: str

    def create(self, statement: str) -> str:
        """Return a statement of a migration in this dialect."""
        words = {field.name: getattr(self, field.name) for field in fields(self)}
        reference = "REFERENCES @runs (key) ON DELETE CASCADE"
        return statement.format(**words, of_run=reference).replace("@", self.prefix)

    def statements(self) -> Statements:
        """Return the statements on runs in this dialect."""
        return self.translate(Statements)

    def translate(self, templates: type[T]) -> T:
        """Return a dataclass of statements, whose defaults are templates, in this dialect."""
        table: Any = templates
        return templates(
            **{
                field.name: str(field.default).replace("@", self.prefix).replace("?", self.parameter)
                for field in fields(table)
            }
        )


@dataclass(frozen=True)
class Statements:
    """All statements that read or write rows of runs."""

    insert_run: str = f"INSERT INTO @runs ({_RUN}) VALUES ({', '.join('?' * 18)})"
    # Only updates the version that was read: one of two concurrent programs wins, and the other reads again.
    swap_run: str = (
        "UPDATE @runs SET head = ?, pending = ?, pending_size = ?, epoch = ?, owner = ?, lease = ?, status = ?, "
        "changed = ?, nonce = ?, seal = ? WHERE key = ? AND epoch = ? AND head = ? AND seal = ?"
    )
    # Leaves the columns of the index alone, which SQLite would otherwise write again.
    advance_run: str = (
        "UPDATE @runs SET head = ?, pending_size = ?, epoch = ?, owner = ?, lease = ?, "
        "changed = ?, nonce = ?, seal = ? WHERE key = ? AND epoch = ? AND head = ? AND seal = ?"
    )
    delete_run: str = "DELETE FROM @runs WHERE key = ? AND seal = ?"
    run_by_id: str = f"SELECT {_RUN} FROM @runs WHERE id = ?"
    run_by_key: str = f"SELECT {_RUN} FROM @runs WHERE key = ?"
    runs: str = f"SELECT {_RUN} FROM @runs ORDER BY created, id"
    # Each of these searches in an index. Runs with statuses that are not listed do not continue.
    unfinished: str = (
        f"{_UNFINISHED} WHERE r.kind = ? AND r.status IN ('running', 'stopped', 'waiting', 'failed', 'interrupted') "
        f"UNION ALL {_UNFINISHED} WHERE r.kind = ? AND r.status IN ('completed', 'partial') AND r.pending > 0 "
        f"UNION ALL {_UNFINISHED} JOIN (SELECT DISTINCT run FROM @requests) AS asked ON asked.run = r.key "
        "WHERE r.kind = ? AND r.status IN ('completed', 'partial') AND r.pending = 0 ORDER BY changed, id"
    )

    insert_meta: str = "INSERT INTO @metas (run, seal, data) VALUES (?, ?, ?)"
    meta: str = "SELECT seal, data FROM @metas WHERE run = ?"

    insert_base: str = "INSERT INTO @bases (run, step, part, seal, data) VALUES (?, ?, ?, ?, ?)"
    delete_base: str = "DELETE FROM @bases WHERE run = ? AND step = ?"
    newest_base: str = "SELECT MAX(step) FROM @bases WHERE run = ? AND step <= ?"
    base_steps: str = "SELECT DISTINCT step FROM @bases WHERE run = ? ORDER BY step"
    base_part: str = "SELECT seal, data FROM @bases WHERE run = ? AND step = ? AND part = ?"

    insert_commit: str = (
        "INSERT INTO @commits (run, step, after, epoch, status, time, segments, size, token, seal, data) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    )
    token: str = "SELECT token FROM @commits WHERE run = ? AND step = ?"
    oldest_commit: str = "SELECT MIN(step) FROM @commits WHERE run = ?"
    commits: str = (
        "SELECT step, after, epoch, status, time, segments, size, token, seal, data FROM @commits "
        "WHERE run = ? AND step > ? AND step <= ? ORDER BY step LIMIT ?"
    )

    insert_segment: str = "INSERT INTO @segments (run, step, number, seal, data) VALUES (?, ?, ?, ?, ?)"
    segments: str = (
        "SELECT number, seal, data FROM @segments WHERE run = ? AND step = ? AND number >= ? AND number < ? "
        "ORDER BY number"
    )

    insert_answer: str = (
        "INSERT INTO @answers (run, step, vertex, number, time, seal, data) "
        "SELECT key, ?, ?, ?, ?, ?, ? FROM @runs WHERE key = ? AND head = ?"
    )
    answer: str = "SELECT seal FROM @answers WHERE run = ? AND step = ? AND vertex = ? AND number = ?"
    answers: str = (
        "SELECT vertex, number, time, seal, data FROM @answers WHERE run = ? AND step = ? ORDER BY vertex, number"
    )

    last_answer: str = (
        "SELECT step, number, time, seal, data FROM @answers WHERE run = ? AND vertex = ? "
        "ORDER BY step DESC, number DESC LIMIT 1"
    )

    insert_request: str = (
        "INSERT INTO @requests (run, number, time, seal, data) SELECT key, ?, ?, ?, ? FROM @runs WHERE key = ?"
    )
    last_request: str = "SELECT MAX(number) FROM @requests WHERE run = ?"
    request: str = "SELECT seal FROM @requests WHERE run = ? AND number = ?"
    requests: str = (
        "SELECT q.number, q.time, q.seal, q.data FROM @requests AS q JOIN @runs AS r ON r.key = q.run "
        "WHERE r.id = ? ORDER BY q.number"
    )
    # By number, as senders choose numbers before they insert: one may become visible after a higher one.
    delete_request: str = "DELETE FROM @requests WHERE run = ? AND number = ?"

    # A base replaces everything up to its superstep, but its commit is kept for the history.
    prune_bases: str = "DELETE FROM @bases WHERE run = ? AND step < ?"
    prune_commits: str = "DELETE FROM @commits WHERE run = ? AND step < ?"
    prune_segments: str = "DELETE FROM @segments WHERE run = ? AND step <= ?"
    prune_answers: str = "DELETE FROM @answers WHERE run = ? AND step <= ?"


def check_version(store: str, version: int, newest: int) -> None:
    """Refuse tables that a newer release wrote."""
    if version > newest:
        raise StoreError(
            store,
            f"has version {version} of the tables, but this release supports only up to {newest}: use the release that "
            f"wrote it, or a newer one",
        )
