"""Operators over several partitions, with exchanges that share memory and that copy, compared with one partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, ProgramError
from gpu_pregel.host.devices import get_device
from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.traverse.exchange import LocalExchange
from tests.conformance.test_reduce_rows import with_hubs
from tests.devices import GPUS, LONG, examples, on
from tests.exchanges import CopyingExchange
from tests.graphs import arrays

CASES = pytest.mark.parametrize(
    ("device", "copies"),
    [
        *(on(name, True, name="copying") for name in ("cpu", "emulated", *GPUS)),
        on("cpu", False, name="local"),
        on("emulated", False, name="local", marks=[LONG]),
        on("python", True, name="copying", marks=[LONG]),
    ],
)


class RecordingExchange(LocalExchange):
    """Records the lengths of the arrays that are gathered."""

    def __init__(self) -> None:
        self.lengths: set[int] = set()

    def gather_masters(self, device: Device, arrays: Sequence[Any], bounds: Sequence[int]) -> Sequence[Any]:
        self.lengths.add(len(arrays[0]))
        return super().gather_masters(device, arrays, bounds)


def frontier_of(
    graph: gp.Graph, vertices: Any, device: str, partitions: int, *, copies: bool
) -> tuple[gp.Frontier, CopyingExchange | None]:
    """Return a frontier whose partitions share memory, or do not."""
    frontier = gp.Frontier(graph, vertices, device=device, partitions=partitions)
    operators: Any = frontier._run.operators
    carrier = CopyingExchange(get_device(device)) if copies and partitions > 1 else None
    if carrier is not None:
        operators.exchange = carrier
        frontier = frontier.everything() if vertices is None else frontier.chosen(vertices)
    return frontier, carrier


@pytest.fixture(scope="module")
def undirected() -> gp.Graph:
    return gp.kronecker(8, 4, seed=3)


@pytest.fixture(scope="module")
def directed(undirected: gp.Graph) -> gp.Graph:
    src, dst, _ = undirected.to_edgelist()
    return gp.Graph.from_edgelist(src, dst, np.arange(len(src)) % 7 + 1, num_vertices=270, directed=True)


def test_the_graph_is_cut_where_the_tests_need_it(undirected: gp.Graph, directed: gp.Graph) -> None:
    for graph in (undirected, directed):
        frontier = gp.Frontier(graph, device="cpu", partitions=3)
        operators: Any = frontier._run.operators
        assert len(set(operators._bounds)) == 4
        assert graph.num_vertices % 64 or graph is undirected


def visit(u: Any, v: Any, weight: Any, hops: Any, superstep: Any) -> Any:
    return gp.atomics.compare_and_swap(hops, v, -1, superstep)


def unvisited(v: Any, hops: Any, superstep: Any) -> Any:
    return gp.atomics.load(hops, v) < 0


def search(
    graph: gp.Graph, device: str, partitions: int, *, copies: bool, transpose: bool, mode: Any
) -> tuple[list[int], list[Any]]:
    """Return the hops from the vertex of most edges, and the active vertices and edges of each superstep."""
    source = int((graph.in_degrees if transpose else graph.out_degrees).argmax())
    frontier, carrier = frontier_of(graph, [source], device, partitions, copies=copies)
    hops = frontier.upload(np.where(np.arange(graph.num_vertices) == source, 0, -1))
    superstep, sizes = 0, []
    while frontier:
        assert len(frontier) == len(frontier.vertices())
        assert (frontier.download(hops)[frontier.vertices()] == superstep).all()
        superstep += 1
        way = {"receives": unvisited, "transpose": transpose, "mode": mode}
        frontier = gp.process_edges(visit, frontier, [hops, superstep], **way)
        sizes.append((len(frontier), frontier._active.edges))
    assert carrier is None or carrier.bytes_sent > 0
    return frontier.download(hops).tolist(), sizes


@pytest.mark.parametrize("mode", ["push", "pull", pytest.param("auto", marks=LONG)])
@CASES
def test_a_search_finds_what_one_partition_finds(
    undirected: gp.Graph, directed: gp.Graph, device: str, copies: bool, mode: Any
) -> None:
    for graph, transpose in ((undirected, False), (directed, False), (directed, True)):
        expected, counts = search(graph, device, 1, copies=False, transpose=transpose, mode=mode)
        assert max(expected) > 1
        found, sizes = search(graph, device, 3, copies=copies, transpose=transpose, mode=mode)
        assert found == expected
        assert [count for count, _ in sizes] == [count for count, _ in counts]
        if not transpose:
            assert sizes == counts


def mark(v: Any, seen: Any, factor: Any) -> Any:
    seen[v] += v * factor
    return v % 3 == 0


@CASES
def test_vertices_are_processed_by_their_owners(directed: gp.Graph, device: str, copies: bool) -> None:
    n = directed.num_vertices
    for vertices in (None, np.arange(0, n, 2), [], [63, 64, 127, 128, n - 1]):
        frontier, _ = frontier_of(directed, vertices, device, 3, copies=copies)
        chosen = np.arange(n) if vertices is None else np.asarray(vertices, int)
        seen = frontier.full(5, np.int64)
        third = gp.process_vertices(mark, frontier, [seen, 3], returns="frontier")
        assert third.vertices().tolist() == [v for v in chosen if v % 3 == 0]
        assert gp.process_vertices(mark, frontier, [seen, 3]) == len(third)
        assert gp.process_vertices(mark, third, [seen, 1], returns=None) is None
        expected = np.full(n, 5)
        expected[chosen] += 6 * chosen
        expected[third.vertices()] += third.vertices()
        assert frontier.download(seen).tolist() == expected.tolist()


@CASES
def test_sums_over_edges_have_each_edge_once(directed: gp.Graph, device: str, copies: bool) -> None:
    src, dst, _ = directed.to_edgelist()
    weights = np.asarray(directed.weights)
    chosen = np.arange(0, directed.num_vertices, 3)
    frontier, _ = frontier_of(directed, chosen, device, 3, copies=copies)
    for transpose in (False, True):
        taken = np.isin(dst if transpose else src, chosen)
        for mode in ("push", "pull"):
            way: dict[str, Any] = {"returns": "sum", "mode": mode, "transpose": transpose}
            assert gp.process_edges(lambda u, v, weight: weight * 3, frontier, **way) == (weights * 3)[taken].sum()
            total = gp.process_edges(lambda u, v, weight: weight / 3, frontier, **way)
            assert total == pytest.approx((weights / 3)[taken].sum())


def key_of(v: Any, u: Any, weight: Any, keys: Any, found: Any) -> Any:
    return keys[u] * int(weight)


def first_only(v: Any, result: Any, keys: Any, found: Any) -> Any:
    found[v] = result
    return v % 4 == 1


def count_up(v: Any, keys: Any) -> Any:
    keys[v] += v
    return 0


@pytest.mark.parametrize("combine", ["min", "sum", pytest.param("max", marks=LONG), pytest.param("or", marks=LONG)])
@CASES
def test_rows_are_reduced_with_the_mirrors_of_neighbours(
    undirected: gp.Graph, directed: gp.Graph, device: str, copies: bool, combine: Any
) -> None:
    """A second round reads what the owners of the neighbours wrote in the first one."""
    for graph, transpose in ((undirected, False), (directed, False), (directed, True)):
        n, results = graph.num_vertices, []
        for partitions in (1, 3):
            frontier, _ = frontier_of(graph, np.arange(n) % 5 != 2, device, partitions, copies=copies)
            keys, found = frontier.upload(np.arange(n) * 7 % 101 - 50), frontier.full(0, np.int64)
            for _ in range(2):
                given = [keys, found]
                kept = gp.reduce_rows(key_of, combine, frontier, given, finish=first_only, transpose=transpose)
                gp.process_vertices(count_up, frontier, [keys])
            results.append((frontier.download(found).tolist(), kept.vertices().tolist()))
        assert results[0] == results[1]


def label_of(v: Any, u: Any, weight: Any, labels: Any, others: Any, totals: Any) -> Any:
    return labels[u]


def store(v: Any, label: Any, total: Any, labels: Any, others: Any, totals: Any) -> Any:
    others[v], totals[v] = label, total
    return label != labels[v]


@CASES
def test_labels_are_counted_with_the_mirrors_of_neighbours(
    undirected: gp.Graph, directed: gp.Graph, device: str, copies: bool
) -> None:
    for graph, transpose in ((undirected, False), (directed, False), (directed, True)):
        results = []
        for partitions in (1, 3):
            frontier, _ = frontier_of(graph, None, device, partitions, copies=copies)
            labels = frontier.upload(np.arange(graph.num_vertices) % 11)
            others, totals = frontier.full(0, np.int64), frontier.full(0, np.int64)
            for _ in range(2):
                given = [labels, others, totals]
                changed = gp.count_labels(label_of, frontier, given, finish=store, transpose=transpose)
                labels, others = others, labels
            results.append([frontier.download(one).tolist() for one in (labels, totals)])
            results[-1].append(changed.vertices().tolist())
        assert results[0] == results[1]


@CASES
def test_rows_of_hubs_lie_with_their_owner(device: str, copies: bool) -> None:
    for is_directed in (True, False):
        graph = with_hubs(directed=is_directed)
        results = []
        for partitions in (1, 3):
            frontier, _ = frontier_of(graph, None, device, partitions, copies=copies)
            keys, found = frontier.upload(np.arange(graph.num_vertices) % 13), frontier.full(0, np.int64)
            gp.reduce_rows(key_of, "sum", frontier, [keys, found], finish=first_only, returns=None)
            reached = gp.process_edges(lambda u, v, weight: u % 2, frontier.chosen([0, 7]), mode="push")
            results.append((frontier.download(found).tolist(), reached.vertices().tolist()))
        assert results[0] == results[1]


@CASES
def test_frontiers_of_partitions_are_united(undirected: gp.Graph, device: str, copies: bool) -> None:
    frontier, _ = frontier_of(undirected, [3, 64, 200], device, 3, copies=copies)
    hub = int(undirected.out_degrees.argmax())
    other = gp.process_edges(lambda u, v, weight: True, frontier.chosen([hub]), mode="push")
    both = frontier | other
    assert len(other) > 64
    assert both.vertices().tolist() == sorted({3, 64, 200, *other.vertices().tolist()})
    assert len(both) == len(both.vertices())
    assert 64 in both
    assert both._active.edges == undirected.out_degrees[both.vertices()].sum()
    assert len(both | both.everything()) == undirected.num_vertices
    assert len(both.chosen([])) == 0


@pytest.mark.parametrize("device", [on("cpu"), on("emulated", marks=[LONG])])
def test_random_graphs(device: str) -> None:
    numbers = st.integers(0, 199)

    @examples(
        device,
        edges=st.lists(st.tuples(numbers, numbers), max_size=300),
        partitions=st.integers(2, 4),
        transpose=st.booleans(),
        mode=st.sampled_from(["push", "pull", "auto"]),
    )
    def check(edges: Any, partitions: int, transpose: bool, mode: Any) -> None:
        graph = gp.Graph.from_edgelist(*arrays(edges), num_vertices=200, directed=True)
        way = {"transpose": transpose, "mode": mode}
        expected = search(graph, device, 1, copies=False, **way)[0]
        assert search(graph, device, partitions, copies=True, **way)[0] == expected

    check()


def at_source(u: Any, v: Any, weight: Any, found: Any) -> Any:
    gp.atomics.add(found, u, 1)
    return True


def counting(v: Any, counter: Any) -> Any:
    if v < 9:  # vertices of the partition whose range has number 1 too
        gp.atomics.add(counter, 1, v)
    return 0


def shifted(v: Any, found: Any) -> Any:
    gp.atomics.store(found, 255 - v, v + 1)
    return 0


@CASES
def test_writes_to_what_others_own_are_errors(undirected: gp.Graph, device: str, copies: bool) -> None:
    frontier, _ = frontier_of(undirected, None, device, 3, copies=True)
    found, counter = frontier.full(0, np.int64), frontier.full(0, np.int64, size=3)
    for call in (
        lambda: gp.process_edges(at_source, frontier, [found]),
        lambda: gp.process_vertices(shifted, frontier, [found]),
        lambda: gp.process_vertices(counting, frontier, [counter]),
    ):
        with pytest.raises(ProgramError, match=r"test_partitioned_operators\.py, line \d+.*arrays\[0\].*returns='sum'"):
            call()
    assert not frontier.download(found).any()
    assert not frontier.download(counter).any()


def test_partitions_that_share_memory_take_the_arrays_themselves(undirected: gp.Graph) -> None:
    frontier = gp.Frontier(undirected, device="cpu", partitions=3)
    operators: Any = frontier._run.operators
    operators.exchange = recording = RecordingExchange()
    found, counter = frontier.full(0, np.int64), frontier.full(0, np.int64, size=3)
    gp.process_edges(at_source, frontier, [found])
    gp.process_vertices(counting, frontier, [counter])
    assert found.tolist() == undirected.out_degrees.tolist()
    assert counter.tolist() == [0, 36, 0]
    assert recording.lengths == {4}  # words of a bitmap


@CASES
def test_arrays_that_are_only_read_are_not_copied(undirected: gp.Graph, device: str, copies: bool) -> None:
    frontier, _ = frontier_of(undirected, None, device, 3, copies=True)
    operators: Any = frontier._run.operators
    indptr, _, _ = frontier.csr()
    degrees = gp.process_vertices(lambda v, indptr: indptr[v + 1] - indptr[v], frontier, [indptr])
    assert degrees == undirected.num_stored_edges
    assert all(given[0] is indptr for given in operators._lend((indptr,)))


def test_one_array_given_twice_stays_one(undirected: gp.Graph) -> None:
    def double(v: Any, one: Any, other: Any) -> Any:
        one[v] += 1
        other[v] += 1
        return 0

    frontier, _ = frontier_of(undirected, None, "cpu", 3, copies=True)
    numbers = frontier.full(0, np.int64)
    gp.process_vertices(double, frontier, [numbers, numbers])
    assert set(numbers.tolist()) == {2}


@pytest.mark.parametrize(("partitions", "error"), [(0, ArgumentError), (5, ArgumentError), ("3", ArgumentTypeError)])
def test_invalid_numbers_of_partitions(undirected: gp.Graph, partitions: Any, error: Any) -> None:
    with pytest.raises(error, match="partitions must be"):
        gp.Frontier(undirected, device="cpu", partitions=partitions)


def test_frontiers_of_other_partitions_are_not_united(undirected: gp.Graph) -> None:
    three = gp.Frontier(undirected, [1], device="cpu", partitions=3)
    with pytest.raises(ArgumentError, match=r"have 3 and 1 partitions: use frontier\.chosen\(other\.vertices\(\)\)"):
        three | gp.Frontier(undirected, [1], device="cpu")


def refuse(v: Any) -> Any:
    if v == 150:
        raise ValueError("refused")
    return 0


def test_errors_name_the_vertex_and_the_line_in_any_partition() -> None:
    graph = gp.Graph.from_edgelist([f"p{v}" for v in range(199)], [f"p{v + 1}" for v in range(199)])
    for device in ("cpu", "python"):
        frontier, _ = frontier_of(graph, None, device, 3, copies=True)
        with pytest.raises(ValueError, match="refused") as caught:
            gp.process_vertices(refuse, frontier)
        assert "'p150'" in "".join(caught.value.__notes__)


@pytest.mark.parametrize("device", [on("cpu"), on("emulated")])
def test_pairs_of_rows_of_several_owners(directed: gp.Graph, device: str) -> None:
    def count(i: Any, u: Any, v: Any, w: Any, weight_u: Any, weight_v: Any) -> int:
        return 1

    one = gp.Frontier(directed, [0, 200, 260], device=device)
    three, _ = frontier_of(directed, [0, 200, 260], device, 3, copies=False)
    for frontier in (one, three, one.everything(), three.everything()):
        found = frontier.download(gp.intersect_rows(count, frontier)).tolist()
        ends = [frontier.download(end).tolist() for end in frontier.edges()]
        numbers = [{*directed.neighbors(v).tolist()} for v in range(directed.num_vertices)]
        assert found == [len(numbers[u] & numbers[v]) for u, v in zip(*ends, strict=True)]
    assert (
        three.download(gp.sample_rows(three, 2).neighbors).tolist()
        == one.download(gp.sample_rows(one, 2).neighbors).tolist()
    )
    apart, _ = frontier_of(directed, None, device, 3, copies=True)
    with pytest.raises(ArgumentError, match=r"intersect_rows reads rows of several partitions.*partitions=1"):
        gp.intersect_rows(count, apart, pairs=one.edges())
