"""The direction of a superstep: push along the out-edges of few active vertices, or pull along all in-edges."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from gpu_pregel.errors import ArgumentError
from gpu_pregel.host.programs.compiler import CompiledProgram
from gpu_pregel.host.programs.direction_costs import DirectionCosts
from gpu_pregel.host.programs.program import VertexProgram
from gpu_pregel.host.programs.state import Activity

Mode = Literal["auto", "push", "pull"]
MODES: tuple[str, ...] = get_args(Mode)
PULL_SHARE = 20
"""On the CPU, push while the active edges are less than 1 / PULL_SHARE of the stored ones (Gemini's threshold)."""


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
    """

    mode: str
    can_push: bool
    stored_edges: int
    costs: DirectionCosts | None = None

    def choose(self, activity: Activity) -> str:
        """Return "push" if few edges are active, else "pull", unless the mode decides."""
        if self.mode != "auto":
            return self.mode
        if not self.can_push:
            return "pull"
        return "push" if activity.active_edges <= self._most_pushed else "pull"

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
    mode: str,
    deterministic: bool,
    costs: DirectionCosts | None = None,
) -> DirectionRule:
    """Make the rule for a program, or raise ``ArgumentError`` if it must push and cannot."""
    obstacle = _push_obstacle(program, compiled, deterministic)
    if mode == "push" and obstacle:
        raise ArgumentError(f"mode='push' is not possible: {obstacle}; use mode='pull' or 'auto'")
    return DirectionRule(mode, obstacle is None, stored_edges, costs)


def _push_obstacle(program: VertexProgram, compiled: CompiledProgram, deterministic: bool) -> str | None:
    """Return why a program cannot push, or None."""
    if compiled.push is None:
        return "messages are tuples, and only single numbers can be combined atomically"
    ordered = program.combine == "sum" or not isinstance(program.combine, str)
    if ordered and compiled.message.dtypes[0].kind == "f" and deterministic:
        return "floating-point messages would be combined in a random order (deterministic=False allows it)"
    return None
