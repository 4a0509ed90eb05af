"""The keys of a shared state as aggregates of a run: how the updates of a superstep are folded into each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpu_pregel.errors import ArgumentError
from gpu_pregel.host.agents.combiners import SuperstepFold
from gpu_pregel.workflows.schemas import Key
from gpu_pregel.workflows.tasks import label, writer_order


class Channel(SuperstepFold):
    """The fold of a key: an aggregate is a tuple of the value, or empty before the first update.

    Updates are taken in the order of their writers: nodes by name, then what was sent by ``Send`` in the order of sending.
    """

    def __init__(self, key: Key) -> None:
        self.key = key

    def fold(self, before: tuple[Any, ...], contributions: Sequence[tuple[Any, Any]]) -> tuple[Any, ...]:
        """Return the aggregate after a superstep."""
        if len(contributions) > 1:
            contributions = sorted(contributions, key=lambda one: writer_order(one[0]))
            if self.key.reducer is None:
                writers = [repr(label(vertex)) for vertex, _ in contributions]
                raise ArgumentError(
                    f"nodes {' and '.join(dict.fromkeys(writers))} wrote {self.key.name!r} in the same superstep, and "
                    f"it has no reducer: annotate it, as in Annotated[list, append], or let one of them write it"
                )
        for _, update in contributions:
            before = self.take(before, update)
        return before

    def take(self, before: tuple[Any, ...], update: Any) -> tuple[Any, ...]:
        """Return the aggregate after one update."""
        reducer = self.key.reducer
        return (update,) if reducer is None or not before else (reducer(before[0], update),)
