"""Matchings."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from gpu_pregel.networkx.conditions import simple
from gpu_pregel.networkx.function import Function, Reads


def _of_tuples(values: Mapping[str, Any]) -> str | None:
    """Require a dict, or tuples in a collection: NetworkX fails at the first edge that cannot be in a set."""
    matching = values["matching"]
    if isinstance(matching, dict) or (
        isinstance(matching, Collection) and all(isinstance(edge, tuple) for edge in matching)
    ):
        return None
    return "the matching is neither a dict nor a collection of tuples"


FUNCTIONS = (
    Function("maximal_matching", "matching"),
    Function(
        "is_maximal_matching",
        "matching",
        conditions=(simple(), _of_tuples),
        note="for simple graphs",
        reads=Reads(ends_early=True),
    ),
)
