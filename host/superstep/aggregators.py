"""The declaration of an aggregator, for vertex programs and for agents, which each check what they can use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from gpu_pregel.errors import ArgumentTypeError
from gpu_pregel.host.arguments import check_flag

if TYPE_CHECKING:
    from gpu_pregel.kernels.programs.functions import VertexContext


@dataclass(frozen=True)
class Aggregator:
    """A reduction over contributions of vertices, which all vertices can read in the next superstep.

    A vertex program folds ``function`` over all vertices that ran ``apply``, from superstep 1 on, and needs
    ``function``. Agents contribute with ``ctx.aggregate(name, value)``; only they accept ``initial`` and
    ``persistent``.

    Parameters
    ----------
    combine : str, Combiner, TopK or callable
        Vertex programs: "min", "max", "sum", "or", "and" or a :class:`Combiner`. Agents: "sum", "min", "max", "count",
        "first", "last", "list", "and", "or", ``TopK(k)`` or a function of two values.
    function : callable, optional
        ``function(old, new, ctx)`` returns the contribution of a vertex. Compiled by Numba. Agents may pass ``initial``
        in this position.
    dtype : dtype, optional
        Type of the aggregate of a vertex program. Default: int64, float64 or bool, as the function returns.
    initial : data, optional
        Value of the aggregate before the first contribution.
    persistent : bool, default False
        Keep the aggregate between supersteps; otherwise each superstep starts from ``initial``.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> gp.Aggregator("sum", lambda old, new, ctx: abs(new - old)).combine
    'sum'
    >>> gp.agents.Aggregator("max", persistent=True).persistent
    True
    """

    combine: Any
    function: Callable[[Any, Any, VertexContext], Any] | Any = None
    dtype: Any = None
    _: KW_ONLY
    initial: Any = None
    persistent: bool = False

    def __post_init__(self) -> None:
        check_flag("Aggregator's persistent", self.persistent)
        if self.function is not None and not callable(self.function):
            if self.initial is not None:
                raise ArgumentTypeError(f"Aggregator's function must be a function, not {self.function!r}")
            object.__setattr__(self, "initial", self.function)
            object.__setattr__(self, "function", None)


class InternalAggregator(Aggregator):
    """An aggregator of a layer on top of the runtime of agents, which the trace does not show."""


class MasterAggregator(InternalAggregator):
    """An internal aggregator that only the ``master`` function reads and writes; partitions do not get it."""
