"""PageRank and HITS."""

from __future__ import annotations

from gpu_pregel.networkx.conditions import all_nodes, attribute_names, integers
from gpu_pregel.networkx.function import Function

FUNCTIONS = (
    Function("pagerank", "link_analysis", conditions=(attribute_names("weight"), integers("max_iter"))),
    Function(
        *("google_matrix", "link_analysis"),
        conditions=(attribute_names("weight"), all_nodes("nodelist")),
        note="for all nodes",
    ),
    Function("hits", "link_analysis"),
)
