"""Events of a run of agents, and observers for logging and tqdm."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpu_pregel.host.agents.codec import decode


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened in a run.

    Attributes
    ----------
    kind : str
        "superstep" (one starts or continues), "attempt" (one has ended), "retry", "failure", "interrupt", "death" (of a
        worker), "undeliverable" (a message from outside), "commit" (with the row of the trace), "hold" (of
        the superstep) or "end" (of the run, or of its ``with`` block).
    superstep : int
    vertex : id, optional
    attempt : int, optional
    facts : dict
        Further details, such as "active", "seconds", "text" or "status".
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

    def add(self, kind: str, *, vertex: bytes | None = None, attempt: int | None = None, **facts: Any) -> None:
        """Queue an event if there are observers; ``vertex`` is an encoded id."""
        if self.observers:
            name = None if vertex is None else decode(vertex)
            self._events.append(Event(kind, self.superstep, name, attempt, facts, self._run))

    def notify(self) -> None:
        """Call the observers."""
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
}


class LogObserver:
    """Writes each event to a logger: failures as errors, retries as warnings, attempts as debug messages.

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
            vertex = "" if event.vertex is None else f", vertex {event.vertex!r}"
            attempt = "" if event.attempt is None else f", attempt {event.attempt}"
            facts = ", ".join(f"{name} {_plain(fact)}" for name, fact in event.facts.items() if name != "superstep")
            self._logger.log(level, "superstep %d%s%s: %s %s", event.superstep, vertex, attempt, event.kind, facts)


def _plain(fact: Any) -> str:
    """Format a fact on one line, even if the text of an exception has several."""
    if isinstance(fact, float):
        return f"{fact:.3g}"
    return "\\n".join(str(fact).splitlines())


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
