"""An observer that records the events of a run in the run's database, to show them later or in another process."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from gpu_pregel.errors import CodecError
from gpu_pregel.host.agents.codec import decode, encode
from gpu_pregel.host.agents.observers.events import Event
from gpu_pregel.host.agents.options import check_store
from gpu_pregel.host.agents.previews import Budget, cut, show
from gpu_pregel.host.arguments import check_integer

if TYPE_CHECKING:
    from gpu_pregel.host.stores.store import Store

_FLUSH_SECONDS = 0.2
_LIMITS = {"attempt": 1_000, "emit": 5_000}
_OTHER_LIMIT = 2_000
"""Maximum numbers of events of each kind in a superstep; what is beyond them is counted only."""
_MAX_TEXT = 20_000
"""Maximum characters of the text that an attempt emits, and of an exception's."""
_TOKENS = "messages"
"""Nodes of state graphs emit tokens as tuples of this and the token."""
_FACTS = {
    "superstep": ("active",),
    "attempt": ("status", "began", "seconds"),
    "retry": ("seconds", "text"),
    "failure": ("type", "text"),
    "death": ("partition", "reason"),
    "undeliverable": ("text",),
    "commit": ("seconds",),
    "hold": ("status",),
    "end": ("status",),
}
"""The facts of an event that are recorded; those of an emission are "text" or "payload"."""
OMITTED = "omitted"
"""The kind of a recorded event whose facts count those that were left out."""


class RecordedEvent(NamedTuple):
    """An event as it was recorded, at a time in seconds since 1970.

    ``kind``, ``superstep``, ``vertex``, ``attempt`` and ``facts`` are those of the :class:`Event`; the payload of an
    emission is "text" if it is one, joined with what its attempt has emitted within a moment, or else "payload", a tree
    of ``previews``. Events of kind "omitted" count those that were left out.
    """

    kind: str
    time: float
    superstep: int
    vertex: Any
    attempt: int | None
    facts: dict[str, Any]


class Timeline:
    """Records what happens in a run in its store, for ``gpu-pregel runs STORE show RUN --html`` and ``watch``.

    It keeps when attempts began, how long they took and how they ended, retries, deaths of workers, and what attempts
    emit, all of which the store does not have otherwise. Events are written together several times a second, on a
    thread of their own, and when the run is held or ends. A run never fails because of them: what cannot be written is
    dropped, and ``problem`` says why. Runs without a store, or in another one, are not recorded.

    Many events of a superstep are counted only: beyond 1,000 attempts, 5,000 emissions, and 20,000 characters of the
    text of an attempt. An instance may observe several runs.

    Parameters
    ----------
    store : SQLiteStore, PostgresStore or MemoryStore
        That of the run.
    max_bytes : int, default 16 MiB
        Bytes of the recorded events of a run, beyond which its oldest ones are removed.

    Attributes
    ----------
    problem : str or None
        Why the last events could not be written.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> def compute(ctx):
    ...     ctx.emit("thinking")
    ...     ctx.vote_to_halt()
    >>> store = gp.MemoryStore()
    >>> timeline = gp.agents.Timeline(store)
    >>> gp.agents.run([gp.agents.Vertex("a")], compute, store=store, run_id="tuesday", observer=timeline).status
    'completed'
    >>> [(event.kind, event.facts.get("text")) for event in timeline.read("tuesday") if event.vertex == "a"]
    [('emit', 'thinking'), ('attempt', None)]
    """

    wants_times = True
    """Asks for the times of attempts."""

    def __init__(self, store: Store, *, max_bytes: int = 16 << 20) -> None:
        self._store = check_store(store)
        self._max_bytes = check_integer("max_bytes", max_bytes, 1)
        self.problem: str | None = None
        self._logs: dict[str, _RunLog] = {}
        self._lock, self._writing = threading.Lock(), threading.Lock()
        self._is_due = False

    def __call__(self, event: Event) -> None:
        """Keep an event until it is written."""
        is_last = event.kind in ("hold", "end")
        with self._lock:
            log = self._logs.get(event.run)
            if log is None:
                log = self._logs[event.run] = _RunLog()
            log.add(event, time.time())
            starts_timer = not self._is_due and not is_last
            self._is_due |= starts_timer
        if is_last:
            self.flush()
        elif starts_timer:
            timer = threading.Timer(_FLUSH_SECONDS, self._flush_late)
            timer.daemon = True
            timer.start()

    def _flush_late(self) -> None:
        with self._lock:
            self._is_due = False
        self.flush()

    def flush(self) -> None:
        """Write the events so far."""
        with self._writing:
            with self._lock:
                taken = [(run_id, log.take()) for run_id, log in self._logs.items() if log.events]
                self._logs = {run_id: log for run_id, log in self._logs.items() if not log.is_over}
            for run_id, events in taken:
                self._write(run_id, events)

    def _write(self, run_id: str, events: list[RecordedEvent]) -> None:
        try:
            step = max(event.superstep for event in events)
            self._store.events.add(run_id, step, encode(list(map(tuple, events))), limit=self._max_bytes)
        except Exception as error:  # the run does not depend on it
            if self.problem is None:
                logger = logging.getLogger("gpu_pregel.agents")
                logger.warning("run %r is not recorded: %s: %s", run_id, type(error).__name__, error)
            self.problem = f"{type(error).__name__}: {error}"
        else:
            self.problem = None

    def read(self, run_id: str) -> list[RecordedEvent]:
        """Return the recorded events of a run, in order.

        Raises
        ------
        ArgumentError
            There is no such run.
        StoreError
            The store cannot be read or is damaged.
        """
        self.flush()
        return [event for _, events in read_events(self._store, run_id) for event in events]


class _RunLog:
    """The events of a run that are not written yet, and how many of each kind its superstep has had."""

    def __init__(self) -> None:
        self.events: list[RecordedEvent] = []
        self.is_over = False
        self._counts: Counter[str] = Counter()
        self._omitted: Counter[str] = Counter()
        self._texts: dict[tuple[Any, int | None], list[str]] = {}
        """The parts of the text of the last event of each attempt that emits text."""
        self._lengths: Counter[tuple[Any, int | None]] = Counter()
        self._superstep = -1

    def add(self, event: Event, now: float) -> None:
        """Add an event, or count it."""
        kind = event.kind
        if kind == "superstep" or event.superstep != self._superstep:
            self._begin(event.superstep)
        if kind in ("commit", "hold", "end") and self._omitted:
            self.events.append(RecordedEvent(OMITTED, now, event.superstep, None, None, dict(self._omitted)))
            self._omitted.clear()
        self.is_over = kind == "end"
        if kind == "emit":
            self._add_emission(event, now)
            return
        self._counts[kind] += 1
        if self._counts[kind] > _LIMITS.get(kind, _OTHER_LIMIT):
            self._omitted[f"{kind} {event.facts.get('status', '')}".rstrip()] += 1
            return
        facts = {name: _as_data(event.facts[name]) for name in _FACTS.get(kind, ()) if name in event.facts}
        self.events.append(RecordedEvent(kind, now, event.superstep, event.vertex, event.attempt, facts))

    def _begin(self, superstep: int) -> None:
        self._superstep = superstep
        self._counts.clear()
        self._texts.clear()
        self._lengths.clear()

    def _add_emission(self, event: Event, now: float) -> None:
        payload, attempt = _token(event.facts["payload"]), (event.vertex, event.attempt)
        if isinstance(payload, str):
            room = _MAX_TEXT - self._lengths[attempt]
            self._lengths[attempt] += len(payload)
            if len(payload) > room:
                self._omitted["characters emitted"] += len(payload) - max(0, room)
                payload = payload[: max(0, room)]
            if attempt in self._texts:
                self._texts[attempt].append(payload)
                return
        self._counts["emit"] += 1
        if self._counts["emit"] > _LIMITS["emit"]:
            self._omitted["emit"] += 1
            return
        facts: dict[str, Any]
        if isinstance(payload, str):
            self._texts[attempt] = parts = [payload]
            facts = {"text": parts}
        else:
            facts = {"payload": show(payload, Budget(40, 500))}
        self.events.append(RecordedEvent("emit", now, event.superstep, event.vertex, event.attempt, facts))

    def take(self) -> list[RecordedEvent]:
        """Return the events since the last call."""
        events, self.events = self.events, []
        self._texts = {}
        return [
            event._replace(facts={"text": "".join(event.facts["text"])})
            if type(event.facts.get("text")) is list
            else event
            for event in events
        ]


def _token(payload: Any) -> Any:
    """Return the text of a token that a node of a state graph emits, or any other payload as it is."""
    is_token = type(payload) is tuple and len(payload) == 2 and payload[0] == _TOKENS and isinstance(payload[1], str)
    return payload[1] if is_token else payload


def _as_data(fact: Any) -> Any:
    return (
        cut(fact, _MAX_TEXT)
        if isinstance(fact, str)
        else fact
        if isinstance(fact, (int, float, type(None)))
        else str(fact)
    )


def read_events(store: Store, run_id: str, after: int = -1) -> Iterator[tuple[int, list[RecordedEvent]]]:
    """Yield the recorded events of a run row by row, those after row number ``after``, with the number of their row."""
    for row in store.events.read(run_id, after):
        try:
            yield row.number, [RecordedEvent(*fields) for fields in decode(row.data, name="recorded events")]
        except (CodecError, TypeError):
            continue  # written by a newer release: what is recorded is not needed to continue


def copy_events(store: Store, run_id: str, new_id: str, superstep: int) -> None:
    """Copy what was recorded of a run up to a superstep to its fork."""
    for _, events in read_events(store, run_id):
        kept = [event for event in events if event.superstep <= superstep and event.kind != "end"]
        if kept:
            data = encode(list(map(tuple, kept)))
            store.events.add(new_id, max(event.superstep for event in kept), data, limit=1 << 30)
