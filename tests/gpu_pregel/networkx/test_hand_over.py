"""The size of a graph and earlier calls decide who computes, and asking for that takes little time."""

from __future__ import annotations

from functools import partial
from typing import Any

import networkx as nx
import pytest
from networkx.utils.backends import _dispatchable

from gpu_pregel.networkx import FUNCTIONS, hand_over
from gpu_pregel.networkx.backend import backend
from gpu_pregel.networkx.sizes import NEVER, sizes


def test_edges_are_counted_once_until_the_graph_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = []

    class Counted(dict[Any, Any]):
        def values(self) -> Any:
            counted.append(len(self))
            return super().values()

    graph = nx.path_graph(50)
    graph._adj = Counted(graph._adj)
    monkeypatch.setitem(sizes(), "is_tree", ((10, 200), (10, 200), (10, 200), 1))
    for _ in range(3):
        assert backend.should_run("is_tree", (graph,), {}) == "the graph's size of 148 is below 200"
    graph.add_edge(0, 50)
    assert backend.should_run("is_tree", (graph,), {}) == "the graph's size of 151 is below 200"
    assert counted == [50, 51]


def test_a_graph_is_converted_once_several_calls_would_have_been_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sizes(), "is_tree", ((10, NEVER), (10, NEVER), (10, NEVER), 1))
    graph = nx.circulant_graph(70, [1, 2, 3])
    every = "NetworkX is faster at graphs of every size that are not converted"
    # Five calls, and three for six edges a node; more than these have been made at the sixteenth, which looks again.
    for _ in range(2):
        assert [backend.should_run("is_tree", (graph,), {}) for _ in range(16)] == [every] * 15 + [True]
        graph.add_edge(0, 15)
    # A conversion would not help here.
    monkeypatch.setitem(sizes(), "is_tree", ((500, NEVER), (500, NEVER), (500, NEVER), 1))
    graph.add_edge(0, 16)
    assert True not in {backend.should_run("is_tree", (graph,), {}) for _ in range(20)}


def test_a_small_graph_is_not_converted_for_later_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sizes(), "is_tree", ((10, NEVER), (10, NEVER), (10, NEVER), 1))
    graph = nx.circulant_graph(63, [1, 2, 3])
    assert True not in {backend.should_run("is_tree", (graph,), {}) for _ in range(20)}
    nx.is_connected(graph, backend="gpu_pregel")
    assert backend.should_run("is_tree", (graph,), {}) is True


def test_searches_that_read_all_edges_pay_for_a_conversion_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sizes(), "is_connected", ((10, NEVER), (10, NEVER), (10, NEVER), 1))
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
    monkeypatch.setitem(sizes(), "is_tree", ((600, 600), (2_400, 2_400), (29_400, 29_400), 1))
    assert backend.should_run("is_tree", (graph,), {}) is True
    every = "NetworkX is faster at graphs of every size that are not converted"
    monkeypatch.setitem(sizes(), "is_tree", ((600, NEVER), (2_400, NEVER), (29_400, NEVER), 1))
    assert backend.should_run("is_tree", (graph,), {}) == every
    assert not counted
    monkeypatch.setitem(sizes(), "is_tree", ((600, 601), (2_400, 2_401), (29_400, 29_401), 1))
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
        monkeypatch.setitem(sizes(), "is_tree", ((NEVER, limit),) * 3 + (1,))
        graph.__networkx_cache__.clear()
        counted.clear()
        reason = backend.should_run("is_tree", (graph,), {})
        assert (reason, len(counted)) == (
            f"the graph's size of {'about ' * (1 - looks)}7,000 is below {limit:,}",
            looks,
        )
    # The second call looks at the graph.
    monkeypatch.setitem(sizes(), "is_tree", ((NEVER, 13_001),) * 3 + (1,))
    graph.__networkx_cache__.clear()
    answers = [backend.should_run("is_tree", (graph,), {}) for _ in range(2)]
    assert answers == [f"the graph's size of {about}7,000 is below 13,001" for about in ("about ", "")]


def test_a_function_that_may_end_early_needs_a_larger_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sizes(), "is_bipartite", ((200, NEVER), (200, NEVER), (200, NEVER), 1))
    for n, answer in ((409, "the graph's size of 2,045 is below 2,048"), (410, True)):
        graph = nx.circulant_graph(n, [1, 2])
        nx.is_connected(graph, backend="gpu_pregel")
        assert backend.should_run("is_bipartite", (graph,), {}) == answer


def test_many_calls_that_read_a_part_of_a_graph_pay_for_a_conversion(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sizes(), "has_path", ((10, NEVER), (10, NEVER), (10, NEVER), 1))
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
    monkeypatch.setitem(sizes(), "is_tree", ((1, 2_000), (1, 4_000), (1, NEVER), 1))
    # Estimates the size.
    assert type(backend.should_run("is_tree", (graph,), {})) is type(reason)
    assert backend.should_run("is_tree", (graph,), {}) == reason
    assert backend.should_run("is_tree", (), {"G": graph}) == reason
    nx.is_connected(graph, backend="gpu_pregel")
    assert backend.should_run("is_tree", (graph,), {}) is True


def test_what_a_function_of_networkx_calls_is_left_to_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(nx.config.backend_priority, "algos", ["gpu_pregel"])
    nested = "because: it is called by a function that is left to NetworkX"
    monkeypatch.setitem(sizes(), "diameter", ((1_000, 1_000), (1_000, 1_000), (1_000, 1_000), 1))
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
    monkeypatch.setitem(sizes(), "edge_betweenness_centrality", ((1, 1), (1, 1), (1, 1), 1))
    with caplog.at_level("DEBUG", "networkx"):
        next(nx.community.girvan_newman(nx.cycle_graph(60)))
    assert "Using backend 'gpu_pregel' for call to 'edge_betweenness_centrality'" in caplog.text
    monkeypatch.setitem(sizes(), "is_tree", ((1, 1), (1, 1), (1, 1), 1))

    def diameter(graph: nx.Graph) -> bool:
        return bool(nx.is_tree(graph))

    caplog.clear()
    with caplog.at_level("DEBUG", "networkx"):
        assert diameter(small)
    assert "Using backend 'gpu_pregel' for call to 'is_tree'" in caplog.text
    assert nested not in caplog.text


def test_what_a_function_of_networkx_calls_is_not_left_to_it_in_networkx_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    called = []
    is_bipartite = vars(backend)["is_bipartite"]

    def record(graph: Any) -> Any:
        called.append(graph)
        return is_bipartite(graph)

    monkeypatch.setattr(backend, "is_bipartite", record)
    monkeypatch.setattr(nx.config.backend_priority, "algos", ["gpu_pregel"])
    monkeypatch.setattr(nx.config, "fallback_to_nx", True)
    graph = nx.DiGraph([(0, 1), (2, 1)])
    assert backend.can_run("latapy_clustering", (graph,), {}) == "G is directed"
    for is_testing in (False, True):
        assert not called
        monkeypatch.setattr(_dispatchable, "_is_testing", is_testing)
        assert nx.bipartite.latapy_clustering(graph, [0, 1, 2]) == {0: 0.0, 1: 0.0, 2: 0.0}
    assert called


@pytest.mark.filterwarnings("ignore:Note. conversions")
def test_a_callback_that_is_not_written_in_python_may_ask_for_the_backend() -> None:
    graph = nx.gnm_random_graph(300, 900, seed=1)
    expected = nx.node_boundary(graph, [nx.shortest_path_length(graph, 0, node) for node in (1, 2, 3)])
    # NetworkX's function calls it without a frame of Python between them.
    for options in ({"backend": "gpu_pregel"}, {}, {"backend": "gpu_pregel"}):
        hops = partial(nx.shortest_path_length, graph, 0, **options)
        assert nx.node_boundary(graph, map(hops, [1, 2, 3])) == expected


@pytest.mark.filterwarnings("ignore:Note. conversions")
def test_what_shares_the_name_of_a_function_is_not_one(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(nx.config.backend_priority, "algos", ["gpu_pregel"])
    graph = nx.cycle_graph(3_000)
    nx.is_connected(graph, backend="gpu_pregel")
    assert "approximate_diameter" not in FUNCTIONS
    with caplog.at_level("DEBUG", "networkx"):
        assert nx.approximation.diameter(graph) == 1_500
    assert "it is called by a function" not in caplog.text
