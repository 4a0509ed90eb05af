"""Merging of parallel edges in graphs whose pairs of vertices need more than 32 bits."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_pregel.networkx.edge_lists import Edges, merged


@pytest.mark.parametrize("both", [False, True])
def test_edges_of_distant_vertices_are_not_merged(both: bool) -> None:
    n = 1 << 17
    sources, targets = np.array([[1 << 15, 0, 1 << 15], [n - 1, n - 1, n - 1]], np.uint32)
    found = merged(Edges(sources, targets, np.array([1.0, 2.0, 4.0])), n, both=both)
    assert [column.tolist() for column in found] == [[1 << 15, 0], [n - 1, n - 1], [5.0, 2.0]]
