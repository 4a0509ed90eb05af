"""What an observer of a run of agents is told, and ready observers for logging and tqdm."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

KINDS = ("superstep", "attempt", "retry", "failure", "interrupt", "death", "commit", "hold", "end")


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened in a run.

    Attributes
    ----------
    kind : str
        "superstep" (one begins), "attempt" (one ended), "retry", "failure", "interrupt", "death" (of a worker),
        "commit" (with the row of the trace), "hold" (of the superstep) or "end".
    superstep : int
    vertex : id, optional
    attempt : int, optional
    facts : dict
        What else there is to say, such as "active", "seconds", "text" or "status".
    """

    kind: str
    superstep: int
    vertex: Any = None
    attempt: int | None = None
    facts: dict[str, Any] = field(default_factory=dict)


Observer = Callable[[Event], None]

_LEVELS = {"failure": logging.ERROR, "death": logging.ERROR, "retry": logging.WARNING, "attempt": logging.DEBUG}


class LogObserver:
    """Writes events to a logger: failures as errors, retries as warnings, attempts for debugging.

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
            facts = ", ".join(f"{name} {value}" for name, value in event.facts.items())
            self._logger.log(level, "superstep %d%s%s: %s %s", event.superstep, vertex, attempt, event.kind, facts)


class ProgressObserver:
    """Shows supersteps, and the vertices done in the current one, on stderr by tqdm."""

    def __init__(self) -> None:
        self._bar: Any = None

    def __call__(self, event: Event) -> None:
        """Move the bar."""
        if event.kind == "superstep":
            from tqdm import tqdm

            self._close()
            self._bar = tqdm(total=event.facts["active"], desc=f"superstep {event.superstep}", leave=False)
        elif event.kind == "attempt" and self._bar is not None and event.facts["status"] != "failed":
            self._bar.update(1)
        elif event.kind == "end":
            self._close()

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
