"""Directed acyclic graphs, ancestors and descendants, and dominators."""

from __future__ import annotations

from gpu_pregel.networkx.conditions import attribute_names, unset
from gpu_pregel.networkx.function import Function

FUNCTIONS = (
    Function("ancestors", "dags"),
    Function("descendants", "dags"),
    Function("lowest_common_ancestor", "dags"),
    Function("has_cycle", "dags", home="algorithms.dag"),
    Function("is_directed_acyclic_graph", "dags"),
    Function("topological_generations", "dags"),
    Function("topological_sort", "dags"),
    Function("lexicographical_topological_sort", "dags"),
    Function(
        "dag_longest_path",
        "dags",
        conditions=(attribute_names("weight"), unset("topo_order")),
        note="without topo_order",
    ),
    Function("dag_longest_path_length", "dags", conditions=(attribute_names("weight"),)),
    Function("is_aperiodic", "dags"),
    Function("transitive_reduction", "dags"),
    Function("immediate_dominators", "dags"),
    Function("dominance_frontiers", "dags"),
)
