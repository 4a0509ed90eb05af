"""Calls that read a few rows of a large graph are handed over."""

from __future__ import annotations

from typing import Any

import networkx as nx
import pytest

from gpu_pregel.networkx import FUNCTIONS, few_nodes
from gpu_pregel.networkx.backend import backend
from gpu_pregel.networkx.few_nodes import measured
from gpu_pregel.networkx.function import Reads
from gpu_pregel.networkx.hand_over import conversion_of


def named(reads: Reads) -> set[str]:
    """Return the parameters that are named."""
    one = (reads.rows, reads.start, reads.starts, reads.reverse, reads.sources, reads.samples)
    several = (*reads.limits, *reads.steps, *reads.ends, *(reads.at_once or ())[:1])
    return {*filter(None, one), *several}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_parameters_are_those_that_networkx_has(name: str) -> None:
    function = FUNCTIONS[name]
    parameters = function.parameters
    used = {*function.keeps, *function.mixes, *(named(function.reads) if function.reads else ())}
    assert used <= parameters.positions.keys()
    # Nodes are looked up in a graph that is given as G.
    assert parameters.graph == "G" or not used
    assert not (function.keeps and function.mixes)


@pytest.mark.parametrize("name", [name for name, function in FUNCTIONS.items() if function.reads])
def test_chosen_rows_and_searches_from_chosen_nodes_are_all_that_a_function_reads(name: str) -> None:
    reads = FUNCTIONS[name].reads
    assert reads is not None
    changed = {field for field, default in Reads()._asdict().items() if getattr(reads, field) != default}
    alone = changed & {"rows", "sources", "samples"}
    assert changed
    assert not alone or changed - alone <= {"share"}
    assert len(alone) <= 1
    assert not (reads.start and reads.starts)


def test_edges_that_a_search_follows_are_of_one_of_four_kinds() -> None:
    found = {function.reads.along for function in FUNCTIONS.values() if function.reads}
    assert found == {"out", "in", "both", "each"}
    assert {function.unhashable for function in FUNCTIONS.values()} == {"", "late", "reported"}


def reads_few_nodes(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    is_converted = conversion_of(args[0]) is not None
    return few_nodes.reads_few_nodes(args[0], FUNCTIONS[name], args, kwargs, is_converted=is_converted)


_UNCONVERTED = "the graph is not converted"


@pytest.fixture(scope="module")
def large() -> nx.Graph:
    return nx.cycle_graph(60_000)


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "reason"),
    [
        ("volume", ([1, 2],), {}, "S has 2 of 60,000 nodes"),
        ("cut_size", (range(50_000),), {}, None),
        ("triangles", (5,), {}, "nodes has 1 of 60,000 nodes"),
        ("triangles", (), {}, None),
        ("edge_boundary", (iter([1]),), {}, None),
        ("adamic_adar_index", (), {"ebunch": [(0, 2)]}, "ebunch has 1 of all pairs"),
        ("reciprocity", (), {"nodes": "absent"}, "nodes has 6 of 60,000 nodes"),
        ("single_source_shortest_path_length", (0, 1), {}, f"cutoff is given, and {_UNCONVERTED}"),
        ("bfs_edges", (0,), {"depth_limit": 100}, f"depth_limit is given, and {_UNCONVERTED}"),
        ("bfs_layers", (0,), {}, f"NetworkX's function may end early, and {_UNCONVERTED}"),
        ("dijkstra_path", (0, 1), {}, f"NetworkX's function may end early, and {_UNCONVERTED}"),
        ("pagerank", (), {}, None),
        ("has_path", (7, 7), {}, f"NetworkX's function may end early, and {_UNCONVERTED}"),
        ("bellman_ford_path", (7, 7), {}, "both ends are the same node"),
        ("shortest_path_length", (), {"source": 7, "target": 7, "weight": "w", "method": "bellman-ford"}, "both ends"),
        ("shortest_path", (None, 0), {}, None),
        ("betweenness_centrality", (3,), {}, f"k asks for 3 searches, and {_UNCONVERTED}"),
        ("betweenness_centrality", (4,), {}, None),
        ("closeness_centrality", (50_000,), {}, f"u asks for 1 searches, and {_UNCONVERTED}"),
        ("eccentricity", (), {"v": [1, 2, 3, 4]}, None),
        ("effective_size", (list(range(8)),), {}, "nodes has 8 of 60,000 nodes"),
        ("jaccard_coefficient", ([(0, i) for i in range(24)],), {}, "ebunch has 24 of all pairs"),
    ],
)
def test_a_call_for_few_nodes_is_handed_over(
    large: nx.Graph, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], reason: str | None
) -> None:
    found = reads_few_nodes(name, (large, *args), kwargs)
    assert found is None if reason is None else (found or "").startswith(reason)
    if reason is not None:
        assert isinstance(backend.should_run(name, (large, *args), kwargs), str)


def test_more_nodes_are_few_in_a_graph_that_is_not_converted(large: nx.Graph) -> None:
    graph = large.copy()
    assert reads_few_nodes("cut_size", (graph, range(2_000)), {}) == "S has 2,000 of 60,000 nodes"
    nx.is_connected(graph, backend="gpu_pregel")
    assert reads_few_nodes("cut_size", (graph, range(2_000)), {}) is None


def test_a_search_of_one_step_reads_few_nodes_of_a_converted_graph(large: nx.Graph) -> None:
    graph = large.copy()
    nx.is_connected(graph, backend="gpu_pregel")
    assert reads_few_nodes("single_source_shortest_path_length", (graph, 0, 1), {}) == "cutoff is 1"
    assert reads_few_nodes("bfs_edges", (graph, 0), {"depth_limit": 100}) is None
    assert reads_few_nodes("predecessor", (graph, 5, 0), {}) is None
    assert reads_few_nodes("betweenness_centrality_subset", (graph, [], [0]), {}) == "sources asks for 0 searches"
    assert reads_few_nodes("betweenness_centrality_subset", (graph, [1], [0]), {}) is None
    # NetworkX returns all nodes at once.
    assert reads_few_nodes("greedy_modularity_communities", (graph,), {"best_n": 1}) == "best_n is 1"
    assert reads_few_nodes("greedy_modularity_communities", (graph,), {"best_n": 2}) is None
    # It may be many steps by weights.
    assert reads_few_nodes("single_source_dijkstra", (graph, 0, None, 1), {}) is None


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "reason"),
    [
        ("single_source_dijkstra", ("a",), {}, "the search from source reaches fewer than 150 of 1,200 nodes"),
        ("multi_source_dijkstra", (["a", "b", "absent"],), {}, "the search from sources reaches"),
        ("multi_source_dijkstra", ({"a"},), {}, "the search from sources reaches"),
        ("multi_source_dijkstra", (iter("a"),), {}, None),
        ("multi_source_dijkstra", ("absent",), {}, "the search from sources reaches"),
        ("descendants", (0,), {}, None),
        ("descendants", (1048,), {}, None),
        ("descendants", (1049,), {}, "the search from source reaches"),
        ("ancestors", (148,), {}, "the search from source reaches"),
        ("ancestors", (149,), {}, None),
        ("bfs_edges", (58, True), {}, "the search from source reaches"),
        ("bfs_edges", (58,), {}, None),
        ("is_strongly_connected", (), {}, "the search from the first node reaches"),
        ("is_weakly_connected", (), {}, None),
        ("wiener_index", (), {}, "the search from the first node reaches fewer than 150 of 1,200 nodes"),
        ("is_semiconnected", (), {}, None),
        ("voronoi_cells", (["a", "b"],), {}, "the search from center_nodes reaches"),
        ("voronoi_cells", (["a", 0],), {}, None),
        ("group_closeness_centrality", (["a"],), {}, "the search from S reaches"),
        ("dfs_edges", (), {}, None),
        ("dfs_edges", ("absent",), {}, None),
        ("dfs_edges", ([],), {}, None),
    ],
)
def test_a_search_that_reaches_few_nodes_does_not_convert(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], reason: str | None
) -> None:
    graph = nx.DiGraph(["ab"])
    nx.add_path(graph, range(1198))
    if name in ("is_semiconnected", "is_weakly_connected"):
        # The node that is the first reaches few others, but many reach it.
        graph.add_edge(600, "b")
    found = reads_few_nodes(name, (graph, *args), kwargs)
    assert found is None if reason is None else (found or "").startswith(reason)


def test_a_cycle_that_one_node_leaves_is_not_handed_over() -> None:
    graph = nx.cycle_graph(2_000, create_using=nx.DiGraph)
    graph.add_edge(1_999, 2_000)
    # NetworkX searches from all nodes before it finds that the last one reaches no other.
    assert reads_few_nodes("diameter", (graph,), {}) is None


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
def test_a_forest_is_not_handed_over_before_a_cycle(kind: type) -> None:
    trees, cycle = nx.Graph(), nx.Graph([(0, 1), (1, 2), (2, 0)])
    nx.add_path(trees, range(3, 6))
    nx.add_path(trees, range(6, 2_000))
    for first, second, reason in ((trees, cycle, None), (cycle, trees, "the search from the first node reaches")):
        graph = nx.compose(first, second)
        graph = graph if kind is nx.Graph else nx.DiGraph(graph.edges)
        found = reads_few_nodes("is_forest", (graph,), {})
        assert found is None if reason is None else (found or "").startswith(reason)


def test_a_search_of_a_converted_graph_is_left_to_networkx_if_it_reaches_very_few_nodes() -> None:
    graph = nx.path_graph(10_000, create_using=nx.DiGraph)
    nx.number_weakly_connected_components(graph, backend="gpu_pregel")
    reason = "the search from source reaches fewer than 64 of 10,000 nodes"
    assert reads_few_nodes("descendants", (graph, 9_936), {}) is None
    assert reads_few_nodes("descendants", (graph, 9_937), {}) == reason


def test_a_node_is_few_in_a_small_graph() -> None:
    graph = nx.cycle_graph(300)
    nx.is_connected(graph, backend="gpu_pregel")
    assert reads_few_nodes("clustering", (graph, 5), {}) == "nodes has 1 of 300 nodes"
    assert reads_few_nodes("clustering", (graph, range(9)), {}) is None


@pytest.mark.parametrize(
    ("args", "kwargs", "expected"),
    [
        ((0, 5), {}, "bidirectional_shortest_path"),
        ((0, 5), {"weight": "w"}, "bidirectional_dijkstra"),
        ((0, 5, "w", "bellman-ford"), {}, "shortest_path"),
        ((), {}, "shortest_path"),
        ((0,), {}, "single_source_shortest_path"),
        ((), {"target": 5}, "single_target_shortest_path"),
        ((0, None, "w"), {}, "single_source_dijkstra_path"),
        ((), {"target": 5, "weight": "w", "method": "bellman-ford"}, "single_source_bellman_ford_path"),
    ],
)
def test_searches_from_a_node_and_between_two_have_sizes_of_their_own(
    large: nx.Graph, args: tuple[Any, ...], kwargs: dict[str, Any], expected: str
) -> None:
    assert measured(FUNCTIONS["shortest_path"], (large, *args), kwargs).name == expected
