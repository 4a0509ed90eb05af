"""The work of the kernels that reduce rows and count labels: lanes share it, whatever the lengths of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.host.devices import get_device
from tests.counts import counted
from tests.devices import EMULATED

pytestmark = EMULATED
LEAVES = 1 << 16
FILES = ("walks_cuda.py", "labels_cuda.py")
GRAPHS: dict[str, Callable[[], gp.Graph]] = {
    "star": lambda: gp.Graph.from_edgelist(np.zeros(LEAVES, int), np.arange(1, LEAVES + 1)),
    "kron:10": lambda: gp.kronecker(10),
}


def number_of(v: Any, u: Any, weight: Any, numbers: Any, found: Any) -> Any:
    return numbers[u]


def store(v: Any, result: Any, numbers: Any, found: Any) -> bool:
    found[v] = result
    return True


def store_label(v: Any, label: Any, total: Any, numbers: Any, found: Any) -> bool:
    found[v] = label
    return True


@pytest.mark.parametrize("primitive", ["reduce_rows", "count_labels"])
@pytest.mark.parametrize("graph", GRAPHS)
def test_the_longest_lane_is_near_the_mean(graph: str, primitive: str) -> None:
    frontier = gp.Frontier(GRAPHS[graph](), device="emulated")
    given = [frontier.upload(np.arange(frontier.graph.num_vertices)), frontier.full(0, np.int64)]

    def work() -> None:
        if primitive == "reduce_rows":
            gp.reduce_rows(number_of, "sum", frontier, given, finish=store)
        else:
            gp.count_labels(number_of, frontier, given, finish=store_label)

    device: Any = get_device("emulated")
    for compiled, counts in counted(device, work).items():
        mean = counts.lane_accesses / counts.lanes
        assert counts.longest_lane <= 4 * mean + 256, compiled.name
        # Steps of a warp begin anywhere: 32 edges lie in five sectors, not four.
        found = zip(compiled.sites, counts.sectors.tolist(), counts.bytes.tolist(), strict=True)
        reads = [(sectors, size) for site, sectors, size in found if site.kind == "load" and site.file.endswith(FILES)]
        assert 32 * sum(sectors for sectors, _ in reads) <= 1.25 * sum(size for _, size in reads), compiled.name
