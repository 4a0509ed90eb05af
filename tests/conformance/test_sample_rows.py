"""``sample_rows`` on every device: equal to known algorithms in plain Python, and distributed as promised."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, GraphError
from gpu_pregel.host.devices import get_device
from gpu_pregel.host.devices.emulated import EmulatedDevice
from gpu_pregel.host.traverse.samples import first_above
from gpu_pregel.kernels.library.philox import key_of, uniform
from tests.devices import EMULATED, GPUS, examples, on
from tests.graphs import arrays, edge_lists

DEVICES = pytest.mark.parametrize("device", [on(name) for name in ("cpu", "emulated", "emulated:1", *GPUS, "python")])
HUB = 3_000


def with_hub(*, weight: Any = None) -> gp.Graph:
    """Return a directed graph with a hub, rows of few edges and none, and parallel edges."""
    src = np.concatenate([np.full(HUB, 3), np.arange(40).repeat(np.arange(40) % 7), [5, 5, 5]])
    dst = np.concatenate([np.arange(HUB), np.arange(len(src) - HUB) * 11 % 60])
    weights = None if weight is None else weight(np.arange(len(src)))
    return gp.Graph.from_edgelist(src, dst, weights, num_vertices=HUB, directed=True)


def expected_rows(graph: gp.Graph, vertices: Any, k: int, options: dict[str, Any], seed: int) -> list[list[int]]:
    """Return the positions of the edges of each row, drawn one after the other in plain Python."""
    indptr, _, weights = graph.csc if options.get("transpose") else graph.to_csr()
    return [
        _expected_row(indptr[v], indptr[v + 1], weights, (k, seed), options, i if options.get("by_position") else v)
        for i, v in enumerate(vertices)
    ]


def _expected_row(begin: Any, end: Any, weights: Any, how: Any, options: dict[str, Any], stream: int) -> list[int]:
    (k, seed), (begin, end) = how, (int(begin), int(end))
    numbers = [uniform(key_of(seed), stream, d) for d in range(min(max(k, 0), HUB))]
    if k < 0 or begin == end:
        return list(range(begin, end))
    if options.get("weighted"):
        return _weighted_row(range(begin, end), weights.tolist(), numbers, replace=bool(options.get("replace")))
    if options.get("replace"):
        return [begin + int(number * (end - begin)) for number in numbers]
    if k >= end - begin:
        return list(range(begin, end))
    chosen: list[int] = []
    for d, number in enumerate(numbers):
        last = end - k + d
        drawn = begin + int(number * (last - begin + 1))
        chosen.append(last if drawn in chosen else drawn)
    return chosen


def _weighted_row(row: range, weights: list[Any], numbers: list[float], *, replace: bool) -> list[int]:
    """Draw by weights that are whole numbers."""
    left, chosen = list(row), []
    for number in numbers if replace else numbers[: len(row)]:
        value = number * sum(weights[e] for e in left)
        drawn = -1
        for e in left:
            if drawn < 0 and value < weights[e]:
                drawn = e
            value -= weights[e]
        chosen.append(drawn)
        if drawn >= 0 and not replace:
            left.remove(drawn)
    return chosen


def check(device: str, graph: gp.Graph, vertices: Any, k: int, seed: int, **options: Any) -> None:
    """Compare samples with those of plain Python; without ``vertices``, of the frontier."""
    frontier = gp.Frontier(graph, vertices, device=device)
    given = np.arange(graph.num_vertices) if vertices is None else np.unique(np.array(vertices, np.int64))
    if options.pop("as_array", False):
        frontier, given = frontier.everything(), np.array(vertices, np.int64)
        options["vertices"] = frontier.upload(given)
    found = [frontier.download(part) for part in gp.sample_rows(frontier, k, seed=seed, **options)]
    offsets, edges, neighbors = found
    rows = expected_rows(graph, given.tolist(), k, options, seed)
    assert [part.dtype for part in found] == [np.int64] * 3
    assert offsets.tolist() == [0, *np.cumsum([len(row) for row in rows])]
    assert edges.tolist() == [e for row in rows for e in row]
    indices = (graph.csc if options.get("transpose") else graph.to_csr())[1]
    assert neighbors.tolist() == [int(indices[e]) if e >= 0 else -1 for e in edges]


SOME = [3, 39, 0, 5, 6, 13, 20, 200]


@DEVICES
@pytest.mark.parametrize("replace", [False, True])
def test_rows_without_weights(device: str, replace: bool) -> None:
    graph = with_hub()
    for k in (0, 1, 4, 40):
        check(device, graph, SOME, k, 2, replace=replace)
        check(device, graph, [*SOME, 5, 5, 3], k, 3, replace=replace, as_array=True, by_position=True)
    check(device, graph, [*SOME, 5, 5, 3], 4, 3, replace=replace, as_array=True)
    check(device, graph, range(7), 2, 1 << 62, replace=replace, transpose=True)
    check(device, graph, [], 3, 0, replace=replace)


@DEVICES
@pytest.mark.parametrize("replace", [False, True])
def test_rows_with_weights(device: str, replace: bool) -> None:
    for dtype in (np.int64, np.float32):
        graph = with_hub(weight=lambda e, dtype=dtype: (e * e % 11 // 3).astype(dtype))
        for k in (1, 5):
            check(device, graph, SOME, k, 2, replace=replace, weighted=True)
        check(device, graph, [*SOME, 5, 3], 5, 3, replace=replace, weighted=True, as_array=True, by_position=True)
        check(device, graph, range(5, 60, 9), 2, 4, replace=replace, weighted=True, transpose=True)


@DEVICES
def test_all_edges_and_every_vertex(device: str) -> None:
    graph = with_hub()
    check(device, graph, [3, 0, 5], -1, 0)
    small = gp.Graph.from_edgelist([0, 0, 1, 4], [1, 2, 2, 4], num_vertices=6)
    for k in (-1, 1, 2):
        check(device, small, None, k, 1)
    # Frontiers in the forms that operators return; the last one has a queue of any order.
    frontier, hub = gp.Frontier(small, device=device), gp.Frontier(graph, [3], device=device)
    odd = gp.process_vertices(lambda v: v % 2 == 1, frontier, returns="frontier")
    ends = [
        gp.process_edges(lambda u, v, weight: v != 1, odd),
        gp.process_edges(lambda u, v, weight: True, hub, mode="push"),
    ]
    for one in (odd, *ends):
        degrees = one.graph.out_degrees[one.vertices()]
        assert one.download(gp.sample_rows(one, -1).offsets).tolist() == [0, *np.cumsum(degrees)]


@DEVICES
def test_random_graphs(device: str) -> None:
    @examples(
        device,
        drawn=edge_lists(),
        k=st.integers(0, 4),
        seed=st.integers(0, 1 << 40),
        replace=st.booleans(),
        transpose=st.booleans(),
        weighted=st.booleans(),
        directed=st.booleans(),
        data=st.data(),
    )
    def compare(drawn: Any, k: int, seed: int, directed: bool, data: Any, **options: Any) -> None:
        n, edges = drawn
        weights = np.arange(len(edges)) % 4 if options["weighted"] else None
        graph = gp.Graph.from_edgelist(*arrays(edges), weights, num_vertices=n, directed=directed)
        vertices = data.draw(st.lists(st.integers(0, n - 1), max_size=6))
        check(device, graph, vertices, k, seed, as_array=True, by_position=True, **options)

    compare()


@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1.0, 1e300])
def test_weights_of_all_magnitudes(scale: float) -> None:
    """Edges are drawn in proportion to their weights, without replacement in all orders."""
    weights = [scale, 2 * scale, 0.0, 3 * scale]
    graph = gp.Graph.from_edgelist([0] * 4 + [1], [1, 2, 3, 4, 2], [*weights, 1.0], directed=True)
    frontier, times = gp.Frontier(graph, device="cpu"), 6_000
    given: dict[str, Any] = {"vertices": np.zeros(times, np.int64), "by_position": True, "weighted": True, "seed": 5}
    drawn = gp.sample_rows(frontier, 4, **given)
    orders: Counter[Any] = Counter(map(tuple, drawn.neighbors.reshape(times, 4).tolist()))
    shares: dict[Any, float] = {}
    for order in permutations([1, 2, 4]):
        first, second = order[0] - (order[0] > 3), order[1] - (order[1] > 3)
        shares[*order, -1] = first / 6 * second / (6 - first)
    assert set(orders) == set(shares)
    singles: Counter[Any] = Counter(gp.sample_rows(frontier, 1, replace=True, **given).neighbors.tolist())
    for counts, expected in ((orders, shares), (singles, {1: 1 / 6, 2: 2 / 6, 4: 3 / 6})):
        for one, share in expected.items():
            assert abs(counts[one] - times * share) <= 4.5 * (times * share * (1 - share)) ** 0.5


def test_the_first_sum_above_a_value() -> None:
    sums = np.array([9, 0, 3, 3, 7, 9])
    for value in range(7):
        assert first_above(value, sums, 1, 5) == 1 + np.searchsorted(sums[1:5], value, "right")


@DEVICES
def test_sums_of_long_rows(device: str) -> None:
    """Equal weights of any size make sums of any length that are below 2^62, and all edges are alike."""
    for weight in (1.0, 3e-310, 1.7e308):
        graph = gp.Graph.from_edgelist([0] * 3_000, range(3_000), [weight] * 3_000, directed=True)
        frontier = gp.Frontier(graph, [0], device=device)
        found = gp.sample_rows(frontier, 1_000, weighted=True, replace=True)
        assert frontier.download(found.edges).tolist() == [int(uniform(key_of(0), 0, d) * 3_000) for d in range(1_000)]


@EMULATED
def test_sums_of_weights_are_the_same_on_every_device() -> None:
    graph = with_hub(weight=lambda e: np.random.default_rng(1).random(len(e)) ** 20)
    found: dict[str, Any] = {}
    for device in ("cpu", "emulated", "python"):
        frontier = gp.Frontier(graph, range(0, 60, 3), device=device)
        for options in ({"replace": True}, {}):
            sampled = gp.sample_rows(frontier, 6, weighted=True, **options)
            key = str(options)
            found.setdefault(key, frontier.download(sampled.edges).tolist())
            assert frontier.download(sampled.edges).tolist() == found[key]


@EMULATED
def test_no_thread_reads_the_row_of_a_hub() -> None:
    graph = with_hub(weight=lambda e: 1 + e % 5)
    device: Any = EmulatedDevice(memory=get_device("emulated").memory)  # type: ignore[attr-defined]
    frontier = gp.Frontier(graph, device="emulated")
    emulated = get_device("emulated")
    assert isinstance(emulated, EmulatedDevice)
    assert device.memory is emulated.memory
    emulated.counts = {}
    try:
        for k, options in ((-1, {}), (4, {}), (4, {"replace": True}), (4, {"weighted": True, "replace": True})):
            gp.sample_rows(frontier, k, **options)
        longest = max(counts.longest_lane for counts in emulated.counts.values())
    finally:
        emulated.counts = None
    assert longest < 600


@DEVICES
def test_invalid_arguments_are_named(device: str) -> None:
    frontier = gp.Frontier(with_hub(), [1], device=device)
    upload = frontier.upload
    invalid: list[tuple[Any, Any, str]] = [
        (-2, {}, "k must be from -1 to"),
        (-1, {"replace": True}, "k is -1, for all edges, which are not drawn: leave out replace and weighted"),
        (1, {"seed": -1}, "seed must be at least 0"),
        (1, {"vertices": upload(np.array([0, HUB]))}, "vertices: no vertex 3,000 in a graph of 3,000"),
        (1, {"vertices": upload(np.array([-1]))}, "vertices: no vertex -1 in a graph of 3,000"),
    ]
    for k, options, message in invalid:
        with pytest.raises(GraphError if "no vertex" in message else ArgumentError, match=message):
            gp.sample_rows(frontier, k, **options)
    mistyped: list[tuple[Any, Any, str]] = [
        (0.5, {}, "k must be a whole number"),
        (1, {"replace": 1}, "replace must be True or False"),
        (1, {"vertices": [1]}, "vertices must be an array of NumPy or in the memory of a device, not list"),
        (1, {"vertices": upload(np.array([0.5]))}, "vertices has dtype float64, but must have integers"),
    ]
    for k, options, message in mistyped:
        with pytest.raises(ArgumentTypeError, match=message):
            gp.sample_rows(frontier, k, **options)
    with pytest.raises(GraphError, match="weighted=True, but the graph has no weights"):
        gp.sample_rows(frontier, 1, weighted=True)
    with pytest.raises(ArgumentTypeError, match=r"frontier must be a gp\.Frontier, not Graph"):
        gp.sample_rows(frontier.graph, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("weight", [-1.0, np.inf])
def test_weights_that_are_no_shares_are_refused(weight: float) -> None:
    graph = gp.Graph.from_edgelist(["a", "a"], ["b", "c"], [1.0, weight], directed=True)
    with pytest.raises(GraphError, match="needs finite weights of at least 0, and the edge from 'a' to 'c' has"):
        gp.sample_rows(gp.Frontier(graph, device="cpu"), 1, weighted=True)


@EMULATED
def test_vertices_on_another_device_are_refused() -> None:
    graph = gp.grid(3)
    there = gp.Frontier(graph, device="emulated")
    with pytest.raises(ArgumentError, match="vertices is in host memory, but the frontier is on device 'emulated'"):
        gp.sample_rows(there, 1, vertices=np.array([1]))
    with pytest.raises(ArgumentError, match="vertices is on device 'emulated', but the frontier is on device 'cpu'"):
        gp.sample_rows(gp.Frontier(graph, device="cpu"), 1, vertices=there.upload(np.array([1])))
