"""What a superstep with numeric vertices and agents commits."""

from __future__ import annotations

from typing import NamedTuple

from gpu_pregel.host.agents.fold import AgentChange
from gpu_pregel.host.programs.policy import NumericChange
from gpu_pregel.host.superstep.journal import FoldedSuperstep


class MixedChange(NamedTuple):
    """What both sides commit."""

    numeric: NumericChange
    agents: FoldedSuperstep[AgentChange] | None
    """None while agents of this superstep, or an earlier one, are still being computed."""
    begun: int
    """The superstep in which the agents began that are computed, or were."""
    has_agents: bool
    """Whether agents were computed, or will be in the next superstep: it is committed to the store at once."""
