"""Programs and algorithms on transposed graphs, on every device, compared with a reversed copy and with SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse.csgraph

import gpu_pregel as gp
from gpu_pregel.host.devices import get_device
from tests.devices import CUDA_DEVICES, DEVICES, ways
from tests.programs import DISTANCES, RANKS


@pytest.fixture(scope="module")
def edges() -> tuple[Any, ...]:
    rng = np.random.default_rng(1)
    # Vertices of many edges beside vertices of few, so that a direction that is not reversed changes the results.
    src, dst = (rng.integers(0, 300, 900) * rng.integers(0, 2, 900) // 2 for _ in range(2))
    return src, dst, rng.random(900)


@ways(mode=["push", "pull", "auto"], partitions=[1, 3])
def test_distances_agree_with_scipy(edges: tuple[Any, ...], device: str, way: dict[str, Any]) -> None:
    graph = gp.Graph.from_edgelist(*edges, num_vertices=300, directed=True)
    found = gp.run(graph.transpose(), DISTANCES, device=device, **way)
    matrix = graph.simplify(combine="min").to_scipy().T
    assert np.array_equal(found.to_numpy(), scipy.sparse.csgraph.dijkstra(matrix, indices=0))


@DEVICES
def test_transposes_equal_reversed_copies(edges: tuple[Any, ...], device: str) -> None:
    src, dst, weights = edges
    graph = gp.Graph.from_edgelist(src, dst, weights, num_vertices=300, directed=True)
    reversed_copy = gp.Graph.from_edgelist(dst, src, weights, num_vertices=300, directed=True)
    one, other = (gp.run(each, RANKS, device=device) for each in (graph.transpose(), reversed_copy))
    assert np.array_equal(one.to_numpy(), other.to_numpy())
    again = gp.run(graph.transpose().transpose(), DISTANCES, device=device)
    assert np.array_equal(again.to_numpy(), gp.run(graph, DISTANCES, device=device).to_numpy())
    labels = gp.connected_components(graph.transpose(), device=device).to_numpy()
    assert np.array_equal(labels, gp.connected_components(graph, device=device).to_numpy())


@CUDA_DEVICES
def test_copies_on_devices_are_shared(edges: tuple[Any, ...], device: str) -> None:
    graph = gp.Graph.from_edgelist(*edges, num_vertices=300, directed=True)
    gp.run(graph, DISTANCES, device=device)
    there = graph._on(get_device(device))
    before = dict(there._copies)
    gp.run(graph.transpose(), DISTANCES, device=device)
    assert graph.transpose()._on(get_device(device)) is there
    edges_before = {key for key in before if key[1] == graph.num_stored_edges}
    assert edges_before
    assert {key for key in there._copies if key[1] == graph.num_stored_edges} == edges_before
