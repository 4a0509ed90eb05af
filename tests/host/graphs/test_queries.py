"""Queries of graphs by the user's ids, compared with NetworkX."""

from __future__ import annotations

import datetime
from typing import Any

import networkx
import numpy as np
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentTypeError, UnknownVertexError
from tests.graphs import arrays, edge_lists
from tests.packages import needs

pandas = needs("pandas", "test")


def with_ids(ids: Any) -> gp.Graph:
    return gp.Graph.from_csr(np.zeros(len(ids) + 1, np.int64), [], ids=ids)


def objects(values: list[Any]) -> Any:
    return np.fromiter(values, object, len(values))


TABLES = [
    ("numbers", np.arange(4)),
    ("dense integers", np.array([3, 5, 6, 9])),
    ("integers in another order", np.array([9, 3, 6, 5])),
    ("integers far apart", np.array([2, 10**6, 10**12, 2**62])),
    ("integers far apart, unsorted", np.array([10**12, -5, 2**62, 0])),
    ("int8", np.array([-128, -3, 0, 127], np.int8)),
    ("beyond int64", np.array([1, 2**63, 2**64 - 2, 2**64 - 1], np.uint64)),
    ("dense beyond int64", np.array([2**64 - 4, 2**64 - 2, 2**64 - 1], np.uint64)),
    ("strings", objects(["ann", "bob", "", "1"])),
    ("bytes and strings", objects(["a", b"a", "b\0", "b"])),
    ("tuples", objects([(1, 2), (1, "2"), ()])),
    ("dates", objects([datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)])),
    ("mixed types", objects(["1", 1, (1,), 2**70, frozenset([1])])),
    ("one", np.array([7])),
    ("none", np.array([], np.int64)),
]


@pytest.mark.parametrize("ids", [ids for _, ids in TABLES], ids=[name for name, _ in TABLES])
def test_ids_and_vertex_numbers_are_translated_both_ways(ids: Any) -> None:
    graph = with_ids(ids)
    values = ids.tolist()
    numbers = list(range(len(values)))
    assert [graph.vertex(value) for value in values] == numbers
    assert [graph.vertex(value) for value in ids] == numbers
    assert all(type(graph.vertex(value)) is int for value in values)
    for given_ids in (values, ids, tuple(values), iter(values), pandas.Series(values, dtype=ids.dtype)):
        found = graph.vertices(given_ids)
        assert found.tolist() == numbers
        assert found.dtype == np.int64
    assert graph.vertices(ids[::-1]).tolist() == numbers[::-1]
    assert graph.vertices([]).tolist() == graph.vertices(np.array([])).tolist() == []
    assert all(value in graph for value in values)
    assert len(graph) == len(values)


UNKNOWN = [
    ("beyond the last number", np.arange(4), 4, "no vertex has the id 4"),
    ("negative", np.arange(4), -1, "no vertex has the id -1"),
    ("no integer", np.arange(4), 1.0, r"no vertex has the id 1\.0"),
    ("a truth value", np.arange(4), True, "no vertex has the id True"),
    ("a truth value of NumPy", np.arange(4), np.True_, "no vertex has the id True"),
    ("None", np.arange(4), None, "no vertex has the id None"),
    ("a list", np.arange(4), [1], r"no vertex has the id \[1\]"),
    ("a gap", np.array([3, 5, 6]), 4, "no vertex has the id 4"),
    ("a wide gap", np.array([3, 10**12]), 4, "no vertex has the id 4"),
    ("beyond 64 bits", np.array([3, 10**12]), 2**70, "no vertex has the id 1180591620717411303424"),
    ("below a table from int64's largest", np.array([2**63, 2**64 - 1], np.uint64), -1, "no vertex has the id -1"),
    (
        "digits",
        np.arange(4),
        "1",
        "the id '1', which is a string; there is the id 1, which is an integer",
    ),
    ("digits far apart", np.array([3, 10**12]), "3", "there is the id 3, which is an integer"),
    (
        "a number of digits",
        objects(["1", "x"]),
        1,
        "which is an integer; there is the id '1', which is a string",
    ),
    ("NumPy's", objects(["1", "x"]), np.int8(1), "the id np.int8.1., which is of type int8; there is the id '1'"),
    ("digits among objects", objects([1, "x"]), "1", "there is the id 1, which is an integer"),
    ("another string", objects(["ann", "bob"]), "Ann", r"no vertex has the id 'Ann': `id in graph` tells whether"),
    ("not hashable", objects(["ann", "bob"]), ["ann"], r"no vertex has the id \['ann'\]"),
    ("equal, but a float", objects([1, "x"]), 1.0, r"no vertex has the id 1\.0"),
    ("equal, but of floats", objects([(1, 2), "x"]), (1.0, 2), r"no vertex has the id \(1\.0, 2\)"),
    ("in an empty graph", np.array([], np.int64), 0, "no vertex has the id 0"),
]


@pytest.mark.parametrize(("ids", "value", "message"), [row[1:] for row in UNKNOWN], ids=[row[0] for row in UNKNOWN])
def test_unknown_ids_are_named(ids: Any, value: Any, message: str) -> None:
    graph = with_ids(ids)
    with pytest.raises(UnknownVertexError, match=message) as caught:
        graph.vertex(value)
    assert isinstance(caught.value, KeyError)
    with pytest.raises(UnknownVertexError, match=message):
        graph.vertices([*ids.tolist(), value])
    assert value not in graph


@pytest.mark.parametrize("value", [10**5000, "7" * 5000], ids=["int", "str"])
@pytest.mark.parametrize("ids", [["a", "b"], [3, 9], None], ids=["str", "int", "numbers"])
def test_numbers_of_thousands_of_digits_are_unknown_ids(ids: Any, value: Any) -> None:
    """Python refuses to convert them from and to strings."""
    graph = gp.Graph.from_csr([0, 1, 2], [1, 0], ids=ids)
    assert value not in graph
    for call in (graph.vertex, lambda one: graph.vertices([one])):
        with pytest.raises(UnknownVertexError, match=r"no vertex has the id ('7777|of type int)"):
            call(value)


def test_the_first_unknown_id_of_an_array_is_named() -> None:
    for ids in (np.array([3, 5, 6]), np.array([3, 10**6, 10**12])):
        with pytest.raises(UnknownVertexError, match="no vertex has the id 4:"):
            with_ids(ids).vertices(np.array([3, 4, 7, 5]))
    with pytest.raises(UnknownVertexError, match="no vertex has the id True"):
        with_ids(np.arange(3)).vertices([0, True])
    with pytest.raises(UnknownVertexError, match=r"no vertex has the id 1\.0"):
        with_ids(np.arange(3)).vertices(np.array([1.0]))


@pytest.mark.parametrize("ids", ["ann", b"ann", 3, None])
def test_one_id_is_no_collection_of_ids(ids: Any) -> None:
    for graph in (with_ids(np.arange(4)), with_ids(objects(["ann", "bob"]))):
        with pytest.raises(ArgumentTypeError, match=f"ids must be a list or an array of ids, not {ids!r}"):
            graph.vertices(ids)
        with pytest.raises(ArgumentTypeError, match="ids must have one dimension, not 2"):
            graph.vertices(np.zeros((2, 2), np.int64))


@given(
    ids=st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 30), unique=True, max_size=30),
    data=st.data(),
)
def test_integer_tables_agree_with_a_dict(ids: list[int], data: Any) -> None:
    graph = with_ids(np.array(ids, np.int64))
    number = {value: position for position, value in enumerate(ids)}
    asked = data.draw(st.lists(st.sampled_from(ids or [0]), max_size=20 if ids else 0))
    assert graph.vertices(np.array(asked, np.int64)).tolist() == [number[value] for value in asked]
    other = data.draw(st.integers(-(2**64), 2**65))
    assert (other in graph) == (other in number)


@given(graph=edge_lists(max_vertices=12), directed=st.booleans(), named=st.booleans())
def test_neighbors_and_degrees_agree_with_networkx(graph: Any, directed: bool, named: bool) -> None:
    n, edges = graph
    src, dst = arrays(edges)
    built = gp.Graph.from_edgelist(src, dst, num_vertices=n, directed=directed)
    oracle = networkx.MultiDiGraph() if directed else networkx.MultiGraph()
    oracle.add_nodes_from(range(n))
    oracle.add_edges_from(edges)
    if named:
        built = gp.Graph.from_csr(*built.to_csr(), directed=directed, ids=objects([f"v{v}" for v in range(n)]))
        oracle = networkx.relabel_nodes(oracle, {v: f"v{v}" for v in range(n)})
    nodes = list(oracle.nodes)
    for graph_now, oracle_now in ((built, oracle), (built.transpose(), oracle.reverse() if directed else oracle)):
        for u in nodes:
            expected = [v for v in nodes for _ in range(oracle_now.number_of_edges(u, v))]
            assert graph_now.neighbors(u).tolist() == expected
            assert graph_now.out_degree(u) == len(expected)
            assert graph_now.in_degree(u) == sum(oracle_now.number_of_edges(v, u) for v in nodes)
            assert [graph_now.has_edge(u, v) for v in nodes] == [oracle_now.has_edge(u, v) for v in nodes]


@pytest.mark.parametrize("count", [3, 40])
def test_few_and_many_strings_are_found(count: int) -> None:
    graph = with_ids(objects([f"v{v}" for v in range(100)]))
    asked = [f"v{v * v % 100}" for v in range(count)]
    expected = [v * v % 100 for v in range(count)]
    for column in (asked, np.array(asked), objects(asked), pandas.Series(asked), pyarrow.array(asked), set(asked)):
        found = graph.vertices(column).tolist()
        assert sorted(found) == sorted(set(expected)) if isinstance(column, set) else found == expected
    for missing in ([*asked, "x", "y"], pyarrow.array([*asked, "x", "y"])):
        with pytest.raises(UnknownVertexError, match="no vertex has the id 'x'"):
            graph.vertices(missing)
    with pytest.raises(UnknownVertexError, match="no vertex has the id None"):
        graph.vertices(pyarrow.array([*asked, None]))
    with pytest.raises(UnknownVertexError, match="no vertex has the id 7"):
        graph.vertices([*asked, 7])


def test_strings_that_arrow_cannot_hold_are_found() -> None:
    graph = with_ids(objects(["a", "\ud800"]))
    assert graph.vertices(["\ud800", "a"]).tolist() == [1, 0]
    assert with_ids(objects(["a", "b"])).vertices(["b"]).tolist() == [1]
    with pytest.raises(UnknownVertexError):
        with_ids(objects(["a", "b"])).vertices(["b", "\ud800"])


def test_queries_name_an_unknown_id() -> None:
    graph = gp.Graph.from_edgelist(["ann"], ["bob"])
    for query in (graph.neighbors, graph.out_degree, graph.in_degree, lambda v: graph.has_edge("ann", v)):
        with pytest.raises(UnknownVertexError, match="no vertex has the id 'cid'"):
            query("cid")
    with pytest.raises(UnknownVertexError, match="no vertex has the id 'cid'"):
        graph.has_edge("cid", "ann")


def test_the_message_of_the_error_is_shown_as_it_is() -> None:
    with pytest.raises(UnknownVertexError) as caught:
        gp.grid(2).vertex(9)
    assert str(caught.value) == "no vertex has the id 9: `id in graph` tells whether an id exists"


def test_the_index_of_ids_is_built_once_and_shared_with_the_transpose() -> None:
    graph = gp.Graph.from_edgelist(["ann"], ["bob"], directed=True)
    graph.vertex("ann")
    index = graph._index
    assert graph.transpose().vertices(["bob"]).tolist() == [1]
    assert graph.transpose()._index is index is graph._index
