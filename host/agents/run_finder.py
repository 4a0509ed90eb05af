"""Finds the runs in a store that a supervisor can take up."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Container, Iterator
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple

from gpu_pregel.errors import AgentError, CodecError, StoreError, UnknownRunError
from gpu_pregel.host.agents.recovery import read_held, read_run
from gpu_pregel.host.agents.run_metadata import RunMetadata
from gpu_pregel.host.stores.leases import is_gone

if TYPE_CHECKING:
    from gpu_pregel.host.stores.rows import UnfinishedRun
    from gpu_pregel.host.stores.store import Store

LONGEST_PAUSE = 300.0
"""Maximum seconds between two attempts to continue a run."""
Observe = Callable[[str, str, int, dict[str, Any]], None]
"""Called with kind, run, superstep and facts of an event."""


class _Look(NamedTuple):
    """What was found when the records of a run were read: when it can continue, in seconds since 1970."""

    version: tuple[int, ...]
    due: float


class _Pause(NamedTuple):
    """A run that could not continue: how often in the same superstep, why, and when to try again."""

    head: int
    attempts: int
    text: str
    until: float


class RunFinder:
    """Finds runs that can continue, and remembers what it has found out about the others.

    Parameters
    ----------
    store : Store
    pattern : str
        Matches the ids of the runs to find, as in a shell.
    own : RunMetadata or None
        The functions that are served; None: runs of any function are found.
    interval : float
        Half of the first pause of a run that could not continue.
    observe : Observe
    """

    def __init__(self, store: Store, pattern: str, own: RunMetadata | None, interval: float, observe: Observe) -> None:
        self._store, self._pattern, self._own, self._interval = store, pattern, own, interval
        self._observe = observe
        self._metadata: dict[str, RunMetadata] = {}
        self._looks: dict[str, _Look] = {}
        self._pauses: dict[str, _Pause] = {}
        self._refusals: set[str] = set()
        self._continued: dict[str, tuple[object, ...]] = {}
        """How runs stood before they were last continued."""

    def find(self, active: Container[str]) -> Iterator[UnfinishedRun | None]:
        """Yield the runs that can continue now, and None after each search in the records of a run that cannot."""
        listed = self._store.unfinished("agents")
        self._forget({one.id for one in listed})
        others = []
        for one in listed:
            if one.id in active or (one.is_claimed and not is_gone(one.owner)) or not self._is_wanted(one):
                continue
            if self._continued.pop(one.id, None) == _progress(one):
                self.postpone(one, AgentError("it was continued without progress"))
            elif _is_ready(one):
                yield one
            else:
                others.append(one)
        for one in others:
            yield one if self._due(one) <= time.time() else None

    def next_time(self) -> float:
        """Return when the next known timer or pause ends, in seconds since 1970."""
        now = time.time()
        times = [look.due for look in self._looks.values()] + [pause.until for pause in self._pauses.values()]
        return min((when for when in times if when > now), default=math.inf)

    def limits(self, run_id: str) -> dict[str, Any]:
        """Return the limits that a run was started with."""
        found = self._metadata.get(run_id)
        return {} if found is None else dict(found.limits)

    def postpone(self, run: UnfinishedRun, error: BaseException) -> None:
        """Leave a run that could not continue alone for a while, each time for longer."""
        text, before = f"{type(error).__name__}: {error}", self._pauses.get(run.id)
        attempts = before.attempts + 1 if before is not None and before.head == run.head else 1
        seconds = min(self._interval * 2 ** min(attempts, 32), LONGEST_PAUSE)
        self._pauses[run.id] = _Pause(run.head, attempts, text, time.time() + seconds)
        if before is None or (before.head, before.text) != (run.head, text):
            self._observe("postpone", run.id, run.head + 1, {"text": text, "seconds": seconds})

    def note_continued(self, run: UnfinishedRun) -> None:
        """Note that a run was continued, so that one without progress is not continued again and again."""
        self._continued[run.id] = _progress(run)

    def _forget(self, listed: set[str]) -> None:
        """Forget the runs that have ended."""
        for known in (self._metadata, self._looks, self._pauses, self._continued):
            for run_id in known.keys() - listed:
                del known[run_id]

    def _is_wanted(self, run: UnfinishedRun) -> bool:
        """Whether a run matches, has our functions, and is not left alone for a while."""
        if run.id != self._pattern and not fnmatchcase(run.id, self._pattern):
            return False
        pause = self._pauses.get(run.id)
        if pause is not None and pause.until > time.time():
            return False
        if run.id not in self._metadata:
            try:
                self._metadata[run.id] = RunMetadata.unpack(self._store.run(run.id).meta)
            except UnknownRunError:
                return False
            except (StoreError, CodecError) as error:
                self.postpone(run, error)
                return False
        problem = None if self._own is None else self._metadata[run.id].difference(self._own)
        if problem is not None and problem not in self._refusals:
            self._refusals.add(problem)
            text = f"{problem}: it is left alone; pass override='compute' to continue such runs"
            self._observe("refuse", run.id, run.head + 1, {"text": text})
        return problem is None

    def _due(self, run: UnfinishedRun) -> float:
        """Return when a held or waiting run can continue; its records are read if it has changed."""
        version = run.epoch, run.head, run.pending, run.answers
        look = self._looks.get(run.id)
        if look is None or look.version != version:
            try:
                due = self._read_due(run)
            except UnknownRunError:
                due = math.inf
            except (StoreError, CodecError) as error:
                self.postpone(run, error)
                return math.inf
            look = self._looks[run.id] = _Look(version, due)
        return look.due

    def _read_due(self, run: UnfinishedRun) -> float:
        if run.status == "waiting":
            return min(read_run(self._store, run.id).state.timers.values(), default=0.0)
        ledger = read_held(self._store, run.id)
        ledger.has_begun = True
        is_held = ledger.with_status("failed") or ledger.with_status("interrupted")
        can_continue = ledger.with_status("pending") or ledger.with_status("in_progress") or not is_held
        return 0.0 if can_continue else math.inf


def _is_ready(run: UnfinishedRun) -> bool:
    """Whether a run can continue, as far as its row shows it: it has no owner, and is not held or waiting."""
    if run.status not in ("waiting", "failed", "interrupted") or run.last_request is not None:
        return True
    return run.lease != 0  # its owner has ended without releasing it


def _progress(run: UnfinishedRun) -> tuple[object, ...]:
    """Return what changes when a run makes progress, or is asked to."""
    return run.status, run.head, run.pending, run.answers, run.last_request
