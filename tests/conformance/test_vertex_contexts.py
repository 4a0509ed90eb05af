"""``ctx`` in every function, on every device, in every direction and in every partition, compared with plain Python."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from tests.devices import ways
from tests.programs import CONTEXTS, CONTEXTS_PER_EDGE

N = 200
STEPS = 4


@pytest.fixture(scope="module")
def graph() -> gp.Graph:
    """A directed graph with weights, whose last vertices have no edges."""
    src, dst = np.random.default_rng(23).integers(0, N - 20, (2, 3 * N))
    return gp.Graph.from_edgelist(src, dst, np.arange(3 * N) % 11, num_vertices=N, directed=True)


class Context:
    """The ``ctx`` of the expected results."""

    def __init__(self, graph: gp.Graph, vertex: int, superstep: int) -> None:
        self.vertex, self.superstep, self.num_vertices = vertex, superstep, graph.num_vertices
        self.out_degree, self.in_degree = int(graph.out_degrees[vertex]), int(graph.in_degrees[vertex])


def expected(graph: gp.Graph, program: Any) -> tuple[list[int], list[tuple[int, int]], list[int]]:
    """Values; numbers of vertices that were active and that applied, by superstep; and the aggregate of each."""
    src, dst, weights = graph.to_edgelist()
    assert weights is not None
    edges = list(zip(src.tolist(), dst.tolist(), weights.tolist(), strict=True))
    contexts = [Context(graph, v, 0) for v in range(N)]
    values = [program.init(ctx) for ctx in contexts]
    active = [program.initially_active(ctx) for ctx in contexts]
    figures, totals = [(sum(active), 0)], []
    for superstep in range(1, STEPS):
        inbox: dict[int, int] = {}
        for u, v, weight in edges:
            if active[u]:
                along = (weight,) if program.sends_per_edge else ()
                inbox[v] = inbox.get(v, 0) + int(program.message(values[u], *along, contexts[u]))
        contexts = [Context(graph, v, superstep) for v in range(N)]
        active, total = [False] * N, 0
        for v, incoming in inbox.items():
            old, values[v] = values[v], program.apply(values[v], incoming, contexts[v])
            active[v] = program.active(old, values[v], contexts[v])
            total += program.aggregators["total"].function(old, values[v], contexts[v])
        figures.append((sum(active), len(inbox)))
        totals.append(total)
    return values, figures, totals


@pytest.mark.parametrize("program", [CONTEXTS, CONTEXTS_PER_EDGE], ids=["per source", "per edge"])
@ways(mode=["push", "pull"], partitions=[1, 3])
def test_ctx_is_that_of_the_vertex(
    graph: gp.Graph, program: gp.VertexProgram, device: str, way: dict[str, Any]
) -> None:
    seen: list[int] = []

    def record(aggregated: Any) -> bool:
        seen.append(int(aggregated.total))
        return False

    watched = replace(program, halt=record)
    result = gp.run(graph, watched, device=device, max_supersteps=STEPS, on_limit="return", **way)
    values, figures, totals = expected(graph, program)
    assert result.to_numpy().tolist() == values
    assert [(row["active_vertices"], row["applied"]) for row in result.trace] == figures
    assert seen[-len(totals) :] == totals
