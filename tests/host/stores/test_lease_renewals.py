"""Leases are renewed by one thread of the process, and none of them can keep another from being renewed."""

from __future__ import annotations

import math
import os
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gpu_pregel.errors import FencedError, StoreError
from gpu_pregel.host.stores import lease_renewals, leases
from gpu_pregel.host.stores.leases import Lease
from gpu_pregel.host.stores.rows import Claim

LIMIT = 200
SHORT = 0.03
"""Seconds of a lease, a third of which passes before each renewal."""
LONG = 3600.0


class Renewed:
    """A store that counts renewals, each of which may do something else instead."""

    def __init__(self, renewal: Callable[[], object] = lambda: None) -> None:
        self.renewed, self.released = threading.Semaphore(0), threading.Semaphore(0)
        self.renewal = renewal

    def renew(self, _: Claim) -> None:
        self.renewed.release()
        self.renewal()

    def release(self, _: Claim) -> None:
        self.released.release()

    def is_renewed(self, times: int = 3) -> bool:
        """Whether the lease is renewed several times from now on."""
        while self.renewed.acquire(blocking=False):
            pass
        return all(self.renewed.acquire(timeout=LIMIT) for _ in range(times))


Hold = Callable[..., Lease]


@pytest.fixture
def hold() -> Iterator[Hold]:
    """Return a function that makes a lease, which is released afterwards."""
    held = []

    def make(store: Any, seconds: float = SHORT) -> Lease:
        held.append(Lease(store, Claim("run", 1, "me", seconds, "process", 1)))
        return held[-1]

    yield make
    for lease in held:
        lease.release()


def raiser(error: Exception) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


def test_many_leases_have_one_thread(hold: Hold) -> None:
    hold(Renewed(), LONG)
    before = threading.active_count()
    for _ in range(50):
        hold(Renewed(), LONG)
    assert threading.active_count() <= before


def test_a_lease_that_is_due_before_the_others_is_renewed(hold: Hold, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_renewals, "_IDLE_SECONDS", LONG)
    renewals, store = lease_renewals.LeaseRenewals(), Renewed()
    monkeypatch.setattr(leases, "_RENEWALS", renewals)
    hold(Renewed(), LONG)
    while renewals._wakes_at == math.inf:  # its thread has to wait for it already
        time.sleep(0.001)
    short = hold(store)
    assert store.is_renewed()
    short.release()
    renewals._leases.clear()
    renewals._has_earlier.set()  # ends the thread


def test_a_store_that_does_not_respond_delays_no_other_lease(hold: Hold) -> None:
    respond = threading.Event()
    stuck, other = Renewed(lambda: respond.wait(LIMIT)), Renewed()
    hold(stuck)
    assert stuck.renewed.acquire(timeout=LIMIT)
    hold(other)
    assert other.is_renewed()
    assert not stuck.renewed.acquire(blocking=False)  # the next one waits for this one
    respond.set()
    assert stuck.is_renewed()


@pytest.mark.parametrize(
    ("error", "again"), [(StoreError("store", "is away"), True), (FencedError("run", "was claimed"), False)]
)
def test_an_error_concerns_its_own_lease(hold: Hold, error: Exception, again: bool) -> None:
    failing, other = Renewed(raiser(error)), Renewed()
    hold(failing)
    assert failing.renewed.acquire(timeout=LIMIT)
    hold(other)
    assert other.is_renewed()
    assert failing.renewed.acquire(timeout=LIMIT if again else 0.05) is again


def test_without_further_threads_a_lease_is_renewed_later(hold: Hold, monkeypatch: pytest.MonkeyPatch) -> None:
    store, failed = Renewed(), threading.Event()
    hold(Renewed(), LONG)  # its thread runs already

    def refuse(_: threading.Thread) -> None:
        failed.set()
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        hold(store)
        assert failed.wait(LIMIT)
    assert store.is_renewed()


def test_a_claim_is_released_after_the_renewal_that_is_running(hold: Hold) -> None:
    respond = threading.Event()
    store = Renewed(lambda: respond.wait(LIMIT))
    lease = hold(store)
    assert store.renewed.acquire(timeout=LIMIT)
    releasing = threading.Thread(target=lease.release)
    releasing.start()
    assert not store.released.acquire(timeout=0.05)
    respond.set()
    releasing.join(LIMIT)
    assert store.released.acquire(blocking=False)
    assert not store.renewed.acquire(timeout=0.05)


def test_dropping_a_lease_does_not_wait_for_its_store(hold: Hold) -> None:
    respond = threading.Event()
    store = Renewed(lambda: respond.wait(LIMIT))
    lease = hold(store)
    assert store.renewed.acquire(timeout=LIMIT)
    lease.drop()
    assert lease.is_released
    assert lease in leases._dropped
    assert not store.released.acquire(blocking=False)
    respond.set()
    lease.join()
    assert store.released.acquire(blocking=False)
    assert lease not in leases._dropped


def test_the_thread_ends_without_leases_and_the_next_lease_starts_another(
    hold: Hold, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_renewals, "_IDLE_SECONDS", 0.01)
    renewals = lease_renewals.LeaseRenewals()
    monkeypatch.setattr(leases, "_RENEWALS", renewals)
    store = Renewed()
    hold(store).release()
    thread = renewals._thread
    if thread is not None:  # it may have ended by now
        thread.join(LIMIT)
    assert renewals._thread is None
    hold(store)
    assert store.is_renewed()


def test_a_released_lease_is_forgotten() -> None:
    store = Renewed()
    lease = Lease(store, Claim("run", 1, "me", LONG, "process", 1))  # type: ignore[arg-type]
    found = weakref.ref(lease)
    lease.release()
    del lease
    for _ in range(1000):  # the thread may just look at the leases
        if found() is None:
            break
        time.sleep(0.01)
    assert found() is None


def test_a_forked_process_renews_its_own_leases_only(hold: Hold) -> None:
    parents = Renewed()
    hold(parents)
    assert parents.renewed.acquire(timeout=LIMIT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12, as there is a thread
        child = os.fork()
    if child == 0:
        failed = 1
        try:
            parents.renewed = threading.Semaphore(0)
            own = Renewed()
            hold(own)
            failed = int(not own.is_renewed() or parents.renewed.acquire(blocking=False))
        finally:
            os._exit(failed)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert parents.is_renewed()
