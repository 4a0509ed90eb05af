"""Recognition of trees and forests; isolated nodes and self-loops."""

from __future__ import annotations

from gpu_pregel.networkx.function import Function, Reads

FUNCTIONS = (
    Function("is_tree", "trees"),
    Function("is_forest", "trees", reads=Reads(from_first=True, until_cycle=True, along="both")),
    Function("is_arborescence", "trees"),
    Function("is_branching", "trees", reads=Reads(from_first=True, until_cycle=True, along="both")),
    Function("isolates", "trees"),
    Function("number_of_isolates", "trees"),
    Function("number_of_selfloops", "trees"),
)
