"""Events of a run of agents, and observers for logging and tqdm."""

from __future__ import annotations

import logging
from _thread import RLock
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpu_pregel.host.agents.codec import decode
from gpu_pregel.host.agents.emissions import TIMES, Emission
from gpu_pregel.host.agents.previews import whole_text
from gpu_pregel.host.agents.records import Id, Outcome


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened in a run.

    Attributes
    ----------
    kind : str
        "superstep" (one starts or continues), "emit" (an attempt called ``ctx.emit``), "attempt" (one has ended),
        "retry", "failure", "interrupt", "death" (of a worker), "undeliverable" (a message from outside),
        "commit" (with the row of the trace), "hold" (of the superstep) or "end" (of the run, or of its ``with`` block).
    superstep : int
    vertex : id, optional
    attempt : int, optional
    facts : dict
        Further details, such as "active", "seconds", "text" or "status"; "payload" and "sequence" of an emission. An
        "attempt" has "began" (in seconds since 1970) and "seconds" if an observer has an attribute ``wants_times`` that
        is true, except for some of very many quick ones.
    run : str
        Id of the run.
    """

    kind: str
    superstep: int
    vertex: Any = None
    attempt: int | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    run: str = ""


Observer = Callable[[Event], None]
"""Called by one thread at a time."""


class EventQueue:
    """Events that wait until the state is consistent, because an observer may raise.

    Attributes
    ----------
    superstep : int
        That of the events to come.
    """

    def __init__(self, observers: Sequence[Observer], run: str) -> None:
        self.observers, self.superstep = observers, 0
        self._run = run
        self._events: deque[Event] = deque()
        self._lock = RLock()
        """Held while observers are called."""
        self._times: dict[tuple[Id, int], tuple[float, float]] = {}
        """When attempts whose outcomes have not been handled began, and how long they took."""
        self._error: BaseException | None = None
        """What an observer of an emission has raised in an attempt."""

    def add(self, kind: str, *, vertex: bytes | None = None, attempt: int | None = None, **facts: Any) -> None:
        """Queue an event if there are observers; ``vertex`` is an encoded id."""
        if self.observers:
            name = None if vertex is None else decode(vertex)
            self._events.append(Event(kind, self.superstep, name, attempt, facts, self._run))

    def add_attempt(self, outcome: Outcome) -> None:
        """Queue the end of an attempt."""
        facts: dict[str, Any] = {"status": outcome.status}
        times = self._times.pop((outcome.id, outcome.attempt), None)
        if times is not None:
            facts["began"], facts["seconds"] = times
        self.add("attempt", vertex=outcome.id, attempt=outcome.attempt, **facts)
        if outcome.status == "interrupted":
            self.add("interrupt", vertex=outcome.id, attempt=outcome.attempt)

    def add_emission(self, emission: Emission) -> None:
        """Queue an emission."""
        if emission.sequence == TIMES:
            self._times[emission.vertex, emission.attempt] = decode(emission.payload)
            return
        payload = decode(emission.payload, name="an emission")
        vertex, attempt = emission.vertex, emission.attempt
        self.add("emit", vertex=vertex, attempt=attempt, sequence=emission.sequence, payload=payload)

    def emit(self, emission: Emission) -> None:
        """Call the observers from an attempt; what they raise is raised by the next ``notify``."""
        with self._lock:
            self.add_emission(emission)
            try:
                self._call_observers()
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                self._error = self._error or error

    def observe(self, kind: str, facts: dict[str, Any]) -> None:
        """Queue an event of the master, and call the observers."""
        if self.observers:
            if kind == "superstep":
                self._times.clear()  # of attempts without an outcome, as their worker died
            self.add(kind, **facts)
            self.notify()

    def notify(self) -> None:
        """Call the observers."""
        with self._lock:
            error, self._error = self._error, None
            if error is not None:
                raise error
            self._call_observers()

    def _call_observers(self) -> None:
        while self._events:
            event = self._events.popleft()
            for observer in self.observers:
                observer(event)


_LEVELS = {
    "failure": logging.ERROR,
    "death": logging.ERROR,
    "retry": logging.WARNING,
    "undeliverable": logging.WARNING,
    "hold": logging.WARNING,
    "attempt": logging.DEBUG,
    "emit": logging.DEBUG,
}


_MAX_FACT = 10_000
"""Maximum number of characters of a fact in a log."""


class LogObserver:
    """Writes each event to a logger, with its run, superstep, vertex and attempt: failures as errors, retries as
    warnings, attempts and emissions as debug messages.

    Examples
    --------
    >>> import logging
    >>> import gpu_pregel as gp
    >>> observer = gp.agents.LogObserver(logging.getLogger("agents"))
    """

    def __init__(self, logger: logging.Logger | None = None) -> None:
        self._logger = logger or logging.getLogger("gpu_pregel.agents")

    def __call__(self, event: Event) -> None:
        """Write one line."""
        level = _LEVELS.get(event.kind, logging.INFO)
        if self._logger.isEnabledFor(level):
            run = f"run {_plain(event.run)}, " if event.run else ""
            vertex = "" if event.vertex is None else f", vertex {event.vertex!r}"
            attempt = "" if event.attempt is None else f", attempt {event.attempt}"
            facts = ", ".join(f"{name} {_plain(fact)}" for name, fact in event.facts.items() if name != "superstep")
            where = f"{run}superstep {event.superstep}{vertex}{attempt}"
            self._logger.log(level, "%s: %s %s", where, event.kind, facts)


def _plain(fact: Any) -> str:
    """Format a fact on one line, even if the text of an exception has several."""
    if isinstance(fact, float):
        return f"{fact:.3g}"
    return "\\n".join(whole_text(fact, str)[:_MAX_FACT].splitlines())


class ProgressObserver:
    """Shows the superstep and the number of its completed vertices on stderr with tqdm, once a run takes long.

    The bar is removed when a superstep is held, and when the run ends or its ``with`` block is left.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> def compute(ctx):
    ...     ctx.vote_to_halt()
    >>> gp.agents.run([gp.agents.Vertex("a")], compute, observer=gp.agents.ProgressObserver()).status
    'completed'
    """

    def __init__(self) -> None:
        from gpu_pregel.host.superstep.progress import COUNTS, ProgressBar

        self._bar = ProgressBar(bar_format=COUNTS)
        self._superstep = self._done = 0
        self._active: int | None = None

    def __call__(self, event: Event) -> None:
        """Update the bar."""
        if event.kind == "superstep":
            self._superstep, self._active, self._done = event.superstep, event.facts["active"], 0
        elif event.kind == "attempt":
            self._done += event.facts["status"] == "completed"
        elif event.kind in ("hold", "end"):
            self._bar.close()
            return
        self._bar.update(self._done, self._active, f"superstep {self._superstep}")
