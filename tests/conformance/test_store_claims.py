"""All stores: claims, leases and fencing."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from gpu_pregel.errors import ClaimedError, FencedError
from gpu_pregel.host.stores.leases import claim_run
from gpu_pregel.host.stores.rows import Claim
from gpu_pregel.host.stores.store import Store
from tests.stores import Open, begin, contents, output, python, run_to


def test_valid_claim_excludes_others(store: Store, opened: Open) -> None:
    claim = begin(store, lease_seconds=1000)
    with pytest.raises(ClaimedError, match=r"run 'run' is claimed by first until \d{4}-.* UTC: wait") as caught:
        opened().claim("run", owner="second")
    assert caught.value.owner == "first"
    assert caught.value.until == store.run("run").lease
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    store.commit(claim, 0, b"")


@pytest.mark.parametrize("way", ["takeover", "expired", "released"])
def test_new_claim_fences_the_previous_one(store: Store, opened: Open, way: str) -> None:
    first = begin(store, lease_seconds=0.05 if way == "expired" else 1000)
    run_to(store, first, 0, 2)
    if way == "released":
        store.release(first, "stopped")
        assert store.run("run").status == "stopped"
    time.sleep(0.06 if way == "expired" else 0)
    other = opened()
    second = other.claim("run", owner="second", takeover=way == "takeover")
    assert (second.epoch, second.owner) == (2, "second")
    assert contents(other.load("run"))[1] == [(step, b"commit %d" % step, [b"segment %d" % step]) for step in (0, 1)]
    before = store.load("run")
    attempts: list[Callable[[], None]] = [
        lambda: store.flush(first, 2, [b"late"], "failed"),
        lambda: store.commit(first, 2, b"late", [b"late"], base=b"late"),
        lambda: store.put_base(first, 1, b"late"),
        lambda: store.renew(first),
        lambda: store.release(first, "late"),
    ]
    for attempt in attempts:
        with pytest.raises(FencedError, match=r"run 'run' was claimed by second \(epoch 2\).*nothing was written"):
            attempt()
        assert store.load("run").run == before.run
    run_to(other, second, 2, 4)
    assert store.run("run").head == 3
    assert [row.epoch for row in store.history("run")] == [1, 1, 2, 2]


def test_one_of_two_programs_claims_the_run_of_an_ended_owner(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = output(python("from gpu_pregel.host.stores.leases import owner; print(owner())")).strip()
    begin(store, owner=gone, lease_seconds=1000)
    for other in (None, "another"):
        with pytest.raises(ClaimedError, match="ticks"):
            store.claim("run", owner="second", gone=other)
    claim = store.claim

    def claim_late(*arguments: Any, gone: str | None, **options: Any) -> Claim:
        if gone:
            claim("run", owner="faster", gone=gone)
        return claim(*arguments, gone=gone, **options)

    monkeypatch.setattr(store, "claim", claim_late)
    with pytest.raises(ClaimedError, match="by faster"):
        claim_run(store, "run", lease_seconds=1000, durability="process", takeover=False)
    assert store.run("run").epoch == 2


def test_writes_renew_a_claim_and_release_ends_it(store: Store) -> None:
    claim = begin(store, lease_seconds=1000)
    store.renew(claim, 2000)
    assert store.run("run").lease - store.run("run").changed == pytest.approx(2000, abs=5)
    store.commit(claim, 0, b"")
    assert store.run("run").lease - store.run("run").changed == pytest.approx(1000, abs=5)
    store.release(claim)
    assert store.run("run").lease == 0
    with pytest.raises(FencedError, match="was released by this claim: claim it again"):
        store.commit(claim, 1, b"")
    second = store.claim("run", owner="second")
    store.flush(second, 1, [b"held"], "failed", release=True)
    third = store.claim("run", owner="third")
    before = store.counts.transactions
    store.commit(third, 1, b"", status="completed", release=True)
    assert store.counts.transactions == before + 1
    assert (store.run("run").status, store.run("run").lease, store.run("run").epoch) == ("completed", 0, 3)
    for claim in (second, third):
        with pytest.raises(FencedError):
            store.renew(claim)


def test_only_the_superstep_after_the_head_can_be_written(store: Store) -> None:
    claim = begin(store)
    run_to(store, claim, 0, 2)
    for step in (0, 1, 3):
        with pytest.raises(FencedError, match=rf"has superstep 1 as its head, not {step - 1}"):
            store.commit(claim, step, b"again", [b"again"])
        with pytest.raises(FencedError):
            store.flush(claim, step, [b"again"])
    assert contents(store.load("run"))[1:] == [[(k, b"commit %d" % k, [b"segment %d" % k]) for k in (0, 1)], []]


def test_claim_does_not_apply_to_a_recreated_run(store: Store, opened: Open) -> None:
    claim = begin(store)
    opened().delete("run", force=True)
    with pytest.raises(FencedError, match="run 'run' was deleted"):
        store.commit(claim, 0, b"late")
    again = begin(opened())
    assert again.epoch == claim.epoch
    with pytest.raises(FencedError, match="run 'run' was deleted"):
        store.commit(claim, 0, b"late")
    assert store.run("run").head == -1


def test_concurrent_threads_never_commit_the_same_superstep(opened: Open) -> None:
    begin(opened(), lease_seconds=0.001)
    won: list[tuple[int, str]] = []
    errors: list[BaseException] = []
    barrier = threading.Barrier(4)

    def work(store: Store, owner: str) -> None:
        barrier.wait()
        try:
            for _ in range(15):
                claim = store.claim("run", owner=owner, takeover=True, durability="process")
                step = store.run("run").head + 1
                try:
                    store.commit(claim, step, owner.encode())
                    won.append((step, owner))
                except FencedError:
                    pass
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(opened(), f"owner {k}")) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    steps = [(commit.step, commit.data.decode()) for commit in opened().load("run").commits()]
    assert sorted(won) == steps
    assert [step for step, _ in steps] == list(range(len(steps)))
