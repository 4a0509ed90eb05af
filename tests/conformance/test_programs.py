"""Vertex programs on every device, in every direction, cut and threaded in every way: equal to oracles' answers."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
import scipy.sparse.csgraph
from hypothesis import given
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.host.devices import DEVICES
from tests.graphs import arrays, edge_lists

LABELS = gp.VertexProgram(
    value=np.uint32,
    init=lambda ctx: ctx.vertex,
    message=lambda value, ctx: value,
    combine="min",
    apply=lambda value, incoming, ctx: min(value, incoming),
)
HOPS = gp.VertexProgram(
    value=np.int32,
    init=lambda ctx: 0 if ctx.vertex == 0 else 2**31 - 1,
    initially_active=lambda ctx: ctx.vertex == 0,
    message=lambda value, ctx: value + 1,
    combine="min",
    apply=lambda value, incoming, ctx: min(value, incoming),
)
DISTANCES = gp.VertexProgram(
    value=np.float64,
    init=lambda ctx: 0.0 if ctx.vertex == 0 else np.inf,
    initially_active=lambda ctx: ctx.vertex == 0,
    message=lambda value, weight, ctx: value + weight,
    combine="min",
    apply=lambda value, incoming, ctx: min(value, incoming),
)
WAYS = [
    {"mode": mode, "partitions": partitions, "threads": threads, "device": device}
    for device, mode, partitions, threads in product(DEVICES, ("push", "pull", "auto"), (1, 2, 3, 7), (1, 2))
]


@pytest.fixture(scope="module")
def graph() -> gp.Graph:
    """A graph of some hundred vertices, so that seven partitions have a word of vertices each."""
    return gp.kronecker(9, 3)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(map(str, way.values())))
def test_every_way_gives_the_same(graph: gp.Graph, way: dict[str, Any]) -> None:
    assert np.array_equal(gp.run(graph, LABELS, **way).values, gp.connected_components(graph).labels)
    hops = scipy.sparse.csgraph.shortest_path(graph.to_scipy(), unweighted=True, indices=0)
    expected = np.where(np.isinf(hops), 2**31 - 1, hops)
    assert np.array_equal(gp.run(graph, HOPS, **way).values, expected)


@pytest.mark.parametrize("file", ["snap/wiki-Vote.txt", "snap/as20graph.txt", "mesh/wing.graph", "mtx/pushpull.mtx"])
@pytest.mark.parametrize("partitions", [1, 7])
def test_public_graphs_agree_with_scipy(data: Path, file: str, partitions: int) -> None:
    graph = gp.read_graph(data / file, directed=True if "wiki" in file else None)
    matrix = graph.to_scipy()
    distances = scipy.sparse.csgraph.shortest_path(matrix.astype(float), unweighted=True, indices=0)
    _, labels = scipy.sparse.csgraph.connected_components(matrix, directed=True, connection="strong")
    for mode, threads in product(("push", "pull", "auto"), (1, 2)):
        way: dict[str, Any] = {"mode": mode, "threads": threads, "partitions": partitions}
        hops = gp.run(graph, HOPS, **way).values
        assert np.array_equal(hops, np.where(np.isinf(distances), 2**31 - 1, distances))
        if not graph.is_directed:
            found = gp.run(graph, LABELS, **way).values
            assert len(np.unique(np.stack([found, labels]), axis=1).T) == len(np.unique(found)) == labels.max() + 1


@given(
    graph=edge_lists(max_vertices=600, max_edges=900),
    directed=st.booleans(),
    way=st.sampled_from([way for way in WAYS if way["device"] == "cpu"]),
)
def test_random_graphs_agree_with_scipy_in_every_way(graph: Any, directed: bool, way: dict[str, Any]) -> None:
    n, edges = graph
    way = {**way, "partitions": min(way["partitions"], -(-n // 64))}
    built = gp.Graph.from_edgelist(*arrays(edges), num_vertices=n, directed=directed)
    expected = scipy.sparse.csgraph.shortest_path(built.to_scipy().astype(float), unweighted=True, indices=0)
    assert np.array_equal(gp.run(built, HOPS, **way).values, np.where(np.isinf(expected), 2**31 - 1, expected))
    if not directed:
        assert np.array_equal(gp.run(built, LABELS, **way).values, gp.connected_components(built).labels)


@given(graph=edge_lists(), directed=st.booleans(), mode=st.sampled_from(["push", "pull", "auto"]))
def test_shortest_paths_agree_with_networkx(graph: Any, directed: bool, mode: str) -> None:
    n, edges = graph
    weight = np.arange(1, len(edges) + 1) % 7 + 0.5
    built = gp.Graph.from_edgelist(*arrays(edges), weight, num_vertices=n, directed=directed)
    oracle = (networkx.MultiDiGraph if directed else networkx.MultiGraph)()
    oracle.add_nodes_from(range(n))
    oracle.add_weighted_edges_from((u, v, w) for (u, v), w in zip(edges, weight, strict=True))
    lengths = networkx.single_source_dijkstra_path_length(oracle, 0)
    expected = [lengths.get(v, np.inf) for v in range(n)]
    assert gp.run(built, DISTANCES, mode=mode).values.tolist() == expected
