"""``sample_rows``: random edges of the rows of vertices.

Samples without replacement are drawn by algorithm F2 of Jon Bentley, Bob Floyd: A sample of brilliance, Communications
of the ACM 30(9), 1987; weighted ones by binary search among sums of weights. These are integers, so that they are the
same however many threads add them. On a GPU, a thread draws one edge, whose row it finds by binary search.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, GraphError
from gpu_pregel.host.arguments import check_flag, check_integer
from gpu_pregel.host.graphs.csr import CSR
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.traverse import arrays
from gpu_pregel.host.traverse.frontier import Frontier
from gpu_pregel.host.traverse.items import items
from gpu_pregel.host.traverse.operators import process_vertices, reduce_rows
from gpu_pregel.kernels.library.philox import key_of, uniform

_MOST = (1 << 31) - 1
_EDGE_BYTES = 24
"""Memory of a sampled edge: its position, its draw, and the neighbour."""
_SUM_BYTES = 16
"""Memory of a sum of weights, and of the weight as an integer."""
_LARGEST_SUM = 2.0**62
_TO_SMALL, _TO_LARGE = 2.0**-600, 2.0**540
"""Weights are scaled in two steps, as a factor of both may not be a float64."""
_LOWEST_SCALE = 2.0**-540
_POWERS = tuple(2.0 ** (1 << k) for k in range(9, -1, -1))


class RowSamples(NamedTuple):
    """Sampled edges of the rows of vertices, in device memory.

    Attributes
    ----------
    offsets : int64[r + 1]
        The edges of row i are those from ``offsets[i]`` to ``offsets[i + 1]`` - 1.
    edges : int64[e]
        The positions of the edges in ``graph.indices`` and ``graph.weights``, or in those of ``graph.csc``; -1 where a
        weighted row has no other edge with a weight above 0.
    neighbors : int64[e]
        The numbers of their other ends; -1 where there is no edge.
    """

    offsets: Any
    edges: Any
    neighbors: Any


def sample_rows(
    frontier: Frontier,
    k: int,
    *,
    seed: int = 0,
    vertices: Any = None,
    replace: bool = False,
    weighted: bool = False,
    by_position: bool = False,
    transpose: bool = False,
) -> RowSamples:
    """Draw ``k`` random edges of the row of every vertex of a frontier.

    Parameters
    ----------
    frontier : Frontier
    k : int
        The number of edges of each row; a row with fewer has all of them unless ``replace``. -1: all edges, in the
        order of the row.
    seed : int, default 0
    vertices : array of int, optional
        The numbers of the vertices, which may repeat, in the memory of the frontier's device. Default: those of the
        frontier, ascending.
    replace : bool, default False
        Whether an edge may be drawn several times; rows with edges then always have ``k``.
    weighted : bool, default False
        Draw edges in proportion to the graph's weights: without replacement, each among those not drawn before.
    by_position : bool, default False
        Whether random numbers depend on the seed and the position among the vertices, so that a vertex that is given
        several times has several samples. Otherwise they depend on the seed and the vertex, so that the sample of a
        vertex is the same in every frontier.
    transpose : bool, default False
        Draw in-edges instead of out-edges.

    Returns
    -------
    RowSamples
        With ``offsets``, ``edges`` and ``neighbors``, which are the same in every run and on every device. The edges of
        a row are in the order in which they were drawn.

    Raises
    ------
    ArgumentError
        ``k`` is below -1, or -1 with ``replace`` or ``weighted``; the vertices are on another device.
    GraphError
        A vertex is not in the graph; or ``weighted``, and the graph has no weights, or one is negative or not finite.
    ArgumentTypeError
        An argument has the wrong type.
    NotEnoughMemoryError
        The edges do not fit.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> frontier = gp.Frontier(gp.Graph.from_edgelist([0, 0, 0, 3], [1, 2, 3, 4]), [0, 3], device="cpu")
    >>> found = gp.sample_rows(frontier, 2, seed=1)
    >>> found.offsets.tolist(), found.edges.tolist(), found.neighbors.tolist()
    ([0, 2, 4], [0, 2, 5, 6], [1, 3, 0, 4])
    """
    if not isinstance(frontier, Frontier):
        raise ArgumentTypeError(f"frontier must be a gp.Frontier, not {type(frontier).__name__}")
    k, key = check_integer("k", k, -1, _MOST), key_of(check_integer("seed", seed, 0))
    flags = {"replace": replace, "weighted": weighted, "by_position": by_position, "transpose": transpose}
    replace, weighted, by_position, transpose = (check_flag(name, flag) for name, flag in flags.items())
    if k < 0 and (replace or weighted):
        raise ArgumentError("k is -1, for all edges, which are not drawn: leave out replace and weighted")
    graph, device, transpose = frontier.graph, frontier.device, transpose and frontier.graph.is_directed
    started = frontier._run.start()
    rows = _vertices(frontier, vertices)
    indptr, indices = _rows_on(graph, device, transpose)
    sums = weight_sums(frontier, transpose=transpose) if weighted else device.empty(0, np.int64)
    each = items(rows.size, device)
    counts = each.full(0, np.int64)
    if process_vertices(_count_row, each, [rows, indptr, k, replace, counts]):
        numbers, n = device.download(rows), graph.num_vertices
        wrong = numbers[(numbers < 0) | (numbers >= n)][0]
        raise GraphError(f"vertices: no vertex {wrong:,} in a graph of {n:,} vertices: use numbers below {n:,}")
    offsets = arrays.prefix_sums(counts)
    total = int(device.download(offsets[rows.size :])[0])
    device.require(_EDGE_BYTES * total, f"sampling {total:,} edges")
    edges, neighbors = device.empty(total, np.int64), device.empty(total, np.int64)
    slots = items(total, device)
    given = [rows, offsets, indptr, sums]
    options = [replace, by_position, key]
    if weighted and not replace:
        process_vertices(
            _draw_different, each, [*given, by_position, key, device.empty(total, np.int64), edges], returns=None
        )
    elif device.is_host:
        process_vertices(_draw_row, each, [*given, *options, edges], returns=None)
    elif weighted or replace or k < 0:
        process_vertices(_draw_slot, slots, [*given, *options, edges], returns=None)
    else:
        process_vertices(_draw_slot, slots, [*given, *options, neighbors], returns=None)
        process_vertices(_resolve_slot, slots, [*given[:3], neighbors, edges], returns=None)
    process_vertices(_look_up, slots, [edges, indices, neighbors], returns=None)
    frontier._run.record("sample rows", "rows", frontier._active, started)
    return RowSamples(offsets, edges, neighbors)


def _vertices(frontier: Frontier, vertices: Any) -> Any:
    """Return the numbers of the vertices whose rows are sampled, in device memory."""
    if vertices is None:
        return frontier._run.operators.listed(frontier._active)
    device, found = frontier.device, arrays.check_array("vertices", vertices, "iu")
    if (found is None) != device.is_host or (found is not None and found.gpu != device.gpu):
        where = "in host memory" if found is None else f"on device {found.name!r}"
        raise ArgumentError(f"vertices is {where}, but the frontier is on device {device.name!r}: use frontier.upload")
    return vertices


def _rows_on(graph: Graph, device: Any, transpose: bool) -> tuple[Any, Any]:
    """Return ``indptr`` and ``indices`` of the out-edges or in-edges on a device."""
    csr = graph.csc if transpose else graph._csr
    return csr[:2] if device.is_host else graph._on(device).csr(csr, 0)


def weight_sums(frontier: Frontier, *, transpose: bool = False) -> Any:
    """Return the sum of the weights in each row up to each edge, as integers, int64[m], on a frontier's device.

    The weights of a row are scaled by a power of two, so that its sum is below 2^62, and rounded down.
    """
    graph, device = frontier.graph, frontier.device
    _check_weights(graph)

    def derive() -> Any:
        everyone = frontier.everything()
        indptr, _ = _rows_on(graph, device, transpose)
        csr: CSR = everyone.csc() if transpose else everyone.csr()
        maxima, scales = everyone.full(0.0, np.float64), everyone.full(0.0, np.float64)
        arrays_of_rows = [indptr, maxima, scales]
        way: Any = {"finish": _find_scale, "transpose": transpose, "returns": None}
        reduce_rows(_weight, "max", everyone, arrays_of_rows, **way)
        m = graph.num_stored_edges
        device.require(_SUM_BYTES * m, f"sums of {m:,} weights")
        sums = device.empty(m, np.int64)
        if device.is_host:
            process_vertices(_sum_row, everyone, [indptr, csr.weights, maxima, scales, sums], returns=None)
            return sums
        edges = items(m, device)
        process_vertices(_scale_edge, edges, [indptr, csr.weights, maxima, scales, sums], returns=None)
        process_vertices(_sum_edge, edges, [indptr, arrays.prefix_sums(sums), sums], returns=None)
        return sums

    return graph._fact(f"sums of weights on {device.name}, {transpose}", derive)


def _check_weights(graph: Graph) -> None:
    """Raise ``GraphError`` unless the graph has weights, all finite and at least 0."""
    weights = graph.weights
    if weights is None:
        raise GraphError("weighted=True, but the graph has no weights")
    if not graph._fact("weights finite", lambda: bool((np.isfinite(weights) & (weights >= 0)).all())):
        e = int((~(np.isfinite(weights) & (weights >= 0))).argmax())
        u = int(np.searchsorted(graph.indptr, e, "right")) - 1
        source, target = graph.to_ids(np.array([u, graph.indices[e]])).tolist()
        raise GraphError(
            f"weighted=True needs finite weights of at least 0, and the edge from {source!r} to {target!r} has "
            f"{weights[e]}: shift or drop such weights"
        )


def _weight(v: Any, u: Any, weight: Any, indptr: Any, maxima: Any, scales: Any) -> Any:  # noqa: ARG001
    return float(weight)


def _find_scale(v: Any, largest: Any, indptr: Any, maxima: Any, scales: Any) -> None:
    """Find the largest power of two by which weights are multiplied so that their sum is small enough."""
    if largest <= 0.0:
        return
    limit = _LARGEST_SUM
    degree = np.int64(indptr[v + 1]) - np.int64(indptr[v])
    while degree > 0:
        limit *= 0.5
        degree //= 2
    scaled, scale = largest * _first_factor(largest), _LOWEST_SCALE
    for power in _POWERS:
        while scaled * (scale * power) <= limit:
            scale *= power
    maxima[v], scales[v] = largest, scale


def _first_factor(largest: Any) -> Any:
    return _TO_SMALL if largest > 1.0 else _TO_LARGE


def _scaled(weight: Any, largest: Any, scale: Any) -> Any:
    """Return a weight as an integer."""
    return int(float(weight) * _first_factor(largest) * scale)


def _sum_row(v: Any, indptr: Any, weights: Any, maxima: Any, scales: Any, sums: Any) -> None:
    total = 0
    for e in range(np.int64(indptr[v]), np.int64(indptr[v + 1])):
        total += _scaled(weights[e], maxima[v], scales[v])
        sums[e] = total


def _scale_edge(e: Any, indptr: Any, weights: Any, maxima: Any, scales: Any, amounts: Any) -> None:
    v = row_of(indptr, e)
    amounts[e] = _scaled(weights[e], maxima[v], scales[v])


def _sum_edge(e: Any, indptr: Any, before: Any, sums: Any) -> None:
    # The sums of all edges may exceed 64 bits, but not the differences within a row.
    sums[e] = before[e + 1] - before[np.int64(indptr[row_of(indptr, e)])]


def row_of(offsets: Any, e: Any) -> Any:
    """Return the row of element e: the last one that begins at it or before."""
    low, high = np.int64(0), np.int64(len(offsets))
    while low < high:
        middle = (low + high) // 2
        if np.int64(offsets[middle]) > e:
            high = middle
        else:
            low = middle + 1
    return low - 1


def _count_row(i: Any, vertices: Any, indptr: Any, k: Any, replace: Any, counts: Any) -> int:
    """Count the edges to draw of a row; return whether there is no such vertex."""
    v = np.int64(vertices[i])
    if v < 0 or v >= len(indptr) - 1:
        return 1
    degree = np.int64(indptr[v + 1]) - np.int64(indptr[v])
    counts[i] = degree if k < 0 or (degree < k and (not replace or degree == 0)) else k
    return 0


def first_above(value: Any, sums: Any, begin: Any, end: Any) -> Any:
    """Return the first position from ``begin`` to ``end`` at which ``sums`` exceeds the value."""
    while begin < end:
        middle = (begin + end) // 2
        if sums[middle] > value:
            end = middle
        else:
            begin = middle + 1
    return begin


def draw(begin: Any, end: Any, sums: Any, number: Any) -> Any:
    """Return the edge of a row for a random number from 0 to 1, or -1 if it is empty or has no positive weight.

    ``sums`` are those of :func:`weight_sums`, or empty, so that all edges are alike.
    """
    if begin == end:
        return -1
    if len(sums) == 0:
        return begin + int(number * (end - begin))
    total = sums[end - 1]
    if total <= 0:
        return -1
    return first_above(min(int(number * total), total - 1), sums, begin, end)


def _draw_row(
    i: Any,
    vertices: Any,
    offsets: Any,
    indptr: Any,
    sums: Any,
    replace: Any,
    by_position: Any,
    key: Any,
    edges: Any,
) -> None:
    """Draw the edges of a row one after the other."""
    v, first, count = np.int64(vertices[i]), offsets[i], offsets[i + 1] - offsets[i]
    begin, end = np.int64(indptr[v]), np.int64(indptr[v + 1])
    stream = i if by_position else v
    for d in range(count):
        if replace:
            edges[first + d] = draw(begin, end, sums, uniform(key, stream, d))
            continue
        # Choose among the edges up to the last one allowed; what has been chosen already stands for the last one.
        last = end - count + d
        chosen = last
        if count < end - begin:
            chosen = begin + int(uniform(key, stream, d) * (last - begin + 1))
            for other in range(first, first + d):
                if edges[other] == chosen:
                    chosen = last
        edges[first + d] = chosen


def _draw_slot(
    s: Any,
    vertices: Any,
    offsets: Any,
    indptr: Any,
    sums: Any,
    replace: Any,
    by_position: Any,
    key: Any,
    edges: Any,
) -> None:
    """Draw one edge; without replacement, it may be one that another draw gives too."""
    i = row_of(offsets, s)
    v, d, count = np.int64(vertices[i]), s - offsets[i], offsets[i + 1] - offsets[i]
    begin, end = np.int64(indptr[v]), np.int64(indptr[v + 1])
    stream = i if by_position else v
    if replace:
        edges[s] = draw(begin, end, sums, uniform(key, stream, d))
    elif count == end - begin:
        edges[s] = begin + d
    else:
        edges[s] = begin + int(uniform(key, stream, d) * (end - count + d - begin + 1))


def _resolve_slot(s: Any, vertices: Any, offsets: Any, indptr: Any, draws: Any, edges: Any) -> None:
    """Choose the edge that was drawn, or the last one allowed if an earlier draw of the row has chosen it."""
    i = row_of(offsets, s)
    v, first, count = np.int64(vertices[i]), offsets[i], offsets[i + 1] - offsets[i]
    begin, end = np.int64(indptr[v]), np.int64(indptr[v + 1])
    is_taken = count < end - begin and _is_taken(draws, first, end - count, s - first)
    edges[s] = end - count + s - first if is_taken else draws[s]


def _is_taken(draws: Any, first: Any, lasts: Any, d: Any) -> bool:
    """Whether an earlier draw than d has chosen the edge of draw d; that of draw 0 may fall back on edge ``lasts``.

    It is taken if an earlier draw gave it, or fell back on it, which depends on whether its own edge was taken.
    """
    while True:
        drawn = draws[first + d]
        for other in range(first, first + d):
            if draws[other] == drawn:
                return True
        earlier = drawn - lasts
        if earlier < 0 or earlier >= d:
            return False
        d = earlier


def _draw_different(
    i: Any,
    vertices: Any,
    offsets: Any,
    indptr: Any,
    sums: Any,
    by_position: Any,
    key: Any,
    ordered: Any,
    edges: Any,
) -> None:
    """Draw edges by weight, each among those not drawn before; ``ordered`` keeps these in ascending order."""
    v, first, count = np.int64(vertices[i]), offsets[i], offsets[i + 1] - offsets[i]
    begin, end = np.int64(indptr[v]), np.int64(indptr[v + 1])
    stream = i if by_position else v
    left = sums[end - 1] if count > 0 else np.int64(0)
    for d in range(count):
        edges[first + d] = -1
        if left > 0:
            # Skip the weights of the edges drawn before.
            value, place = min(int(uniform(key, stream, d) * left), left - 1), first
            while place < first + d and value >= _sum_before(sums, begin, ordered[place]):
                value += sums[ordered[place]] - _sum_before(sums, begin, ordered[place])
                place += 1
            chosen = first_above(value, sums, begin, end)
            for other in range(first + d, place, -1):
                ordered[other] = ordered[other - 1]
            ordered[place] = edges[first + d] = chosen
            left -= sums[chosen] - _sum_before(sums, begin, chosen)


def _sum_before(sums: Any, begin: Any, e: Any) -> Any:
    """Return the sum of the weights of a row before edge e."""
    return sums[e - 1] if e > begin else np.int64(0)


def _look_up(s: Any, edges: Any, indices: Any, neighbors: Any) -> None:
    e = edges[s]
    neighbors[s] = np.int64(indices[e]) if e >= 0 else np.int64(-1)
