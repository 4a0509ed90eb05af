"""PageRank: the share of time that a random surfer spends at each vertex.

Lawrence Page, Sergey Brin, Rajeev Motwani, Terry Winograd: The PageRank Citation Ranking: Bringing Order to the Web,
Stanford, 1999. The score of dangling vertices, which have no out-edges, is distributed like the personalisation, as in
NetworkX and, without a personalisation, in LDBC Graphalytics.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from gpu_pregel.algorithms._arguments import check_open_interval
from gpu_pregel.algorithms._degree_order import order_by_out_degree
from gpu_pregel.algorithms._driver import AlgorithmRun, documented
from gpu_pregel.algorithms._iterations import IteratedScores, weights_in_use
from gpu_pregel.algorithms._vectors import distribution
from gpu_pregel.errors import ArgumentError, GraphError
from gpu_pregel.host.arguments import check_integer, check_number
from gpu_pregel.host.devices import DeviceName
from gpu_pregel.host.graphs.graph import Graph, GraphLike
from gpu_pregel.host.programs.program import VertexProgram
from gpu_pregel.host.programs.run import ProgramResult
from gpu_pregel.host.superstep.aggregators import Aggregator
from gpu_pregel.kernels.algorithms.blocks_cpu import block_count

Array = np.ndarray[Any, Any]

_CHUNK = 1 << 14


@dataclass(frozen=True, eq=False, repr=False)
class PageRanks(IteratedScores):
    """The PageRank of each vertex.

    Attributes
    ----------
    scores : float32[n] or float64[n]
        The scores, whose sum is 1.
    iterations : int
        Number of iterations.
    error : float
        The total change of the scores in the last iteration (L1 norm).
    converged : bool
        Whether ``error`` fell below ``tolerance``.
    tolerance, weighted, damping : float, bool, float
        The arguments; ``weighted`` is False for a graph without weights.
    personalization : float64[n] or None
        The argument by vertex number, scaled to the sum 1.
    """

    damping: float
    personalization: Array | None


class _Settings(NamedTuple):
    """The checked arguments of a call."""

    damping: float
    tolerance: float
    max_iterations: int
    weights: Array | None
    teleport: Array | None
    initial: Array | None
    dtype: Any


class _Found(NamedTuple):
    """What an implementation finds."""

    scores: Any
    iterations: int
    error: float


@documented
def pagerank(
    graph: GraphLike,
    *,
    damping: float = 0.85,
    tolerance: float = 1e-6,
    max_iterations: int = 100,
    personalization: Any = None,
    initial: Any = None,
    weighted: bool = True,
    dtype: Any = np.float64,
    device: DeviceName = "auto",
    threads: int | None = None,
    progress: bool = False,
) -> PageRanks:
    """Compute the PageRank of each vertex by power iteration, with the weights of edges, if any.

    Weights are used if the graph has them, unless ``weighted=False``.

    Parameters
    ----------
    {graph}
    damping : float, default 0.85
        The probability of following an edge, above 0 and below 1; otherwise the surfer jumps.
    tolerance : float, default 1e-6
        Stop when the scores change by less than this in total, their L1 norm, as in GAPBS. NetworkX multiplies its
        ``tol`` by the number of vertices. 0: run ``max_iterations`` iterations.
    max_iterations : int, default 100
        Stop after this many iterations, even if the scores have not converged, where NetworkX raises an error.
    personalization : mapping of ids to numbers, Series by ids, or array_like [n] by vertex number, optional
        The relative probabilities of jumping to the vertices; those left out have 0. Default: all are equal. Dangling
        vertices jump in the same way.
    initial : mapping of ids to numbers, Series by ids, or array_like [n] by vertex number, optional
        The first scores, which are scaled to the sum 1. Default: all are equal.
    weighted : bool, default True
        Follow edges in proportion to their weights, if the graph has weights.
    dtype : {np.float64, np.float32}
        The type of the scores and of all arithmetic but the total change.
    {options}

    Returns
    -------
    PageRanks
        With ``scores``, ``iterations``, ``error`` and ``converged``. Every run and number of threads gives the same
        scores to the bit; those of different devices differ in rounding.

    Raises
    ------
    ArgumentError
        ``damping`` is not between 0 and 1, ``personalization`` or ``initial`` sums to 0 or has a negative number, or
        another argument is out of range.
    GraphError
        A weight is negative, the weights sum to more than 1e150, or those of a vertex sum to a number outside the range
        of ``dtype``.
    {errors}

    Notes
    -----
    An iteration reads each edge once, O(n + m). Its error is at most ``damping`` times the one before, so that
    ``log(tolerance) / log(damping)`` iterations suffice, 86 with the defaults. On the CPU a copy of an unweighted graph
    with hubs, renumbered by degree, is made first; it takes as long as three iterations, which are twice as fast then.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> graph = gp.Graph.from_edgelist(["a", "b", "c"], ["b", "c", "b"], directed=True)
    >>> ranks = gp.pagerank(graph)
    >>> ranks.scores.round(3).tolist(), ranks.converged
    ([0.05, 0.486, 0.464], True)
    >>> gp.pagerank(graph, personalization={"a": 1}).scores.round(3).tolist()
    [0.15, 0.459, 0.391]
    """
    run = AlgorithmRun("pagerank", graph, device, threads, progress)
    graph = run.graph
    given = _Settings(
        check_open_interval("damping", damping, 0, 1),
        float(check_number("tolerance", tolerance, 0)),
        check_integer("max_iterations", max_iterations, 1),
        graph.weights if weights_in_use(graph, weighted, "pagerank") else None,
        None if personalization is None else distribution(graph, "personalization", personalization),
        None if initial is None else distribution(graph, "initial", initial),
        _check_dtype(dtype),
    )
    found: _Found = run.execute(given)
    return PageRanks(
        *(graph, run.stats(), run.trace()),
        scores=found.scores,
        iterations=found.iterations,
        error=found.error,
        converged=found.error < given.tolerance or graph.num_vertices == 0,
        damping=given.damping,
        tolerance=given.tolerance,
        weighted=given.weights is not None,
        personalization=given.teleport,
    )


def _check_dtype(dtype: Any) -> Any:
    """Return the scalar type of a dtype, or raise unless it is float32 or float64."""
    if isinstance(dtype, (type, str, np.dtype)):
        for known in (np.float32, np.float64):
            if dtype in (known, known.__name__, np.dtype(known)):
                return known
    raise ArgumentError(f"dtype must be np.float32 or np.float64, not {dtype!r:.80}")


def _divisors(graph: Graph, given: _Settings) -> Array:
    """Return the out-degree or the total out-weight of each vertex; 0 means that it is dangling."""
    if given.weights is None:
        return graph.out_degrees.astype(given.dtype)
    totals: Array = np.zeros(graph.num_vertices, given.dtype)
    rows = np.flatnonzero(graph.out_degrees)
    if len(rows):
        sums = np.add.reduceat(given.weights, graph.indptr[rows], dtype=np.float64)
        limits = np.finfo(given.dtype)
        wrong = (sums > limits.max) | ((sums > 0) & (sums < limits.tiny))
        if wrong.any():
            u = int(wrong.argmax())
            source = graph.to_ids(rows[u : u + 1]).tolist()[0]
            raise GraphError(
                f"pagerank with dtype {limits.dtype} needs out-edges whose weights sum to a number from "
                f"{limits.tiny:.2g} to {limits.max:.2g}, and those of the vertex {source!r} sum to {sums[u]:.2g}: "
                "scale the weights"
            )
        totals[rows] = sums
    return totals


def iterate_shares(run: AlgorithmRun, given: _Settings) -> _Found:
    """On the CPU, iterate over arrays of shares, in the order of degrees where that pays."""
    graph, phases, dtype = run.graph, run.phases, given.dtype
    n, kernels = graph.num_vertices, run.device.kernels("pagerank")
    none = np.empty(0, dtype)
    ordered = order_by_out_degree(graph, phases, run.device) if given.weights is None else None
    order, indptr, indices = ordered or (np.empty(0, np.uint32), *graph.csc[:2])
    is_symmetric = given.weights is None and not graph.is_directed
    divisors = none if is_symmetric else _divisors(graph, given)
    teleport = none if given.teleport is None else given.teleport.astype(dtype)
    if ordered is not None:
        divisors, teleport = (vector[order] if len(vector) else vector for vector in (divisors, teleport))
    weights = none if given.weights is None else np.asarray(graph.csc.weights, dtype)
    rows = (indptr, indices, weights, None if is_symmetric else divisors, teleport)

    blocks, chunks = block_count(n, graph.num_stored_edges), max(1, -(-n // _CHUNK))
    shares, following, changes = np.empty(n, dtype), np.empty(n, dtype), np.empty(blocks)
    dangling = np.zeros(max(blocks, chunks))
    scores = none if given.initial is None else given.initial.astype(dtype)
    phases.run("prepare", kernels.prepare, n, indptr, divisors, order, scores, shares, dangling, chunk=_CHUNK)
    unsent, dangling = float(dangling[:chunks].sum()), dangling[:blocks]
    iterations, error = 0, np.inf if n else 0.0
    while iterations < given.max_iterations and n and (iterations == 0 or error >= given.tolerance):
        jump = (1 - given.damping + given.damping * unsent) / (1 if len(teleport) else n)
        factors = (dtype(jump), dtype(given.damping))
        iterations += 1
        name = f"iteration {iterations}"
        phases.run(
            name, kernels.iterate, blocks, blocks, *rows, *factors, shares, following, changes, dangling, chunk=1
        )
        shares, following = following, shares
        error, unsent = float(changes.sum()), float(dangling.sum())
    phases.run("finish", kernels.finish, n, indptr, divisors, order, shares, following)
    return _Found(following, iterations, error)


def _apply(value: Any, incoming: Any, ctx: Any) -> Any:
    """One iteration at one vertex."""
    damping = ctx.parameters.damping
    dangling = ctx.parameters.dangling if ctx.superstep == 1 else ctx.aggregated.dangling
    score = (1 - damping + damping * dangling) * value.teleport + damping * incoming
    return score, value.divisor, value.teleport


def _share(value: Any, ctx: Any) -> Any:
    """What a vertex sends along each of its edges."""
    return value.score / value.divisor if value.divisor > 0 else 0.0


def _weighted_share(value: Any, weight: Any, ctx: Any) -> Any:
    """What a vertex sends along an edge."""
    return value.score / value.divisor * weight if value.divisor > 0 else 0.0


@cache
def _program(dtype: Any, weighted: bool) -> VertexProgram:
    """The vertex program; it starts from given values, so that ``init`` is not called."""
    return VertexProgram(
        value={"score": dtype, "divisor": dtype, "teleport": dtype},
        parameters={"damping": np.float64, "dangling": np.float64, "tolerance": np.float64},
        init=lambda ctx: (0.0, 0.0, 0.0),  # noqa: ARG005
        message=_weighted_share if weighted else _share,
        message_type=dtype,
        combine="sum",
        apply=_apply,
        active="always",
        aggregators={
            "dangling": Aggregator("sum", lambda old, new, ctx: new.score if new.divisor == 0 else 0.0, np.float64),  # noqa: ARG005
            "error": Aggregator("sum", lambda old, new, ctx: abs(new.score - old.score), np.float64),  # noqa: ARG005
        },
        halt=lambda aggregated, parameters: aggregated.error < parameters.tolerance,
    )


def _apply_equal(value: Any, incoming: Any, ctx: Any) -> Any:
    """One iteration at one vertex if all vertices are jumped to alike."""
    damping = ctx.parameters.damping
    dangling = ctx.parameters.dangling if ctx.superstep == 1 else ctx.aggregated.dangling
    return (1 - damping + damping * dangling) / ctx.num_vertices + damping * incoming


def _equal_share(value: Any, ctx: Any) -> Any:
    """What a vertex sends along each of its edges, which have no weights."""
    return value / ctx.out_degree if ctx.out_degree > 0 else 0.0


@cache
def _equal_program(dtype: Any) -> VertexProgram:
    """The vertex program without weights, personalisation and first scores: the device has all that it needs."""
    return VertexProgram(
        value=dtype,
        parameters={"damping": np.float64, "dangling": np.float64, "tolerance": np.float64},
        init=lambda ctx: 1 / ctx.num_vertices,
        message=_equal_share,
        combine="sum",
        apply=_apply_equal,
        active="always",
        aggregators={
            "dangling": Aggregator("sum", lambda old, new, ctx: new if ctx.out_degree == 0 else 0.0, np.float64),  # noqa: ARG005
            "error": Aggregator("sum", lambda old, new, ctx: abs(new - old), np.float64),  # noqa: ARG005
        },
        halt=lambda aggregated, parameters: aggregated.error < parameters.tolerance,
    )


def iterate_by_program(run: AlgorithmRun, given: _Settings) -> _Found:
    """On the other devices, run a vertex program, one superstep for each iteration."""
    graph = run.graph
    if given.weights is None and given.teleport is None and given.initial is None:
        dangling = graph._fact("dangling vertices", lambda: int(np.count_nonzero(graph.out_degrees == 0)))
        found = run.program(
            _equal_program(given.dtype),
            parameters={
                "damping": given.damping,
                "dangling": dangling / max(graph.num_vertices, 1),
                "tolerance": given.tolerance,
            },
            max_supersteps=given.max_iterations + 1,
        )
        return _found(found.values, found)
    n = graph.num_vertices
    divisors, equal = _divisors(graph, given), np.full(n, 1 / max(n, 1))
    scores = (equal if given.initial is None else given.initial).astype(given.dtype)
    teleport = equal if given.teleport is None else given.teleport
    found = run.program(
        _program(given.dtype, given.weights is not None),
        initial={"score": scores, "divisor": divisors, "teleport": teleport.astype(given.dtype)},
        parameters={
            "damping": given.damping,
            "dangling": float(scores[divisors == 0].sum(dtype=np.float64)),
            "tolerance": given.tolerance,
        },
        max_supersteps=given.max_iterations + 1,
    )
    return _found(found.values.score, found)


def _found(scores: Any, found: ProgramResult) -> _Found:
    return _Found(scores, found.supersteps - 1, float(found.aggregated.error))
