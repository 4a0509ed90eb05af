"""Biconnected components, articulation points, bridges and chains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpu_pregel.networkx.conditions import unset
from gpu_pregel.networkx.function import Function, Reads


def _one_or_two(given: Mapping[str, Any]) -> str | None:
    largest = 1 if given["G"].is_directed() else 2
    return None if given["k"] in range(1, largest + 1) else f"k is {given['k']!r}"


FUNCTIONS = (
    Function("biconnected_components", "biconnected"),
    Function("biconnected_component_edges", "biconnected"),
    Function("articulation_points", "biconnected"),
    Function("is_biconnected", "biconnected", reads=Reads(from_first=True, ends_early=True)),
    Function("bridges", "biconnected", conditions=(unset("root"),), note="without root"),
    Function("has_bridges", "biconnected"),
    Function("local_bridges", "biconnected", conditions=(unset("weight"),), note="without weight"),
    Function("bridge_components", "biconnected", home="algorithms.connectivity"),
    Function(
        "k_edge_components",
        "biconnected",
        conditions=(_one_or_two,),
        note="for k up to 2, in directed graphs for k = 1",
    ),
    Function("chain_decomposition", "biconnected", mixes=("root",)),
)
