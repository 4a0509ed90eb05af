"""Communities merged by the largest gain of modularity."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.kernels.networkx.greedy_merging_cpu import fill_heap, merge_best
from gpu_pregel.networkx.edge_lists import edges_once, merged
from gpu_pregel.networkx.graph import Array, BackendGraph

_MERGES_PER_CALL = 256
_ENTRIES_PER_RECORD = 4


def greedy_modularity_communities(
    G: BackendGraph, weight: str | None = None, resolution: float = 1, cutoff: int = 1, best_n: int | None = None
) -> list[Any]:
    """Return the communities of largest modularity that merging finds, from the largest on."""
    n, nodes = len(G), G.topology.nodes
    if G.topology.m == 0:
        return [{node} for node in nodes]
    if cutoff < 1 or cutoff > n:
        raise ValueError(f"cutoff must be between 1 and {n}. Got {cutoff}.")
    if best_n is not None:
        if best_n < 1 or best_n > n:
            raise ValueError(f"best_n must be between 1 and {n}. Got {best_n}.")
        if best_n < cutoff:
            raise ValueError(f"Must have best_n >= cutoff. Got {best_n} < {cutoff}")
        if best_n == 1:
            return [set(nodes)]
    most = n if best_n is None else best_n
    members: dict[int, list[int]] = {v: [v] for v in range(n)}
    merges, ended = _merges(G, weight, float(resolution), cutoff, most)
    for u, v in merges.tolist():
        members[v] += members.pop(u)
    communities = sorted((frozenset(nodes[v] for v in part) for part in members.values()), key=len, reverse=True)
    # Communities that are not connected with others are merged in the end.
    while ended and len(communities) > most:
        communities[:2] = [communities[0] ^ communities[1]]
    return communities


def _merges(G: BackendGraph, weight: str | None, resolution: float, cutoff: int, most: int) -> tuple[Array, bool]:
    """Return the pairs of communities that are merged, and whether there were no adjacent ones left."""
    n = len(G)
    G.moderate_values(weight)
    edges = edges_once(G, weight)
    out_degrees, in_degrees, size = _degrees(G, weight)
    share = 1 / size
    shares = [out_degrees * share, in_degrees * share] if G.is_directed() else [out_degrees * share * 0.5]
    out_shares, in_shares = shares[0], shares[-1]
    pairs = merged(edges.without_loops(), n, both=True)
    u, v = pairs.sources.astype(np.int64), pairs.targets.astype(np.int64)
    expected = out_shares[u] * in_shares[v] + in_shares[u] * out_shares[v]
    gains = share * pairs.weights - resolution * expected
    owners = np.stack([u, v], axis=1).ravel()
    first, following, previous = _lists(owners, n)
    ranks = np.empty(n, np.int64)
    ranks[sorted(range(n), key=G.topology.nodes.__getitem__)] = np.arange(n)
    capacity = _ENTRIES_PER_RECORD * len(gains) + n
    heap = np.empty(capacity), np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    sizes = np.array([fill_heap(gains, owners, ranks, *heap), n])
    parts, goes_on = [np.empty((0, 2), np.int64)], True
    while goes_on and sizes[1] > cutoff:
        part = np.empty((min(_MERGES_PER_CALL, int(sizes[1]) - cutoff), 2), np.int64)
        count, goes_on = merge_best(
            *(resolution, G.is_directed(), ranks, out_shares, in_shares, owners, gains, first, following, previous),
            *(np.full(n, -1), sizes, *heap, most, part),
        )
        parts.append(part[:count])
    return np.concatenate(parts), not goes_on and not np.isfinite(gains).any()


def _degrees(G: BackendGraph, weight: str | None) -> tuple[Array, Array, float]:
    """Return the sums of the weights of the out- and in-edges of each vertex, and the size of the graph."""
    topology, n = G.topology, len(G)
    values = G.edge_values(weight, mixed=True)
    weights = np.ones(topology.m) if values is None else values.astype(np.float64)
    out_degrees = np.bincount(topology.sources, weights, n)
    if topology.directed:
        in_degrees = np.bincount(topology.neighbors, weights, n)
        return out_degrees, in_degrees, sum((out_degrees + in_degrees).tolist()) / 2
    loops = topology.sources == topology.neighbors
    out_degrees += np.bincount(topology.sources[loops], weights[loops], n)
    return out_degrees, out_degrees, sum(out_degrees.tolist()) / 2


def _lists(owners: Array, n: int) -> tuple[Array, Array, Array]:
    """Return the lists of the ends of each owner: the first, the following and the previous one of each."""
    order = np.argsort(owners, kind="stable")
    first, following, previous = (np.full(length, -1) for length in (n, len(owners), len(owners)))
    begins = np.ones(len(order), bool)
    begins[1:] = owners[order[1:]] != owners[order[:-1]]
    first[owners[order[begins]]] = order[begins]
    inner = np.flatnonzero(~begins)
    previous[order[inner]] = order[inner - 1]
    following[order[inner - 1]] = order[inner]
    return first, following, previous
