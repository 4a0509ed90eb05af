"""The argument of a run's ``master`` function."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gpu_pregel.host.agents.codec import decode


class MasterContext:
    """Aggregates of a superstep, and the decisions that a ``master`` function may take after it.

    Attributes
    ----------
    superstep, num_vertices : int
    """

    # ``unchanged`` are persistent aggregates without contributions, encoded: reading all of them would take time.

    def __init__(
        self,
        superstep: int,
        num_vertices: int,
        aggregates: dict[str, Any],
        unchanged: dict[str, bytes],
        functions: Iterable[str],
    ) -> None:
        self.superstep, self.num_vertices = superstep, num_vertices
        self.halted = False
        self.function: str | None = None
        self._aggregates, self._unchanged, self._functions = aggregates, unchanged, tuple(functions)

    def aggregated(self, name: str) -> Any:
        """Return an aggregate of this superstep."""
        if name in self._unchanged:
            self._aggregates[name] = decode(self._unchanged.pop(name), name=f"the aggregate {name!r}")
        if name not in self._aggregates:
            declared = ", ".join(map(repr, (*self._aggregates, *self._unchanged))) or "none"
            raise KeyError(f"no aggregator {name!r}; declared aggregators: {declared}")
        return self._aggregates[name]

    def halt(self) -> None:
        """End the run after this superstep."""
        self.halted = True

    def use(self, name: str) -> None:
        """Use another compute function from the next superstep on."""
        if name not in self._functions:
            raise KeyError(f"no compute function {name!r}; available: {', '.join(map(repr, self._functions))}")
        self.function = str.__str__(name)
