"""Centralities by the number of shortest paths through nodes and edges."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpu_pregel.algorithms import betweenness_centrality as engine
from gpu_pregel.host.devices.threads import parallel, thread_count
from gpu_pregel.kernels.networkx.path_sums_cpu import BY_PATHS, EVENLY, TO_TARGETS, add_dependencies
from gpu_pregel.networkx.graph import Array, BackendGraph
from gpu_pregel.networkx.rows import rows_by_length

_BLOCKS, _PER_BLOCK, _BLOCK_MEMORY = 64, 8, 1 << 28
"""Blocks of sources, whose sums do not depend on the number of threads; sources of each; bytes for all sums."""


def betweenness_centrality(
    G: BackendGraph,
    k: int | None = None,
    normalized: bool = True,
    weight: Any = None,
    endpoints: bool = False,
    seed: Any = None,
) -> dict[Any, float]:
    """Return the share of shortest paths through each node."""
    n = len(G)
    rows_by_length(G, weight, positive=True)
    sources = None if k is None or k == n else _sample(G, k, seed)
    if sources is not None and not sources:
        if n - (not endpoints) >= 2:
            raise ZeroDivisionError("division by zero")
        return dict.fromkeys(G, 0.0)
    if n == 0:
        return {}
    found = engine.betweenness_centrality(
        G.engine(weight),
        sources=sources,
        normalized=bool(normalized),
        endpoints=bool(endpoints),
        weighted=weight is not None,
    )
    scores = found.to_numpy()
    if sources is not None and len(sources) == 1 and not endpoints and n > 2:
        scores = scores.copy()
        scores[sources] = math.nan
    return G.by_node(scores)


def edge_betweenness_centrality(
    G: BackendGraph, k: int | None = None, normalized: bool = True, weight: Any = None, seed: Any = None
) -> dict[tuple[Any, Any], float]:
    """Return the share of shortest paths along each edge."""
    n = len(G)
    rows_by_length(G, weight, positive=True)
    sources = None if k is None else _sample(G, k, seed)
    if sources is not None and not sources and n >= 2:
        raise ZeroDivisionError("division by zero")
    if not G.topology.m or sources == []:
        return _by_edge(G, np.empty(0, np.int64), np.empty(0))
    found = engine.edge_betweenness_centrality(
        G.engine(weight),
        sources=sources,
        normalized=bool(normalized),
        weighted=weight is not None,
    )
    return _by_edge(G, found.edge_sources * n + found.edge_targets, found.scores)


def betweenness_centrality_subset(
    G: BackendGraph, sources: Any, targets: Any, normalized: bool = False, weight: Any = None
) -> dict[Any, float]:
    """Return the shortest paths from the sources to the targets through each node."""
    vertices, ends = _ends(G, sources, targets)
    scores, _ = _dependencies(G, weight, vertices, BY_PATHS, targets=ends)
    return G.by_node(_rescale(scores, normalized, G.is_directed(), len(G) - 1))


def edge_betweenness_centrality_subset(
    G: BackendGraph, sources: Any, targets: Any, normalized: bool = False, weight: Any = None
) -> dict[tuple[Any, Any], float]:
    """Return the shortest paths from the sources to the targets along each edge."""
    n = len(G)
    vertices, ends = _ends(G, sources, targets)
    _, (indptr, indices, _), edges = _dependencies_with_edges(G, weight, vertices, TO_TARGETS, targets=ends)
    heads = np.repeat(np.arange(n), np.diff(indptr))
    tails = indices.astype(np.int64)
    if not G.is_directed():
        tails, heads = np.minimum(tails, heads), np.maximum(tails, heads)
    keys, members = np.unique(tails * n + heads, return_inverse=True)
    scores = np.bincount(members, edges, minlength=len(keys))
    return _by_edge(G, keys, _rescale(scores, normalized, G.is_directed(), n))


def percolation_centrality(
    G: BackendGraph, attribute: Any = "percolation", states: dict[Any, float] | None = None, weight: Any = None
) -> dict[Any, float]:
    """Return the share of percolated paths through each node."""
    n = len(G)
    if states is None:
        states = {u: data.get(attribute, 1) for u, data in zip(G, G.node_data(), strict=True)}
    if n == 0:
        return {}
    if not all(u in states for u in G):
        raise NotImplementedError("a node has no state")
    if any(isinstance(state, np.generic) for state in states.values()):
        raise NotImplementedError("a state is a number of NumPy, of which results have the type")
    rest = sum(states.values(), 0.0) - np.array([states[u] for u in G], np.float64)
    if n > 1 and (rest == 0).any():
        raise NotImplementedError("a share of states is divided by zero")
    if n == 2:
        raise ZeroDivisionError("division by zero")
    shares = np.array([states[u] for u in G], np.float64)
    scores, _ = _dependencies(G, weight, np.arange(n), BY_PATHS, shares=shares)
    scores = np.divide(scores, rest, where=rest != 0, out=scores)
    return G.by_node(scores * (1 / (n - 2)))


def newman_betweenness_centrality(
    G: BackendGraph, v: Any = None, cutoff: float | None = None, normalized: bool = True, weight: Any = None
) -> Any:
    """Return the load of each node, or of one: packets are divided evenly between shortest next steps."""
    n = len(G)
    limit = np.inf if cutoff is None or (weight is None and not cutoff) else float(cutoff)
    if weight is None:
        # The first level is searched whatever the cutoff is, and the last one as a whole.
        limit = max(np.ceil(limit), 1.0)
    scores, _ = _dependencies(G, weight, np.arange(n), EVENLY, cutoff=limit)
    if normalized and n > 2:
        scores *= 1.0 / ((n - 1) * (n - 2))
    if v is None:
        return G.by_node(scores)
    return float(scores[G.topology.numbers[v]]) if v in G.topology.numbers else 0.0


def _sample(G: BackendGraph, k: Any, seed: Any) -> list[int]:
    """Draw k vertices; NumPy's generators draw arrays of nodes."""
    return [G.topology.numbers[node] for node in seed.sample(G.topology.nodes, k)]


def _ends(G: BackendGraph, sources: Any, targets: Any) -> tuple[Array, Array]:
    """Return the vertices of the sources, and 1 for each vertex among the targets."""
    numbers = G.topology.numbers
    vertices = np.array([numbers[u] for u in sources], np.int64)
    ends = np.zeros(len(G))
    ends[[numbers[u] for u in set(targets) if u in numbers]] = 1.0
    return vertices, ends


def _dependencies(G: BackendGraph, weight: Any, sources: Array, kind: int, **options: Any) -> tuple[Array, Array]:
    scores, _, edges = _dependencies_with_edges(G, weight, sources, kind, with_edges=False, **options)
    return scores, edges


def _dependencies_with_edges(
    G: BackendGraph,
    weight: Any,
    sources: Array,
    kind: int,
    *,
    targets: Array | None = None,
    shares: Array | None = None,
    cutoff: float = np.inf,
    with_edges: bool = True,
) -> tuple[Array, Any, Array]:
    """Return the sums of the dependencies on vertices, the rows of in-edges, and what flows over these."""
    n = len(G)
    out, back = rows_by_length(G, weight, positive=True)
    width = len(back[1]) if with_edges else 0
    blocks = max(1, min(_BLOCKS, len(sources), _BLOCK_MEMORY // (8 * (n + width) + 1)))
    scores, edges = np.zeros((blocks, n)), np.zeros((blocks, width))
    ones = np.ones(n)
    rows = (out, back, weight is not None)
    vectors = (ones if targets is None else targets, ones if shares is None else shares)
    results = (*vectors, kind, scores, edges)
    # Ctrl-C is handled between two blocks: they are kept short.
    for begin in range(0, len(sources), blocks * _PER_BLOCK):
        part = sources[begin : begin + blocks * _PER_BLOCK]
        parallel(add_dependencies, blocks, 1, *rows, part, blocks, cutoff, *results, threads=thread_count(None))
    return scores.sum(axis=0), back, edges.sum(axis=0)


def _rescale(scores: Array, normalized: bool, directed: bool, others: int) -> Array:
    """Scale sums over all sources; ``others`` nodes may be ends of paths."""
    if others < 2:
        return scores
    return scores * (1 / (others * (others - 1)) if normalized else 1 / (1 if directed else 2))


def _by_edge(G: BackendGraph, keys: Array, scores: Array) -> dict[tuple[Any, Any], float]:
    """Return scores in the order of NetworkX's edges; ``keys``, ascending, are n times the source plus the target."""
    topology = G.topology
    sources, targets = topology.sources.astype(np.int64), topology.neighbors.astype(np.int64)
    if not topology.directed:
        once = sources <= targets
        sources, targets = sources[once], targets[once]
    wanted = sources * len(G) + targets
    values = np.zeros(len(wanted))
    if len(keys):
        places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        known = keys[places] == wanted
        values[known] = scores[places[known]]
    edges = zip(G.nodes_at(sources), G.nodes_at(targets), strict=True)
    return dict(zip(edges, values.tolist(), strict=True))
