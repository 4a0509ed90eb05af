"""Tests of PageRank: known answers, NetworkX, LDBC's validation graphs, convergence, errors, determinism."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.algorithms._degree_order import MIN_VERTICES
from gpu_pregel.algorithms.checkers.pagerank import check_pagerank
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, GraphError, VerificationError
from tests.devices import on
from tests.graphs import arrays, edge_lists

ONE_OF_EACH = pytest.mark.parametrize("device", [on("cpu"), on("emulated"), on("cuda"), on("python")])
"""Every device, the emulated one with one seed."""


@ONE_OF_EACH
@pytest.mark.parametrize(
    ("n", "edges", "directed", "arguments", "expected"),
    [
        (0, [], False, {}, []),
        (1, [], False, {}, [1]),
        (1, [(0, 0)], True, {}, [1]),
        (3, [], True, {}, [1 / 3] * 3),
        (2, [(0, 1)], False, {}, [0.5, 0.5]),
        # x = (1 - d) / 2 + d y / 2, as the second vertex is dangling and x + y = 1.
        (2, [(0, 1)], True, {}, [0.5 / 1.425, 0.925 / 1.425]),
        # The middle of a path: x = 0.05 + 0.85 (1 - x).
        (3, [(0, 1), (0, 2)], False, {}, [0.9 / 1.85, 0.475 / 1.85, 0.475 / 1.85]),
        # Two edges to vertex 1 and one to vertex 2: it gets twice as much.
        (3, [(0, 1), (0, 1), (0, 2)], True, {"max_iterations": 1, "damping": 0.5, "tolerance": 0},
         [1 / 6 + 1 / 9, 1 / 6 + 1 / 9 + 1 / 9, 1 / 6 + 1 / 9 + 1 / 18]),
        # Everything jumps to vertex 1, and its dangling score as well.
        (2, [], True, {"personalization": [0, 2]}, [0, 1]),
        (2, [(0, 1)], True, {"personalization": {0: 1}}, [1 / 1.85, 0.85 / 1.85]),
    ],
)  # fmt: skip
def test_known_answers(
    device: str, n: int, edges: list[Any], directed: bool, arguments: dict[str, Any], expected: list[float]
) -> None:
    graph = gp.Graph.from_edgelist(*arrays(edges), num_vertices=n, directed=directed)
    ranks = gp.pagerank(graph, **{"tolerance": 1e-12, "max_iterations": 300, **arguments}, device=device)
    assert ranks.to_numpy().tolist() == pytest.approx(expected, abs=1e-11)
    assert ranks.converged == ("max_iterations" not in arguments)
    check_pagerank(graph, ranks)


def as_networkx(n: int, edges: list[tuple[int, int]], directed: bool, weights: list[float]) -> Any:
    """The graph as NetworkX has it, where a repeated edge replaces the one before."""
    graph = networkx.DiGraph() if directed else networkx.Graph()
    graph.add_nodes_from(range(n))
    graph.add_weighted_edges_from((u, v, w) for (u, v), w in zip(edges, weights, strict=False))
    return graph


@settings(max_examples=30)
@given(
    drawn=edge_lists(), directed=st.booleans(), seed=st.integers(0, 9), weighted=st.booleans(), personal=st.booleans()
)
def test_scores_are_those_of_networkx(drawn: Any, directed: bool, seed: int, weighted: bool, personal: bool) -> None:
    n, edges = drawn
    random = np.random.default_rng(seed)
    known = as_networkx(n, edges, directed, random.integers(0, 5, len(edges)).astype(float).tolist())
    likely = {int(v): float(v + 1) for v in random.choice(n, (n + 1) // 2, replace=False)} if personal else None
    expected = networkx.pagerank(
        known, alpha=0.7, personalization=likely, tol=1e-14, max_iter=1000, weight="weight" if weighted else None
    )
    graph = gp.Graph.from_networkx(known)
    ranks = gp.pagerank(
        graph,
        damping=0.7,
        personalization=likely,
        tolerance=1e-13,
        max_iterations=1000,
        weighted=weighted,
        device="cpu",
    )
    assert ranks.to_dict() == pytest.approx(expected, abs=1e-12)
    check_pagerank(graph, ranks)


@pytest.mark.parametrize("weighted", [False, True])
@ONE_OF_EACH
def test_devices_agree_on_weights_dangling_vertices_and_personalisation(device: str, weighted: bool) -> None:
    edges = [(0, 1), (0, 2), (1, 2), (2, 0), (3, 2), (3, 4), (4, 4), (1, 2)]
    weight = np.array([1.0, 2, 3, 0, 5, 1, 2, 1])
    graph = gp.Graph.from_edgelist(*arrays(edges), weight, num_vertices=6, directed=True)
    arguments: dict[str, Any] = {"personalization": {0: 1, 5: 3}, "initial": [1, 0, 0, 0, 0, 2], "weighted": weighted}
    ranks = gp.pagerank(graph, **arguments, device=device)
    assert ranks.iterations == gp.pagerank(graph, **arguments, device="cpu").iterations
    assert np.allclose(ranks.to_numpy(), gp.pagerank(graph, **arguments, device="cpu").scores, rtol=0, atol=1e-14)
    check_pagerank(graph, ranks)


def ldbc_scores(path: Path) -> dict[int, float]:
    """The expected scores."""
    return {int(vertex): float(score) for vertex, score in map(str.split, path.read_text().splitlines())}


@pytest.mark.parametrize("directed", [False, True])
def test_two_iterations_on_ldbc_examples(data: Path, directed: bool) -> None:
    path = data / "graphalytics" / "example" / f"example-{'directed' if directed else 'undirected'}"
    graph = gp.read_graph(f"{path}.e", directed=directed)
    ranks = gp.pagerank(graph, tolerance=0, max_iterations=2, weighted=False, device="cpu")
    assert ranks.to_dict() == pytest.approx(ldbc_scores(Path(f"{path}-PR")), rel=1e-12)
    assert (ranks.iterations, ranks.converged) == (2, False)


@pytest.mark.parametrize(("direction", "iterations", "precision"), [("dir", 60, 1e-14), ("undir", 26, 1e-7)])
def test_ldbc_validation_graphs(data: Path, direction: str, iterations: int, precision: float) -> None:
    folder = data / "graphalytics" / "pr"
    rows = [list(map(int, line.split())) for line in (folder / f"{direction}-input").read_text().splitlines()]
    # Both files list all neighbours, so that an undirected edge is listed twice.
    src, dst = zip(*((row[0], v) for row in rows for v in row[1:]), strict=True)
    graph = gp.Graph.from_edgelist(src, dst, directed=True)
    ranks = gp.pagerank(graph, tolerance=0, max_iterations=iterations, device="cpu")
    assert ranks.to_dict() == pytest.approx(ldbc_scores(folder / f"{direction}-output"), rel=precision)
    check_pagerank(graph, ranks)


@pytest.mark.parametrize("name", ["snap/wiki-Vote.txt", "snap/as20graph.txt", "mesh/wing.graph"])
def test_public_graphs(data: Path, name: str) -> None:
    graph = gp.read_graph(data / name, directed=name.endswith("Vote.txt"))
    ranks = gp.pagerank(graph, tolerance=1e-8, max_iterations=200)
    assert ranks.converged
    check_pagerank(graph, ranks)


@pytest.fixture(scope="module")
def hubs() -> gp.Graph:
    """A graph that is renumbered by degree."""
    return gp.kronecker(15, 4)


@pytest.mark.parametrize("directed", [False, True])
def test_renumbering_by_degree_changes_only_rounding(hubs: gp.Graph, directed: bool) -> None:
    graph = hubs
    if directed:
        keep = np.random.default_rng(1).random(hubs.num_stored_edges) < 0.6
        src, dst, _ = hubs.to_edgelist()
        size = min(len(src), len(keep))
        graph = gp.Graph.from_edgelist(
            src[:size][keep[:size]], dst[:size][keep[:size]], num_vertices=hubs.num_vertices, directed=True
        )
    assert graph.num_vertices >= MIN_VERTICES
    ranks = gp.pagerank(graph, threads=2)
    assert "renumber" in [row["phase"] for row in ranks.trace]
    check_pagerank(graph, ranks)
    # Weights, even if all are 1, prevent it.
    weighted = gp.Graph.from_csr(graph.indptr, graph.indices, np.ones(graph.num_stored_edges), directed=directed)
    plain = gp.pagerank(weighted, threads=2)
    assert "renumber" not in [row["phase"] for row in plain.trace]
    assert ranks.iterations == plain.iterations
    assert np.allclose(ranks.scores, plain.scores, rtol=1e-12, atol=0)


def test_scores_are_the_same_for_any_number_of_threads(hubs: gp.Graph) -> None:
    found = [gp.pagerank(hubs, threads=threads, dtype=np.float32) for threads in (1, 2, 5, 5)]
    assert len({one.scores.tobytes() for one in found}) == 1
    assert len({(one.iterations, one.error) for one in found}) == 1
    assert found[0].scores.dtype == np.float32
    check_pagerank(hubs, found[0])


def test_the_limit_of_iterations_ends_without_an_error() -> None:
    graph = gp.grid(5)
    ranks = gp.pagerank(graph, max_iterations=3, device="cpu")
    assert (ranks.iterations, ranks.converged) == (3, False)
    assert ranks.error > 1e-6
    assert gp.pagerank(graph, max_iterations=100, initial=ranks.scores, tolerance=1e-5, device="cpu").iterations < 100


def test_a_column_of_numbers() -> None:
    pandas = pytest.importorskip("pandas")
    graph = gp.Graph.from_edgelist([0, 1], [1, 2])
    ranks = gp.pagerank(graph, personalization=pandas.Series([0, 2, 2]), device="cpu")
    assert ranks.personalization is not None
    assert ranks.personalization.tolist() == [0, 0.5, 0.5]


def test_results_use_the_ids_of_the_user() -> None:
    graph = gp.Graph.from_edgelist(["a", "c"], ["b", "b"], directed=True)
    ranks = gp.pagerank(graph, personalization={"b": 1}, device="cpu")
    assert ranks["b"] == pytest.approx(1, abs=1e-5)
    assert ranks.to_pandas().columns.tolist() == ["vertex", "score"]
    assert ranks.summary()["highest"] == "b"
    assert ranks.personalization is not None
    assert ranks.personalization.tolist() == [0, 1, 0]
    assert repr(ranks) == f"<PageRanks: 3 vertices, {ranks.iterations} iterations, converged: True>"
    assert ranks.describe().startswith(f"3 vertices, converged after {ranks.iterations} iterations")
    empty = gp.pagerank(gp.Graph.from_edgelist([], []), device="cpu")
    assert (empty.converged, empty.iterations, empty.summary()["highest"]) == (True, 0, None)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"damping": 1}, ArgumentError, "damping must be above 0 and below 1, not 1"),
        ({"damping": 0.0}, ArgumentError, r"damping must be above 0 and below 1, not 0\.0"),
        ({"damping": "x"}, ArgumentTypeError, "damping must be a number"),
        ({"tolerance": -1}, ArgumentError, "tolerance must be at least 0, not -1"),
        ({"tolerance": 10**400}, ArgumentError, "tolerance must be at least 0, not 1000"),
        ({"max_iterations": 0}, ArgumentError, "max_iterations must be at least 1, not 0"),
        ({"weighted": 1}, ArgumentTypeError, "weighted must be True or False"),
        ({"dtype": np.int64}, ArgumentError, "dtype must be np.float32 or np.float64"),
        ({"dtype": None}, ArgumentError, "dtype must be np.float32 or np.float64"),
        ({"dtype": np.ones(2)}, ArgumentError, "dtype must be np.float32 or np.float64"),
        ({"personalization": [1e308] * 3}, ArgumentError, "personalization sums to inf"),
        ({"progress": np.ones(2)}, ArgumentTypeError, "progress must be True or False"),
        ({"personalization": {0: 0}}, ArgumentError, "personalization sums to 0.0: give at least one vertex a number"),
        ({"personalization": {7: 1}}, ArgumentError, "personalization: .*7"),
        ({"personalization": [1, 2]}, ArgumentError, r"personalization has shape \(2,\): pass an array of 3 numbers"),
        ({"personalization": [1, -2, 3]}, ArgumentError, r"personalization has -2\.0 for the vertex 1"),
        ({"personalization": [1, np.nan, 3]}, ArgumentError, "personalization has nan for the vertex 1"),
        (
            {"personalization": ["a", "b", "c"]},
            ArgumentTypeError,
            "personalization must have a real number for each vertex",
        ),
        ({"personalization": [1j, 0, 0]}, ArgumentTypeError, "personalization must have a real number"),
        ({"initial": {}}, ArgumentError, "initial sums to 0.0"),
    ],
)
def test_invalid_arguments_are_rejected(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        gp.pagerank(gp.Graph.from_edgelist([0, 1], [1, 2]), **arguments)


def test_negative_weights_are_rejected() -> None:
    graph = gp.Graph.from_edgelist([0, 1], [1, 2], [1.0, -1.0])
    with pytest.raises(GraphError, match="pagerank needs weights of at least 0"):
        gp.pagerank(graph)
    check_pagerank(graph, gp.pagerank(graph, weighted=False, device="cpu"))


@pytest.mark.parametrize(
    ("weights", "dtype", "message"),
    [
        ([1.0, np.inf], np.float64, "weights whose sum is at most 1e\\+150"),
        ([1e308, 1e308], np.float64, "weights whose sum is at most 1e\\+150"),
        ([1.0, 5e-324], np.float64, "those of the vertex 'c' sum to 4.9e-324: scale the weights"),
        ([1.0, 1e-40], np.float32, "those of the vertex 'c' sum to 1e-40: scale the weights"),
        ([1.0, 1e40], np.float32, "pagerank with dtype float32 needs .* from 1.2e-38 to 3.4e\\+38"),
    ],
)
@pytest.mark.parametrize("device", ["cpu", "python"])
def test_weights_beyond_the_range_of_the_dtype_are_rejected(
    weights: list[float], dtype: Any, message: str, device: Any
) -> None:
    graph = gp.Graph.from_edgelist(["a", "c"], ["b", "d"], weights, directed=True)
    with pytest.raises(GraphError, match=message):
        gp.pagerank(graph, dtype=dtype, device=device)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda ranks: {"scores": ranks.scores[:2]}, "shape"),
        (lambda ranks: {"scores": ranks.scores * [1, -1, 1]}, "vertex 1 has the score"),
        (lambda ranks: {"scores": ranks.scores * 2}, "sum to 2"),
        (lambda ranks: {"scores": ranks.scores[::-1]}, "another iteration changes the scores"),
        (lambda ranks: {"converged": False}, "converged is False"),
        (lambda ranks: {"error": 3.0, "converged": False}, "no distance"),
    ],
)
def test_the_checker_detects_errors(change: Any, message: str) -> None:
    graph = gp.Graph.from_edgelist([0, 1], [1, 2], directed=True)
    ranks = gp.pagerank(graph, device="cpu")
    check_pagerank(graph, ranks)
    with pytest.raises(VerificationError, match=message):
        check_pagerank(graph, replace(ranks, **change(ranks)))
