"""Cycles."""

from __future__ import annotations

from gpu_pregel.networkx.conditions import one_of, simple
from gpu_pregel.networkx.function import Function

FUNCTIONS = (
    Function("cycle_basis", "cycles"),
    Function("girth", "cycles"),
    Function(
        "find_cycle",
        "cycles",
        conditions=(simple(), one_of("orientation", None, "original")),
        note="for simple graphs, along the direction of edges",
    ),
)
