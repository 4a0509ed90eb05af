"""Connected components on every device: known answers, random graphs, two oracles, several numbers of threads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx
import numpy as np
import pytest
import scipy.sparse.csgraph
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.algorithms import connected_components as components_module
from gpu_pregel.algorithms.checkers.connected_components import check_connected_components
from gpu_pregel.host.devices import cpu
from tests.devices import CUDA_DEVICES, DEVICES, examples, threads_of, ways
from tests.graphs import KNOWN, Known, arrays, edge_lists


@pytest.fixture(scope="module", autouse=True)
def shared() -> Iterator[None]:
    """Share the work of small graphs among threads, too."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(components_module, "_SERIAL_SIZE", 0)
        yield


def smallest_members(n: int, groups: Any) -> list[int]:
    labels = [0] * n
    for group in groups:
        for vertex in group:
            labels[vertex] = min(group)
    return labels


def is_partition(labels: Any, others: Any, count: int) -> bool:
    """Return whether two labellings describe the same ``count`` sets."""
    return len(np.unique(np.stack([labels, others]), axis=1).T) == len(np.unique(labels)) == count


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)
@pytest.mark.parametrize("directed", [False, True])
@DEVICES
def test_known_answers(device: str, known: Known, directed: bool) -> None:
    src, dst = arrays(known.edges)
    graph = gp.Graph.from_edgelist(src, dst, num_vertices=known.n, directed=directed)
    components = gp.connected_components(graph, device=device)
    assert components.to_numpy().tolist() == known.labels
    assert components.labels.dtype == np.uint32
    assert components.count == len(set(known.labels))
    assert components.sizes().tolist() == [known.labels.count(label) for label in sorted(set(known.labels))]
    ranks = {label: rank for rank, label in enumerate(sorted(set(known.labels)))}
    assert components.relabel().tolist() == [ranks[label] for label in known.labels]
    check_connected_components(graph, components.to_numpy())


@DEVICES
def test_agrees_with_networkx(device: str) -> None:
    @examples(device, graph=edge_lists(), directed=st.booleans(), threads=st.sampled_from([1, 3]))
    def check(graph: Any, directed: bool, threads: int) -> None:
        n, edges = graph
        oracle = networkx.Graph(edges)
        oracle.add_nodes_from(range(n))
        built = gp.Graph.from_edgelist(*arrays(edges), num_vertices=n, directed=directed)
        components = gp.connected_components(built, device=device, **threads_of(device, threads))
        assert components.to_numpy().tolist() == smallest_members(n, networkx.connected_components(oracle))
        check_connected_components(built, components.to_numpy())

    check()


@pytest.mark.parametrize("name", ["kronecker", "uniform", "grid", "grid of many holes"])
@ways(edge_factor=[1, 2, 8], threads=[1, 2, 4])
def test_agrees_with_scipy_on_generated_graphs(
    device: str, way: dict[str, Any], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    way = dict(way)
    edge_factor = way.pop("edge_factor")
    # Small chunks make threads meet at chunk borders often.
    monkeypatch.setattr(cpu, "_SERIAL_SIZE", 16)
    monkeypatch.setattr(cpu, "_MIN_CHUNK", 16)
    monkeypatch.setattr(cpu, "_MAX_CHUNK", 16 * edge_factor)
    graph = {
        "kronecker": lambda: gp.kronecker(13, edge_factor),
        "uniform": lambda: gp.uniform(13, edge_factor),
        "grid": lambda: gp.grid(64, 100, seed=edge_factor),
        "grid of many holes": lambda: gp.grid(64, 100, holes=0.4, seed=edge_factor),
    }[name]()
    components = gp.connected_components(graph, device=device, **way)
    count, labels = scipy.sparse.csgraph.connected_components(graph.to_scipy(), directed=False)
    assert components.count == count
    assert is_partition(components.to_numpy(), labels, count)


@ways(threads=[1, 3])
def test_weak_components_do_not_build_the_csc(device: str, way: dict[str, Any]) -> None:
    # Many vertices point into the largest component, and only their own rows contain these edges.
    random = np.random.default_rng(7)
    src = random.integers(0, 3000, 9000, np.uint32)
    dst = random.integers(0, 9000, 9000, np.uint32)
    graph = gp.Graph.from_edgelist(src, dst, num_vertices=9000, directed=True)
    components = gp.connected_components(graph, device=device, **way)
    count, labels = scipy.sparse.csgraph.connected_components(graph.to_scipy(), directed=True, connection="weak")
    assert components.count == count
    assert is_partition(components.to_numpy(), labels, count)
    assert "csc" not in graph._facts


@DEVICES
def test_a_long_path_in_random_order(device: str) -> None:
    n = 200_000
    order = np.random.default_rng(3).permutation(n).astype(np.uint32)
    graph = gp.Graph.from_edgelist(order[:-1], order[1:], num_vertices=n)
    assert not gp.connected_components(graph, device=device, **threads_of(device, 2)).to_numpy().any()


@DEVICES
def test_a_hub_beside_many_pairs(device: str) -> None:
    leaves = np.arange(1, 50_000, dtype=np.uint32)
    pairs = np.arange(50_000, 90_000, 2, dtype=np.uint32)
    src = np.concatenate([np.zeros_like(leaves), pairs])
    dst = np.concatenate([leaves, pairs + np.uint32(1)])
    graph = gp.Graph.from_edgelist(src, dst)
    components = gp.connected_components(graph, device=device, **threads_of(device, 2))
    assert components.count == 1 + len(pairs)
    assert components.sizes().tolist() == [50_000] + [2] * len(pairs)


@pytest.mark.parametrize("hub", [0, 16, 17, 352, 353, 1024, 1025, 5000], ids=lambda degree: f"{degree} edges")
@DEVICES
def test_rows_of_every_degree_class(device: str, hub: int) -> None:
    """Stars joined by edges late in the rows of their hubs, most of which sampling does not reach."""
    stars = 40
    leaves = stars + np.arange(stars * max(hub - 1, 0)).reshape(stars, -1)
    src = np.repeat(np.arange(stars), leaves.shape[1])
    joined = np.arange(0, stars - 1, 2)
    src, dst = np.append(src, joined if hub else []), np.append(leaves.ravel(), leaves[joined + 1, -1] if hub else [])
    n = stars + leaves.size
    graph = gp.Graph.from_edgelist(src.astype(int), dst.astype(int), num_vertices=n, directed=True)
    if hub:
        assert graph.out_degrees.max() == hub
    components = gp.connected_components(graph, device=device)
    assert np.array_equal(components.to_numpy(), gp.connected_components(graph, device="cpu").to_numpy())
    assert components.count == (stars // 2 if hub else stars)


@CUDA_DEVICES
def test_a_large_graph_gets_the_labels_of_the_cpu(device: str) -> None:
    graph = gp.kronecker(14)
    assert graph.num_stored_edges > 400_000
    found = gp.connected_components(graph, device=device)
    assert np.array_equal(found.to_numpy(), gp.connected_components(graph, device="cpu").to_numpy())
