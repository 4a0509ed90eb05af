"""Agent runs in all stores: claims, and which stores and run ids are refused."""

from __future__ import annotations

import gc
import os
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.agents import Vertex
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, ClaimedError, FencedError
from gpu_pregel.host.stores import leases
from gpu_pregel.host.stores.leases import Lease
from gpu_pregel.host.stores.store import Store
from tests.agents import ONCE
from tests.conformance.agent_programs import COUNTING, counting
from tests.host.agents.workers.worker_programs import is_alive, running, wait_for
from tests.stores import Open

# Claims


def test_a_claimed_run_belongs_to_its_owner_until_it_is_taken_over(opened: Open) -> None:
    first = gp.agents.start([Vertex(1, 0)], **COUNTING, store=opened(), run_id="run")
    first.step()
    with pytest.raises(ClaimedError, match=r"run 'run' is claimed by process .* on .* until"):
        gp.agents.resume(opened(), "run", **COUNTING)
    second = gp.agents.reopen(opened(), "run", **COUNTING, takeover=True)
    second.step()
    with first, pytest.raises(FencedError, match=r"run 'run' was claimed by .* \(epoch 2\)"):
        first.step()
    assert first.status == "running"
    assert first.result().superstep == 1
    # Closing the first run did not release the claim of the second.
    assert opened().run("run").lease > time.time()
    with second:
        while second.step():
            pass
    assert second.result().values == {1: 10}
    assert opened().run("run").lease == 0
    assert [row.epoch for row in opened().history("run")] == [1] + [2] * 9


def test_a_forked_process_that_leaves_a_run_releases_nothing(opened: Open) -> None:
    with gp.agents.start([Vertex(1, 0)], **COUNTING, store=opened(), run_id="run") as agents:
        agents.step()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12, as the lease has a thread
            child = os.fork()
        if child == 0:
            try:
                agents.__exit__()
            finally:
                os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        while agents.step():
            pass
    assert agents.result().values == {1: 10}


def test_a_claim_is_renewed_during_a_long_attempt(opened: Open) -> None:
    def compute(ctx: Any) -> None:
        first = other.run("run").lease
        wait_for(lambda: other.run("run").lease > first)
        with pytest.raises(ClaimedError):
            other.claim("run", owner="somebody")
        ctx.vote_to_halt()

    other = opened()
    result = gp.agents.run([Vertex(1)], compute, store=opened(), run_id="run", lease_seconds=2.0, retry=ONCE)
    assert result.status == "completed"


def test_a_run_that_cannot_be_resumed_is_released(opened: Open) -> None:
    gp.agents.run([Vertex(1, 0)], **COUNTING, store=opened(), run_id="run", max_supersteps=2, on_limit="return")
    with pytest.raises(
        ArgumentError, match="needs the compute function 'compute', which was not passed; available: 'o"
    ):
        gp.agents.resume(opened(), "run", functions={"other": counting})
    with pytest.raises(ArgumentError, match="no run 'other' in"):
        gp.agents.resume(opened(), "other", counting)
    opened().create("numbers", "numeric", b"", owner="me", lease_seconds=1e-6)
    time.sleep(0.001)
    with pytest.raises(ArgumentError, match=r"run 'numbers' has numeric vertices: resume it with gp\.run"):
        gp.agents.resume(opened(), "numbers", counting)
    assert gp.agents.resume(opened(), "run", **COUNTING).values == {1: 10}


def test_a_run_whose_last_records_cannot_be_written_is_released(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise ValueError("cannot be encrypted")

    agents = gp.agents.start([Vertex(1, 0)], **COUNTING, store=store, run_id="run")
    agents.step()
    with monkeypatch.context() as patch:
        patch.setattr(store, "commit", refuse)
        patch.setattr(store, "flush", refuse)
        for attempt in (agents.step, agents.stop):
            with pytest.raises(ValueError, match="cannot be encrypted"):
                attempt()
    assert store.run("run").lease == 0
    assert gp.agents.resume(store, "run", **COUNTING).values == {1: 10}


def test_a_run_that_is_deleted_while_it_runs_is_fenced(opened: Open) -> None:
    with gp.agents.start([Vertex(1, 0)], **COUNTING, store=opened(), run_id="run") as agents:
        agents.step()
        with pytest.raises(ClaimedError):
            opened().delete("run")
        opened().delete("run", force=True)
        with pytest.raises(FencedError, match="run 'run' was deleted"):
            agents.step()
    assert opened().runs() == []


def test_stopping_a_run_that_another_program_took_over_ends_its_workers(opened: Open) -> None:
    agents = gp.agents.start([Vertex(1, 0)], **COUNTING, store=opened(), run_id="run", workers=1)
    pids = running(agents)
    assert gp.agents.resume(opened(), "run", **COUNTING, takeover=True).values == {1: 10}
    with pytest.raises(FencedError):
        agents.stop()
    assert not any(map(is_alive, pids))


@pytest.mark.parametrize("workers", [0, 1])
def test_a_run_that_nobody_refers_to_is_released(opened: Open, workers: int) -> None:
    """Its workers and threads end, too."""
    store = opened()
    gp.agents.run([Vertex(1, 0)], **COUNTING, store=store, run_id="before")  # leaves the thread that renews all leases
    gc.collect()
    threads, files = resources()
    agents = gp.agents.start([Vertex(1, 0)], **COUNTING, store=store, run_id="run", workers=workers)
    agents.step()
    pids = running(agents) if workers else []
    del agents
    gc.collect()
    for _ in range(1000):
        left = resources()
        if store.run("run").lease == 0 and left[0] <= threads and left[1] <= files:
            break
        time.sleep(0.01)
    else:
        pytest.fail(f"{left} threads and files are left of {threads, files}")
    assert gp.agents.resume(opened(), "run", **COUNTING).values == {1: 10}
    assert not any(map(is_alive, pids))


@pytest.mark.usefixtures("young_heap")
def test_a_run_that_nobody_refers_to_is_resumed_at_once(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that releases it does so only after the next owner was refused."""
    refused, release = threading.Event(), Lease._release

    def release_late(lease: Lease) -> None:
        assert refused.wait(200)
        release(lease)

    def claim_noted(*arguments: Any, **options: Any) -> Any:
        try:
            return claim(*arguments, **options)
        except ClaimedError:
            refused.set()
            raise

    agents = gp.agents.start([Vertex(1, 0)], **COUNTING, store=opened(), run_id="run")
    agents.step()
    monkeypatch.setattr(Lease, "_release", release_late)
    del agents
    gc.collect()
    store = opened()
    claim = store.claim
    monkeypatch.setattr(store, "claim", claim_noted)
    assert gp.agents.resume(store, "run", **COUNTING).values == {1: 10}
    assert refused.is_set()
    assert not leases._dropped


def resources() -> tuple[int, int]:
    """Return the numbers of threads and of open files of this process."""
    return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))


# Stores and ids


@pytest.mark.parametrize("given", [None, "runs.db"])
def test_an_object_that_is_not_a_store_is_refused(given: Any) -> None:
    calls: list[Callable[[], object]] = [
        lambda: gp.agents.resume(given, "run", **COUNTING),
        lambda: gp.agents.reopen(given, "run", **COUNTING),
        lambda: gp.agents.state_at(given, "run"),
        lambda: gp.agents.fork(given, "run", 0),
    ]
    for call in calls:
        with pytest.raises(ArgumentTypeError, match=f"store must be a gp.SQLiteStore or another store, not {given!r}"):
            call()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"answers": ["a"]}, r"answers must be a mapping from ids of vertices, not \['a'\]"),
        ({"answers": {1}}, "answers must be a mapping from ids of vertices, not {1}"),
        ({"retry_failed": "no"}, "retry_failed must be True or False, not 'no'"),
        ({"takeover": "no"}, "takeover must be True or False, not 'no'"),
        ({"override": 5}, "override must be names of options, not 5"),
    ],
)
def test_invalid_arguments_of_resume_are_refused_before_the_run_is_claimed(
    store: Store, options: dict[str, Any], problem: str
) -> None:
    gp.agents.run([Vertex("a")], lambda ctx: ctx.interrupt(), store=store, run_id="run")
    before = store.run("run")
    with pytest.raises(ArgumentTypeError, match=problem):
        gp.agents.resume(store, "run", lambda ctx: None, **options)
    assert store.run("run") == before


@pytest.mark.parametrize("run_id", ["", "a\nb", "x" * 201])
def test_invalid_run_ids_are_refused(store: Store, run_id: str) -> None:
    with pytest.raises(ArgumentError, match="run_id"):
        gp.agents.run([Vertex(1, 0)], **COUNTING, store=store, run_id=run_id)
    with (
        gp.agents.start([Vertex(1, 0)], **COUNTING, store=store, run_id="run"),
        pytest.raises(ArgumentError, match="new_id"),
    ):
        gp.agents.fork(store, "run", -1, run_id)
    assert [row.id for row in store.runs()] == ["run"]


def test_run_ids_are_given_or_generated(store: Store) -> None:
    for run_id in ("über 'run'; DROP TABLE runs", "x" * 200, None):
        gp.agents.run([Vertex(1, 9)], **COUNTING, store=store, run_id=run_id)
    ids = [row.id for row in store.runs()]
    assert ids[:2] == ["über 'run'; DROP TABLE runs", "x" * 200]
    assert len(ids[2]) == 32
    with pytest.raises(ArgumentError, match=r"run 'x.*' already exists in .*: choose another id, or resume it"):
        gp.agents.run([Vertex(1, 9)], **COUNTING, store=store, run_id="x" * 200)
