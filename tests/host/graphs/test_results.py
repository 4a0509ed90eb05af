"""Results as values by id, as arrays and as tables."""

from __future__ import annotations

from typing import Any

import networkx
import numpy as np
import pyarrow
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import UnknownVertexError
from tests.devices import CUDA_DEVICES
from tests.packages import needs
from tests.programs import HOPS, PAIRS


@pytest.fixture
def components() -> gp.Components:
    graph = gp.Graph.from_edgelist(["a", "b", "x"], ["b", "c", "y"])
    return gp.connected_components(graph, device="cpu")


def test_a_result_has_the_value_of_each_id(components: gp.Components) -> None:
    pandas = needs("pandas", "test")
    assert [components[name] for name in "abcxy"] == ["a", "a", "a", "x", "x"]
    assert components[["y", "b", "y"]].tolist() == ["x", "a", "x"]
    for column in (
        np.array(["c", "y"]),
        pandas.Series(["c", "y"]),
        pandas.Index(["c", "y"]),
        pyarrow.array(["c", "y"]),
    ):
        assert components[column].tolist() == ["a", "x"]
    with pytest.raises(UnknownVertexError, match="no vertex has the id 'z'"):
        components["z"]
    with pytest.raises(KeyError, match="no vertex has the id 0"):
        components[0]
    with pytest.raises(UnknownVertexError, match="no vertex has the id 'z'"):
        components[["a", "z"]]


def test_values_are_those_of_python() -> None:
    graph = gp.Graph.from_edgelist([3, 6], [6, 9])
    found = gp.connected_components(graph)[9]
    assert (found, type(found)) == (3, int)
    hops = gp.run(gp.grid(2, holes=0), HOPS, device="cpu")
    assert (hops[3], type(hops[3])) == (2, int)
    pairs = gp.run(gp.grid(2, holes=0), PAIRS, device="cpu", max_supersteps=1)
    assert pairs[3] == (3, 0.5)
    assert pairs[[3, 1]].tolist() == [(3, 0.5), (1, 0.5)]


def test_tuples_are_ids() -> None:
    graph = gp.Graph.from_networkx(networkx.grid_graph([2, 3]))
    assert gp.connected_components(graph)[1, 1] == (0, 0)


def test_results_are_arrays_of_all_values(components: gp.Components) -> None:
    assert len(components) == 5
    array = np.asarray(components)
    assert array is components.labels
    assert np.array(components).tolist() == [0, 0, 0, 3, 3]
    assert np.array(components) is not components.labels
    assert np.asarray(components, np.float32).dtype == np.float32
    assert np.bincount(components).tolist() == [3, 0, 0, 2]
    with pytest.raises(ValueError, match="copy"):
        np.array(components, np.float32, copy=False)


def test_a_result_iterates_over_the_ids_that_it_contains(components: gp.Components) -> None:
    assert list(components) == list(components.to_dict()) == ["a", "b", "c", "x", "y"]
    assert {v: components[v] for v in components} == components.to_dict()
    assert list(gp.connected_components(gp.grid(2))) == [0, 1, 2, 3]
    assert np.asarray(components).tolist() == [0, 0, 0, 3, 3]
    assert "y" in components
    assert 0 not in components


def test_data_frames_take_results_as_columns(components: gp.Components) -> None:
    pandas = needs("pandas", "test")
    frame = pandas.DataFrame({"vertex": components.graph.ids, "number": components})
    assert frame.assign(again=components)["again"].tolist() == frame["number"].tolist() == [0, 0, 0, 3, 3]
    assert pandas.Series(components).tolist() == [0, 0, 0, 3, 3]


def test_results_share_memory_by_dlpack(components: gp.Components) -> None:
    shared = np.from_dlpack(components)
    assert shared.tolist() == [0, 0, 0, 3, 3]
    assert np.shares_memory(shared, components.labels)
    hops = gp.run(gp.grid(2, holes=0), HOPS, device="cpu")
    assert np.from_dlpack(hops).tolist() == [0, 1, 1, 2]


@CUDA_DEVICES
def test_results_on_other_devices_are_copied_to_the_host(device: str) -> None:
    components = gp.connected_components(gp.Graph.from_edgelist(["a", "x"], ["b", "y"]), device=device)
    assert np.asarray(components).tolist() == [0, 0, 2, 2]
    assert (components["b"], components["y"]) == ("a", "x")
    hops = gp.run(gp.grid(2, holes=0), HOPS, device=device)
    assert np.asarray(hops).tolist() == [0, 1, 1, 2]
    assert hops[3] == 2


def test_results_and_graphs_are_arrow_tables(components: gp.Components) -> None:
    table = pyarrow.table(components)
    assert table.to_pydict() == {"vertex": list("abcxy"), "component": ["a", "a", "a", "x", "x"]}
    edges = pyarrow.table(components.graph)
    assert edges.to_pydict() == {"source": ["a", "b", "x"], "target": ["b", "c", "y"]}
    assert pyarrow.RecordBatchReader.from_stream(components).read_all() == table


def test_results_join_to_a_data_frame(components: gp.Components) -> None:
    people: Any = needs("pandas", "test").DataFrame({"name": ["y", "a"]})
    people["component"] = components[people["name"].to_numpy()]
    assert people["component"].tolist() == ["x", "a"]


@pytest.mark.parametrize(
    ("ids", "dtype"),
    [([0, 1, 2, 3], "Int64"), ([5, 6, 7, 8], "Int64"), ([1, 2, 3, 2**63], "UInt64"), (["a", "b", "c", "d"], "str")],
)
def test_predecessors_are_missing_where_there_is_none(ids: list[Any], dtype: str) -> None:
    pandas = needs("pandas", "test")
    if dtype == "str":
        dtype = str(pandas.Series(["a"]).dtype)
    graph = gp.Graph.from_edgelist(ids[:2], ids[1:3], vertices=ids, directed=True)
    for column, found in (("parent", gp.bfs(graph, ids[0])), ("predecessor", gp.sssp(graph, ids[0]))):
        assert found.to_arrow()[column].to_pylist() == [ids[0], ids[0], ids[1], None]
        frame = found.to_pandas()
        assert str(frame[column].dtype) == dtype
        assert frame[column].isna().tolist() == [False, False, False, True]


def test_integer_ids_are_int64_in_tables() -> None:
    needs("pandas", "test")
    for ids in ([0, 1, 2], [1, 2, 3], np.array([4, 5, 6], np.int32)):
        graph = gp.Graph.from_csr([0, 1, 2, 3], [1, 2, 0], directed=True, ids=ids)
        frame = graph.to_pandas()
        assert sorted((frame["source"] - frame["target"]).tolist()) == [-1, -1, 2]
        labels = gp.connected_components(graph).to_arrow()
        assert {*frame.dtypes.map(str), *map(str, labels.schema.types), *map(str, graph.to_arrow().schema.types)} == {
            "int64"
        }


def test_empty_tables_keep_the_dtype_of_objects() -> None:
    needs("pandas", "test")
    assert gp.Graph.from_edgelist([], [], vertices=["a"]).to_pandas()["source"].dtype == object
    assert gp.Graph.from_edgelist([], []).to_pandas()["source"].dtype == np.int64
