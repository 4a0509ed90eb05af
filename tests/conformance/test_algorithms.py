"""Every registered algorithm on every device: its checker accepts the result, which is that of the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.algorithms.registry import ALGORITHMS, Algorithm
from tests.devices import DEVICES
from tests.graphs import KNOWN, arrays


def graphs(algorithm: Algorithm, directed: bool) -> list[gp.Graph]:
    """Small graphs that meet the requirements of an algorithm."""
    weighted = "weights" in algorithm.requires
    built = []
    for known in KNOWN:
        src, dst = arrays(known.edges)
        weight = np.arange(1, len(src) + 1, dtype=np.float32) if weighted else None
        built.append(gp.Graph.from_edgelist(src, dst, weight, num_vertices=known.n, directed=directed))
    return built


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda entry: entry.name)
@DEVICES
def test_results_are_accepted_by_the_checker(device: str, algorithm: Algorithm, directed: bool) -> None:
    if ("undirected" if directed else "directed") in algorithm.requires:
        pytest.skip(f"{algorithm.name} requires {' and '.join(algorithm.requires)}")
    function, check = algorithm.load(), algorithm.load_checker()
    for graph in graphs(algorithm, directed):
        if (arguments := algorithm.sample_arguments(graph)) is None:
            continue
        result: Any = function(graph, **arguments, device=device)
        check(graph, result)
        assert np.array_equal(result.to_numpy(), function(graph, **arguments, device="cpu").to_numpy())
