"""Keeping a claim: who this program is, taking a run from one that is gone, and renewing a lease meanwhile."""

from __future__ import annotations

import os
import re
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from gpu_pregel.errors import ClaimedError, FencedError, StoreError

if TYPE_CHECKING:
    from gpu_pregel.host.stores.rows import Claim
    from gpu_pregel.host.stores.store import Store

_OWNER = re.compile(r"process (\d+) on .+ \((\d+) ticks, (.+)\)")


def owner() -> str:
    """Name this process as people know it, and by what tells it from another one with the same number."""
    return f"process {os.getpid()} on {socket.gethostname()[:60]} ({_started(os.getpid())} ticks, {_processes()})"


def is_gone(owner: str) -> bool:
    """Whether an owner was a process of this system, and has ended; False where that cannot be known."""
    found = _OWNER.fullmatch(owner)
    return found is not None and found[3] == _processes() != "" and _started(int(found[1])) != int(found[2])


def _started(pid: int) -> int:
    """When a process was started, in ticks since the system was; 0 if there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] in (b"Z", b"X") else int(fields[19])


def _processes() -> str:
    """Names what numbers processes here: the system since it was started, and the namespace; empty if unknown."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return f"{file.read().strip()} {os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return ""


def claim_run(store: Store, run_id: str, *, lease_seconds: float, durability: str, takeover: bool) -> Claim:
    """Claim a run that nobody has, or whose owner is known to be gone; with ``takeover`` in any case."""

    def claim(gone: str | None) -> Claim:
        return store.claim(
            run_id, owner=owner(), lease_seconds=lease_seconds, durability=durability, takeover=takeover, gone=gone
        )

    try:
        return claim(None)
    except ClaimedError as error:
        if not is_gone(error.owner):
            raise
        gone = error.owner
    return claim(gone)  # another program may have been faster


class Lease:
    """Renews a claim from time to time, on a thread of its own, however long a superstep takes."""

    def __init__(self, store: Store, claim: Claim) -> None:
        self.store, self.claim = store, claim
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._renew, name=f"lease of run {claim.run_id}", daemon=True)
        self._thread.start()

    def _renew(self) -> None:
        while not self._over.wait(self.claim.lease_seconds / 3):
            try:
                self.store.renew(self.claim)
            except FencedError:
                return  # the next flush or commit says so
            except StoreError:
                continue  # it may be back in time

    @property
    def is_released(self) -> bool:
        """Whether the claim was given back."""
        return self._over.is_set()

    def release(self) -> None:
        """Give the claim back, so that anybody may go on with the run at once."""
        if self._over.is_set():
            return
        self._over.set()
        self._thread.join()
        with suppress(FencedError, StoreError):  # somebody else has the run; or the lease will run out
            self.store.release(self.claim)
