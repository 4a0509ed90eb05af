"""Ranges of threads: chunks begin small and grow where items are cheap, and threads steal from the ends of others."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.host.devices.threads import parallel_ranges
from gpu_pregel.kernels.library.jit_cpu import jit
from gpu_pregel.kernels.library.ranges_cpu import (
    BEGAN,
    CHUNK,
    DEADLINE,
    LINE,
    claim_range,
    first_left,
    join,
    make_ranges,
    nanoseconds,
)
from gpu_pregel.kernels.library.work_cpu import NEXT, WORK_LENGTH


@jit
def claim_once(work: Any, line: Any) -> Any:
    return claim_range(work, line)


@jit
def join_once(work: Any) -> Any:
    return join(work)


@jit
def now() -> Any:
    return nanoseconds()


def line_of(number: int) -> int:
    return WORK_LENGTH + LINE * number


def claims(work: Any, number: int) -> list[tuple[int, int]]:
    """All chunks that a thread claims which finds every chunk as expensive as the last one."""
    found = []
    while (chunk := claim_once(work, line_of(number)))[0] < chunk[1]:
        found.append(chunk)
        work[line_of(number) + BEGAN] = now() - 50_000
    return found


def test_the_clock_is_that_of_python() -> None:
    before = time.monotonic_ns()
    moment = now()
    assert before <= moment <= time.monotonic_ns()


def test_threads_get_equal_ranges_and_begin_with_one_item() -> None:
    work = make_ranges(6, 106, 4)
    assert [join_once(work) for _ in range(4)] == [line_of(k) for k in range(4)]
    assert [claim_once(work, line_of(k)) for k in range(4)] == [(6, 7), (31, 32), (56, 57), (81, 82)]


def test_chunks_grow_while_they_are_cheap_and_shrink_while_they_are_not() -> None:
    work, line = make_ranges(0, 1 << 20, 1), line_of(0)
    sizes = []
    for cost in (0, 0, 0, 50_000, 200_000, 200_000, *[0] * 12):
        first, last = claim_once(work, line)
        sizes.append(last - first)
        work[line + BEGAN] = now() - cost if cost else now()
    assert sizes[:7] == [1, 2, 4, 8, 8, 4, 2]
    assert sizes[-1] == 512


def test_a_thread_without_work_takes_half_of_the_rest_of_another() -> None:
    work = make_ranges(0, 80, 4)
    assert claims(work, 3)[:2] == [(60, 61), (61, 62)]  # its own, and then all of the others'
    work = make_ranges(0, 80, 4)
    for _ in range(20):
        claim_once(work, line_of(2))
        work[line_of(2) + BEGAN] = now() - 50_000
    assert claim_once(work, line_of(2)) == (70, 71)  # of thread 3
    assert claim_once(work, line_of(3)) == (60, 61)
    work = make_ranges(0, 80, 4)
    assert sorted(item for first, last in claims(work, 0) for item in range(first, last)) == list(range(80))


def test_threads_of_other_nodes_have_no_range_and_steal() -> None:
    work = make_ranges(80, 120, 2, helpers=2)
    assert [join_once(work) for _ in range(4)] == [line_of(k) for k in range(4)]
    assert claim_once(work, line_of(0)) == (80, 81)
    assert claim_once(work, line_of(2)) == (90, 91)  # the second half of the first thread's rest
    assert claim_once(work, line_of(1)) == (100, 101)


def test_every_item_is_claimed_once_whoever_steals() -> None:
    work = make_ranges(3, 1003, 3)
    taken: list[int] = []
    turn, active = 0, [0, 1, 2]
    while active:
        number = active[turn * turn % len(active)]
        first, last = claim_once(work, line_of(number))
        work[line_of(number) + CHUNK] = 1 + turn % 5
        work[line_of(number) + BEGAN] = now() - 50_000
        taken += range(first, last)
        if first == last:
            active.remove(number)
        turn += 1
    assert sorted(taken) == list(range(3, 1003))


def test_a_deadline_and_a_failure_stop_the_claims() -> None:
    work = make_ranges(0, 10, 1, deadline=now() + 10**12)
    assert claim_once(work, line_of(0)) == (0, 1)
    work[DEADLINE] = now() - 1
    assert claim_once(work, line_of(0)) == (0, 0)
    assert first_left(work) == 1
    work = make_ranges(0, 10, 1)
    work[NEXT] = 1 << 62
    assert claim_once(work, line_of(0)) == (0, 0)


@jit
def spin(work: Any, owners: Any, heavy: Any) -> None:
    line = join(work)
    first, last = claim_range(work, line)
    while first < last:
        for item in range(first, last):
            if item < heavy:
                end = nanoseconds() + 200_000
                while nanoseconds() < end:
                    pass
            owners[item] = line
        first, last = claim_range(work, line)


@pytest.mark.parametrize("heavy", [256, 64], ids=["all heavy", "one range heavy"])
def test_heavy_items_are_shared(heavy: int) -> None:
    owners = np.zeros(256, np.int64)
    parallel_ranges(spin, 256, owners, heavy, threads=2)
    assert (owners > 0).all()
    assert len(np.unique(owners[:heavy])) == 2


def weigh(v: Any, weights: Any) -> Any:
    total = weights[v]
    for _ in range(3000 if v % 1000 < 50 else 1):
        total = total * 0.999 + 0.1
    return total


def test_sums_are_the_same_to_the_bit_whatever_thread_computes_a_vertex() -> None:
    n = 40_000
    graph = gp.Graph.from_edgelist([], [], num_vertices=n)
    weights = np.random.default_rng(0).random(n)
    chosen = np.flatnonzero(weights < 0.4)
    found = set()
    for threads in (1, 2, 3, 7):
        everything = gp.Frontier(graph, device="cpu", threads=threads)
        some = gp.Frontier(graph, chosen, device="cpu", threads=threads)
        for _ in range(3):
            found.add((gp.process_vertices(weigh, everything, [weights]), gp.process_vertices(weigh, some, [weights])))
    assert len(found) == 1
    ((whole, part),) = found
    terms = np.array([weigh(v, weights) for v in range(n)])
    np.testing.assert_allclose([whole, part], [terms.sum(), terms[chosen].sum()], rtol=1e-12)
