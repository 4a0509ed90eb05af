"""Breadth-first searches from many sources at once, one bit per source, and what they find of each vertex.

Manuel Then et al.: The More the Merrier: Efficient Multi-Source Graph Traversal, PVLDB 8(4), 2014.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from gpu_pregel.algorithms._driver import AlgorithmRun
from gpu_pregel.algorithms.bfs import bfs
from gpu_pregel.algorithms.connected_components import connected_components
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.superstep.advance import Advance
from gpu_pregel.host.traverse.frontier import Frontier
from gpu_pregel.host.traverse.items import items
from gpu_pregel.host.traverse.operators import process_edges, process_vertices
from gpu_pregel.kernels.library import atomics

Array = np.ndarray[Any, Any]

REACHED, DISTANCES, INVERSES, FARTHEST = 0, 1, 2, 3
"""Figures: the number of vertices, the sum of their distances, the sum of the inverses, the largest distance."""
_FIGURES = 4
_WORD_BITS = 64
_BYTES_PER_VERTEX = 3 * 64 + 2 * 4 + 4 * 8


class Searches:
    """Searches of a run on its graph, or on another one."""

    def __init__(self, run: AlgorithmRun, graph: Graph | None = None) -> None:
        self._run, self.target = run, run.device
        self.graph = run.graph if graph is None else graph

    @cached_property
    def everyone(self) -> Frontier:
        """All vertices."""
        return self._run.frontier(graph=self.graph)

    def run(
        self, sources: Array | None = None, *, transpose: bool = False, by_source: bool = False, counted: bool = True
    ) -> Array:
        """Search from ``sources``, or from all vertices, along out-edges, or along in-edges with ``transpose``.

        Returns
        -------
        int64[n, 4] or int64[k, 4]
            The figures of each vertex over the sources other than itself that reach it, or ``by_source`` those of each
            source over the vertices that it reaches, of which only the largest distance unless ``counted``. Inverses of
            distances are in units of ``1 / inverse_unit(k)`` for k sources, ``1 / inverse_unit(n)`` ``by_source``.
        """
        raise NotImplementedError

    def hops(self, sources: Array, *, transpose: bool = False, limit: int | None = None) -> Array:
        """Return the number of edges from the nearest source to each vertex, -1 where there are more than ``limit``."""
        raise NotImplementedError

    def components(self) -> Array:
        """Return the smallest vertex of each vertex's (weak) component, int64[n]."""
        labels: Array = self._run.call(connected_components, self.graph).to_numpy()
        return labels.astype(np.int64)


class KernelSearches(Searches):
    """Searches on the CPU, by kernels, of 512 sources at once."""

    def run(
        self, sources: Array | None = None, *, transpose: bool = False, by_source: bool = False, counted: bool = True
    ) -> Array:
        """See :meth:`Searches.run`."""
        graph, target, phases = self.graph, self.target, self._run.phases
        n = graph.num_vertices
        kernels = target.kernels("searches")
        out, back = (graph.csc, graph.to_csr()) if transpose else (graph.to_csr(), graph.csc)
        order = np.arange(n) if sources is None else sources
        count = len(order)
        batches = -(-count // kernels.BATCH)
        threads = min(batches, target.threads or 1)
        target.require(threads * n * _BYTES_PER_VERTEX, f"searching from {count:,} sources on {threads} threads")
        if batches > 1:
            ranks = np.empty(n, np.uint32)
            phases.run("cluster", kernels.cluster, 1, out.indptr, out.indices, ranks)
            places = np.argsort(ranks[order], kind="stable")
            order = order[places]
        of_targets = np.zeros(0 if by_source else n * _FIGURES, np.int64)
        of_sources = np.zeros((count if by_source else 0, _FIGURES), np.int64)
        arrays = (out.indptr, out.indices, back.indptr, back.indices, order.astype(np.uint32))
        figures = (inverse_unit(n if by_source else count), counted, of_targets, of_sources)
        phases.run("search", kernels.search, batches, *arrays, *figures, chunk=1)
        if not by_source:
            return of_targets.reshape(n, _FIGURES)
        if batches > 1:
            of_sources[places] = of_sources.copy()
        return of_sources

    def hops(self, sources: Array, *, transpose: bool = False, limit: int | None = None) -> Array:
        """See :meth:`Searches.hops`."""
        graph = self.graph.transpose() if transpose else self.graph
        hops: Array = self._run.call(bfs, graph, self.graph.to_ids(sources), max_hops=limit).to_numpy()
        return hops


class OperatorSearches(Searches):
    """Searches on the other devices, by operators, of 64 sources at once."""

    def run(
        self, sources: Array | None = None, *, transpose: bool = False, by_source: bool = False, counted: bool = True
    ) -> Array:
        """See :meth:`Searches.run`."""
        numbers = np.arange(self.graph.num_vertices) if sources is None else sources
        return _by_operators(self.everyone, numbers, transpose, by_source)

    def hops(self, sources: Array, *, transpose: bool = False, limit: int | None = None) -> Array:
        """See :meth:`Searches.hops`."""
        return _hops_by_operators(self.everyone, sources, transpose, limit)


def inverse_unit(vertices: int) -> int:
    """Return the power of two in whose inverse inverses are counted: the sum of ``vertices`` of them fits in int64."""
    return 1 << (62 - int(vertices).bit_length())


def _spread(u: int, v: int, weight: float, seen: Any, visit: Any, found: Any) -> bool:
    """Send the sources that reached u in the last level on to v, which most have not seen."""
    new = visit[u] & ~seen[v]
    if new == np.uint64(0):
        return False
    atomics.bitwise_or(found, v, new)
    return True


def _settle(v: int, seen: Any, visit: Any, found: Any, figures: Any, distance: int, inverse: int) -> int:
    """Mark the sources found at v as seen, and add them to the figures of v."""
    new = found[v]
    found[v] = 0
    visit[v] = new
    seen[v] |= new
    reached = 0
    while new != np.uint64(0):
        new &= new - np.uint64(1)
        reached += 1
    figures[4 * v] += reached
    figures[4 * v + 1] += reached * distance
    figures[4 * v + 2] += reached * inverse
    figures[4 * v + 3] = max(figures[4 * v + 3], distance)
    return 0


def _settle_sources(
    v: int, seen: Any, visit: Any, found: Any, figures: Any, distance: int, inverse: int, first: int
) -> int:
    """Mark the sources found at v as seen, and add v to their figures."""
    new = found[v]
    found[v] = 0
    visit[v] = new
    seen[v] |= new
    place = 4 * first
    while new != np.uint64(0):
        if new & np.uint64(1) != np.uint64(0):
            atomics.add(figures, place, 1)
            atomics.add(figures, place + 1, distance)
            atomics.add(figures, place + 2, inverse)
            atomics.max(figures, place + 3, distance)
        new >>= np.uint64(1)
        place += 4
    return 0


def _by_operators(everyone: Frontier, sources: Array, transpose: bool, by_source: bool) -> Array:
    """Search in batches of 64 sources."""
    rows = len(sources) if by_source else everyone.graph.num_vertices
    figures = everyone.full(0, np.int64, rows * _FIGURES)
    unit = inverse_unit(everyone.graph.num_vertices if by_source else len(sources))
    for first in range(0, len(sources), _WORD_BITS):
        batch = sources[first : first + _WORD_BITS]
        seen, visit, found = (everyone.full(0, np.uint64) for _ in range(3))
        starts = [everyone.upload(batch), seen, visit]
        process_vertices(_set_bits, items(len(batch), everyone.device), starts, returns=None)
        frontier, distance = everyone.chosen(batch), 0
        levels = Advance("searching levels", everyone.device, everyone.graph.num_vertices - 1)
        while frontier := process_edges(_spread, frontier, [seen, visit, found], transpose=transpose):
            levels.take()
            distance += 1
            arrays = [seen, visit, found, figures, distance, (unit + distance // 2) // distance]
            if by_source:
                process_vertices(_settle_sources, frontier, [*arrays, first])
            else:
                process_vertices(_settle, frontier, arrays)
    return everyone.download(figures).reshape(rows, _FIGURES)


def _set_bits(i: int, batch: Any, seen: Any, visit: Any) -> None:
    """Set the bit of source i."""
    atomics.add(seen, batch[i], np.uint64(1) << np.uint64(i))
    atomics.add(visit, batch[i], np.uint64(1) << np.uint64(i))


def _set_source(v: int, hops: Any) -> None:
    hops[v] = 0


def _hops_by_operators(everyone: Frontier, sources: Array, transpose: bool, limit: int | None) -> Array:
    """Search level by level."""
    frontier = everyone.chosen(sources)
    hops = everyone.full(-1, np.int32)
    process_vertices(_set_source, frontier, [hops], returns=None)
    distance = 0
    visits = Advance("searching levels", everyone.device, everyone.graph.num_vertices)
    while frontier and distance != limit:
        visits.take(len(frontier))
        distance += 1
        frontier = process_edges(_visit, frontier, [hops, distance], receives=_is_new, transpose=transpose)
    return everyone.download(hops)


def _visit(u: int, v: int, weight: float, hops: Any, distance: int) -> bool:
    """Reach v, unless another edge has."""
    return bool(atomics.compare_and_swap(hops, v, -1, distance))


def _is_new(v: int, hops: Any, distance: int) -> bool:
    return bool(atomics.load(hops, v) < 0)
