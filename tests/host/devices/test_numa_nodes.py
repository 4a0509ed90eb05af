"""Regions of two pretended NUMA nodes: who begins with which share, where it is bound, and equal results."""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.host.devices import threads as region_threads
from gpu_pregel.host.devices.topology import NodeThreads, threads_by_node
from gpu_pregel.kernels.library.jit_cpu import jit
from gpu_pregel.kernels.library.ranges_cpu import claim_range, join
from gpu_pregel.kernels.library.work_cpu import claim
from tests.programs import LABELS

pytestmark = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="threads cannot be bound on this system")
Nodes = tuple[frozenset[int], ...]


def pretended(*sizes: int) -> Nodes:
    """Nodes of 1 or 2 processors; where there is only one, they share it."""
    usable = sorted(os.sched_getaffinity(0))
    first, last = usable[0], usable[-1]
    return tuple(frozenset([last, first][:size] if number else [first]) for number, size in enumerate(sizes))


@pytest.fixture
def divided(monkeypatch: pytest.MonkeyPatch) -> list[list[NodeThreads]]:
    """How each region was divided."""
    found: list[list[NodeThreads]] = []

    def spy(count: int, nodes: Nodes) -> list[NodeThreads]:
        found.append(threads_by_node(count, nodes))
        return found[-1]

    monkeypatch.setattr(region_threads, "threads_by_node", spy)
    return found


def pretend(monkeypatch: pytest.MonkeyPatch, nodes: Nodes) -> None:
    monkeypatch.setattr(region_threads, "numa_nodes", lambda: nodes)


@jit
def claim_once(work: Any) -> Any:
    return claim(work)


@jit
def join_once(work: Any) -> Any:
    return join(work)


@jit
def claim_range_once(work: Any, line: Any) -> Any:
    return claim_range(work, line)


class Region:
    """A kernel that notes who claims what; no thread claims twice before all have claimed once."""

    by_node = may_loop = True

    def __init__(self, threads: int, *, ranges: bool) -> None:
        self._ranges, self._begun = ranges, threading.Barrier(threads)
        self.firsts: dict[int, tuple[frozenset[int], int]] = {}
        self.items: list[int] = []

    def __call__(self, work: Any) -> None:
        line = join_once(work) if self._ranges else None
        while True:
            first, last = claim_once(work) if line is None else claim_range_once(work, line)
            if first == last:
                return
            self.items += range(first, last)
            thread = threading.get_ident()
            if thread not in self.firsts:
                self.firsts[thread] = (frozenset(os.sched_getaffinity(0)), first)
                self._begun.wait(10)


@pytest.mark.parametrize("ranges", [False, True], ids=["chunks", "ranges"])
@pytest.mark.parametrize(
    ("sizes", "threads", "shares"),
    [((1, 1), 4, [(2, 0, 20), (2, 20, 40)]), ((1, 2), 4, [(1, 0, 10), (3, 10, 40)]), ((1, 1), 3, None)],
)
def test_threads_begin_with_the_share_of_their_node_and_are_bound_to_it(
    monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...], threads: int, shares: Any, ranges: bool
) -> None:
    nodes = pretended(*sizes)
    pretend(monkeypatch, nodes)
    region = Region(threads, ranges=ranges)
    if ranges:
        region_threads.parallel_ranges(region, 40, threads=threads)
    else:
        region_threads.parallel(region, 40, 1, threads=threads)
    assert sorted(region.items) == list(range(40))
    for node, (count, first, last) in zip(nodes, shares or [(2, 0, 26), (1, 26, 40)], strict=True):
        own = [place for _, place in region.firsts.values() if first <= place < last]
        assert len(own) == count
        assert all(bound == node for bound, place in region.firsts.values() if first <= place < last)


def test_a_region_of_one_share_runs_on_all_processors_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, pretended(1, 1))
    region_threads.parallel(Region(2, ranges=False), 40, 1, threads=2)
    free = Region(2, ranges=False)
    free.by_node = False
    region_threads.parallel(free, 40, 1, threads=2)
    assert {bound for bound, _ in free.firsts.values()} == {frozenset(os.sched_getaffinity(0))}


def test_a_failure_stops_the_shares_of_all_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, pretended(1, 1))
    claimed: list[int] = []

    def kernel(work: Any) -> None:
        while (first := claim_once(work)[0]) < (1 << 20):
            claimed.append(first)
            if first >= 1 << 19:
                raise ValueError("an item of the second node")

    kernel.by_node = True  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="second node"):
        region_threads.parallel(kernel, 1 << 20, 1, threads=2)
    assert len(claimed) < 1 << 20


def test_progress_is_that_of_all_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, pretended(1, 1))
    told: list[tuple[int, int]] = []
    seen = threading.Event()

    def kernel(work: Any) -> None:
        claim_once(work)
        seen.wait(10)
        while claim_once(work)[0] < work[1]:
            pass

    def tick(done: int, size: int) -> None:
        told.append((done, size))
        if done == 2:
            seen.set()

    kernel.by_node = True  # type: ignore[attr-defined]
    region_threads.parallel(kernel, 40, 1, threads=2, tick=tick)
    assert told[-1] == (40, 40)
    assert (2, 40) in told


def half(v: Any, counts: Any) -> Any:
    counts[v] += 1
    return 0.1 * v


def odd(v: Any, counts: Any) -> Any:
    return counts[v] == 1 and v % 2 == 1


def lower(u: Any, v: Any, weight: Any, labels: Any) -> Any:
    return gp.atomics.write_min(labels, v, gp.atomics.load(labels, u))


def shares(u: Any, v: Any, weight: Any, labels: Any) -> Any:
    return 0.1 * (labels[u] == labels[v])


def outcome(graph: gp.Graph, mode: Any) -> list[Any]:
    """What vertices, edges and a program give."""
    n = graph.num_vertices
    counts, labels = np.zeros(n, np.int64), np.arange(n)
    frontier = gp.Frontier(graph, device="cpu", threads=4)
    found: list[Any] = [gp.process_vertices(half, frontier, [counts])]
    found += [counts, gp.process_vertices(odd, frontier, [counts], returns="frontier").vertices()]
    found.append(gp.process_edges(shares, frontier, [labels], returns="sum", mode=mode))
    while frontier:
        frontier = gp.process_edges(lower, frontier, [labels], mode=mode)
    return [*found, labels, gp.run(graph, LABELS, device="cpu", threads=4, mode=mode).values]


@pytest.mark.parametrize("mode", ["push", "pull"])
@pytest.mark.parametrize("sizes", [(1, 1), (1, 2)], ids=["even", "uneven"])
def test_operators_and_programs_give_the_same_on_two_nodes(
    monkeypatch: pytest.MonkeyPatch, divided: list[list[NodeThreads]], sizes: tuple[int, ...], mode: Any
) -> None:
    graph = gp.kronecker(14, seed=1)
    pretend(monkeypatch, pretended(1))
    expected = outcome(graph, mode)
    assert {len(nodes) for nodes in divided} == {1}
    divided.clear()
    pretend(monkeypatch, pretended(*sizes))
    for one, other in zip(outcome(graph, mode), expected, strict=True):
        np.testing.assert_array_equal(one, other)
    assert {tuple(one.threads for one in nodes) for nodes in divided} >= {(2, 2) if sizes == (1, 1) else (1, 3)}
