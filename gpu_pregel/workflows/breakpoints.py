"""Where runs of a state graph stop: before or after some nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from gpu_pregel.host.agents.agent_run import AgentRun


class Runs(Protocol):
    """What breakpoints need to know of the runs of a graph."""

    interrupt_after: frozenset[str]

    @property
    def has_breakpoints(self) -> bool:
        """Whether there are breakpoints."""

    def waiting(self, agents: AgentRun) -> Iterator[str]:
        """Yield the nodes of the next superstep."""

    def is_before_breakpoint(self, agents: AgentRun) -> bool:
        """Whether a node of the next superstep is one to stop before."""


class Breakpoints:
    """The breakpoints of a run: tells after each superstep whether to stop.

    A run that is continued does not stop before the nodes that it stopped before, even if they still wait for a
    superstep that runs no node.

    Parameters
    ----------
    runs : Runs
    agents : AgentRun
        Before its first superstep.
    """

    def __init__(self, runs: Runs, agents: AgentRun) -> None:
        self._runs, self._has_run_nodes = runs, False
        self._running = self._next(agents)

    def _next(self, agents: AgentRun) -> set[str]:
        """Return the nodes that the next superstep runs; none if it only notes what others wait for."""
        return set(self._runs.waiting(agents)) if self._runs.has_breakpoints else set()

    def is_reached(self, agents: AgentRun) -> bool:
        """Whether to stop after the superstep that has ended."""
        runs = self._runs
        if not runs.has_breakpoints or agents._policy.ledger is not None:
            return False
        ran, self._running = self._running, self._next(agents)
        self._has_run_nodes = self._has_run_nodes or bool(ran)
        if not ran.isdisjoint(runs.interrupt_after):
            return True
        return self._has_run_nodes and runs.is_before_breakpoint(agents)
