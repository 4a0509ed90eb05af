"""Odd arguments: a call is left to NetworkX, or has its result or its error."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
import pytest

from gpu_pregel.networkx import FUNCTIONS
from tests.gpu_pregel.networkx.comparison import Case, assert_same, outcome

NAN, INF = float("nan"), float("inf")


def _path(*, weight: Any = 2, create_using: Any = None) -> nx.Graph:
    graph = nx.path_graph(5, create_using=create_using)
    nx.set_edge_attributes(graph, weight, "weight")
    return graph


def _uneven(largest: float = 1e300) -> nx.Graph:
    """Return triangles in which a detour by a short edge is as long as the direct way, to the last bit."""
    graph = nx.Graph()
    graph.add_weighted_edges_from([(0, 1, largest), (1, 2, 1.0), (0, 2, largest), (2, 3, largest), (1, 3, largest)])
    return graph


def _with_half(largest: int) -> nx.DiGraph:
    """Return a path of integers, and an edge that is none."""
    graph = nx.DiGraph()
    graph.add_weighted_edges_from([(0, 1, largest), (1, 2, 1), (3, 4, 0.5)])
    return graph


def _infinite(is_cycle: bool = False) -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_weighted_edges_from([(0, 1, INF), (1, 2, -INF), (0, 5, -INF), (5, 6, INF), (0, 3, 1.0), (3, 4, 2.0)])
    graph.add_weighted_edges_from([(2, 0, -INF)] * is_cycle)
    return graph


def _of_tuples() -> nx.Graph:
    return nx.Graph([((1,), 2), (2, 3)])


def _with_nan() -> nx.Graph:
    return nx.Graph([(0, NAN), (NAN, 1), (1, 2), (2, 0)])


CALLS: dict[str, tuple[str, Any]] = {
    "samples of a state of NumPy": (
        "betweenness_centrality",
        lambda: (_path(), 3, True, None, False, np.random.RandomState(7)),
    ),
    "samples of edges of a state of NumPy": (
        "edge_betweenness_centrality",
        lambda: (_path(), 3, True, None, np.random.RandomState(7)),
    ),
    "targets once": ("betweenness_centrality_subset", lambda: (_path(), [0, 1], iter([2, 3]))),
    "lengths that do not change sums": ("betweenness_centrality", lambda: (_uneven(), None, True, "weight")),
    "infinite weights of links": ("pagerank", lambda: (_path(weight=float("inf")),)),
    "smallest weights of links": ("pagerank", lambda: (_path(weight=5e-324),)),
    "large weights of neighbors": ("eigenvector_centrality", lambda: (_path(weight=1e200), 100, 1e-6, None, "weight")),
    "small weights of neighbors": ("constraint", lambda: (_path(weight=1e-310), None, "weight")),
    "infinite weights of triangles": ("clustering", lambda: (_uneven(float("inf")), None, "weight")),
    "infinite weights of food": ("trophic_levels", lambda: (_path(weight=float("inf"), create_using=nx.DiGraph),)),
    "infinite lengths of harmonic sums": ("harmonic_centrality", lambda: (_path(weight=INF), None, "weight")),
    "infinite lengths of sums": ("closeness_centrality", lambda: (_path(weight=INF), None, "weight")),
    "infinite weights of communities": ("greedy_modularity_communities", lambda: (_path(weight=INF), "weight")),
    "lengths of minus infinity": ("dijkstra_predecessor_and_distance", lambda: (_infinite(), 0)),
    "all lengths of minus infinity": ("floyd_warshall_numpy", lambda: (_infinite(),)),
    "order of minus infinity": ("single_source_dijkstra_path_length", lambda: (_infinite(), 0)),
    "negative cycles of minus infinity": ("single_source_bellman_ford_path_length", lambda: (_infinite(True), 0)),
    "votes not whole": ("voterank", lambda: (nx.empty_graph(3), 1.5)),
    "mixed lengths that are not exact": ("all_pairs_dijkstra_path_length", lambda: (_with_half(2**53),)),
    "a mixed length that is not exact": ("dijkstra_path_length", lambda: (_with_half(2**53), 0, 2)),
    "exact mixed lengths": ("all_pairs_dijkstra_path_length", lambda: (_with_half(2**50),)),
    "cutoff in float32": ("all_pairs_dijkstra_path_length", lambda: (_path(weight=0.7), np.float32(0.7))),
    "cutoff too large for a float": ("all_pairs_dijkstra_path_length", lambda: (_path(weight=0.7), 10**400)),
    "cutoff a fraction": ("single_source_dijkstra", lambda: (_path(weight=0.7), 0, None, Fraction(7, 10))),
    "degrees of a node": ("degree_assortativity_coefficient", lambda: (_path(), "out", "in", None, 1)),
    "weighted degrees of a node": (
        "degree_assortativity_coefficient",
        lambda: (_path(weight=1.5), "out", "in", "weight", 1),
    ),
    "degrees of an array of a node": (
        "degree_assortativity_coefficient",
        lambda: (_path(), "out", "in", None, np.array(1)),
    ),
    "degrees of no node": ("degree_assortativity_coefficient", lambda: (_path(), "out", "in", None, 99)),
    "load of a list": ("newman_betweenness_centrality", lambda: (_path(), [1])),
    "negative cycle from a list": ("find_negative_cycle", lambda: (_path(), [1])),
    "paths from a list": ("single_source_bellman_ford", lambda: (_path(), [1])),
    "a tree from None": ("bfs_tree", lambda: (_path(), None)),
    "edges with probability nan": ("fast_gnp_random_graph", lambda: (5, NAN, 1)),
    "an array of objects": ("to_numpy_array", lambda: (_path(), None, object)),
    "cutoff nan": ("single_source_shortest_path", lambda: (_path(), 0, NAN)),
    "weighted cutoff nan": ("single_source_dijkstra", lambda: (_path(), 0, None, NAN)),
    "depth limit nan": ("bfs_edges", lambda: (_path(), 0, False, NAN)),
    "depth limit text": ("dfs_preorder_nodes", lambda: (_path(), 0, "2")),
    "generic depth limit nan": ("generic_bfs_edges", lambda: (_path(), 0, None, NAN)),
    "load by a fraction": ("newman_betweenness_centrality", lambda: (_path(), None, Fraction(3, 2))),
    "weight is True": ("pagerank", lambda: (_path(), 0.85, None, 100, 1e-6, None, True)),
    "weight is False": ("adjacency_matrix", lambda: (_path(), None, None, False)),
    "iterations not whole": ("pagerank", lambda: (_path(), 0.85, None, 2.5)),
    "repeated nodes of a volume": ("volume", lambda: (_path(), [1, 1, 2])),
    "repeated nodes of a cut": ("normalized_cut_size", lambda: (_path(), [1, 1])),
    "volume of all": ("volume", lambda: (_path(), None)),
    "volume of a node that is a tuple": ("volume", lambda: (_of_tuples(), (1,))),
    "matrix of a node that is a tuple": ("to_scipy_sparse_array", lambda: (_of_tuples(), (1,))),
    "weights too large for a type": ("to_scipy_sparse_array", lambda: (_path(weight=300), None, "i1")),
    "weights too large for a dense type": ("to_numpy_array", lambda: (_path(weight=-1), None, "u1")),
    "infinite weights as integers": ("to_numpy_array", lambda: (_path(weight=float("inf")), None, int)),
    "a partition once": ("partition_quality", lambda: (_path(), iter([{0, 1}, {2, 3, 4}]))),
    "sources once": ("multi_source_dijkstra", lambda: (_path(), iter([0, 1]), 1)),
    "fewest communities not whole": ("greedy_modularity_communities", lambda: (_path(), None, 1, 1.5)),
    "corona of text": ("k_corona", lambda: (_path(), "2")),
    "corona of None": ("k_corona", lambda: (_path(), None)),
    "regular of a list": ("is_k_regular", lambda: (_path(), [])),
    "redundancy of an iterator": ("node_redundancy", lambda: (nx.cycle_graph(4), iter([0, 1]))),
    "independent nodes of an iterator": ("maximal_independent_set", lambda: (_path(), iter([]))),
    "scores of a tuple": ("laplacian_centrality", lambda: (_path(), True, (0, 1))),
    "nodes at a distance that is text": ("descendants_at_distance", lambda: (_path(), 0, "2")),
    "nodes at no distance": ("descendants_at_distance", lambda: (_path(), 0, None)),
    "fluids of True": ("asyn_fluidc", lambda: (_path(), True, 100, 1)),
    "a matching of lists": ("is_maximal_matching", lambda: (_path(), [[0, 1]])),
    "indices that are no numbers": (
        "attribute_mixing_matrix",
        lambda: (_path(), "x", None, {None: True}),
    ),
    "lists among dominating nodes": ("is_dominating_set", lambda: (_path(), [[0], 1, 3])),
    "truss of text": ("k_truss", lambda: (_path(), "2")),
    "betweenness of nan": ("betweenness_centrality", lambda: (_with_nan(),)),
    "paths to nan": ("all_pairs_all_shortest_paths", lambda: (_with_nan(),)),
}


_TAKEN = {
    *("samples of a state of NumPy", "samples of edges of a state of NumPy", "a tree from None", "corona of None"),
    *("nodes at no distance", "fluids of True", "lists among dominating nodes"),
    *("exact mixed lengths", "degrees of a node", "degrees of no node", "load of a list", "negative cycle from a list"),
    *("paths from a list", "weighted degrees of a node", "degrees of an array of a node"),
}
"""The calls that are not left to NetworkX."""


@pytest.mark.parametrize("name", CALLS)
def test_odd_arguments_give_what_networkx_gives(name: str) -> None:
    function_name, arguments = CALLS[name]
    function = FUNCTIONS[function_name].original()
    ours = outcome(function, (arguments(), {}), "gpu_pregel")
    assert isinstance(ours, NotImplementedError) == (name not in _TAKEN)
    if name in _TAKEN:
        assert_same(ours, outcome(function, (arguments(), {}), "networkx"), Case(), name)


@pytest.mark.parametrize("priority", [[], ["gpu_pregel"]])
@pytest.mark.parametrize("function", [nx.all_pairs_dijkstra, nx.connected_components, nx.bridges, nx.pagerank])
def test_an_argument_that_no_function_has_fails_at_the_call(
    function: Any, priority: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nx.config.backend_priority, "algos", priority)
    backends = {} if priority else {"backend": "gpu_pregel"}
    with pytest.raises(TypeError, match="got an unexpected keyword argument 'unknown'"):
        function(nx.cycle_graph(3_000), unknown="weight", **backends)


@pytest.mark.filterwarnings("ignore:Note. conversions")
def test_ends_that_cannot_be_compared_are_no_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = nx.path_graph(3_000)
    nx.is_connected(graph, backend="gpu_pregel")
    monkeypatch.setattr(nx.config.backend_priority, "algos", ["gpu_pregel"])
    with pytest.raises(nx.NodeNotFound, match=re.escape("Source [0] is not in G")):
        nx.has_path(graph, np.array([0]), np.array([0, 1]))


def _stage_of_error(function: Callable[..., Any], *args: Any, backend: str) -> str:
    """Return whether a call fails at once, or when its result is read."""
    try:
        result = function(*args, backend=backend)
    except nx.NetworkXException:
        return "at once"
    try:
        list(result)
    except (nx.NetworkXException, KeyError):
        return "when it is read"
    return "never"


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (nx.bfs_edges, ("absent",)),
        (nx.bfs_successors, ("absent",)),
        (nx.bfs_layers, (["absent"],)),
        (nx.dfs_edges, ("absent",)),
        (nx.eulerian_circuit, ()),
        (nx.eulerian_path, ()),
        (nx.topological_sort, ()),
        (nx.single_source_shortest_path_length, ("absent",)),
        (nx.all_shortest_paths, (0, "absent")),
    ],
)
def test_an_iterator_fails_when_that_of_networkx_does(function: Any, args: tuple[Any, ...]) -> None:
    graph = nx.complete_graph(4)
    ours, theirs = (_stage_of_error(function, graph, *args, backend=name) for name in ("gpu_pregel", "networkx"))
    assert ours == theirs != "never"


@pytest.mark.parametrize(
    ("name", "args", "kwargs"),
    [
        ("shortest_path", (1,), {}),
        ("shortest_path", (1, 2, 3), {"weight": "w"}),
        ("shortest_path", (1, 2), {"target": 3}),
        ("dijkstra_path", (1,), {}),
        ("dijkstra_path", (1,), {"unknown": 3}),
        ("dijkstra_path", (1, 2, "w", 4), {}),
        ("dfs_edges", (1, 2, sorted), {}),
        ("dfs_edges", (1,), {"sort_neighbors": sorted}),
    ],
)
def test_arguments_are_bound_as_by_python(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    graph = nx.path_graph(3)
    signature = inspect.signature(FUNCTIONS[name].original())
    try:
        bound = signature.bind(graph, *args, **kwargs)
    except TypeError as error:
        with pytest.raises(TypeError, match=re.escape(str(error))):
            FUNCTIONS[name].bind((graph, *args), kwargs)
        return
    bound.apply_defaults()
    ours = FUNCTIONS[name].bind((graph, *args), kwargs)
    assert {**ours, "backend": None} == {key: bound.arguments[key] for key in [*ours, "backend"]}


@pytest.mark.parametrize("graph", [nx.path_graph(4), nx.empty_graph(0)])
def test_iterators_are_generators_where_those_of_networkx_are(graph: nx.Graph) -> None:
    found = nx.connected_components(graph, backend="gpu_pregel")
    assert inspect.isgenerator(found)
    next(found, None)
    found.close()
    assert list(found) == []


def test_a_method_that_is_none_is_refused_as_by_networkx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nx.config.backend_priority, "algos", ["gpu_pregel"])
    with pytest.raises((ValueError, TypeError)) as theirs:
        nx.shortest_path(nx.path_graph(9), 0, 1, "w", ["x"], backend="networkx")
    with pytest.raises(theirs.type, match=re.escape(str(theirs.value))):
        nx.shortest_path(nx.path_graph(9), 0, 1, "w", ["x"])


def test_a_node_that_cannot_be_shown_may_be_searched_from(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hidden:
        def __repr__(self) -> str:
            raise RuntimeError("it cannot be shown")

    monkeypatch.setattr(nx.config.backend_priority, "algos", ["gpu_pregel"])
    graph, node = nx.path_graph(3_000, create_using=nx.DiGraph), Hidden()
    graph.add_edge(0, node)
    assert nx.descendants(graph, node) == set()
