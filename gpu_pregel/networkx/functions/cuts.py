"""Cuts, boundaries and the volume of sets of nodes; regular graphs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import networkx as nx
import numpy as np

from gpu_pregel.networkx.graph import Array, BackendGraph
from gpu_pregel.networkx.groups import adjacent, membership


def edge_boundary(
    G: BackendGraph,
    nbunch1: Iterable[Any],
    nbunch2: Iterable[Any] | None = None,
    data: Any = False,
    keys: bool = False,
    default: Any = None,
) -> Iterator[tuple[Any, ...]]:
    """Return an iterator over the edges between two sets of nodes."""
    # NetworkX goes through the first nodes in the order of this set.
    first = {node for node in nbunch1 if node in G}
    numbers = G.topology.numbers
    order = np.array([numbers[node] for node in first], np.int64)
    chosen = _crossing(G, order, None if nbunch2 is None else membership(G, set(nbunch2)))
    ranks = np.empty(len(G), np.int64)
    ranks[order] = np.arange(len(order))
    chosen = chosen[np.argsort(ranks[G.topology.sources[chosen]], kind="stable")]
    ends = G.nodes_at(G.topology.sources[chosen]), G.nodes_at(G.topology.neighbors[chosen])
    if not data:
        return zip(*ends, strict=True)
    attributes = G.edge_data()
    return zip(*ends, [attributes[e] for e in chosen.tolist()], strict=True)


def node_boundary(G: BackendGraph, nbunch1: Iterable[Any], nbunch2: Iterable[Any] | None = None) -> set[Any]:
    """Return the nodes outside of a set, and in another one, that have in-edges from it."""
    inside = membership(G, nbunch1)
    found = set(G.nodes_at(np.flatnonzero(adjacent(G, inside) & ~inside)))
    return found if nbunch2 is None else found & set(nbunch2)


def cut_size(G: BackendGraph, S: Iterable[Any], T: Iterable[Any] | None = None, weight: str | None = None) -> Any:
    """Return the sum of the weights of the edges between two sets of nodes."""
    return _cut_size(G, S, T, weight)


def volume(G: BackendGraph, S: Iterable[Any], weight: str | None = None) -> Any:
    """Return the sum of the out-degrees of nodes."""
    return _volume(G, S, weight)


def normalized_cut_size(
    G: BackendGraph, S: Iterable[Any], T: Iterable[Any] | None = None, weight: str | None = None
) -> Any:
    """Return the size of a cut relative to the volumes of both sides."""
    S, T = _both(G, S, T)
    size = _cut_size(G, S, T, weight)
    volumes = _volume(G, S, weight), _volume(G, T, weight)
    return size * (1 / volumes[0] + 1 / volumes[1])


def conductance(G: BackendGraph, S: Iterable[Any], T: Iterable[Any] | None = None, weight: str | None = None) -> Any:
    """Return the size of a cut relative to the smaller volume."""
    S, T = _both(G, S, T)
    return _cut_size(G, S, T, weight) / min(_volume(G, S, weight), _volume(G, T, weight))


def edge_expansion(G: BackendGraph, S: Any, T: Any = None, weight: str | None = None) -> Any:
    """Return the size of a cut relative to the number of nodes of the smaller side."""
    _, T = _both(G, S, T)
    return _cut_size(G, S, T, weight) / min(len(S), len(T))


def mixing_expansion(
    G: BackendGraph, S: Iterable[Any], T: Iterable[Any] | None = None, weight: str | None = None
) -> Any:
    """Return the size of a cut relative to twice the number of edges."""
    return _cut_size(G, S, T, weight) / (2 * G.number_of_edges())


def node_expansion(G: BackendGraph, S: Any) -> float:
    """Return the number of nodes with in-edges from a set relative to its size."""
    numbers = G.topology.numbers
    for node in S:
        if node not in G:
            kind = "digraph" if G.is_directed() else "graph"
            raise nx.NetworkXError(f"The node {node} is not in the {kind}.") from KeyError(node)
    inside = np.zeros(len(G), bool)
    inside[[numbers[node] for node in S]] = True
    return int(np.count_nonzero(adjacent(G, inside))) / len(S)


def boundary_expansion(G: BackendGraph, S: Any) -> float:
    """Return the number of nodes of the boundary of a set relative to its size."""
    return len(node_boundary(G, S)) / len(S)


def _both(G: BackendGraph, S: Iterable[Any], T: Iterable[Any] | None) -> tuple[Iterable[Any], Iterable[Any]]:
    return S, set(G.topology.nodes) - set(S) if T is None else T


def _crossing(G: BackendGraph, order: Array, other: Array | None) -> Array:
    """Return the stored edges from these vertices to others, or from the ones in these to those in ``other``.

    An undirected edge with both ends among these is stored twice, and found from the first of them.
    """
    topology = G.topology
    sources, targets = topology.sources, topology.neighbors
    inside = np.zeros(len(G), bool)
    inside[order] = True
    if other is None:
        return np.flatnonzero(inside[sources] & ~inside[targets])
    found = inside[sources] & (other[targets] | (inside[targets] & other[sources]))
    if not topology.directed:
        ranks = np.full(len(G), len(G))
        ranks[order] = np.arange(len(order))
        found &= ranks[sources] <= ranks[targets]
    return np.flatnonzero(found)


def _cut_size(G: BackendGraph, S: Iterable[Any], T: Iterable[Any] | None, weight: str | None) -> Any:
    values = G.edge_values(weight)
    first = _vertices(G, S)
    other = None if T is None else membership(G, T)
    found = [_crossing(G, first, other)]
    if G.is_directed():
        if T is None:
            # NetworkX then asks for the edges that leave no set of nodes.
            raise TypeError("'NoneType' object is not iterable")
        found.append(_crossing(G, _vertices(G, T), membership(G, S)))
    edges = np.concatenate(found)
    return _sum(values, edges)


def _sum(values: Array | None, edges: Array) -> Any:
    if values is None:
        return len(edges)
    return values[edges].sum().item() if len(edges) else 0


def _vertices(G: BackendGraph, nodes: Iterable[Any]) -> Array:
    return np.flatnonzero(membership(G, nodes))


def _volume(G: BackendGraph, nodes: Iterable[Any], weight: str | None) -> Any:
    topology, inside = G.topology, membership(G, nodes)
    found = inside[topology.sources]
    edges = np.flatnonzero(found)
    if topology.directed:
        return _sum(G.edge_values(weight), edges)
    loops = np.flatnonzero(found & (topology.sources == topology.neighbors))
    return _sum(G.edge_values(weight), np.concatenate([edges, loops]))


def is_regular(G: BackendGraph) -> bool:
    """Tell whether all degrees are the same, those of in- and out-edges apart."""
    if len(G) == 0:
        raise nx.NetworkXPointlessConcept("Graph has no nodes.")
    degrees = G.topology.degrees if G.is_directed() else G.topology.total_degrees
    in_degrees = G.topology.total_degrees - degrees
    return bool((degrees == degrees[0]).all() and (in_degrees == in_degrees[0]).all())


def is_k_regular(G: BackendGraph, k: Any) -> bool:
    """Tell whether all degrees are k."""
    return bool(np.all(G.topology.total_degrees == k))
