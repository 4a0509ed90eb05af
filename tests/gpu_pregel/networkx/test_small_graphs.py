"""Functions with short cuts, on every graph of one to six nodes."""

from __future__ import annotations

from typing import Any

import networkx as nx
import pytest

ATLAS = nx.graph_atlas_g()[1:209]


def _result(function: Any, graph: nx.Graph, backend: str) -> Any:
    found = function(graph, backend=backend)
    return found if isinstance(found, bool | dict) else list(found)


@pytest.mark.parametrize(
    "function", [nx.is_biconnected, nx.jaccard_coefficient, nx.preferential_attachment, nx.square_clustering]
)
@pytest.mark.parametrize("has_loops", [False, True])
def test_every_small_graph(function: Any, has_loops: bool) -> None:
    for atlas_graph in ATLAS:
        graph = atlas_graph.copy()
        if has_loops:
            graph.add_edges_from([(0, 0), (len(graph) - 1, len(graph) - 1)])
        ours, theirs = (_result(function, graph, backend) for backend in ("gpu_pregel", "networkx"))
        assert ours == theirs, (list(graph), list(graph.edges))
        assert type(ours) is type(theirs)
