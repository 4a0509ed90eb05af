"""The work of the CUDA kernels of operators, in accesses: each edge once, wherever its row lies."""

from __future__ import annotations

import functools
import gc
from typing import Any, Literal

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel import atomics
from gpu_pregel.host.devices import get_device
from gpu_pregel.host.traverse.items import items
from gpu_pregel.kernels.library.jit_cuda import BLOCK, WARP
from gpu_pregel.kernels.traverse.frontier_cuda import CONTROL_LENGTH, FOLDED
from gpu_pregel.kernels.traverse.rows_cuda import HUB_EDGES
from tests.counts import Accesses, count, count_launches, count_lines
from tests.devices import EMULATED

pytestmark = EMULATED
N = 13 * BLOCK
ROWS = {"short": (4, 16), "medium": (64, HUB_EDGES), "hub": (2 * HUB_EDGES + 100, 3 * HUB_EDGES)}
Mode = Literal["push", "pull"]


def visit(u: int, v: int, weight: float, marks: Any, hops: int) -> bool:
    atomics.store(marks, v, hops)
    return True


def is_new(v: int, marks: Any, hops: int) -> bool:
    return bool(atomics.load(marks, v) < hops)


@functools.cache
def work(mode: Mode, length: int, row: int = 31, n: int = N, hops: int = 1) -> dict[str, Accesses]:
    """Count an operator on a star whose row of that length is read, in a push or in a pull."""
    device: Any = get_device("emulated")
    others = np.arange(length) + (40 if row < 40 else 0)
    src, dst = np.full(length, row), others
    if mode == "pull":
        src, dst = dst, src
    graph = gp.Graph.from_edgelist(src, dst, num_vertices=n, directed=True)
    frontier = gp.Frontier(graph, device="emulated")
    marks = frontier.upload(np.zeros(n, np.int32))
    return count(device, lambda: gp.process_edges(visit, frontier, [marks, hops], receives=is_new, mode=mode))


@pytest.mark.parametrize("row", ROWS)
def test_a_push_reads_each_edge_once(row: str) -> None:
    """Its index and the receiver's mark, which it sets; of each vertex found the degree, the queue's entry, a bit."""
    few, many = ROWS[row]
    added, edges = work("push", many)["push"] - work("push", few)["push"], many - few
    assert added[:2] == (2 * edges, edges)
    # A warp appends at least 32 vertices at a time, and adds up their edges.
    assert 3 * edges <= added.atomics <= 3 * edges + edges // 32
    assert added.sectors <= 0.75 * edges


@pytest.mark.parametrize("row", ROWS)
def test_a_pull_leaves_rows_that_do_not_receive_any_more(row: str) -> None:
    """After one edge, as all vertices are active, and each piece of a hub for itself."""
    few, many = (work("pull", length)["pull"] for length in ROWS[row])
    assert few == many
    one = work("pull", 1)["pull"]
    # The mark is read when the row begins and after the edge, for which it is set.
    assert (few - one).atomics == (3 * 3 if row == "hub" else 0)


@pytest.mark.parametrize("mode", ["push", "pull"])
@pytest.mark.parametrize("row", ROWS)
def test_the_place_of_a_row_does_not_matter(mode: Mode, row: str) -> None:
    few, _ = ROWS[row]
    counts = [work(mode, few, place)[mode][:3] for place in (31, 0, N - 1)]
    assert counts == counts[:1] * 3


@pytest.mark.parametrize("mode", ["push", "pull"])
def test_work_grows_with_the_vertices(mode: Mode) -> None:
    one, two, three = (work(mode, 16, n=N * times) for times in (1, 2, 3))
    for kernel in one:
        assert three[kernel] - two[kernel] == two[kernel] - one[kernel]


def test_a_pull_reads_no_rows_where_nobody_receives() -> None:
    """Only the marks, by which the body decides."""
    assert work("pull", 16, hops=0)["pull"][:3] == (0, 0, N)


def test_the_words_of_a_set_are_counted_once() -> None:
    """Each word is read once, and the degree of each of its vertices."""
    frontier, device = gp.Frontier(gp.grid(100), device="emulated"), get_device("emulated")
    found = count(device, lambda: frontier.chosen([5, 77]))  # type: ignore[arg-type]
    assert found["count_words"].loads == -(-frontier.graph.num_vertices // 32) + 2


def test_rows_are_read_in_parts_that_double() -> None:
    """The 61st neighbour is the only one that sends: after 4, 8, 16 and 32 edges a warp reads 32 of the next 64."""
    graph = gp.Graph.from_edgelist(np.arange(1, 1001), np.zeros(1000, np.int64), directed=True)
    device: Any = get_device("emulated")
    frontier = gp.Frontier(graph, [61], device="emulated")
    marks = frontier.upload(np.zeros(1001, np.int32))

    def pull() -> None:
        gp.process_edges(visit, frontier, [marks, 1], receives=is_new, mode="pull")

    assert count_lines(device, pull, "pull", "load(indices") == 4 + 8 + 16 + 32 + 32


def test_all_vertices_but_one_push_where_all_receive() -> None:
    """Although most edges are active: a pull would read all of them too."""
    device: Any = get_device("emulated")
    frontier = gp.Frontier(gp.grid(3), np.arange(8), device="emulated")
    marks = frontier.upload(np.zeros(9, np.int32))

    def superstep() -> None:
        gp.process_edges(visit, frontier, [marks, 1])

    assert "push" in count(device, superstep)


def test_storage_is_cleared_by_the_shorter_of_queue_and_words() -> None:
    frontier = gp.Frontier(gp.grid(100), device="emulated")
    device: Any = get_device("emulated")

    def cleared(vertices: Any) -> tuple[int, ...]:
        frontier.chosen(vertices)  # its storage is free at once
        return count(device, lambda: frontier.chosen([1]))["clear"][:2]

    assert cleared([5, 77]) == (2, 2 + CONTROL_LENGTH)
    assert cleared(np.arange(100)) == (0, -(-10_000 // 32) + CONTROL_LENGTH)


LAUNCHES: dict[str, Any] = {
    "push": lambda frontier, arrays: gp.process_edges(visit, frontier, arrays, receives=is_new, mode="push"),
    "pull": lambda frontier, arrays: gp.process_edges(visit, frontier, arrays, receives=is_new, mode="pull"),
    "filter_words": lambda frontier, arrays: gp.process_vertices(is_new, frontier, arrays, returns="frontier"),
    "sum_over_vertices": lambda frontier, arrays: gp.process_vertices(is_new, frontier, arrays),
}


@pytest.mark.usefixtures("young_heap")
@pytest.mark.parametrize("name", LAUNCHES)
def test_launches_of_an_operator(name: str) -> None:
    """The storage of the last result but one is cleared and used again; sums of blocks are added by one more block."""
    device: Any = get_device("emulated")
    frontier = gp.Frontier(gp.Graph.from_edgelist([31] * 4, [40, 41, 42, 43], num_vertices=N), device="emulated")
    marks = frontier.upload(np.zeros(N, np.int32))
    other = "fold" if name == "sum_over_vertices" else "clear"
    for hops in range(1, 5):
        found, readbacks = count_launches(device, functools.partial(LAUNCHES[name], frontier, [marks, hops]))
        assert readbacks == 1
        assert found == {name: 1, other: 1} or (hops <= 2 and found == {name: 1})
        gc.collect()  # frames of the first call's compilation, in cycles of Numba's exceptions, keep storage


def test_no_block_adds_the_sums_of_many_warps() -> None:
    """Beyond ``FOLDED`` of them, the sums of blocks are added by one more launch."""
    device: Any = get_device("emulated")
    n = WARP * FOLDED + 1
    frontier = gp.Frontier(gp.Graph.from_edgelist([0], [n - 1], num_vertices=n), device="emulated")

    def add_rows() -> None:
        found = gp.reduce_rows(lambda v, u, w: 2.0, "sum", frontier, finish=lambda v, x: x + 0.5, returns="sum")
        assert found == n / 2 + 4

    launches, _ = count_launches(device, add_rows)
    assert launches == {"reduce_rows": 1, "fold": 2}


def made_by(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list in which the device enters how its arrays are made from now on."""
    device, made = type(get_device("emulated")), list[str]()

    def entering(name: str) -> Any:
        method = getattr(device, name)

        def enter(*arguments: Any) -> Any:
            made.append(name)
            return method(*arguments)

        return enter

    for name in ("empty", "zeros", "full", "upload"):
        monkeypatch.setattr(device, name, entering(name))
    return made


@pytest.mark.parametrize("primitive", ["reduce_rows", "count_labels"])
def test_other_rows_take_no_part_in_kernels_over_hubs(primitive: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays for pieces of hubs are used again."""
    device: Any = get_device("emulated")

    def work(n: int) -> dict[str, Accesses]:
        graph = gp.Graph.from_edgelist(np.zeros(5000, int), np.arange(1, 5001), num_vertices=n, directed=True)
        frontier = gp.Frontier(graph, device="emulated")

        def call() -> None:
            if primitive == "reduce_rows":
                gp.reduce_rows(lambda v, u, w: u, "sum", frontier, finish=lambda v, x: x, returns=None)
            else:
                gp.count_labels(lambda v, u, w: u % 7, frontier, finish=lambda v, label, total: label, returns=None)

        found = count(device, call)
        made = made_by(monkeypatch)
        call()
        assert made == []
        monkeypatch.undo()
        return found

    few, many = work(6000), work(60_000)
    rows = "reduce_rows" if primitive == "reduce_rows" else "count_rows"
    assert few.pop(rows).loads < many.pop(rows).loads
    assert few == many
    assert len(few) == (1 if primitive == "reduce_rows" else 3)


def test_a_set_of_all_vertices_needs_no_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples and walks make one in each call; only what a body might record has zeros."""
    numbers: Any = get_device("emulated").zeros(9, np.int64)
    made = made_by(monkeypatch)
    gp.process_vertices(lambda v, x: atomics.store(x, v, v), items(9, get_device("emulated")), [numbers], returns=None)
    assert set(made) == {"empty", "zeros"}
    assert made.count("zeros") == 1
    assert numbers.get().tolist() == list(range(9))
