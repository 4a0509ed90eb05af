"""Connected components on every device: known answers, random graphs, two oracles, any number of threads."""

from __future__ import annotations

from typing import Any

import networkx
import numpy as np
import pytest
import scipy.sparse.csgraph
from hypothesis import given
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.host.devices import DEVICES, cpu
from gpu_pregel.reference.connected_components import check_connected_components
from tests.graphs import KNOWN, Known, arrays, edge_lists

pytestmark = pytest.mark.parametrize("device", DEVICES)


def smallest_members(n: int, groups: Any) -> list[int]:
    labels = [0] * n
    for group in groups:
        for vertex in group:
            labels[vertex] = min(group)
    return labels


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)
@pytest.mark.parametrize("directed", [False, True])
def test_known_answers(device: str, known: Known, directed: bool) -> None:
    src, dst = arrays(known.edges)
    graph = gp.Graph.from_edgelist(src, dst, num_vertices=known.n, directed=directed)
    components = gp.connected_components(graph, device=device)
    assert components.labels.tolist() == known.labels
    assert components.labels.dtype == np.uint32
    assert components.count == len(set(known.labels))
    assert components.sizes().tolist() == [known.labels.count(label) for label in sorted(set(known.labels))]
    ranks = {label: rank for rank, label in enumerate(sorted(set(known.labels)))}
    assert components.relabel().tolist() == [ranks[label] for label in known.labels]
    check_connected_components(graph, components.labels)


@given(graph=edge_lists(), directed=st.booleans(), threads=st.sampled_from([1, 3]))
def test_agrees_with_networkx(device: str, graph: Any, directed: bool, threads: int) -> None:
    n, edges = graph
    oracle = networkx.Graph(edges)
    oracle.add_nodes_from(range(n))
    built = gp.Graph.from_edgelist(*arrays(edges), num_vertices=n, directed=directed)
    components = gp.connected_components(built, device=device, threads=threads)
    assert components.labels.tolist() == smallest_members(n, networkx.connected_components(oracle))
    check_connected_components(built, components.labels)


@pytest.mark.parametrize("edge_factor", [1, 2, 8])
@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("name", ["kronecker", "uniform", "grid", "grid of many holes"])
def test_agrees_with_scipy_on_generated_graphs(
    device: str, name: str, threads: int, edge_factor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Small chunks, so that threads meet at their borders all the time.
    monkeypatch.setattr(cpu, "_SERIAL_SIZE", 16)
    monkeypatch.setattr(cpu, "_MIN_CHUNK", 16)
    monkeypatch.setattr(cpu, "_MAX_CHUNK", 16 * edge_factor)
    graph = {
        "kronecker": lambda: gp.kronecker(13, edge_factor),
        "uniform": lambda: gp.uniform(13, edge_factor),
        "grid": lambda: gp.grid(64, 100, seed=edge_factor),
        "grid of many holes": lambda: gp.grid(64, 100, holes=0.4, seed=edge_factor),
    }[name]()
    components = gp.connected_components(graph, device=device, threads=threads)
    count, labels = scipy.sparse.csgraph.connected_components(graph.to_scipy(), directed=False)
    assert components.count == count
    # Equal partitions: each of ours is one of SciPy's.
    assert len(np.unique(np.stack([components.labels, labels]), axis=1).T) == count


@pytest.mark.parametrize("threads", [1, 3])
def test_weak_components_of_a_directed_graph_need_no_csc(device: str, threads: int) -> None:
    # Most vertices point out of the largest component, so that only their own rows show these edges.
    random = np.random.default_rng(7)
    src = random.integers(0, 3000, 9000, np.uint32)
    dst = random.integers(0, 9000, 9000, np.uint32)
    graph = gp.Graph.from_edgelist(src, dst, num_vertices=9000, directed=True)
    components = gp.connected_components(graph, device=device, threads=threads)
    count, labels = scipy.sparse.csgraph.connected_components(graph.to_scipy(), directed=True, connection="weak")
    assert components.count == count
    assert len(np.unique(np.stack([components.labels, labels]), axis=1).T) == count
    assert "csc" not in graph._facts


def test_a_long_path_against_the_order(device: str) -> None:
    n = 200_000
    order = np.random.default_rng(3).permutation(n).astype(np.uint32)
    graph = gp.Graph.from_edgelist(order[:-1], order[1:], num_vertices=n)
    assert not gp.connected_components(graph, device=device, threads=2).labels.any()


def test_a_hub_beside_many_pairs(device: str) -> None:
    leaves = np.arange(1, 50_000, dtype=np.uint32)
    pairs = np.arange(50_000, 90_000, 2, dtype=np.uint32)
    src = np.concatenate([np.zeros_like(leaves), pairs])
    dst = np.concatenate([leaves, pairs + np.uint32(1)])
    components = gp.connected_components(gp.Graph.from_edgelist(src, dst), device=device, threads=2)
    assert components.count == 1 + len(pairs)
    assert components.sizes().tolist() == [50_000] + [2] * len(pairs)
