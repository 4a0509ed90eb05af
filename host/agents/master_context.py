"""The argument of a run's ``master`` function."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class MasterContext:
    """Aggregates of a superstep, and the decisions that a ``master`` function may take after it.

    Attributes
    ----------
    superstep, num_vertices : int
    """

    def __init__(self, superstep: int, num_vertices: int, aggregates: dict[str, Any], functions: Iterable[str]) -> None:
        self.superstep, self.num_vertices = superstep, num_vertices
        self.halted = False
        self.function: str | None = None
        self._aggregates, self._functions = aggregates, tuple(functions)

    def aggregated(self, name: str) -> Any:
        """Return an aggregate of this superstep."""
        if name not in self._aggregates:
            raise KeyError(
                f"no aggregator {name!r}; declared aggregators: {', '.join(map(repr, self._aggregates)) or 'none'}"
            )
        return self._aggregates[name]

    def halt(self) -> None:
        """End the run after this superstep."""
        self.halted = True

    def use(self, name: str) -> None:
        """Use another compute function from the next superstep on."""
        if name not in self._functions:
            raise KeyError(f"no compute function {name!r}; available: {', '.join(map(repr, self._functions))}")
        self.function = str.__str__(name)
