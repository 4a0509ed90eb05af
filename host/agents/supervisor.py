"""``serve``: takes up runs in a store that no program has, and runs them to their ends."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from gpu_pregel.errors import ArgumentTypeError, ClaimedError, FencedError, StoreError, UnknownRunError
from gpu_pregel.host.agents.agent_run import AgentRun
from gpu_pregel.host.agents.observers.events import Event
from gpu_pregel.host.agents.options import Compute, RunOptions, check_store, make_options
from gpu_pregel.host.agents.recovery import begin_from_store
from gpu_pregel.host.agents.run_finder import LONGEST_PAUSE, RunFinder
from gpu_pregel.host.agents.run_metadata import RunMetadata
from gpu_pregel.host.arguments import check_flag, check_integer, check_seconds, check_text
from gpu_pregel.host.superstep.interrupts import stop_on_interrupt

if TYPE_CHECKING:
    from gpu_pregel.host.stores.rows import UnfinishedRun
    from gpu_pregel.host.stores.store import Store
    from gpu_pregel.host.superstep.journal import Journal

_STOP_SECONDS = 0.1
"""How often the event ``stop`` is looked at."""
_LONG = 3600.0
_OURS = ("run_id", "store", "on_waiting", "on_limit")
"""Options of ``run`` that ``serve`` sets itself."""
COMPUTE = "compute"
"""The value of ``override`` that lets runs of other functions continue."""


def serve(
    store: Store,
    compute: Compute | None = None,
    *,
    run: str = "*",
    interval: float = 1.0,
    concurrency: int = 4,
    once: bool = False,
    stop: threading.Event | None = None,
    **options: Any,
) -> dict[str, int]:
    """Continue the runs in a store that no program has, until this is stopped.

    These are runs whose program has crashed, was stopped or has lost its lease, forks, runs whose timers are due, held
    runs that have their answers or were asked to retry, runs to which messages were sent, and runs to be cancelled.
    Held runs without answers are left alone, and so are ended runs. Several programs may serve one store; each run has
    one owner at a time.

    SIGTERM and Ctrl-C stop after the current superstep of each run; a second signal ends at once. Either way, and even
    after SIGKILL, another program continues the runs.

    Parameters
    ----------
    store : SQLiteStore, PostgresStore or MemoryStore
    compute : callable
        And all other arguments of :func:`run` except ``vertices``, ``run_id``, ``store``, ``on_waiting`` and
        ``on_limit``. As in :func:`resume`, options that change results are those of the run, and so is
        ``max_supersteps`` unless it is passed. Runs that were started with a function of another name are left alone,
        unless ``override`` includes "compute".
    run : str, default "*"
        Only runs with this id, or whose ids match this pattern as in a shell.
    interval : float, default 1
        Seconds between two searches for runs. A run that raises an error waits for twice as long before it is continued
        again, and each time longer, up to five minutes.
    concurrency : int, default 4
        Maximum number of runs that are computed at the same time, each on a thread and with ``workers`` of its own.
    once : bool, default False
        Return when no run can continue, instead of waiting for others.
    stop : threading.Event, optional
        Stops like SIGTERM once it is set, from any thread.

    Returns
    -------
    dict of str to int
        How many runs were left in each status; "error" counts those that raised one.

    Raises
    ------
    StoreError
        The store cannot be used; later, this waits until it can be used again.
    ArgumentError, ArgumentTypeError
        Invalid arguments; raised before any work.

    Notes
    -----
    The observers receive further events: "claim" (of a run, with its status), "release" (with its status), "lost" (to
    another program), "postpone" (of a run that raised an error, with "text" and "seconds"), "refuse" (of a run of other
    functions), "outage" (of the store) and "stop". They are called by one thread at a time.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> def ask(ctx):
    ...     ctx.value = ctx.interrupt("how much?")
    ...     ctx.vote_to_halt()
    >>> store = gp.MemoryStore()
    >>> for name in ("tuesday", "wednesday"):
    ...     gp.agents.run([gp.agents.Vertex("a")], ask, store=store, run_id=name).status
    'interrupted'
    'interrupted'
    >>> gp.agents.answer(store, "tuesday", "a", 42)
    False
    >>> gp.agents.serve(store, ask, once=True)
    {'completed': 1}
    >>> gp.agents.state_at(store, "tuesday").values
    {'a': 42}
    """
    if given := [name for name in _OURS if name in options]:
        raise ArgumentTypeError(f"serve has no parameter {', '.join(given)}")
    check_text("run", run)
    check_seconds("interval", interval)
    check_integer("concurrency", concurrency, 1)
    if stop is not None and not isinstance(stop, threading.Event):
        raise ArgumentTypeError(f"stop must be a threading.Event, not {stop!r:.80}")
    supervisor = Supervisor(
        check_store(store), compute, options, interval, concurrency, once=check_flag("once", once), stop=stop
    )
    return supervisor.run(run)


class Supervisor:
    """Continues runs on threads of its own; see :func:`serve` for the parameters."""

    def __init__(
        self,
        store: Store,
        compute: Compute | None,
        options: dict[str, Any],
        interval: float,
        concurrency: int,
        *,
        once: bool,
        stop: threading.Event | None,
    ) -> None:
        override = options.get("override", ())
        names = [override] if isinstance(override, str) else list(override)
        self._store, self._compute = store, compute
        self._options = {**options, "override": [name for name in names if name != COMPUTE]}
        self._takes_all = COMPUTE in names
        checked = self._make_options("run", {})
        self._own = RunMetadata.of_options(checked)
        self._observers, self._observing = checked.observers, threading.RLock()
        self._options["observer"] = self._notify if checked.observers else ()
        self._interval, self._concurrency, self._once, self._stop = interval, concurrency, once, stop
        self._counts: Counter[str] = Counter()
        self._active: dict[str, Journal | None] = {}
        """The runs that are computed, with their journals once they are claimed."""
        self._ended: SimpleQueue[tuple[UnfinishedRun, str | BaseException | None] | None] = SimpleQueue()
        self._found: Iterator[UnfinishedRun | None] | None = None
        self._next_search = 0.0
        self._outages = 0
        self._was_stopped = self._has_searched = False

    def run(self, pattern: str) -> dict[str, int]:
        """Continue runs until this is stopped or, with ``once``, none can continue."""
        own = None if self._takes_all else self._own
        interval = LONGEST_PAUSE if self._once else self._interval
        self._finder = RunFinder(self._store, pattern, own, interval, self._observe)
        with stop_on_interrupt(self._request_stop, signals=(signal.SIGINT, signal.SIGTERM)):
            try:
                self._loop()
            except BaseException:
                self._give_up()
                raise
        return dict(self._counts)

    def _request_stop(self) -> None:
        """Stop after the current supersteps; may be called by a signal handler."""
        self._was_stopped = True
        self._ended.put(None)

    @property
    def _is_stopping(self) -> bool:
        return self._was_stopped or (self._stop is not None and self._stop.is_set())

    # The main thread

    def _loop(self) -> None:
        is_told = False
        while True:
            if self._is_stopping and not is_told:
                is_told = True
                self._observe("stop", "", 0, {"active": len(self._active)})
            is_idle = self._take_up()
            if not self._active and (self._is_stopping or (self._once and is_idle)):
                return
            self._wait()

    def _take_up(self) -> bool:
        """Begin to continue runs while fewer than ``concurrency`` are computed; return whether no other is known."""
        while len(self._active) < self._concurrency and not self._is_stopping:
            if self._found is None:
                if time.monotonic() < self._next_search:
                    return True
                self._found = self._finder.find(frozenset(self._active))
            try:
                one = next(self._found)
            except StopIteration:
                self._end_search()
                return True
            except StoreError as error:
                self._note_outage(error)
                return True
            if one is not None and one.id not in self._active:
                self._active[one.id] = None
                name = f"run {one.id}"
                threading.Thread(target=self._serve, args=(one,), name=name, daemon=True).start()
        return False

    def _end_search(self) -> None:
        self._found, self._has_searched = None, True
        if self._outages:
            self._observe("outage", "", 0, {"text": "is over"})
        self._outages = 0
        seconds = min(self._interval, self._finder.next_time() - time.time())
        self._next_search = time.monotonic() + max(0.0, seconds)

    def _note_outage(self, error: StoreError) -> None:
        """Search again later if the store cannot be read, unless it never could."""
        if self._once or not self._has_searched:
            raise error
        self._found, self._outages = None, self._outages + 1
        seconds = min(self._interval * 2 ** min(self._outages, 32), LONGEST_PAUSE)
        self._next_search = time.monotonic() + seconds
        if self._outages == 1:
            self._observe("outage", "", 0, {"text": str(error), "seconds": seconds})

    def _wait(self) -> None:
        """Wait until a run has ended, or until it is time to search again or to look whether to stop."""
        is_stopping = self._is_stopping
        if len(self._active) >= self._concurrency or (is_stopping and self._active):
            seconds = _LONG
        else:
            seconds = 0.0 if is_stopping else max(0.0, self._next_search - time.monotonic())
        if self._stop is not None and not is_stopping:
            seconds = min(seconds, _STOP_SECONDS)
        with suppress(Empty):
            ended = self._ended.get(timeout=seconds)
            while True:
                if ended is not None:
                    self._settle(*ended)
                ended = self._ended.get_nowait()

    def _settle(self, run: UnfinishedRun, outcome: str | BaseException | None) -> None:
        """Note how the computation of a run has ended."""
        del self._active[run.id]
        if self._once:
            self._next_search = 0.0
        if isinstance(outcome, str):
            self._counts[outcome] += 1
            self._finder.note_continued(run)
        elif isinstance(outcome, FencedError):
            self._observe("lost", run.id, run.head + 1, {"text": str(outcome)})
        elif outcome is not None and not isinstance(outcome, (ClaimedError, UnknownRunError)):
            self._counts["error"] += 1
            self._finder.postpone(run, outcome)

    def _give_up(self) -> None:
        """Release all claims at once; what was computed and not stored is lost."""
        self._was_stopped = True
        for journal in list(self._active.values()):
            if journal is not None:
                with suppress(Exception):
                    journal.close()

    # The thread of a run

    def _serve(self, run: UnfinishedRun) -> None:
        outcome: str | BaseException | None = None
        try:
            outcome = self._continue(run)
        except BaseException as error:
            outcome = error
        self._ended.put((run, outcome))

    def _continue(self, run: UnfinishedRun) -> str | None:
        """Claim a run and compute it; return its status, or None if it changed before it was claimed."""
        found = self._store.run(run.id)
        if (found.epoch, found.status, found.head) != (run.epoch, run.status, run.head):
            return None  # its owner may have completed it, and ended, since it was listed
        options = self._make_options(run.id, self._finder.limits(run.id))
        recovered = begin_from_store(self._store, run.id, options, takeover=False)
        journal = recovered.journal
        assert journal is not None
        if self._store.run(run.id).epoch != run.epoch + 1:  # another program was faster, and may have cancelled it
            journal.close()
            return None
        self._active[run.id] = journal
        with AgentRun(options, recovered) as agents:
            self._observe("claim", run.id, recovered.superstep, {"status": run.status})
            while agents.step():
                if self._is_stopping:
                    agents.stop()
                    break
        self._observe("release", run.id, agents._master.superstep, {"status": agents.status})
        return agents.status

    def _make_options(self, run_id: str, limits: dict[str, Any]) -> RunOptions:
        options = {**limits, **self._options, "store": self._store, "run_id": run_id, "on_waiting": "return"}
        return make_options("serve", self._compute, options)

    def _observe(self, kind: str, run_id: str, superstep: int, facts: dict[str, Any]) -> None:
        if self._observers:
            self._notify(Event(kind, superstep, facts=facts, run=run_id))

    def _notify(self, event: Event) -> None:
        """Call the observers, one thread at a time."""
        with self._observing:
            for observer in self._observers:
                observer(event)
