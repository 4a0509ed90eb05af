"""Connected components of every kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

from gpu_pregel.algorithms import connected_components as components
from gpu_pregel.algorithms import strongly_connected_components as strong
from gpu_pregel.kernels.networkx import depth_first_cpu
from gpu_pregel.networkx import all_pairs
from gpu_pregel.networkx.graph import Array, BackendGraph
from gpu_pregel.networkx.results import digraph, sets
from gpu_pregel.networkx.searches import REVERSE, depth_first, vertex_of


def connected_components(G: BackendGraph) -> Iterator[set[Any]]:
    """Yield the components in the order of their first nodes."""
    return _groups(G, components.connected_components(G.engine()).to_numpy())


def number_connected_components(G: BackendGraph) -> int:
    """Count the components."""
    return components.connected_components(G.engine()).count


def is_connected(G: BackendGraph) -> bool:
    """Tell whether there is one component."""
    return all_pairs.is_connected(G)


def node_connected_component(G: BackendGraph, n: Any) -> set[Any]:
    """Return the nodes of the component of a node."""
    labels = components.connected_components(G.engine()).to_numpy()
    return set(G.nodes_at(np.flatnonzero(labels == labels[G.topology.numbers[n]])))


def weakly_connected_components(G: BackendGraph) -> Iterator[set[Any]]:
    """Yield the weak components in the order of their first nodes."""
    return connected_components(G)


def number_weakly_connected_components(G: BackendGraph) -> int:
    """Count the weak components."""
    return number_connected_components(G)


def is_weakly_connected(G: BackendGraph) -> bool:
    """Tell whether there is one weak component."""
    if len(G) == 0:
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    return number_connected_components(G) == 1


def strongly_connected_components(G: BackendGraph) -> Iterator[set[Any]]:
    """Yield the components in the order in which Tarjan's algorithm completes them."""
    order, ends = _strong_components(G)
    return sets(G.nodes_at(order), ends)


def kosaraju_strongly_connected_components(G: BackendGraph, source: Any = None) -> Iterator[set[Any]]:
    """Yield the components in the order of Kosaraju's algorithm."""
    start = None if source is None else vertex_of(G, source)
    left = depth_first(G, start, REVERSE, reverse=True)
    topology = G.topology
    order, ends = np.empty(topology.n, np.uint32), np.empty(topology.n, np.int64)
    count = depth_first_cpu.reachable_groups(topology.indptr, topology.neighbors, left.targets, order, ends)
    yield from sets(G.nodes_at(order[: ends[count - 1]]) if count else [], ends[:count])


def number_strongly_connected_components(G: BackendGraph) -> int:
    """Count the strong components."""
    return strong.strongly_connected_components(G.engine()).count


def is_strongly_connected(G: BackendGraph) -> bool:
    """Tell whether there is one strong component."""
    return all_pairs.is_connected(G)


def is_semiconnected(G: BackendGraph) -> bool:
    """Tell whether each strong component has an edge to the next one in topological order."""
    if len(G) == 0:
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    labels, count = _strong_labels(G)
    # Components are numbered in reverse topological order.
    sources, targets = labels[G.topology.sources], labels[G.topology.neighbors]
    joined = np.zeros(count, np.bool_)
    joined[targets[sources == targets + 1]] = True
    return int(np.count_nonzero(joined)) == count - 1


def condensation(G: BackendGraph, scc: Any = None) -> nx.DiGraph[Any]:
    """Return the graph of the strong components, or of the given ones."""
    mapping: dict[Any, int] = {}
    if len(G) == 0:
        return digraph([], iter(()), mapping=mapping)
    members = list(strongly_connected_components(G) if scc is None else scc)
    if not members:
        raise NotImplementedError("scc is empty")
    for i, component in enumerate(members):
        mapping.update(dict.fromkeys(component, i))
    labels = np.fromiter((mapping.get(node, -1) for node in G.topology.nodes), np.int64, len(G))
    sources, targets = labels[G.topology.sources], labels[G.topology.neighbors]
    _check_partition(G, sources, targets)
    between = np.flatnonzero(sources != targets)
    # Edges are added in the order in which each occurs first.
    keys = sources[between] * len(members) + targets[between]
    first = between[np.sort(np.unique(keys, return_index=True)[1])]
    edges = zip(sources[first].tolist(), targets[first].tolist(), strict=True)
    return digraph(range(len(members)), edges, [{"members": nodes} for nodes in members], mapping=mapping)


def _check_partition(G: BackendGraph, sources: Array, targets: Array) -> None:
    """Raise KeyError, as NetworkX does, if an end of an edge is in none of the given components."""
    missing = (sources < 0) | (targets < 0)
    if missing.any():
        e = int(missing.argmax())
        topology = G.topology
        raise KeyError(topology.nodes[(topology.sources if sources[e] < 0 else topology.neighbors)[e]])


def attracting_components(G: BackendGraph) -> Iterator[set[Any]]:
    """Yield the strong components that no edge leaves."""
    order, ends = _strong_components(G)
    nodes = G.nodes_at(order)
    begins = np.append(0, ends[:-1])
    for i in np.flatnonzero(_attracting(G)).tolist():
        yield set(nodes[begins[i] : ends[i]])


def number_attracting_components(G: BackendGraph) -> int:
    """Count the strong components that no edge leaves."""
    return int(np.count_nonzero(_attracting(G)))


def is_attracting_component(G: BackendGraph) -> bool:
    """Tell whether the graph is a single attracting component."""
    return number_strongly_connected_components(G) == 1


def flow_hierarchy(G: BackendGraph, weight: str | None = None) -> float:
    """Return the share of the edges that are in no cycle, by weight."""
    topology = G.topology
    if topology.m == 0:
        raise nx.NetworkXError("flow_hierarchy not applicable to empty graphs")
    if not G.is_directed():
        raise nx.NetworkXError("G must be a digraph in flow_hierarchy")
    labels, _ = _strong_labels(G)
    inside = labels[topology.sources] == labels[topology.neighbors]
    weights = G.edge_values(weight)
    if weights is None:
        return 1 - int(np.count_nonzero(inside)) / topology.m
    return 1 - float(weights[inside].sum()) / float(weights.sum())


def _attracting(G: BackendGraph) -> Array:
    """Return which strong components have no edge to another one, bool[components]."""
    labels, count = _strong_labels(G)
    sources, targets = labels[G.topology.sources], labels[G.topology.neighbors]
    attracting = np.ones(count, np.bool_)
    attracting[sources[sources != targets]] = False
    return attracting


def _strong_components(G: BackendGraph) -> tuple[Array, Array]:
    """Return the vertices by strong component, uint32[n], and where each component ends."""
    topology = G.topology
    order, ends = np.empty(topology.n, np.uint32), np.empty(topology.n, np.int64)
    count = depth_first_cpu.strong_components(topology.indptr, topology.neighbors, order, ends)
    return order, ends[:count]


def _strong_labels(G: BackendGraph) -> tuple[Array, int]:
    """Return the number of each vertex's strong component, int64[n], and the number of components."""
    order, ends = _strong_components(G)
    labels = np.empty(len(order), np.int64)
    labels[order] = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
    return labels, len(ends)


def _groups(G: BackendGraph, labels: Array) -> Iterator[set[Any]]:
    """Yield the nodes of each label, in the order of their first nodes; a label is the smallest vertex that has it."""
    sizes = np.bincount(labels, minlength=1)
    roots = np.flatnonzero(sizes)
    places = np.flatnonzero(sizes[roots] > 1)
    largest = int(sizes.argmax())
    has_giant = 2 * sizes[largest] > len(labels)
    if has_giant:
        sizes[largest] = 1
    members = np.flatnonzero(sizes[labels] > 1)
    members = members[np.argsort(labels[members], kind="stable")]
    groups = sets(G.nodes_at(members), np.cumsum(sizes[roots[sizes[roots] > 1]]))
    nodes, begin = G.nodes_at(roots), 0
    for place in places.tolist():
        for node in nodes[begin:place]:
            yield {node}
        yield _giant(G, labels != largest) if has_giant and roots[place] == largest else next(groups)
        begin = place + 1
    for node in nodes[begin:]:
        yield {node}


def _giant(G: BackendGraph, others: Array) -> set[Any]:
    """Return all nodes but a few, bool[n]: copying the set of all nodes is faster than making one."""
    giant = set(G.topology.numbers)
    giant.difference_update(G.nodes_at(np.flatnonzero(others)))
    return giant
