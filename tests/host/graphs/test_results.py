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
