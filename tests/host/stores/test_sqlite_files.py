"""Stores in a SQLite file: paths, permissions, versions and damaged files."""

from __future__ import annotations

import os
import random
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, FencedError, StoreError
from gpu_pregel.host.stores import sqlite_database, sqlite_file
from gpu_pregel.host.stores.schema import MIGRATIONS
from tests.devices import EXHAUSTIVE
from tests.stores import begin_durable, check_damaged_copies, everything

_NOBODY = 65534
_DAMAGES = 500 if EXHAUSTIVE else 100
"""Number of damaged copies to test; set it higher for a long run."""


# Files


@contextmanager
def as_unprivileged_user() -> Iterator[None]:
    """Switch from root, who may write everywhere, to an unprivileged user."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def public(tmp_path: Path) -> Iterator[Path]:
    """A folder that all users may read."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


def test_read_only_folder_or_file_can_be_read(public: Path) -> None:
    path = public / "runs.db"
    with gp.SQLiteStore(path) as store:
        store.release(begin_durable(store))
    path.chmod(0o444)
    public.chmod(0o555)
    with as_unprivileged_user():
        with pytest.raises(StoreError, match=r"cannot be written: change its permissions, or pass read_only=True"):
            gp.SQLiteStore(path)
        with gp.SQLiteStore(path, read_only=True) as store:
            assert [row.id for row in store.runs()] == ["run"]
            with pytest.raises(StoreError, match="was opened with read_only=True"):
                store.claim("run", owner="x")
            with pytest.raises(StoreError, match="was opened with read_only=True"):
                store.compact()
        with pytest.raises(StoreError, match=r"cannot be written, as no files can be created in"):
            gp.SQLiteStore(public / "other.db")
    public.chmod(0o755)
    path.chmod(0o666)
    with as_unprivileged_user(), pytest.raises(StoreError, match="cannot be written, as no files can be created in"):
        gp.SQLiteStore(path)
    path.chmod(0o000)
    with as_unprivileged_user(), pytest.raises(StoreError, match="cannot be read: change its permissions"):
        gp.SQLiteStore(path, read_only=True)


def test_other_files_are_refused_and_not_changed(path: Path) -> None:
    path.write_text("a list of groceries, long enough to be mistaken for a header of a hundred bytes" * 3)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"runs\.db: is not a SQLite database, or its header is damaged"):
        gp.SQLiteStore(path)
    assert path.read_bytes() == before
    path.unlink()
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE mine (x)")
    before = path.read_bytes()
    for read_only in (False, True):
        with pytest.raises(StoreError, match="is a database of another program: give another path"):
            gp.SQLiteStore(path, read_only=read_only)
    assert path.read_bytes() == before
    path.unlink()
    with pytest.raises(StoreError, match="does not exist"):
        gp.SQLiteStore(path, create=False)
    with pytest.raises(StoreError, match="does not exist"):
        gp.SQLiteStore(path, read_only=True)
    path.touch()
    for read_only in (False, True):
        with pytest.raises(StoreError, match="is empty: it is not a store"):
            gp.SQLiteStore(path, read_only=read_only, create=False)
    gp.SQLiteStore(path).close()


def test_paths_that_are_not_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StoreError, match="is not a regular file: give the path of one"):
        gp.SQLiteStore(tmp_path)
    with pytest.raises(StoreError, match=r"cannot be opened: create the folder .*/none first"):
        gp.SQLiteStore(tmp_path / "none" / "runs.db")
    with closing(socket.socket(socket.AF_UNIX)) as other:
        monkeypatch.chdir(tmp_path)
        other.bind("socket")
        with pytest.raises(StoreError, match="is not a regular file"):
            gp.SQLiteStore("socket")
    for given, error in (
        (3, ArgumentTypeError),
        ("", ArgumentError),
        (":memory:", ArgumentError),
        ("a\0b", ArgumentError),
    ):
        with pytest.raises(error, match="path must be the path of a file"):
            gp.SQLiteStore(given)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="patience must be a finite number of seconds above 0, not 0"):
        gp.SQLiteStore(tmp_path / "runs.db", patience=0)
    with pytest.raises(ArgumentError, match="patience must be below 1,000,000 seconds, not 1000000000000"):
        gp.SQLiteStore(tmp_path / "runs.db", patience=1e12)


@pytest.mark.parametrize("name", ["with space?.db", "100%.db", "#1&x=y.db", "ü.db", os.fsdecode(b"\xff.db")])
@pytest.mark.parametrize("before", ["", "/"])
def test_special_characters_in_paths(tmp_path: Path, name: str, before: str) -> None:
    with gp.SQLiteStore(f"{before}{tmp_path}/{name}") as store:
        begin_durable(store)
        assert [entry for entry in os.listdir(tmp_path) if "-" not in entry] == [name]


def test_relative_path_is_resolved_when_opened(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    with gp.SQLiteStore("runs.db") as store:
        monkeypatch.chdir("/")
        store.commit(begin_durable(store), 0, b"")
    assert path.exists()


@pytest.mark.parametrize("way", ["moved", "removed", "replaced"])
def test_file_moved_while_open_is_detected(path: Path, way: str) -> None:
    with gp.SQLiteStore(path) as store:
        claim = begin_durable(store)
        if way == "removed":
            path.unlink()
        else:
            path.rename(path.with_name("other.db"))
        if way == "replaced":
            path.touch()
        with pytest.raises(StoreError, match="was moved or deleted while it was open: restore it"):
            store.commit(claim, 0, b"")


def test_closed_store_is_an_error(path: Path) -> None:
    store = gp.SQLiteStore(path)
    claim = begin_durable(store)
    store.close()
    store.close()
    for attempt in (store.runs, lambda: store.commit(claim, 0, b"")):
        with pytest.raises(StoreError, match=r"runs\.db: is closed: open it again"):
            attempt()


# Versions


NOW = len(MIGRATIONS)
MORE = (("ALTER TABLE @runs ADD COLUMN colour {text} NOT NULL DEFAULT 'grey'",),)


def test_store_of_an_older_version_is_migrated(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with gp.SQLiteStore(path) as store:
        claim = begin_durable(store)
        store.commit(claim, 0, b"zero")
        before = everything(store)
    monkeypatch.setattr(sqlite_file, "MIGRATIONS", MIGRATIONS + MORE)
    with pytest.raises(StoreError, match=f"has version {NOW} of the tables: open it once without read_only=True"):
        gp.SQLiteStore(path, read_only=True)
    for _ in range(2):
        with gp.SQLiteStore(path) as store:
            assert store._database.query("PRAGMA user_version", ()) == [(NOW + 1,)]
            assert store._database.query("SELECT colour FROM runs", ()) == [("grey",)]
            assert everything(store) == before
    with gp.SQLiteStore(path, read_only=True) as store:
        assert everything(store) == before
    monkeypatch.undo()
    with pytest.raises(
        StoreError, match=f"has version {NOW + 1} of the tables, but this release supports only up to {NOW}: use"
    ):
        gp.SQLiteStore(path)


def test_failed_migration_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with gp.SQLiteStore(path) as store:
        begin_durable(store)
        before = everything(store)
    monkeypatch.setattr(sqlite_file, "MIGRATIONS", (*MIGRATIONS, *MORE, ("CREATE NONSENSE",)))
    with pytest.raises(StoreError, match=r"cannot be used .*NONSENSE"):
        gp.SQLiteStore(path)
    monkeypatch.undo()
    with gp.SQLiteStore(path) as store:
        assert everything(store) == before


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER mine AFTER INSERT ON commits BEGIN DELETE FROM segments; END",
        "CREATE VIEW mine AS SELECT 1",
        "CREATE TABLE mine (x)",
        "DROP TABLE answers",
    ],
)
def test_store_with_changed_tables_is_refused(path: Path, statement: str) -> None:
    with gp.SQLiteStore(path) as store:
        begin_durable(store)
    with closing(sqlite3.connect(path)) as other:
        other.execute(statement)
    with pytest.raises(StoreError, match="does not have the tables of a store: it is damaged or was changed"):
        gp.SQLiteStore(path)


def test_old_sqlite_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_database, "OLDEST_SQLITE", (99, 0, 0))
    with pytest.raises(StoreError, match=r"needs SQLite 99\.0\.0 or newer, but this Python has 3\."):
        gp.SQLiteStore(path)


# Damage


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, list[Any]]:
    """The bytes of a store with rows of every kind, and its expected contents."""
    path = tmp_path_factory.mktemp("example") / "runs.db"
    blob = random.Random(1).randbytes
    with gp.SQLiteStore(path) as store:
        for name in ("first", "second"):
            claim = begin_durable(store, name, durability="process", meta=blob(50), blobs={"array": blob(9000)})
            for step in range(12):
                store.commit(claim, step, blob(200), [blob(300), blob(50 * step)])
            store.flush(claim, 12, [blob(700)])
            store.flush(claim, 12, [blob(700)], "interrupted")
            store.answer(name, 12, b"vertex", 0, b"yes")
        store.fork("first", 7, "fork", blob(500))
        store.create("long", "numeric", blob(30_000), owner="me", durability="process")
        store.create("gone", "agents", blob(20_000), owner="me")
        store.delete("gone", force=True)
        expected = everything(store)
    return path.read_bytes(), expected


def test_damaged_copies_are_read_correctly_or_refused(example: tuple[bytes, list[Any]], path: Path) -> None:
    whole, expected = example
    check_damaged_copies(whole, path, _DAMAGES, everything, expected)


def test_copied_store_still_fences(example: tuple[bytes, list[Any]], path: Path) -> None:
    path.write_bytes(example[0])
    with gp.SQLiteStore(path) as store:
        claim = store.claim("first", owner="x", takeover=True)
        store.claim("first", owner="y", takeover=True)
        with pytest.raises(FencedError):
            store.commit(claim, 12, b"")
