"""The states of a run after several supersteps, and what these have done, read from a store at once."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

from gpu_pregel.host.agents.formats import BegunSuperstep
from gpu_pregel.host.agents.recovery import RecoveredRun, read_commit, read_run
from gpu_pregel.host.agents.state import State

if TYPE_CHECKING:
    from gpu_pregel.host.stores.store import Store

_MOST_BYTES = 1 << 24
_VERTEX_BYTES = 100
"""Of a vertex in a copy of a state, which shares its value."""


def read_states(store: Store, run_id: str, superstep: int) -> list[RecoveredRun]:
    """Read a run of agents after a superstep and after those before it, back to the last base, in order.

    States are read by applying commits to a base, so the earlier ones come with the last. If they take much memory,
    only the latest of them are kept.
    """
    latest = _LatestStates()
    last = read_run(store, run_id, superstep, latest.add)
    before = [(step, state) for step, state, _ in latest.states if step < superstep]
    return [*(RecoveredRun(run_id, last.branch, step + 1, state) for step, state in before), last]


def read_supersteps(store: Store, run_id: str, first: int, last: int) -> dict[int, BegunSuperstep]:
    """Return the segments of the stored supersteps of a run of agents from ``first`` to ``last``."""
    found = {}
    for commit in store.commits(run_id, max(first - 1, -1)):
        if commit.step > last:
            break
        found[commit.step] = BegunSuperstep(read_commit(store, run_id, commit).segments)
    return found


class _LatestStates:
    """The latest of the states that have been added, as many as take little memory."""

    def __init__(self) -> None:
        self.states: deque[tuple[int, State, int]] = deque()
        """Superstep, state, and the bytes that it does not share with the one before."""
        self._size = 0

    def add(self, superstep: int, state: State) -> None:
        """Keep a copy of a state."""
        before = self.states[-1][1].aggregates if self.states else {}
        changed = [data for name, data in state.aggregates.items() if before.get(name) is not data]
        size = sum(map(len, changed)) + _VERTEX_BYTES * len(state.vertices)
        copied = replace(
            state,
            vertices=state.vertices.copy(),
            inbox={target: list(messages) for target, messages in state.inbox.items()},
            failed=state.failed.copy(),
            timers=state.timers.copy(),
        )
        self.states.append((superstep, copied, size))
        self._size += size
        while self._size > _MOST_BYTES:
            self._size -= self.states.popleft()[2]
