"""Vertex programs on every device, in every direction, with any partitions and threads, compared with oracles."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
import scipy.sparse.csgraph
from hypothesis import strategies as st

import gpu_pregel as gp
from tests.devices import LONG, PROGRAM_DEVICES, RUN_DEVICES, RUN_NAMES, examples, on, threads_of, ways
from tests.graphs import arrays, edge_lists
from tests.programs import DISTANCES, FAR, HOPS, LABELS

MODES = ["push", "pull", "auto"]


@pytest.fixture(scope="module")
def graph() -> gp.Graph:
    """A graph of 512 vertices, enough for seven partitions of at least 64 vertices each."""
    return gp.kronecker(9, 3)


def hops_from(graph: gp.Graph, vertex: int) -> Any:
    """Return the number of hops to each vertex, computed by SciPy."""
    matrix = graph.to_scipy().astype(float)
    hops = scipy.sparse.csgraph.shortest_path(matrix, unweighted=True, indices=vertex)
    return np.where(np.isinf(hops), FAR, hops)


@ways(mode=MODES, partitions=[1, 2, 3, 7], threads=[1, 2])
def test_modes_partitions_and_threads_do_not_change_the_result(
    graph: gp.Graph, device: str, way: dict[str, Any]
) -> None:
    labels = gp.connected_components(graph, device="cpu").to_numpy()
    assert np.array_equal(gp.run(graph, LABELS, device=device, **way).to_numpy(), labels)
    assert np.array_equal(gp.run(graph, HOPS, device=device, **way).to_numpy(), hops_from(graph, 0))


@pytest.mark.parametrize(
    ("partitions", "file"),
    [
        pytest.param(partitions, file, marks=() if partitions == usual else LONG)
        for partitions in (1, 7)
        for file, usual in (
            ("snap/wiki-Vote.txt", 1),
            ("snap/as20graph.txt", 7),
            ("mesh/wing.graph", 7),
            ("mtx/pushpull.mtx", 1),
        )
    ],
)
def test_public_graphs_agree_with_scipy(data: Path, file: str, partitions: int) -> None:
    graph = gp.read_graph(data / file, directed=True if "wiki" in file else None)
    expected = hops_from(graph, 0)
    _, labels = scipy.sparse.csgraph.connected_components(graph.to_scipy(), directed=True, connection="strong")
    for mode, threads in product(MODES, (1, 2)):
        way: dict[str, Any] = {"device": "cpu", "mode": mode, "threads": threads, "partitions": partitions}
        assert np.array_equal(gp.run(graph, HOPS, **way).to_numpy(), expected)
        if not graph.is_directed:
            found = gp.run(graph, LABELS, **way).to_numpy()
            assert len(np.unique(np.stack([found, labels]), axis=1).T) == len(np.unique(found)) == labels.max() + 1


@RUN_DEVICES
def test_random_graphs_agree_with_scipy(device: str) -> None:
    @examples(
        device,
        graph=edge_lists(max_vertices=600, max_edges=900),
        directed=st.booleans(),
        mode=st.sampled_from(MODES),
        partitions=st.sampled_from([1, 2, 3, 7]),
        threads=st.sampled_from([1, 2]),
    )
    def check(graph: Any, directed: bool, mode: Any, partitions: int, threads: int) -> None:
        n, edges = graph
        way = {
            "device": device,
            "mode": mode,
            "partitions": min(partitions, -(-n // 64)),
            **threads_of(device, threads),
        }
        built = gp.Graph.from_edgelist(*arrays(edges), num_vertices=n, directed=directed)
        assert np.array_equal(gp.run(built, HOPS, **way).to_numpy(), hops_from(built, 0))
        if not directed:
            labels = gp.connected_components(built, device="cpu").to_numpy()
            assert np.array_equal(gp.run(built, LABELS, **way).to_numpy(), labels)

    check()


@PROGRAM_DEVICES
def test_shortest_paths_agree_with_networkx(device: str) -> None:
    @examples(device, graph=edge_lists(), directed=st.booleans(), mode=st.sampled_from(MODES))
    def check(graph: Any, directed: bool, mode: Any) -> None:
        n, edges = graph
        weight = np.arange(1, len(edges) + 1) % 7 + 0.5
        built = gp.Graph.from_edgelist(*arrays(edges), weight, num_vertices=n, directed=directed)
        oracle = (networkx.MultiDiGraph if directed else networkx.MultiGraph)()
        oracle.add_nodes_from(range(n))
        oracle.add_weighted_edges_from((u, v, w) for (u, v), w in zip(edges, weight, strict=True))
        lengths = networkx.single_source_dijkstra_path_length(oracle, 0)
        expected = [lengths.get(v, np.inf) for v in range(n)]
        assert gp.run(built, DISTANCES, device=device, mode=mode).to_numpy().tolist() == expected

    check()


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("device", [on(name) for name in RUN_NAMES if name != "cpu"])
def test_traces_are_equal_on_all_devices(device: str, directed: bool) -> None:
    """Compare supersteps, frontiers and messages of runs in which every superstep chooses a direction."""
    graph = gp.kronecker(10, 4)
    if directed:
        graph = gp.Graph.from_edgelist(*graph.to_edgelist()[:2], num_vertices=graph.num_vertices, directed=True)
    compared, directions = ("superstep", "active_vertices", "active_edges", "messages", "applied"), set()
    for program in (LABELS, HOPS, DISTANCES):
        found, expected = (gp.run(graph, program, device=name) for name in (device, "cpu"))
        rows = [[[row[k] for k in compared] for row in one.trace] for one in (found, expected)]
        assert rows[0] == rows[1]
        # Where the direction changes depends on the device.
        directions |= {row["direction"] for row in found.trace}
        assert found.to_numpy().tobytes() == expected.to_numpy().tobytes()
    assert directions == {"init", "push", "pull"} - ({"pull"} if device == "agents" else set())
