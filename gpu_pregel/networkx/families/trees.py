"""Recognition of trees and forests; isolated nodes and self-loops."""

from __future__ import annotations

from gpu_pregel.networkx.function import Function

FUNCTIONS = (
    Function("is_tree", "trees"),
    Function("is_forest", "trees"),
    Function("is_arborescence", "trees"),
    Function("is_branching", "trees"),
    Function("isolates", "trees"),
    Function("number_of_isolates", "trees"),
    Function("number_of_selfloops", "trees"),
)
