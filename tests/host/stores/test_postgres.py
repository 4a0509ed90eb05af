"""Stores in PostgreSQL: lost connections, unreachable servers, clocks, privileges and versions."""

from __future__ import annotations

import itertools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import (
    ArgumentError,
    ArgumentTypeError,
    ClaimedError,
    FencedError,
    MissingPackageError,
    StoreError,
)
from gpu_pregel.host.stores import postgres_database as module
from gpu_pregel.host.stores.rows import Claim
from gpu_pregel.host.stores.schema import MIGRATIONS
from tests.postgres import Cluster, Proxy
from tests.stores import python, race_program, run_together

_numbers = itertools.count()


@pytest.fixture
def schema() -> str:
    return f"special_{next(_numbers)}"


@pytest.fixture
def store(postgres: str, schema: str) -> Iterator[gp.PostgresStore]:
    with gp.PostgresStore(postgres, schema=schema) as opened:
        yield opened


@pytest.fixture
def proxy(cluster: Cluster) -> Iterator[Proxy]:
    with Proxy(cluster) as opened:
        yield opened


@pytest.fixture
def proxied(proxy: Proxy, schema: str) -> Iterator[gp.PostgresStore]:
    """The store of ``store``, opened through the proxy."""
    with gp.PostgresStore(proxy.dsn, schema=schema, patience=10) as opened:
        yield opened


def begin(store: gp.PostgresStore, run_id: str = "run", **options: Any) -> Claim:
    return store.create(run_id, "agents", b"base", **{"owner": "first", **options})


# Lost connections


def cut_at_commit(proxy: Proxy, moment: str, after: Callable[[], None] = lambda: None) -> None:
    """Cut the connection once, before the next COMMIT reaches the server or before its reply returns.

    ``after`` is called after the reconnection, before any data pass through it.
    """
    state = "waiting"

    def watch(to_server: bool, data: bytes) -> bool:
        nonlocal state
        if state == "waiting" and to_server and b"COMMIT\0" in data:
            state = "cut" if moment == "request" else "committing"
            return state != "cut"
        if state == "committing" and not to_server:
            state = "cut"
            return False
        if state == "cut" and to_server:
            state = "again"
            after()
        return True

    proxy.watch = watch


MOMENTS = pytest.mark.parametrize("moment", ["request", "reply"])


@MOMENTS
def test_commit_with_lost_reply_is_applied_once(
    store: gp.PostgresStore, proxied: gp.PostgresStore, proxy: Proxy, moment: str
) -> None:
    claim = begin(proxied)
    cut_at_commit(proxy, moment)
    proxied.commit(claim, 0, b"zero", [b"a", b"b"], base=b"state")
    assert proxy.connections == 2
    # A commit that succeeded is not repeated.
    assert proxied.counts.transactions == (2 if moment == "request" else 1)
    assert [(row.step, row.segments) for row in store.history("run")] == [(0, 2)]
    proxied.commit(claim, 1, b"one")
    assert [commit.data for commit in store.load("run").commits()] == [b"one"]


@MOMENTS
def test_commit_with_lost_reply_and_competing_claim(
    store: gp.PostgresStore, proxied: gp.PostgresStore, proxy: Proxy, moment: str
) -> None:
    def overtake() -> None:
        store.claim("run", owner="second", takeover=True)

    claim = begin(proxied)
    cut_at_commit(proxy, moment, overtake)
    if moment == "request":
        with pytest.raises(FencedError, match=r"was claimed by second \(epoch 2\)"):
            proxied.commit(claim, 0, b"zero", [b"a"])
        assert store.history("run") == []
    else:
        proxied.commit(claim, 0, b"zero", [b"a"])
        assert [row.epoch for row in store.history("run")] == [1]
        with pytest.raises(FencedError, match=r"was claimed by second \(epoch 2\)"):
            proxied.commit(claim, 1, b"one")
    assert list(store.load("run").held()) == []
    assert store.run("run").epoch == 2


@MOMENTS
def test_every_call_survives_a_lost_reply(
    store: gp.PostgresStore, proxied: gp.PostgresStore, proxy: Proxy, moment: str
) -> None:
    claims: list[Claim] = []
    calls: list[Callable[[], Any]] = [
        lambda: claims.append(begin(proxied)),
        lambda: proxied.flush(claims[-1], 0, [b"a"]),
        lambda: proxied.flush(claims[-1], 0, [b"b"], "interrupted"),
        lambda: proxied.answer("run", 0, b"v", 0, b"yes"),
        lambda: proxied.renew(claims[-1]),
        lambda: proxied.commit(claims[-1], 0, b"zero", [b"c"]),
        lambda: proxied.put_base(claims[-1], 0, b"state"),
        lambda: proxied.release(claims[-1], "stopped"),
        lambda: claims.append(proxied.claim("run", owner="second")),
        lambda: proxied.commit(claims[-1], 1, b"one"),
        lambda: proxied.fork("run", 0, "fork", b"state"),
        lambda: proxied.prune("run", keep=2),
        lambda: proxied.delete("fork"),
    ]
    answers = []
    for number, call in enumerate(calls, 1):
        cut_at_commit(proxy, moment)
        call()
        assert proxy.connections == number + 1
        answers += store.answers("run", 0)
    assert {answer.data for answer in answers} == {b"yes"}
    assert [claim.epoch for claim in claims] == [1, 2]
    assert [(row.step, row.segments, row.epoch) for row in store.history("run")] == [(0, 3, 1), (1, 0, 2)]
    assert [row.id for row in store.runs()] == ["run"]
    assert store.run("run").epoch == 2
    assert [commit.data for commit in store.load("run").commits()] == [b"one"]


def test_flush_with_lost_reply_does_not_duplicate_segments(
    store: gp.PostgresStore, proxied: gp.PostgresStore, proxy: Proxy
) -> None:
    claim = begin(proxied)
    # Another handle of the claim renews it before this one finds out whether its flush was committed.
    cut_at_commit(proxy, "reply", lambda: store.renew(claim))
    proxied.flush(claim, 0, [b"a", b"b"])
    proxied.flush(claim, 0, [b"c"])
    assert list(store.load("run").held()) == [b"a", b"b", b"c"]


def test_reconnects_after_the_server_terminates_the_connection(store: gp.PostgresStore, cluster: Cluster) -> None:
    claim = begin(store)
    ours = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'gpu_pregel'"
    for step in range(3):
        assert cluster.execute(ours)
        store.commit(claim, step, b"")
        assert cluster.execute(ours)
        assert store.run("run").head == step


def test_repeated_connection_loss_is_an_error(proxied: gp.PostgresStore, proxy: Proxy) -> None:
    claim = begin(proxied)
    proxy.watch = lambda to_server, data: b"COMMIT\0" not in data
    with pytest.raises(StoreError, match=r"PostgreSQL database postgres at 127.* failed 100 attempts: its connection"):
        proxied.commit(claim, 0, b"")
    proxy.watch = lambda to_server, data: True
    proxied.commit(claim, 0, b"")


# Unreachable servers


def test_waits_for_a_store_that_is_unreachable_for_two_seconds(proxied: gp.PostgresStore, proxy: Proxy) -> None:
    claim = begin(proxied)
    proxy.close()
    timer = threading.Timer(2, proxy.reopen)
    timer.start()
    start = time.monotonic()
    proxied.commit(claim, 0, b"zero")
    assert time.monotonic() - start >= 1.9
    timer.join()
    assert [row.step for row in proxied.history("run")] == [0]


def test_server_restart_loses_no_commit(store: gp.PostgresStore, cluster: Cluster) -> None:
    claim = begin(store)

    def restart() -> None:
        cluster.stop()
        time.sleep(0.5)
        cluster.start()

    thread = threading.Thread(target=restart)
    thread.start()
    step = 0
    try:
        while thread.is_alive() or step < 20:
            store.commit(claim, step, b"commit %d" % step, [b"segment"])
            step += 1
    finally:
        thread.join()
    assert [(commit.step, commit.data) for commit in store.load("run").commits()] == [
        (k, b"commit %d" % k) for k in range(step)
    ]


def test_unusable_connection_is_replaced(store: gp.PostgresStore) -> None:
    import psycopg

    claim = begin(store)
    store.commit(claim, 0, b"commit 0")
    connection = store._database._connection

    @contextmanager
    def stuck() -> Iterator[None]:
        connection.pgconn.enter_pipeline_mode()
        yield
        raise psycopg.OperationalError("cannot exit pipeline mode while busy")

    connection.pipeline = stuck
    store.commit(claim, 1, b"commit 1", [b"segment"])
    assert store._database._connection is not connection
    assert [commit.data for commit in store.load("run").commits()] == [b"commit 0", b"commit 1"]


def test_reconnection_gives_up_after_patience(proxy: Proxy, schema: str) -> None:
    with gp.PostgresStore(proxy.dsn, schema=schema, patience=0.3) as proxied:
        claim = begin(proxied)
        proxy.close()
        with pytest.raises(StoreError, match=r"cannot be reached \(connection.*refused"):
            proxied.commit(claim, 0, b"zero")
        with pytest.raises(StoreError, match="cannot be reached"):
            proxied.runs()
        proxy.reopen()
        proxied.commit(claim, 0, b"zero")
        assert proxied.run("run").head == 0


def test_unreachable_server_fails_fast_when_opened(proxy: Proxy, schema: str) -> None:
    proxy.close()
    start = time.monotonic()
    with pytest.raises(StoreError, match="cannot be reached"):
        gp.PostgresStore(proxy.dsn, schema=schema)
    assert time.monotonic() - start < 5


@pytest.mark.usefixtures("interrupts")
def test_keyboard_interrupt_while_waiting_writes_nothing(
    store: gp.PostgresStore, cluster: Cluster, schema: str
) -> None:
    import psycopg

    claim = begin(store)
    with psycopg.connect(cluster.dsn) as other:
        other.execute(f"UPDATE {schema}.runs SET owner = owner".encode())
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            store.commit(claim, 0, b"zero")
        timer.join()
        other.rollback()
    assert store.run("run").head == -1
    store.commit(claim, 0, b"zero")


# Several processes


def test_one_of_two_committing_processes_wins(store: gp.PostgresStore, postgres: str, schema: str) -> None:
    begin(store)
    program = race_program("gp.PostgresStore(where[0], schema=where[1])", 15)
    outputs = run_together(*(python(program, postgres, schema, owner) for owner in ("one", "two")))
    won = [(int(step), owner) for owner, out in zip(("one", "two"), outputs, strict=True) for step in out.split()]
    commits = [(commit.step, commit.data.decode()) for commit in store.load("run").commits()]
    assert sorted(won) == commits
    assert store.run("run").epoch == 31


def test_several_processes_create_a_store_concurrently(postgres: str, schema: str) -> None:
    program = """
        import sys
        import gpu_pregel as gp
        sys.stdout.write("ready\\n"), sys.stdout.flush(), sys.stdin.readline()
        with gp.PostgresStore(sys.argv[1], schema=sys.argv[2]) as store:
            store.create(sys.argv[3], "agents", b"", owner="me")
    """
    run_together(*(python(program, postgres, schema, name) for name in "abc"))
    with gp.PostgresStore(postgres, schema=schema, create=False) as store:
        assert sorted(row.id for row in store.runs()) == ["a", "b", "c"]


def test_migration_waits_for_another_one(cluster: Cluster, schema: str) -> None:
    import psycopg

    opened: list[gp.PostgresStore] = []
    thread = threading.Thread(target=lambda: opened.append(gp.PostgresStore(cluster.dsn, schema=schema)))
    with psycopg.connect(cluster.dsn) as other:
        other.execute(b"SELECT pg_advisory_xact_lock(%s, hashtext(%s))", (module.LOCK, schema))
        thread.start()
        thread.join(0.3)
        assert opened == []
    thread.join()
    opened[0].close()


def test_row_locked_for_too_long_is_an_error(postgres: str, cluster: Cluster, schema: str) -> None:
    import psycopg

    with gp.PostgresStore(postgres, schema=schema, patience=0.2) as store:
        claim = begin(store)
        with psycopg.connect(cluster.dsn) as other:
            other.execute(f"UPDATE {schema}.runs SET owner = owner".encode())
            with pytest.raises(StoreError, match=r"is in use by another program .*: wait until it has finished"):
                store.commit(claim, 0, b"zero", [b"segment"])
            other.rollback()
        store.commit(claim, 0, b"zero", [b"segment"])
        assert [list(commit.segments()) for commit in store.load("run").commits()] == [[b"segment"]]


def test_forked_process_opens_its_own_connection(postgres: str, schema: str) -> None:
    program = """
        import os, sys
        import gpu_pregel as gp
        sys.stdout.write("ready\\n"), sys.stdout.flush(), sys.stdin.readline()
        store = gp.PostgresStore(sys.argv[1], schema=sys.argv[2])
        claim = store.create("run", "agents", b"base", owner="me")
        own = store._database.query("SELECT pg_backend_pid()", ())
        pid = os.fork()
        if pid == 0:
            store.commit(claim, 0, b"from the child")
            assert store._database.query("SELECT pg_backend_pid()", ()) != own
            store.close()
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        print([commit.data for commit in store.load("run").commits()])
        store.commit(claim, 1, b"from the parent")
        assert store._database.query("SELECT pg_backend_pid()", ()) == own
    """
    assert run_together(python(program, postgres, schema)) == ["[b'from the child']\n"]


def test_leases_follow_the_server_clock(
    store: gp.PostgresStore, postgres: str, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(store, lease_seconds=60)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 86_400)
    with gp.PostgresStore(postgres, schema=schema) as other:
        with pytest.raises(ClaimedError):
            other.claim("run", owner="from tomorrow")
        claim = other.claim("run", owner="from tomorrow", takeover=True)
        other.commit(claim, 0, b"")
        assert other.run("run").changed == pytest.approx(real(), abs=30)
        assert other.run("run").lease == pytest.approx(real() + 60, abs=30)


# Settings


def test_durability_is_set_per_claim(store: gp.PostgresStore, postgres: str, schema: str) -> None:
    def setting(of: gp.PostgresStore) -> str:
        return str(of._database.query("SHOW synchronous_commit", ())[0][0])

    durable, quick = begin(store, "a"), begin(store, "b", durability="process")
    for claim, expected in ((durable, "on"), (quick, "off"), (durable, "on")):
        store.renew(claim)
        assert setting(store) == expected
    for own, forced in (("off", "on"), ("local", "local"), ("remote_apply", "remote_apply")):
        dsn = f"{postgres} options='-c synchronous_commit={own}'"
        with gp.PostgresStore(dsn, schema=schema) as other:
            for claim, expected in ((durable, forced), (quick, "off"), (durable, forced)):
                other.renew(claim)
                assert setting(other) == expected


def test_isolation_does_not_depend_on_server_defaults(postgres: str, schema: str) -> None:
    options = "-c default_transaction_isolation=serializable -c default_transaction_read_only=on"
    with gp.PostgresStore(postgres, schema=schema):
        pass
    with gp.PostgresStore(f"{postgres} options='{options}'", schema=schema) as store:
        begin(store)
        assert store._database._connection.info.transaction_status.name == "IDLE"


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("53100", r"has no space left \(none\): free space on the server's disk and continue; committed data are safe"),
        ("25006", r"is read-only \(none\): connect to the primary server"),
        ("42501", r"denies this user access \(none\): grant access to the schema and its tables"),
        ("XX001", r"cannot be used \(none\)"),
        ("57014", r"cannot be used \(none\)"),
        ("40001", r"failed 100 attempts"),
    ],
)
def test_server_errors_are_translated_and_write_nothing(
    store: gp.PostgresStore, cluster: Cluster, schema: str, code: str, problem: str
) -> None:
    claim = begin(store)
    cluster.execute(
        f"CREATE FUNCTION {schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION 'none' USING ERRCODE = '{code}'; END $$"
    )
    trigger = f"TRIGGER refuse BEFORE INSERT ON {schema}.commits FOR EACH ROW EXECUTE FUNCTION {schema}.refuse()"
    cluster.execute(f"CREATE {trigger}")
    with pytest.raises(StoreError, match=problem):
        store.commit(claim, 0, b"zero", [b"segment"])
    assert store.run("run").head == -1
    cluster.execute(f"DROP TRIGGER refuse ON {schema}.commits")
    store.commit(claim, 0, b"zero", [b"segment"])
    assert [list(commit.segments()) for commit in store.load("run").commits()] == [[b"segment"]]


def test_missing_privileges_are_reported(store: gp.PostgresStore, cluster: Cluster, schema: str) -> None:
    begin(store)
    cluster.execute("CREATE ROLE reader LOGIN")
    cluster.execute(f"GRANT USAGE ON SCHEMA {schema} TO reader")
    cluster.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO reader")
    try:
        dsn = cluster.dsn.replace("user=postgres", "user=reader")
        with gp.PostgresStore(dsn, schema=schema) as reader:
            assert [row.id for row in reader.runs()] == ["run"]
            with pytest.raises(StoreError, match="denies this user access"):
                reader.claim("run", owner="reader", takeover=True)
        with pytest.raises(StoreError, match="denies this user access"):
            gp.PostgresStore(dsn, schema="another")
    finally:
        cluster.execute("DROP OWNED BY reader")
        cluster.execute("DROP ROLE reader")


# Versions and arguments


def test_store_of_an_older_version_is_migrated(postgres: str, schema: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with gp.PostgresStore(postgres, schema=schema) as store:
        store.commit(begin(store), 0, b"zero")
        before = store.runs(), store.history("run")
    more = ("ALTER TABLE @runs ADD COLUMN colour {text} NOT NULL DEFAULT 'grey'",)
    monkeypatch.setattr(module, "MIGRATIONS", (*MIGRATIONS, (*more, "CREATE NONSENSE")))
    with pytest.raises(StoreError, match=r"cannot be used .*NONSENSE"):
        gp.PostgresStore(postgres, schema=schema)
    monkeypatch.setattr(module, "MIGRATIONS", (*MIGRATIONS, more))
    for _ in range(2):
        with gp.PostgresStore(postgres, schema=schema) as store:
            assert store._database.query(f"SELECT colour, version FROM {schema}.runs, {schema}.about", ()) == [
                ("grey", 2)
            ]
            assert (store.runs(), store.history("run")) == before
    monkeypatch.undo()
    with pytest.raises(
        StoreError, match="has version 2 of the tables, but this release supports only up to 1: use the release"
    ):
        gp.PostgresStore(postgres, schema=schema)


def test_schema_with_other_tables_is_not_changed(postgres: str, cluster: Cluster, schema: str) -> None:
    with pytest.raises(StoreError, match=r"is not a store: pass another schema=, or create=True"):
        gp.PostgresStore(postgres, schema=schema, create=False)
    cluster.execute(f"CREATE SCHEMA {schema}")
    cluster.execute(f"CREATE TABLE {schema}.runs (mine int)")
    with pytest.raises(StoreError, match="has tables of another program"):
        gp.PostgresStore(postgres, schema=schema)
    assert cluster.execute(f"SELECT * FROM {schema}.runs") == []
    assert cluster.execute(f"SELECT to_regclass('{schema}.about')") == [(None,)]


def test_invalid_arguments_are_refused(postgres: str) -> None:
    with pytest.raises(ArgumentTypeError, match="dsn must be a connection string, not 3"):
        gp.PostgresStore(3)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"dsn is not a connection string of PostgreSQL \(ProgrammingError\)$"):
        gp.PostgresStore("host=localhost passwort=secret")
    for schema in ("", "a b", 'a"; DROP TABLE runs; --', "x" * 64, "ü", 3):
        with pytest.raises(ArgumentError, match="schema must be a name of up to 63 letters, digits and underscores"):
            gp.PostgresStore(postgres, schema=schema)  # type: ignore[arg-type]


def test_name_shows_the_server_but_not_the_password(cluster: Cluster, schema: str) -> None:
    with gp.PostgresStore(f"{cluster.dsn} password=secret", schema=schema) as store:
        assert store.name == f"PostgreSQL database postgres at {cluster.folder}, schema {schema}"
    with pytest.raises(StoreError, match=f"schema {schema}: is closed: open it again"):
        store.runs()


def test_missing_psycopg_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingPackageError, match=r"gp\.PostgresStore needs .* pip install gpu-pregel\[postgres\]"):
        gp.PostgresStore("")
