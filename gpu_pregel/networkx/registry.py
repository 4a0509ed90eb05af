"""The functions of NetworkX that this backend implements.

NetworkX reads it when it is imported: this imports neither NumPy nor any function.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from gpu_pregel.networkx.function import Function

FAMILIES = tuple(
    import_module(f"gpu_pregel.networkx.families.{name}")
    for name in (
        "assortativity",
        "bellman_ford",
        "betweenness",
        "biconnected",
        "bipartite",
        "centrality",
        "clustering",
        "coloring",
        "communities",
        "components",
        "cores",
        "cuts",
        "cycles",
        "dags",
        "dense_paths",
        "distance_sums",
        "distances",
        "eulerian",
        "generators",
        "link_analysis",
        "link_prediction",
        "matching",
        "matrices",
        "mixing",
        "path_centrality",
        "path_queries",
        "shortest_paths",
        "spanning_trees",
        "traversal",
        "trees",
        "triads",
        "trophic",
        "weighted_paths",
    )
)
"""The modules with the functions of each family."""

FUNCTIONS: dict[str, Function] = {function.name: function for family in FAMILIES for function in family.FUNCTIONS}
"""Each function by the name under which NetworkX dispatches it."""


def backend_info() -> dict[str, Any]:
    """Return what NetworkX asks of a backend when it is imported."""
    return {
        "backend_name": "gpu_pregel",
        "project": "gpu_pregel",
        "package": "gpu_pregel",
        "short_summary": "Compiled kernels on all processors, and on a GPU where there is one.",
        "functions": {
            function.name: {"additional_docs": f"Calls {function.note}; others are left to NetworkX."}
            if function.note
            else {}
            for function in FUNCTIONS.values()
        },
    }
