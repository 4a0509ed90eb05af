"""Subgraphs, transposes, undirected and simple graphs, and largest components, compared with NetworkX and SciPy."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, UnknownVertexError
from gpu_pregel.host.graphs import csr, transforms
from tests.graphs import arrays, edge_lists

Weighted = tuple[int, list[tuple[int, int]], list[float]]


@st.composite
def weighted_edges(draw: Any) -> Weighted:
    n, edges = draw(edge_lists(max_vertices=12, max_edges=40))
    weights = draw(st.lists(st.integers(-3, 3), min_size=len(edges), max_size=len(edges)))
    return n, edges, weights


def build(graph: Weighted, directed: bool, weighted: bool, named: bool) -> gp.Graph:
    n, edges, weights = graph
    weight = np.array(weights, np.float32) if weighted else None
    built = gp.Graph.from_edgelist(*arrays(edges), weight, num_vertices=n, directed=directed)
    ids = [f"v{v}" for v in range(n)] if named else None
    return gp.Graph.from_csr(*built.to_csr(), directed=directed, ids=ids)


def edges_of(graph: gp.Graph) -> list[tuple[Any, ...]]:
    """Return the edges by the user's ids, with weights if there are any, in the order of the rows."""
    table = graph.to_arrow()
    return list(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))


def check_rows(graph: gp.Graph) -> None:
    """Check the CSR and the order of its rows."""
    again = gp.Graph.from_csr(*graph.to_csr(), directed=graph.is_directed)
    for one, other in zip(graph.to_csr(), again.to_csr(), strict=True):
        if one is not None and other is not None:
            assert one.tolist() == other.tolist()
            assert one.dtype == other.dtype


OPTIONS: dict[str, Any] = {
    "graph": weighted_edges(),
    "directed": st.booleans(),
    "weighted": st.booleans(),
    "named": st.booleans(),
}


@pytest.mark.parametrize("edges_at_once", [1, 5, 1 << 22])
def test_subgraphs_agree_with_networkx(edges_at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transforms, "_EDGES_AT_ONCE", edges_at_once)

    @given(**OPTIONS, data=st.data())
    def check(graph: Weighted, directed: bool, weighted: bool, named: bool, data: Any) -> None:
        built = build(graph, directed, weighted, named)
        ids = list(range(graph[0])) if built.ids is None else built.ids.tolist()
        chosen = data.draw(st.lists(st.sampled_from(ids), max_size=2 * len(ids)))
        part = built.subgraph(chosen)
        oracle = built.to_networkx().subgraph(chosen)
        found = [part.to_ids(np.arange(len(part))).tolist(), sorted(edges_of(part))]
        key = "weight" if weighted else None
        expected = [(*edge[:2], *edge[2:][:weighted]) for edge in oracle.edges(data=key)]
        order = {v: number for number, v in enumerate(ids)}
        if not directed:
            expected = [(*sorted(edge[:2], key=order.__getitem__), *edge[2:]) for edge in expected]
        assert found == [[v for v in ids if v in chosen], sorted(expected)]
        assert part.is_directed == directed
        assert (part.weights is None) == (not weighted)
        check_rows(part)

    check()


def test_subgraphs_keep_ids_weights_and_direction() -> None:
    graph = gp.Graph.from_edgelist(["a", "b", "c", "c"], ["b", "c", "a", "d"], [1, 2, 3, 4], directed=True)
    part = graph.subgraph(["c", "a", "a", "d"])
    assert repr(part) == "<Graph: 3 vertices, 2 stored edges, directed, int64 weights>"
    assert part.to_arrow().to_pydict() == {"source": ["c", "c"], "target": ["a", "d"], "weight": [3, 4]}
    assert graph.subgraph(["d", "c", "b", "a"]) is graph
    numbered = gp.Graph.from_edgelist([0, 1], [1, 2]).subgraph([2, 1])
    assert numbered.ids is not None
    assert (numbered.ids.tolist(), numbered.neighbors(2).tolist()) == ([1, 2], [1])
    first = gp.Graph.from_edgelist([0, 1, 2], [1, 2, 9]).subgraph([2, 1, 0])
    assert (first.ids, first.neighbors(1).tolist()) == (None, [0, 2])
    nothing = graph.subgraph([])
    assert repr(nothing) == "<Graph: 0 vertices, 0 stored edges, directed, int64 weights>"
    with pytest.raises(UnknownVertexError, match="no vertex has the id 'x'"):
        graph.subgraph(["a", "x"])
    with pytest.raises(ArgumentTypeError, match="ids must be a list or an array of ids, not 'a'"):
        graph.subgraph("a")


@given(**OPTIONS)
def test_transposes_agree_with_networkx(graph: Weighted, directed: bool, weighted: bool, named: bool) -> None:
    built = build(graph, directed, weighted, named)
    turned = built.transpose()
    assert isinstance(turned, gp.Graph)
    assert turned.transpose() is built
    if not directed:
        assert turned is built
        return
    assert sorted(edges_of(turned)) == sorted((v, u, *rest) for u, v, *rest in edges_of(built))
    assert (turned.to_scipy() != built.to_scipy().T).nnz == 0
    assert networkx.utils.graphs_equal(turned.to_networkx(), built.to_networkx().reverse())
    assert turned.out_degrees.tolist() == np.diff(turned.indptr).tolist() == built.in_degrees.tolist()
    assert turned.in_degrees.tolist() == built.out_degrees.tolist()
    assert turned.has_duplicates == built.has_duplicates
    copied = gp.Graph.from_csr(*turned.to_csr(), directed=True)
    assert (turned.num_vertices, turned.num_stored_edges, turned.nbytes) == (
        len(copied),
        copied.num_stored_edges,
        copied.nbytes,
    )
    assert turned.content_hash == copied.content_hash
    assert turned.describe() == copied.describe()
    check_rows(turned)


def test_a_transpose_shares_its_arrays_and_computes_nothing_before_they_are_needed() -> None:
    graph = gp.Graph.from_edgelist(["a", "b"], ["b", "c"], [1.0, 2.0], directed=True)
    turned = graph.transpose()
    assert repr(turned) == repr(graph)
    assert (len(turned), turned.num_stored_edges, turned.is_directed) == (3, 2, True)
    assert "csc" not in graph._facts
    assert turned.csc is graph.to_csr()
    assert turned.to_csr() is graph.csc
    assert turned.ids is not None
    assert turned.ids is graph.ids
    assert turned.indices is graph.csc.indices
    assert graph.transpose().to_csr() is turned.to_csr()


@pytest.mark.parametrize("suffix", ["pregel", "csv", "parquet"])
def test_transposes_can_be_saved_and_pickled(suffix: str, tmp_path: Path) -> None:
    graph = gp.Graph.from_edgelist([0, 0, 1], [1, 2, 1], [1.0, 2.0, 3.0], directed=True)
    graph.transpose().save(tmp_path / f"graph.{suffix}")
    read = gp.read_graph(tmp_path / f"graph.{suffix}", directed=True)
    assert edges_of(read) == [(1, 0, 1.0), (1, 1, 3.0), (2, 0, 2.0)]
    assert edges_of(pickle.loads(pickle.dumps(graph.transpose()))) == edges_of(read)


@given(**OPTIONS)
def test_undirected_graphs_agree_with_networkx(graph: Weighted, directed: bool, weighted: bool, named: bool) -> None:
    built = build(graph, directed, weighted, named)
    found, kept = built.to_undirected(combine="min"), built.to_undirected()
    if not directed:
        assert kept is built
        assert found is (built if not built.has_duplicates else found)
        return
    smallest: dict[frozenset[Any], float] = {}
    for u, v, *rest in edges_of(built):
        edge = frozenset((u, v))
        smallest[edge] = min(smallest.get(edge, np.inf), rest[0] if rest else 1)
    oracle = networkx.Graph(built.to_networkx().to_undirected())
    assert {frozenset(edge[:2]): edge[2] if weighted else 1 for edge in edges_of(found)} == smallest
    assert set(smallest) == set(map(frozenset, oracle.edges))
    assert len(edges_of(found)) == len(smallest)
    assert sorted(map(sorted, (edge[:2] for edge in edges_of(kept)))) == sorted(
        map(sorted, (edge[:2] for edge in edges_of(built)))
    )
    for one in (found, kept):
        assert (one.is_directed, len(one), one.weights is None) == (False, len(built), not weighted)
        assert (one.ids is None) == (built.ids is None)
        check_rows(one)


@pytest.mark.parametrize("vertices_at_once", [1, 5, 1 << 14])
def test_simple_graphs_agree_with_networkx(vertices_at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csr, "_VERTEX_CHUNK", vertices_at_once)

    @given(**OPTIONS)
    def check(graph: Weighted, directed: bool, weighted: bool, named: bool) -> None:
        built = build(graph, directed, weighted, named)
        found = built.simplify(combine="min")
        smallest: dict[tuple[Any, Any], float] = {}
        for u, v, *rest in edges_of(built):
            if u != v:
                smallest[u, v] = min(smallest.get((u, v), np.inf), rest[0] if rest else 1)
        oracle = (networkx.DiGraph if directed else networkx.Graph)(built.to_networkx())
        oracle.remove_edges_from(list(networkx.selfloop_edges(oracle)))
        assert {edge[:2]: edge[2] if weighted else 1 for edge in edges_of(found)} == smallest
        assert len(edges_of(found)) == len(smallest) == oracle.number_of_edges()
        assert found.is_directed == directed
        assert (found.ids is None) == (built.ids is None)
        assert found.simplify() is found is found.simplify(combine="min")
        check_rows(found)

    check()


@given(**OPTIONS)
def test_largest_components_agree_with_networkx(graph: Weighted, directed: bool, weighted: bool, named: bool) -> None:
    built = build(graph, directed, weighted, named)
    number = {v: position for position, v in enumerate(built.to_ids(np.arange(len(built))).tolist())}
    components = networkx.connected_components(networkx.Graph(built.to_networkx()))
    members = max(components, key=lambda part: (len(part), -min(map(number.__getitem__, part))))
    found = built.largest_component(device="cpu")
    assert set(found.to_ids(np.arange(len(found))).tolist()) == members
    assert edges_of(found) == edges_of(built.subgraph(list(members)))
    assert edges_of(gp.connected_components(built, device="cpu").largest()) == edges_of(found)


def test_the_largest_component_of_an_empty_graph_is_the_graph() -> None:
    empty = gp.Graph.from_edgelist([], [])
    assert empty.largest_component() is empty


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda graph: graph.to_undirected(combine="last"), ArgumentError, "combine must be 'sum', 'min', 'max'"),
        (lambda graph: graph.largest_component(threads=0), ArgumentError, "threads must be from 1"),
    ],
)
def test_invalid_arguments_are_rejected(call: Callable[[gp.Graph], object], error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call(gp.grid(2))


def test_a_public_graph_agrees_with_networkx(data: Path) -> None:
    graph = gp.read_graph(data / "snap/wiki-Vote.txt", directed=True)
    oracle = networkx.read_edgelist(data / "snap/wiki-Vote.txt", create_using=networkx.DiGraph, nodetype=int)
    largest = graph.largest_component()
    members = max(networkx.weakly_connected_components(oracle), key=len)
    assert len(largest) == len(members) == 7066
    assert largest.num_stored_edges == oracle.subgraph(members).number_of_edges() == 103663
    assert graph.to_undirected(combine="first").num_stored_edges == 2 * oracle.to_undirected().number_of_edges()
    assert graph.transpose().neighbors(4037).tolist() == sorted(oracle.predecessors(4037))
