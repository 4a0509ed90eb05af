"""Eulerian graphs."""

from __future__ import annotations

from gpu_pregel.networkx.conditions import node_or_none, simple
from gpu_pregel.networkx.function import Function

_CIRCUIT = (simple(), node_or_none("source"))

FUNCTIONS = (
    Function("is_eulerian", "eulerian"),
    Function("has_eulerian_path", "eulerian"),
    Function("is_semieulerian", "eulerian"),
    Function("eulerian_circuit", "eulerian", conditions=_CIRCUIT, note="for simple graphs", mixes=("source",)),
    Function("eulerian_path", "eulerian", conditions=_CIRCUIT, note="for simple graphs", mixes=("source",)),
)
