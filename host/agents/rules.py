"""How a run of agents goes on beside its compute functions: aggregators, master compute, what becomes of failures."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from gpu_pregel.host.agents.combiners import Folding
from gpu_pregel.host.agents.mutations import Resolve


@dataclass(frozen=True)
class Aggregate:
    """An aggregator as the master has it: how it folds, what it is at first, and whether it carries over."""

    folding: Folding
    initial: Any
    persistent: bool


@dataclass(frozen=True)
class Rules:
    """What a run's policy follows.

    Attributes
    ----------
    aggregates : dict of str to Aggregate
    master : callable or None
    on_failure : "raise", "continue" or callable
    on_missing : "error", "create" or "drop"
    resolve : callable or None
        Decides about added vertices that are there already, or are wanted twice.
    """

    aggregates: dict[str, Aggregate]
    master: Callable[[MasterContext], Any] | None
    on_failure: Any
    on_missing: str
    resolve: Resolve | None


class MasterContext:
    """What master compute sees after each superstep, and what it may decide.

    Attributes
    ----------
    superstep, num_vertices : int
    """

    def __init__(self, superstep: int, num_vertices: int, aggregates: dict[str, Any], names: Iterable[str]) -> None:
        self.superstep, self.num_vertices = superstep, num_vertices
        self.halted = False
        self.function: str | None = None
        self._aggregates, self._names = aggregates, tuple(names)

    def aggregated(self, name: str) -> Any:
        """The aggregate of this superstep."""
        if name not in self._aggregates:
            there = ", ".join(map(repr, self._aggregates)) or "none"
            raise KeyError(f"there is no aggregator {name!r}: declared are {there}")
        return self._aggregates[name]

    def halt(self) -> None:
        """End the run after this superstep."""
        self.halted = True

    def use(self, name: str) -> None:
        """Compute by the function of this name from the next superstep on."""
        if name not in self._names:
            raise KeyError(f"there is no compute function {name!r}: there are {', '.join(map(repr, self._names))}")
        self.function = str.__str__(name)
