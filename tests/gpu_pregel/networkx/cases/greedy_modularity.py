"""Calls of communities by merging."""

from __future__ import annotations

from tests.gpu_pregel.networkx.comparison import Case, call

CASES: dict[str, list[Case]] = {
    "greedy_modularity_communities": [
        call(),
        call("weight"),
        call("cost", resolution=1.8),
        call(cutoff=3),
        call(best_n=2),
        call(best_n=1),
        call(cutoff=0),
        call(best_n=500),
        call(best_n=0),
        call(cutoff=3, best_n=2),
    ],
}
