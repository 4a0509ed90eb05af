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
from gpu_pregel.host.graphs.edge_arrays import to_host
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.graphs.results import VertexResult
from gpu_pregel.host.traverse.operators import process_vertices, reduce_rows
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


class NeighborSums:
    """Sums over the in-neighbours of every vertex of a graph, and norms; vectors are float64[n].

    Vectors are in the memory of the device and, with ``reorder``, perhaps in another order: ``arrange`` and ``restore``
    translate them.
    """

    def __init__(self, run: AlgorithmRun, graph: Graph, *, weighted: bool, reorder: bool = False) -> None:
        self._run, self._graph, self._weighted = run, graph, weighted

    def full(self, value: float) -> Any:
        """Return a vector of equal numbers."""
        return np.full(self._graph.num_vertices, value)

    def arrange(self, vector: Array) -> Any:
        """Return a vector by vertex number, in host memory, as one of this object."""
        return vector

    def restore(self, vector: Any) -> Any:
        """Return a vector of this object by vertex number, in the memory of the device."""
        return vector

    def scaled(self, values: Any, factor: float) -> Any:
        """Return ``factor * values``."""
        return values * factor

    def advance(
        self, values: Any, shift: Any, *, own: float = 0.0, scale: float = 1.0, order: int = 2
    ) -> tuple[Any, float]:
        """Return ``scale * (sums + own * values) + shift``, of numbers that are at least 0, and its L1 or L2 norm."""
        raise NotImplementedError

    def advance_on_host(
        self, values: Array, shift: Array, *, own: float = 0.0, scale: float = 1.0
    ) -> tuple[Array, float]:
        """Return what ``advance`` does, of vectors by vertex number in host memory."""
        found, norm = self.advance(self.arrange(values), self.arrange(shift), own=own, scale=scale)
        return to_host(self.restore(found)), norm

    def normalise(self, values: Any, divisor: float, before: Any) -> float:
        """Divide values by a number, in place, and return their total distance from ``before`` (L1)."""
        raise NotImplementedError


def _value(v: Any, u: Any, weight: Any, values: Any, *others: Any) -> Any:
    return values[u]


def _weighted_value(v: Any, u: Any, weight: Any, values: Any, *others: Any) -> Any:
    return values[u] * weight


def _sum(v: Any, total: Any, values: Any, shift: Any, result: Any, own: Any, scale: Any) -> Any:
    result[v] = scale * (total + own * values[v]) + shift[v]
    return abs(result[v])


def _sum_of_squares(v: Any, total: Any, values: Any, shift: Any, result: Any, own: Any, scale: Any) -> Any:
    result[v] = scale * (total + own * values[v]) + shift[v]
    return result[v] * result[v]


def _normalise(v: Any, values: Any, divisor: Any, before: Any) -> Any:
    change = values[v] / divisor - before[v]
    values[v] /= divisor
    return abs(change)


def _scale(v: Any, values: Any, factor: Any, result: Any) -> None:
    result[v] = values[v] * factor


class OperatorSums(NeighborSums):
    """On the other devices, sums by operators; no vector leaves the device."""

    def __init__(self, run: AlgorithmRun, graph: Graph, *, weighted: bool, reorder: bool = False) -> None:
        super().__init__(run, graph, weighted=weighted)
        self._everything = run.frontier(graph=graph)

    def full(self, value: float) -> Any:
        """See :meth:`NeighborSums.full`."""
        return self._everything.full(value, np.float64)

    def arrange(self, vector: Array) -> Any:
        """See :meth:`NeighborSums.arrange`."""
        return self._everything.upload(vector)

    def scaled(self, values: Any, factor: float) -> Any:
        """See :meth:`NeighborSums.scaled`."""
        result = self.full(0.0)
        process_vertices(_scale, self._everything, [values, factor, result], returns=None)
        return result

    def advance(
        self, values: Any, shift: Any, *, own: float = 0.0, scale: float = 1.0, order: int = 2
    ) -> tuple[Any, float]:
        """See :meth:`NeighborSums.advance`."""
        result = self.full(0.0)
        message, finish = _weighted_value if self._weighted else _value, _sum if order == 1 else _sum_of_squares
        arrays = [values, shift, result, own, scale]
        total = float(
            reduce_rows(message, "sum", self._everything, arrays, finish=finish, transpose=True, returns="sum")
        )
        return result, total if order == 1 else math.sqrt(total)

    def normalise(self, values: Any, divisor: float, before: Any) -> float:
        """See :meth:`NeighborSums.normalise`."""
        return float(process_vertices(_normalise, self._everything, [values, divisor, before]))


class KernelSums(NeighborSums):
    """On the CPU, sums, by kernels, in the order of degrees where that pays."""

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
        self, values: Any, shift: Any, *, own: float = 0.0, scale: float = 1.0, order: int = 2
    ) -> tuple[Any, float]:
        """See :meth:`NeighborSums.advance`."""
        result = np.empty_like(values)
        totals, squares = np.empty(self._blocks), np.empty(self._blocks)
        arguments = (self._blocks, *self._csc, values, own, scale, shift, result, totals, squares)
        self._run.phases.run("sum", self._kernels.advance, self._blocks, *arguments, chunk=1)
        return result, float(totals.sum()) if order == 1 else math.sqrt(float(squares.sum()))

    def normalise(self, values: Any, divisor: float, before: Any) -> float:
        """See :meth:`NeighborSums.normalise`."""
        changes = np.zeros(max(1, -(-len(values) // _CHUNK)))
        arguments = (divisor, before, values, changes)
        self._run.phases.run("normalise", self._kernels.normalise, len(values), *arguments, chunk=_CHUNK)
        return float(changes.sum())
