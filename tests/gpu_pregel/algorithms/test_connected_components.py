"""Tests of the results of connected components: ids, conversions, statistics, public graphs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.algorithms.checkers.connected_components import check_connected_components
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, DeviceError
from gpu_pregel.host.devices import get_device
from tests.devices import CUDA_DEVICES


def test_conversions_use_the_ids_of_the_user() -> None:
    graph = gp.Graph.from_edgelist(["a", "b", "x"], ["b", "c", "y"])
    components = gp.connected_components(graph, device="cpu")
    assert components.to_numpy() is components.labels
    assert components.labels.tolist() == [0, 0, 0, 3, 3]
    assert components.to_dict() == {"a": "a", "b": "a", "c": "a", "x": "x", "y": "x"}
    assert components.to_pandas().to_dict("list") == {
        "vertex": ["a", "b", "c", "x", "y"],
        "component": ["a", "a", "a", "x", "x"],
    }
    assert repr(components) == "<Components: 2 of 5 vertices>"


def test_stats_and_trace_contain_device_threads_and_seconds() -> None:
    components = gp.connected_components(gp.kronecker(8), threads=2)
    assert components.stats["device"] == "cpu"
    assert components.stats["threads"] == 2
    assert components.stats["seconds"] == pytest.approx(sum(row["seconds"] for row in components.trace))
    assert [row["phase"] for row in components.trace][:2] == ["initialise", "compress first"]


def test_a_result_is_frozen() -> None:
    components = gp.connected_components(gp.grid(2))
    with pytest.raises(AttributeError):
        components.labels = np.zeros(4)  # type: ignore[misc]


@pytest.mark.parametrize("device", ["gpu", "cuda:x", "emulated:-1", "cpu:0"])
def test_an_unknown_device_is_rejected(device: str) -> None:
    with pytest.raises(DeviceError, match=f"unknown device '{device}': use one of 'auto', 'cpu'"):
        gp.connected_components(gp.grid(2), device=device)


@CUDA_DEVICES
def test_labels_stay_on_the_device_until_they_are_requested(device: str) -> None:
    components = gp.connected_components(gp.grid(3, holes=0), device=device)
    assert not isinstance(components.labels, np.ndarray)
    found = components.to_numpy()
    assert isinstance(found, np.ndarray)
    assert found is components.to_numpy()
    assert (found.tolist(), found.dtype) == ([0] * 9, np.uint32)
    assert components.to_dict() == dict.fromkeys(range(9), 0)
    assert repr(components) == "<Components: 1 of 9 vertices>"
    assert (components.stats["device"], components.stats["threads"]) == (get_device(device).name, None)


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(ArgumentTypeError, match="device must be a name"):
        gp.connected_components(gp.grid(2), device=0)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="threads must be from 1 to 4,096, not 0"):
        gp.connected_components(gp.grid(2), threads=0)
    with pytest.raises(ArgumentTypeError, match=r"a SciPy sparse matrix, not list: use Graph\.from_edgelist"):
        gp.connected_components([1])  # type: ignore[arg-type]


def test_progress_is_hidden_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    graph = gp.grid(100)
    gp.connected_components(graph)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("device", ["cpu", "python"])
def test_propagation_gives_the_same_labels(device: str, directed: bool) -> None:
    edges = gp.kronecker(6, 2).to_pandas()
    graph = gp.Graph.from_edgelist(edges["target"], edges["source"], num_vertices=64, directed=directed)
    found = gp.connected_components(graph, method="propagation", device=device)
    assert found.graph is graph
    assert gp.connected_components(graph, device=device).to_numpy().tolist() == found.to_numpy().tolist()
    assert found.to_numpy().tolist() == gp.connected_components(graph, device="cpu").labels.tolist()
    assert (found.labels.dtype, found.stats["device"]) == (np.uint32, device)


def test_an_unknown_method_is_rejected() -> None:
    with pytest.raises(ArgumentError, match="method must be 'afforest' or 'propagation', not 'bfs'"):
        gp.connected_components(gp.grid(2), method="bfs")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("file", "vertices", "components", "largest"),
    [
        ("mesh/wing.graph", 62032, 1, 62032),
        ("mtx/karate.mtx", 34, 1, 34),
        ("mtx/jagmesh7.mtx", 1138, 1, 1138),
    ],
)
def test_public_graphs(data: Path, file: str, vertices: int, components: int, largest: int) -> None:
    graph = gp.read_graph(data / file)
    found = gp.connected_components(graph)
    assert (graph.num_vertices, found.count, int(found.sizes().max())) == (vertices, components, largest)
    check_connected_components(graph, found.to_numpy())


@pytest.mark.parametrize("direction", ["dir", "undir"])
def test_ldbc_graphalytics_expected_components(data: Path, direction: str) -> None:
    folder = data / "graphalytics" / "wcc"
    rows = [[int(x) for x in line.split()] for line in (folder / f"{direction}-input").read_text().splitlines()]
    vertices = {row[0] for row in rows}
    edges = [(row[0], v) for row in rows for v in row[1:]]
    lines = (folder / f"{direction}-output").read_text().splitlines()
    expected = {int(vertex): int(label) for vertex, label in map(str.split, lines)}
    assert vertices == set(expected)
    src, dst = zip(*edges, strict=True)
    found = gp.connected_components(gp.Graph.from_edgelist(src, dst, directed=direction == "dir")).to_dict()
    pairs = {(expected[v], found[v]) for v in expected}
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})
