"""What weighted algorithms must find, in exact arithmetic: fractions, and numbers of 60 digits for repeated sums.

Written from the documentation of the algorithms; nothing here is theirs. Each check returns what is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Number = Any
"""A fraction, or infinity."""
Row = dict[int, Number]

_CONTEXT = Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN)
_TINY = Fraction(1, 10**300)
"""Scores that are smaller may have underflowed."""


@dataclass(frozen=True)
class Edges:
    """A graph as a list of edges."""

    n: int
    directed: bool
    pairs: list[tuple[int, int]]
    weights: Array

    @property
    def columns(self) -> Array:
        """The ends of the edges, int64[2, k]."""
        return np.array(self.pairs, np.int64).reshape(-1, 2).T

    @property
    def has_negative(self) -> bool:
        """Whether a weight is below 0."""
        return bool((self.weights < 0).any())

    @cached_property
    def exact(self) -> list[Number]:
        """The weights."""
        return [one if one in (math.inf, -math.inf) else Fraction(one) for one in self.weights.tolist()]

    @cached_property
    def arcs(self) -> list[tuple[int, int, Number]]:
        """The edges in each direction in which they lead; a self-loop once."""
        found = []
        for (u, v), weight in zip(self.pairs, self.exact, strict=True):
            found += [(u, v, weight), *([(v, u, weight)] if not self.directed and u != v else [])]
        return found

    def __str__(self) -> str:
        kind = "directed" if self.directed else "undirected"
        return f"{self.n} {kind} vertices, {self.pairs}, {self.weights.dtype} {self.weights.tolist()}"


Check = Callable[[Edges, dict[str, Any], Any], list[str]]


def total(edges: Edges) -> Number:
    """Return the sum of the weights, each edge once."""
    return math.inf if math.inf in edges.exact else sum(edges.exact, Fraction(0))


def row_totals(edges: Edges) -> list[Number]:
    """Return the sum of the weights of the out-edges of each vertex."""
    sums = [Fraction(0)] * edges.n
    for u, _, weight in edges.arcs:
        sums[u] += weight
    return sums


def rounded(value: Fraction, dtype: Any) -> Number:
    """Return the nearest number of a float dtype, or infinity."""
    info = np.finfo(dtype)
    if value == 0:
        return value
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    exponent -= value < Fraction(2) ** exponent
    unit = Fraction(2) ** (max(exponent, int(info.minexp)) - int(info.nmant))
    nearest = round(value / unit) * unit
    return nearest if nearest <= Fraction(float(info.max)) else math.inf


def _is_near(found: float, expected: Fraction, relative: float = 1e-9, absolute: Fraction = _TINY) -> bool:
    if not math.isfinite(found):
        return False
    return abs(Fraction(found) - expected) <= Fraction(relative) * abs(expected) + absolute


def _compare(name: str, found: Any, expected: list[Fraction], **tolerances: Any) -> list[str]:
    numbers = np.asarray(found, np.float64).tolist()
    if len(numbers) != len(expected):
        return [f"there are {len(numbers)} {name}, not {len(expected)}"]
    return [
        f"{name}[{i}] is {one!r}, not {float(other)!r}"
        for i, (one, other) in enumerate(zip(numbers, expected, strict=True))
        if not _is_near(one, other, **tolerances)
    ]


# Shortest paths.


def _distances(n: int, arcs: list[tuple[int, int, Number]], sources: list[int], dtype: Any) -> list[Number]:
    """Return the smallest sums of weights along paths, each step rounded; rounding keeps the order of sums."""
    found: list[Number] = [math.inf] * n
    for source in sources:
        found[source] = Fraction(0)
    changed = True
    while changed:
        changed = False
        for u, v, weight in arcs:
            if math.inf not in (found[u], weight) and (longer := _sum(found[u], weight, dtype)) < found[v]:
                found[v], changed = longer, True
    return found


def _sum(one: Fraction, other: Fraction, dtype: Any) -> Number:
    return rounded(one + other, dtype) if np.dtype(dtype).kind == "f" else one + other


def _tight(arcs: list[tuple[int, int, Number]], distances: list[Number], dtype: Any) -> list[tuple[int, int]]:
    """Return the edges whose weight is the difference of the distances of their ends."""
    return [
        (u, v)
        for u, v, weight in arcs
        if math.inf not in (distances[u], distances[v], weight) and _sum(distances[u], weight, dtype) == distances[v]
    ]


def _places(distances: list[Number], tight: list[tuple[int, int]], sources: list[int]) -> list[tuple[Number, int]]:
    """Return distances, each with the number of edges that do not change it on the shortest way from a smaller one."""
    begun = {v for u, v in tight if distances[u] < distances[v]} | set(sources)
    hops = dict.fromkeys(begun, 0)
    for _ in distances:
        for u, v in tight:
            if u in hops and distances[u] == distances[v]:
                hops[v] = min(hops.get(v, hops[u] + 1), hops[u] + 1)
    return [(distance, hops.get(v, 0)) for v, distance in enumerate(distances)]


def check_paths(edges: Edges, options: dict[str, Any], found: Any) -> list[str]:
    """Compare the distances and predecessors of ``sssp``."""
    weights, numbers = edges.weights, np.asarray(found)
    is_float = weights.dtype.kind == "f"
    if numbers.dtype != (weights.dtype if is_float else np.int64):
        return [f"distances have the dtype {numbers.dtype}"]
    sources = sorted(options["source"])
    expected = _distances(edges.n, edges.arcs, sources, weights.dtype)
    none = math.inf if is_float else 2**63 - 1
    if numbers.tolist() != [none if one == math.inf else one for one in expected]:
        return [f"the distances are {numbers.tolist()}, not {[float(one) for one in expected]}"]
    tight = _tight(edges.arcs, expected, weights.dtype)
    places = _places(expected, tight, sources)
    before = [min((u for u, w in tight if w == v and places[u] < places[v]), default=-1) for v in range(edges.n)]
    for source in sources:
        before[source] = source
    if found.predecessors.tolist() != before:
        return [f"the predecessors are {found.predecessors.tolist()}, not {before}"]
    return []


def _dependencies(edges: Edges) -> Iterator[tuple[int, list[int], dict[tuple[int, int], Fraction], Row]]:
    """Yield each source with the vertices that it reaches, and its dependencies on edges and vertices."""
    shortest: dict[tuple[int, int], Number] = {}
    for u, v, weight in edges.arcs:
        length = weight if weight == math.inf else rounded(weight, np.float64)
        shortest[u, v] = min(length, shortest.get((u, v), length))
    arcs = [(u, v, length) for (u, v), length in shortest.items()]
    for source in range(edges.n):
        distances = _distances(edges.n, arcs, [source], np.float64)
        tight = _tight(arcs, distances, np.float64)
        places = _places(distances, tight, [source])
        tight = [(u, v) for u, v in tight if places[u] < places[v]]
        reached = sorted((v for v in range(edges.n) if distances[v] != math.inf), key=places.__getitem__)
        paths, lasting = dict.fromkeys(reached, 0), dict.fromkeys(reached, Fraction(0))
        paths[source] = 1
        for v in reached:
            paths[v] += sum(paths[u] for u, w in tight if w == v)
        parts = {}
        for v in reversed(reached):
            for u, w in tight:
                if w == v:
                    parts[u, v] = Fraction(paths[u], paths[v]) * (1 + lasting[v])
                    lasting[u] += parts[u, v]
        yield source, reached, parts, lasting


def check_betweenness(edges: Edges, options: dict[str, Any], found: Any) -> list[str]:
    """Compare the scores of vertices, scaled as by NetworkX."""
    n, ends = edges.n, options["endpoints"]
    scores = [Fraction(0)] * n
    for source, reached, _, lasting in _dependencies(edges):
        for v in reached:
            if v != source:
                scores[v] += lasting[v] + ends
                scores[source] += ends
    scale = _pairs_scale(n if ends else n - 1, options["normalized"], edges.directed)
    return _compare("scores", found, [scale * score for score in scores])


def check_edge_betweenness(edges: Edges, options: dict[str, Any], found: Any) -> list[str]:
    """Compare the scores of edges."""
    order = (lambda pair: pair) if edges.directed else (lambda pair: tuple(sorted(pair)))
    scores = {order(pair): Fraction(0) for pair in sorted(map(order, edges.pairs)) if pair[0] != pair[1]}
    for _, _, parts, _ in _dependencies(edges):
        for pair, part in parts.items():
            scores[order(pair)] += part
    pairs = list(zip(found.edge_sources.tolist(), found.edge_targets.tolist(), strict=True))
    if pairs != list(scores):
        return [f"the edges are {pairs}"]
    scale = _pairs_scale(edges.n, options["normalized"], edges.directed)
    return _compare("scores", found, [scale * score for score in scores.values()])


def _pairs_scale(others: int, normalized: bool, directed: bool) -> Fraction:
    if others < 2:
        return Fraction(1)
    return Fraction(1, others * (others - 1)) if normalized else Fraction(1, 1 if directed else 2)


# Repeated sums, in numbers of 60 digits.

Vector = list[Decimal]


def _decimals(edges: Edges) -> list[tuple[int, int, Decimal]]:
    return [(u, v, Decimal(weight.numerator) / Decimal(weight.denominator)) for u, v, weight in edges.arcs]


def _advance(arcs: list[tuple[int, int, Decimal]], values: Vector) -> Vector:
    sums = [Decimal(0)] * len(values)
    for u, v, weight in arcs:
        sums[v] += values[u] * weight
    return sums


def _change(one: Vector, other: Vector) -> Decimal:
    return sum((abs(a - b) for a, b in zip(one, other, strict=True)), Decimal(0))


def _check_iterated(
    options: dict[str, Any], found: Any, scores: dict[str, Vector], errors: Vector, slack: float, relative: float = 0
) -> list[str]:
    """Compare scores after the iterations, of which each had an error; the last may be the first below a tolerance."""
    problems = []
    for name, expected in scores.items():
        fractions = [Fraction(one) for one in expected]
        problems += _compare(name, getattr(found, name), fractions, relative=relative, absolute=Fraction(slack))
    rounding = 20 * max(slack, 1e-14)
    if not _is_near(found.error, Fraction(errors[-1]), 1e-6, Fraction(rounding)):
        problems.append(f"the error is {found.error}, not {float(errors[-1])}")
    if found.converged != (found.error < options["tolerance"]):
        problems.append(f"converged is {found.converged} with an error of {found.error}")
    if not found.converged and found.iterations != options["max_iterations"]:
        problems.append(f"it ends after {found.iterations} iterations")
    if any(float(error) < options["tolerance"] - rounding for error in errors[:-1]):
        problems.append(f"it goes on to iteration {found.iterations} after errors of {[*map(float, errors)]}")
    return problems


def check_pagerank(edges: Edges, options: dict[str, Any], found: Any) -> list[str]:
    """Repeat the iterations of ``pagerank``."""
    with localcontext(_CONTEXT):
        n, damping, arcs = edges.n, Decimal(options["damping"]), _decimals(edges)
        totals = [Decimal(one.numerator) / Decimal(one.denominator) for one in row_totals(edges)]
        scores, errors = [Decimal(1) / n] * n, []
        for _ in range(found.iterations):
            shares = [score / sent if sent else Decimal(0) for score, sent in zip(scores, totals, strict=True)]
            dangling = sum((one for one, sent in zip(scores, totals, strict=True) if not sent), Decimal(0))
            jump = (1 - damping + damping * dangling) / n
            following = [jump + damping * one for one in _advance(arcs, shares)]
            errors.append(_change(following, scores))
            scores = following
        slack = 1e-13 if options["dtype"] is np.float64 else 3e-6
        return _check_iterated(options, found, {"scores": scores}, errors, slack)


def check_hits(edges: Edges, options: dict[str, Any], found: Any) -> list[str]:
    """Repeat the iterations of ``hits``."""
    with localcontext(_CONTEXT):
        along = _decimals(edges)
        against = [(v, u, weight) for u, v, weight in along]
        hubs, scores, errors = [Decimal(1) / edges.n] * edges.n, [Decimal(0)] * edges.n, []
        for _ in range(found.iterations):
            following = _over(_advance(along, hubs))
            others = _over(_advance(against, following))
            errors.append(_change(following, scores) + _change(others, hubs))
            scores, hubs = following, others
        return _check_iterated(options, found, {"scores": scores, "hubs": hubs}, errors, 1e-12)


def _over(vector: Vector) -> Vector:
    divisor = sum(vector, Decimal(0)) or Decimal(1)
    return [one / divisor for one in vector]


def check_eigenvector(edges: Edges, options: dict[str, Any], found: Any) -> list[str]:
    """Repeat the iterations of ``eigenvector_centrality``."""
    with localcontext(_CONTEXT):
        arcs, scores, errors = _decimals(edges), [Decimal(1) / edges.n] * edges.n, []
        for _ in range(found.iterations):
            following = [one + other for one, other in zip(scores, _advance(arcs, scores), strict=True)]
            following = _unit(following)
            errors.append(_change(following, scores))
            scores = following
        return _check_iterated(options, found, {"scores": scores}, errors, 1e-200, 1e-10)


def _unit(vector: Vector) -> Vector:
    length = sum((one * one for one in vector), Decimal(0)).sqrt()
    return [one / length for one in vector]


def check_katz(edges: Edges, options: dict[str, Any], found: Any) -> list[str]:
    """Repeat the iterations of ``katz_centrality``, whose factor must let them converge."""
    with localcontext(_CONTEXT):
        arcs, alpha = _decimals(edges), Decimal(found.alpha)
        into = max(_advance(arcs, [Decimal(1)] * edges.n))
        if alpha * into > Decimal("0.9000001") or (into > Decimal("1e-300") and alpha * into < Decimal("0.8999999")):
            return [f"alpha is {found.alpha}, and the largest in-weight {float(into)}"]
        scores, errors = [Decimal(0)] * edges.n, []
        for _ in range(found.iterations):
            following = [1 + alpha * one for one in _advance(arcs, scores)]
            errors.append(_change(following, scores))
            scores = following
        expected = _unit(scores) if options["normalized"] else scores
        return _check_iterated(options, found, {"scores": expected}, errors, 1e-14, 1e-12)


# Similarity.


def check_similarity(
    coefficient: Callable[[Row, Row], Fraction], edges: Edges, options: dict[str, Any], found: Any
) -> list[str]:
    """Compare coefficients with those of the rows of the smallest weights."""
    rows: list[Row] = [{} for _ in range(edges.n)]
    for u, v, weight in edges.arcs:
        if u != v:
            rows[u][v] = min(weight, rows[u].get(v, weight))
    pairs = list(zip(found.first.tolist(), found.second.tolist(), strict=True))
    if pairs != (options["pairs"] or [(u, v) for u, row in enumerate(rows) for v in sorted(row) if u < v]):
        return [f"the pairs are {pairs}"]
    return _compare("scores", found, [coefficient(rows[u], rows[v]) for u, v in pairs], relative=1e-13)


def _minima(one: Row, other: Row) -> Fraction:
    return sum((min(one[v], other[v]) for v in one.keys() & other.keys()), Fraction(0))


def _quotient(part: Fraction, whole: Fraction | int) -> Fraction:
    return part / whole if whole else Fraction(0)


def jaccard(one: Row, other: Row) -> Fraction:
    """Return the sum of the smaller weights divided by that of the larger ones."""
    return _quotient(_minima(one, other), sum(one.values()) + sum(other.values()) - _minima(one, other))


def overlap(one: Row, other: Row) -> Fraction:
    """Return the sum of the smaller weights divided by the smaller sum."""
    return _quotient(_minima(one, other), min(sum(one.values()), sum(other.values())))


def cosine(one: Row, other: Row) -> Fraction:
    """Return the cosine of the angle of two rows."""
    squares = [sum(weight * weight for weight in row.values()) for row in (one, other)]
    product = sum((one[v] * other[v] for v in one.keys() & other.keys()), Fraction(0))
    square = _quotient(product * product, squares[0] * squares[1])
    with localcontext(_CONTEXT):
        return Fraction((Decimal(square.numerator) / Decimal(square.denominator)).sqrt())


# Communities.


def modularity(edges: Edges, labels: list[int], resolution: float) -> Fraction:
    """Return the modularity of communities."""
    degrees = [Fraction(0)] * edges.n
    inner = Fraction(0)
    for (u, v), weight in zip(edges.pairs, edges.exact, strict=True):
        degrees[u] += weight
        degrees[v] += weight
        inner += 2 * weight if labels[u] == labels[v] else 0
    whole, loss = sum(degrees), Fraction(0)
    for label in set(labels):
        share = sum((degrees[v] for v in range(edges.n) if labels[v] == label), Fraction(0))
        loss += _quotient(share, whole) ** 2
    return _quotient(inner, whole) - Fraction(resolution) * loss


def check_modularity(edges: Edges, labels: list[int], resolution: float, found: float) -> list[str]:
    """Compare a modularity."""
    expected = modularity(edges, labels, resolution)
    if _is_near(found, expected, 0, Fraction(1e-13 * (1 + resolution))):
        return []
    return [f"the modularity of {labels} is {found}, not {float(expected)}"]


def check_communities(edges: Edges, options: dict[str, Any], found: Any) -> list[str]:
    """Compare the modularity of communities with its definition, and with that of single vertices."""
    labels, resolution = np.asarray(found).tolist(), options["resolution"]
    if sorted(set(labels), key=labels.index) != list(range(len(set(labels)))):
        return [f"the labels are {labels}"]
    single = modularity(edges, list(range(edges.n)), resolution)
    if modularity(edges, labels, resolution) < single - Fraction(1e-13 * (1 + resolution)):
        return [f"the labels {labels} are worse than single vertices"]
    return check_modularity(edges, labels, resolution, found.modularity)


def check_connected(edges: Edges, options: dict[str, Any], found: Any) -> list[str]:
    """Check communities, which edges above 0 must connect."""
    labels = np.asarray(found).tolist()
    inner = [(u, v) for u, v, weight in edges.arcs if weight > 0 and labels[u] == labels[v]]
    apart = [v for v, root in enumerate(_components(edges.n, inner)) if root != labels.index(labels[v])]
    return [f"{apart} are apart in {labels}"] if apart else check_communities(edges, options, found)


# Forests and walks.


def _components(n: int, pairs: list[tuple[int, int]]) -> list[int]:
    """Return the smallest vertex of the component of each vertex."""
    labels = list(range(n))
    for _ in range(n):
        for u, v in pairs:
            labels[u] = labels[v] = min(labels[u], labels[v])
    return labels


def check_forest(edges: Edges, options: dict[str, Any], found: Any) -> list[str]:
    """Take edges by weight, then by their smaller and larger vertices, where they join two trees."""
    sign = -1 if options["maximum"] else 1
    rows = sorted((sign * w, min(pair), max(pair)) for pair, w in zip(edges.pairs, edges.exact, strict=True))
    taken: dict[tuple[int, int], Number] = {}
    for key, u, v in rows:
        labels = _components(edges.n, list(taken))
        if labels[u] != labels[v]:
            taken[u, v] = sign * key
    expected = {pair: taken[pair] for pair in sorted(taken)}
    numbers = found.weights.tolist()
    if [tuple(pair) for pair in found.edges.tolist()] != list(expected) or numbers != list(expected.values()):
        return [f"the forest is {found.edges.tolist()} with {numbers}, not {expected}"]
    if found.labels.tolist() != _components(edges.n, edges.pairs):
        return [f"the labels are {found.labels.tolist()}"]
    return _check_total(found.total_weight, list(expected.values()))


def _check_total(found: float, weights: list[Number]) -> list[str]:
    """Compare a sum of weights: exact for integers, infinite beyond float64, and none of infinities of both signs."""
    infinite = {one for one in weights if one in (math.inf, -math.inf)}
    if infinite:
        right = math.isnan(found) if len(infinite) == 2 else found == infinite.pop()
    else:
        exact = sum(weights, Fraction(0))
        size = sum(map(abs, weights), Fraction(0))
        if isinstance(found, int):
            right = found == exact
        elif math.isinf(found):
            right = abs(exact) > Fraction(1.797e308)
        else:
            right = _is_near(found, exact, 0, Fraction(1e-14) * size)
    return [] if right else [f"the total weight of {[*map(float, weights)]} is {found}"]


def check_walks(edges: Edges, options: dict[str, Any], found: Any) -> list[str]:
    """Check that walks follow edges of positive weight as far as there are any, and none of next to no probability."""
    rows: list[Row] = [{} for _ in range(edges.n)]
    for u, v, weight in edges.arcs:
        rows[u][v] = rows[u].get(v, Fraction(0)) + weight
    for walk in np.asarray(found).tolist():
        for i in range(1, len(walk)):
            before, after = walk[i - 1 : i + 1]
            row = rows[before] if before >= 0 else {}
            if i > 1:
                row = {v: weight * _bias(rows, walk[i - 2], v, options) for v, weight in row.items()}
            if not any(row.values()) if after < 0 else row.get(after, 0) > sum(row.values()) / 2**50:
                continue
            shares = {v: float(share / (sum(row.values()) or 1)) for v, share in row.items()}
            return [f"the walk {walk} goes from {before} to {after}, and the probabilities there are {shares}"]
    return []


def _bias(rows: list[Row], t: int, v: int, options: dict[str, Any]) -> Fraction:
    """Return the factor of an edge to v on a walk that came from t, as in node2vec."""
    if v == t:
        return 1 / Fraction(options["p"])
    return Fraction(1) if v in rows[t] else 1 / Fraction(options["q"])
