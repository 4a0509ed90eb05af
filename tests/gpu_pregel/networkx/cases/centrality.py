"""Calls of centralities that follow from degrees, neighbours and eigenvectors."""

from __future__ import annotations

from tests.gpu_pregel.networkx.comparison import Case, call

_SMALL = ("complete", "grid", "loops", "multigraph", "isolated", "directed", "empty")

CASES: dict[str, list[Case]] = {
    "degree_centrality": [call()],
    "in_degree_centrality": [call()],
    "out_degree_centrality": [call()],
    "eigenvector_centrality": [
        call(),
        call(max_iter=1000, weight="weight"),
        call(max_iter=2),
        call(max_iter=1000, tol=1e-4, weight="cost"),
        Case(lambda graph: ((graph,), {"nstart": {u: i for i, u in enumerate(reversed(list(graph)))}})),
        Case(lambda graph: ((graph,), {"nstart": dict.fromkeys(graph, 0)})),
    ],
    "eigenvector_centrality_numpy": [
        Case(tolerance=1e-6, absolute=1e-7),
        Case(lambda graph: ((graph, "weight"), {}), tolerance=1e-6, absolute=1e-7),
    ],
    "katz_centrality": [
        call(alpha=0.05),
        call(),
        call(alpha=0.01, weight="weight", normalized=False, beta=2),
        call(alpha=0.05, max_iter=1),
        Case(lambda graph: ((graph, 0.05, {u: i % 3 for i, u in enumerate(graph)}), {"weight": "cost"})),
        Case(lambda graph: ((graph, 0.05), {"nstart": {u: i for i, u in enumerate(reversed(list(graph)))}})),
        call(beta={"absent": 1}),
        call(beta=0, alpha=0.01),
    ],
    "laplacian_centrality": [
        call(),
        call(normalized=False, weight=None, nodelist=["absent"]),
        call(normalized=False, weight="cost"),
        Case(lambda graph: ((graph, False, list(graph)[:2]), {}), graphs=_SMALL),
    ],
    "voterank": [call(), call(2), call(0), call(1000)],
}
