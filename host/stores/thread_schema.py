"""The tables of conversation threads, which a store gets on their first use, and the statements on their rows.

A row of ``threads`` is one namespace of a thread. Each change of its checkpoints replaces the row, provided it is still
the version that was read. Values are kept in chains: a whole value, and the differences that follow it.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpu_pregel.host.stores.schema import TableGroup

_OF_THREAD = "thread {integer} NOT NULL REFERENCES @threads (key) ON DELETE CASCADE"

THREADS = TableGroup(
    "thread_about",
    (
        (
            "CREATE TABLE @thread_about (version {integer} NOT NULL){strict}",
            """CREATE TABLE @threads (
                key {integer} PRIMARY KEY, id {text} NOT NULL, namespace {text} NOT NULL, version {integer} NOT NULL,
                checkpoints {integer} NOT NULL, chains {integer} NOT NULL, latest {text} NOT NULL, seal {blob} NOT NULL,
                UNIQUE (id, namespace)
            ){strict}""",
            f"""CREATE TABLE @thread_checkpoints (
                {_OF_THREAD}, id {{text}} NOT NULL, parent {{text}}, run {{text}},
                seal {{blob}} NOT NULL, data {{blob}} NOT NULL,
                PRIMARY KEY (thread, id)
            ){{strict_by_key}}""",
            "CREATE INDEX thread_checkpoints_by_run ON @thread_checkpoints (run) WHERE run IS NOT NULL",
            f"""CREATE TABLE @thread_values (
                {_OF_THREAD}, chain {{integer}} NOT NULL, position {{integer}} NOT NULL,
                seal {{blob}} NOT NULL, data {{blob}} NOT NULL,
                PRIMARY KEY (thread, chain, position)
            ){{strict}}""",
            # Not of a checkpoint, as the writes of its tasks may be stored before it.
            f"""CREATE TABLE @thread_writes (
                {_OF_THREAD}, checkpoint {{text}} NOT NULL, task {{text}} NOT NULL, number {{integer}} NOT NULL,
                seal {{blob}} NOT NULL, data {{blob}} NOT NULL,
                PRIMARY KEY (thread, checkpoint, task, number)
            ){{strict_by_key}}""",
        ),
    ),
    {0: [f"ALTER TABLE @thread_{name} ALTER COLUMN data SET STORAGE EXTERNAL" for name in ("values", "writes")]},
)

_THREAD = "key, id, namespace, version, checkpoints, chains, latest, seal"
_CHECKPOINT = "SELECT t.key, t.id, t.namespace, c.id, c.parent, c.run, c.seal, c.data FROM @threads AS t "
_JOIN = "JOIN @thread_checkpoints AS c ON c.thread = t.key "
_INSERT_WRITE = (
    "INSERT INTO @thread_writes (thread, checkpoint, task, number, seal, data) "
    "SELECT key, ?, ?, ?, ?, ? FROM @threads WHERE key = ? "
    "ON CONFLICT (thread, checkpoint, task, number) DO UPDATE SET "
)


@dataclass(frozen=True)
class ThreadStatements:
    """All statements that read or write rows of threads."""

    insert_thread: str = f"INSERT INTO @threads ({_THREAD}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
    # Only updates the version that was read: one of two concurrent programs wins, and the other reads again.
    swap_thread: str = (
        "UPDATE @threads SET version = ?, checkpoints = ?, chains = ?, latest = ?, seal = ? "
        "WHERE key = ? AND version = ? AND seal = ?"
    )
    delete_thread: str = "DELETE FROM @threads WHERE key = ? AND version = ? AND seal = ?"
    delete_any_thread: str = "DELETE FROM @threads WHERE key = ?"
    thread: str = f"SELECT {_THREAD} FROM @threads WHERE id = ? AND namespace = ?"
    namespaces: str = f"SELECT {_THREAD} FROM @threads WHERE id = ? ORDER BY namespace"
    threads_of_run: str = (
        f"SELECT {_THREAD} FROM @threads WHERE key IN (SELECT thread FROM @thread_checkpoints WHERE run = ?)"
    )

    put_checkpoint: str = (
        "INSERT INTO @thread_checkpoints (thread, id, parent, run, seal, data) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (thread, id) DO UPDATE SET parent = excluded.parent, run = excluded.run, seal = excluded.seal, "
        "data = excluded.data"
    )
    delete_checkpoint: str = "DELETE FROM @thread_checkpoints WHERE thread = ? AND id = ?"
    checkpoint: str = f"{_CHECKPOINT}{_JOIN}WHERE t.key = ? AND c.id = ?"
    # Each of these searches in an index, except for the last.
    page_of_namespace: str = f"{_CHECKPOINT}{_JOIN}WHERE t.key = ? AND c.id < ? ORDER BY c.id DESC LIMIT ?"
    page_of_thread: str = (
        f"{_CHECKPOINT}{_JOIN}WHERE t.id = ? AND (c.id, c.thread) < (?, ?) ORDER BY c.id DESC, c.thread DESC LIMIT ?"
    )
    page_of_all: str = f"{_CHECKPOINT}{_JOIN}WHERE (c.id, c.thread) < (?, ?) ORDER BY c.id DESC, c.thread DESC LIMIT ?"

    insert_value: str = "INSERT INTO @thread_values (thread, chain, position, seal, data) VALUES (?, ?, ?, ?, ?)"
    values: str = (
        "SELECT position, seal, data FROM @thread_values WHERE thread = ? AND chain = ? AND position <= ? "
        "ORDER BY position"
    )
    chains: str = "SELECT chain, MAX(position) FROM @thread_values WHERE thread = ? GROUP BY chain"
    chain_end: str = "SELECT MAX(position) FROM @thread_values WHERE thread = ? AND chain = ?"
    cut_chain: str = "DELETE FROM @thread_values WHERE thread = ? AND chain = ? AND position > ?"

    # Both match one row; the second leaves a stored row as it is.
    put_write: str = f"{_INSERT_WRITE}seal = excluded.seal, data = excluded.data"
    add_write: str = f"{_INSERT_WRITE}number = excluded.number"
    copy_write: str = (
        "INSERT INTO @thread_writes (thread, checkpoint, task, number, seal, data) VALUES (?, ?, ?, ?, ?, ?)"
    )
    delete_writes: str = "DELETE FROM @thread_writes WHERE thread = ? AND checkpoint = ?"
    writes: str = "SELECT checkpoint, task, number, seal, data FROM @thread_writes WHERE thread = ? AND checkpoint = ?"
    all_writes: str = "SELECT checkpoint, task, number, seal, data FROM @thread_writes WHERE thread = ?"
