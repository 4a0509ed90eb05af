"""Tests of samples of neighbourhoods: what is sampled, how often, how it is numbered, devices and bad arguments."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.algorithms.checkers.sample_neighbors import check_sample_neighbors
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, NotEnoughMemoryError, VerificationError
from tests.devices import on
from tests.graphs import arrays, edge_lists


@given(edge_lists(), st.booleans(), st.booleans(), st.lists(st.sampled_from([-1, 1, 2, 4]), min_size=1, max_size=3))
@settings(max_examples=30)
def test_samples_are_accepted_by_the_checker(drawn: Any, directed: bool, replace: bool, fanouts: list[int]) -> None:
    n, edges = drawn
    graph = gp.Graph.from_edgelist(*arrays(edges), num_vertices=n, directed=directed)
    check_sample_neighbors(graph, gp.sample_neighbors(graph, [n - 1, 0], fanouts, replace=replace, device="cpu"))


def test_all_edges_are_those_of_networkx() -> None:
    graph = gp.kronecker(7, 2)
    seed = int(graph.out_degrees.argmax())
    found = gp.sample_neighbors(graph, [seed], [-1, -1], device="cpu")
    near = networkx.single_source_shortest_path_length(graph.to_networkx(), seed, cutoff=2)
    assert sorted(found.ids().tolist()) == sorted(near)
    inner = [v for v, hops in near.items() if hops < 2]
    assert sorted(found.edges.tolist()) == sorted(e for v in inner for e in range(graph.indptr[v], graph.indptr[v + 1]))
    assert found.hop_vertices.tolist() == [0, *np.cumsum([sum(h == k for h in near.values()) for k in range(3)])]


@pytest.mark.parametrize("replacing", [False, True])
def test_every_subset_is_equally_likely(replacing: bool) -> None:
    star = gp.Graph.from_edgelist([0] * 5, [1, 2, 3, 4, 5], directed=True)
    drawn = [gp.sample_neighbors(star, [0], [2], replace=replacing, seed=s, device="cpu").edges for s in range(1200)]
    counts = Counter(tuple(sorted(edges.tolist())) for edges in drawn)
    if replacing:
        expected = {(a, b): (1 if a == b else 2) / 25 for a in range(5) for b in range(a, 5)}
    else:
        expected = {(a, b): 1 / 10 for a in range(5) for b in range(a + 1, 5)}
    assert set(counts) == set(expected)
    for pair, p in expected.items():
        assert abs(counts[pair] - 1200 * p) <= 4.5 * (1200 * p * (1 - p)) ** 0.5


def test_results_use_numbers_of_their_own_and_the_ids_of_the_user() -> None:
    graph = gp.Graph.from_edgelist(["a", "b", "c"], ["c", "c", "b"], [1.0, 2.0, 3.0], directed=True)
    found = gp.sample_neighbors(graph, ["b", "a", "b"], [-1, 5], device="cpu")
    assert (found.ids().tolist(), found.sources.tolist(), found.targets.tolist()) == (
        ["b", "a", "c"],
        [0, 1, 2],
        [2, 2, 0],
    )
    assert (found.hop_vertices.tolist(), found.hop_edges.tolist()) == ([0, 2, 3, 3], [0, 2, 3])
    assert found.to_pandas().to_dict("list") == {
        "hop": [0, 0, 1],
        "source": ["b", "a", "c"],
        "target": ["c", "c", "b"],
        "weight": [2.0, 1.0, 3.0],
    }
    assert found.describe() == "3 vertices and 3 edges in 2 hops"


def test_in_neighbors_by_the_transpose() -> None:
    graph = gp.Graph.from_edgelist([1, 2, 3], [0, 0, 2], directed=True)
    found = gp.sample_neighbors(graph.transpose(), [0], [-1, -1], device="cpu")
    assert found.ids().tolist() == [0, 1, 2, 3]


def test_samples_depend_on_the_seed_and_the_vertex_only() -> None:
    graph = gp.kronecker(9)
    first = gp.sample_neighbors(graph, range(100), [5, 5], seed=1, threads=1)
    for threads in (2, 5):
        assert np.array_equal(
            gp.sample_neighbors(graph, range(100), [5, 5], seed=1, threads=threads).edges, first.edges
        )
    assert not np.array_equal(gp.sample_neighbors(graph, range(100), [5, 5], seed=2, device="cpu").edges, first.edges)


@pytest.mark.parametrize("device", [on("python"), on("emulated")])
@pytest.mark.parametrize("replacing", [False, True])
def test_other_devices(device: str, replacing: bool) -> None:
    graph = gp.kronecker(5)
    found = gp.sample_neighbors(graph, range(4), [3, 2], replace=replacing, device=device)
    expected = gp.sample_neighbors(graph, range(4), [3, 2], replace=replacing, device="cpu")
    assert np.array_equal(found.edges, expected.edges)
    assert np.array_equal(found.vertices, expected.vertices)


@pytest.mark.parametrize(
    ("seeds", "fanouts", "options", "error", "message"),
    [
        ([9], [1], {}, ArgumentError, "seeds: no vertex has the id 9"),
        ([], [1], {}, ArgumentError, "seeds is empty"),
        ([0], [], {}, ArgumentError, "fanouts is empty"),
        ([0], 5, {}, ArgumentTypeError, "fanouts must be a sequence of whole numbers, one per hop, not 5"),
        ([0], np.array(5), {}, ArgumentTypeError, "fanouts must be a sequence of whole numbers, one per hop"),
        ([0], [2, 0], {}, ArgumentError, r"fanouts\[1\] is 0: use a positive number, or -1"),
        ([0], [-2], {}, ArgumentError, r"fanouts\[0\] must be from -1 to"),
        ([0], [1], {"replace": 1}, ArgumentTypeError, "replace must be True or False"),
        ([0], [1], {"seed": -1}, ArgumentError, "seed must be at least 0"),
    ],
)
def test_bad_arguments(seeds: Any, fanouts: Any, options: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        gp.sample_neighbors(gp.grid(2), seeds, fanouts, device="cpu", **options)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"edges": [0, 0]}, "edge 0 leads to vertex 1, not 2"),
        ({"edges": [0, 0], "targets": [1, 1]}, "an edge was sampled twice"),
        ({"sources": [0, 1]}, "edge 1 does not belong to vertex 1"),
        ({"vertices": [0, 1, 1]}, "a vertex has two numbers"),
        ({"fanouts": (1,)}, "hop 0 does not have the right number of edges of each vertex"),
        ({"targets": [2, 1], "vertices": [0, 2, 1]}, "vertex 2 of the sample appears before vertex 1"),
        ({"hop_vertices": [0, 1, 2]}, "the numbers of edges differ"),
        ({"hop_edges": [-2, 2]}, "hop_edges are not 2 numbers in ascending order from 0"),
        ({"hop_vertices": [0, 4, 3]}, "hop_vertices are not 3 numbers in ascending order from 0"),
    ],
)
def test_the_checker_refuses_wrong_samples(change: Any, message: str) -> None:
    graph = gp.Graph.from_edgelist([0, 0], [1, 2], directed=True)
    found = gp.sample_neighbors(graph, [0], [2], device="cpu")
    check_sample_neighbors(graph, found)
    damaged: dict[str, Any] = {
        name: value if isinstance(value, tuple) else np.array(value) for name, value in change.items()
    }
    with pytest.raises(VerificationError, match=message):
        check_sample_neighbors(graph, replace(found, **damaged))


def test_samples_that_do_not_fit_in_memory_are_refused() -> None:
    with pytest.raises(NotEnoughMemoryError, match="sampling 4,294,967,294 edges"):
        gp.sample_neighbors(gp.Graph.from_edgelist([0], [1]), [0, 1], [2**31 - 1], replace=True, device="cpu")
