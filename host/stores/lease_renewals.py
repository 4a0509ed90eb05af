"""The thread of this process that begins the renewals of all its leases, whatever the number of its runs."""

from __future__ import annotations

import math
import os
import threading
from time import monotonic
from typing import Protocol

_IDLE_SECONDS = 5.0
"""For how long at most the thread remains without leases; if it ended with each, every short run would start one."""


class Renewable(Protocol):
    """A lease that is renewed.

    Attributes
    ----------
    due : float
        When the next renewal begins, on the monotonic clock.
    run : str
        The id of the run.
    """

    due: float
    run: str

    def begin_renewal(self, now: float) -> None:
        """Set the time of the next renewal, and begin this one without waiting for the store."""


class LeaseRenewals:
    """The leases of this process that are to be renewed.

    Only the thread waits for their times: adding and removing a lease hardly ever wakes or starts it.
    """

    def __init__(self) -> None:
        self._forget()
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        """Begin without leases and thread, also in a forked process, whose parent has them."""
        self._leases: set[Renewable] = set()
        self._lock = threading.RLock()
        """Held to add a lease or to decide that the thread ends. Meanwhile a signal handler may begin a run, and the
        garbage collector remove leases."""
        self._thread: threading.Thread | None = None
        self._wakes_at = math.inf
        self._has_earlier = threading.Event()

    def add(self, lease: Renewable) -> None:
        """Renew a lease from now on."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                thread = threading.Thread(target=self._serve, name="gpu_pregel leases", daemon=True)
                thread.start()
                self._thread = thread
            self._leases.add(lease)
            if lease.due < self._wakes_at:
                self._has_earlier.set()

    def discard(self, lease: Renewable) -> None:
        """Begin no further renewal of a lease; may be called by the garbage collector, and does not block."""
        self._leases.discard(lease)

    def has(self, run: str) -> bool:
        """Whether a lease of the run is to be renewed."""
        return any(lease.run == run for lease in list(self._leases))

    def _serve(self) -> None:
        while (seconds := self._begin_due()) is not None:
            self._has_earlier.wait(seconds)

    def _begin_due(self) -> float | None:
        """Begin the renewals that are due; return the seconds until the next ones, or None if no lease is left."""
        with self._lock:
            self._has_earlier.clear()
            leases, now = list(self._leases), monotonic()
            if not leases:
                self._thread, self._wakes_at = None, math.inf
                return None
            for lease in leases:
                if lease.due <= now:
                    lease.begin_renewal(now)
            self._wakes_at = min(now + _IDLE_SECONDS, *[lease.due for lease in leases])
            return self._wakes_at - now
