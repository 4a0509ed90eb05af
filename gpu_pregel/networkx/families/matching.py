"""Matchings."""

from __future__ import annotations

from gpu_pregel.networkx.conditions import simple
from gpu_pregel.networkx.function import Function

FUNCTIONS = (
    Function("maximal_matching", "matching"),
    Function("is_maximal_matching", "matching", conditions=(simple(),), note="for simple graphs"),
)
