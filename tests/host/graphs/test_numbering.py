"""Tests of vertex ids: which are vertices, in which order, and which are equal."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentTypeError, GraphError
from gpu_pregel.host.devices import memory
from gpu_pregel.host.graphs import numbering
from tests.packages import needs

pandas = needs("pandas", "test")

BIG = 1 << 60


@pytest.mark.parametrize(
    ("src", "dst", "options", "ids"),
    [
        ([0, 1], [1, 2], {}, None),
        ([3, 6], [6, 9], {}, [3, 6, 9]),
        ([3, 6], [6, 15], {}, [3, 6, 15]),
        ([0, 11], [1, 2], {}, [0, 1, 2, 11]),
        ([1], [2], {}, [1, 2]),
        ([1], [2], {"vertices": [0]}, None),
        ([1], [2], {"vertices": [9, 0, 2]}, [0, 1, 2, 9]),
        ([1], [2], {"vertices": [-9]}, [-9, 1, 2]),
        ([], [], {"vertices": [5, 3]}, [3, 5]),
        ([], [], {"vertices": range(4)}, None),
        ([], [], {"vertices": []}, None),
        ([7], [7], {}, [7]),
        ([1 << 50, 7], [7, 3], {}, [3, 7, 1 << 50]),
        ([-5, 7], [7, 3], {}, [-5, 3, 7]),
        ([-(1 << 63)], [(1 << 63) - 1], {}, [-(1 << 63), (1 << 63) - 1]),
        (np.array([2**64 - 1, 5], np.uint64), np.array([5, 5], np.uint64), {}, [5, 2**64 - 1]),
        (np.array([BIG + 1, 5], np.uint64), np.array([BIG, 5]), {}, [5, BIG, BIG + 1]),
        (np.array([BIG + 1, 5]), np.array([2**64 - 1, 5], np.uint64), {}, [5, BIG + 1, 2**64 - 1]),
        (np.array([-1, 5]), np.array([2**64 - 1, 5], np.uint64), {}, [-1, 5, 2**64 - 1]),
        (np.array([-1, 5], np.int8), np.array([300, 5], np.uint16), {}, [-1, 5, 300]),
        ([2**70, 5], [5, 2**70], {}, [5, 2**70]),
        ([np.int32(4), 4], [np.uint64(BIG + 1), 4], {}, [4, BIG + 1]),
        (["b", "a"], ["c", "b"], {}, ["b", "c", "a"]),
        (["b", "a"], ["c", "b"], {"vertices": ["z", "a"]}, ["z", "a", "b", "c"]),
        (np.array(["b", "a"]), ["c", "b"], {}, ["b", "c", "a"]),
        ([("x", 1), ("y", 2)], [("y", 2), ("x", 1)], {}, [("x", 1), ("y", 2)]),
        ([b"k"], [b"l"], {}, [b"k", b"l"]),
        ([1, "1"], ["x", "y"], {}, [1, "x", "1", "y"]),
        ([1, 2], ["1", "2"], {}, [1, "1", 2, "2"]),
        ([1, 1.0], [True, "1"], {}, [1, True, 1.0, "1"]),
        ([1.0, 2.0], np.array([1, 2]), {}, [1.0, 1, 2.0, 2]),
        (np.array([True]), np.array([1]), {}, [True, 1]),
        ([(1, 2)], [(1.0, True)], {}, [(1, 2), (1.0, True)]),
        ([frozenset([1])], [frozenset([1.0])], {}, [frozenset([1]), frozenset([1.0])]),
        ([b"x"], ["x"], {}, [b"x", "x"]),
        (["b\0"], ["b"], {}, ["b\0", "b"]),
        ([b"b\0"], [b"b"], {}, [b"b\0", b"b"]),
        (["\ud800"], ["b"], {}, ["\ud800", "b"]),
        (["a", np.str_("a")], ["b", np.str_("b")], {}, ["a", "b"]),
        ([0.5, -0.0], [0.0, 1.5], {}, [0.5, 0.0, 1.5]),
        ([Decimal("1.5")], [datetime.date(2020, 1, 1)], {}, [Decimal("1.5"), datetime.date(2020, 1, 1)]),
        ([(None, 1)], [()], {}, [(None, 1), ()]),
    ],
)
def test_numbering_rules(src: Any, dst: Any, options: dict[str, Any], ids: list[Any] | None) -> None:
    graph = gp.Graph.from_edgelist(src, dst, directed=True, **options)
    assert (graph.ids is None) == (ids is None)
    found = graph.to_ids(np.arange(graph.num_vertices)).tolist()
    assert found == (list(range(graph.num_vertices)) if ids is None else ids)
    assert list(map(type, found)) == list(map(type, found if ids is None else ids))
    pairs = [(found[u], found[v]) for u, v in edges_of(graph)]
    assert sorted(map(repr, pairs)) == sorted(repr((plain(u), plain(v))) for u, v in zip(src, dst, strict=True))


def plain(value: Any) -> Any:
    """Return an id as the graph reports it; of two equal floats it keeps the first."""
    value = value.item() if isinstance(value, np.generic) else value
    return 0.0 if type(value) is float and value == 0 else value


def edges_of(graph: gp.Graph) -> list[tuple[int, int]]:
    src, dst, _ = graph.to_edgelist()
    return list(zip(src.tolist(), dst.tolist(), strict=True))


def test_the_components_of_the_design_example() -> None:
    graph = gp.Graph.from_edgelist([1, 1, 3], [2, 4, 5])
    assert gp.connected_components(graph).to_dict() == {1: 1, 2: 1, 3: 3, 4: 1, 5: 3}


def test_wiki_vote_has_the_vertices_and_components_that_snap_publishes(data: Path) -> None:
    votes = gp.read_graph(data / "snap" / "wiki-Vote.txt", directed=True)
    labels = gp.connected_components(votes).to_numpy()
    assert (votes.num_vertices, votes.num_stored_edges, len(np.unique(labels))) == (7115, 103_689, 24)


def test_times_keep_their_unit() -> None:
    times = np.array(["2020-01-01T00:00:00.000000001", "2020-01-01"], "M8[ns]")
    graph = gp.Graph.from_edgelist(times, times[::-1])
    assert graph.ids is not None
    assert (graph.ids[0], graph.ids[1]) == tuple(times)


@pytest.mark.parametrize(
    "column",
    [
        lambda names: pandas.Series(names),
        lambda names: pandas.Series(names, dtype="category"),
        lambda names: pandas.Index(names),
        lambda names: pyarrow.array(names),
        lambda names: pyarrow.chunked_array([names[:1], names[1:]]),
        lambda names: pyarrow.array(names, pyarrow.large_string()),
        lambda names: np.array(names, np.dtypes.StringDType()),
        lambda names: np.array(names, object),
        tuple,
    ],
)
def test_columns_of_other_libraries(column: Any) -> None:
    graph = gp.Graph.from_edgelist(column(["b", "a\0", "b"]), column(["a", "a", "c"]))
    assert graph.ids is not None
    assert graph.ids.tolist() == ["b", "a", "a\0", "c"]
    assert edges_of(graph) == [(0, 1), (0, 3), (1, 2)]
    mixed = gp.Graph.from_edgelist(column(["b", "a"]), [1, 2])
    assert mixed.ids is not None
    assert mixed.ids.tolist() == ["b", 1, "a", 2]


IDS = st.one_of(
    st.integers(-3, 3),
    st.integers(),
    st.floats(allow_nan=False),
    st.booleans(),
    st.text(max_size=2),
    st.binary(max_size=1),
    st.tuples(st.integers(0, 1), st.booleans()),
    st.dates(),
)


@given(st.lists(st.tuples(IDS, IDS), max_size=20), st.lists(IDS, max_size=5))
def test_any_ids_are_kept_apart_by_type_and_value(edges: list[tuple[Any, Any]], vertices: list[Any]) -> None:
    def key(value: Any) -> Any:
        return (tuple, tuple(map(key, value))) if isinstance(value, tuple) else (type(value), value)

    graph = gp.Graph.from_edgelist([u for u, _ in edges], [v for _, v in edges], vertices=vertices, directed=True)
    found = graph.to_ids(np.arange(graph.num_vertices)).tolist()
    wanted = dict.fromkeys(map(key, [*vertices, *(end for edge in edges for end in edge)]))
    if all(kind is int for kind, _ in wanted):
        assert found == sorted(value for _, value in wanted)
    else:
        assert list(map(key, found)) == list(wanted)
    number = {key(value): v for v, value in enumerate(found)}
    assert edges_of(graph) == sorted((number[key(u)], number[key(v)]) for u, v in edges)


@pytest.mark.parametrize("dense", [0, 1 << 16], ids=["by hash", "by range"])
@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=40),
    st.none() | st.lists(st.integers(0, 90), max_size=4),
    st.sampled_from([np.int32, np.uint32, np.int64, np.uint64]),
    st.sampled_from([1, 3, 1 << 55]),
    st.booleans(),
    st.sampled_from(["keep", "drop"]),
)
def test_the_vertices_are_the_ids_that_occur(
    dense: int,
    edges: list[tuple[int, int]],
    vertices: list[int] | None,
    dtype: Any,
    step: int,
    directed: bool,
    loops: str,
) -> None:
    step = step if np.dtype(dtype).itemsize == 8 else min(step, 3)
    src, dst = (np.array([edge[end] * step for edge in edges], dtype) for end in (0, 1))
    listed = None if vertices is None else np.array(vertices, dtype) * dtype(step)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numbering, "_DENSE", dense)
        patch.setattr(numbering, "_CHUNK", 8)
        graph = gp.Graph.from_edgelist(src, dst, vertices=listed, directed=directed, self_loops=loops)
    wanted = networkx.MultiDiGraph() if directed else networkx.MultiGraph()
    wanted.add_nodes_from([] if listed is None else listed.tolist())
    wanted.add_edges_from(zip(src.tolist(), dst.tolist(), strict=True))
    if loops == "drop":
        wanted.remove_edges_from(list(networkx.selfloop_edges(wanted, keys=True)))
    nodes = sorted(wanted)
    assert graph.to_ids(np.arange(graph.num_vertices)).tolist() == nodes
    assert (graph.ids is None) == (nodes == list(range(len(nodes))))
    number = {node: v for v, node in enumerate(nodes)}
    pairs = [(number[u], number[v]) for u, v, _ in wanted.edges]
    assert edges_of(graph) == sorted(pairs if directed else [(min(edge), max(edge)) for edge in pairs])


def test_a_full_hash_table_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbering, "_FIRST_TABLE", 1)
    monkeypatch.setattr(numbering, "_INSERT_CHUNK", 16)
    random = np.random.default_rng(1)
    src, dst = (random.integers(-BIG, BIG, 20_000) for _ in range(2))
    graph = gp.Graph.from_edgelist(src, dst, directed=True, threads=3)
    ids, numbers = np.unique(np.concatenate([src, dst]), return_inverse=True)
    assert graph.to_ids(np.arange(graph.num_vertices)).tolist() == ids.tolist()
    assert edges_of(graph) == sorted(zip(numbers[:20_000].tolist(), numbers[20_000:].tolist(), strict=True))


def test_memory_does_not_depend_on_the_largest_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 16 << 20)
    assert gp.Graph.from_edgelist([5], [1 << 31]).num_vertices == 2


def test_numbers_as_ids() -> None:
    graph = gp.Graph.from_edgelist([0, 99], [1, 2], num_vertices=101)
    assert (graph.num_vertices, graph.ids) == (101, None)
    graph = gp.Graph.from_edgelist([0, 16], [1, 2], renumber=False)
    assert (graph.num_vertices, graph.ids) == (17, None)
    graph = gp.Graph.from_edgelist([0], [1], vertices=[5], renumber=False)
    assert (graph.num_vertices, graph.ids) == (6, None)


@pytest.mark.parametrize(
    ("src", "dst", "options", "error", "message"),
    [
        ([0, 1], [2, 7], {"num_vertices": 5}, GraphError, r"dst\[1\] is 7, but num_vertices is 5, so ids range from 0"),
        ([0, -1], [2, 2], {"num_vertices": 5}, GraphError, r"src\[1\] is -1, but num_vertices is 5"),
        ([], [], {"num_vertices": 5, "vertices": [2, 5]}, GraphError, r"vertices\[1\] is 5, but num_vertices is 5"),
        ([0], [0], {"num_vertices": 0}, GraphError, r"src\[0\] is 0, but num_vertices is 0, so ids do not exist"),
        (["a"], ["b"], {"num_vertices": 5}, GraphError, r"src\[0\] is 'a', but num_vertices is 5, .*: omit num_vert"),
        ([0, 1], [1, 2.0], {"num_vertices": 5}, GraphError, r"dst\[1\] is 2.0, but num_vertices is 5"),
        ([0, 1], [1, None], {}, GraphError, r"dst\[1\] is missing \(None\): drop the row, or fill in an id"),
        ([0.5, np.nan], [1, 2], {}, GraphError, r"src\[1\] is missing \(nan\)"),
        (np.array([0.5, np.nan]), [1, 2], {}, GraphError, r"src\[1\] is missing \(nan\)"),
        (["a", pandas.NA], ["b", "c"], {}, GraphError, r"src\[1\] is missing \(<NA>\)"),
        (["a", pandas.NaT], ["b", "c"], {}, GraphError, r"src\[1\] is missing \(NaT\)"),
        (np.array(["2020", "NaT"], "M8[s]"), ["b", "c"], {}, GraphError, r"src\[1\] is missing"),
        (pyarrow.array(["a", None]), ["b", "c"], {}, GraphError, r"src\[1\] is missing"),
        ([1], [2], {"vertices": ["a", None]}, GraphError, r"vertices\[1\] is missing"),
        ([(1, np.nan)], [1], {}, GraphError, r"src\[0\] is missing"),
        (np.ma.array([1, 2], mask=[False, True]), [1, 2], {}, GraphError, r"src\[1\] is masked"),
        ([{"a": 1}], ["b"], {}, ArgumentTypeError, r"src\[0\] is of type dict, which is not hashable"),
        ([1], ["b"], {"vertices": "ab"}, ArgumentTypeError, "vertices must be a list or an array, not str"),
    ],
)
def test_bad_ids_are_refused(src: Any, dst: Any, options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        gp.Graph.from_edgelist(src, dst, **options)


def test_ids_of_a_csr_follow_the_same_rules() -> None:
    def ids(values: Any) -> Any:
        return gp.Graph.from_csr([0] * (len(values) + 1), [], ids=values).ids

    assert ids([1, "1", 1.0, True]).tolist() == [1, "1", 1.0, True]
    assert ids(["b", "b\0"]).tolist() == ["b", "b\0"]
    assert ids(np.array([5, 3], ">i4")).tolist() == [5, 3]
    assert ids(pyarrow.array(["x", "y"])).tolist() == ["x", "y"]
    assert ids([0, 1, 2]) is None
    with pytest.raises(GraphError, match=r"ids\[1\] is missing \(nan\)"):
        ids([1, np.nan])
    with pytest.raises(GraphError, match=r"ids contains \(1, 2\) more than once"):
        ids([(1, 2), (1, 2)])
