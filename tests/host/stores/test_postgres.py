"""Stores in PostgreSQL: several processes, settings, privileges, versions and arguments."""

from __future__ import annotations

import sys
import threading
import time

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import (
    ArgumentError,
    ArgumentTypeError,
    ClaimedError,
    MissingPackageError,
    StoreError,
)
from gpu_pregel.host.stores import postgres_database as module
from gpu_pregel.host.stores.schema import MIGRATIONS
from tests.postgres import Cluster
from tests.stores import begin_durable, python, race_program, run_together

# Several processes


def test_one_of_two_committing_processes_wins(store: gp.PostgresStore, postgres: str, schema: str) -> None:
    begin_durable(store)
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
        claim = begin_durable(store)
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
    begin_durable(store, lease_seconds=60)
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

    durable, quick = begin_durable(store, "a"), begin_durable(store, "b", durability="process")
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
        begin_durable(store)
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
    claim = begin_durable(store)
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
    begin_durable(store)
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
        store.commit(begin_durable(store), 0, b"zero")
        before = store.runs(), store.history("run")
    more = ("ALTER TABLE @runs ADD COLUMN colour {text} NOT NULL DEFAULT 'grey'",)
    monkeypatch.setattr(module, "MIGRATIONS", (*MIGRATIONS, (*more, "CREATE NONSENSE")))
    with pytest.raises(StoreError, match=r"cannot be used .*NONSENSE"):
        gp.PostgresStore(postgres, schema=schema)
    monkeypatch.setattr(module, "MIGRATIONS", (*MIGRATIONS, more))
    for _ in range(2):
        with gp.PostgresStore(postgres, schema=schema) as store:
            assert store._database.query(f"SELECT colour, version FROM {schema}.runs, {schema}.about", ()) == [
                ("grey", len(MIGRATIONS) + 1)
            ]
            assert (store.runs(), store.history("run")) == before
    monkeypatch.undo()
    newer = f"has version {len(MIGRATIONS) + 1} of the tables, but this release supports only up to {len(MIGRATIONS)}"
    with pytest.raises(StoreError, match=newer):
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
