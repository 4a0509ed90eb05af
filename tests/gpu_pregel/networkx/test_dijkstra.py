"""Searches by weight that use the same arrays again find what the first one would."""

from __future__ import annotations

import random

import networkx as nx
import pytest

from gpu_pregel.networkx import dijkstra
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


@pytest.mark.parametrize("kind", ["buckets", "heap", "mixed"])
@pytest.mark.parametrize("cutoff", [None, 1.2])
@pytest.mark.parametrize("batch", [1, 90, 1 << 14])
def test_searches_from_each_node_are_those_from_one(
    kind: str, cutoff: float | None, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dijkstra, "_BATCH", batch)
    graph = _graph(kind)
    if kind == "mixed":
        for i, (*_, data) in enumerate(graph.edges(data=True)):
            data["weight"] = i % 4 if i % 3 else i % 4 / 2
    expected = [(node, nx.single_source_dijkstra(graph, node, cutoff=cutoff)) for node in graph]
    found = list(nx.all_pairs_dijkstra(graph, cutoff, backend="gpu_pregel"))
    assert [node for node, _ in found] == list(graph)
    for (_, (lengths, paths)), (_, (their_lengths, their_paths)) in zip(found, expected, strict=True):
        assert list(map(repr, lengths.items())) == list(map(repr, their_lengths.items()))
        assert list(paths.items()) == list(their_paths.items())


@pytest.mark.parametrize("kind", [int, float])
def test_a_contradiction_ends_the_searches_from_each_node_after_those_before(kind: type) -> None:
    graph = nx.DiGraph()
    graph.add_weighted_edges_from((u, v, kind(w)) for u, v, w in [(4, 3, 1), (0, 1, 2), (0, 2, 5), (2, 1, -4)])
    found = nx.all_pairs_dijkstra_path_length(graph, backend="gpu_pregel")
    assert [next(found), next(found)] == [(4, {4: 0, 3: 1}), (3, {3: 0})]
    with pytest.raises(ValueError, match="Contradictory"):
        next(found)
