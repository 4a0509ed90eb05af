"""An attempt on a thread of this process, which cannot be ended from outside."""

from __future__ import annotations

from time import monotonic

from gpu_pregel.host.agents.context import Context
from gpu_pregel.host.agents.records import Task, TaskFields


class ThreadAttempt:
    """An attempt on a thread, which ends or is abandoned, whichever is first.

    Attributes
    ----------
    task : Task
    context : Context or None
        None until it has been made.
    last : float
        When the attempt began or was last heard of, on the monotonic clock.
    is_abandoned : bool
    """

    __slots__ = ("_undecided", "context", "has_ended", "is_abandoned", "last", "task")

    def __init__(self, fields: TaskFields) -> None:
        self.task = Task(*fields)
        self.context: Context | None = None
        self.last = monotonic()
        self.has_ended = self.is_abandoned = False
        self._undecided = [None]
        """Who removes the item decides; this needs no lock."""

    def begin(self, context: Context) -> None:
        """Take the context of the attempt before its function is called."""
        self.context = context
        context.on_heartbeat(self.beat)
        if self.is_abandoned:
            context.close()

    def beat(self) -> None:
        """Let the timeout count from now."""
        self.last = monotonic()

    def end(self) -> bool:
        """Note that the function has returned; return False if the attempt was abandoned before."""
        if not self.has_ended:
            try:
                self._undecided.pop()
            except IndexError:
                return False
            self.has_ended = True
        return True

    def abandon(self) -> bool:
        """Drop the outcome of the attempt, whose thread cannot be ended; return False if it has ended before."""
        try:
            self._undecided.pop()
        except IndexError:
            return False
        self.is_abandoned = True
        return True
