"""Directed acyclic graphs, ancestors and descendants, and dominators."""

from __future__ import annotations

from gpu_pregel.networkx.conditions import attribute_names, unset
from gpu_pregel.networkx.function import Function, Reads

FUNCTIONS = (
    Function("ancestors", "dags", reads=Reads(start="source", along="in")),
    Function("descendants", "dags", reads=Reads(start="source")),
    Function("lowest_common_ancestor", "dags", reads=Reads(ends_early=True), mixes=("node1", "node2")),
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
    Function("immediate_dominators", "dags", reads=Reads(start="start"), mixes=("start",)),
    Function("dominance_frontiers", "dags", reads=Reads(start="start"), mixes=("start",)),
)
