"""Tests of the checker: it accepts correct labels and detects every kind of error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.algorithms.checkers.connected_components import check_connected_components
from gpu_pregel.errors import VerificationError
from tests.graphs import KNOWN, Known, arrays, edge_lists


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)
@pytest.mark.parametrize("directed", [False, True])
def test_correct_labels_are_accepted(known: Known, directed: bool) -> None:
    graph = gp.Graph.from_edgelist(*arrays(known.edges), num_vertices=known.n, directed=directed)
    check_connected_components(graph, np.array(known.labels, np.uint32))


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 0, 0, 3], r"shape \(4,\), not \(5,\)"),
        ([1, 1, 1, 3, 3], "vertex 0 has label 1, which is not the smallest vertex of its component"),
        ([0, 0, 0, 3, 4], "the edge 3 to 4 joins the labels 3 and 4|the edge 4 to 3 joins the labels 4 and 3"),
        ([0, 0, 1, 3, 3], "vertex 2 has label 1, which itself has a different label"),
        ([0, 0, 0, 0, 0], "vertex 3 is not connected to its label 0"),
    ],
)
def test_errors_are_reported(labels: list[int], message: str, directed: bool) -> None:
    graph = gp.Graph.from_edgelist([0, 2, 4], [1, 1, 3], directed=directed)
    check_connected_components(graph, np.array([0, 0, 0, 3, 3]))
    with pytest.raises(VerificationError, match=message):
        check_connected_components(graph, np.array(labels))


@given(graph=edge_lists(max_vertices=8, max_edges=8), labels=st.lists(st.integers(0, 7), min_size=8, max_size=8))
def test_only_correct_labels_are_accepted(graph: Any, labels: list[int]) -> None:
    n, edges = graph
    built = gp.Graph.from_edgelist(*arrays(edges), num_vertices=n)
    wrong = np.array([min(label, v) for v, label in enumerate(labels[:n])])
    reached = [{v} for v in range(n)]
    for _ in range(n):
        for u, v in edges:
            reached[u] = reached[v] = reached[u] | reached[v]
        reached = [set().union(*(reached[w] for w in group)) for group in reached]
    truth = [min(group) for group in reached]
    try:
        check_connected_components(built, wrong)
    except VerificationError:
        assert wrong.tolist() != truth
    else:
        assert wrong.tolist() == truth
