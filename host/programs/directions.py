"""The direction of a superstep: push along the out-edges of few active vertices, or pull along all in-edges."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from gpu_pregel.errors import ArgumentError
from gpu_pregel.host.programs.compiler import CompiledProgram, program_fields
from gpu_pregel.host.programs.direction_costs import DirectionCosts
from gpu_pregel.host.programs.program import VertexProgram
from gpu_pregel.host.programs.state import Activity
from gpu_pregel.host.traverse.directions import PULL_SHARE


@dataclass(frozen=True)
class DirectionRule:
    """The rule that chooses the direction of each superstep of a run.

    Attributes
    ----------
    mode : {"auto", "push", "pull"}
    can_push : bool
    stored_edges : int
    costs : DirectionCosts or None
        Of the program on its GPU; None elsewhere.
    search_vertices : int or None
        The number of vertices if each of them takes one message and sends once, as in a search; else None.
    """

    mode: str
    can_push: bool
    stored_edges: int
    costs: DirectionCosts | None = None
    search_vertices: int | None = None

    def name(self, activity: Activity, sent: int = 0) -> str:
        """Return what chooses the direction, as in the trace; the arguments are those of :meth:`choose`."""
        if self.mode != "auto":
            return "mode"
        if not self.can_push:
            return "only"
        if self.costs is not None:
            return "cost"
        return f"1/{PULL_SHARE}" if self._unexplored(activity, sent) is None else "unexplored"

    def choose(self, activity: Activity, sent: int = 0) -> str:
        """Return "push" if few edges are active, else "pull", unless the mode decides.

        ``sent`` is the number of edges along which vertices have sent in earlier supersteps.
        """
        if self.mode != "auto":
            return self.mode
        if not self.can_push:
            return "pull"
        edges, unexplored = activity.active_edges, self._unexplored(activity, sent)
        if unexplored is None or self.search_vertices is None:
            return "push" if edges <= self._most_pushed else "pull"
        # A pull of a search reads only the rows of vertices that it has not reached.
        if self.costs is not None:
            return "push" if self.costs.push(edges) < self.costs.pull(edges, unexplored) else "pull"
        return "push" if edges * PULL_SHARE < min(self.stored_edges, self.search_vertices + unexplored) else "pull"

    def _unexplored(self, activity: Activity, sent: int) -> int | None:
        """Return how many edges of a search nobody has sent along after this superstep; None if it is no search."""
        rest = self.stored_edges - sent - activity.active_edges
        return rest if self.search_vertices is not None and sent > 0 and rest >= 0 else None

    @cached_property
    def _most_pushed(self) -> int:
        return (self.stored_edges - 1) // PULL_SHARE if self.costs is None else self.costs.push_limit

    @property
    def push_limit(self) -> int | None:
        """The most active edges with which the rule chooses to push; None if the mode decides."""
        return self._most_pushed if self.mode == "auto" else None


def make_direction_rule(
    program: VertexProgram,
    compiled: CompiledProgram,
    stored_edges: int,
    *,
    vertices: int | None = None,
    mode: str,
    deterministic: bool,
    costs: DirectionCosts | None = None,
) -> DirectionRule:
    """Make the rule for a program, or raise ``ArgumentError`` if it must push and cannot."""
    obstacle = _push_obstacle(program, compiled, deterministic)
    if mode == "push" and obstacle:
        raise ArgumentError(f"mode='push' is not possible: {obstacle}; use mode='pull' or 'auto'")
    is_search = program.receives is not None and program.takes_first
    return DirectionRule(mode, obstacle is None, stored_edges, costs, vertices if is_search else None)


def _push_obstacle(program: VertexProgram, compiled: CompiledProgram, deterministic: bool) -> str | None:
    """Return why a program cannot push, or None."""
    if compiled.push is None and not program_fields(program)[1].is_tuple:
        return "combine may raise an exception, which only a pull can report on a GPU"
    if compiled.push is None:
        return "messages are tuples, and only single numbers can be combined atomically"
    ordered = program.combine == "sum" or not isinstance(program.combine, str)
    if ordered and compiled.message.dtypes[0].kind == "f" and deterministic:
        return "floating-point messages would be combined in a random order (deterministic=False allows it)"
    return None
