"""Eulerian graphs."""

from __future__ import annotations

from gpu_pregel.networkx.function import Function

FUNCTIONS = (
    Function("is_eulerian", "eulerian"),
    Function("has_eulerian_path", "eulerian"),
    Function("is_semieulerian", "eulerian"),
)
