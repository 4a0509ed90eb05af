"""Stores in PostgreSQL: lost connections and unreachable servers."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import (
    FencedError,
    StoreError,
)
from gpu_pregel.host.stores.rows import Claim
from tests.postgres import Cluster, Proxy, cut_at_commit
from tests.stores import begin_durable

# Lost connections


MOMENTS = pytest.mark.parametrize("moment", ["request", "reply"])


@MOMENTS
def test_commit_with_lost_reply_is_applied_once(
    store: gp.PostgresStore, proxied: gp.PostgresStore, proxy: Proxy, moment: str
) -> None:
    claim = begin_durable(proxied)
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

    claim = begin_durable(proxied)
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
        lambda: claims.append(begin_durable(proxied)),
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
    claim = begin_durable(proxied)
    # Another handle of the claim renews it before this one finds out whether its flush was committed.
    cut_at_commit(proxy, "reply", lambda: store.renew(claim))
    proxied.flush(claim, 0, [b"a", b"b"])
    proxied.flush(claim, 0, [b"c"])
    assert list(store.load("run").held()) == [b"a", b"b", b"c"]


def test_reconnects_after_the_server_terminates_the_connection(store: gp.PostgresStore, cluster: Cluster) -> None:
    claim = begin_durable(store)
    ours = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'gpu_pregel'"
    for step in range(3):
        assert cluster.execute(ours)
        store.commit(claim, step, b"")
        assert cluster.execute(ours)
        assert store.run("run").head == step


def test_repeated_connection_loss_is_an_error(proxied: gp.PostgresStore, proxy: Proxy) -> None:
    claim = begin_durable(proxied)
    proxy.watch = lambda to_server, data: b"COMMIT\0" not in data
    with pytest.raises(StoreError, match=r"PostgreSQL database postgres at 127.* failed 100 attempts: its connection"):
        proxied.commit(claim, 0, b"")
    proxy.watch = lambda to_server, data: True
    proxied.commit(claim, 0, b"")


# Unreachable servers


def test_waits_for_a_store_that_is_unreachable_for_two_seconds(proxied: gp.PostgresStore, proxy: Proxy) -> None:
    claim = begin_durable(proxied)
    proxy.close()
    timer = threading.Timer(2, proxy.reopen)
    start = time.monotonic()
    timer.start()
    proxied.commit(claim, 0, b"zero")
    assert time.monotonic() - start >= 2
    timer.join()
    assert [row.step for row in proxied.history("run")] == [0]


def test_server_restart_loses_no_commit(store: gp.PostgresStore, cluster: Cluster) -> None:
    claim = begin_durable(store)

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

    claim = begin_durable(store)
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
        claim = begin_durable(proxied)
        proxy.close()
        with pytest.raises(StoreError, match=r"cannot be reached \(connection.*refused"):
            proxied.commit(claim, 0, b"zero")
        with pytest.raises(StoreError, match="cannot be reached"):
            proxied.runs()
        proxy.reopen()
        proxied.commit(claim, 0, b"zero")
        assert proxied.run("run").head == 0


def test_unreachable_server_fails_fast_when_opened(proxy: Proxy, schema: str) -> None:
    """Patience, which exceeds the time limit of this test, is only for stores that were open."""
    proxy.close()
    with pytest.raises(StoreError, match="cannot be reached"):
        gp.PostgresStore(proxy.dsn, schema=schema, patience=3600)


@pytest.mark.usefixtures("interrupts")
def test_keyboard_interrupt_while_waiting_writes_nothing(
    store: gp.PostgresStore, cluster: Cluster, schema: str
) -> None:
    import psycopg

    claim = begin_durable(store)
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
