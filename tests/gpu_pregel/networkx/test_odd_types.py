"""Arguments and weights that are equal to others but of odd types: results have the types that NetworkX's have."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.networkx import FUNCTIONS
from tests.gpu_pregel.networkx.comparison import Arguments, Case, Failed, assert_same, outcome
from tests.gpu_pregel.networkx.odd_calls import NAMES, try_calls

_ONES = [np.int64(1), 1.0, True, Fraction(1)]
_DIRECTED = ("dominance_frontiers", "immediate_dominators", "kosaraju_strongly_connected_components", "reciprocity")


def _graph(name: str) -> nx.Graph:
    if name == "lowest_common_ancestor":
        return nx.path_graph(6, create_using=nx.DiGraph)
    return nx.cycle_graph(6, create_using=nx.DiGraph if name in _DIRECTED else nx.Graph)


def _options(name: str, parameter: str, one: Any) -> dict[str, Any]:
    """Return arguments of which one is this object, alone or among others."""
    if parameter == "core_number":
        return {"k": 2, parameter: {one if node == 1 else node: 2 for node in range(6)}}
    function = FUNCTIONS[name]
    needed: dict[str, Any] = {"source": 5} if "source" in (function.keeps or function.mixes) else {}
    needed |= {"sources": [5]} if name == "multi_source_dijkstra" else {}
    needed |= {"node1": 2, "node2": 3} if name == "lowest_common_ancestor" else {}
    needed |= {"nbunch1": [5]} if name.endswith("_boundary") else {}
    needed |= {"target": 3} if name in ("all_shortest_paths", "bellman_ford_path", "dijkstra_path") else {}
    needed |= {"target": 3} if name.startswith("bidirectional") else {}
    needed |= {"distance": 0} if name == "descendants_at_distance" else {}
    plural = parameter.endswith("s") or parameter.startswith("nbunch")
    return {**needed, parameter: [one, 3] if plural else one}


@pytest.mark.parametrize("name", sorted(name for name, function in FUNCTIONS.items() if function.keeps))
def test_results_have_the_callers_own_nodes(name: str) -> None:
    function = FUNCTIONS[name].original()
    for parameter in FUNCTIONS[name].keeps:
        for one in _ONES:
            call = ((_graph(name),), _options(name, parameter, one))
            ours, theirs = (outcome(function, call, backend) for backend in ("gpu_pregel", "networkx"))
            assert not isinstance(theirs, Exception)
            assert_same(ours, theirs, Case(), f"{name} of {parameter}={one!r}")


@pytest.mark.parametrize("name", sorted(name for name, function in FUNCTIONS.items() if function.mixes))
def test_calls_whose_results_have_either_node_are_left_to_networkx(name: str) -> None:
    function = FUNCTIONS[name].original()
    for parameter in FUNCTIONS[name].mixes:
        plain, odd = (
            outcome(function, ((_graph(name),), _options(name, parameter, one)), "gpu_pregel") for one in (1, 1.0)
        )
        assert not isinstance(plain, Exception)
        assert isinstance(odd, NotImplementedError)


def test_a_node_as_two_objects_is_left_to_networkx() -> None:
    for sources in ([1, True], [1.0, np.int64(1)]):
        found = outcome(nx.multi_source_dijkstra_path, ((nx.path_graph(4), sources), {}), "gpu_pregel")
        assert isinstance(found, NotImplementedError)


@pytest.mark.parametrize(
    ("name", "odd"),
    [
        ("node_boundary", [[1], 5]),
        ("node_boundary", ({1: 2},)),
        ("edge_boundary", [np.array([1]), 5]),
        ("dfs_preorder_nodes", [1]),
        ("dfs_labeled_edges", {1: 2}),
        ("hopcroft_karp_matching", [1, None]),
        ("clustering", [[1], 2]),
    ],
)
def test_arguments_that_are_no_nodes_are_left_to_networkx(name: str, odd: Any) -> None:
    """NetworkX ignores some that are not hashable, and raises errors for others before it yields an item."""
    call: Arguments = ((nx.cycle_graph(6), odd), {})
    found = outcome(FUNCTIONS[name].original(), call, "gpu_pregel")
    assert isinstance(found, NotImplementedError)


def test_equal_tuples_and_zeros_of_other_types_are_other_nodes() -> None:
    for node in ((False, "a"), (0, np.str_("a")), -0.0, 0, frozenset([2.0])):
        call: Arguments = ((nx.Graph([((0, "a"), 0.0), (0.0, frozenset([2]))]), node), {})
        ours, theirs = (outcome(nx.single_source_shortest_path, call, name) for name in ("gpu_pregel", "networkx"))
        assert_same(ours, theirs, Case(), repr(node))


def test_graphs_of_this_package_take_equal_nodes_of_any_type() -> None:
    graph = gp.networkx.Graph(gp.Graph.from_edgelist([0, 1], [1, 2], directed=True))
    assert nx.single_source_shortest_path_length(graph, np.int64(1)) == {1: 0, 2: 1}
    assert list(nx.edge_dfs(graph, 1.0)) == [(1, 2)]


# Weights


_WEIGHTED: dict[str, Callable[[nx.Graph], tuple[Any, ...]]] = {
    **dict.fromkeys(
        ("all_pairs_dijkstra", "all_pairs_bellman_ford_path_length", "dag_longest_path_length"), lambda g: (g,)
    ),
    **dict.fromkeys(("single_source_dijkstra", "dijkstra_predecessor_and_distance"), lambda g: (g, 0)),
    **dict.fromkeys(("single_source_bellman_ford", "bellman_ford_predecessor_and_distance"), lambda g: (g, 0)),
    **dict.fromkeys(
        ("dijkstra_path_length", "bellman_ford_path_length", "bidirectional_dijkstra"), lambda g: (g, 0, 3)
    ),
    **dict.fromkeys(("wiener_index", "hyper_wiener_index", "average_shortest_path_length"), lambda g: (g, "weight")),
    **dict.fromkeys(("schultz_index", "gutman_index", "eccentricity"), lambda g: (g,)),
    **dict.fromkeys(("closeness_centrality", "harmonic_centrality"), lambda g: (g, None, "weight")),
    **dict.fromkeys(("pagerank", "to_numpy_array", "to_scipy_sparse_array", "floyd_warshall_numpy"), lambda g: (g,)),
    "harmonic_diameter": lambda g: (g,),
    "modularity": lambda g: (g, [{0, 1}, {2, 3}]),
}


def _weighted(name: str, kind: Callable[[int], Any]) -> nx.Graph:
    directed = name in ("dag_longest_path_length", "closeness_centrality")
    graph = nx.path_graph(4, create_using=nx.DiGraph if directed else nx.Graph)
    graph.add_edge(0, 3)
    for i, (*_, data) in enumerate(graph.edges(data=True)):
        data["weight"] = kind(i + 1)
    return graph


@pytest.mark.parametrize("kind", [np.float64, np.int64])
@pytest.mark.parametrize("name", _WEIGHTED)
def test_distances_have_the_type_of_numpy_that_weights_have(name: str, kind: type) -> None:
    function = FUNCTIONS[name].original()
    options = (
        {"weight": "weight"} if name in ("schultz_index", "gutman_index", "eccentricity", "harmonic_diameter") else {}
    )
    call = (_WEIGHTED[name](_weighted(name, kind)), options)
    ours, theirs = (outcome(function, call, backend) for backend in ("gpu_pregel", "networkx"))
    assert_same(ours, theirs, Case(), name)


@pytest.mark.parametrize("kind", [np.float32, np.int32, np.int8, np.uint64, np.float16])
def test_weights_whose_sums_are_rounded_or_overflow_are_left_to_networkx(kind: type) -> None:
    call: Arguments = ((_weighted("dijkstra_path_length", kind), 0, 3), {})
    assert isinstance(outcome(nx.dijkstra_path_length, call, "gpu_pregel"), NotImplementedError)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("katz_centrality", ()),
        ("eigenvector_centrality", ()),
        ("constraint", (None, "weight")),
        ("floyd_warshall", ()),
        ("group_closeness_centrality", ([1], "weight")),
    ],
)
def test_sums_in_part_of_numpy_are_left_to_networkx(name: str, args: tuple[Any, ...]) -> None:
    options = {"weight": "weight"} if name in ("katz_centrality", "eigenvector_centrality") else {}
    call = ((_weighted(name, np.float64), *args), options)
    assert isinstance(outcome(FUNCTIONS[name].original(), call, "gpu_pregel"), NotImplementedError)


@pytest.mark.parametrize(
    ("function", "args", "options"),
    [
        (nx.katz_centrality, (), {"alpha": np.float64(0.1)}),
        (nx.katz_centrality, (), {"beta": np.float64(2)}),
        (nx.community.modularity, ([{0, 1}, {2, 3}],), {"resolution": np.float64(1)}),
    ],
)
def test_parameters_of_numpy_decide_on_the_type_of_results(
    function: Any, args: tuple[Any, ...], options: dict[str, Any]
) -> None:
    call = ((nx.path_graph(4), *args), options)
    ours, theirs = (outcome(function, call, backend) for backend in ("gpu_pregel", "networkx"))
    assert_same(ours, theirs, Case())


# Nodes that are missing


@pytest.mark.parametrize(
    ("function", "source"),
    [
        (nx.dfs_labeled_edges, "absent"),
        (nx.dfs_preorder_nodes, "absent"),
        (nx.bfs_labeled_edges, [1, 3, "absent", 0]),
        (nx.bfs_labeled_edges, [1, "absent", 3]),
    ],
)
@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
def test_an_iterator_yields_what_networkx_yields_before_its_error(function: Any, source: Any, kind: Any) -> None:
    call: Arguments = ((nx.cycle_graph(5, create_using=kind), source), {})
    ours, theirs = (outcome(function, call, backend) for backend in ("gpu_pregel", "networkx"))
    assert isinstance(theirs, Failed)
    assert_same(ours, theirs, Case())


# All functions


def test_random_calls_with_odd_arguments_give_what_networkx_gives() -> None:
    assert try_calls(1, NAMES[::2]) == []
