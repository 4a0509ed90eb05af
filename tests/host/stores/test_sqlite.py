"""Stores in a SQLite file: forced writes, locks, full disks, permissions, versions and damaged files."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, FencedError, StoreError
from gpu_pregel.host.stores import sqlite_database, sqlite_file
from gpu_pregel.host.stores.rows import Claim
from gpu_pregel.host.stores.schema import MIGRATIONS
from tests.stores import check_damaged_copies, output, python, race_program, run_together

_NOBODY = 65534
_DAMAGES = int(os.environ.get("GPU_PREGEL_DAMAGES", "100"))
"""Number of damaged copies to test; set it higher for a long run."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


def begin(store: Any, run_id: str = "run", **options: Any) -> Claim:
    claim: Claim = store.create(run_id, "agents", b"base", **{"owner": "first", **options})
    return claim


def everything(store: Any) -> list[Any]:
    """Return everything that can be read from a store."""
    found: list[Any] = store.runs()
    for row in list(found):
        found.append([commit._replace(base=False) for commit in store.history(row.id)])
        for step in [None, *range(-1 if row.parent is None else row.head, row.head + 1)]:
            saved = store.load(row.id, step)
            commits = [(commit.step, commit.data, list(commit.segments())) for commit in saved.commits()]
            blobs = [bytes(saved.blob(name)) for name in saved.blobs]
            found.append((saved.run, state(saved, commits), blobs, list(saved.held()), saved.answers))
    return found


def state(saved: Any, commits: list[Any]) -> Any:
    """Return the base and the supersteps that lead to it and follow it, the same for any choice of base."""
    return [*range(saved.base_step + 1), *[step for step, *_ in commits]], saved.base()


# Forced writes


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize(("durability", "expected"), [("machine", 50), ("process", 0)])
def test_commit_forces_one_write(path: Path, durability: str, expected: int) -> None:
    program = """
        import os, sys
        import gpu_pregel as gp
        store = gp.SQLiteStore(sys.argv[1])
        claim = store.create("run", "agents", b"base", owner="me", durability=sys.argv[2])
        store.commit(claim, 0, b"first")
        os.access("begin", os.F_OK)
        for step in range(1, 51):
            store.commit(claim, step, b"commit" * 30, [b"segment" * 150])
        os.access("end", os.F_OK)
        assert store.counts.transactions == 52
    """
    log = path.with_name("calls")
    traced = (
        "strace",
        "-f",
        "-qq",
        "-e",
        "trace=fsync,fdatasync,sync_file_range,msync,access,faccessat",
        "-o",
        str(log),
    )
    output(python(program, path, durability, prefix=traced))
    calls = log.read_text()
    between = calls[calls.index('"begin"') : calls.index('"end"')]
    assert len(re.findall(r"\b(?:fsync|fdatasync|sync_file_range|msync)\(", between)) == expected


def test_durability_is_set_per_claim(path: Path) -> None:
    with gp.SQLiteStore(path) as store:

        def synchronous() -> int:
            return int(store._database.query("PRAGMA synchronous", ())[0][0])

        durable, quick = begin(store, "a"), begin(store, "b", durability="process")
        for claim, level in ((durable, 2), (quick, 1), (durable, 2)):
            store.renew(claim)
            assert synchronous() == level
        store.release(quick)
        assert synchronous() == 1
        store.delete("b")
        assert synchronous() == 2
        assert store._database.query("PRAGMA journal_mode", ()) == [("wal",)]


def test_log_stays_small(path: Path) -> None:
    with gp.SQLiteStore(path) as store:
        claim = begin(store, durability="process")
        for step in range(12):
            store.commit(claim, step, b"", [bytes(8 << 20)])
        assert path.with_name("runs.db-wal").stat().st_size < 80 << 20
        assert list(store.load("run").commits())[11].step == 11
    assert not path.with_name("runs.db-wal").exists()


def test_compact_returns_pruned_space(path: Path) -> None:
    with gp.SQLiteStore(path) as store:
        claim = begin(store, durability="process")
        store.commit(claim, 0, b"", [bytes(4 << 20)])
        store.commit(claim, 1, b"", base=b"state")
        store.compact()
        large = path.stat().st_size
        store.prune("run", keep=1)
        store.compact()
        assert path.stat().st_size < large - (4 << 20) + 10_000
        assert store.load("run").base() == b"state"


def test_a_thousand_small_supersteps_take_little_space(path: Path) -> None:
    with gp.SQLiteStore(path) as store:
        claim = begin(store, durability="process")
        for step in range(1000):
            store.commit(claim, step, b"c" * 200, [b"s" * 200])
    assert path.stat().st_size < 1 << 20


# Several processes


def test_one_of_two_committing_processes_wins(path: Path) -> None:
    with gp.SQLiteStore(path) as store:
        begin(store, durability="process")
    outputs = run_together(
        *(python(race_program("gp.SQLiteStore(where[0])", 25), path, owner) for owner in ("one", "two"))
    )
    won = [(int(step), owner) for owner, out in zip(("one", "two"), outputs, strict=True) for step in out.split()]
    with gp.SQLiteStore(path) as store:
        commits = [(commit.step, commit.data.decode()) for commit in store.load("run").commits()]
        assert store.run("run").epoch == 51
    assert sorted(won) == commits
    assert [step for step, _ in commits] == list(range(len(commits)))


def test_several_processes_create_a_file_concurrently(path: Path) -> None:
    program = """
        import sys
        import gpu_pregel as gp
        sys.stdin.readline()
        with gp.SQLiteStore(sys.argv[1]) as store:
            store.create(sys.argv[2], "agents", b"", owner="me")
    """
    makers = [python(program, path, name) for name in "abcd"]
    for maker in makers:
        assert maker.stdin is not None
        maker.stdin.write("go\n")
        maker.stdin.flush()
    for maker in makers:
        output(maker)
    with gp.SQLiteStore(path) as store:
        assert sorted(row.id for row in store.runs()) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("statement", [0, 1, 2, 3])
def test_process_killed_during_a_commit_writes_nothing(path: Path, statement: int) -> None:
    program = """
        import os, signal, sys
        import gpu_pregel as gp
        from gpu_pregel.host.stores.sqlite import SQLiteStore
        store = SQLiteStore(sys.argv[1])
        claim = store.create("run", "agents", b"base", owner="me")
        store.commit(claim, 0, b"zero")
        def kill_before(writes, count):
            for number, write in enumerate(writes):
                if number == count:
                    os.kill(os.getpid(), signal.SIGKILL)
                yield write
        apply = store._database.apply
        store._database.apply = lambda forced, first, rest: apply(forced, first, kill_before(rest, int(sys.argv[2])))
        store.commit(claim, 1, b"one", [b"a", b"b", b"c"])
    """
    process = python(program, path, statement)
    assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == -signal.SIGKILL
    with gp.SQLiteStore(path) as store:
        assert [commit.data for commit in store.load("run").commits()] == [b"zero"]
        assert list(store.load("run").held()) == []
        for table in ("segments", "commits"):
            assert store._database.query(f"SELECT COUNT(*) FROM {table} WHERE step = 1", ()) == [(0,)]
        claim = store.claim("run", owner="next", takeover=True)
        store.commit(claim, 1, b"again")


def test_forked_process_reopens_the_store(path: Path) -> None:
    program = """
        import os, sys
        import gpu_pregel as gp
        store = gp.SQLiteStore(sys.argv[1])
        claim = store.create("run", "agents", b"base", owner="me")
        own = store._database._connection
        pid = os.fork()
        if pid == 0:
            store.commit(claim, 0, b"from the child")
            assert store._database._connection is not own
            store.close()
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        print([commit.data for commit in store.load("run").commits()])
        store.commit(claim, 1, b"from the parent")
    """
    assert output(python(program, path)) == "[b'from the child']\n"


_FORKS = """
        import os, signal, sqlite3, sys, threading
        import gpu_pregel as gp
        store = gp.SQLiteStore(sys.argv[1], busy_timeout=20)
        claim = store.create("run", "agents", b"base", owner="me", durability="process")

        def fork():
            pid = os.fork()
            if pid == 0:
                signal.alarm(15)
                store.run("run")
                os._exit(0)
            assert os.waitpid(pid, 0)[1] == 0
"""


def test_fork_while_threads_use_a_store(path: Path) -> None:
    program = """
        def renew():
            while not over:
                store.renew(claim)

        over = False
        thread = threading.Thread(target=renew, daemon=True)
        thread.start()
        for _ in range(10):
            fork()
        over = True
        thread.join()
    """
    assert output(python(_FORKS + program, path, prefix=("env", "PYTHONWARNINGS=ignore"))) == ""


def test_fork_while_a_store_waits_for_a_lock(path: Path) -> None:
    program = """
        other = sqlite3.connect(sys.argv[1], isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        thread = threading.Thread(target=store.renew, args=(claim,))
        thread.start()
        while store._database.lock.acquire(blocking=False):
            store._database.lock.release()
        fork()
        other.execute("ROLLBACK")
        thread.join()
        store.renew(claim)
    """
    assert output(python(_FORKS + program, path, prefix=("env", "PYTHONWARNINGS=ignore"))) == ""


@contextmanager
def locked(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield other


def test_waits_for_another_writer(path: Path) -> None:
    with gp.SQLiteStore(path, busy_timeout=30) as store:
        claim = begin(store)
        with locked(path) as other:
            timer = threading.Timer(0.3, other.execute, ("COMMIT",))
            timer.start()
            start = time.monotonic()
            store.commit(claim, 0, b"zero")
            assert time.monotonic() - start >= 0.25
            timer.join()


def test_busy_timeout_is_an_error(path: Path) -> None:
    with gp.SQLiteStore(path, busy_timeout=0.1) as store:
        claim = begin(store)
        with locked(path):
            with pytest.raises(StoreError, match=r"runs\.db: is in use by another program: wait until it has finished"):
                store.commit(claim, 0, b"zero", [b"segment"])
            # A writer does not block readers.
            assert store.run("run").head == -1
            with gp.SQLiteStore(path, read_only=True) as reader:
                assert [row.id for row in reader.runs()] == ["run"]
        store.commit(claim, 0, b"zero", [b"segment"])
        assert [list(commit.segments()) for commit in store.load("run").commits()] == [[b"segment"]]


# Disk space


def test_full_store_keeps_committed_data(path: Path) -> None:
    with gp.SQLiteStore(path) as store:
        claim = begin(store)
        store.commit(claim, 0, b"zero", [b"segment"])
        pages = store._database.query("PRAGMA page_count", ())[0][0]
        store._database.query(f"PRAGMA max_page_count = {pages + 3}", ())
        full = r"runs\.db: has no space left: free space on its disk and continue; committed data are safe"
        for attempt in (
            lambda: store.commit(claim, 1, b"one", [b"small", bytes(1 << 20)]),
            lambda: store.flush(claim, 1, [bytes(1 << 20)]),
            lambda: store.put_base(claim, 0, bytes(1 << 20)),
            lambda: begin(store, "other", meta=bytes(1 << 20)),
        ):
            with pytest.raises(StoreError, match=full):
                attempt()
        assert [row.id for row in store.runs()] == ["run"]
        assert list(store.load("run").held()) == []
        store.commit(claim, 1, b"one", [b"small"])
        store._database.query("PRAGMA max_page_count = 100000", ())
        store.commit(claim, 2, b"two", [bytes(1 << 20)])
        assert [commit.data for commit in store.load("run").commits()] == [b"zero", b"one", b"two"]


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
        store.release(begin(store))
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
    with pytest.raises(ArgumentError, match="busy_timeout must be a number of seconds above 0, not 0"):
        gp.SQLiteStore(tmp_path / "runs.db", busy_timeout=0)


@pytest.mark.parametrize("name", ["with space?.db", "100%.db", "#1&x=y.db", "ü.db", os.fsdecode(b"\xff.db")])
@pytest.mark.parametrize("before", ["", "/"])
def test_special_characters_in_paths(tmp_path: Path, name: str, before: str) -> None:
    with gp.SQLiteStore(f"{before}{tmp_path}/{name}") as store:
        begin(store)
        assert [entry for entry in os.listdir(tmp_path) if "-" not in entry] == [name]


def test_relative_path_is_resolved_when_opened(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    with gp.SQLiteStore("runs.db") as store:
        monkeypatch.chdir("/")
        store.commit(begin(store), 0, b"")
    assert path.exists()


@pytest.mark.parametrize("way", ["moved", "removed", "replaced"])
def test_file_moved_while_open_is_detected(path: Path, way: str) -> None:
    with gp.SQLiteStore(path) as store:
        claim = begin(store)
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
    claim = begin(store)
    store.close()
    store.close()
    for attempt in (store.runs, lambda: store.commit(claim, 0, b"")):
        with pytest.raises(StoreError, match=r"runs\.db: is closed: open it again"):
            attempt()


# Versions


MORE = (("ALTER TABLE @runs ADD COLUMN colour {text} NOT NULL DEFAULT 'grey'",),)


def test_store_of_an_older_version_is_migrated(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with gp.SQLiteStore(path) as store:
        claim = begin(store)
        store.commit(claim, 0, b"zero")
        before = everything(store)
    monkeypatch.setattr(sqlite_file, "MIGRATIONS", MIGRATIONS + MORE)
    with pytest.raises(StoreError, match="has version 1 of the tables: open it once without read_only=True"):
        gp.SQLiteStore(path, read_only=True)
    for _ in range(2):
        with gp.SQLiteStore(path) as store:
            assert store._database.query("PRAGMA user_version", ()) == [(2,)]
            assert store._database.query("SELECT colour FROM runs", ()) == [("grey",)]
            assert everything(store) == before
    with gp.SQLiteStore(path, read_only=True) as store:
        assert everything(store) == before
    monkeypatch.undo()
    with pytest.raises(
        StoreError, match="has version 2 of the tables, but this release supports only up to 1: use the release"
    ):
        gp.SQLiteStore(path)


def test_failed_migration_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with gp.SQLiteStore(path) as store:
        begin(store)
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
        begin(store)
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
            claim = begin(store, name, durability="process", meta=blob(50), blobs={"array": blob(9000)})
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
