"""Searches from each node, which use arrays again, find what searches from single nodes do."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any

import networkx as nx
import numpy as np
import pytest

from gpu_pregel.kernels.networkx.searches_cpu import breadth_first_from_each
from gpu_pregel.networkx import hop_searches
from gpu_pregel.networkx.backend import backend
from gpu_pregel.networkx.functions.bellman_ford import BellmanFord
from gpu_pregel.networkx.rows import weighted_rows

ALL_PAIRS: dict[str, Callable[..., Any]] = {
    "paths": nx.all_pairs_shortest_path,
    "nearby": partial(nx.all_pairs_shortest_path, cutoff=2),
    "hops": nx.all_pairs_shortest_path_length,
    "all paths": nx.all_pairs_all_shortest_paths,
    **{
        f"all paths by {method}": partial(nx.all_pairs_all_shortest_paths, weight="weight", method=method)
        for method in ("dijkstra", "bellman-ford")
    },
    "dijkstra": nx.all_pairs_dijkstra,
    "bellman-ford paths": nx.all_pairs_bellman_ford_path,
    "bellman-ford lengths": nx.all_pairs_bellman_ford_path_length,
}


def _graph(*, mixed: bool = False) -> nx.DiGraph:
    """Components of different sizes, among them single nodes; ``mixed`` weights are integers and floats."""
    source = random.Random(3)
    graph = nx.disjoint_union(nx.gnp_random_graph(40, 0.05, seed=2, directed=True), nx.DiGraph([(0, 1), (1, 2)]))
    for *_, data in graph.edges(data=True):
        data["weight"] = source.randint(0, 5) + (0.5 if mixed and source.random() < 0.3 else 0)
    return graph


def _items(results: Any) -> list[Any]:
    """Return results with dicts as lists of pairs, whose order counts."""
    return [repr(result) for result in results]


@pytest.mark.parametrize("name", ALL_PAIRS)
@pytest.mark.parametrize("batch", [1, 50, 1 << 14])
def test_interleaved_iterators_do_not_disturb_one_another(
    name: str, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hop_searches, "_BATCH", batch)
    graph, function = _graph(), ALL_PAIRS[name]
    expected = _items(function(graph, backend="networkx"))
    converted = backend.convert_from_nx(graph, edge_attrs={"weight": 1})
    first, second, third = (iter(function(converted)) for _ in range(3))
    begun = _items(islice(third, 7))
    del third
    pairs: Iterator[Any] = zip(first, second, strict=True)
    ours = [_items(pair) for pair in pairs]
    assert begun == expected[:7]
    assert ours == [[result, result] for result in expected]


@pytest.mark.parametrize("function", [nx.all_pairs_dijkstra, nx.all_pairs_dijkstra_path_length])
def test_integers_and_floats_are_told_apart_in_each_search(function: Callable[..., Any]) -> None:
    graph = _graph(mixed=True)
    assert _items(function(graph, backend="gpu_pregel")) == _items(function(graph, backend="networkx"))


def test_a_search_after_a_negative_cycle_is_like_the_first() -> None:
    graph = nx.DiGraph()
    graph.add_weighted_edges_from([(0, 1, 1), (1, 2, -3), (2, 0, 1), (3, 4, 2), (4, 5, -1), (3, 5, 4), (2, 5, 1)])
    converted = backend.convert_from_nx(graph, edge_attrs={"weight": 1})
    search = BellmanFord(weighted_rows(converted, "weight"))
    numbers = converted.topology.numbers
    for _ in range(3):
        search.run([numbers[0]])
        with pytest.raises(nx.NetworkXUnbounded, match="Negative cycle"):
            search.check()
        search.run([numbers[3]])
        search.check()
        assert repr(search.lengths(converted)) == repr({3: 0, 4: 2, 5: 1})
        assert repr(search.paths(converted)) == repr({3: [3], 4: [3, 4], 5: [3, 4, 5]})
        assert search.path_to(converted, numbers[5]) == [3, 4, 5]


def test_searches_from_each_vertex_read_no_more_than_a_batch() -> None:
    """Vertices are found until there are enough of them, so that a partly read result costs little."""
    converted = backend.convert_from_nx(nx.empty_graph(30, create_using=nx.DiGraph))
    n, limit = 30, 4
    order, parents = np.empty(n + limit, np.uint32), np.empty(n + limit, np.int64)
    ends, depths = np.empty(n, np.int64), np.full(n, -1)
    indptr, neighbors = converted.topology.distinct
    done = breadth_first_from_each(indptr, neighbors, np.inf, 7, limit, order, parents, ends, depths)
    assert (done, order[:4].tolist(), ends[:4].tolist()) == (4, [7, 8, 9, 10], [1, 2, 3, 4])
    assert (depths == -1).all()
