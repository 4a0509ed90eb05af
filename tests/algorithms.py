"""Calls of registered algorithms on small graphs, and damaged copies of their results, for tests of all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.algorithms._entry import Algorithm
from gpu_pregel.algorithms.registry import ALGORITHMS
from gpu_pregel.host.graphs.results import Result
from tests.graphs import KNOWN, arrays

Array = np.ndarray[Any, Any]

EVERY_ALGORITHM = pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda entry: entry.name)
KINDS = ("undirected", "directed", "weighted", "directed weighted")


def allows(algorithm: Algorithm, kind: str) -> bool:
    """Return whether an algorithm takes graphs of a kind."""
    required = set(algorithm.requires)
    unsuitable = {"undirected"} if is_directed(kind) else {"directed", "acyclic"}
    return not required & unsuitable and ("weights" not in required or "weighted" in kind)


def is_directed(kind: str) -> bool:
    """Return whether graphs of a kind are directed."""
    return kind.startswith("directed")


def build(algorithm: Algorithm, kind: str, n: int, edges: list[tuple[int, int]]) -> gp.Graph:
    """Return a graph of a kind; for an algorithm that requires it, without cycles."""
    src, dst = arrays(edges)
    if "acyclic" in algorithm.requires:
        src, dst = np.minimum(src, dst)[src != dst], np.maximum(src, dst)[src != dst]
    weight = np.arange(1, len(src) + 1, dtype=np.float32) if "weighted" in kind else None
    return gp.Graph.from_edgelist(src, dst, weight, num_vertices=n, directed=is_directed(kind))


def known_graphs(algorithm: Algorithm, kind: str) -> list[gp.Graph]:
    """Return the tiny graphs with known components."""
    return [build(algorithm, kind, known.n, known.edges) for known in KNOWN]


def joined_graph(algorithm: Algorithm, kind: str) -> gp.Graph:
    """Return the tiny graphs side by side as one graph, and a ring of hubs, for devices on which each call is slow."""
    edges, n = [], 0
    for known in KNOWN:
        edges += [(n + u, n + v) for u, v in known.edges]
        n += known.n
    edges += [(u, v) for u in range(0, n, 9) for v in range(u + 1, min(u + 14, n))]
    return build(algorithm, kind, n, edges)


def random_graph(algorithm: Algorithm, kind: str, scale: int) -> gp.Graph:
    """Return a Kronecker graph of a kind."""
    edges = gp.kronecker(scale, 8).to_pandas()
    pairs = edges[["source", "target"]].to_numpy(copy=True)
    flipped = np.random.default_rng(3).random(len(pairs)) < 0.5
    pairs[flipped] = pairs[flipped][:, ::-1]
    return build(algorithm, kind, 1 << scale, [tuple(pair) for pair in pairs.tolist()])


def call(algorithm: Algorithm, graph: gp.Graph, **options: Any) -> Any:
    """Call an algorithm with samples of the arguments that it requires; None if the graph has none."""
    arguments = algorithm.sample_arguments(graph)
    return None if arguments is None else algorithm.load()(graph, **arguments, **options)


def uses_weights(algorithm: Algorithm) -> bool:
    """Return whether weights change the result on the CPU, or are required."""
    kinds = [kind for kind in KINDS[::2] if allows(algorithm, kind)] or [
        kind for kind in KINDS[1::2] if allows(algorithm, kind)
    ]
    results = [call(algorithm, joined_graph(algorithm, kind), device="cpu")._columns() for kind in kinds]
    return len(results) == 1 or any(not np.array_equal(values, results[1][name]) for name, values in results[0].items())


def assert_same(one: Result, other: Result, *, exact: bool) -> None:
    """Compare the columns of two results; floats within 1e-5 unless ``exact``."""
    first, second = one._columns(), other._columns()
    assert first.keys() == second.keys()
    for name, values in first.items():
        found, expected = np.asarray(values), np.asarray(second[name])
        assert found.dtype == expected.dtype, name
        if exact or found.dtype.kind != "f":
            np.testing.assert_array_equal(found, expected, name)
        else:
            np.testing.assert_allclose(found, expected, 1e-5, 1e-8, err_msg=name)


_WITNESSES = ("pair", "cycle")
"""Fields of which another value may be right as well."""


def damages(result: Result) -> Iterator[tuple[str, Result]]:
    """Yield copies of a result with one damage, and say what it is: a value changed, or the last main one dropped."""
    main = result.to_numpy()
    for field in fields(result)[3:]:
        values: Any = getattr(result, field.name)
        if isinstance(values, (np.ndarray, np.generic)) and values.size and field.name not in _WITNESSES:
            for place in sorted({0, values.size // 2, values.size - 1}):
                damaged = np.array(values)
                damaged.flat[place] = _other(damaged.flat[place])
                yield f"{field.name}[{place}] changed", _with(result, field.name, damaged)
            if values.ndim and values is main:
                yield f"the last of {field.name} dropped", _with(result, field.name, values[:-1].copy())


def _with(result: Result, name: str, values: Array) -> Result:
    changed: dict[str, Any] = {name: values}
    return replace(result, **changed)


def _other(value: Any) -> Any:
    if isinstance(value, np.bool_):
        return not value
    return type(value)(1) if value != value or abs(value) == np.inf else value + type(value)(1)
