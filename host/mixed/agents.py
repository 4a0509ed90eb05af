"""The agents of a run on a graph: what they compute, and how."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal

from gpu_pregel.errors import ArgumentError, ArgumentTypeError
from gpu_pregel.host.agents.observers.events import Observer
from gpu_pregel.host.agents.options import RunOptions
from gpu_pregel.host.agents.retry import RetryPolicy
from gpu_pregel.host.agents.vertex_options import RetryOfVertex, TimeoutOfVertex
from gpu_pregel.host.arguments import check_flag, check_integer
from gpu_pregel.host.devices.threads import available_threads

if TYPE_CHECKING:
    from gpu_pregel.host.mixed.agent_context import AgentContext

_FEW_VERTICES = 512
"""Up to this number of vertices are computed in the calling process, in less time than workers take to start."""


@dataclass(frozen=True)
class Agents:
    """The agents of a run on a graph.

    With ``compute`` they are computed beside the numeric vertices of the program: those that its ``wake`` chooses, and
    those of ``vertices``. Without it, they compute a program that no device can compute; see ``fallback`` of
    :func:`gpu_pregel.run`.

    Parameters
    ----------
    compute : callable, optional
        ``compute(ctx)``, an ordinary or ``async`` function of an :class:`AgentContext`. What it returns is written to
        its vertex: the value, or a dict with some of its named fields.
    vertices : iterable of ids, mapping from id to data, or callable, optional
        Vertices that are agents from the start: they receive the messages to them, and the program applies nothing to
        them. A mapping gives the state that each starts with; ``vertices(id)`` chooses by the id. They are computed
        in superstep 0 and whenever they have messages.
    neighbors : int, default 64
        Maximum number of neighbours in ``ctx.neighbors``.
    combined : bool, default False
        Whether messages along edges to an agent are combined into one.
    max_lag : int, default 0
        The number of supersteps by which numeric vertices may run ahead of agents: what agents do arrives up to
        ``max_lag`` supersteps late; the column ``lag`` of the trace has their number. Other agents wait until
        those that are being computed have ended. The last superstep waits for all, and so does one that
        leaves no numeric vertex active. Without workers there is no lag.
    on_failure : {"raise", "continue", "abort"} or callable
        What to do when an agent has failed its last attempt, as in :func:`gpu_pregel.agents.run`.
    workers : int or "auto", default "auto"
        Number of worker processes; 0 computes in this process. "auto" is 0 with ``compute`` or ``threads``. Without
        them it is 0 for up to 512 vertices, which take less time than starting processes, and for more vertices, or
        with ``timeout`` or ``max_memory``, the number of processors available to this process.
    threads : int, default 0
        Maximum number of attempts side by side on threads of this process, as in :func:`gpu_pregel.agents.run`.
    retry : RetryPolicy or callable, optional
        How often a vertex is tried in a superstep, or a function of its id that returns this. Default:
        ``RetryPolicy()``.
    timeout : float or callable, optional
        Seconds for an attempt at a vertex, or such a function; needs workers, threads, or an ``async`` function.
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

    compute: Callable[[AgentContext], Any] | None = None
    vertices: Iterable[Any] | Mapping[Any, Any] | Callable[[Any], Any] | None = None
    neighbors: int = 64
    combined: bool = False
    max_lag: int = 0
    on_failure: Any = "raise"
    workers: int | Literal["auto"] = "auto"
    threads: int = 0
    retry: RetryPolicy | RetryOfVertex | None = None
    timeout: float | TimeoutOfVertex | None = None
    max_memory: int | None = None
    observer: Observer | Sequence[Observer] = ()

    def __post_init__(self) -> None:
        if self.compute is not None and not callable(self.compute):
            raise ArgumentTypeError(f"compute must be a function of (ctx), not {self.compute!r}")
        check_integer("neighbors", self.neighbors, 0, 1 << 32)
        check_integer("max_lag", self.max_lag, 0, 1 << 32)
        check_flag("combined", self.combined)
        given = self.vertices
        is_valid = given is None or callable(given) or isinstance(given, Iterable)
        if not is_valid or isinstance(given, (str, bytes)):
            raise ArgumentTypeError(
                f"vertices must be ids of the graph, a mapping from them, or a function of an id, not {given!r:.80}"
            )
        if given is not None and self.compute is None:
            raise ArgumentError("vertices= are computed by compute=: pass it too")
        if isinstance(given, Iterator):  # which could be read only once
            object.__setattr__(self, "vertices", tuple(given))
        self.check_options(self.compute or _nothing)

    def options(self, num_vertices: int) -> dict[str, Any]:
        """Return the options of the agent runtime that differ from their defaults, for ``num_vertices`` vertices."""
        names = ("on_failure", "threads", "retry", "timeout", "max_memory", "observer")
        given = {name: getattr(self, name) for name in names}
        changed = {name: value for name, value in given.items() if value != getattr(Agents, name)}
        return {"workers": self.workers_for(num_vertices), **changed}

    def workers_for(self, num_vertices: int) -> int:
        """Return the number of worker processes for a graph of ``num_vertices`` vertices."""
        if self.workers != "auto":
            return self.workers
        if self.compute is not None or self.threads:
            return 0
        has_limits = self.timeout is not None or self.max_memory is not None
        return available_threads() if num_vertices > _FEW_VERTICES or has_limits else 0

    def check_options(self, compute: Callable[..., Any]) -> None:
        """Raise unless the options of the agent runtime are valid for a function."""
        given: object = self.workers
        if isinstance(given, bool) or not (given == "auto" or isinstance(given, Integral)):
            error = ArgumentError if isinstance(given, str) else ArgumentTypeError
            raise error(f"workers must be 'auto' or a whole number of processes, 0 for this one, not {given!r:.80}")
        RunOptions(compute, **self.options(0))


def _nothing(ctx: Any) -> None:
    """Do nothing."""
