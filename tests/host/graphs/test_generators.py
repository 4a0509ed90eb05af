"""Tests of the generators: determinism, properties of the models, and invalid arguments."""

from __future__ import annotations

from typing import Any, cast

import networkx
import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, NotEnoughMemoryError
from gpu_pregel.host.devices import memory
from gpu_pregel.host.graphs import generators

MAKERS = [
    lambda **options: gp.kronecker(10, 5, **options),
    lambda **options: gp.uniform(10, 5, **options),
    lambda **options: gp.grid(40, 50, **options),
]


@pytest.mark.parametrize("make", MAKERS)
def test_output_depends_on_the_seed_but_not_on_threads(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generators, "_CHUNK", 64)
    one, three, other = make(threads=1), make(threads=3), make(threads=3, seed=1)
    assert np.array_equal(one.indptr, three.indptr)
    assert np.array_equal(one.indices, three.indices)
    assert not np.array_equal(one.indptr, other.indptr)
    # from_csr checks validity and symmetry, and shares arrays that are sorted.
    again = gp.Graph.from_csr(one.indptr, one.indices)
    assert np.shares_memory(again.indices, one.indices)


@pytest.mark.parametrize("make", MAKERS[:2])
def test_random_graphs_have_no_duplicates_and_no_self_loops(make: Any) -> None:
    graph = make()
    src, dst, _ = graph.to_edgelist()
    assert (src < dst).all()
    assert not graph.has_duplicates
    assert graph.num_vertices == 1024


def test_uniform_degrees_are_poisson_like() -> None:
    graph = gp.uniform(14, 8)
    # Each of 8 * 2^14 edges has two ends; few edges are dropped as duplicates or self-loops.
    assert graph.num_stored_edges == pytest.approx(2 * 8 * 2**14, rel=0.01)
    assert graph.out_degrees.var() == pytest.approx(16, rel=0.05)


def test_kronecker_edges_follow_the_probabilities_of_graph500() -> None:
    from gpu_pregel.host.devices.threads import parallel
    from gpu_pregel.kernels.graphs import generate_cpu

    # At scale 1 an edge is one draw among the four quadrants, up to the permutation of the two vertices.
    src, dst = np.empty(200_000, np.uint32), np.empty(200_000, np.uint32)
    parallel(generate_cpu.kronecker_edges, len(src), 1000, 1, np.uint64(5), src, dst, threads=2)
    shares = np.bincount(2 * src + dst, minlength=4) / len(src)
    if shares[0] < shares[3]:
        shares = shares[::-1]
    assert shares == pytest.approx([0.57, 0.19, 0.19, 0.05], abs=0.005)


def test_kronecker_graphs_are_skewed_and_permuted() -> None:
    graph = gp.kronecker(14)
    degrees = graph.out_degrees
    assert degrees.max() > 30 * degrees.mean()
    assert (degrees == 0).mean() > 0.15
    # Without the permutation, the first half of the vertices would have 76 % of the ends.
    assert degrees[: 2**13].sum() / degrees.sum() == pytest.approx(0.5, abs=0.06)
    assert int(degrees.argmax()) != 0


@pytest.mark.parametrize("scale", range(12))
def test_the_permutation_is_one_to_one(scale: int) -> None:
    from gpu_pregel.kernels.graphs.generate_cpu import _scramble

    for seed in (0, 1, 2**64 - 1):
        images = {int(_scramble(np.uint64(v), scale, np.uint64(seed))) for v in range(1 << scale)}
        assert images == set(range(1 << scale))


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 5), (5, 1), (3, 4)])
def test_a_grid_without_holes_equals_that_of_networkx(rows: int, columns: int) -> None:
    graph = gp.grid(rows, columns, holes=0)
    expected = networkx.convert_node_labels_to_integers(networkx.grid_2d_graph(rows, columns), ordering="sorted")
    assert graph.num_vertices == rows * columns
    assert {tuple(sorted(edge)) for edge in expected.edges} == {
        (int(u), int(v)) for u, v in zip(*graph.to_edgelist()[:2], strict=True)
    }


def test_holes_have_no_edges_and_the_requested_share() -> None:
    graph = gp.grid(300, 300, holes=0.25)
    full = gp.grid(300, 300, holes=0)
    isolated = graph.out_degrees == 0
    # A crossing between four holes is also isolated: 0.75 * 0.25^4.
    assert isolated.mean() == pytest.approx(0.25 + 0.75 * 0.25**4, abs=0.01)
    src, dst, _ = full.to_edgelist()
    open_edges = ~isolated[src] & ~isolated[dst]
    assert graph.num_stored_edges == 2 * open_edges.sum()
    assert gp.grid(5, holes=1).num_stored_edges == 0


def test_smallest_graphs() -> None:
    assert gp.kronecker(0).num_stored_edges == 0
    assert gp.uniform(0, 3).num_vertices == 1
    assert gp.uniform(3, 0).num_stored_edges == 0
    assert gp.grid(0).num_vertices == 0


def test_narrow_integers_do_not_overflow() -> None:
    assert gp.grid(cast(int, np.int8(100))).num_vertices == 10_000
    assert gp.kronecker(cast(int, np.int8(9))).num_vertices == 512


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: gp.kronecker(-1), ArgumentError, "scale must be from 0 to 31, not -1"),
        (lambda: gp.kronecker(32), ArgumentError, "scale must be from 0 to 31, not 32"),
        (lambda: gp.kronecker(cast(int, 3.5)), ArgumentTypeError, r"scale must be a whole number, not 3\.5"),
        (lambda: gp.uniform(4, -1), ArgumentError, "edge_factor must be from 0"),
        (lambda: gp.uniform(4, seed=-1), ArgumentError, "seed must be from 0"),
        (lambda: gp.grid(cast(int, 2.0)), ArgumentTypeError, "rows must be a whole number"),
        (lambda: gp.grid(-1), ArgumentError, "rows must be from 0"),
        (lambda: gp.grid(1 << 20, 1 << 20), ArgumentError, "columns must be from 0"),
        (lambda: gp.grid(3, holes=1.5), ArgumentError, r"holes must be a probability from 0 to 1, not 1\.5"),
        (lambda: gp.grid(3, holes=cast(float, "many")), ArgumentError, "holes must be a probability"),
    ],
)
def test_bad_arguments(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_a_graph_that_does_not_fit_in_memory_is_rejected_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 8 << 30)
    with pytest.raises(NotEnoughMemoryError, match=r"needs \d+\.\d GiB of memory, but only 8\.0 GiB are available"):
        gp.kronecker(28)
    with pytest.raises(NotEnoughMemoryError, match="generating a grid of 1,073,741,824 crossings"):
        gp.grid(1 << 15)
