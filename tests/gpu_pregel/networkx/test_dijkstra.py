"""Searches by weight that use the same arrays again find what the first one would."""

from __future__ import annotations

import random

import networkx as nx
import pytest

from gpu_pregel.networkx.backend import backend
from gpu_pregel.networkx.dijkstra import NONE, Dijkstra
from gpu_pregel.networkx.rows import weighted_rows


def _graph(kind: str) -> nx.DiGraph:
    source = random.Random(5)
    graph = nx.gnp_random_graph(60, 0.06, seed=4, directed=True)
    for *_, data in graph.edges(data=True):
        data["weight"] = source.randint(0, 9) if kind == "buckets" else source.random()
    return graph


@pytest.mark.parametrize("kind", ["buckets", "heap"])
@pytest.mark.parametrize("cutoff", [None, 1.2])
def test_a_search_after_others_is_like_the_first(kind: str, cutoff: float | None) -> None:
    graph = _graph(kind)
    converted = backend.convert_from_nx(graph, edge_attrs={"weight": 1})
    edges = weighted_rows(converted, "weight")
    assert (edges.buckets > 0) == (kind == "buckets")
    search, source = Dijkstra(converted, edges, cutoff), random.Random(1)
    for step in range(120):
        begin = [source.randrange(60)] if step % 5 else source.sample(range(60), 3)
        target = source.randrange(60) if step % 3 == 0 else NONE
        search.run(begin, target)
        expected = nx.multi_source_dijkstra_path_length(graph, begin, cutoff)
        if target in expected:
            ends = list(expected)
            # Those that are as far as the target may follow it.
            expected = {node: expected[node] for node in ends[: ends.index(target) + 1]}
        assert list(search.lengths().items()) == list(expected.items())
        assert search.reached(target) == (target in expected)


def test_a_search_after_a_contradiction_is_like_the_first() -> None:
    graph = nx.DiGraph()
    graph.add_weighted_edges_from([(0, 1, 2), (0, 2, 5), (2, 1, -4), (3, 2, 1), (4, 3, 1)])
    converted = backend.convert_from_nx(graph, edge_attrs={"weight": 1})
    search = Dijkstra(converted, weighted_rows(converted, "weight"))
    for _ in range(2):
        with pytest.raises(ValueError, match="Contradictory"):
            search.run([0])
        search.run([4])
        assert search.lengths() == {4: 0, 3: 1, 2: 2, 1: -2}
