"""How NetworkX finds the backend and calls it: conversions, their cache, refusals and small graphs."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, ClassVar

import networkx as nx
import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentTypeError
from gpu_pregel.networkx import FUNCTIONS, hand_over
from gpu_pregel.networkx.backend import backend
from gpu_pregel.networkx.sizes import sizes
from tests.gpu_pregel.networkx.comparison import Case, assert_same
from tests.gpu_pregel.networkx.graphs import GRAPHS

pytestmark = pytest.mark.filterwarnings("ignore:Note. conversions to backend graphs are saved to cache")


def kept(graph: nx.Graph) -> dict[Any, Any]:
    """Return the conversions that NetworkX keeps with a graph."""
    found: dict[Any, Any] = graph.__networkx_cache__.get("backends", {}).get("gpu_pregel", {})
    return found


def loaded_after(program: str) -> list[str]:
    names = ("numpy", "numba", "gpu_pregel.networkx.graph", "gpu_pregel.networkx.functions")
    program = f"import sys\n{program}\nprint([name for name in {names} if name in sys.modules])"
    shown = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60
    ).stdout
    return [name for name in names if repr(name) in shown]


def test_importing_networkx_loads_the_list_of_functions_only() -> None:
    assert loaded_after("import networkx as nx\nassert 'gpu_pregel' in nx.utils.backends.backend_info") == []


def test_limits_are_in_the_documentation_that_networkx_shows() -> None:
    notes = nx.utils.backends.backend_info["gpu_pregel"]["functions"]
    assert notes["bfs_edges"] == {"additional_docs": "Calls without sort_neighbors; others are left to NetworkX."}
    assert notes["triangles"] == {}


def test_small_graphs_are_handed_over_before_anything_is_loaded() -> None:
    program = """import networkx as nx
nx.config.backend_priority = ["gpu_pregel"]
assert nx.number_connected_components(nx.path_graph(5)) == 1"""
    assert loaded_after(program) == []


@pytest.fixture
def priority(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Send every call to the backend that it takes; give the names of the functions that computed."""
    called: list[str] = []

    def recorded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            called.append(name)
            return function(*args, **kwargs)

        return call

    for name in FUNCTIONS:
        monkeypatch.setattr(backend, name, recorded(name, getattr(backend, name)))
    before = nx.config.backend_priority.algos
    nx.config.backend_priority.algos = ["gpu_pregel"]
    yield called
    nx.config.backend_priority.algos = before


def test_the_size_decides_who_computes(priority: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    cached, converting = 3_000, 30_000
    monkeypatch.setattr(hand_over, "_pay", lambda graph, share: False)
    # NetworkX counts them with the second.
    for name in ("number_connected_components", "connected_components"):
        monkeypatch.setitem(sizes(), name, ((cached, converting),) * 3 + (1,))
    between, large = (
        nx.path_graph((cached + converting) // 6, backend="networkx"),
        nx.path_graph(converting, backend="networkx"),
    )
    assert nx.number_connected_components(between) == nx.number_connected_components(large) == 1
    assert priority == ["number_connected_components"]
    nx.number_connected_components(between, backend="gpu_pregel")
    nx.number_connected_components(between)
    assert len(priority) == 3


def test_what_is_computed_in_a_second_does_not_load_numba(priority: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hand_over, "_KERNELS", "a module that is not loaded")
    monkeypatch.setattr(hand_over, "_seconds_handed_over", 0.0)
    graph = nx.path_graph(1000, backend="networkx")
    monkeypatch.setitem(sizes(), "number_connected_components", ((0, 0),) * 3 + (len(graph) * 3 * 5 // 2,))
    called = [len(priority) for _ in range(4) if nx.number_connected_components(graph) == 1]
    assert called == [0, 0, 1, 2]


def test_a_small_program_loads_nothing() -> None:
    program = """
import networkx as nx
nx.config.backend_priority = ["gpu_pregel"]
graph = nx.gnm_random_graph(3000, 9000, seed=1)
assert nx.number_connected_components(graph) < 3000
"""
    assert "numba" not in loaded_after(program)


def test_sizes_are_measured_of_all_functions_of_graphs_that_networkx_has() -> None:
    of_graphs = {name for name in FUNCTIONS if FUNCTIONS[name].module != "generators"}
    assert of_graphs - sizes().keys() == {"leiden_communities", "leiden_partitions"}


def test_a_conversion_is_kept_until_the_graph_changes() -> None:
    graph = nx.path_graph(4)
    assert nx.number_connected_components(graph, backend="gpu_pregel") == 1
    first = next(iter(kept(graph).values()))
    assert nx.number_connected_components(graph, backend="gpu_pregel") == 1
    assert next(iter(kept(graph).values())) is first
    graph.add_edge("x", "y")
    assert not kept(graph)
    assert nx.number_connected_components(graph, backend="gpu_pregel") == 2
    graph.remove_edge(1, 2)
    assert nx.number_connected_components(graph, backend="gpu_pregel") == 3


def test_conversions_for_other_attributes_share_the_nodes_and_edges() -> None:
    graph = nx.path_graph(4)
    plain = backend.convert_from_nx(graph)
    graph.__networkx_cache__["backends"] = {"gpu_pregel": {(False, False): plain}}
    weighted = backend.convert_from_nx(graph, edge_attrs={"cost": 2})
    assert weighted.topology is plain.topology
    assert weighted.edge_values("cost").tolist() == [2] * 6


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda graph: pickle.loads(pickle.dumps(graph))])
def test_copies_of_a_converted_graph_are_converted_anew(copied: Callable[[Any], Any]) -> None:
    graph = nx.DiGraph([(2, 0), (1, 0), (3, 0)])
    assert nx.is_weakly_connected(graph, backend="gpu_pregel")
    copy_of_graph = copied(graph)
    graph.remove_edge(2, 0)
    assert list(nx.bfs_edges(copy_of_graph, 0, reverse=True, backend="gpu_pregel")) == [(0, 2), (0, 1), (0, 3)]
    assert nx.number_weakly_connected_components(graph, backend="gpu_pregel") == 2


def test_graphs_of_this_package_can_be_pickled() -> None:
    graph = gp.networkx.Graph(gp.Graph.from_edgelist([0, 1], [1, 2], [0.5, 2.0]))
    copied = pickle.loads(pickle.dumps(graph))
    assert nx.shortest_path_length(copied, 0, 2, weight="weight") == 2.5


def test_a_graph_without_a_cache_is_converted_each_time() -> None:
    graph = nx.path_graph(4)
    graph.__networkx_cache__ = None
    assert nx.is_connected(graph, backend="gpu_pregel")
    graph.add_node("alone")
    assert not nx.is_connected(graph, backend="gpu_pregel")


@pytest.mark.parametrize("name", GRAPHS)
def test_a_converted_graph_converts_back(name: str) -> None:
    graph = GRAPHS[name]()
    converted = backend.convert_from_nx(
        graph, preserve_edge_attrs=True, preserve_node_attrs=True, preserve_graph_attrs=True
    )
    assert (len(converted), converted.number_of_edges()) == (len(graph), graph.number_of_edges())
    back = backend.convert_to_nx(converted)
    assert (back.is_directed(), back.is_multigraph()) == (graph.is_directed(), graph.is_multigraph())
    assert list(back.nodes(data=True)) == list(graph.nodes(data=True))
    assert [list(row) for _, row in back.adjacency()] == [list(row) for _, row in graph.adjacency()]
    if graph.is_directed():
        assert [list(row) for row in back._pred.values()] == [list(row) for row in graph.pred.values()]
    assert back.graph == graph.graph
    if not graph.is_multigraph():
        assert {u: dict(row) for u, row in back.adjacency()} == {u: dict(row) for u, row in graph.adjacency()}


@pytest.mark.parametrize(
    "weights",
    [
        (1, np.float64(2.5)),
        (1, float("nan")),
        (1.5, 1 << 60),
        ("1", "2"),
        (1.0, float("nan")),
        (True, False),
        (None, None),
        (1 << 60, 1),
        (1 + 2j, 1j),
        ([], []),
    ],
)
def test_weights_on_which_results_would_differ_are_refused(weights: tuple[Any, Any]) -> None:
    graph = nx.Graph([(0, 1, {"weight": weights[0]}), (1, 2, {"weight": weights[1]})])
    with pytest.raises(NotImplementedError, match="edge"):
        backend.convert_from_nx(graph, edge_attrs={"weight": 1})


@pytest.mark.parametrize(
    ("weights", "default", "expected"),
    [
        ((3, 4), 1, "int64"),
        ((0.5, 1.5), 1, "float64"),
        ((np.float64(0.5), 1.5), 1, None),
        ((np.int64(2), np.int64(3)), 1, "int64"),
    ],
)
def test_weights_keep_their_kind(weights: tuple[Any, Any], default: Any, expected: str | None) -> None:
    graph = nx.Graph([(0, 1, {"weight": weights[0]}), (1, 2, {"weight": weights[1]})])
    if expected is None:
        with pytest.raises(NotImplementedError, match="different types: float and float64"):
            backend.convert_from_nx(graph, edge_attrs={"weight": default})
        return
    column = backend.convert_from_nx(graph, edge_attrs={"weight": default}).edge_column("weight").values
    assert column.dtype == expected
    assert column.tolist() == [weights[0], weights[0], weights[1], weights[1]]


MIXED_CALLS: dict[str, Callable[[Any, str], Any]] = {
    "pagerank": lambda graph, backend: nx.pagerank(graph, backend=backend),
    "katz": lambda graph, backend: nx.katz_centrality(graph, 0.01, weight="weight", backend=backend),
    "betweenness": lambda graph, backend: nx.betweenness_centrality(graph, weight="weight", backend=backend),
    "closeness": lambda graph, backend: nx.closeness_centrality(graph, distance="weight", backend=backend),
    "clustering": lambda graph, backend: nx.clustering(graph, weight="weight", backend=backend),
    "louvain": lambda graph, backend: nx.community.louvain_communities(graph, seed=1, backend=backend),
    "modularity": lambda graph, backend: nx.community.modularity(graph, [set(graph)], backend=backend),
    "path": lambda graph, backend: nx.shortest_path(graph, 0, 3, weight="weight", backend=backend),
    "paths": lambda graph, backend: nx.single_source_dijkstra_path(graph, 0, backend=backend),
    "distances": lambda graph, backend: nx.single_source_dijkstra(graph, 0, backend=backend),
    "distance": lambda graph, backend: nx.shortest_path_length(graph, 0, 4, weight="weight", backend=backend),
    "forest": lambda graph, backend: list(nx.minimum_spanning_edges(graph, backend=backend)),
    "matrix": lambda graph, backend: nx.to_numpy_array(graph, backend=backend).tolist(),
}


@pytest.mark.parametrize(
    ("name", "kind"),
    [*((name, nx.Graph) for name in MIXED_CALLS), ("distances", nx.MultiDiGraph), ("distance", nx.MultiDiGraph)],
)
def test_integers_among_floats_are_taken_where_results_are_those_of_networkx(name: str, kind: Any) -> None:
    graph = kind()
    graph.add_weighted_edges_from([(0, 1, 1), (1, 2, 0.5), (0, 2, 2), (2, 3, 1.5), (1, 3, 3), (1, 5, 2), (1, 5, 2.0)])
    graph.add_edge(3, 4)
    assert_same(MIXED_CALLS[name](graph, "gpu_pregel"), MIXED_CALLS[name](graph, "networkx"), Case())


def test_integers_among_floats_are_refused_where_results_tell_them_apart() -> None:
    graph = nx.Graph([(0, 1, {"weight": 1}), (1, 2, {"weight": 2.5})])
    with pytest.raises(NotImplementedError, match="different types: float and int"):
        backend.convert_from_nx(graph, edge_attrs={"weight": 1}).edge_values("weight")


@pytest.mark.parametrize(("default", "expected"), [(1, [5, 5, 1, 1]), (0, [5, 5, 0, 0])])
def test_missing_weights_get_the_default_of_the_function(default: int, expected: list[int]) -> None:
    graph = nx.Graph([(0, 1, {"weight": 5}), (1, 2)])
    assert backend.convert_from_nx(graph, edge_attrs={"weight": default}).edge_values("weight").tolist() == expected


@pytest.mark.parametrize(
    "nodes",
    [[0, 1, 2], [2, 0, 1], [10, 7, 8], [-5, 3, 1 << 70], [1.0, 2, 3], ["a", ("b",), None.__class__], [0, 10**9, 5]],
)
def test_nodes_of_every_kind_are_numbered_in_the_order_of_the_graph(nodes: list[Any]) -> None:
    graph = nx.Graph()
    graph.add_nodes_from(nodes)
    graph.add_edge(nodes[0], nodes[2])
    graph.add_edge(nodes[1], nodes[0])
    topology = backend.convert_from_nx(graph).topology
    assert topology.nodes == nodes
    assert topology.indptr.tolist() == [0, 2, 3, 4]
    assert topology.neighbors.tolist() == [2, 1, 0, 0]


def test_equal_nodes_of_another_type_are_the_same_node() -> None:
    graph = nx.Graph([(0, 1), (1, 2), (2.0, True)])
    assert backend.convert_from_nx(graph).topology.neighbors.tolist() == [1, 0, 2, 1]


def test_graphs_of_this_package_are_taken_as_they_are() -> None:
    edges = gp.Graph.from_edgelist(["ann", "bob", "dan"], ["bob", "cid", "eve"], [1.5, 2.0, 4.0])
    graph = gp.networkx.Graph(edges)
    assert list(nx.connected_components(graph, backend="gpu_pregel")) == [{"ann", "bob", "cid"}, {"dan", "eve"}]
    assert nx.number_connected_components(graph) == 2
    assert repr(graph) == "<Graph of gpu_pregel: 5 nodes, 3 edges>"
    assert str(graph) == "Graph with 5 nodes and 3 edges"
    assert graph.engine().indices.tolist() == edges.indices.tolist()
    assert "ann" in graph
    assert ["ann"] not in graph
    with pytest.raises(nx.NetworkXNotImplemented, match="undirected"):
        nx.is_weakly_connected(graph)
    with pytest.raises(ArgumentTypeError, match="pass NetworkX graphs to NetworkX's functions as they are"):
        gp.networkx.Graph(nx.Graph())


def test_a_function_that_the_backend_lacks_gets_a_networkx_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nx.config, "fallback_to_nx", True)
    graph = gp.networkx.Graph(gp.Graph.from_edgelist([0, 1, 2, 2], [1, 2, 0, 3], [1, 2, 3, 4]))
    assert nx.is_planar(graph)
    back = backend.convert_to_nx(graph)
    assert sorted(back.edges(data="weight")) == [(0, 1, 1), (0, 2, 3), (1, 2, 2), (2, 3, 4)]
    assert backend.convert_to_nx(7) == 7


def test_a_call_that_is_refused_says_why() -> None:
    assert backend.can_run("no_such_function", (), {}) == "gpu_pregel does not implement no_such_function"
    assert not hasattr(backend, "no_such_function")
    reason = "cutoff is neither a float nor an integer up to 2^53"
    cutoff: Any
    for cutoff in (float("nan"), np.float32(0.7), Fraction(7, 10), 2**53 + 1, "2"):
        assert backend.can_run("predecessor", (nx.path_graph(3), 0), {"cutoff": cutoff}) == reason
    for cutoff in (None, 0.7, np.float64(0.7), 2**53, np.uint8(2), True, float("inf")):
        assert backend.can_run("predecessor", (nx.path_graph(3), 0), {"cutoff": cutoff}) is True


def test_a_call_is_given_back_before_the_first_item_of_an_iterator() -> None:
    graph = nx.Graph([(0, 1, {"weight": 1}), (1, 2, {"weight": "2"})])
    with pytest.raises(NotImplementedError, match="raised NotImplementedError when calling"):
        nx.minimum_spanning_edges(graph, backend="gpu_pregel")


@pytest.mark.parametrize(
    "function",
    [
        nx.maximal_independent_set,
        nx.community.asyn_lpa_communities,
        nx.community.fast_label_propagation_communities,
        lambda graph, **options: nx.community.asyn_fluidc(graph, 2, **options),
    ],
)
def test_generators_of_numpy_are_refused_where_kernels_draw(function: Callable[..., Any]) -> None:
    with pytest.raises(NotImplementedError) as caught:
        function(nx.path_graph(9), seed=np.random.default_rng(1), backend="gpu_pregel")
    assert "the seed is a" in str(caught.value.__cause__)


def test_changes_of_a_matrix_do_not_change_the_graph() -> None:
    graph = nx.Graph()
    graph.add_weighted_edges_from([(0, 1, 3), (1, 2, 4)])
    nx.to_scipy_sparse_array(graph, format="coo", backend="gpu_pregel").data[:] = 0
    assert nx.shortest_path_length(graph, 0, 2, weight="weight", backend="gpu_pregel") == 7


def test_errors_of_iterators_are_raised_when_they_are_read() -> None:
    edges = nx.bfs_edges(nx.path_graph(3), "absent", backend="gpu_pregel")
    with pytest.raises(nx.NetworkXError, match="absent"):
        next(edges)


class Complement(nx.Graph):
    """A graph whose neighbours are the nodes that it has no edges to."""

    def neighbors(self, n: Any) -> Any:
        return iter(set(self) - set(self._adj[n]) - {n})


def test_classes_with_their_own_neighbours_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="Complement overrides neighbors"):
        backend.convert_from_nx(Complement(nx.path_graph(4)))


class Pair:
    """A graph of two nodes that NetworkX's functions take although it is none of its graphs."""

    def is_directed(self) -> bool:
        return False

    def __iter__(self) -> Iterator[int]:
        return iter((0, 1))

    def __len__(self) -> int:
        return 2

    def __contains__(self, node: object) -> bool:
        return node in (0, 1)

    adj: ClassVar[dict[int, Any]] = {0: {1: {}}, 1: {0: {}}}
    _adj = adj


def test_an_object_that_is_no_graph_of_networkx_is_left_to_it(priority: list[str]) -> None:
    assert nx.number_connected_components(Pair()) == 1
    with pytest.raises(AttributeError, match="'str' object has no attribute 'nbunch_iter'"):
        nx.pagerank("graph")
    assert priority == []


def test_other_classes_are_taken() -> None:
    class Named(nx.MultiDiGraph):
        name = "with a name"

    assert nx.number_weakly_connected_components(Named([(0, 1), (2, 3)]), backend="gpu_pregel") == 2


def test_vectors_of_other_numbers_are_left_to_networkx() -> None:
    graph = nx.path_graph(["a", "b"])
    halves = {"a": Fraction(1, 2), "b": Fraction(1, 4)}
    for search, given in ((nx.eigenvector_centrality, "nstart"), (nx.katz_centrality, "beta")):
        with pytest.raises(NotImplementedError, match="raised NotImplementedError when calling"):
            search(graph, **{given: halves}, backend="gpu_pregel")
