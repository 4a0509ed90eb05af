"""Tests of the work that the CUDA kernels of a vertex program do."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.algorithms.checkers.bfs import check_bfs
from gpu_pregel.host.devices import get_device
from tests.counts import counted
from tests.devices import EMULATED, EXHAUSTIVE

Array = np.ndarray[Any, Any]
ALPHA, BETA = 15, 18


def edges_examined(graph: gp.Graph, source: int) -> tuple[int, list[int]]:
    """Return the edges that the direction-optimising search of GAPBS examines, and the hops.

    Beamer, Asanović, Patterson, SC 2012: it goes bottom-up while the edges of the frontier are more than 1 / ALPHA of
    those not yet explored, until the frontier shrinks below 1 / BETA of the vertices.
    """
    indptr, indices, _ = graph.to_csr()
    degrees, hops = np.diff(indptr), np.full(graph.num_vertices, -1)
    hops[source] = level = examined = 0
    front, unexplored, scout, bottom_up = np.array([source]), len(indices), int(degrees[source]), False
    while len(front):
        level += 1
        bottom_up = bottom_up or scout > unexplored // ALPHA
        if bottom_up:
            rows = [indices[indptr[v] : indptr[v + 1]] for v in np.flatnonzero(hops < 0)]
            hits = [np.flatnonzero(hops[row] == level - 1) for row in rows]
            examined += sum(int(hit[0]) + 1 if len(hit) else len(row) for row, hit in zip(rows, hits, strict=True))
            found = np.flatnonzero(hops < 0)[[len(hit) > 0 for hit in hits]]
            bottom_up, scout = len(found) >= len(front) or len(found) > graph.num_vertices // BETA, 1
        else:
            unexplored, examined = unexplored - scout, examined + int(degrees[front].sum())
            reached = np.unique(np.concatenate([indices[indptr[v] : indptr[v + 1]] for v in front]))
            found = reached[hops[reached] < 0]
            scout = int(degrees[found].sum())
        hops[found] = level
        front = found
    return examined, hops.tolist()


def test_the_simulation_of_gapbs() -> None:
    """On a star of six leaves, of which one has a leaf of its own."""
    star = gp.Graph.from_edgelist([0, 0, 0, 0, 0, 0, 6], [1, 2, 3, 4, 5, 6, 7])
    # Bottom-up from the start: 6 leaves and vertex 7 read an edge each; then vertex 7 again; nothing is left to read.
    assert edges_examined(star, 0) == (8, [0, 1, 1, 1, 1, 1, 1, 2])


@EMULATED
@pytest.mark.parametrize("name", ["kronecker", "uniform"])
def test_a_search_reads_few_edges(name: str) -> None:
    """At most 1.3 times those that GAPBS examines, although GAPBS keeps any parent and the search the smallest."""
    device: Any = get_device("emulated")
    seeds = range(8) if EXHAUSTIVE else (4,)
    for seed in seeds if name == "kronecker" else (0,):
        graph = getattr(gp, name)(14, seed=seed)
        source = int(np.argmax(graph.out_degrees > 0))
        results: list[Any] = []
        kernels = counted(device, lambda: results.append(gp.bfs(graph, source, device="emulated")))  # noqa: B023
        reads = atomics = 0
        for compiled, counts in kernels.items():
            for site, times in zip(compiled.sites, counts.executions.tolist(), strict=True):
                if site.kind == "load" and "(indices, e)" in linecache.getline(site.file, site.line):
                    reads += times
                if site.kind == "atomic" and compiled.name == "apply_messages":
                    atomics += times
        examined, hops = edges_examined(graph, source)
        assert results[0].to_numpy().tolist() == hops
        check_bfs(graph, results[0])
        assert reads <= 1.3 * examined
        # Each block sums its figures by shuffles, and then counts itself as finished.
        assert 0 < atomics <= (len(results[0].trace) - 1) * graph.num_vertices // 256
