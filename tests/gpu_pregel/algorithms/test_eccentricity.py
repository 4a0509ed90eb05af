"""Tests of eccentricities and of the diameter: known answers, NetworkX, bounds, devices and bad arguments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import shortest_path

import gpu_pregel as gp
from gpu_pregel.algorithms import diameter, eccentricity
from gpu_pregel.algorithms.checkers.diameter import check_diameter
from gpu_pregel.errors import ArgumentTypeError, VerificationError
from tests.devices import on
from tests.graphs import arrays, edge_lists


@pytest.fixture(params=[False, True], ids=["all", "bounds"])
def bounds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether small graphs are searched as large ones are."""
    if request.param:
        use_bounds(monkeypatch)
    return bool(request.param)


def use_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eccentricity, "_SMALL", 0)
    monkeypatch.setattr(eccentricity, "_ROUNDS", 1)
    monkeypatch.setattr(diameter, "_SMALL", 0)
    monkeypatch.setattr(diameter, "_ALONE", (3, 0))
    monkeypatch.setattr(diameter, "_BEFORE_BATCHES", (2, 1))
    monkeypatch.setattr(diameter, "_BATCH", 2)


@pytest.mark.usefixtures("bounds")
@pytest.mark.parametrize(
    ("edges", "n", "directed", "expected"),
    [
        ([], 0, False, []),
        ([], 2, False, [0, 0]),
        ([(0, 0)], 1, True, [0]),
        ([(0, 1), (1, 2), (1, 2)], 3, False, [2, 1, 2]),
        ([(0, 1), (1, 2)], 3, True, [2, 1, 0]),
        ([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)], 5, False, [2] * 5),
        ([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)], 5, True, [4] * 5),
        ([(0, 1), (2, 3), (3, 4), (4, 5)], 7, False, [1, 1, 3, 2, 2, 3, 0]),
    ],
)
def test_known_answers(edges: Any, n: int, directed: bool, expected: list[int]) -> None:
    graph = gp.Graph.from_edgelist(*arrays(edges), num_vertices=n, directed=directed)
    found = gp.eccentricity(graph, device="cpu")
    assert found.eccentricities.tolist() == expected
    longest = gp.diameter(graph, device="cpu")
    assert (longest.lower, longest.upper, longest.exact) == (max(expected, default=0),) * 2 + (True,)
    assert found.summary() == {"diameter": longest.lower, "radius": min(expected, default=0)}


@given(edge_lists(60, 90), st.booleans(), st.sampled_from(["cpu", "python"]))
@settings(max_examples=40)
def test_distances_are_those_of_networkx(drawn: Any, directed: bool, device: str) -> None:
    n, edges = drawn
    graph = gp.Graph.from_edgelist(*arrays(edges), num_vertices=n, directed=directed)
    plain = networkx.DiGraph(edges) if directed else networkx.Graph(edges)
    plain.add_nodes_from(range(n))
    lengths = dict(networkx.all_pairs_shortest_path_length(plain))
    expected = [max(lengths[v].values()) for v in range(n)]
    with pytest.MonkeyPatch.context() as patch:
        use_bounds(patch)
        found = gp.eccentricity(graph, device=device)
        longest, bounds = gp.diameter(graph, device=device), gp.diameter(graph, exact=False, device=device)
    assert found.eccentricities.tolist() == expected
    assert (longest.lower, longest.upper) == (max(expected),) * 2
    assert bounds.lower <= max(expected) <= bounds.upper
    for one in (longest, bounds):
        source, target = one.ends()
        assert lengths[source][target] == one.lower


@pytest.mark.parametrize(
    "graph", [gp.kronecker(10, 4), gp.grid(32), gp.uniform(10, 3)], ids=["kron", "grid", "uniform"]
)
def test_larger_graphs(graph: gp.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    distances = shortest_path(graph.to_scipy(), unweighted=True)
    expected = np.where(np.isfinite(distances), distances, 0).max(axis=0)
    assert np.array_equal(gp.eccentricity(graph, device="cpu").eccentricities, expected)
    monkeypatch.setattr(eccentricity, "_SMALL", 0)
    monkeypatch.setattr(diameter, "_SMALL", 0)
    for threads in (1, 2, 5):
        assert np.array_equal(gp.eccentricity(graph, threads=threads).eccentricities, expected)
        longest = gp.diameter(graph, threads=threads)
        assert (longest.lower, longest.upper) == (expected.max(), expected.max())
        assert distances[longest.ends()] == expected.max()


@pytest.mark.parametrize("device", [on("emulated")])
def test_the_emulated_device(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_bounds(monkeypatch)
    graph = gp.Graph.from_edgelist([0, 1, 2, 3, 7], [1, 2, 3, 4, 8])
    assert gp.eccentricity(graph, device=device).eccentricities.tolist() == [4, 3, 2, 3, 4, 1, 1]
    found = gp.diameter(graph, device=device)
    assert (found.lower, found.upper) == (4, 4)
    assert sorted(found.ends()) == [0, 4]


def test_results_use_the_ids_of_the_user() -> None:
    path = gp.Graph.from_edgelist(["d", "a", "b"], ["a", "b", "c"])
    found = gp.eccentricity(path, device="cpu")
    assert (found.center(), sorted(found.periphery())) == (["a", "b"], ["c", "d"])
    assert found.describe() == "diameter 3, radius 2"
    longest = gp.diameter(path, device="cpu")
    assert (sorted(longest.ends()), longest.describe()) == (["c", "d"], "diameter 3")
    assert longest.to_pandas().to_dict("list") == {"lower": [3], "upper": [3]}
    assert gp.diameter(gp.grid(2, holes=0), exact=False, device="cpu").summary() == {"lower": 2, "upper": 2}
    assert gp.diameter(gp.Graph.from_edgelist([], []), device="cpu").ends() == ()


def test_bounds_of_a_directed_graph() -> None:
    ring = gp.Graph.from_edgelist(range(6), [1, 2, 3, 4, 5, 0], directed=True)
    found = gp.diameter(ring, exact=False, device="cpu")
    assert (found.lower, found.upper, found.describe()) == (5, 5, "diameter 5")
    path = gp.Graph.from_edgelist(range(6), range(1, 7), directed=True)
    assert gp.diameter(path, exact=False, device="cpu").summary() == {"lower": 6, "upper": 6}
    out = gp.Graph.from_edgelist([0, 0, 0], [1, 2, 3], directed=True)
    assert gp.diameter(out, exact=False, device="cpu").describe() == "diameter from 1 to 3"


def test_bad_arguments() -> None:
    with pytest.raises(ArgumentTypeError, match="exact must be True or False, not 'yes'"):
        gp.diameter(gp.grid(2), exact="yes")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"exact": False}, "do not fit exact=False"),
        ({"pair": np.array([0, 1])}, "vertices 0 and 1 are 1 edges apart, not 4"),
        ({"bounds": np.array([1, 1]), "pair": np.array([0, 1])}, "some vertex is 4 edges from 0, more than"),
    ],
)
def test_the_checker_refuses_wrong_diameters(change: Any, message: str) -> None:
    graph = gp.Graph.from_edgelist(range(4), range(1, 5))
    found = gp.diameter(graph, device="cpu")
    check_diameter(graph, found)
    with pytest.raises(VerificationError, match=message):
        check_diameter(graph, replace(found, **change))
