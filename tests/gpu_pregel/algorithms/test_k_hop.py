"""Tests of neighbourhoods: NetworkX, several sources, ids, subgraphs and bad arguments."""

from __future__ import annotations

from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, ArgumentTypeError
from tests.graphs import arrays, edge_lists


@given(edge_lists(), st.booleans(), st.integers(0, 4), st.sampled_from(["cpu", "python"]), st.data())
@settings(max_examples=25)
def test_hops_are_those_of_networkx(drawn: Any, directed: bool, k: int, device: str, data: Any) -> None:
    n, edges = drawn
    sources = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=3))
    graph = gp.Graph.from_edgelist(*arrays(edges), num_vertices=n, directed=directed)
    plain = networkx.DiGraph(edges) if directed else networkx.Graph(edges)
    plain.add_nodes_from(range(n))
    near = networkx.multi_source_dijkstra_path_length(plain, set(sources), cutoff=k)
    found = gp.k_hop(graph, sources, k, device=device)
    assert found.to_dict() == {v: near.get(v) for v in range(n)}
    assert found.vertices.tolist() == sorted(near)


def test_results_use_the_ids_of_the_user() -> None:
    graph = gp.Graph.from_edgelist(["a", "b", "c", "d"], ["b", "c", "d", "e"], directed=True)
    found = gp.k_hop(graph, ["b", "b"], 1, device="cpu")
    assert (found.ids().tolist(), found["a"], found.describe()) == (["b", "c"], None, "2 of 5 vertices within 1 hops")
    assert found.summary() == {"vertices": 2, "by_distance": [1, 1]}
    assert found.subgraph().to_ids(np.arange(2)).tolist() == ["b", "c"]
    back = gp.k_hop(graph.transpose(), ["b"], 1, device="cpu")
    assert back.ids().tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("sources", "k", "error", "message"),
    [
        ([9], 1, ArgumentError, "sources: no vertex has the id 9"),
        (0, 1, ArgumentTypeError, "sources: "),
        ([], 1, ArgumentError, "sources is empty"),
        ([0], -1, ArgumentError, "k must be from 0 to"),
        ([0], 1.5, ArgumentTypeError, "k must be a whole number"),
    ],
)
def test_bad_arguments(sources: Any, k: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        gp.k_hop(gp.grid(2), sources, k, device="cpu")
