"""Searches by hops: levels that are found backwards are in NetworkX's order."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest

from gpu_pregel.kernels.networkx.searches_cpu import find_hops
from gpu_pregel.networkx import all_pairs, hop_searches
from gpu_pregel.networkx.conversion import convert_from_nx
from gpu_pregel.networkx.hop_searches import HopSearch
from gpu_pregel.networkx.rows import rows


def _shuffled(graph: nx.Graph, seed: int) -> nx.Graph:
    """The same edges in a random order, of which that of the rows follows."""
    edges = list(graph.edges)
    np.random.default_rng(seed).shuffle(edges)
    result = nx.Graph()
    result.add_nodes_from(graph)
    result.add_edges_from(edges)
    return result


def _lollipop_of_stars() -> nx.Graph:
    """A dense core that is found at once, then a long path, then another dense core."""
    graph = nx.lollipop_graph(60, 50)
    graph.add_edges_from((u + 1000, v + 1000) for u, v in nx.complete_graph(40).edges)
    graph.add_edge(109, 1000)
    graph.add_edges_from((u, 2000 + u) for u in range(0, 60, 3))
    return graph


GRAPHS = {
    # A search ends once all nodes have been found.
    **{
        f"dense {m}": nx.disjoint_union(nx.gnm_random_graph(80, m, seed=m), nx.path_graph(2))
        for m in (300, 700, 1400, 3000)
    },
    "many leaves": nx.Graph(
        [*nx.complete_graph(50).edges, *((u, 100 + 3 * u + i) for u in range(50) for i in range(3))]
    ),
    "loops": nx.Graph([*nx.complete_graph(40).edges, *((u, u) for u in range(40)), (3, 77), (77, 78)]),
    "path after a core": _lollipop_of_stars(),
    "two parts": nx.disjoint_union(nx.complete_graph(50), nx.path_graph(9)),
}


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
@pytest.mark.parametrize("cutoff", [None, 0, 1, 2.5])
def test_found_as_by_networkx(graph: nx.Graph, cutoff: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    backwards = []

    def noted(*arguments: Any) -> Any:
        count, behind = find_hops(*arguments)
        backwards.append(behind)
        return count, behind

    monkeypatch.setattr(hop_searches, "find_hops", noted)
    for seed in range(3):
        given = _shuffled(graph, seed)
        ours = convert_from_nx(given)
        for v, node in enumerate(given):
            order, depths = HopSearch(ours, rows(ours), cutoff).run(v)
            expected = nx.single_source_shortest_path_length(given, node, cutoff, backend="networkx")
            assert list(zip(ours.nodes_at(order), depths.tolist(), strict=True)) == list(expected.items())
    assert any(backwards) or cutoff is not None


def test_a_search_ends_once_all_nodes_have_been_found() -> None:
    graph = nx.complete_graph(30).to_directed()
    ours = convert_from_nx(graph)
    edges = rows(ours)
    # Read from here on, the rows would be out of range.
    edges.indptr.flags.writeable = True
    edges.indptr[2:] = 1 << 40
    assert HopSearch(ours, edges).run(0)[1].tolist() == [0] + [1] * 29


@pytest.mark.parametrize("first", [1, 9, 10, 11, 150, 200])
@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
def test_a_graph_whose_first_node_reaches_few_others_is_not_connected(
    first: int, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = kind(nx.disjoint_union(nx.cycle_graph(first), nx.cycle_graph(200 - first)))
    searched = []

    def noted(find: Any) -> Any:
        def find_noted(graph: Any, **options: Any) -> Any:
            searched.append(graph)
            return find(graph, **options)

        return find_noted

    for name in ("connected_components", "strongly_connected_components"):
        monkeypatch.setattr(all_pairs, name, noted(getattr(all_pairs, name)))
    is_connected = nx.is_strongly_connected if kind is nx.DiGraph else nx.is_connected
    assert is_connected(graph, backend="gpu_pregel") == (first == 200)
    # One node of twenty is few.
    assert len(searched) == (first >= 10)
