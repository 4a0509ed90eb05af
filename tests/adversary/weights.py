"""Random small graphs with extreme weights, on which each weighted algorithm must be right or say what is wrong.

Results on several devices are compared with those of ``weight_oracles``, which computes exactly. Any error that is not
one of the package's, any warning, and differences between devices that the documentation rules out are problems too.
"""

from __future__ import annotations

import inspect
import math
import random
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import gpu_pregel as gp
from gpu_pregel.algorithms.registry import ALGORITHMS
from gpu_pregel.algorithms.registry import algorithm as entry_of
from gpu_pregel.errors import GpuPregelError, VerificationError
from tests.adversary import weight_oracles as oracles
from tests.adversary.weight_oracles import Edges

_FLOATS = (
    *(0.0, -0.0, 5e-324, 1e-323, 2.3e-308, 1e-300, 1e-160, 1e-45, 1e-20, 2.0**-60, 0.1, 0.3, 1.0, 1.0, 2.0, 3.0),
    *(2.0**53, 2.0**53 + 2, 2.0**60, 1e20, 3.4e38, 1e149, 1e160, 1e300, 1.7e308, math.inf),
)
_SINGLES = (0.0, -0.0, 1e-45, 3e-45, 1.2e-38, 1e-20, 0.1, 1.0, 1.0, 2.0, 3.0, 2.0**24, 1e20, 1e38, 3.4e38, math.inf)
_INTEGERS = (0, 1, 1, 2, 3, 2**31 - 1, 2**32 - 1, 2**53, 2**53 + 1, 2**59, 2**62 - 1, 2**63 - 1, 2**64 - 1)
_DTYPES = (*("float64",) * 4, "float32", "float32", "int64", "uint64", "int32", "uint32")
_LARGEST = 1e150
"""The limit of the sum of weights in most algorithms' documentation."""


def random_edges(chance: random.Random) -> Edges:
    """Return a graph of up to 12 vertices; few different weights, so that many sums are equal."""
    n, dtype, directed = chance.randint(1, 12), np.dtype(chance.choice(_DTYPES)), chance.random() < 0.5
    pairs = [(chance.randrange(n), chance.randrange(n)) for _ in range(chance.choice((0, n, 2 * n, 3 * n)))]
    if pairs and chance.random() < 0.5:
        pairs += chance.choices(pairs, k=chance.randint(1, 4))
    if dtype.kind == "f":
        values: list[Any] = list(_FLOATS if dtype.itemsize == 8 else _SINGLES)
        limit = chance.choice((math.inf, 1e308, 1e149, 1e149, 1e40, 1e-300))
    else:
        values, limit = [one for one in _INTEGERS if one <= np.iinfo(dtype).max], chance.choice((math.inf, 2**59))
    values = [one for one in values if one <= limit and (one > 0 or limit != chance.choice((1e149, 2**59)))]
    if chance.random() < 0.5:
        values = [one for one in values if one > 0] or [1]
    palette = chance.choices(values, k=chance.randint(1, 5))
    if dtype.kind != "u" and chance.random() < 0.06:
        palette.append(-chance.choice(palette))
    weights = np.array([chance.choice(palette) for _ in pairs], dtype)
    return Edges(n, directed, pairs, weights)


# Errors: whether one must be raised (True), must not (False), or may be (None).


def _fails_by_total(edges: Edges, options: dict[str, Any]) -> bool | None:
    total = oracles.total(edges)
    if edges.has_negative or total > _LARGEST * (1 + 1e-9):  # the total of floats is rounded
        return True
    if total > _LARGEST / 2:
        return None
    limits = np.finfo(options.get("dtype", np.float64))
    if "damping" not in options or not (sums := [one for one in oracles.row_totals(edges) if one > 0]):
        return False
    if max(sums) > float(limits.max) or min(sums) < float(limits.tiny):
        near = max(sums) < 1.001 * float(limits.max) and min(sums) > 0.999 * float(limits.tiny)
        return None if near else True
    return False


def _fails_by_lengths(edges: Edges, options: dict[str, Any]) -> bool | None:
    return bool((edges.weights <= 0).any())


def _fails_by_paths(edges: Edges, options: dict[str, Any]) -> bool | None:
    if edges.weights.dtype.kind == "f" or edges.has_negative:
        return edges.has_negative
    return int(edges.weights.max(initial=0)) * edges.n > 2**63 - 2


def _fails_by_sum(edges: Edges, options: dict[str, Any]) -> bool | None:
    total, largest = oracles.total(edges), float(np.finfo(np.float64).max)
    if edges.has_negative or total > largest:
        return True
    return False if 4 * total < largest else None


def _never_fails(edges: Edges, options: dict[str, Any]) -> bool | None:
    return False


# Options of calls.

_Options = Callable[[random.Random, Edges], dict[str, Any]]


def _iteration_options(chance: random.Random, edges: Edges) -> dict[str, Any]:
    return {"max_iterations": chance.choice((1, 2, 7, 60)), "tolerance": chance.choice((0.0, 1e-6, 1e-3))}


def _pagerank_options(chance: random.Random, edges: Edges) -> dict[str, Any]:
    own = {"damping": chance.choice((0.85, 0.5)), "dtype": chance.choice((np.float64, np.float64, np.float32))}
    return {**_iteration_options(chance, edges), **own}


def _katz_options(chance: random.Random, edges: Edges) -> dict[str, Any]:
    return {**_iteration_options(chance, edges), "normalized": chance.random() < 0.5}


def _path_options(chance: random.Random, edges: Edges) -> dict[str, Any]:
    sources = chance.sample(range(edges.n), k=chance.choice((1, 1, min(2, edges.n))))
    return {"source": sources, "delta": chance.choice((None, None, None, math.inf, 1e-5, 1.0, 1e300))}


def _pair_options(chance: random.Random, edges: Edges) -> dict[str, Any]:
    return {"pairs": chance.choice((None, [(u, v) for u in range(edges.n) for v in range(edges.n)]))}


def _community_options(chance: random.Random, edges: Edges) -> dict[str, Any]:
    return {"resolution": chance.choice((1.0, 1.0, 0.0, 0.3, 1e6)), "seed": chance.randrange(5)}


def _walk_options(chance: random.Random, edges: Edges) -> dict[str, Any]:
    p, q = chance.choice(((1.0, 1.0), (1.0, 1.0), (0.25, 4.0), (1e30, 0.5), (1e-30, 1e100)))
    return {"starts": list(range(edges.n)) * 3, "length": 6, "p": p, "q": q, "seed": chance.randrange(1000)}


def _betweenness_options(chance: random.Random, edges: Edges) -> dict[str, Any]:
    return {"normalized": chance.random() < 0.5, "endpoints": chance.random() < 0.5}


_ITERATED = (_iteration_options, _fails_by_total)
_SIMILARITY = (_pair_options, _fails_by_total)
_COMMUNITIES = (_community_options, _fails_by_sum)
CHECKS: dict[str, tuple[_Options, Callable[[Edges, dict[str, Any]], bool | None], oracles.Check]] = {
    "sssp": (_path_options, _fails_by_paths, oracles.check_paths),
    "betweenness_centrality": (_betweenness_options, _fails_by_lengths, oracles.check_betweenness),
    "edge_betweenness_centrality": (
        lambda chance, edges: {"normalized": chance.random() < 0.5},
        _fails_by_lengths,
        oracles.check_edge_betweenness,
    ),
    "pagerank": (_pagerank_options, _fails_by_total, oracles.check_pagerank),
    "hits": (*_ITERATED, oracles.check_hits),
    "eigenvector_centrality": (*_ITERATED, oracles.check_eigenvector),
    "katz_centrality": (_katz_options, _fails_by_total, oracles.check_katz),
    "jaccard": (*_SIMILARITY, partial(oracles.check_similarity, oracles.jaccard)),
    "overlap": (*_SIMILARITY, partial(oracles.check_similarity, oracles.overlap)),
    "cosine": (*_SIMILARITY, partial(oracles.check_similarity, oracles.cosine)),
    "louvain": (*_COMMUNITIES, oracles.check_communities),
    "leiden": (*_COMMUNITIES, oracles.check_connected),
    "minimum_spanning_forest": (
        lambda chance, edges: {"maximum": chance.random() < 0.5},
        _never_fails,
        oracles.check_forest,
    ),
    "random_walks": (_walk_options, _fails_by_total, oracles.check_walks),
}
"""Options, errors and the check of the results of each algorithm that reads weights."""
SAME = ("sssp", "louvain", "leiden", "minimum_spanning_forest", "random_walks")
"""Those that promise the same result on every device."""


def takes_weighted() -> set[str]:
    """Return the algorithms of the registry with an argument ``weighted``."""
    return {entry.name for entry in ALGORITHMS if "weighted" in inspect.signature(entry.load()).parameters}


def try_graph(chance: random.Random, devices: tuple[str, ...] = ("cpu", "python")) -> list[str]:
    """Run each weighted algorithm on a random graph; return what is wrong."""
    edges = random_edges(chance)
    if chance.random() < 0.03 and len(devices) > 1:
        devices = (*devices, "emulated")
    src, dst = edges.columns
    graph = gp.Graph.from_edgelist(src, dst, edges.weights, num_vertices=edges.n, directed=edges.directed)
    problems = []
    for name, (options_of, *_) in CHECKS.items():
        options = options_of(chance, edges)
        if edges.directed and "undirected" in entry_of(name).requires:
            continue
        found = _try(name, edges, graph, options, devices)
        problems += [f"{name}({options}) of {edges}: {problem}" for problem in found]
    if not edges.directed:
        labels = [chance.randrange(3) for _ in range(edges.n)]
        score = _call(partial(gp.modularity, graph, labels), _fails_by_sum(edges, {}))
        found = oracles.check_modularity(edges, labels, 1.0, score) if isinstance(score, float) else [score]
        problems += [f"modularity({labels}) of {edges}: {problem}" for problem in found if problem]
    return problems


def _try(name: str, edges: Edges, graph: gp.Graph, options: dict[str, Any], devices: tuple[str, ...]) -> list[str]:
    """Run an algorithm on each device; return what is wrong."""
    _, fails, check = CHECKS[name]
    entry, expected, problems, results = entry_of(name), fails(edges, options), [], {}
    for device in devices:
        found = _call(partial(entry.load(), graph, **options, device=device), expected)
        if isinstance(found, str):
            problems.append(f"on {device}, {found}")
        elif found is not None:
            results[device] = np.asarray(found)
            own = [_call(partial(_report, found), False), _call(partial(entry.load_checker(), graph, found), False)]
            wrong = check(edges, options, found) + [problem for problem in own if problem]
            problems += [f"on {device}, {problem}" for problem in wrong]
    if name in SAME and len({one.tobytes() for one in results.values()}) > 1:
        problems.append(f"results differ: {results}")
    return problems


def _report(found: Any) -> None:
    """Ask a result for all that it derives; only the sum of infinite weights may be NaN."""
    for text in (repr(found), found.describe(), str(found.summary())):
        assert "nan" not in text or np.isnan(getattr(found, "total_weight", 0.0)), text
    found.to_dict() if hasattr(found, "to_dict") else found.to_pandas()


def _call(function: Callable[[], Any], fails: bool | None) -> Any:
    """Call a function; return its result, a text that says what is wrong, or None if it raises as it should."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found = function()
        except VerificationError as error:
            return f"the checker says: {error}"
        except GpuPregelError as error:
            return f"it raises {error!r}" if fails is False else None
        except Exception as error:
            return f"it raises {error!r}"
    return "it raises no error" if fails else found
