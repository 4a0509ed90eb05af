"""The work of the kernels over rows, labels and pairs: lanes share it, whatever the lengths of rows."""

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
    kernels = counted(device, work)
    indptr, indices, _ = frontier.graph.to_csr()
    sums = np.append(0, np.cumsum(indices, dtype=np.int64))
    if primitive == "reduce_rows":
        assert np.array_equal(given[1].get(), sums[indptr[1:]] - sums[indptr[:-1]])
    for compiled, counts in kernels.items():
        mean = counts.lane_accesses / counts.lanes
        assert counts.longest_lane <= 4 * mean + 256, compiled.name
        # Steps of a warp begin anywhere: 32 edges lie in five sectors, not four.
        found = zip(compiled.sites, counts.sectors.tolist(), counts.bytes.tolist(), strict=True)
        reads = [(sectors, size) for site, sectors, size in found if site.kind == "load" and site.file.endswith(FILES)]
        assert 32 * sum(sectors for sectors, _ in reads) <= 1.25 * sum(size for _, size in reads), compiled.name


def sectors_of_shorter_rows(graph: gp.Graph, first: Any, second: Any) -> int:
    """Return the number of 32-byte sectors in which the shorter rows of pairs lie."""
    degrees = np.diff(graph.indptr)
    walked = np.where(degrees[first] <= degrees[second], first, second)
    walked = walked[degrees[walked] > 0]
    begins, ends = graph.indptr[walked], graph.indptr[walked + 1]
    return int(((ends - 1) // 8 - begins // 8 + 1).sum())


@pytest.mark.parametrize("graph", GRAPHS)
def test_pairs_are_shared_by_the_shorter_rows(graph: str) -> None:
    frontier = gp.Frontier(GRAPHS[graph](), device="emulated")
    device: Any = get_device("emulated")
    pairs = frontier.edges()
    hub = int(frontier.graph.out_degrees.argmax())
    other = int(np.argsort(frontier.graph.out_degrees)[-2]) if graph != "star" else hub
    few = tuple(frontier.upload(np.array(ends)) for ends in ([hub, other, hub], [other, hub, hub]))

    def visit(i: Any, u: Any, v: Any, w: Any, weight_u: Any, weight_v: Any) -> int:
        return 1

    # The pieces of a few long rows are read in steps that begin anywhere, as above.
    for ends, most in ((pairs, 1.2), (few, 1.25)):
        sectors = 0

        def work(ends: Any = ends) -> None:
            gp.intersect_rows(visit, frontier, pairs=ends)

        for compiled, counts in counted(device, work).items():
            mean = counts.lane_accesses / counts.lanes
            assert counts.longest_lane <= 4 * mean + 256, compiled.name
            reads = zip(compiled.sites, counts.sectors.tolist(), strict=True)
            sectors += sum(
                number for site, number in reads if site.kind == "load" and site.file.endswith("walks_cuda.py")
            )
        numbers = [frontier.download(one).astype(np.int64) for one in ends]
        assert 0 < sectors <= most * sectors_of_shorter_rows(frontier.graph, *numbers)


@pytest.mark.parametrize("graph", GRAPHS)
def test_edges_are_listed_by_all_lanes(graph: str) -> None:
    frontier = gp.Frontier(GRAPHS[graph](), device="emulated")
    device: Any = get_device("emulated")
    for compiled, counts in counted(device, lambda: frontier.edges()).items():
        assert counts.longest_lane <= 4 * counts.lane_accesses / counts.lanes + 256, compiled.name
