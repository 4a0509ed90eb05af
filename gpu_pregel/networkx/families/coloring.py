"""Colourings, independent sets and dominating sets."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from typing import Any

from gpu_pregel.networkx.function import Function

_STRATEGIES = (
    *("largest_first", "random_sequential", "connected_sequential", "connected_sequential_bfs"),
    *("saturation_largest_first", "DSATUR"),
)


def _known_strategy(values: Mapping[str, Any]) -> str | None:
    if values["interchange"]:
        return "colours are to be interchanged"
    strategy = values["strategy"]
    return None if isinstance(strategy, str) and strategy in _STRATEGIES else "the strategy is another one"


def _collection(values: Mapping[str, Any]) -> str | None:
    """Require nodes whose number is known: NetworkX fails if there is none after all."""
    return None if isinstance(values["nodes"], (Sized, type(None))) else "nodes is no collection"


FUNCTIONS = (
    Function(
        *("greedy_color", "coloring"),
        conditions=(_known_strategy,),
        note="by the strategies largest_first, random_sequential, connected_sequential_bfs and DSATUR",
    ),
    Function("maximal_independent_set", "coloring", conditions=(_collection,)),
    Function("is_dominating_set", "coloring"),
    Function("connected_dominating_set", "coloring"),
)
