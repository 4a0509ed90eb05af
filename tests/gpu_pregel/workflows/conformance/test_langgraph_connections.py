"""A saver repeats a transaction on PostgreSQL whose connection is lost, and stores everything once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import gpu_pregel as gp
from tests.packages import needs
from tests.postgres import Cluster, Proxy, cut_at_commit

needs("langgraph.checkpoint.conformance", "test")

from gpu_pregel.workflows import LangGraphSaver  # noqa: E402
from tests.gpu_pregel.workflows.checkpoints import config_of, put  # noqa: E402


@pytest.mark.parametrize("moment", ["request", "reply"])
def test_lost_connection_stores_a_checkpoint_once(postgres: str, cluster: Cluster, moment: str) -> None:
    schema = f"lost_{moment}"
    with (
        gp.PostgresStore(postgres, schema=schema) as store,
        Proxy(cluster) as proxy,
        gp.PostgresStore(proxy.dsn, schema=schema, patience=10) as proxied,
    ):
        check_lost_connections(store, proxied, proxy, moment)


def check_lost_connections(store: gp.PostgresStore, proxied: gp.PostgresStore, proxy: Proxy, moment: str) -> None:
    """Cut the connection at each commit; what is stored is stored once."""
    saver: Any = LangGraphSaver(proxied)
    calls: list[Callable[[], Any]] = [
        lambda: put(saver, config_of(), 1, {"text": ["a" * 100]}),
        lambda: put(saver, config_of(checkpoint="0001"), 2, {"text": ["a" * 100, "b" * 100]}),
        lambda: saver.put_writes(config_of(checkpoint="0002"), [("x", 1), ("y", 2)], "task"),
        lambda: put(saver, config_of(checkpoint="0002"), 3, {"text": ["a" * 100, "c" * 100]}),
        lambda: saver.copy_thread("thread", "copy"),
        lambda: saver.prune(["thread"]),
        lambda: saver.delete_thread("thread"),
    ]
    for call in calls:
        cut_at_commit(proxy, moment)
        call()
    assert proxy.connections == len(calls) + 1
    history = list(LangGraphSaver(store).list({"configurable": {"thread_id": "copy"}}))
    assert [len(one.checkpoint["channel_values"]["text"]) for one in history] == [2, 2, 1]
    assert [len(one.pending_writes) for one in history] == [0, 2, 0]
    assert LangGraphSaver(store).get_tuple(config_of()) is None
    prefix = store._database.dialect.prefix
    assert store._database.query(f"SELECT COUNT(*) FROM {prefix}thread_values", ()) == [(3,)]
