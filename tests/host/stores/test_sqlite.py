"""Stores in a SQLite file: forced writes, several processes, forks, locks and full disks."""

from __future__ import annotations

import inspect
import re
import shutil
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import StoreError
from tests.stores import begin_durable, output, python, race_program, run_together

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

        durable, quick = begin_durable(store, "a"), begin_durable(store, "b", durability="process")
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
        claim = begin_durable(store, durability="process")
        for step in range(12):
            store.commit(claim, step, b"", [bytes(8 << 20)])
        assert path.with_name("runs.db-wal").stat().st_size < 80 << 20
        assert list(store.load("run").commits())[11].step == 11
    assert not path.with_name("runs.db-wal").exists()


def test_compact_returns_pruned_space(path: Path) -> None:
    with gp.SQLiteStore(path) as store:
        claim = begin_durable(store, durability="process")
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
        claim = begin_durable(store, durability="process")
        for step in range(1000):
            store.commit(claim, step, b"c" * 200, [b"s" * 200])
    assert path.stat().st_size < 1 << 20


# Several processes


def test_one_of_two_committing_processes_wins(path: Path) -> None:
    with gp.SQLiteStore(path) as store:
        begin_durable(store, durability="process")
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
    assert process.communicate(timeout=200) == ("", "")
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
        store = gp.SQLiteStore(sys.argv[1], patience=20)
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
    defaults = [inspect.signature(kind).parameters["patience"].default for kind in (gp.SQLiteStore, gp.PostgresStore)]
    assert defaults == [30.0, 30.0]
    for patience in (0.25, 30, 999):
        with gp.SQLiteStore(path, patience=patience) as store:
            assert store._database.query("PRAGMA busy_timeout", ()) == [(1000 * patience,)]
    with gp.SQLiteStore(path) as store:
        claim = begin_durable(store)
        with locked(path) as other:
            timer = threading.Timer(0.3, other.execute, ("COMMIT",))
            start = time.monotonic()
            timer.start()
            store.commit(claim, 0, b"zero")
            assert time.monotonic() - start >= 0.3
            timer.join()


def test_an_exhausted_patience_is_an_error(path: Path) -> None:
    with gp.SQLiteStore(path, patience=0.1) as store:
        claim = begin_durable(store)
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
        claim = begin_durable(store)
        store.commit(claim, 0, b"zero", [b"segment"])
        pages = store._database.query("PRAGMA page_count", ())[0][0]
        store._database.query(f"PRAGMA max_page_count = {pages + 3}", ())
        full = r"runs\.db: has no space left: free space on its disk and continue; committed data are safe"
        for attempt in (
            lambda: store.commit(claim, 1, b"one", [b"small", bytes(1 << 20)]),
            lambda: store.flush(claim, 1, [bytes(1 << 20)]),
            lambda: store.put_base(claim, 0, bytes(1 << 20)),
            lambda: begin_durable(store, "other", meta=bytes(1 << 20)),
        ):
            with pytest.raises(StoreError, match=full):
                attempt()
        assert [row.id for row in store.runs()] == ["run"]
        assert list(store.load("run").held()) == []
        store.commit(claim, 1, b"one", [b"small"])
        store._database.query("PRAGMA max_page_count = 100000", ())
        store.commit(claim, 2, b"two", [bytes(1 << 20)])
        assert [commit.data for commit in store.load("run").commits()] == [b"zero", b"one", b"two"]


def test_unfinished_runs_are_found_without_reading_all_runs(tmp_path: Path) -> None:
    with gp.SQLiteStore(tmp_path / "runs.db") as store:
        statement = store._database.statements.unfinished
        plan = [step[3] for step in store._database.query(f"EXPLAIN QUERY PLAN {statement}", ("agents",) * 3)]
    assert any("runs_by_status" in step for step in plan)
    assert {step.split()[1] for step in plan if step.startswith("SCAN")} == {"requests", "asked"}


def test_a_commit_does_not_write_the_index_of_statuses(tmp_path: Path) -> None:
    with gp.SQLiteStore(tmp_path / "runs.db") as store:
        statements = store._database.statements
        for statement, writes in [(statements.advance_run, 0), (statements.swap_run, 1)]:
            program = store._database.query(f"EXPLAIN {statement}", (None,) * statement.count("?"))
            assert sum(step[1] == "IdxInsert" for step in program) == writes
