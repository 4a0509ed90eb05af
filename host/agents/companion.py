"""What stands beside the agents of a run and takes part in their supersteps: the numeric vertices of a mixed run."""

from __future__ import annotations

from collections.abc import Set
from typing import Protocol

from gpu_pregel.host.agents.mutations import Refusals
from gpu_pregel.host.agents.records import Id, VertexData
from gpu_pregel.host.agents.state import Inbox, Records


class Companion(Protocol):
    """Wakes agents, gives them their input, and takes what their records have for it."""

    def due(self) -> Set[Id]:
        """Return the agents to compute in the next superstep, whether they are awake or not."""

    def add_inputs(self, vertices: list[Id], inbox: Inbox) -> Inbox:
        """Return the messages of the vertices of a superstep, the first of which is the input of each."""

    def find_refusals(self, records: Records) -> Refusals:
        """Return why what some records have for the companion cannot be carried out."""

    def new_agents(self, known: Set[Id]) -> dict[Id, VertexData]:
        """Return the agents that a superstep creates, besides those known."""
