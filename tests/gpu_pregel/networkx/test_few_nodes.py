"""Calls that read a few rows of a large graph are handed over, and asking whether they are takes no time."""

from __future__ import annotations

import inspect
from typing import Any

import networkx as nx
import pytest
from networkx.utils.backends import _dispatchable

from gpu_pregel.networkx import FUNCTIONS, few_nodes, hand_over
from gpu_pregel.networkx.backend import backend
from gpu_pregel.networkx.few_nodes import _CHOSEN, measured_as
from gpu_pregel.networkx.hand_over import conversion_of
from gpu_pregel.networkx.reach import (
    _ALL_PAIRS,
    _BETWEEN,
    _CONNECTED,
    _FARTHEST,
    _LIMITS,
    _OTHERS,
    _SEARCHED,
    _STARTS,
    ENDS_EARLY,
)
from gpu_pregel.networkx.sizes import NEVER, SIZES


@pytest.mark.parametrize(
    ("name", "argument", "position"),
    [
        *((name, *place[:2]) for name, place in _CHOSEN.items()),
        *((name, *place) for name, places in _LIMITS.items() for place in places),
        *((name, *place) for name, place in _SEARCHED.items()),
        *((name, argument, 1) for name, argument in _STARTS.items()),
        *((name, "v" if name == "efficiency" else "target", 2) for name in sorted(_BETWEEN)),
    ],
)
def test_arguments_are_where_networkx_has_them(name: str, argument: str, position: int) -> None:
    parameters = list(inspect.signature(FUNCTIONS[name].original()).parameters)
    assert (parameters[0], parameters.index(argument)) == ("G", position)


def test_all_of_these_are_functions_of_ours() -> None:
    assert FUNCTIONS.keys() >= _ALL_PAIRS | _BETWEEN | _CONNECTED | ENDS_EARLY | _FARTHEST | _OTHERS


def reads_few_nodes(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    is_converted = conversion_of(args[0]) is not None
    return few_nodes.reads_few_nodes(name, args, kwargs, is_converted=is_converted)


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
        ("adamic_adar_index", (), {"ebunch": [(0, 2)]}, "ebunch has 1 of 60,000 nodes"),
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
        ("jaccard_coefficient", ([(0, i) for i in range(24)],), {}, "ebunch has 24 of 60,000 nodes"),
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
    ("args", "kwargs", "measured"),
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
    large: nx.Graph, args: tuple[Any, ...], kwargs: dict[str, Any], measured: str
) -> None:
    assert measured_as("shortest_path", (large, *args), kwargs) == measured


def test_edges_are_counted_once_until_the_graph_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = []

    class Counted(dict[Any, Any]):
        def values(self) -> Any:
            counted.append(len(self))
            return super().values()

    graph = nx.path_graph(50)
    graph._adj = Counted(graph._adj)
    monkeypatch.setitem(SIZES, "is_tree", ((10, 200), (10, 200), (10, 200), 1))
    for _ in range(3):
        assert backend.should_run("is_tree", (graph,), {}) == "the graph's size of 148 is below 200"
    graph.add_edge(0, 50)
    assert backend.should_run("is_tree", (graph,), {}) == "the graph's size of 151 is below 200"
    assert counted == [50, 51]


def test_a_graph_is_converted_once_several_calls_would_have_been_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SIZES, "is_tree", ((10, NEVER), (10, NEVER), (10, NEVER), 1))
    graph = nx.circulant_graph(70, [1, 2, 3])
    every = "NetworkX is faster at graphs of every size that are not converted"
    # Five calls, and three for six edges a node; more than these have been made at the sixteenth, which looks again.
    for _ in range(2):
        assert [backend.should_run("is_tree", (graph,), {}) for _ in range(16)] == [every] * 15 + [True]
        graph.add_edge(0, 15)
    # A conversion would not help here.
    monkeypatch.setitem(SIZES, "is_tree", ((500, NEVER), (500, NEVER), (500, NEVER), 1))
    graph.add_edge(0, 16)
    assert True not in {backend.should_run("is_tree", (graph,), {}) for _ in range(20)}


def test_a_small_graph_is_not_converted_for_later_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SIZES, "is_tree", ((10, NEVER), (10, NEVER), (10, NEVER), 1))
    graph = nx.circulant_graph(63, [1, 2, 3])
    assert True not in {backend.should_run("is_tree", (graph,), {}) for _ in range(20)}
    nx.is_connected(graph, backend="gpu_pregel")
    assert backend.should_run("is_tree", (graph,), {}) is True


def test_searches_that_read_all_edges_pay_for_a_conversion_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SIZES, "is_connected", ((10, NEVER), (10, NEVER), (10, NEVER), 1))
    graph = nx.circulant_graph(70, [1, 2, 3])
    # The eighth and the fourth call are the first that look again after five and two.
    for calls in (7, 3):
        answers = [backend.should_run("is_connected", (graph,), {}) for _ in range(calls + 1)]
        assert [answer is True for answer in answers] == [False] * calls + [True]
        graph.add_node("isolated")


def test_edges_are_not_counted_where_the_number_of_nodes_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = []

    def count(graph: nx.Graph) -> int:
        counted.append(graph)
        return 0

    monkeypatch.setattr(hand_over, "_edges", count)
    graph = nx.circulant_graph(600, [1, 2, 3])
    # A graph of so many nodes with 3 edges a node has a size of 2,400, with 48 one of 29,400.
    monkeypatch.setitem(SIZES, "is_tree", ((600, 600), (2_400, 2_400), (29_400, 29_400), 1))
    assert backend.should_run("is_tree", (graph,), {}) is True
    every = "NetworkX is faster at graphs of every size that are not converted"
    monkeypatch.setitem(SIZES, "is_tree", ((600, NEVER), (2_400, NEVER), (29_400, NEVER), 1))
    assert backend.should_run("is_tree", (graph,), {}) == every
    assert not counted
    monkeypatch.setitem(SIZES, "is_tree", ((600, 601), (2_400, 2_401), (29_400, 29_401), 1))
    assert backend.should_run("is_tree", (graph,), {}) == "the graph's size of 600 is below 601"
    assert counted


def test_a_single_call_is_answered_without_counting_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = []
    count = hand_over._edges

    def record(graph: nx.Graph) -> int:
        counted.append(graph)
        return count(graph)

    monkeypatch.setattr(hand_over, "_edges", record)
    graph = nx.circulant_graph(1_000, [1, 2, 3])
    for limit, looks in ((13_001, 0), (13_000, 1)):
        # With twice as many edges the graph's size would be 13,000.
        monkeypatch.setitem(SIZES, "is_tree", ((NEVER, limit),) * 3 + (1,))
        graph.__networkx_cache__.clear()
        counted.clear()
        reason = backend.should_run("is_tree", (graph,), {})
        assert (reason, len(counted)) == (
            f"the graph's size of {'about ' * (1 - looks)}7,000 is below {limit:,}",
            looks,
        )
    # The second call looks at the graph.
    monkeypatch.setitem(SIZES, "is_tree", ((NEVER, 13_001),) * 3 + (1,))
    graph.__networkx_cache__.clear()
    answers = [backend.should_run("is_tree", (graph,), {}) for _ in range(2)]
    assert answers == [f"the graph's size of {about}7,000 is below 13,001" for about in ("about ", "")]


def test_a_function_that_may_end_early_needs_a_larger_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SIZES, "is_bipartite", ((200, NEVER), (200, NEVER), (200, NEVER), 1))
    for n, answer in ((409, "the graph's size of 2,045 is below 2,048"), (410, True)):
        graph = nx.circulant_graph(n, [1, 2])
        nx.is_connected(graph, backend="gpu_pregel")
        assert backend.should_run("is_bipartite", (graph,), {}) == answer


def test_many_calls_that_read_a_part_of_a_graph_pay_for_a_conversion(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SIZES, "has_path", ((10, NEVER), (10, NEVER), (10, NEVER), 1))
    graph = nx.path_graph(700)
    answers = [backend.should_run("has_path", (graph, 0, 1), {}) for _ in range(128)]
    # One call for ten nodes; the 128th is the first that looks again after that.
    assert [answer is True for answer in answers] == [False] * 127 + [True]
    # Nobody keeps the conversion of this one.
    graph.__networkx_cache__ = None
    assert True not in {backend.should_run("has_path", (graph, 0, 1), {}) for _ in range(100)}


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        (nx.path_graph(500), "the graph's size of 1,498 is below 2,000"),
        (nx.cycle_graph(700), True),
        (nx.circulant_graph(200, [1, 2, 3]), "the graph's size of 1,400 is below 4,000"),
        (nx.circulant_graph(600, [1, 2, 3]), True),
        (nx.complete_graph(90), "NetworkX is faster at graphs that are not converted with 89.0 edges a node"),
    ],
)
def test_graphs_of_each_density_have_their_own_sizes(
    graph: nx.Graph, reason: str | bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SIZES, "is_tree", ((1, 2_000), (1, 4_000), (1, NEVER), 1))
    # Estimates the size.
    assert type(backend.should_run("is_tree", (graph,), {})) is type(reason)
    assert backend.should_run("is_tree", (graph,), {}) == reason
    assert backend.should_run("is_tree", (), {"backend_option": 1, "G": graph}) == reason
    nx.is_connected(graph, backend="gpu_pregel")
    assert backend.should_run("is_tree", (graph,), {}) is True


def test_what_a_function_of_networkx_calls_is_left_to_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(nx.config.backend_priority, "algos", ["gpu_pregel"])
    nested = "because: it is called by a function that is left to NetworkX"
    monkeypatch.setitem(SIZES, "diameter", ((1_000, 1_000), (1_000, 1_000), (1_000, 1_000), 1))
    small = nx.path_graph(70)
    with caplog.at_level("DEBUG", "networkx"):
        assert nx.diameter(small) == 69
        left = [record.getMessage() for record in caplog.records if "because: " in record.getMessage()]
    assert left[0].startswith("Backend 'gpu_pregel' shouldn't run `diameter`")
    assert left[1].startswith("Backend 'gpu_pregel' can't run `")
    assert len(left) > 70
    assert all(message.endswith(nested) for message in left[1:])
    # A function that this backend does not have is nothing to it; nor is a user's that has the name of one.
    caplog.clear()
    monkeypatch.setitem(SIZES, "edge_betweenness_centrality", ((1, 1), (1, 1), (1, 1), 1))
    with caplog.at_level("DEBUG", "networkx"):
        next(nx.community.girvan_newman(nx.cycle_graph(60)))
    assert "Using backend 'gpu_pregel' for call to 'edge_betweenness_centrality'" in caplog.text
    monkeypatch.setitem(SIZES, "is_tree", ((1, 1), (1, 1), (1, 1), 1))

    def diameter(graph: nx.Graph) -> bool:
        return bool(nx.is_tree(graph))

    caplog.clear()
    with caplog.at_level("DEBUG", "networkx"):
        assert diameter(small)
    assert "Using backend 'gpu_pregel' for call to 'is_tree'" in caplog.text
    assert nested not in caplog.text


def test_what_a_function_of_networkx_calls_is_not_left_to_it_in_networkx_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    called = []
    name = "single_source_shortest_path_length"
    compute = getattr(backend, name)

    def record(graph: Any, source: Any, *args: Any, **kwargs: Any) -> Any:
        called.append(source)
        return compute(graph, source, *args, **kwargs)

    monkeypatch.setattr(backend, name, record)
    monkeypatch.setattr(nx.config.backend_priority, "algos", ["gpu_pregel"])
    monkeypatch.setattr(nx.config, "fallback_to_nx", True)
    graph = nx.DiGraph([(0, 1)])
    assert backend.can_run("bipartite_closeness_centrality", (graph, [0]), {}) == "G is directed"
    for is_testing in (False, True):
        assert not called
        monkeypatch.setattr(_dispatchable, "_is_testing", is_testing)
        assert nx.bipartite.closeness_centrality(graph, [0]) == {0: 1.0, 1: 0.0}
    assert called == [0, 1]
