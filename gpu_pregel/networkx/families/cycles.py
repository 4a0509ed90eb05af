"""Cycles."""

from __future__ import annotations

from gpu_pregel.networkx.conditions import one_of, simple
from gpu_pregel.networkx.function import Function, Reads

FUNCTIONS = (
    Function("cycle_basis", "cycles", mixes=("root",)),
    Function("girth", "cycles"),
    Function(
        "find_cycle",
        "cycles",
        conditions=(simple(), one_of("orientation", None, "original")),
        note="for simple graphs, along the direction of edges",
        reads=Reads(ends_early=True),
        mixes=("source",),
        unhashable="reported",
    ),
)
