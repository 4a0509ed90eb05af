"""The timeouts of the attempts that a transport watches: one for all vertices, or one for each."""

from __future__ import annotations

from collections.abc import Iterable

from gpu_pregel.host.agents.partition_options import PartitionOptions
from gpu_pregel.host.agents.records import Id, TaskFields


class Timeouts:
    """The timeouts of vertices.

    Parameters
    ----------
    options : PartitionOptions

    Attributes
    ----------
    is_function : bool
        Whether each vertex has its own.
    shortest : float or None
        Of all timeouts so far; None if there is none.
    """

    def __init__(self, options: PartitionOptions) -> None:
        self._options, self.is_function = options, callable(options.timeout)
        self._given = None if callable(options.timeout) else options.timeout
        self._limits: dict[Id, float | None] = {}
        self.shortest = self._given

    def note(self, tasks: Iterable[TaskFields]) -> None:
        """Ask for the timeouts of vertices whose attempts are about to begin, if ``is_function``."""
        for vertex, *_ in tasks:
            limit = self._limits[vertex] = self._options.timeout_of(vertex)
            if limit is not None:
                self.shortest = limit if self.shortest is None else min(limit, self.shortest)

    def of(self, vertex: Id) -> float | None:
        """Return the timeout of a vertex that was noted."""
        return self._limits.get(vertex) if self.is_function else self._given


def too_late(timeout: float) -> str:
    """Return why an attempt on a thread has failed."""
    return (
        f"took more than {timeout} s and was abandoned: its thread cannot be ended, but what it still does has no "
        f"effect on the run"
    )
