"""Directed acyclic graphs, ancestors and descendants, and dominators."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import chain, groupby, pairwise
from operator import add, itemgetter
from typing import Any

import networkx as nx
import numpy as np

from gpu_pregel.kernels.networkx import orders_cpu
from gpu_pregel.networkx.conditions import EXACT
from gpu_pregel.networkx.edge_columns import edge_column
from gpu_pregel.networkx.functions.components import is_strongly_connected
from gpu_pregel.networkx.graph import Array, BackendGraph
from gpu_pregel.networkx.results import digraph, pairs
from gpu_pregel.networkx.searches import REVERSE, breadth_first, depth_first, vertex_of

_STARTS = 1 << 12
"""Number of vertices per kernel; between kernels, Ctrl-C is noticed."""


def ancestors(G: BackendGraph, source: Any) -> set[Any]:
    """Return the nodes that reach the source."""
    return set(G.nodes_at(breadth_first(G, [vertex_of(G, source)], reverse=True).order[1:]))


def descendants(G: BackendGraph, source: Any) -> set[Any]:
    """Return the nodes that the source reaches."""
    return set(G.nodes_at(breadth_first(G, [vertex_of(G, source)]).order[1:]))


def lowest_common_ancestor(G: BackendGraph, node1: Any, node2: Any, default: Any = None) -> Any:
    """Return a common ancestor of two nodes of which no successor is one."""
    if has_cycle(G):
        raise nx.NetworkXError("LCA only defined on directed acyclic graphs.")
    if len(G) == 0:
        raise nx.NetworkXPointlessConcept("LCA meaningless on null graphs.")
    numbers = G.topology.numbers
    if absent := {node1, node2}.difference(numbers):
        raise nx.NodeNotFound(f"Node(s) {absent} from pair {(node1, node2)} not in G.")
    first, second = ancestors(G, node1), ancestors(G, node2)
    first.add(node1)
    second.add(node2)
    common = first & second
    if not common:
        return default
    # NetworkX begins at the first node of this set, and goes on to the first successor in it.
    indptr, neighbors = G.topology.distinct
    following = [next(iter(common))]
    while following:
        found, u = following[0], numbers[following[0]]
        row = G.nodes_at(neighbors[indptr[u] : indptr[u + 1]])
        following = [node for node in row if node in common][:1]
    return found


def has_cycle(G: BackendGraph) -> bool:
    """Tell whether a directed graph has a cycle."""
    return len(_topological_order(G)[0]) < len(G)


def is_directed_acyclic_graph(G: BackendGraph) -> bool:
    """Tell whether the graph is directed and has no cycle."""
    return G.is_directed() and not has_cycle(G)


def topological_generations(G: BackendGraph) -> Iterator[list[Any]]:
    """Yield the nodes by the length of the longest path to them."""
    order, levels = _topological_order(G)
    nodes = G.nodes_at(order)
    ends = np.cumsum(np.bincount(levels[order])).tolist()
    for begin, end in pairwise([0, *ends]):
        yield nodes[begin:end]
    _check_sorted(G, order)


def topological_sort(G: BackendGraph) -> Iterator[Any]:
    """Yield the nodes in topological order."""
    order, _ = _topological_order(G)
    yield from G.nodes_at(order)
    _check_sorted(G, order)


def lexicographical_topological_sort(G: BackendGraph, key: Callable[[Any], Any] | None = None) -> Iterator[Any]:
    """Yield the nodes in topological order, of those that can be next the one with the smallest key."""
    _check_directed(G)
    topology = G.topology
    if key is None or topology.n == 0:
        keys: Sequence[Any] = topology.nodes
    else:
        keys = list(map(key, topology.nodes))
    if not _are_totally_ordered(keys):
        yield from _sort_by_keys(G, keys)
        return
    vertices = np.array(sorted(range(topology.n), key=keys.__getitem__), np.int64)
    ranks = np.empty(topology.n, np.int64)
    ranks[vertices] = np.arange(topology.n)
    order = np.empty(topology.n, np.uint32)
    arrays = (topology.indptr, topology.neighbors, topology.in_degrees.copy(), ranks, vertices, order)
    order = order[: orders_cpu.sort_by_rank(*arrays)]
    yield from G.nodes_at(order)
    _check_sorted(G, order)


def _are_totally_ordered(keys: Sequence[Any]) -> bool:
    """Return whether keys are numbers, strings or tuples of them, which any algorithm sorts alike."""
    kinds = set(map(type, keys))
    if kinds == {tuple}:
        kinds = set(map(type, chain.from_iterable(keys)))
    elif kinds == {float}:
        return not np.isnan(np.fromiter(keys, np.float64, len(keys))).any()
    return kinds in ({int}, {str})


def _sort_by_keys(G: BackendGraph, keys: Sequence[Any]) -> Iterator[Any]:
    """Sort by keys that may not be comparable; only those that meet in the heap are compared, as in NetworkX."""
    topology = G.topology
    waiting, indptr = topology.in_degrees.tolist(), topology.indptr.tolist()
    heap = [(key, v) for v, key in enumerate(keys) if waiting[v] == 0]
    heapq.heapify(heap)
    size = 0
    while heap:
        _, u = heapq.heappop(heap)
        size += 1
        for v in topology.neighbors[indptr[u] : indptr[u + 1]].tolist():
            waiting[v] -= 1
            if waiting[v] == 0:
                try:
                    heapq.heappush(heap, (keys[v], v))
                except TypeError as error:
                    advice = "Consider using `key=` parameter to resolve ambiguities in the sort order."
                    raise TypeError(f"{error}\n{advice}") from error
        yield topology.nodes[u]
    _check_sorted(G, range(size))


def dag_longest_path(
    G: BackendGraph, weight: str | None = "weight", default_weight: Any = 1, topo_order: Any = None
) -> list[Any]:
    """Return the nodes of a longest path."""
    return G.nodes_at(_longest_path(G, weight, default_weight)[0])


def dag_longest_path_length(G: BackendGraph, weight: str | None = "weight", default_weight: Any = 1) -> Any:
    """Return the sum of the weights of a longest path."""
    return reduce(add, _longest_path(G, weight, default_weight)[1], 0)


def _longest_path(G: BackendGraph, weight: str | None, default_weight: Any) -> tuple[Array, list[Any]]:
    """Return the vertices of a longest path and the weights of its edges."""
    topology = G.topology
    if weight is None:
        column, floats, scalar = edge_column("default weight", [default_weight] * topology.m)
    else:
        column, floats, scalar = G.edge_column(weight, default_weight)
    if floats is not None:
        raise NotImplementedError(f"the edges' {weight!r} are of different types: float and int")
    if column.dtype.kind == "i" and np.abs(column).max(initial=0) > EXACT // max(topology.n, 1):
        raise NotImplementedError(f"the edges' {weight!r} are too large for exact sums")
    order, _ = _topological_order(G)
    _check_sorted(G, order)
    if topology.n == 0:
        return np.empty(0, np.int64), []
    weights = column[topology.predecessor_edges]
    lengths, edges = np.zeros(topology.n), np.empty(topology.n, np.int64)
    indptr, neighbors = topology.predecessors
    orders_cpu.longest_paths(order, indptr, neighbors, weights.astype(np.float64), lengths, edges)
    vertices = [int(order[lengths[order].argmax()])]
    path: list[int] = []
    while (e := int(edges[vertices[-1]])) >= 0:
        path.append(e)
        vertices.append(int(neighbors[e]))
    return np.array(vertices[::-1]), weights[path[::-1]].tolist() if scalar is None else list(weights[path[::-1]])


def is_aperiodic(G: BackendGraph) -> bool:
    """Tell whether the lengths of the cycles of a strongly connected graph have no common divisor."""
    if not G.is_directed():
        raise nx.NetworkXError("is_aperiodic not defined for undirected graphs")
    if len(G) == 0:
        raise nx.NetworkXPointlessConcept("Graph has no nodes.")
    if not is_strongly_connected(G):
        raise nx.NetworkXError("Graph is not strongly connected.")
    levels = breadth_first(G, [0]).depths
    return int(np.gcd.reduce(levels[G.topology.sources] - levels[G.topology.neighbors] + 1)) == 1


def transitive_reduction(G: BackendGraph) -> nx.DiGraph[Any]:
    """Return the graph with the fewest edges that has the same paths."""
    order, levels = _topological_order(G)
    if len(order) < len(G):
        raise nx.NetworkXError("Directed Acyclic Graph required for transitive_reduction")
    nodes = G.topology.nodes
    return digraph(nodes, _reduced_edges(G, levels))


def _reduced_edges(G: BackendGraph, levels: Array) -> Iterator[tuple[Any, Any]]:
    """Yield the edges of the transitive reduction; those of a node are in the order of a set, as in NetworkX."""
    nodes = G.topology.nodes
    indptr, neighbors = G.topology.distinct
    for first in range(0, len(nodes), _STARTS):
        starts = np.arange(first, min(first + _STARTS, len(nodes)))
        edges = int(indptr[starts[-1] + 1] - indptr[first])
        removers, removed = np.empty((2, edges), np.uint32)
        ends = np.empty(len(starts), np.int64)
        size = orders_cpu.reduce_transitively(indptr, neighbors, levels, starts, removers, removed, ends)
        removals = list(pairs(G, removers[:size], removed[:size]))
        row_ends = indptr[first : starts[-1] + 2].tolist()
        targets = G.nodes_at(neighbors[row_ends[0] : row_ends[-1]])
        begin = 0
        for u, row, end in zip(starts.tolist(), pairwise(row_ends), ends.tolist(), strict=True):
            left = set(targets[row[0] - row_ends[0] : row[1] - row_ends[0]])
            # The order of a set depends on what is removed at once.
            for _, group in groupby(removals[begin:end], itemgetter(0)):
                left -= {node for _, node in group}
            begin = end
            for node in left:
                yield nodes[u], node


def immediate_dominators(G: BackendGraph, start: Any) -> dict[Any, Any]:
    """Return the last node that each path from the start to a node passes, for each node that is reached."""
    order, dominators = _dominators(G, start)
    return dict(pairs(G, order[1:], dominators[order[1:]]))


def dominance_frontiers(G: BackendGraph, start: Any) -> dict[Any, set[Any]]:
    """Return, for each node that is reached, the nodes at which the set of nodes ends that it dominates."""
    order, dominators = _dominators(G, start)
    result: dict[Any, set[Any]] = {node: set() for node in G.nodes_at(np.append(order[1:], order[0]))}
    rows = G.topology.distinct_predecessors
    unused = np.empty(0, np.uint32)
    count = orders_cpu.dominance_frontiers(*rows, order, dominators, False, unused, unused)
    vertices, frontiers = np.empty((2, count), np.uint32)
    orders_cpu.dominance_frontiers(*rows, order, dominators, True, vertices, frontiers)
    for node, frontier in pairs(G, vertices, frontiers):
        result[node].add(frontier)
    return result


def _dominators(G: BackendGraph, start: Any) -> tuple[Array, Array]:
    """Return the reverse postorder of the vertices that are reached, and immediate dominators, int64[n], or -1."""
    if start not in G:
        raise nx.NetworkXError("start is not in G")
    order = depth_first(G, G.topology.numbers[start], REVERSE).targets[::-1].copy()
    dominators = np.full(len(G), -1, np.int64)
    orders_cpu.immediate_dominators(*G.topology.predecessors, order, dominators)
    return order, dominators


def _topological_order(G: BackendGraph) -> tuple[Array, Array]:
    """Return the vertices that are on no cycle and behind none, by level, and the levels, int64[n]."""
    _check_directed(G)
    topology = G.topology
    order, levels = np.empty(topology.n, np.uint32), np.full(topology.n, -1, np.int64)
    waiting = topology.in_degrees.copy()
    size = orders_cpu.sort_topologically(topology.indptr, topology.neighbors, waiting, order, levels)
    return order[:size], levels


def _check_directed(G: BackendGraph) -> None:
    if not G.is_directed():
        raise nx.NetworkXError("Topological sort not defined on undirected graphs.")


def _check_sorted(G: BackendGraph, order: Sequence[int] | Array) -> None:
    if len(order) < len(G):
        raise nx.NetworkXUnfeasible("Graph contains a cycle or graph changed during iteration")
