"""Tests of betweenness centrality: known answers, NetworkX, large levels and counts, errors, determinism."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.algorithms import _dependencies_cpu
from gpu_pregel.algorithms.checkers.betweenness_centrality import (
    check_betweenness_centrality,
    check_edge_betweenness_centrality,
)
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, GraphError, VerificationError
from gpu_pregel.host.superstep.progress import ProgressBar
from tests.devices import LONG, on
from tests.graphs import arrays, edge_lists

DEVICE = pytest.mark.parametrize("device", [on("cpu"), on("python")])
PATH = [(0, 1), (1, 2), (2, 3)]
SQUARE = [(0, 1), (1, 2), (2, 3), (3, 0)]


@DEVICE
@pytest.mark.parametrize(
    ("n", "edges", "directed", "arguments", "expected"),
    [
        (0, [], False, {}, []),
        (1, [(0, 0)], True, {}, [0]),
        (2, [(0, 1)], False, {}, [0, 0]),
        (4, PATH, False, {}, [0, 2 / 3, 2 / 3, 0]),
        (4, PATH, False, {"normalized": False}, [0, 2, 2, 0]),
        (4, PATH, True, {"normalized": False}, [0, 2, 2, 0]),
        (4, PATH, False, {"normalized": False, "endpoints": True}, [3, 5, 5, 3]),
        (4, SQUARE, False, {"normalized": False}, [0.5, 0.5, 0.5, 0.5]),
        # Repeated edges and self-loops change nothing.
        (4, [*SQUARE, (0, 1), (2, 2)], False, {"normalized": False}, [0.5, 0.5, 0.5, 0.5]),
        (5, [(0, 1), (0, 2), (0, 3), (0, 4)], False, {}, [1, 0, 0, 0, 0]),
        # Only the paths from 0, and they count for all: 4 / 1 for other vertices, none for 0.
        (4, PATH, True, {"normalized": False, "sources": [0]}, [0, 6, 3, 0]),
        (4, PATH, False, {"normalized": False, "sources": [1], "endpoints": True}, [2, 6, 4, 2]),
    ],
)
def test_known_answers(
    device: str, n: int, edges: list[Any], directed: bool, arguments: dict[str, Any], expected: list[float]
) -> None:
    graph = gp.Graph.from_edgelist(*arrays(edges), num_vertices=n, directed=directed)
    found = gp.betweenness_centrality(graph, **arguments, device=device)
    assert found.scores.tolist() == pytest.approx(expected, abs=1e-12)
    check_betweenness_centrality(graph, found)


@DEVICE
@pytest.mark.parametrize(
    ("n", "edges", "directed", "normalized", "expected"),
    [
        (0, [], False, True, {}),
        (3, [], True, True, {}),
        (4, PATH, False, False, {(0, 1): 3, (1, 2): 4, (2, 3): 3}),
        (4, PATH, True, True, {(0, 1): 3 / 12, (1, 2): 4 / 12, (2, 3): 3 / 12}),
        (4, [*SQUARE, (1, 0), (3, 3)], False, False, {(0, 1): 2, (0, 3): 2, (1, 2): 2, (2, 3): 2}),
    ],
)
def test_known_answers_of_edges(
    device: str, n: int, edges: list[Any], directed: bool, normalized: bool, expected: dict[Any, float]
) -> None:
    graph = gp.Graph.from_edgelist(*arrays(edges), num_vertices=n, directed=directed)
    found = gp.edge_betweenness_centrality(graph, normalized=normalized, device=device)
    assert found.to_dict() == pytest.approx(expected, abs=1e-12)
    check_edge_betweenness_centrality(graph, found)


@pytest.fixture(params=[False, True], ids=["blocks of sources", "shared levels"])
def shared(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Search all sources at once, or one after the other with the kernels for levels of many edges."""
    if request.param:
        for name in ("_SMALL_EDGES", "_SMALL_LEVEL"):
            monkeypatch.setattr(_dependencies_cpu, name, 3)
        monkeypatch.setattr(_dependencies_cpu, "_MIN_BLOCKS", 1000)
    return bool(request.param)


@settings(max_examples=25)
@given(drawn=edge_lists(25, 50), directed=st.booleans(), normalized=st.booleans(), endpoints=st.booleans())
@pytest.mark.usefixtures("shared")
def test_scores_are_those_of_networkx(drawn: Any, directed: bool, normalized: bool, endpoints: bool) -> None:
    n, edges = drawn
    known = networkx.DiGraph(edges) if directed else networkx.Graph(edges)
    known.add_nodes_from(range(n))
    graph = gp.Graph.from_edgelist(*arrays(edges), num_vertices=n, directed=directed)
    found = gp.betweenness_centrality(graph, normalized=normalized, endpoints=endpoints, device="cpu")
    expected = networkx.betweenness_centrality(known, normalized=normalized, endpoints=endpoints)
    assert found.to_dict() == pytest.approx(expected, abs=1e-11)
    ways = gp.edge_betweenness_centrality(graph, normalized=normalized, device="cpu").to_dict()
    expected = networkx.edge_betweenness_centrality(known, normalized=normalized)
    assert ways == pytest.approx(
        {(u, v) if directed else (min(u, v), max(u, v)): x for (u, v), x in expected.items() if u != v}, abs=1e-11
    )


@pytest.mark.parametrize(("directed", "normalized", "endpoints"), list(itertools.product([False, True], repeat=3)))
def test_sampled_sources_are_scaled_as_in_networkx(directed: bool, normalized: bool, endpoints: bool) -> None:
    known = networkx.gnm_random_graph(30, 60, seed=4, directed=directed)
    chosen = [3, 8, 17]

    class Choice:
        """NetworkX draws its sources from this."""

        def sample(self, _: list[int], count: int) -> list[int]:
            return chosen[:count]

    options = {"normalized": normalized, "endpoints": endpoints}
    expected = networkx.betweenness_centrality.orig_func(known, k=3, seed=Choice(), **options)
    graph = gp.Graph.from_networkx(known)
    found = gp.betweenness_centrality(graph, sources=chosen[::-1], device="cpu", **options)
    assert found.to_dict() == pytest.approx(expected, abs=1e-11)
    check_betweenness_centrality(graph, found)
    ways = gp.edge_betweenness_centrality(graph, sources=chosen, normalized=normalized, device="cpu")
    expected = networkx.edge_betweenness_centrality.orig_func(known, k=3, normalized=normalized, seed=Choice())
    assert ways.to_dict() == pytest.approx(expected, abs=1e-11)
    check_edge_betweenness_centrality(graph, ways)


@settings(max_examples=25)
@given(drawn=edge_lists(20, 50), directed=st.booleans(), seed=st.integers(0, 99), endpoints=st.booleans())
def test_weighted_scores_are_those_of_networkx(drawn: Any, directed: bool, seed: int, endpoints: bool) -> None:
    n, edges = drawn
    edges = list({(u, v) if directed else (min(u, v), max(u, v)): None for u, v in edges})
    weight = np.random.default_rng(seed).integers(1, 4, len(edges)).astype(float)
    known = networkx.DiGraph() if directed else networkx.Graph()
    known.add_nodes_from(range(n))
    known.add_weighted_edges_from((u, v, float(w)) for (u, v), w in zip(edges, weight, strict=True))
    graph = gp.Graph.from_edgelist(*arrays(edges), weight, num_vertices=n, directed=directed)
    found = gp.betweenness_centrality(graph, weighted=True, endpoints=endpoints, device="cpu")
    expected = networkx.betweenness_centrality(known, weight="weight", endpoints=endpoints)
    assert found.to_dict() == pytest.approx(expected, abs=1e-11)
    check_betweenness_centrality(graph, found)
    ways = gp.edge_betweenness_centrality(graph, weighted=True, device="cpu")
    expected = networkx.edge_betweenness_centrality(known, weight="weight")
    assert ways.to_dict() == pytest.approx(
        {(u, v) if directed else (min(u, v), max(u, v)): x for (u, v), x in expected.items() if u != v}, abs=1e-11
    )
    check_edge_betweenness_centrality(graph, ways)


@pytest.mark.parametrize("device", [on("emulated"), on("cuda"), on("python")])
def test_weighted_scores_on_other_devices(device: str) -> None:
    # Of the edges from 0 to 2 one is as long as the path over 1, the other longer: half of these paths go over 1.
    edges, weight = [(0, 1), (1, 2), (0, 2), (0, 2), (2, 3), (3, 3)], np.array([1.0, 2, 3, 5, 1, 1])
    for directed in (False, True) if device == "python" else (True,):
        graph = gp.Graph.from_edgelist(*arrays(edges), weight, num_vertices=5, directed=directed)
        options: dict[str, Any] = {"weighted": True, "normalized": False}
        found = gp.betweenness_centrality(graph, **options, endpoints=True, device=device)
        expected = gp.betweenness_centrality(graph, **options, endpoints=True, device="cpu")
        assert np.allclose(found.scores, expected.scores, rtol=1e-12)
        ways = gp.edge_betweenness_centrality(graph, **options, device=device).to_dict()
        assert ways == pytest.approx({(0, 1): 2, (0, 2): 1, (1, 2): 3, (2, 3): 3})


LARGEST = 2**63 - 1
EXTREME = [
    ([(0, 1), (1, 2)], [1.0, 1e17], [0, 1, 0]),
    # On a cycle of equal distances each vertex has the predecessors with fewer hops.
    ([(0, 1), (1, 2), (2, 3), (3, 4), (4, 1)], [1e20, 1.0, 1.0, 1.0, 1.0], [0, 3.5, 1, 0.5, 1]),
    ([(0, 1), (1, 2)], [1.0, np.inf], [0, 0, 0]),
    # Seen from 1, the way over 2 is as long as the edge, as both are rounded.
    ([(0, 1), (1, 2), (0, 2)], np.array([LARGEST, 1, LARGEST]), [0, 0.25, 0.25]),
    ([(0, 1), (1, 2)], np.array([LARGEST, 1]), [0, 1, 0]),
    # A path beyond the range of float64 is no path.
    ([(0, 1), (1, 2), (2, 3)], [1.7e308, 1e308, 1.0], [0, 0, 1, 0]),
]


@pytest.mark.parametrize("device", [on("cpu"), on("python"), on("emulated"), on("cuda")])
def test_weights_of_very_different_size(device: str) -> None:
    for edges, weight, expected in EXTREME if device in ("cpu", "python") else EXTREME[1:3]:
        graph = gp.Graph.from_edgelist(*arrays(edges), weight)
        found = gp.betweenness_centrality(graph, normalized=False, device=device)
        assert found.scores.tolist() == pytest.approx(expected, abs=1e-12)
        check_betweenness_centrality(graph, found)
        check_edge_betweenness_centrality(graph, gp.edge_betweenness_centrality(graph, device=device))


@settings(max_examples=40)
@given(drawn=edge_lists(9, 24), directed=st.booleans(), data=st.data())
def test_any_weights_on_the_device_python(drawn: Any, directed: bool, data: Any) -> None:
    n, edges = drawn
    sizes = data.draw(
        st.sampled_from([[10.0**k for k in range(-20, 21)], [1.0, 3.0, 1e17, 1e308, np.inf], [1, LARGEST]])
    )
    weight = np.array(data.draw(st.lists(st.sampled_from(sizes), min_size=len(edges), max_size=len(edges))))
    graph = gp.Graph.from_edgelist(*arrays(edges), weight if len(edges) else None, num_vertices=n, directed=directed)
    for function in (gp.betweenness_centrality, gp.edge_betweenness_centrality):
        one, other = (function(graph, device=device) for device in ("cpu", "python"))
        np.testing.assert_allclose(one.scores, other.scores, rtol=1e-9, atol=1e-15)
    check_edge_betweenness_centrality(graph, one)


def test_weights_must_be_positive() -> None:
    for function in (gp.betweenness_centrality, gp.edge_betweenness_centrality):
        name = function.__name__
        with pytest.raises(GraphError, match=f"{name} needs weights above 0, and the edge from 1"):
            function(gp.Graph.from_edgelist([0, 1], [1, 2], [1.0, 0.0], directed=True))


def test_sources_are_chosen_by_the_seed() -> None:
    graph = gp.kronecker(8, 4)
    drawn = [gp.betweenness_centrality(graph, sources=5, seed=seed, device="cpu").sources for seed in (1, 1, 2)]
    found = [[] if one is None else one.tolist() for one in drawn]
    assert all(len(set(one)) == 5 for one in found)
    assert found[0] == found[1] != found[2]
    assert gp.betweenness_centrality(graph, sources=graph.num_vertices, device="cpu").sources is None


@pytest.mark.parametrize(
    ("directed", "sources"),
    [
        (False, 5),
        (True, 2),
        (True, 40),
        *(pytest.param(*case, marks=LONG) for case in ((False, 2), (False, 40), (True, 5))),
    ],
)
def test_large_levels_and_threads(directed: bool, sources: int) -> None:
    """Two sources share levels, five do so on the renumbered graph if undirected, forty are searched in blocks."""
    graph = gp.kronecker(14, 8)
    if directed:
        src, dst, _ = graph.to_edgelist()
        graph = gp.Graph.from_edgelist(src, dst, num_vertices=graph.num_vertices, directed=True)
    chosen = np.flatnonzero(graph.out_degrees)[:: 300 // sources][:sources]
    found = [gp.betweenness_centrality(graph, sources=chosen, threads=threads) for threads in (1, 2, 5)]
    assert len({one.scores.tobytes() for one in found}) == 1
    assert ("renumber" in [row["phase"] for row in found[0].trace]) == (sources == 5 and not directed)
    if sources == 2:
        check_betweenness_centrality(graph, found[0])
        ways = gp.edge_betweenness_centrality(graph, sources=chosen, device="cpu")
        check_edge_betweenness_centrality(graph, ways)
    else:
        one_by_one = [gp.betweenness_centrality(graph, sources=[v], normalized=False, device="cpu") for v in chosen]
        total = np.mean([one.scores for one in one_by_one], axis=0)
        others = np.setdiff1d(np.arange(graph.num_vertices), chosen)
        scores = gp.betweenness_centrality(graph, sources=chosen, normalized=False, device="cpu").scores
        assert np.allclose(scores[others], total[others], rtol=1e-9)


@pytest.mark.parametrize("device", [on("cpu"), on("python")])
@pytest.mark.usefixtures("shared")
def test_more_paths_than_float64_can_count(device: str) -> None:
    """A chain of 600 diamonds, each with 4 ways: 4**600 paths from end to end."""
    length = 40 if device == "python" else 600
    edges = [
        edge for k in range(length) for way in range(1, 5) for edge in ((5 * k, 5 * k + way), (5 * k + way, 5 * k + 5))
    ]
    graph = gp.Graph.from_edgelist(*arrays(edges), directed=True)
    found = gp.betweenness_centrality(graph, sources=[0, 1], normalized=False, device=device)
    check_betweenness_centrality(graph, found)
    ones = gp.Graph.from_edgelist(*arrays(edges), np.ones(len(edges)), directed=True)
    weighted = gp.betweenness_centrality(ones, sources=[0, 1], normalized=False, weighted=True, device=device)
    assert np.allclose(weighted.scores, found.scores, rtol=1e-9)
    ways = gp.edge_betweenness_centrality(graph, sources=[0, 1], normalized=False, device=device)
    check_edge_betweenness_centrality(graph, ways)


@pytest.mark.parametrize("name", ["mtx/karate.mtx", "snap/wiki-Vote.txt", "mesh/wing.graph"])
def test_public_graphs(data: Path, name: str) -> None:
    graph = gp.read_graph(data / name, directed=name.endswith("Vote.txt"))
    found = gp.betweenness_centrality(graph, sources=None if graph.num_vertices < 100 else 3, device="cpu")
    check_betweenness_centrality(graph, found)


def test_results_use_the_ids_of_the_user() -> None:
    graph = gp.Graph.from_edgelist(["a", "b"], ["b", "c"])
    found = gp.betweenness_centrality(graph, device="cpu")
    assert found["b"] == 1
    assert found.summary() == {"sources": 3, "highest": "b"}
    assert repr(found) == "<BetweennessScores: 3 vertices, 3 sources>"
    assert found.describe() == "3 vertices, shortest paths from 3 sources, the highest score 1 at 'b'"
    ways = gp.edge_betweenness_centrality(graph, sources=["a"], device="cpu")
    assert ways.to_pandas().columns.tolist() == ["source", "target", "score"]
    assert ways.summary() == {"sources": 1, "highest": ("a", "b")}
    assert (len(ways), repr(ways)) == (2, "<EdgeBetweennessScores: 2 edges, 1 sources>")
    assert ways.describe() == "2 edges, shortest paths from 1 sources, the highest score 1 at ('a', 'b')"
    empty = gp.edge_betweenness_centrality(gp.Graph.from_edgelist([], []), device="cpu")
    assert (len(empty), empty.summary()["highest"]) == (0, None)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"sources": 0}, ArgumentError, "sources must be from 1 to 3, not 0"),
        ({"sources": 4}, ArgumentError, "sources must be from 1 to 3, not 4"),
        ({"sources": []}, ArgumentError, "sources is empty"),
        ({"sources": [7]}, ArgumentError, "sources: .*7"),
        ({"sources": [1, 2, 1]}, ArgumentError, "sources has 1 more than once"),
        ({"sources": "a"}, ArgumentTypeError, "sources: "),
        ({"sources": 2, "seed": -1}, ArgumentError, "seed must be at least 0"),
        ({"normalized": 2}, ArgumentTypeError, "normalized must be True or False"),
    ],
)
def test_invalid_arguments_are_rejected(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    graph = gp.Graph.from_edgelist([0, 1], [1, 2])
    for function in (gp.betweenness_centrality, gp.edge_betweenness_centrality):
        with pytest.raises(error, match=message):
            function(graph, **arguments)


def test_the_empty_graph_has_no_sources() -> None:
    with pytest.raises(ArgumentError, match="sources must be None, as the graph has no vertices"):
        gp.betweenness_centrality(gp.Graph.from_edgelist([], []), sources=1)


def test_the_checkers_detect_errors() -> None:
    graph = gp.Graph.from_edgelist(*arrays(PATH))
    found = gp.betweenness_centrality(graph, device="cpu")
    ways = gp.edge_betweenness_centrality(graph, device="cpu")
    for changed, message in ((found.scores[1:], "shape"), (found.scores * 1.01, "vertex 1 has the score")):
        with pytest.raises(VerificationError, match=message):
            check_betweenness_centrality(graph, replace(found, scores=changed))
    for field, message in (
        ({"scores": ways.scores[1:]}, "shape"),
        ({"scores": ways.scores * 1.01}, "the edge 0 to 1 has the score"),
        ({"edge_targets": ways.edge_sources}, "the edges are not those of the graph"),
    ):
        with pytest.raises(VerificationError, match=message):
            check_edge_betweenness_centrality(graph, replace(ways, **field))


@pytest.mark.parametrize("weighted", [False, True])
def test_a_launch_searches_from_few_sources_so_that_ctrl_c_ends_it(
    monkeypatch: pytest.MonkeyPatch, weighted: bool
) -> None:
    monkeypatch.setattr(_dependencies_cpu, "_AT_A_TIME", 1)
    shown: list[tuple[int, int | None]] = []

    def stop(bar: Any, done: int, total: int | None = None) -> None:
        shown.append((done, total))
        if done > 128:
            raise KeyboardInterrupt

    monkeypatch.setattr(ProgressBar, "update", stop)
    n = 300
    graph = gp.Graph.from_edgelist(np.arange(n), (np.arange(n) + 1) % n, np.ones(n) if weighted else None)
    with pytest.raises(KeyboardInterrupt):
        gp.betweenness_centrality(graph, weighted=weighted)
    assert shown == [(64, n), (128, n), (192, n)]
    monkeypatch.setattr(ProgressBar, "update", lambda *arguments: None)
    scores = gp.betweenness_centrality(graph, weighted=weighted, normalized=False).scores
    # All vertices of a cycle are alike.
    np.testing.assert_allclose(scores, scores[0])
