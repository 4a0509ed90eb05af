"""Graphs made by rule or at random."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from gpu_pregel.networkx.conditions import unset
from gpu_pregel.networkx.function import Function

_LARGEST = 1 << 31


def _plain_numbers(values: Mapping[str, Any]) -> str | None:
    """Require integers as n and m, and a number as p."""
    if any(type(values[name]) is not int for name in ("n", "m") if name in values) or not 0 <= values["n"] < _LARGEST:
        return "n or m is no integer, or n is negative or too large"
    p = values.get("p", 0.0)
    return None if type(p) in (int, float) and p == p else "p is no number"


def _python_seed(values: Mapping[str, Any]) -> str | None:
    return None if type(values["seed"]) is random.Random else "the seed is no integer and no random.Random"


_NOTE = "without create_using"
_PLAIN = (_plain_numbers, _python_seed, unset("create_using"))

FUNCTIONS = (
    Function("gnp_random_graph", "generators", conditions=_PLAIN, note=_NOTE),
    Function("fast_gnp_random_graph", "generators", conditions=_PLAIN, note=_NOTE),
    Function("gnm_random_graph", "generators", conditions=_PLAIN, note=_NOTE),
)
