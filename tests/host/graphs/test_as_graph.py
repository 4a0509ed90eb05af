"""Functions that take a graph also take those of NetworkX and sparse matrices of SciPy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pyarrow
import pytest
import scipy.sparse
import scipy.sparse.csgraph
from hypothesis import given
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentTypeError, GraphError
from tests.graphs import arrays, edge_lists
from tests.packages import needs
from tests.programs import DISTANCES, HOPS

pandas = needs("pandas", "test")


@given(graph=edge_lists(max_vertices=12), directed=st.booleans())
def test_networkx_graphs_and_sparse_matrices_are_taken(graph: Any, directed: bool) -> None:
    n, edges = graph
    oracle = (networkx.DiGraph if directed else networkx.Graph)(edges)
    oracle.add_nodes_from(range(n))
    found = gp.connected_components(oracle, device="cpu").to_dict()
    assert list(found) == list(oracle.nodes)
    components = networkx.connected_components(oracle.to_undirected())
    assert {frozenset(v for v in found if found[v] == label) for label in found.values()} == set(
        map(frozenset, components)
    )
    matrix = scipy.sparse.coo_array((np.ones(len(edges)), arrays(edges)), shape=(n, n)).tocsr()
    result = gp.connected_components(matrix, device="cpu")
    count, labels = scipy.sparse.csgraph.connected_components(matrix, directed=False)
    assert result.count == count
    assert len({*zip(result.to_numpy().tolist(), labels.tolist(), strict=True)}) == count


def test_programs_and_frontiers_take_them() -> None:
    path = networkx.DiGraph([("a", "b"), ("b", "c")])
    found = gp.run(path, HOPS, device="cpu")
    assert found.to_dict() == {"a": 0, "b": 1, "c": 2}
    assert found.graph.is_directed
    matrix = scipy.sparse.csr_array(np.array([[0, 2.0, 9.0], [0, 0, 3.0], [0, 0, 0]]))
    assert gp.run(matrix, DISTANCES, device="cpu").to_numpy().tolist() == [0, 2, 5]
    assert len(gp.Frontier(networkx.path_graph(5))) == 5
    weighted = networkx.Graph()
    weighted.add_weighted_edges_from([("a", "b", 2.5), ("b", "c", 0.5)])
    assert gp.run(weighted, DISTANCES, device="cpu").to_dict() == {"a": 0, "b": 2.5, "c": 3.0}


@pytest.mark.parametrize("kind", ["coo_array", "csr_matrix", "csc_array", "lil_array", "dok_array", "dia_array"])
def test_every_kind_of_sparse_matrix_is_taken(kind: str) -> None:
    matrix = getattr(scipy.sparse, kind)(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]]))
    assert gp.connected_components(matrix).to_numpy().tolist() == [0, 0, 2]


FRAME = pandas.DataFrame({"source": [1], "target": [2]})
OTHERS = [
    (FRAME, "not DataFrame: use Graph.from_pandas(edges, source, target)"),
    (pyarrow.table({"source": [1], "target": [2]}), "not Table: use Graph.from_arrow(edges, source, target)"),
    ("graph.csv", "not str: use gp.read_graph(path)"),
    (Path("graph.csv"), "Path: use gp.read_graph(path)"),
    (None, "not NoneType: use Graph.from_edgelist(src, dst)"),
    (np.arange(2), "not ndarray: use Graph.from_edgelist(src, dst)"),
    (np.eye(2), "not ndarray: use Graph.from_scipy(scipy.sparse.csr_array(matrix))"),
    ([(0, 1)], "not list: use Graph.from_edgelist(src, dst), with src, dst = zip(*edges) if these are pairs"),
]


@pytest.mark.parametrize(("value", "message"), OTHERS)
@pytest.mark.parametrize(
    "function", [gp.connected_components, gp.Frontier, lambda graph: gp.run(graph, HOPS)], ids=["cc", "frontier", "run"]
)
def test_other_objects_are_refused_with_the_constructor_to_use(
    function: Callable[[Any], object], value: Any, message: str
) -> None:
    with pytest.raises(ArgumentTypeError, match="graph must be a gpu_pregel Graph, a NetworkX graph or") as caught:
        function(value)
    assert message in str(caught.value)


@pytest.mark.parametrize("value", [None, 5, "graph", [(0, 1)], gp.grid(2)])
@pytest.mark.parametrize(
    ("constructor", "message"),
    [
        (gp.Graph.from_scipy, "matrix must be a SciPy sparse matrix or array, not "),
        (gp.Graph.from_networkx, "graph must be a NetworkX graph, not "),
        (gp.Graph.from_pandas, "edges must be a pandas DataFrame, not "),
    ],
)
def test_constructors_refuse_other_objects(constructor: Callable[[Any], object], value: Any, message: str) -> None:
    with pytest.raises(ArgumentTypeError, match=f"{message}{type(value).__name__}"):
        constructor(value)


@pytest.mark.parametrize("value", [None, 5, [(0, 1)]])
def test_from_arrow_refuses_other_objects(value: Any) -> None:
    with pytest.raises(ArgumentTypeError, match=f"edges must be an Arrow table, not {type(value).__name__}"):
        gp.Graph.from_arrow(value)


# Symmetric matrices


MATRICES: list[tuple[str, Any, bool]] = [
    ("empty", np.zeros((0, 0)), False),
    ("no entries", np.zeros((3, 3)), False),
    ("loop", [[2.0]], False),
    ("symmetric", [[1, 2], [2, 0]], False),
    ("one direction", [[0, 2], [0, 0]], True),
    ("other weights", [[0, 2], [3, 0]], True),
    ("cycle", [[0, 1, 0], [0, 0, 1], [1, 0, 0]], True),
]


@pytest.mark.parametrize(("entries", "directed"), [row[1:] for row in MATRICES], ids=[row[0] for row in MATRICES])
@pytest.mark.parametrize("kind", ["csr_array", "coo_array"])
def test_a_symmetric_matrix_is_an_undirected_graph(entries: Any, directed: bool, kind: str) -> None:
    matrix = getattr(scipy.sparse, kind)(np.array(entries))
    graph = gp.Graph.from_scipy(matrix)
    assert graph.is_directed == directed
    assert (graph.to_scipy() != matrix.tocsr()).nnz == 0
    assert gp.Graph.from_scipy(matrix, directed=True).is_directed
    if directed:
        with pytest.raises(GraphError, match="undirected but not symmetric"):
            gp.Graph.from_scipy(matrix, directed=False)
    else:
        assert not gp.Graph.from_scipy(matrix, directed=False).is_directed


def test_symmetry_ignores_the_sign_of_zero_and_repeated_entries() -> None:
    zeros = scipy.sparse.coo_array(([0.0, -0.0], ([0, 1], [1, 0])), shape=(2, 2))
    assert not gp.Graph.from_scipy(zeros).is_directed
    repeated = scipy.sparse.coo_array(([1, 2, 2, 1], ([0, 0, 1, 1], [1, 1, 0, 0])), shape=(2, 2))
    assert not gp.Graph.from_scipy(repeated).is_directed
    assert gp.Graph.from_scipy(repeated, weighted=False).weights is None
    once_more = scipy.sparse.coo_array(([1, 2, 2], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    assert gp.Graph.from_scipy(once_more).is_directed
    unequal = scipy.sparse.coo_array(([1, 2], ([0, 1], [1, 0])), shape=(2, 2))
    assert gp.Graph.from_scipy(unequal).is_directed
    assert not gp.Graph.from_scipy(unequal, weighted=False).is_directed


def test_rows_of_a_matrix_may_have_ids() -> None:
    graph = gp.Graph.from_scipy(scipy.sparse.csr_array([[0, 1], [1, 0]]), ids=["a", "b"])
    assert graph.neighbors("a").tolist() == ["b"]
    with pytest.raises(GraphError, match="ids has 1 entries for 2 vertices"):
        gp.Graph.from_scipy(scipy.sparse.csr_array((2, 2)), ids=["a"])
    with pytest.raises(ArgumentTypeError, match="directed must be True or False, not 'no'"):
        gp.Graph.from_scipy(scipy.sparse.csr_array((2, 2)), directed="no")  # type: ignore[arg-type]


@given(graph=edge_lists(max_vertices=12))
def test_matrices_count_paths(graph: Any) -> None:
    n, edges = graph
    built = gp.Graph.from_edgelist(*arrays(edges), num_vertices=n, directed=True)
    matrix = built.to_scipy()
    assert matrix.dtype == np.int64
    oracle = networkx.MultiDiGraph(edges)
    oracle.add_nodes_from(range(n))
    dense = networkx.to_numpy_array(oracle, nodelist=range(n))
    assert ((matrix @ matrix).toarray() == dense @ dense).all()
