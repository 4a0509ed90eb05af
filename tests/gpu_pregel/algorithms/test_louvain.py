"""Tests of Louvain's and Leiden's communities, and of modularity."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.algorithms import _levels
from gpu_pregel.algorithms.checkers.leiden import check_leiden
from gpu_pregel.algorithms.checkers.louvain import check_louvain
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, GraphError, VerificationError
from tests.devices import on
from tests.graphs import arrays, edge_lists

METHODS = pytest.mark.parametrize("method", [gp.louvain, gp.leiden], ids=["louvain", "leiden"])
CHECKERS = {"louvain": check_louvain, "leiden": check_leiden}


def check(graph: gp.Graph, found: gp.Communities, method: Any) -> None:
    CHECKERS[method.__name__](graph, found)


def ring_of_cliques(cliques: int, size: int) -> gp.Graph:
    graph = networkx.ring_of_cliques(cliques, size)
    return gp.Graph.from_networkx(graph)


@st.composite
def weighted_graphs(draw: Any) -> tuple[gp.Graph, networkx.MultiGraph]:
    """Draw a graph with whole, broken or no weights, and the same one for NetworkX."""
    n, edges = draw(edge_lists(25, 60))
    kind = draw(st.sampled_from([None, np.int64, np.float64]))
    values = st.integers(0, 5) if kind is np.int64 else st.sampled_from([0.0, 0.1, 1 / 3, 1.0, 2.5e4])
    weights = None if kind is None else np.array(draw(st.lists(values, min_size=len(edges), max_size=len(edges))), kind)
    oracle = networkx.MultiGraph()
    oracle.add_nodes_from(range(n))
    given = [1.0] * len(edges) if weights is None else weights.tolist()
    oracle.add_weighted_edges_from([(u, v, w) for (u, v), w in zip(edges, given, strict=True)])
    return gp.Graph.from_edgelist(*arrays(edges), weights, num_vertices=n), oracle


def groups(labels: Any) -> list[set[int]]:
    return [set(np.flatnonzero(labels == c).tolist()) for c in np.unique(labels)]


@settings(max_examples=25)
@given(graphs=weighted_graphs(), resolution=st.sampled_from([0.0, 0.5, 1.0, 3.0]), seed=st.integers(0, 9))
def test_modularity_agrees_with_networkx(graphs: Any, resolution: float, seed: int) -> None:
    graph, oracle = graphs
    labels = np.random.default_rng(seed).integers(-3, 4, graph.num_vertices)
    found = gp.modularity(graph, labels, resolution)
    if oracle.size(weight="weight") == 0:
        assert found == 0
    else:
        expected = networkx.community.modularity(oracle, groups(labels), resolution=resolution)
        assert found == pytest.approx(expected, abs=1e-12)


@METHODS
def test_random_graphs(method: Any) -> None:
    @settings(max_examples=25)
    @given(graphs=weighted_graphs(), resolution=st.sampled_from([0.0, 0.5, 1.0, 3.0]), seed=st.integers(0, 3))
    def run(graphs: Any, resolution: float, seed: int) -> None:
        graph, oracle = graphs
        found = method(graph, resolution=resolution, seed=seed, device="cpu", threads=1)
        check(graph, found, method)
        if oracle.size(weight="weight") > 0:
            expected = networkx.community.modularity(oracle, groups(found.labels), resolution=resolution)
            assert found.modularity == pytest.approx(expected, abs=1e-12)

    run()


@METHODS
@pytest.mark.parametrize("seed", range(3))
def test_cliques_in_a_ring_are_found(method: Any, seed: int) -> None:
    graph = ring_of_cliques(8, 6)
    found = method(graph, seed=seed)
    assert found.labels.tolist() == np.repeat(np.arange(8), 6).tolist()
    assert found.sizes().tolist() == [6] * 8
    assert found.members(2).tolist() == list(range(12, 18))


@METHODS
def test_components_of_equal_cliques_without_edges_between(method: Any) -> None:
    graph = gp.Graph.from_networkx(
        networkx.disjoint_union_all([networkx.complete_graph(4)] * 3 + [networkx.Graph([(0, 0)])])
    )
    found = method(graph)
    assert found.labels.tolist() == [0] * 4 + [1] * 4 + [2] * 4 + [3]


@METHODS
def test_heavy_edges_hold_together(method: Any) -> None:
    # A path of light and heavy edges in turn, once with whole and once with very small weights.
    for scale in (1, 1e-20):
        weights = np.array([9, 1, 9, 1, 9]) * scale
        graph = gp.Graph.from_edgelist(range(5), range(1, 6), weights)
        assert method(graph).labels.tolist() == [0, 0, 1, 1, 2, 2]


@METHODS
def test_the_resolution_sets_the_size(method: Any) -> None:
    graph = gp.grid(12, holes=0)
    counts = [method(graph, resolution=r).count for r in (0, 0.2, 1, 5, 1e6)]
    assert counts[0] == 1
    assert counts == sorted(counts)
    assert counts[-1] == graph.num_vertices


def test_the_karate_club(data: Path) -> None:
    graph = gp.read_graph(data / "mtx" / "karate.mtx")
    assert gp.louvain(graph).modularity >= 0.415
    # The optimum is 0.4198.
    assert gp.leiden(graph).modularity >= 0.4197


@METHODS
@pytest.mark.parametrize(
    ("file", "lowest"), [("mesh/wing.graph", 0.89), ("snap/as20graph.txt", 0.61), ("snap/wiki-Vote.txt", 0.41)]
)
def test_public_graphs(data: Path, method: Any, file: str, lowest: float) -> None:
    graph = gp.read_graph(data / file, directed=file.startswith("snap")).to_undirected().simplify()
    found = method(graph)
    assert found.modularity >= lowest
    check(graph, found, method)


@METHODS
def test_equal_communities_for_any_number_of_threads(method: Any) -> None:
    graph = gp.kronecker(12, 12)
    assert graph.num_stored_edges > _levels.SERIAL_EDGES
    first = method(graph, threads=1)
    for threads in (2, 5):
        assert np.array_equal(method(graph, threads=threads).labels, first.labels)
    check(graph, first, method)
    assert first.modularity > 0.1


@METHODS
def test_moves_in_the_order_of_threads_find_communities_as_good(method: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_levels, "SERIAL_EDGES", 20)
    random = np.random.default_rng(2)
    src, dst = random.integers(0, 300, (2, 900))
    weighted = gp.Graph.from_edgelist(src, dst, random.random(900))
    for graph in (ring_of_cliques(40, 6), weighted, gp.kronecker(12, 12)):
        expected = method(graph).modularity
        for threads in (1, 2, 5):
            found = method(graph, deterministic=False, threads=threads)
            check(graph, found, method)
            assert found.modularity > 0.97 * expected


@pytest.mark.parametrize(
    ("device", "method"), [on("python", gp.louvain), on("python", gp.leiden), on("emulated", gp.leiden)]
)
def test_all_devices_find_the_same_communities(device: str, method: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # So that vertices move in batches, and levels are searched on the device.
    monkeypatch.setattr(_levels, "SERIAL_EDGES", 20)
    random = np.random.default_rng(1)
    src, dst = random.integers(0, 30, (2, 80))
    weighted = gp.Graph.from_edgelist(src, dst, random.random(80))
    for graph in (gp.kronecker(5, 4), weighted):
        found = method(graph, device=device)
        assert found.stats["device"] == device
        assert np.array_equal(found.to_numpy(), method(graph, device="cpu").labels)


@METHODS
def test_single_moves_equal_batches_of_one(method: Any) -> None:
    graph = gp.kronecker(6, 3)
    for seed in (0, 5):
        expected = method(graph, device="python", seed=seed).labels
        assert np.array_equal(method(graph, device="cpu", seed=seed).labels, expected)


def test_levels_are_kept() -> None:
    graph = ring_of_cliques(16, 5)
    found = gp.louvain(graph, resolution=0.2)
    assert len(found.levels) > 1
    counts = [len(np.unique(level)) for level in found.levels]
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] == found.count
    first = gp.louvain(graph, resolution=0.2, max_levels=1)
    assert np.array_equal(first.labels, found.levels[0])
    assert len(first.levels) == 1


def test_leiden_with_one_level_is_connected() -> None:
    graph = gp.kronecker(9, 4)
    for levels in (1, 2):
        found = gp.leiden(graph, max_levels=levels, iterations=1)
        assert len(found.levels) == levels
        check_leiden(graph, found)


def test_iterations_raise_the_modularity() -> None:
    # Later iterations have larger levels than the first.
    graph = gp.kronecker(12, 12)
    found = [gp.leiden(graph, iterations=i, threads=2) for i in (1, 2, 4)]
    assert found[0].modularity < found[1].modularity < found[2].modularity
    for result in found:
        check_leiden(graph, result)


def test_a_disconnected_community_is_refused() -> None:
    graph = gp.Graph.from_edgelist([0, 1, 2, 3], [1, 2, 3, 4])
    found = gp.leiden(graph)
    labels = np.array([0, 1, 1, 0, 0], np.uint32)
    damaged = replace(found, labels=labels, levels=(labels,), resolution=0.0)
    with pytest.raises(VerificationError, match="vertex 3 is not connected"):
        check_leiden(graph, damaged)


def test_results_have_ids_and_a_summary() -> None:
    graph = gp.Graph.from_edgelist(["a", "b", "x"], ["b", "c", "y"])
    found = gp.louvain(graph)
    assert found.to_dict() == {"a": 0, "b": 0, "c": 0, "x": 1, "y": 1}
    assert found.members(1).tolist() == ["x", "y"]
    assert found.summary() == {"communities": 2, "largest": 3, "modularity": pytest.approx(4 / 9)}
    assert repr(found) == "<Communities: 2 of 5 vertices>"


def test_a_graph_without_edges() -> None:
    graph = gp.Graph.from_edgelist([], [], num_vertices=3)
    for method in (gp.louvain, gp.leiden):
        found = method(graph)
        assert (found.labels.tolist(), found.modularity) == ([0, 1, 2], 0.0)
    empty = gp.louvain(gp.Graph.from_edgelist([], []))
    assert (empty.count, empty.modularity, empty.sizes().tolist()) == (0, 0.0, [])


@METHODS
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"resolution": -1}, "resolution must be from 0 to 1,000,000, not -1"),
        ({"resolution": math.nan}, "resolution must be from 0"),
        ({"tolerance": 0}, "tolerance must be above 0"),
        ({"tolerance": 1.0}, "tolerance must be above 0 and below 1"),
        ({"max_levels": 0}, "max_levels must be at least 1"),
        ({"seed": -1}, "seed must be at least 0"),
    ],
)
def test_invalid_arguments_are_rejected(method: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        method(gp.grid(2), **arguments)


@METHODS
def test_unsuitable_graphs_are_rejected(method: Any) -> None:
    name = method.__name__
    with pytest.raises(GraphError, match=f"{name} needs an undirected graph"):
        method(gp.Graph.from_edgelist([0], [1], directed=True))
    with pytest.raises(GraphError, match=f"{name} needs weights of at least 0, and the edge from 7 to 8 has -2"):
        method(gp.Graph.from_edgelist([7, 8], [8, 9], [-2, 3]))


@pytest.mark.parametrize("weights", [[1.0, math.inf], [1e308, 1e308]])
def test_an_infinite_sum_of_weights_is_rejected(weights: list[float]) -> None:
    graph = gp.Graph.from_edgelist([0, 1], [1, 2], weights)
    for function in (gp.louvain, gp.leiden, lambda graph: gp.modularity(graph, [0, 0, 1])):
        with pytest.raises(GraphError, match="needs weights whose sum is finite"):
            function(graph)


@METHODS
@pytest.mark.parametrize("weight", [1e-300, 2.0**900, 1 << 61])
def test_weights_of_any_size(method: Any, weight: float) -> None:
    graph = gp.Graph.from_edgelist([0, 1, 2, 3], [1, 0, 3, 2], [weight] * 4)
    assert method(graph).labels.tolist() == [0, 0, 1, 1]


def test_modularity_takes_labels_by_id() -> None:
    graph = gp.Graph.from_edgelist(["a", "b", "c", "d"], ["b", "a", "d", "c"])
    assert gp.modularity(graph, {"d": 7, "c": 7, "b": 2, "a": 2, "x": 0}) == 0.5
    assert gp.modularity(graph, gp.louvain(graph, device="cpu").to_dict()) == 0.5
    with pytest.raises(ArgumentError, match="labels have no community of vertex 'b': give one to each vertex"):
        gp.modularity(graph, {"a": 1})
    with pytest.raises(ArgumentTypeError, match="not sets of vertices: pass a dict"):
        gp.modularity(graph, [{"a", "b"}, {"c", "d"}])


def test_members_of_a_community() -> None:
    found = gp.louvain(gp.Graph.from_edgelist(["a", "b", "c", "d"], ["b", "a", "d", "c"]), device="cpu")
    assert [found.members(k).tolist() for k in range(found.count)] == [["a", "b"], ["c", "d"]]
    with pytest.raises(ArgumentError, match="community must be below 2, the number of communities, not 2"):
        found.members(2)


def test_modularity_rejects_labels_that_do_not_fit() -> None:
    with pytest.raises(ArgumentError, match=r"labels have shape \(2,\), not \(4,\)"):
        gp.modularity(gp.grid(2), [0, 1])
    with pytest.raises(ArgumentTypeError, match="labels must be integers, not float64"):
        gp.modularity(gp.grid(2), [0.5] * 4)
    with pytest.raises(ArgumentError, match="iterations must be at least 1, not 0"):
        gp.leiden(gp.grid(2), iterations=0)
