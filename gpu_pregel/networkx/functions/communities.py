"""Label propagation, fluid communities and the quality of partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import networkx as nx
import numpy as np

from gpu_pregel.algorithms.connected_components import connected_components
from gpu_pregel.kernels.networkx.communities_cpu import adopt_labels, raise_labels, settle_labels, spread_fluids
from gpu_pregel.kernels.networkx.sets_cpu import color_in_order
from gpu_pregel.networkx.graph import Array, BackendGraph
from gpu_pregel.networkx.groups import by_first_node, membership, node_sets
from gpu_pregel.networkx.random_states import check_generator, drawing

Rows = tuple[Array, Array, Array]
"""``indptr``, ``neighbors`` and weights."""

_TURNS = 1 << 20
"""How many vertices a kernel takes before Ctrl-C is seen."""


def asyn_lpa_communities(G: BackendGraph, weight: str | None = None, seed: Any = None) -> Iterator[set[Any]]:
    """Yield the communities that asynchronous label propagation finds."""
    check_generator(seed)
    rows = _weighted_rows(G, weight) if weight is not None else _counted_rows(*G.topology.distinct)
    return _when_asked(G, lambda: _asynchronous_labels(len(G), rows, seed))


def fast_label_propagation_communities(
    G: BackendGraph, *, weight: str | None = None, seed: Any = None
) -> Iterator[set[Any]]:
    """Yield the communities that label propagation with a queue finds."""
    check_generator(seed)
    return _when_asked(G, lambda: _queued_labels(G, weight, seed))


def label_propagation_communities(G: BackendGraph) -> Any:
    """Return the communities that label propagation by colours finds."""
    rows = _counted_rows(*G.topology.distinct)
    n = len(G)
    colors = np.full(n, -1)
    color_in_order(*rows[:2], np.argsort(-G.topology.total_degrees, kind="stable"), colors, np.full(n + 1, -1))
    order = np.argsort(colors, kind="stable")
    labels = np.arange(n)
    scratch = _scratch(n)
    settled = raise_labels(*rows, order[:0], labels, *scratch)
    while not settled:
        settled = raise_labels(*rows, order, labels, *scratch)
    return dict(enumerate(node_sets(G, by_first_node(labels)))).values()


def asyn_fluidc(G: BackendGraph, k: int, max_iter: int = 100, seed: Any = None) -> Iterator[set[Any]]:
    """Return an iterator over k fluid communities."""
    if not isinstance(k, int):
        raise nx.NetworkXError("k must be an integer.")
    if not k > 0:
        raise nx.NetworkXError("k must be greater than 0.")
    if len(G) == 0:
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    check_generator(seed)
    if connected_components(G.engine()).count != 1:
        raise nx.NetworkXError("Fluid Communities require connected Graphs.")
    if len(G) < k:
        raise nx.NetworkXError("k cannot be bigger than the number of nodes.")
    if max_iter <= 0:
        raise ValueError(f"{max_iter=} must be greater than 0")
    labels, joined = _fluids(G, int(k), max_iter, seed)
    # Vertices that no fluid has reached are in no community.
    return iter(node_sets(G, by_first_node(labels[joined]), joined))


def modularity(G: BackendGraph, communities: Any, weight: str | None = "weight", resolution: float = 1) -> Any:
    """Return the modularity of a partition."""
    if not isinstance(communities, list):
        communities = list(communities)
    labels = _labels(G, communities)
    if labels is None:
        raise nx.community.quality.NotAPartition(str(G), communities)
    topology, count = G.topology, len(communities)
    values = G.edge_values(weight, mixed=True)
    weights = np.ones(topology.m, np.int64) if values is None else values
    sources, targets = topology.sources, topology.neighbors
    inside = labels[sources] == labels[targets]
    loops = sources == targets
    # An undirected edge is stored in both directions, a self-loop once.
    internal: Array = np.bincount(labels[sources[inside]], weights[inside], count)
    own = np.bincount(labels[sources[loops]], weights[loops], count)
    degrees = np.bincount(labels[sources], weights, count) + (0 if topology.directed else own)
    in_degrees = np.bincount(labels[targets], weights, count) if topology.directed else degrees
    # Without weight NetworkX divides by zero, an integer or a float, of which the message tells.
    total = degrees.sum().item()
    norm = 1 / ((int(total) if weights.dtype.kind == "i" else total) ** 2)
    size = total if topology.directed else total / 2
    if not topology.directed:
        internal = (internal + own) / 2
    result = (internal / size - resolution * degrees * in_degrees * norm).sum()
    scalars = weight is not None and G.edge_column(weight).scalar is not None
    return result if scalars or isinstance(resolution, np.float64) else float(result)


def partition_quality(G: BackendGraph, partition: Any) -> tuple[float, float]:
    """Return the coverage and the performance of a partition."""
    labels = _labels(G, list(partition))
    assert labels is not None, "NetworkX checks the partition"
    topology, n = G.topology, len(G)
    edges = G.number_of_edges()
    inside = labels[topology.sources] == labels[topology.neighbors]
    intra = int(np.count_nonzero(inside))
    if not topology.directed:
        intra = (intra + int(np.count_nonzero(topology.sources == topology.neighbors))) // 2
    coverage = intra / edges
    if topology.multigraph:
        return coverage, -1.0
    pairs = n * (n - 1)
    together = sum(len(community) * (len(community) - 1) for community in partition)
    if not topology.directed:
        pairs, together = pairs // 2, together // 2
    return coverage, (intra + (pairs - together) - (edges - intra)) / pairs


def intra_community_edges(G: BackendGraph, partition: Any) -> int:
    """Count the edges within communities."""
    topology = G.topology
    once = slice(None) if topology.directed else topology.sources <= topology.neighbors
    sources, targets = topology.sources[once], topology.neighbors[once]
    labels = _disjoint_labels(G, partition)
    if labels is not None:
        return int(np.count_nonzero((labels[sources] == labels[targets]) & (labels[sources] >= 0)))
    # Communities overlap, or have members that are no nodes.
    insides = (membership(G, community) for community in partition)
    return sum(int(np.count_nonzero(inside[sources] & inside[targets])) for inside in insides)


def inter_community_edges(G: BackendGraph, partition: Any) -> int:
    """Count the pairs of adjacent nodes of different communities."""
    labels = _disjoint_labels(G, partition)
    if labels is None:
        raise nx.NetworkXException("each node must be in exactly one part of `partition`")
    indptr, neighbors = G.topology.distinct
    own, other = np.repeat(labels, np.diff(indptr)), labels[neighbors]
    count = int(np.count_nonzero((own != other) & (own >= 0) & (other >= 0)))
    return count if G.is_directed() else count // 2


def _when_asked(G: BackendGraph, search: Callable[[], Array]) -> Iterator[set[Any]]:
    """Search when the first community is asked for, as NetworkX does."""
    yield from node_sets(G, by_first_node(search()))


def _scratch(n: int) -> tuple[Array, Array]:
    """Return what kernels need to add the weights of labels."""
    return np.empty(n + 1), np.full((2, n + 1), -1)


def _counted_rows(indptr: Array, neighbors: Array) -> Rows:
    return indptr, neighbors, np.ones(len(neighbors))


def _weighted_rows(G: BackendGraph, weight: str) -> Rows:
    values = G.edge_values(weight, mixed=True)
    assert values is not None
    return G.topology.indptr, G.topology.neighbors, values.astype(np.float64)


def _asynchronous_labels(n: int, rows: Rows, seed: Any) -> Array:
    labels = np.arange(n)
    scratch = _scratch(n)
    changed = True
    while changed:
        order = list(range(n))
        seed.shuffle(order)
        with drawing(seed) as state:
            changed = adopt_labels(*rows, np.array(order, np.int64), labels, state, *scratch)
    return labels


def _queued_labels(G: BackendGraph, weight: str | None, seed: Any) -> Array:
    n, topology = len(G), G.topology
    none = _counted_rows(*topology.no_edges)
    rows, more_rows = none, none
    neighborhoods = none[:2], topology.distinct
    if topology.directed:
        out_rows = _counted_rows(topology.indptr, topology.neighbors)
        in_rows = _counted_rows(*topology.predecessors)
        neighborhoods = in_rows[:2], out_rows[:2]
        if weight is not None:
            out_rows = _weighted_rows(G, weight)
            in_rows = (*in_rows[:2], out_rows[2][topology.predecessor_edges])
        # NetworkX counts in-edges first in simple graphs without weights.
        rows, more_rows = (out_rows, in_rows) if topology.multigraph or weight is not None else (in_rows, out_rows)
    elif weight is not None:
        rows = _weighted_rows(G, weight)
    else:
        rows = _counted_rows(topology.indptr, topology.neighbors)
    order = list(range(n))
    seed.shuffle(order)
    labels, queued, progress = np.arange(n), np.ones(n, bool), np.array([0, n])
    queue, scratch = np.array(order, np.int64), _scratch(n)
    with drawing(seed) as state:
        while settle_labels(
            *(rows, more_rows, *neighborhoods[0], *neighborhoods[1]),
            *(queue, queued, progress, _TURNS, labels, state, *scratch),
        ):
            pass
    return labels


def _fluids(G: BackendGraph, k: int, max_iter: int, seed: Any) -> tuple[Array, Array]:
    """Return the community of each vertex, and the vertices in the order in which they got their first."""
    n = len(G)
    order = list(range(n))
    seed.shuffle(order)
    labels, joined = np.full(n, -1), np.array(order, np.int64)
    labels[joined[:k]] = np.arange(k)
    sizes, densities = np.ones(k, np.int64), np.ones(k)
    scratch = np.empty(k + 1), np.full((2, k + 1), -1)
    moved, count, rounds = True, k, 0
    while moved and rounds < max_iter:
        rounds += 1
        order = list(range(n))
        seed.shuffle(order)
        with drawing(seed) as state:
            moved, count = spread_fluids(
                *(G.topology.indptr, G.topology.neighbors, np.array(order, np.int64)),
                *(labels, sizes, densities, joined, count, state, *scratch),
            )
    return labels, joined[:count]


def _labels(G: BackendGraph, communities: list[Iterable[Any]]) -> Array | None:
    """Return the community of each vertex, or None unless each is in exactly one, and there are no other members."""
    labels = _disjoint_labels(G, communities)
    return None if labels is None or (labels < 0).any() else labels


def _disjoint_labels(G: BackendGraph, communities: list[Iterable[Any]]) -> Array | None:
    """Return the community of each vertex or -1, or None if one is in several, or there are other members."""
    numbers = G.topology.numbers
    members = [list(community) for community in communities]
    try:
        vertices = [numbers[node] for community in members for node in community]
    except (KeyError, TypeError):
        return None
    labels = np.full(len(G), -1)
    labels[vertices] = np.repeat(np.arange(len(members)), [len(community) for community in members])
    return labels if np.count_nonzero(labels >= 0) == len(vertices) else None
