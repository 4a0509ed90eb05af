"""The lease of a claim: naming this process, claiming runs of ended processes, and renewing the lease."""

from __future__ import annotations

import os
import re
import socket
import threading
from _thread import allocate_lock, start_new_thread
from contextlib import suppress
from functools import lru_cache
from time import monotonic
from typing import TYPE_CHECKING

from gpu_pregel.errors import ClaimedError, FencedError, StoreError
from gpu_pregel.host.stores.lease_renewals import LeaseRenewals

if TYPE_CHECKING:
    from gpu_pregel.host.stores.rows import Claim
    from gpu_pregel.host.stores.store import Store

_OWNER = re.compile(r"process (\d+) on .+ \((\d+) ticks, (.+)\)")


def owner() -> str:
    """Name this process for people, and uniquely even if its process id is reused."""
    return _name_of(os.getpid())


@lru_cache(maxsize=1)
def _name_of(pid: int) -> str:
    """Return the name of this process, whose id is given, as it may have been forked."""
    return f"process {pid} on {socket.gethostname()[:60]} ({_start_ticks(pid)} ticks, {_pid_space()})"


def is_gone(owner: str) -> bool:
    """Return whether an owner was a process of this system that has ended; False if that is unknown."""
    found = _OWNER.fullmatch(owner)
    return found is not None and found[3] == _pid_space() != "" and _start_ticks(int(found[1])) != int(found[2])


def _start_ticks(pid: int) -> int:
    """Return when a process was started, in ticks since the system started; 0 if it does not exist."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] in (b"Z", b"X") else int(fields[19])


def _pid_space() -> str:
    """Identify the system since its start and the namespace of process ids; empty if unknown."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return f"{file.read().strip()} {os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return ""


def claim_run(store: Store, run_id: str, *, lease_seconds: float, durability: str, takeover: bool) -> Claim:
    """Claim a run that has no valid claim or whose owner has ended; with ``takeover`` in any case."""

    def claim(gone: str | None) -> Claim:
        return store.claim(
            run_id, owner=owner(), lease_seconds=lease_seconds, durability=durability, takeover=takeover, gone=gone
        )

    dropped = [lease for lease in list(_dropped) if lease.claim.run_id == run_id]  # now, as they may be released soon
    try:
        return claim(None)
    except ClaimedError as error:
        gone = error.owner if is_gone(error.owner) or _is_given_up(error) else None
        if gone is None and not (error.owner == owner() and dropped):
            raise
    for lease in dropped:
        lease.join()
    return claim(gone)  # fails if another program was faster


def _is_given_up(error: ClaimedError) -> bool:
    """Return whether the owner is this process, which could not release its claim as the store failed."""
    return error.owner == owner() and error.run in _unreleased and not _RENEWALS.has(error.run)


class Lease:
    """Renews a claim in the background, so that a long superstep does not lose it.

    Each renewal has a thread of its own: a store that does not respond delays only its own leases.

    Attributes
    ----------
    due : float
        When the next renewal begins, on the monotonic clock.
    run : str
        The id of the run.
    """

    def __init__(self, store: Store, claim: Claim) -> None:
        self.store, self.claim, self.run = store, claim, claim.run_id
        self._process = os.getpid()
        self._is_released = False
        self._busy = allocate_lock()
        """Held while the claim is renewed or released."""
        self._dropping = allocate_lock()
        """Held from ``drop`` until the claim is released."""
        self.due = monotonic() + claim.lease_seconds / 3
        _RENEWALS.add(self)

    @property
    def is_released(self) -> bool:
        """Whether the claim was released, or will be soon; True in a forked process, whose parent has the claim."""
        return self._is_released or self._process != os.getpid()

    def begin_renewal(self, now: float) -> None:
        """Renew the claim on a new thread."""
        self.due = now + self.claim.lease_seconds / 3
        with suppress(RuntimeError, MemoryError):  # no more threads; the lease is still valid at its next renewal
            threading.Thread(target=self._renew, name=f"lease of run {self.claim.run_id}", daemon=True).start()

    def _renew(self) -> None:
        if not self._busy.acquire(blocking=False):
            return  # the last renewal still waits for the store, or the claim is being released
        try:
            if not self._is_released:
                self.store.renew(self.claim)
        except FencedError:
            _RENEWALS.discard(self)  # the next flush or commit raises it
        except StoreError:
            pass  # the store may be available again before the lease expires
        finally:
            self._busy.release()

    def _release(self) -> None:
        with suppress(FencedError):  # another program has the run
            try:
                self.store.release(self.claim)
            except StoreError:  # as of a full disk; the lease will expire, and this process may claim the run before
                _unreleased.add(self.claim.run_id)
            else:
                _unreleased.discard(self.claim.run_id)

    def release(self) -> None:
        """Release the claim, so that any program can continue the run."""
        if self.is_released:
            return
        self._is_released = True
        _RENEWALS.discard(self)
        with self._busy:
            self._release()

    def drop(self) -> None:
        """Release the claim on a new thread; may be called by the garbage collector, and does not block."""
        if self.is_released:
            return
        self._is_released = True
        _RENEWALS.discard(self)
        self._dropping.acquire()
        _dropped.add(self)
        try:
            start_new_thread(self._release_dropped, ())  # unlike threading.Thread, this waits for nothing
        except RuntimeError:  # no more threads, or Python ends: the lease will expire
            self._end_dropping()

    def _release_dropped(self) -> None:
        try:
            with self._busy:
                self._release()
        finally:
            self._end_dropping()

    def _end_dropping(self) -> None:
        _dropped.discard(self)
        self._dropping.release()

    def join(self) -> None:
        """Wait until the claim is released, if it was dropped."""
        with self._dropping:
            pass


_RENEWALS = LeaseRenewals()
_dropped: set[Lease] = set()
"""Leases that threads are about to release."""
_unreleased: set[str] = set()
"""Runs whose claims this process has given up but could not release."""
os.register_at_fork(after_in_child=_dropped.clear)  # a fork has none of these threads
os.register_at_fork(after_in_child=_unreleased.clear)  # nor these claims
