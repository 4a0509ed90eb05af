"""The work of the CUDA kernels of vertex programs, in accesses: each edge once, wherever its row lies."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.host.devices.emulated import EmulatedDevice
from gpu_pregel.host.emulator.machine.arrays import EmulatedMemory
from gpu_pregel.host.graphs.partitions import pack_bits
from gpu_pregel.host.programs.factory import compile_for_device, make_state
from gpu_pregel.host.programs.state import Activity
from gpu_pregel.kernels.library.jit_cuda import BLOCK
from gpu_pregel.kernels.traverse.rows_cuda import HUB_EDGES
from tests.counts import Accesses, count, count_launches
from tests.devices import EMULATED
from tests.programs import DISTANCES, LABELS, SEARCH

pytestmark = EMULATED
N = 13 * BLOCK
PROGRAMS = {"labels": LABELS, "search": SEARCH, "distances": DISTANCES}
ALL_PROGRAMS = {**PROGRAMS, "smallest labels": LABELS}
"""In the last, every label is 0, the smallest possible."""
DEVICE = EmulatedDevice(0, EmulatedMemory())
ROWS = {"short": (4, 16), "medium": (64, HUB_EDGES), "hub": (2 * HUB_EDGES + 100, 3 * HUB_EDGES)}
"""Two lengths of rows of each class; those of hubs have as many pieces."""


@functools.cache
def work(program: str, mode: str, length: int, row: int = 31, n: int = N) -> dict[str, Accesses]:
    """Count a superstep in which one row of that length is sent from, or all vertices are and one row is received."""
    state = begin(program, mode, length, row, n)

    def superstep() -> None:
        if mode == "push":
            state._push(0, 0)
        else:
            state._pull(0, Activity(n, length))
        if program == "labels":
            state._apply(1, 0, edge_limit=1 << 62)

    return count(DEVICE, superstep)


def begin(program: str, mode: str, length: int, row: int = 31, n: int = N) -> Any:
    others = np.arange(length) + (40 if row < 40 else 0)
    src, dst = np.full(length, row), others
    if mode == "pull":
        src, dst = dst, src
    weights = np.ones(length) if program == "distances" else None
    graph = gp.Graph.from_edgelist(src, dst, weights, num_vertices=n, directed=True)
    declared = ALL_PROGRAMS[program]
    state: Any = make_state(DEVICE, graph, compile_for_device(DEVICE, graph, declared), always=False)
    flags = np.full(n, mode == "pull")
    flags[row] = True
    values = np.where(flags & (mode == "push"), 0, -1) if program == "search" else np.arange(1, n + 1)
    if program == "smallest labels":
        values = np.zeros(n)
    state.attach([values.astype(declared.value)], pack_bits(flags))
    return state


def kernel_of(program: str, mode: str) -> str:
    return mode


# Loads, stores and atomics of an edge: its index and weight, the sender's or the receiver's value, the receiver's bit
# of the frontier; its inbox and mark.
PER_EDGE = {
    ("labels", "push"): (1, 0, 2),
    ("labels", "pull"): (2, 0, 0),
    ("distances", "push"): (3, 0, 2),
    ("distances", "pull"): (3, 0, 0),
    ("search", "push"): (3, 1, 1),
}


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize(("program", "mode"), PER_EDGE)
def test_each_edge_is_read_once(program: str, mode: str, row: str) -> None:
    (few, many), kernel = ROWS[row], kernel_of(program, mode)
    added = work(program, mode, many)[kernel] - work(program, mode, few)[kernel]
    assert added[:3] == tuple((many - few) * each for each in PER_EDGE[program, mode])
    # Neighbouring lanes read neighbouring edges: 8 of 4 bytes in a sector, each of three arrays of up to 8 bytes.
    assert added.sectors <= (many - few) * 0.8


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize(("program", "mode"), PER_EDGE)
def test_the_place_of_a_row_does_not_matter(program: str, mode: str, row: str) -> None:
    """The first and the last lane, and the last vertex."""
    (few, _), kernel = ROWS[row], kernel_of(program, mode)
    counts = [work(program, mode, few, place)[kernel]._replace(sectors=0) for place in (31, 0, N - 1)]
    assert counts == counts[:1] * 3


# Shuffles and ballots for 32 edges: a search for the rows of all lanes (5), the place of an edge there (1) and, in a
# push, the message or its sender (1); in a pull, where a row begins (1), a scan (5) and its end (1), both of numbers
# of 64 bits in two parts, and ballots of the rows whose message is final (1) and of the edges with a message (1).
PER_STEP = {
    ("labels", "push"): 7,
    ("labels", "pull"): 15,
    ("distances", "push"): 7,
    ("distances", "pull"): 21,
    ("search", "push"): 7,
}


def steps(length: int) -> int:
    """Return how often warps read 32 edges of a row: rows of hubs are divided into pieces."""
    return sum(-(-min(HUB_EDGES, length - begin) // 32) for begin in range(0, length, HUB_EDGES))


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize(("program", "mode"), PER_STEP)
def test_warp_operations_of_edges(program: str, mode: str, row: str) -> None:
    (few, many), kernel = ROWS[row], kernel_of(program, mode)
    added = work(program, mode, many)[kernel] - work(program, mode, few)[kernel]
    assert added.warp_operations == (steps(many) - steps(few)) * PER_STEP[program, mode]


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_warp_operations_of_a_push(program: str, row: str) -> None:
    """A ballot for 8 words; for the active one its data (4), the sum of its rows (6), and that of each piece."""
    length = ROWS[row][0]
    pieces = -(-length // HUB_EDGES) if row == "hub" else 0
    expected = N // BLOCK + 4 + 6 * (1 + pieces) + 7 * steps(length)
    assert work(program, "push", length)["push"].warp_operations == expected


@pytest.mark.parametrize("row", ROWS)
def test_rows_are_left_when_their_message_is_final(row: str) -> None:
    """Any message will do: a warp reads one edge of a row, or 32 of a piece of a hub, and shuffles for no others."""
    few, many = (work("search", "pull", length)["pull"] for length in ROWS[row])
    assert few == many
    assert row == "hub" or few == work("search", "pull", 16)["pull"]


@pytest.mark.parametrize("row", ["medium", "hub"])
def test_rows_are_left_when_their_message_is_the_smallest(row: str) -> None:
    """After 32 edges, of which each is an index and a message; then follows one ballot, which tells all lanes."""
    few, many = (work("smallest labels", "pull", length)["pull"] for length in ROWS[row])
    assert few == many
    if row == "medium":
        added = few - work("smallest labels", "pull", 16)["pull"]
        assert (added.loads, added.warp_operations) == (2 * (32 - 16), PER_STEP["labels", "pull"])


@pytest.mark.parametrize(("program", "mode"), [*PER_EDGE, ("search", "pull")])
def test_work_grows_with_the_vertices(program: str, mode: str) -> None:
    """Every block does the same, so that what is read for each of them, or by each of them, is read once."""
    one, two, three = (work(program, mode, 16, n=N * times) for times in (1, 2, 3))
    for kernel in one:
        assert three[kernel] - two[kernel] == two[kernel] - one[kernel]


def test_what_a_vertex_costs() -> None:
    """A pull reads the bounds of rows and marks those with messages; an apply reads the marks of vertices.

    The apply also writes words of two bitmaps, and three sums a block.
    """
    one, two = (work("labels", "pull", 16, n=N * times) for times in (1, 2))
    added, blocks = {kernel: two[kernel] - one[kernel] for kernel in one}, N // BLOCK
    assert added["dense_signal"][:3] == (2 * N, N, 0)
    assert added["pull"][:3] == (2 * N, N + N // 32, 0)
    # The sum of the lengths of a warp's rows, and a ballot of those with messages.
    assert added["pull"].warp_operations == 7 * N // 32
    assert added["apply_messages"][:3] == (N + 3 * blocks, N // 16 + 3 * blocks, blocks)


def test_pieces_of_a_hub_are_combined_once() -> None:
    two, four = (work("labels", "pull", length)["dense_slot"] for length in (2 * HUB_EDGES, 3 * HUB_EDGES + 1))
    assert (four - two)[:3] == (2 * 2, 0, 0)
    # One warp: two pieces and their marks, their bounds, the vertex and its inbox; one lane writes.
    assert (two.loads, two.stores) == (2 * 2 + 2 * 32 + 2, 1)


@pytest.mark.parametrize("length", [4, 64])
def test_a_push_reads_the_bitmap_and_the_rows_of_its_vertices(length: int) -> None:
    """Of the one sender the bounds of its row and its value."""
    loads = {program: work(program, "push", length)["push"].loads for program in ("labels", "search")}
    assert loads == {"labels": N // 32 + 3 + length, "search": N // 32 + 3 + 3 * length}


def test_an_apply_after_a_push_reads_only_inboxes_with_messages() -> None:
    """For each warp it reads a word of marks and writes a word of two bitmaps; of each block three sums, read later."""
    one, two = (work("labels", "push", 16, n=N * times)["apply_messages"] for times in (1, 2))
    assert (two - one).sectors <= 3 * (N // 32) + 5 * (N // BLOCK)


LAUNCHES = [
    ("push", "short", ["push", "apply_messages"]),
    ("push", "hub", ["push", "apply_messages"]),
    ("pull", "short", ["dense_signal", "pull", "apply_messages"]),
    ("pull", "hub", ["dense_signal", "pull", "dense_slot", "apply_messages"]),
]
"""Chains, batches and partitions: tests/host/programs/test_cuda_state.py and test_cuda_chains.py."""


@pytest.mark.parametrize(("mode", "row", "kernels"), LAUNCHES)
def test_launches_of_a_superstep(mode: str, row: str, kernels: list[str]) -> None:
    """Each kernel once, and one readback; a frontier with many edges, so that a push is no chain."""
    state = begin("labels", mode, ROWS[row][0])
    found = count_launches(DEVICE, lambda: state.execute(mode, 1, Activity(N, 1 << 30), (), 1))
    assert found == (dict.fromkeys(kernels, 1), 1)


@pytest.mark.parametrize("program", ["distances", "search"])
def test_a_message_along_each_edge_needs_no_launch_of_its_own(program: str) -> None:
    assert list(work(program, "pull", ROWS["short"][0])) == ["pull"]
    assert list(work(program, "pull", ROWS["hub"][0])) == ["pull", "dense_slot"]
