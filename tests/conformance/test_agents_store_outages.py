"""Stores of agents that are locked, full, or behind a connection that fails."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.agents import Vertex
from gpu_pregel.errors import ClaimedError, StoreError
from tests import crashes as crashing
from tests.agents import FEW, ON_THREADS, result_bytes
from tests.conformance.agent_programs import GROWING, GROWING_VERTICES, growing
from tests.crashes import RUN, effects, recorded
from tests.postgres import Cluster, Proxy


@pytest.fixture(scope="module")
def grown() -> bytes:
    return result_bytes(gp.agents.run(GROWING_VERTICES, **GROWING, run_id=RUN))


# Locked and full files


@FEW
def test_a_run_waits_while_another_program_writes(path: Path, grown: bytes, workers: int) -> None:
    def lock(event: Any) -> None:
        if event.kind == "commit" and event.superstep == 2:
            other.execute("BEGIN IMMEDIATE")
            threading.Timer(0.5, other.rollback).start()

    with (
        closing(sqlite3.connect(path, check_same_thread=False)) as other,
        gp.SQLiteStore(path) as store,
    ):
        result = gp.agents.run(GROWING_VERTICES, **GROWING, run_id=RUN, store=store, observer=lock, workers=workers)
        assert result_bytes(result) == grown
        assert result_bytes(gp.agents.state_at(store, RUN)) == grown


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("fault", ["locked", "full"])
@pytest.mark.parametrize("step", [2, 3])  # detected at the commit, and by a flush before it
def test_a_run_continues_when_the_store_is_available_again(
    path: Path, grown: bytes, fault: str, step: int, elsewhere: bool
) -> None:
    problem = {"locked": "is in use by another program", "full": "has no space left"}[fault]
    with gp.SQLiteStore(path, patience=0.05) as store, closing(sqlite3.connect(path)) as other:

        def limit(pages: int) -> None:
            store._database.query(f"PRAGMA max_page_count = {pages}", ())

        with gp.agents.start(GROWING_VERTICES, **GROWING, run_id=RUN, store=store) as agents:
            for _ in range(step):
                agents.step()
            if fault == "full":
                limit(store._database.query("PRAGMA page_count", ())[0][0])
            else:
                other.execute("BEGIN IMMEDIATE")
            for _ in range(2):
                with pytest.raises(StoreError, match=problem):
                    agents.step()
                assert (agents.status, agents.result().superstep) == ("running", step)
                assert store.run(RUN).head == step - 1
            other.rollback()
            limit(1 << 30)
            while not elsewhere and agents.step():
                pass
        result = gp.agents.resume(store, RUN, **GROWING, takeover=elsewhere)
        assert result_bytes(result) == grown
        assert result_bytes(gp.agents.state_at(store, RUN)) == grown


def test_a_run_whose_claim_could_not_be_released_resumes_in_this_process(path: Path, grown: bytes) -> None:
    with gp.SQLiteStore(path, patience=0.05) as store, closing(sqlite3.connect(path)) as other:
        with gp.agents.start(GROWING_VERTICES, **GROWING, run_id=RUN, store=store) as agents:
            agents.step()
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreError, match="is in use by another program"):
                agents.step()
        other.rollback()
        with gp.agents.start([Vertex(1, b"")], growing, run_id="other", store=store):
            result = gp.agents.resume(store, RUN, **GROWING)
        assert result_bytes(result) == grown


def test_a_run_that_this_process_executes_is_not_given_up(path: Path) -> None:
    with gp.SQLiteStore(path) as store, gp.agents.start(GROWING_VERTICES, **GROWING, run_id=RUN, store=store) as agents:
        agents.step()
        with pytest.raises(ClaimedError, match="takeover=True"):
            gp.agents.resume(store, RUN, **GROWING)


def test_a_run_does_not_start_in_a_full_store(path: Path) -> None:
    with gp.SQLiteStore(path) as store:
        store._database.query(f"PRAGMA max_page_count = {store._database.query('PRAGMA page_count', ())[0][0]}", ())
        with pytest.raises(StoreError, match="has no space left"):
            gp.agents.run([Vertex(1, bytes(1 << 20))], growing, store=store)
        assert store.runs() == []


# A server over an unreliable connection


@FEW
def test_connections_are_cut_before_and_after_commits(cluster: Cluster, tmp_path: Path, workers: int) -> None:
    log = tmp_path / "log"
    schema = "cut_threads" if workers is ON_THREADS else f"cut_{workers}"
    program = crashing.program(str(log), workers)
    whole = crashing.run_to_end(gp.agents.start(crashing.VERTICES, run_id=RUN, **crashing.program(str(log))))
    log.unlink()
    commits, is_committing = 0, False

    def watch(to_server: bool, data: bytes) -> bool:
        """Cut before every fourth COMMIT arrives, and before the reply to another fourth."""
        nonlocal commits, is_committing
        if to_server and b"COMMIT\0" in data:
            commits += 1
            is_committing = commits % 4 == 0
            return commits % 4 != 2
        is_cut, is_committing = is_committing and not to_server, is_committing and to_server
        return not is_cut

    with Proxy(cluster) as proxy, gp.PostgresStore(proxy.dsn, schema=schema, patience=10) as store:
        proxy.watch = watch
        result = crashing.run_to_end(gp.agents.start(crashing.VERTICES, run_id=RUN, store=store, **program))
        assert result_bytes(result) == result_bytes(whole)
        assert proxy.connections > 4
        proxy.watch = lambda _to_server, _data: True
        assert result_bytes(gp.agents.state_at(store, RUN)) == result_bytes(whole)
        assert set(recorded(store).values()) == {1}
    assert set(effects(log).values()) == {1}


def test_a_server_is_unreachable_for_two_seconds(cluster: Cluster, grown: bytes) -> None:
    def cut(event: Any) -> None:
        if event.kind == "commit" and event.superstep == 2:
            proxy.close()
            threading.Timer(2.0, proxy.reopen).start()

    with Proxy(cluster) as proxy, gp.PostgresStore(proxy.dsn, schema="away", patience=20) as store:
        result = gp.agents.run(GROWING_VERTICES, **GROWING, run_id=RUN, store=store, observer=cut)
        assert result_bytes(result) == grown
        assert result_bytes(gp.agents.state_at(store, RUN)) == grown
