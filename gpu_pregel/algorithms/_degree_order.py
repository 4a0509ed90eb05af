"""Vertices renumbered by degree on the CPU, so that the values that are read most often share cache lines.

Priyank Faldu, Jeff Diamond, Boris Grot: A Closer Look at Lightweight Graph Reordering (degree-based grouping), IISWC
2019. The order is kept within groups of similar degree.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.superstep.phases import Phases
from gpu_pregel.kernels.algorithms import degree_order_cpu as kernels

Array = np.ndarray[Any, Any]

MIN_VERTICES = 1 << 14
"""The values of fewer vertices stay in the cache in any order."""
_HOT_SHARE = 16
_HOT_EDGES = 0.4
"""Renumbering pays if a sixteenth of the vertices have at least this part of the edges."""
_BLOCK = 1 << 14


class DegreeOrder(NamedTuple):
    """A graph renumbered by descending degree.

    Attributes
    ----------
    order : uint32[n]
        The old number of each new one.
    indptr, indices : int64[n + 1], uint32[m]
        The rows of in-edges in the new order, with the new numbers of the neighbours.
    """

    order: Array
    indptr: Array
    indices: Array


def order_by_out_degree(graph: Graph, phases: Phases, device: Device) -> DegreeOrder | None:
    """Return the in-edges renumbered by out-degree, or None if too few edges are those of hubs."""
    grouping, (indptr, indices, _) = graph.indptr, graph.csc
    n, m = graph.num_vertices, graph.num_stored_edges
    if n < MIN_VERTICES or not _has_hubs(grouping):
        return None
    vertices, edges = count_groups(grouping, indptr, phases)
    groups = int(np.searchsorted(np.cumsum(vertices.sum(axis=0)), n // _HOT_SHARE, "right"))
    if edges[:, :groups].sum() < _HOT_EDGES * m:
        return None
    device.require(4 * m + 16 * n, "the graph renumbered by degree")
    order, ranks, begins = place_vertices(grouping, indptr, vertices, edges, phases)
    renumbered = np.empty(m, np.uint32)
    phases.run("renumber", kernels.renumber, n, indptr, indices, ranks, begins, renumbered)
    return DegreeOrder(order, begins, renumbered)


def count_groups(grouping: Array, indptr: Array, phases: Phases) -> tuple[Array, Array]:
    """Count the vertices and the edges of each group of degrees in each block, int64[blocks, GROUPS]."""
    n = len(indptr) - 1
    vertices, edges = (np.zeros((-(-n // _BLOCK), kernels.GROUPS), np.int64) for _ in range(2))
    phases.run("count degrees", kernels.count_groups, n, grouping, indptr, vertices, edges, chunk=_BLOCK)
    return vertices, edges


def place_vertices(
    grouping: Array, indptr: Array, vertices: Array, edges: Array, phases: Phases
) -> tuple[Array, Array, Array]:
    """Return the old number of each new one, its inverse, and where each row begins in the new order."""
    n, m = len(indptr) - 1, int(indptr[-1])
    order, ranks, begins = np.empty(n, np.uint32), np.empty(n, np.uint32), np.empty(n + 1, np.int64)
    begins[n] = m
    offsets = [_offsets(counts) for counts in (vertices, edges)]
    phases.run("place vertices", kernels.place, n, grouping, indptr, *offsets, order, ranks, begins, chunk=_BLOCK)
    return order, ranks, begins


def _has_hubs(indptr: Array) -> bool:
    """Return whether a sample of the vertices has as many edges at hubs as it takes, or almost."""
    sample = np.linspace(0, len(indptr) - 2, MIN_VERTICES, dtype=np.int64)
    degrees = np.sort(indptr[sample + 1] - indptr[sample])
    return bool(degrees[-len(sample) // _HOT_SHARE :].sum() > 0.75 * _HOT_EDGES * degrees.sum())


def _offsets(counts: Array) -> Array:
    """Return where each block begins in each group, group after group; counts and offsets are [blocks, GROUPS]."""
    by_group = counts.T.ravel()
    return np.ascontiguousarray((np.cumsum(by_group) - by_group).reshape(counts.shape[::-1]).T)
