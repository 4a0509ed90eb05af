"""Tests of conversions from and to the objects of other libraries."""

from __future__ import annotations

import builtins
from typing import Any

import networkx
import numpy as np
import pyarrow
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, GraphError, MissingPackageError
from tests.graphs import arrays, edge_lists
from tests.packages import needs

pandas = needs("pandas", "test")


def same(a: gp.Graph, b: gp.Graph) -> bool:
    parts = zip(a.to_csr(), b.to_csr(), strict=True)
    return a.is_directed == b.is_directed and all(
        (x is None and y is None) or (x is not None and y is not None and x.dtype == y.dtype and np.array_equal(x, y))
        for x, y in parts
    )


@given(graph=edge_lists(), directed=st.booleans(), weighted=st.booleans())
def test_every_round_trip_returns_the_graph(graph: Any, directed: bool, weighted: bool) -> None:
    n, edges = graph
    weight = np.arange(len(edges), dtype=np.float64) if weighted else None
    one = gp.Graph.from_edgelist(*arrays(edges), weight, num_vertices=n, directed=directed)
    options: dict[str, Any] = {"num_vertices": n, "directed": directed}
    columns = ("source", "target", "weight" if weighted else None)
    assert same(gp.Graph.from_edgelist(*one.to_edgelist(), **options), one)
    assert same(gp.Graph.from_csr(*one.to_csr(), directed=directed), one)
    assert same(gp.Graph.from_dlpack(*one.to_dlpack(), directed=directed), one)
    assert same(gp.Graph.from_pandas(one.to_pandas(), *columns, **options), one)
    assert same(gp.Graph.from_arrow(one.to_arrow(), *columns, **options), one)
    if len(edges):
        assert same(gp.Graph.from_networkx(one.to_networkx()), one)
    if not one.has_duplicates:
        assert same(gp.Graph.from_scipy(one.to_scipy(), directed=directed, weighted=weighted), one)


def test_scipy_keeps_explicit_zeros_and_checks_the_shape() -> None:
    matrix = scipy.sparse.coo_array(([0.0, 2.0], ([0, 1], [1, 0])), shape=(2, 2))
    graph = gp.Graph.from_scipy(matrix)
    assert graph.weights is not None
    assert graph.weights.tolist() == [0, 2]
    assert gp.Graph.from_scipy(matrix, directed=False, weighted=False).weights is None
    with pytest.raises(GraphError, match="2 rows and 3 columns"):
        gp.Graph.from_scipy(scipy.sparse.coo_array((2, 3)))
    with pytest.raises(GraphError, match="not symmetric at vertex 0, neighbour 1"):
        gp.Graph.from_scipy(matrix, directed=False)
    with pytest.raises(ArgumentTypeError, match=r"not ndarray: use scipy\.sparse\.csr_array\(matrix\)"):
        gp.Graph.from_scipy(np.eye(2))


@pytest.mark.parametrize("form", ["csr_array", "csr_matrix", "coo_array", "coo_matrix", "lil_array", "csc_array"])
def test_boolean_matrices_have_no_weights(form: str) -> None:
    matrix = getattr(scipy.sparse, form)(np.array([[False, True], [True, False]]))
    graph = gp.Graph.from_scipy(matrix)
    assert (graph.num_stored_edges, graph.weights, graph.is_directed) == (2, None, False)
    assert gp.connected_components(matrix).count == 1
    stored = scipy.sparse.coo_array(([True, False, True], ([0, 0, 1], [1, 2, 2])), shape=(3, 3))
    graph = gp.Graph.from_scipy(stored.asformat(form[:3]))
    assert [graph.neighbors(v).tolist() for v in range(3)] == [[1], [2], []]
    assert stored.nnz == 3  # the caller's matrix is as before


@pytest.mark.parametrize("directed", [False, True])
def test_repeated_scipy_entries_are_edges(directed: bool) -> None:
    rows, columns, values = [2, 0, 1, 0, 1], [2, 1, 0, 1, 0], [9.0, 2.0, 3.0, 3.0, 2.0]
    matrix = scipy.sparse.coo_array((values, (rows, columns)), shape=(4, 4))
    graph = gp.Graph.from_scipy(matrix, directed=directed)
    assert graph.weights is not None
    assert (graph.num_vertices, graph.indices.tolist()) == (4, [1, 1, 0, 0, 2])
    assert graph.weights.tolist() == [2, 3, 2, 3, 9]
    csr = scipy.sparse.csr_array(([2.0, 3.0], [1, 1], [0, 2, 2]), shape=(2, 2))
    assert gp.Graph.from_scipy(csr).num_stored_edges == 2
    assert gp.Graph.from_scipy(scipy.sparse.coo_matrix((3, 3)), weighted=False).num_vertices == 3


def test_scipy_matrices_must_have_two_dimensions() -> None:
    with pytest.raises(GraphError, match="matrix has 1 dimension: an adjacency matrix has 2"):
        gp.Graph.from_scipy(scipy.sparse.coo_array(np.arange(3)))


def test_networkx_nodes_become_ids_and_weights_must_be_complete() -> None:
    source = networkx.DiGraph([("b", "a"), ("a", "c")])
    graph = gp.Graph.from_networkx(source)
    assert graph.ids is not None
    assert graph.ids.tolist() == ["b", "a", "c"]
    assert set(graph.to_networkx().edges) == set(source.edges)
    source.edges["b", "a"]["weight"] = 2.5
    with pytest.raises(GraphError, match=r"edge \('a', 'c'\) has no attribute 'weight'"):
        gp.Graph.from_networkx(source)
    assert gp.Graph.from_networkx(source, weight=None).weights is None
    source.edges["a", "c"]["weight"] = 1
    weights = gp.Graph.from_networkx(source).weights
    assert weights is not None
    assert weights.tolist() == [2.5, 1]
    multi = gp.Graph.from_networkx(networkx.MultiGraph([(0, 1), (0, 1), (1, 1)]))
    assert isinstance(multi.to_networkx(), networkx.MultiGraph)
    assert multi.num_stored_edges == 5


def test_missing_columns_and_nulls_are_reported() -> None:
    frame = pandas.DataFrame({"from": ["x", "y"], "to": ["y", "z"], "cost": [1.0, 2.0]})
    graph = gp.Graph.from_pandas(frame, weight="cost", directed=True)
    assert graph.to_pandas().to_dict("list") == {"source": ["x", "y"], "target": ["y", "z"], "weight": [1.0, 2.0]}
    with pytest.raises(ArgumentError, match="no column 'price'; available columns: 'from', 'to', 'cost'"):
        gp.Graph.from_pandas(frame, weight="price")
    with pytest.raises(ArgumentError, match="no column 'a'; available columns"):
        gp.Graph.from_pandas(frame, "a", "to")
    with pytest.raises(ArgumentError, match="source= and target= belong together"):
        gp.Graph.from_pandas(frame, "from")
    with pytest.raises(GraphError, match="column 'a' is null in row 1"):
        gp.Graph.from_arrow(pyarrow.table({"a": [1, None], "b": [1, 2]}))


def test_from_dlpack_rejects_other_objects() -> None:
    with pytest.raises(ArgumentTypeError, match="indptr cannot be imported by DLPack"):
        gp.Graph.from_dlpack([0, 0], np.zeros(0, np.uint32))


def test_a_missing_package_is_reported_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_networkx(name: str, *rest: Any) -> Any:
        if name.split(".")[0] == "networkx":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr("gpu_pregel.host.arguments.import_module", without_networkx)
    with pytest.raises(MissingPackageError, match="needs the package networkx: pip install networkx"):
        gp.Graph.from_edgelist([0], [1]).to_networkx()


@pytest.mark.parametrize("others", [[], [("b", "c", 1.5)]])
def test_a_weight_that_is_none_is_named(others: list[Any]) -> None:
    graph = networkx.Graph()
    graph.add_edge("a", "b", weight=None)
    graph.add_weighted_edges_from(others)
    with pytest.raises(GraphError, match=r"edge \('a', 'b'\) has the weight None: use a number, or pass weight=None"):
        gp.Graph.from_networkx(graph)
