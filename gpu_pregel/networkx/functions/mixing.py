"""Pairs of degrees and attributes at the ends of edges, and the correlation of both ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from gpu_pregel.networkx.degrees import degree_values
from gpu_pregel.networkx.graph import Array, BackendGraph
from gpu_pregel.networkx.nodes import chosen_vertices
from gpu_pregel.networkx.rows import edges_of_rows

Mixing = dict[Any, dict[Any, Any]]

_MAX_TABLE = 1 << 22
"""Codes below this number are counted in a table, larger ones by sorting."""


class _Pairs(NamedTuple):
    """The values at both ends of edges: one for each vertex as source, one as target, and the edges in order."""

    at_source: list[Any]
    at_target: list[Any]
    sources: Array
    targets: Array

    def __iter__(self) -> Iterator[tuple[Any, Any]]:  # type: ignore[override]
        left = map(self.at_source.__getitem__, self.sources.tolist())
        return zip(left, map(self.at_target.__getitem__, self.targets.tolist()), strict=True)


def node_degree_xy(
    G: BackendGraph, x: str = "out", y: str = "in", weight: Any = None, nodes: Any = None
) -> Iterator[tuple[Any, Any]]:
    """Yield the degrees of both ends of each edge among some nodes."""
    yield from _pairs_of_degrees(G, x, y, weight, nodes)


def node_attribute_xy(G: BackendGraph, attribute: Any, nodes: Any = None) -> Iterator[tuple[Any, Any]]:
    """Yield the attributes of both ends of each edge of some nodes."""
    yield from _pairs_of_attributes(G, attribute, nodes)


def degree_mixing_dict(
    G: BackendGraph, x: str = "out", y: str = "in", weight: Any = None, nodes: Any = None, normalized: bool = False
) -> Mixing:
    """Count the edges by the degrees of their ends."""
    return _count(_pairs_of_degrees(G, x, y, weight, nodes), normalized)


def attribute_mixing_dict(G: BackendGraph, attribute: Any, nodes: Any = None, normalized: bool = False) -> Mixing:
    """Count the edges by an attribute of their ends."""
    return _count(_pairs_of_attributes(G, attribute, nodes), normalized)


def degree_mixing_matrix(
    G: BackendGraph,
    x: str = "out",
    y: str = "in",
    weight: Any = None,
    nodes: Any = None,
    normalized: bool = True,
    mapping: dict[Any, int] | None = None,
) -> Array:
    """Return the numbers or shares of edges by the degrees of their ends."""
    return _matrix(degree_mixing_dict(G, x, y, weight, nodes), mapping, normalized)


def attribute_mixing_matrix(
    G: BackendGraph, attribute: Any, nodes: Any = None, mapping: dict[Any, int] | None = None, normalized: bool = True
) -> Array:
    """Return the numbers or shares of edges by an attribute of their ends."""
    return _matrix(attribute_mixing_dict(G, attribute, nodes), mapping, normalized)


def degree_assortativity_coefficient(
    G: BackendGraph, x: str = "out", y: str = "in", weight: Any = None, nodes: Any = None
) -> float:
    """Return the correlation of the degrees of both ends, from the matrix of shares."""
    chosen = list(G) if nodes is None else nodes
    kinds = [kind for kind in ("in", "out") if kind in (x, y)] if G.is_directed() else ["in+out"]
    if nodes is not None and nodes in G and kinds:
        # The degree of one node is a number, which NetworkX tries to iterate over.
        degree = degree_values(G, kinds[0], weight)[G.topology.numbers[nodes]]
        raise TypeError(f"'{type(degree).__name__}' object is not iterable")
    rows = chosen_vertices(G, chosen)
    found: set[Any] = set()
    for kind in kinds:
        values = degree_values(G, kind, weight)
        found = found | {values[u] for u in rows.tolist()}
    mapping = {value: i for i, value in enumerate(found)}
    return _correlation(degree_mixing_matrix(G, x, y, weight, chosen, mapping=mapping), mapping)


def degree_pearson_correlation_coefficient(
    G: BackendGraph, x: str = "out", y: str = "in", weight: Any = None, nodes: Any = None
) -> float:
    """Return Pearson's correlation of the degrees of both ends."""
    import scipy.stats

    pairs = _pairs_of_degrees(G, x, y, weight, nodes)
    if not len(pairs.sources):
        raise ValueError("not enough values to unpack (expected 2, got 0)")
    left, right = np.array(pairs.at_source)[pairs.sources], np.array(pairs.at_target)[pairs.targets]
    return float(scipy.stats.pearsonr(left, right)[0])


def attribute_assortativity_coefficient(G: BackendGraph, attribute: Any, nodes: Any = None) -> float:
    """Return how much more often than at random both ends of an edge have the same attribute."""
    shares = attribute_mixing_matrix(G, attribute, nodes)
    if shares.sum() != 1.0:
        shares = shares / shares.sum()
    expected = (shares @ shares).sum()
    return float((shares.trace() - expected) / (1 - expected))


def numeric_assortativity_coefficient(G: BackendGraph, attribute: Any, nodes: Any = None) -> float:
    """Return the correlation of a numeric attribute of both ends."""
    data, numbers = G.node_data(), G.topology.numbers
    found = {data[numbers[u]][attribute] for u in (G if nodes is None else nodes)}
    mapping = {value: i for i, value in enumerate(found)}
    return _correlation(attribute_mixing_matrix(G, attribute, nodes, mapping), mapping)


def _pairs_of_degrees(G: BackendGraph, x: str, y: str, weight: Any, nodes: Any) -> _Pairs:
    """Return the pairs in NetworkX's order, that of the set of nodes."""
    chosen = set(G) if nodes is None else set(nodes)
    if G.is_directed():
        known = {"out": "out", "in": "in"}
        at_source, at_target = (degree_values(G, known[kind], weight) for kind in (x, y))
    else:
        at_source = at_target = degree_values(G, weight=weight)
    topology, numbers = G.topology, G.topology.numbers
    vertices = np.fromiter((numbers[u] for u in chosen if u in numbers), np.int64)
    inside = np.zeros(len(G), np.bool_)
    inside[vertices] = True
    edges = edges_of_rows(topology.indptr, vertices)
    edges = edges[inside[topology.neighbors[edges]]]
    return _Pairs(at_source, at_target, topology.sources[edges], topology.neighbors[edges])


def _pairs_of_attributes(G: BackendGraph, attribute: Any, nodes: Any) -> _Pairs:
    topology = G.topology
    values = [data.get(attribute) for data in G.node_data()]
    sources, targets = topology.sources, topology.neighbors
    if nodes is not None:
        chosen = set(nodes)
        kept = np.array([u in chosen for u in G], np.bool_)[sources]
        sources, targets = sources[kept], targets[kept]
    return _Pairs(values, values, sources, targets)


def _codes(values: Iterable[Any], table: dict[Any, int]) -> Array:
    """Number values that are equal alike, from 0."""
    return np.array([table.setdefault(value, len(table)) for value in values], np.int64)


def _count(pairs: _Pairs, normalized: bool) -> Mixing:
    """Count equal pairs; values and pairs are in the order in which they come first."""
    if not len(pairs.sources):
        return {}
    table: dict[Any, int] = {}
    left, right = _codes(pairs.at_source, table)[pairs.sources], _codes(pairs.at_target, table)[pairs.targets]
    firsts, counts = _first_places(left * len(table) + right, len(table) ** 2)
    places, _ = _first_places(np.stack([left, right], axis=1).ravel(), len(table))
    at_source, at_target = pairs.at_source, pairs.at_target
    ends = np.stack([pairs.sources, pairs.targets], axis=1).ravel()
    found: Mixing = {}
    for place, u in zip(places.tolist(), ends[places].tolist(), strict=True):
        found[(at_target if place % 2 else at_source)[u]] = {}
    shares = counts / float(len(left)) if normalized else counts
    for u, v, share in zip(*(a.tolist() for a in (ends[2 * firsts], ends[2 * firsts + 1], shares)), strict=True):
        found[at_source[u]][at_target[v]] = share
    return found


def _first_places(codes: Array, size: int) -> tuple[Array, Array]:
    """Return where each code below ``size`` comes first, ascending, and how often it comes."""
    if size > _MAX_TABLE:
        _, firsts, counts = np.unique(codes, return_index=True, return_counts=True)
    else:
        counts = np.bincount(codes, minlength=size)
        table = np.empty(size, np.int64)
        # Of several numbers written to one place, the last remains.
        table[codes[::-1]] = np.arange(len(codes))[::-1]
        firsts, counts = table[counts > 0], counts[counts > 0]
    order = np.argsort(firsts)
    return firsts[order], counts[order]


def _matrix(counts: Mixing, mapping: dict[Any, int] | None, normalized: bool) -> Array:
    if mapping is None:
        values = set(counts.keys())
        mapping = dict(zip(values, range(len(values)), strict=True))
    matrix = np.zeros((len(mapping), len(mapping)))
    for x, row in counts.items():
        for y, count in row.items():
            if x in mapping and y in mapping:
                matrix[mapping[x], mapping[y]] = count
    return matrix / matrix.sum() if normalized else matrix


def _correlation(shares: Array, mapping: dict[Any, int]) -> float:
    """Return the correlation of both ends, from the shares of pairs of values."""
    if shares.sum() != 1.0:
        shares = shares / shares.sum()
    values, places = np.array(list(mapping.keys())), list(mapping.values())
    to, of = shares.sum(axis=0)[places], shares.sum(axis=1)[places]
    variances = [(part * values**2).sum() - (part * values).sum() ** 2 for part in (to, of)]
    products = np.outer(values, values) * (shares - np.outer(to, of))
    return float(products.sum() / np.sqrt(variances[0] * variances[1]))
