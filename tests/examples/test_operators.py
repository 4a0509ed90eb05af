"""The algorithms of Ligra's paper, written with operators: as short as there, and compared with NetworkX."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

import networkx
import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.examples import operators_bellman_ford, operators_bfs, operators_components
from tests.devices import on

search: Any = operators_bfs.search
components: Any = operators_components.components
shortest: Any = operators_bellman_ford.shortest
OPERATOR_DEVICES = pytest.mark.parametrize("device", [on(name) for name in ("cpu", "python", "emulated")])


def random_graph(*, directed: bool, weighted: bool = False, n: int = 70, m: int = 110) -> tuple[gp.Graph, Any]:
    """Return a random graph with isolated vertices, here and in NetworkX."""
    random = np.random.default_rng(m)
    src, dst = random.integers(0, n - 3, (2, m))
    weight = random.integers(1, 9, m) / 2 if weighted else None
    oracle = networkx.DiGraph() if directed else networkx.Graph()
    oracle.add_nodes_from(range(n))
    for k in np.argsort(-np.ones(m) if weight is None else -weight, kind="stable"):  # the lightest of several edges
        oracle.add_edge(src[k], dst[k], weight=1.0 if weight is None else weight[k])
    return gp.Graph.from_edgelist(src, dst, weight, num_vertices=n, directed=directed), oracle


def to_host(array: Any) -> Any:
    return array.get() if hasattr(array, "get") else array


@pytest.mark.parametrize(
    ("module", "lines"), [(operators_bfs, 33), (operators_components, 45), (operators_bellman_ford, 50)]
)
def test_they_are_as_short_as_in_ligra(module: ModuleType, lines: int) -> None:
    assert len(inspect.getsource(module).splitlines()) <= lines


@OPERATOR_DEVICES
@pytest.mark.parametrize("directed", [False, True])
def test_parents_are_one_hop_closer_to_the_source(device: str, directed: bool) -> None:
    graph, oracle = random_graph(directed=directed)
    parents = to_host(search(graph, 1, device=device))
    hops = networkx.single_source_shortest_path_length(oracle, 1)
    assert parents[1] == 1
    for v in range(70):
        assert (parents[v] >= 0) == (v in hops)
        if v in hops and v != 1:
            assert oracle.has_edge(parents[v], v)
            assert hops[parents[v]] == hops[v] - 1


@OPERATOR_DEVICES
def test_components(device: str) -> None:
    graph, oracle = random_graph(directed=False)
    labels = to_host(components(graph, device=device))
    for component in networkx.connected_components(oracle):
        assert {int(labels[v]) for v in component} == {min(component)}


@OPERATOR_DEVICES
def test_shortest_paths(device: str) -> None:
    graph, oracle = random_graph(directed=True, weighted=True)
    lengths = networkx.single_source_bellman_ford_path_length(oracle, 1)
    found = to_host(shortest(graph, 1, device=device))
    assert found.tolist() == [lengths.get(v, np.inf) for v in range(70)]
    if device == "cpu":
        cycle = gp.Graph.from_edgelist([0, 1, 2], [1, 2, 0], [1.0, 1.0, -3.0], directed=True)
        with pytest.raises(ValueError, match="a cycle of negative length"):
            shortest(cycle, 0, device=device)
