"""The tables of threads: their creation in existing stores, their versions, and queries that use their indexes."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import StoreError
from gpu_pregel.host.stores import sqlite_file, thread_table
from gpu_pregel.host.stores.schema import TableGroup
from gpu_pregel.host.stores.thread_rows import CheckpointRow, WriteRow, new_thread_row
from gpu_pregel.host.stores.thread_schema import THREADS, ThreadStatements
from tests.stores import begin_durable, execute

NEWER = TableGroup(
    THREADS.about, (*THREADS.migrations, ("ALTER TABLE @threads ADD COLUMN colour {text}",)), THREADS.more
)


def add(store: Any, checkpoint: str = "1", data: bytes = b"data") -> bool:
    """Add a checkpoint to a thread."""
    row = store.threads.find("thread", "") or new_thread_row("thread", "")
    new = row.revised(checkpoints=row.checkpoints + 1, chains=0, latest=checkpoint)
    added: bool = store.threads.put(
        row, new, CheckpointRow(row.key, "thread", "", checkpoint, None, None, data), [], True
    )
    return added


def found(store: Any) -> list[tuple[str, bytes]]:
    return [(one.id, one.data) for one in store.threads.of_thread("thread", None)]


def test_store_without_the_tables_has_no_threads(path: Path) -> None:
    with gp.SQLiteStore(path) as store:
        begin_durable(store)
    with gp.SQLiteStore(path, read_only=True) as store:
        store.threads.prepare()
        assert store.threads.find("thread", "") is None
        assert found(store) == []
        assert store.threads.namespaces("thread") == store.threads.threads_of_run("run") == []
        assert store.threads.database.table_version(THREADS) == 0
    with gp.SQLiteStore(path) as store:
        store.threads.prepare()
        assert add(store)
    with gp.SQLiteStore(path, read_only=True) as store:
        assert found(store) == [("1", b"data")]
        assert [run.id for run in store.runs()] == ["run"]


def test_tables_are_updated(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with gp.SQLiteStore(path) as store:
        store.threads.prepare()
        add(store)
    for module in (sqlite_file, thread_table):
        monkeypatch.setattr(module, "THREADS", NEWER)
    with gp.SQLiteStore(path, read_only=True) as store:
        store.threads.prepare()
        assert found(store) == [("1", b"data")]
    with gp.SQLiteStore(path) as store:
        store.threads.prepare()
        assert store._database.query("SELECT id, colour FROM threads", ()) == [("thread", None)]
    monkeypatch.undo()
    with pytest.raises(StoreError, match="has version 2 of the tables, but this release supports only up to 1: use"):
        gp.SQLiteStore(path)


def test_tables_in_postgres_have_a_version(store: gp.PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(store) == []
    for _ in range(2):
        store.threads.prepare()
    assert add(store)
    monkeypatch.setattr(thread_table, "THREADS", NEWER)
    store.threads.prepare()
    assert found(store) == [("1", b"data")]
    monkeypatch.undo()
    with pytest.raises(StoreError, match="has version 2 of the tables, but this release supports only up to 1: use"):
        store.threads.prepare()


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE thread_writes",
        "CREATE TRIGGER mine AFTER INSERT ON threads BEGIN DELETE FROM thread_values; END",
        "UPDATE thread_about SET version = 0",
        "DROP TABLE thread_about",
    ],
)
def test_store_with_changed_tables_is_refused(path: Path, statement: str) -> None:
    with gp.SQLiteStore(path) as store:
        store.threads.prepare()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(statement)
    with pytest.raises(StoreError, match="does not have the tables of a store: it is damaged or was changed"):
        gp.SQLiteStore(path)


def test_other_tables_of_this_name_are_refused(path: Path) -> None:
    with gp.SQLiteStore(path):
        pass
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("CREATE TABLE thread_about (version TEXT)")
        other.execute("INSERT INTO thread_about VALUES ('mine')")
    with pytest.raises(StoreError, match="does not have the tables of a store: it is damaged or was changed"):
        gp.SQLiteStore(path)


def test_statements_search_in_indexes() -> None:
    with gp.MemoryStore() as store:
        store.threads.prepare()
        for field in fields(ThreadStatements):
            sql = str(getattr(store.threads._sql, field.name))
            plan = store._database.query(f"EXPLAIN QUERY PLAN {sql}", (1,) * sql.count("?"))
            scans = [step[3] for step in plan if step[3].startswith("SCAN")]
            assert bool(scans) == (field.name == "page_of_all"), (field.name, plan)


def test_only_the_current_version_is_replaced(store: gp.PostgresStore) -> None:
    for opened in (store, gp.MemoryStore()):
        opened.threads.prepare()
        stale = new_thread_row("thread", "")
        assert add(opened, "1")
        row = opened.threads.find("thread", "")
        assert row is not None
        one = CheckpointRow(row.key, "thread", "", "2", None, None, b"two")
        for old in (stale, row._replace(version=9), row._replace(key=5)):
            assert not opened.threads.put(old, old.revised(checkpoints=2, chains=0, latest="2"), one, [], True)
        assert not opened.threads.put_writes(row._replace(key=5), [WriteRow("1", "task", 0, b"x")], True, True)
        assert not opened.threads.delete_checkpoints(row._replace(version=9), None, [], {}, True)
        assert found(opened) == [("1", b"data")]
        assert opened.threads.all_writes(row) == []


def test_damaged_row_of_a_thread_is_refused() -> None:
    with gp.MemoryStore() as store:
        begin_durable(store)
        store.threads.prepare()
        add(store)
        for change in ("latest = '0'", "version = 7", "checkpoints = 4"):
            execute(store, f"UPDATE @threads SET {change}")
            with pytest.raises(StoreError, match=r"thread 'thread': its row is damaged \(the checksum does not match"):
                store.threads.find("thread", "")
            execute(store, "UPDATE @threads SET latest = '1', version = 1, checkpoints = 1")
