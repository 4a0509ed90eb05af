"""One value per vertex as a Series of pandas, as a result, and as a list of ids, in every function that takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, ArgumentTypeError
from tests.packages import needs

pandas = needs("pandas", "test")

GRAPH = gp.Graph.from_edgelist([30, 7, 12, 3], [7, 12, 3, 30])  # numbered 3, 7, 12, 30
ADD = gp.VertexProgram(
    value=np.int64,
    init=lambda ctx: 0,
    message=lambda value, ctx: value,
    combine="sum",
    apply=lambda value, incoming, ctx: value + incoming,
)
CALLS: dict[str, tuple[str, Callable[[Any], Any], bool]] = {
    "personalization": ("personalization", lambda given: gp.pagerank(GRAPH, personalization=given), True),
    "initial of pagerank": ("initial", lambda given: gp.pagerank(GRAPH, initial=given, max_iterations=2), True),
    "initial of hits": ("initial", lambda given: gp.hits(GRAPH, initial=given, max_iterations=2), True),
    "initial of eigenvector": (
        "initial",
        lambda given: gp.eigenvector_centrality(GRAPH, initial=given, max_iterations=2),
        True,
    ),
    "beta": ("beta", lambda given: gp.katz_centrality(GRAPH, beta=given), True),
    "labels": ("labels", lambda given: gp.modularity(GRAPH, given), False),
    "initial of run": (
        "initial",
        lambda given: gp.run(GRAPH, ADD, initial=given, device="python", max_supersteps=2, on_limit="return"),
        False,
    ),
}
EACH = pytest.mark.parametrize(("name", "call", "has_default"), CALLS.values(), ids=CALLS)


@EACH
def test_a_series_is_aligned_by_its_index(name: str, call: Any, has_default: bool) -> None:
    by_number = np.array([5, 1, 2, 4])
    series = pandas.Series([4, 2, 1, 5], index=[30, 12, 7, 3])
    expected = np.asarray(call(by_number))
    for one in (series, series.astype("Int64"), series.sort_index()):
        assert np.array_equal(np.asarray(call(one)), expected)
    if has_default:
        left_out = call(series.drop(7))
        assert np.array_equal(np.asarray(left_out), np.asarray(call([5, 0, 2, 4])))
    else:
        with pytest.raises(ArgumentError, match=f"{name} has no value for the vertices 7, 30: give one to each"):
            call(series.drop([7, 30]))


@EACH
def test_wrong_series_are_refused(name: str, call: Any, has_default: bool) -> None:
    assert isinstance(has_default, bool)
    with pytest.raises(
        ArgumentError, match=rf"{name} must have ids as its index, but no vertex has the id 0.*to_numpy"
    ) as caught:
        call(pandas.Series([4, 2, 1, 5]))
    assert str(caught.value).endswith("; pass to_numpy() for values by vertex number")
    assert str(caught.value).count(":") == 1
    with pytest.raises(ArgumentError, match=f"{name} has the vertex 7 more than once"):
        call(pandas.Series([4, 2, 1, 5, 1], index=[30, 12, 7, 3, 7]))
    with pytest.raises(ArgumentError, match=f"{name} is missing for the vertex 12: fill or drop it"):
        call(pandas.Series([4, None, 1, 5], index=[30, 12, 7, 3], dtype="Int64"))


@EACH
def test_a_list_of_ids_is_refused(name: str, call: Any, has_default: bool) -> None:
    remedy = r"; these are ids: pass \{3: 1, 7: 1\}" if has_default else "mapping from ids|ids as its index"
    with pytest.raises(ArgumentError, match=f"{name} .*{remedy}"):
        call([3, 7])


@EACH
def test_all_ids_are_refused_where_they_cannot_be_values(name: str, call: Any, has_default: bool) -> None:
    for ids in ([3, 7, 12, 30], np.array([30, 12, 7, 3])):
        if has_default:
            with pytest.raises(ArgumentError, match=rf"{name} has the ids of the vert.*pass \{{\d+: 1, .*or floats"):
                call(ids)
            call(np.asarray(ids, float))
        else:  # labels and first values may be ids
            call(ids)
    if has_default:
        assert np.array_equal(np.asarray(call({3: 3, 7: 7, 12: 12, 30: 30})), np.asarray(call([3.0, 7, 12, 30])))


def test_numbers_of_vertices_without_ids_are_values() -> None:
    graph = gp.Graph.from_edgelist([0, 1], [1, 2])
    found = gp.pagerank(graph, personalization=[0, 1, 2]).personalization
    assert found is not None
    assert found.tolist() == [0, 1 / 3, 2 / 3]


def test_names_as_ids() -> None:
    graph = gp.Graph.from_edgelist(["ann", "bob", "cid"], ["bob", "cid", "ann"])
    with pytest.raises(ArgumentTypeError, match=r"a real number for each vertex.*these are ids: pass \{'bob': 1\}"):
        gp.pagerank(graph, personalization=["bob"])
    with pytest.raises(ArgumentTypeError, match=r"initial has dtype .*: pass one number each, by vertex number, or"):
        gp.run(graph, ADD, initial=["ann", "bob", "cid"], device="python", max_supersteps=2)
    with pytest.raises(ArgumentTypeError, match=r"labels must be integers, .*by vertex number or a mapping from ids"):
        gp.modularity(graph, ["ann", "bob", "cid"])
    series = pandas.Series({"cid": 1, "ann": 3})
    found = gp.pagerank(graph, personalization=series).personalization
    assert found is not None
    assert found.tolist() == [0.75, 0, 0.25]


def test_a_result_of_another_graph_is_aligned_by_its_ids() -> None:
    ends = ["ann", "bob", "cid", "dan"], ["bob", "cid", "dan", "eve"]
    graph = gp.Graph.from_edgelist(*ends)
    other = gp.Graph.from_edgelist(*ends, vertices=["eve", "dan", "cid"])
    labels = gp.louvain(other, device="cpu")
    assert gp.modularity(graph, labels) == pytest.approx(labels.modularity)
    assert gp.modularity(graph, labels) == gp.modularity(graph, labels.to_dict())
    with pytest.raises(ArgumentError, match="labels has no value for the vertices 'eve'"):
        gp.modularity(graph, gp.louvain(gp.Graph.from_edgelist(["ann", "cid"], ["bob", "dan"]), device="cpu"))


def test_a_frontier_of_flags_is_aligned_too() -> None:
    flags = pandas.Series([True, False], index=[30, 3])
    ends = {"device": "python", "max_supersteps": 2, "on_limit": "return"}
    one = gp.run(GRAPH, ADD, initial=[1, 2, 3, 4], frontier=flags, **ends)  # type: ignore[arg-type]
    other = gp.run(GRAPH, ADD, initial=[1, 2, 3, 4], frontier=[3], **ends)  # type: ignore[arg-type]
    assert np.array_equal(np.asarray(one.values), np.asarray(other.values))
    assert gp.Frontier(GRAPH, flags, device="cpu").vertices().tolist() == [3]


def test_masked_values_are_refused() -> None:
    graph = gp.Graph.from_edgelist(["ann", "bob"], ["bob", "ann"], directed=True)
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    with pytest.raises(ArgumentError, match="personalization is masked for the vertex 'bob': pass a value"):
        gp.pagerank(graph, personalization=masked)
    with pytest.raises(ArgumentError, match="labels is masked for the vertex 'bob'"):
        gp.modularity(graph.to_undirected(), masked)
    whole = np.ma.array([1.0, 2.0], mask=[False, False])
    assert gp.pagerank(graph, personalization=whole).scores.sum() == pytest.approx(1)
