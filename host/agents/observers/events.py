"""What an observer of a run of agents is told, and ready observers for logging and tqdm."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic, time
from typing import Any

KINDS = ("superstep", "attempt", "retry", "failure", "interrupt", "death", "commit", "hold", "end")


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened in a run.

    Attributes
    ----------
    kind : str
        "superstep" (one begins, or goes on), "attempt" (one ended), "retry", "failure", "interrupt", "death" (of a
        worker), "commit" (with the row of the trace), "hold" (of the superstep) or "end" (of the run, or of
        its ``with`` block).
    superstep : int
    vertex : id, optional
    attempt : int, optional
    facts : dict
        What else there is to say, such as "active", "seconds", "text" or "status".
    run : str
        The run's id.
    """

    kind: str
    superstep: int
    vertex: Any = None
    attempt: int | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    run: str = ""


Observer = Callable[[Event], None]

_LEVELS = {
    "failure": logging.ERROR,
    "death": logging.ERROR,
    "retry": logging.WARNING,
    "hold": logging.WARNING,
    "attempt": logging.DEBUG,
}


class LogObserver:
    """Writes events to a logger, a line each: failures as errors, retries as warnings, attempts for debugging.

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
    """A fact on one line, whatever an exception's text has."""
    if isinstance(fact, float):
        return f"{fact:.3g}"
    return "\\n".join(str(fact).splitlines())


_DELAY, _PERIOD = 0.5, 0.1
"""Seconds until a bar is shown, and between two times that it is drawn."""
_FORMAT = "{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} [{elapsed}]"


class ProgressObserver:
    """Shows the superstep, and how many of its vertices are done, on stderr by tqdm, once a run is long.

    The bar goes when a superstep is held, and when the run ends or its ``with`` block is left.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> def compute(ctx):
    ...     ctx.vote_to_halt()
    >>> gp.agents.run([gp.agents.Vertex("a")], compute, observer=gp.agents.ProgressObserver()).status
    'completed'
    """

    def __init__(self) -> None:
        self._bar: Any = None
        self._superstep = self._done = 0
        self._active: int | None = None
        self._begin = self._next = 0.0

    def __call__(self, event: Event) -> None:
        """Move the bar, and draw it now and then."""
        if event.kind == "superstep":
            self._superstep, self._active, self._done = event.superstep, event.facts["active"], 0
        elif event.kind == "attempt":
            self._done += event.facts["status"] == "completed"
        elif event.kind in ("hold", "end"):
            self._close()
            return
        now = monotonic()
        if now >= self._next:
            if self._next:
                self._draw()
            else:
                self._begin = time()
            self._next = now + (_PERIOD if self._bar is not None else _DELAY)

    def _draw(self) -> None:
        if self._bar is None:
            from tqdm import tqdm

            self._bar = tqdm(leave=False, bar_format=_FORMAT, delay=_DELAY)
            self._bar.start_t = self._begin
        self._bar.total, self._bar.n = self._active, self._done
        self._bar.set_description_str(f"superstep {self._superstep}")

    def _close(self) -> None:
        """Take the bar away, until there are events again."""
        self._next = 0.0
        if self._bar is not None:
            bar, self._bar = self._bar, None
            bar.close()
