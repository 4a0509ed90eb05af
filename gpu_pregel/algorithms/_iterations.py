"""What the algorithms of repeated sums over neighbours share: one iteration on each device, and their result."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gpu_pregel.algorithms._arguments import check_weights_nonnegative
from gpu_pregel.algorithms._degree_order import order_by_out_degree
from gpu_pregel.algorithms._driver import AlgorithmRun
from gpu_pregel.errors import GraphError
from gpu_pregel.host.arguments import check_flag
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.graphs.results import VertexResult
from gpu_pregel.host.programs.program import VertexProgram
from gpu_pregel.kernels.algorithms.blocks_cpu import block_count

Array = np.ndarray[Any, Any]

_CHUNK = 1 << 14
_LARGEST_TOTAL = 1e150
"""Sums of squares of neighbours' sums stay in the range of float64 up to this total weight."""


@dataclass(frozen=True, eq=False, repr=False)
class IteratedScores(VertexResult):
    """Scores that iterations compute; the base of the results of PageRank and similar algorithms.

    Attributes
    ----------
    scores : float64[n] or float32[n]
        The score of each vertex.
    iterations : int
        Number of iterations.
    error : float
        The total change of the scores in the last iteration (L1 norm).
    converged : bool
        Whether ``error`` fell below ``tolerance``.
    tolerance, weighted : float, bool
        The arguments; ``weighted`` is False for a graph without weights.
    """

    scores: Any
    iterations: int
    error: float
    converged: bool
    tolerance: float
    weighted: bool

    value_name: ClassVar[str] = "score"

    @property
    def _device_values(self) -> Any:
        return self.scores

    def summary(self) -> dict[str, Any]:
        """Return the number of iterations, whether they converged, and the vertex with the highest score."""
        highest = self._vertex_ids().tolist()[self._values.argmax()] if len(self) else None
        return {"iterations": self.iterations, "error": self.error, "converged": self.converged, "highest": highest}

    def describe(self) -> str:
        """Return a one-line summary."""
        state = "converged" if self.converged else "not converged"
        text = f"{len(self):,} vertices, {state} after {self.iterations} iterations (error {self.error:.2g})"
        if len(self) == 0:
            return text
        return f"{text}, the highest {self.value_name} {self._values.max():.3g} at {self.summary()['highest']!r}"

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"<{name}: {len(self):,} vertices, {self.iterations} iterations, converged: {self.converged}>"


def weights_in_use(graph: Graph, weighted: Any, name: str) -> bool:
    """Return whether the algorithm ``name`` uses weights, or raise unless they are at least 0 and not too large."""
    if not check_flag("weighted", weighted) or graph.weights is None:
        return False
    check_weights_nonnegative(graph, name)
    weights = graph.weights

    def add() -> float:
        with np.errstate(over="ignore"):
            return float(weights.sum(dtype=np.float64))

    total = graph._fact("total weight", add)
    if not total <= _LARGEST_TOTAL:
        raise GraphError(
            f"{name} needs weights whose sum is at most {_LARGEST_TOTAL:g}, and those of this graph sum to "
            f"{total:.2g}: drop infinite weights and divide the others by a large number, or pass weighted=False"
        )
    return True


_SUMS, _WEIGHTED_SUMS = (
    VertexProgram(
        value=np.float64,
        init=lambda ctx: 0.0,  # noqa: ARG005
        message=message,
        combine="sum",
        apply=lambda value, incoming, ctx: incoming,  # noqa: ARG005
        active="always",
    )
    for message in (lambda value, ctx: value, lambda value, weight, ctx: value * weight)  # noqa: ARG005
)
"""One iteration: the sum of the in-neighbours' values."""


class NeighborSums:
    """Sums over the in-neighbours of every vertex of a graph, and norms; vectors are float64[n] in host memory.

    With ``reorder`` vertices may be renumbered: ``arrange`` and ``restore`` translate vectors.
    """

    def __init__(self, run: AlgorithmRun, graph: Graph, *, weighted: bool, reorder: bool = False) -> None:
        self._run, self._graph, self._weighted = run, graph, weighted

    def arrange(self, vector: Array) -> Array:
        """Return a vector by vertex number in the order of this object."""
        return vector

    def restore(self, vector: Array) -> Array:
        """Return a vector of this object by vertex number."""
        return vector

    def advance(
        self, values: Array, shift: Array, *, own: float = 0.0, scale: float = 1.0
    ) -> tuple[Array, float, float]:
        """Return ``scale * (sums + own * values) + shift``, its L1 norm and its L2 norm."""
        raise NotImplementedError

    def normalise(self, values: Array, divisor: float, before: Array) -> float:
        """Divide values by a number, in place, and return their total distance from ``before`` (L1)."""
        raise NotImplementedError


class ProgramSums(NeighborSums):
    """Sums on the other devices, by a vertex program."""

    def advance(
        self, values: Array, shift: Array, *, own: float = 0.0, scale: float = 1.0
    ) -> tuple[Array, float, float]:
        """See :meth:`NeighborSums.advance`."""
        program = _WEIGHTED_SUMS if self._weighted else _SUMS
        found = self._run.program(
            program, graph=self._graph, phase="sum", one_row=True, initial=values, max_supersteps=2
        )
        result = scale * (found.to_numpy() + own * values) + shift
        return result, float(np.abs(result).sum()), math.sqrt(float((result * result).sum()))

    def normalise(self, values: Array, divisor: float, before: Array) -> float:
        """See :meth:`NeighborSums.normalise`."""
        values /= divisor
        return float(np.abs(values - before).sum())


class KernelSums(NeighborSums):
    """Sums on the CPU, by kernels, in the order of degrees where that pays."""

    def __init__(self, run: AlgorithmRun, graph: Graph, *, weighted: bool, reorder: bool = False) -> None:
        super().__init__(run, graph, weighted=weighted)
        self._kernels: Any = run.device.kernels("neighbor_sums")
        self._order: Array | None = None
        self._csc = self._arranged_edges(reorder)
        self._blocks = block_count(graph.num_vertices, graph.num_stored_edges)

    def _arranged_edges(self, reorder: bool) -> tuple[Array, Array, Array]:
        indptr, indices, weights = self._graph.csc
        if self._weighted and weights is not None:
            return indptr, indices, np.asarray(weights, np.float64)
        if reorder and (ordered := order_by_out_degree(self._graph, self._run.phases, self._run.device)):
            self._order, indptr, indices = ordered
        return indptr, indices, np.empty(0)

    def arrange(self, vector: Array) -> Array:
        """See :meth:`NeighborSums.arrange`."""
        return vector if self._order is None else vector[self._order]

    def restore(self, vector: Array) -> Array:
        """See :meth:`NeighborSums.restore`."""
        if self._order is None:
            return vector
        restored: Array = np.empty_like(vector)
        restored[self._order] = vector
        return restored

    def advance(
        self, values: Array, shift: Array, *, own: float = 0.0, scale: float = 1.0
    ) -> tuple[Array, float, float]:
        """See :meth:`NeighborSums.advance`."""
        result = np.empty_like(values)
        totals, squares = np.empty(self._blocks), np.empty(self._blocks)
        arguments = (self._blocks, *self._csc, values, own, scale, shift, result, totals, squares)
        self._run.phases.run("sum", self._kernels.advance, self._blocks, *arguments, chunk=1)
        return result, float(totals.sum()), math.sqrt(float(squares.sum()))

    def normalise(self, values: Array, divisor: float, before: Array) -> float:
        """See :meth:`NeighborSums.normalise`."""
        changes = np.zeros(max(1, -(-len(values) // _CHUNK)))
        arguments = (divisor, before, values, changes)
        self._run.phases.run("normalise", self._kernels.normalise, len(values), *arguments, chunk=_CHUNK)
        return float(changes.sum())
