"""All stores: bases, loading of earlier supersteps, pruning, forks and deletion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest

from gpu_pregel.errors import ArgumentError, ClaimedError
from gpu_pregel.host.stores.store import Store
from tests.stores import Open, begin, contents, run_to


def test_load_uses_the_newest_base_before_a_superstep(store: Store) -> None:
    claim = begin(store)
    run_to(store, claim, 0, 3)
    store.commit(claim, 3, b"commit 3", [b"segment 3"], base=b"state 3")
    run_to(store, claim, 4, 6)
    store.put_base(claim, 1, b"state 1")
    store.put_base(claim, 1, b"state 1 again")
    for step, base, first in ((-1, b"base", 0), (0, b"base", 0), (2, b"state 1 again", 2), (5, b"state 3", 4)):
        saved = store.load("run", step)
        commits = [(k, b"commit %d" % k, [b"segment %d" % k]) for k in range(first, step + 1)]
        assert contents(saved) == [base, commits, []]
        assert saved.base_step == first - 1
    assert [row.base for row in store.history("run")] == [False, True, False, True, False, False]
    with pytest.raises(ArgumentError, match=r"run 'run' has no superstep 6 yet: its last committed one in .* is 5"):
        store.load("run", 6)
    with pytest.raises(ArgumentError, match="has no superstep 6 yet"):
        store.put_base(claim, 6, b"")


def test_pruning_keeps_what_later_supersteps_need(store: Store, opened: Open) -> None:
    claim = begin(store)
    for step in range(10):
        store.commit(claim, step, b"commit %d" % step, [b"segment"], base=b"state" if step % 3 == 2 else None)
    store.flush(claim, 10, [b"held"], "interrupted")
    store.answer("run", 10, b"v", 0, b"yes")
    before = contents(store.load("run"))
    assert opened().prune("run", before=4) == 2
    assert [row.step for row in store.history("run")] == [2, 3, 4, 5, 6, 7, 8, 9]
    for step in (-1, 0, 1):
        with pytest.raises(ArgumentError, match=rf"superstep {step} of run 'run' was pruned"):
            store.load("run", step)
    for step in range(2, 10):
        assert store.load("run", step).base_step == (step + 1) // 3 * 3 - 1
    assert opened().prune("run", keep=1) == 8
    assert contents(store.load("run")) == before
    assert store.prune("run", keep=1) == 8
    assert store.prune("run", before=0) == 8
    # The claim is still valid.
    store.commit(claim, 10, b"commit 10")
    store.put_base(claim, 10, b"state 10", prune=True)
    assert contents(store.load("run")) == [b"state 10", [], []]
    assert [(row.step, row.base) for row in store.history("run")] == [(10, True)]
    assert store.answers("run", 10) == []
    with pytest.raises(ArgumentError, match="pass either before= or keep="):
        store.prune("run")
    with pytest.raises(ArgumentError, match="keep must be at least 1, not 0"):
        store.prune("run", keep=0)


@pytest.mark.parametrize("number", range(1, 9))
def test_pruning_or_deleting_during_a_read_is_not_reported_as_damage(
    store: Store, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    query = store._database.query
    reads: list[Callable[[str], object]] = [store.history, store.load, store.run, lambda _: store.runs()]

    def meanwhile(then: Callable[[], None]) -> None:
        """Let another program act before the query with the given number."""
        left = number

        def wait(sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
            nonlocal left
            left -= 1
            if left == 0:
                monkeypatch.setattr(store._database, "query", query)
                then()
            return query(sql, parameters)

        monkeypatch.setattr(store._database, "query", wait)

    claim = begin(store, lease_seconds=1e5)
    for step, read in enumerate(reads):

        def replace(step: int = step) -> None:
            store.commit(claim, step, b"commit", [b"segment"], base=b"state %d" % step)
            store.prune("run", keep=1)

        meanwhile(replace)
        read("run")
        monkeypatch.undo()
        if store.run("run").head != step:  # the read needed fewer queries
            replace()
        assert contents(store.load("run")) == [b"state %d" % step, [], []]
        assert [row.step for row in store.history("run")] == [step]
    for read in reads:
        begin(store, "short", lease_seconds=1e5)
        meanwhile(lambda: store.delete("short", force=True))
        with suppress(ArgumentError):  # the run no longer exists
            read("short")
        monkeypatch.undo()
        with suppress(ArgumentError):
            store.delete("short", force=True)
        assert [row.id for row in store.runs()] == ["run"]


def test_fork_does_not_depend_on_its_parent(store: Store, opened: Open) -> None:
    claim = begin(store, meta=b"meta", schema=2)
    run_to(store, claim, 0, 5)
    store.fork("run", 2, "fork", b"state 2", blobs={"rank": b"123"}, meta=b"other")
    row = store.run("fork")
    assert row[:6] == ("fork", "agents", 1, ("run", 2), 2, 0)
    assert (row.status, row.schema, row.meta, row.lease) == ("stopped", 2, b"other", 0)
    assert store.history("fork") == []
    store.delete("run", force=True)
    other = opened()
    own = other.claim("fork", owner="second")
    assert own.epoch == 1
    run_to(other, own, 3, 5)
    other.fork("fork", 4, "fork of fork", b"state 4")
    saved = store.load("fork")
    assert contents(saved) == [b"state 2", [(k, b"commit %d" % k, [b"segment %d" % k]) for k in (3, 4)], []]
    assert saved.blob("rank") == b"123"
    assert store.run("fork of fork")[2:4] == (2, ("fork", 4))
    assert [row.id for row in store.runs()] == ["fork", "fork of fork"]
    with pytest.raises(ArgumentError, match="superstep 1 of run 'fork' was pruned"):
        store.load("fork", 1)
    for arguments, problem in (
        (("run", 0, "new"), "no run 'run'"),
        (("fork", 5, "new"), "no superstep 5 yet"),
        (("fork", 0, "new"), "was pruned"),
        (("fork", 4, "fork"), "run 'fork' already exists in"),
    ):
        with pytest.raises(ArgumentError, match=problem):
            store.fork(*arguments, b"")
    assert len(store.runs()) == 2


def test_delete_requires_an_unclaimed_run(store: Store) -> None:
    claim = begin(store)
    run_to(store, claim, 0, 2)
    begin(store, "other")
    with pytest.raises(ClaimedError, match=r"claimed by first.*pass force=True"):
        store.delete("run")
    store.release(claim)
    store.delete("run")
    assert [row.id for row in store.runs()] == ["other"]
    for attempt in (store.run, store.history, store.load, store.delete):
        with pytest.raises(ArgumentError, match=r"no run 'run' in .*: store.runs\(\) lists the runs"):
            attempt("run")


def test_run_ids_are_unique(store: Store, opened: Open) -> None:
    begin(store)
    with pytest.raises(ArgumentError, match=r"run 'run' already exists in .*: choose another id"):
        begin(opened())
    assert store.run("run").epoch == 1
    assert store.load("run").base() == b"base"
