"""Biconnected components, articulation points, bridges and chains."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
from scipy.sparse import csgraph, csr_array

from gpu_pregel.kernels.networkx import cycles_cpu, depth_first_cpu
from gpu_pregel.networkx.functions import components
from gpu_pregel.networkx.graph import Array, BackendGraph
from gpu_pregel.networkx.results import pairs, sets
from gpu_pregel.networkx.searches import FORWARD, NONTREE, depth_first


def biconnected_components(G: BackendGraph) -> Iterator[set[Any]]:
    """Yield the nodes of each biconnected component."""
    sources, targets, ends, _ = _blocks(G)
    nodes = G.nodes_at(np.column_stack((sources, targets)).ravel())
    for begin, end in pairwise([0, *(2 * ends).tolist()]):
        yield set(nodes[begin:end])


def biconnected_component_edges(G: BackendGraph) -> Iterator[list[tuple[Any, Any]]]:
    """Yield the edges of each biconnected component."""
    sources, targets, ends, _ = _blocks(G)
    edges = list(pairs(G, sources, targets))
    for begin, end in pairwise([0, *ends.tolist()]):
        yield edges[begin:end]


def articulation_points(G: BackendGraph) -> Iterator[Any]:
    """Yield the nodes whose removal disconnects a component, in the order in which a depth-first search leaves them."""
    yield from G.nodes_at(_blocks(G)[3])


def is_biconnected(G: BackendGraph) -> bool:
    """Tell whether one biconnected component has all nodes."""
    if len(G) > 2 and np.diff(G.topology.distinct[0]).min() < 2:
        return False
    sources, targets, ends, _ = _blocks(G)
    return len(ends) == 1 and len(np.union1d(sources, targets)) == len(G)


def _blocks(G: BackendGraph) -> tuple[Array, Array, Array, Array]:
    """Return sources and targets of the edges by component, where each component ends, and the cut vertices."""
    indptr, neighbors = G.topology.distinct
    n, m = G.topology.n, len(neighbors)
    sources, targets = np.empty((2, m), np.uint32)
    ends, cuts = np.empty(n, np.int64), np.empty(n, np.uint32)
    count, cut_count = depth_first_cpu.biconnected_components(
        indptr, neighbors, sources, targets, ends, np.zeros(n, np.bool_), cuts
    )
    ends = ends[:count]
    size = int(ends[-1]) if count else 0
    return sources[:size], targets[:size], ends, cuts[:cut_count]


def bridges(G: BackendGraph, root: Any = None) -> Iterator[tuple[Any, Any]]:
    """Yield the edges that are in no cycle, in the order of the graph's edges."""
    edges = _bridges(G)
    yield from pairs(G, G.topology.sources[edges], G.topology.neighbors[edges])


def has_bridges(G: BackendGraph, root: Any = None) -> bool:
    """Tell whether the graph, or the component of the root, has a bridge."""
    sources = G.topology.sources[_bridges(G)]
    if root is None:
        return len(sources) > 0
    if root not in G:
        raise nx.NodeNotFound(f"Root node {root} is not in graph")
    return bool(np.isin(sources, depth_first(G, G.topology.numbers[root], FORWARD).targets).any())


def bridge_components(G: BackendGraph) -> Iterator[set[Any]]:
    """Yield the components that are left if bridges are removed, in the order of their first nodes."""
    topology = G.topology
    kept = ~_is_bridge(G)
    indptr = np.append(0, np.cumsum(kept))[topology.indptr]
    rows = csr_array((np.ones(int(indptr[-1]), np.bool_), topology.neighbors[kept], indptr), (topology.n, topology.n))
    labels = csgraph.connected_components(rows, directed=False)[1]
    order = np.argsort(labels, kind="stable")
    yield from sets(G.nodes_at(order), np.cumsum(np.bincount(labels)))


def k_edge_components(G: BackendGraph, k: int) -> Iterator[set[Any]]:
    """Return the sets of nodes that ``k`` edges at least would have to be removed to separate."""
    if k == 2:
        return bridge_components(G)
    return components.strongly_connected_components(G) if G.is_directed() else components.connected_components(G)


def _bridges(G: BackendGraph) -> Array:
    """Return the bridges as positions of stored edges, from the earlier to the later vertex."""
    return np.flatnonzero(_is_bridge(G) & (G.topology.sources < G.topology.neighbors))


def _is_bridge(G: BackendGraph) -> Array:
    """Return which stored edges are bridges."""
    topology = G.topology
    sources, targets, ends, _ = _blocks(G)
    # A bridge is the only edge of its biconnected component, but for edges from a vertex to itself.
    proper = np.append(0, np.cumsum(sources != targets))
    single = np.diff(proper[np.append(0, ends)]) == 1
    edges = np.flatnonzero(np.repeat(single, np.diff(ends, prepend=0)) & (sources != targets))
    # The search enters a vertex by one edge only.
    entered = np.full(topology.n, topology.n, np.int64)
    entered[targets[edges]] = sources[edges]
    u, v = topology.sources, topology.neighbors
    found: Array = (entered[v] == u) | (entered[u] == v)
    if topology.multigraph:
        # Parallel edges are next to one another.
        parallel = np.zeros(topology.m + 1, np.bool_)
        parallel[1:-1] = (u[1:] == u[:-1]) & (v[1:] == v[:-1])
        found &= ~(parallel[:-1] | parallel[1:])
    return found


def chain_decomposition(G: BackendGraph, root: Any = None) -> Iterator[list[tuple[Any, Any]]]:
    """Yield the chains of a depth-first search, of the component of the root if it is given."""
    if root is not None and root not in G:
        raise nx.NodeNotFound(f"Root node {root} is not in graph")
    sources, targets, kinds = depth_first(G, None if root is None else G.topology.numbers[root], FORWARD | NONTREE)
    n = len(G)
    forward = kinds == depth_first_cpu.FORWARD
    order, parents, numbers = targets[forward], np.full(n, n, np.uint32), np.full(n, n, np.int64)
    parents[order] = sources[forward]
    numbers[order] = np.arange(len(order))
    # Chains begin with an edge to a descendant, which the search sees from there first.
    below, above = sources[~forward], targets[~forward]
    upward = (numbers[above] <= numbers[below]) & ((parents[below] != above) | (below == above))
    below, above = below[upward], above[upward]
    by_start = np.argsort(numbers[above], kind="stable")
    firsts, seconds = above[by_start], below[by_start]
    size = len(firsts) + n
    chain_sources, chain_targets, ends = np.empty(size, np.uint32), np.empty(size, np.uint32), np.empty(size, np.int64)
    cycles_cpu.walk_chains(firsts, seconds, order, numbers, parents, chain_sources, chain_targets, ends)
    ends = ends[: len(firsts)]
    size = int(ends[-1]) if len(ends) else 0
    edges = list(pairs(G, chain_sources[:size], chain_targets[:size]))
    for begin, end in pairwise([0, *ends.tolist()]):
        yield edges[begin:end]


def local_bridges(G: BackendGraph, with_span: bool = True, weight: Any = None) -> Iterator[tuple[Any, ...]]:
    """Yield the edges that are in no triangle, with the distance of their ends without them if ``with_span``."""
    topology = G.topology
    sorted_rows = G.engine()
    is_local = np.zeros(topology.m, np.bool_)
    cycles_cpu.find_local_bridges(
        topology.indptr, topology.neighbors, sorted_rows.indptr, sorted_rows.indices, is_local
    )
    edges = np.flatnonzero(is_local)
    sources, targets = topology.sources[edges], topology.neighbors[edges]
    if with_span is not True:
        yield from pairs(G, sources, targets)
        return
    stamps, queues = np.full((2, topology.n), -1, np.int64), np.empty((2, topology.n), np.uint32)
    for i, (u, v) in enumerate(zip(sources.tolist(), targets.tolist(), strict=True)):
        span = cycles_cpu.distance_without_edge(topology.indptr, topology.neighbors, u, v, i, stamps, queues)
        yield topology.nodes[u], topology.nodes[v], span if span > 0 else float("inf")
