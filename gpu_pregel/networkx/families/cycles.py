"""Cycles of undirected graphs."""

from __future__ import annotations

from gpu_pregel.networkx.function import Function

FUNCTIONS = (
    Function("cycle_basis", "cycles"),
    Function("girth", "cycles"),
)
