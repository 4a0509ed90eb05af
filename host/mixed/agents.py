"""The options of the agents in a run of a vertex program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpu_pregel.host.agents.observers.events import Observer
from gpu_pregel.host.agents.options import RunOptions
from gpu_pregel.host.agents.retry import RetryPolicy


@dataclass(frozen=True, kw_only=True)
class Agents:
    """How agents compute the vertices of a program that no device can compute.

    Parameters
    ----------
    workers : int, default 0
        Number of worker processes; 0 computes in this process.
    retry : RetryPolicy, optional
        How often a vertex is tried in a superstep. Default: ``RetryPolicy()``.
    timeout : float, optional
        Seconds for an attempt at a vertex; needs workers.
    max_memory : int, optional
        Bytes of memory for each worker; needs workers.
    observer : callable or sequence of callables, optional
        Called with each :class:`gpu_pregel.agents.Event`.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> longest = gp.VertexProgram(
    ...     value=str,
    ...     init=lambda ctx: "abc"[ctx.vertex],
    ...     message=lambda value, ctx: value,
    ...     combine="max",
    ...     apply=lambda value, incoming, ctx: max(value, incoming),
    ... )
    >>> gp.run(gp.Graph.from_edgelist([0, 1], [1, 2]), longest, agents=gp.Agents(workers=1)).values.tolist()
    ['c', 'c', 'c']
    """

    workers: int = 0
    retry: RetryPolicy | None = None
    timeout: float | None = None
    max_memory: int | None = None
    observer: Observer | Sequence[Observer] = ()

    def __post_init__(self) -> None:
        RunOptions(print, **vars(self))  # checks them
